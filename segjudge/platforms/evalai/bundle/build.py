"""`segjudge build`: EvalAI's zip, from a list of its files; and the zip of EvalAI's starter."""

from __future__ import annotations

import io
import os
import re
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import segjudge.evaluation_script
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files import packed as packed_file
from segjudge.evaluation_script.files.packed import add_member, replace_file
from segjudge.evaluation_script.files.problems import HostError
from segjudge.families.pins import describe_missing
from segjudge.families.plugin_files import read_uploads
from segjudge.kernel.compiling import PLACE, Library, find_for_worker
from segjudge.platforms.rules.fields import TRUE
from segjudge.platforms.rules.problems import BundleProblem, BundleProblems, mappings_in
from segjudge.system.files import temporary_folder, zip_files

from .agreed_splits import check_splits, check_splits_of
from .bundle_source import CONFIG, PHASES_FILE, SCRIPT_FOLDER, BundleKind, BundleSource, find_bundle
from .fields import CHALLENGE, DEFAULT_IMAGE, FILES, PHASE, SCRIPT
from .opened_bundle import Bundle, escapes
from .scorers import list_protocols

if TYPE_CHECKING:
    import yaml

SAMPLES_FOLDER = "examples"
#: The installed scorers.
_SCORERS = os.path.dirname(os.path.abspath(segjudge.evaluation_script.__file__))
OUT = os.path.join("dist", "challenge_config.zip")
_CHALLENGE_FILES = [key for key, field in CHALLENGE.items() if field.kind in FILES and field.kind != SCRIPT]
_PHASE_FILES = [key for key, field in PHASE.items() if field.kind in FILES]


@dataclass(frozen=True)
class _BuiltBundle:
    """The path of a built zip, and how its config differs from the host's."""

    path: str
    changes: list[_LineChange] = field(default_factory=list)
    #: Whether it includes the compiled kernel for EvalAI's worker; None if the scorers do not load one.
    kernel: bool | None = None

    def __str__(self) -> str:
        about = self.about_kernel()
        size = f"{os.path.relpath(self.path)} ({os.path.getsize(self.path) / 1e3:,.0f} kB)"
        return f"{size}, {about}" if about else size

    def about_kernel(self) -> str:
        """Return whether the bundle has the kernel, in words; "" for scorers without one."""
        if self.kernel is None:
            return ""
        return "with kernel" if self.kernel else "without kernel (`segjudge build --kernel` compiles it)"

    def describe_kernel(self) -> str:
        """Return a sentence about the bundle's kernel, after a space; "" for scorers without one."""
        return f" The bundle was built {self.about_kernel()}." if self.about_kernel() else ""


def build(  # noqa: PLR0913 - what a bundle is built from, and when it is kept
    root: str,
    out: str = "",
    variant: str = "",
    image: str = "",
    *,
    lenient: bool = False,
    kernel: bool = True,
    inspect: Callable[[str], object] = lambda _path: None,
) -> _BuiltBundle:
    """Write the bundle below `dist/`; the same files give the same bytes.

    Without a variant, the config is copied unchanged. With `lenient`, missing files are skipped, so that `check` can
    report them. The kernel is included if it was compiled for EvalAI's worker. If `inspect` raises an error about the
    finished zip, nothing is written.
    """
    from .yaml_lines import parse_config

    source = find_bundle(root)
    library = find_for_worker() if kernel and source.takes_kernel else None
    out = out or os.path.join(root, OUT)
    text = _read_file(root, source.config_name)
    changes: list[_LineChange] = []
    config: dict[str, Any] = {}
    with suppress(HostError) if lenient else nullcontext():
        config = parse_config(CONFIG, text)
    if variant and config:
        changed, changes = make_variant(text.decode("utf-8"), variant, image)
        text = changed.encode("utf-8")
        config = parse_config(CONFIG, text)
        _check_variant(config, variant)
        if not lenient:
            _check_images(config, variant)
    if not lenient:
        check_splits_of(source)
    names = {os.path.normpath(name): name for name in (*_list_named_files(config), *_list_host_script(source, config))}
    missing = {name: why for name in names if (why := _why_missing(root, name))}
    if missing and not lenient:
        reason = f"and {source.config_name} names it"
        raise HostError("\n".join(f"{name}: {why}, {reason}" for name, why in missing.items()))
    if os.path.realpath(out) in [os.path.realpath(os.path.join(root, name)) for name in (source.config_name, *names)]:
        raise HostError(f"{out}: is a file of the bundle and would be overwritten")
    try:
        os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
        with replace_file(out) as partial:
            with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as bundle:
                add_member(bundle, source.config_name, text)
                if os.path.isdir(os.path.join(root, SCRIPT_FOLDER)):
                    add_member(bundle, f"{SCRIPT_FOLDER}.zip", _script_zip(source, library, lenient=lenient))
                for name in [name for name in names if name not in missing]:
                    add_member(bundle, name, _read_file(root, name))
            inspect(partial)
    except OSError as error:
        raise HostError(f"{out}: cannot be written ({error.strerror}); choose another path with --out") from None
    return _BuiltBundle(out, changes, library is not None if source.takes_kernel else None)


@contextmanager
def open_built(source: BundleSource, *, kernel: bool = True) -> Iterator[tuple[Bundle, str]]:
    """Yield a challenge's bundle for another platform, built unless it is, and whether it has the kernel, in words.

    Raises HostError if the YAML and `phases.py` differ in their splits.
    """
    with temporary_folder("segjudge-") as folder:
        path, about_kernel = source.archive, ""
        if not path:
            built = build(source.root, os.path.join(folder, "bundle.zip"), kernel=kernel)
            path, about_kernel = built.path, built.about_kernel()
        with Bundle(path, for_evalai=False) as bundle:
            check_splits(bundle.config, source.script_phases())
            yield bundle, about_kernel


def _list_named_files(config: dict[str, Any]) -> Iterator[str]:
    """Yield the paths of the files that the YAML names, except the evaluation script, which is built."""
    phases = mappings_in(config, "challenge_phases")
    for item, keys in [(config, _CHALLENGE_FILES), *((phase, _PHASE_FILES) for phase in phases)]:
        yield from (item[key] for key in keys if isinstance(item.get(key), str) and item[key])


def list_samples(root: str, codename: str) -> list[str]:
    """Return the files `examples/CODENAME/FILE`, in order."""
    folder = os.path.join(root, SAMPLES_FOLDER, codename)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names]


def _list_host_script(source: BundleSource, config: dict[str, Any]) -> list[str]:
    """Return the YAML's evaluation script zip, if the host keeps one."""
    name = config.get("evaluation_script")
    is_built = source.is_foreign and os.path.isdir(os.path.join(source.root, SCRIPT_FOLDER))
    return [name] if isinstance(name, str) and name and not is_built and source.is_foreign else []


def _script_zip(source: BundleSource, kernel: Library | None, *, lenient: bool) -> bytes:
    """Zip `evaluation_script/`: the modules, the requirements, a kernel for the worker.

    A host's own script is included completely, because it may hold packages and data; a small repository is completed
    with the installed scorers.
    """
    folder = os.path.join(source.root, SCRIPT_FOLDER)
    names = sorted(_files_below(folder)) if source.is_foreign else _modules_in(folder)
    installed = [name for name in _modules_in(_SCORERS) if name not in names and source.kind is BundleKind.SMALL]
    protocols = [] if source.is_foreign else source.list_protocols()
    files: dict[str, bytes] = {}
    for name in sorted((*names, *installed)):
        of_host = (source.root, os.path.join(SCRIPT_FOLDER, name))
        files[name] = _read_file(*((_SCORERS, name) if name in installed else of_host))
    files = {**files, **{name: data for name, data in sorted(read_uploads(protocols).items()) if name not in files}}
    if not lenient:
        _check_protocols(source, files, protocols)
    library = [kernel.path, kernel.checksum] if kernel else []
    return zip_files(files | {f"{PLACE}/{path.name}": path.read_bytes() for path in library})


def _check_protocols(source: BundleSource, files: dict[str, bytes], protocols: list[str]) -> None:
    """Raise HostError where the scorers that go into a bundle do not know a protocol of its phases."""
    unknown = [name for name in protocols if name not in PROTOCOLS]
    if unknown and source.kind is BundleKind.FORK:
        of_script = list_protocols(files, unknown)
        unknown = [name for name in unknown if name not in of_script]
    if unknown:
        raise HostError(f"{SCRIPT_FOLDER}/{PHASES_FILE}: {describe_missing(source.root, unknown)}")


def _modules_in(folder: str) -> list[str]:
    return sorted(name for name in _files_below(folder) if name.endswith(".py") or name == "requirements.txt")


def _files_below(folder: str) -> Iterator[str]:
    """Yield the files of a folder but hidden and compiled ones, by their paths in it."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        kept_names = [name for name in names if not name.startswith(".") and not name.endswith(".pyc")]
        yield from (os.path.relpath(os.path.join(path, name), folder) for name in kept_names)


def _why_missing(root: str, name: str) -> str:
    """Return why a file cannot be bundled; "" if it can."""
    path = os.path.join(root, name)
    if not escapes(name) and _is_inside(root, name) and os.path.isfile(path):
        return ""
    return "is a link that leads outside the bundle" if os.path.exists(path) else "does not exist"


def _is_inside(root: str, name: str) -> bool:
    return os.path.realpath(os.path.join(root, name)).startswith(os.path.realpath(root) + os.sep)


def _read_file(root: str, name: str) -> bytes:
    if not _is_inside(root, name):
        raise HostError(f"{name}: lies outside the bundle")
    try:
        with open(os.path.join(root, name), "rb") as file:
            return file.read()
    except OSError as error:
        raise HostError(f"{name}: cannot be read ({error.strerror})") from None


# ── the four ways to run a challenge, and the keys in which their configs differ ────────────────────────────────────
# A variant changes the YAML's text but keeps every line in place, so that EvalAI's messages about a line also fit the
# host's file.

#: Keys of the challenge, by variant.
FLAGS = ("remote_evaluation", "is_docker_based", "is_static_dataset_code_upload")
VARIANTS = {
    "prediction": (False, False, False),
    "remote": (True, False, False),
    "code-upload": (False, True, False),
    "static-code-upload": (False, True, True),
}
#: The variants whose truth stays with the host, so that the phases do not name it.
_WITHOUT_ANNOTATIONS = ("remote", "code-upload")
_ANNOTATION = "test_annotation_file"
#: The variant whose phases name an image instead.
WITH_IMAGE = "code-upload"
_IMAGE = "environment_image"
#: PyYAML does not count the byte order mark as a column.
_BOM = "\ufeff"


@dataclass(frozen=True)
class _LineChange:
    """One line of the YAML in which a variant differs."""

    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{CONFIG}:{self.line}: {self.before or '(nothing)'} → {self.after}"


def make_variant(text: str, variant: str, image: str = "") -> tuple[str, list[_LineChange]]:
    """Return the YAML of a variant, and its changes."""
    import yaml

    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise HostError(f"{CONFIG}: is empty or not a mapping of keys")
    editor = _LineEditor(text)
    for key, value in zip(FLAGS, VARIANTS[variant], strict=True):
        editor.set_flag(root, key, value)
    _, phases = _key_and_value(root, "challenge_phases")
    for phase in phases.value if isinstance(phases, yaml.SequenceNode) else []:
        if isinstance(phase, yaml.MappingNode):
            _edit_phase(editor, phase, variant, image)
    return "".join(editor.lines), sorted(editor.changes, key=lambda change: change.line)


def _check_variant(config: dict[str, Any], variant: str) -> None:
    """Raise `HostError` where the changed YAML, once parsed, is not the variant: a host may write YAML in many ways."""
    for key, expected in zip(FLAGS, VARIANTS[variant], strict=True):
        value = config.get(key, False)
        if (isinstance(value, (str, int)) and value in TRUE) != expected:
            raise HostError(f"{CONFIG}: {key} is {value!r} after the change; write it once, as {key}: {not expected}")
    if variant in _WITHOUT_ANNOTATIONS:
        for phase in mappings_in(config, "challenge_phases"):
            if phase.get(_ANNOTATION):
                fault = f"the phase {phase.get('codename')} still names {phase[_ANNOTATION]}"
                raise HostError(f"{CONFIG}: {fault}; write {_ANNOTATION} once in each phase, on its own line")


def _check_images(config: dict[str, Any], variant: str) -> None:
    """Raise `HostError` for phases whose environment is an image that no registry has."""
    phases = mappings_in(config, "challenge_phases") if variant == WITH_IMAGE else []
    without_image = [str(phase.get("codename")) for phase in phases if phase.get(_IMAGE) == DEFAULT_IMAGE]
    if without_image:
        fault = f"no {_IMAGE} that EvalAI can pull in {', '.join(without_image)}"
        raise HostError(
            f"{CONFIG}: {fault}; push yours to a registry and name it: --environment-image REGISTRY/NAME:TAG"
        )


def _edit_phase(editor: _LineEditor, phase: yaml.MappingNode, variant: str, image: str) -> None:
    _, image_node = _key_and_value(phase, _IMAGE)
    has_image = image_node is not None and image_node.tag != "tag:yaml.org,2002:null"
    line = f"{_IMAGE}: {image or DEFAULT_IMAGE}"
    if variant == WITH_IMAGE and image_node is not None and (image or not has_image):
        editor.replace(phase, _IMAGE, line)
    if variant in _WITHOUT_ANNOTATIONS and _key_and_value(phase, _ANNOTATION)[1] is not None:
        takes_image = variant == WITH_IMAGE and image_node is None
        editor.replace(phase, _ANNOTATION, line if takes_image else f"# no {_ANNOTATION}: it stays with the host")
    elif variant == WITH_IMAGE and image_node is None:
        raise HostError(f"{CONFIG}:{phase.start_mark.line + 1}: the phase has no {_IMAGE}: write {line}")


def _key_and_value(mapping: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | tuple[None, None]:
    """Return the nodes of a key; the last one counts."""
    pairs = [pair for pair in mapping.value if pair[0].value == key]
    return pairs[-1] if pairs else (None, None)


def _not_alone(node: yaml.Node, key: str) -> HostError:
    line = node.start_mark.line + 1
    return HostError(f"{CONFIG}:{line}: write {key} on its own line, so that variants can change it")


class _LineEditor:
    """An editor of whole lines of the YAML that appends new lines only at the end."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)
        self.changes: list[_LineChange] = []

    def set_flag(self, root: yaml.MappingNode, key: str, value: bool) -> None:  # noqa: FBT001 - a value, no switch
        """Set a flag of the challenge; a flag without a line is False."""
        import yaml

        _, node = _key_and_value(root, key)
        before = yaml.safe_load(node.value) in TRUE if isinstance(node, yaml.ScalarNode) else False
        if before == value:
            return
        if node is not None:
            self.replace(root, key, f"{key}: {value}")
            return
        if root.flow_style:
            raise _not_alone(root, key)
        if self.lines and not self.lines[-1].endswith("\n"):
            self.lines[-1] += "\n"
        end = "\r\n" if self.lines and self.lines[0].endswith("\r\n") else "\n"
        self.lines.append(f"{key}: {value}{end}")
        self.changes.append(_LineChange(len(self.lines), "", f"{key}: {value}"))

    def replace(self, mapping: yaml.MappingNode, key: str, after: str) -> None:
        key_node, value_node = _key_and_value(mapping, key)
        if key_node is None or value_node is None:
            return
        number, end = key_node.start_mark.line, value_node.end_mark
        line = self.lines[number]
        match = re.fullmatch(r"([\s\ufeff]*)[^\s#].*?(\r?\n)?", line)
        before = line[: key_node.start_mark.column].strip(f" {_BOM}")
        if mapping.flow_style or before or end.line != number or match is None:
            raise _not_alone(key_node, key)
        comment = "" if after.startswith("#") else line[end.column + line.startswith(_BOM) :].strip()
        comment = f"  {comment}" if comment.startswith("#") else ""
        self.lines[number] = f"{match.group(1)}{after}{comment}{match.group(2) or ''}"
        self.changes.append(_LineChange(number + 1, line.strip(), after))


# ── the zip that EvalAI's starter uploads ───────────────────────────────────────────────────────────────────────────
# It contains nearly the whole checkout, so a repository with that action must contain no secrets.

_SKIPPED_FOLDERS = {".git", ".github", "github", "code_upload_challenge_evaluation", "remote_challenge_evaluation"}
_SKIPPED_FILES = {".gitignore", "challenge_config.zip", "README.md", "run.sh", "submission.json"}

_SECRET_NAMES = re.compile(
    r"(^|/)(\.env(\..*)?|\.netrc|id_(rsa|dsa|ecdsa|ed25519)|credentials|host_config\.json|token(\.json|\.txt)?|.*\.(pem|key|p12))$"
)
_SECRETS = {
    "an EvalAI token": re.compile(rb"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    "a key of AWS": re.compile(rb"\bAKIA[0-9A-Z]{16}\b"),
    "a token of GitHub": re.compile(rb"\b(gh[pousr]_\w{36}|github_pat_\w{22,})"),
    "a private key": re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a Slack address": re.compile(rb"hooks\.slack\.com/services/\w+/\w+/\w+"),
}
_JOURNAL_NAMES = re.compile(r"\.(sqlite3?|db)(-wal|-shm|-journal)?$|(^|/)\.segjudge/|\.journal$")
#: The size up to which all files are searched for secrets, and the endings of text files, which are always searched.
_SEARCHED_BYTES, _TEXTS = 1 << 20, (".txt", ".log", ".json", ".yaml", ".env", ".sh")


def _list_uploaded_files(root: str) -> list[str]:
    """Return the files that the starter uploads: tracked or addable by git."""
    try:
        listing = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"],  # noqa: S607 - the host's git
            capture_output=True,
            check=False,
        )
    except OSError:
        fault = "--starter lists the files that git would upload, but git is not installed"
        raise HostError(f"{root}: {fault}. Install git, or run `segjudge check` without --starter") from None
    if listing.returncode:
        reason = (os.fsdecode(listing.stderr).strip().splitlines() or ["no reason"])[0]
        fault = f"--starter lists the files that git would upload, but git cannot list them ({reason})"
        raise HostError(f"{root}: {fault}. Run `git init` there, or `segjudge check` without --starter")
    names = {name for name in os.fsdecode(listing.stdout).split("\0") if os.path.isfile(os.path.join(root, name))}
    return sorted(name for name in names if not _is_skipped(name))


def build_starter_zip(root: str, out: str) -> str:
    """Write the zip as the starter makes it; return its path."""
    names = _list_uploaded_files(root)
    modules = [name for name in names if name.startswith(f"{SCRIPT_FOLDER}/")]
    script = zip_files({os.path.relpath(name, SCRIPT_FOLDER): Path(root, name).read_bytes() for name in modules})
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
        add_member(bundle, f"{SCRIPT_FOLDER}.zip", script)
        for name in names:
            add_member(bundle, name, Path(root, name).read_bytes())
    return out


def find_unwanted_files(bundle: str) -> BundleProblems:
    """Yield the files of a bundle that should not be uploaded: annotations, journals and secrets."""
    with Bundle(bundle) as opened:
        named_files = {os.path.normpath(name) for name in _list_named_files(opened.config)} | {CONFIG}
        for name in sorted(opened.names):
            if name == f"{SCRIPT_FOLDER}.zip" or name.endswith("/"):
                continue
            if name not in named_files and (name.startswith("annotations/") or _is_truth(opened, name)):
                fault = f"is an annotation that {CONFIG} does not name"
                yield BundleProblem(name, fault, "Keep it out of the repository")
            elif _JOURNAL_NAMES.search(name):
                yield BundleProblem(name, "is a journal", "Keep it out of the repository, and in .gitignore")
            elif _SECRET_NAMES.search(name):
                yield BundleProblem(name, "has the name of a secret", "Remove it from the repository, and renew it")
            elif opened.size(name) <= _SEARCHED_BYTES or name.endswith(_TEXTS):
                data = opened.read(name)
                for what in [what for what, pattern in _SECRETS.items() if pattern.search(data)]:
                    yield BundleProblem(name, f"holds {what}", "Remove it from the repository, and renew it")


def _is_truth(bundle: Bundle, name: str) -> bool:
    return (
        name.endswith(".zip")
        and not name.startswith("examples/")
        and bool(packed_file.family_of(io.BytesIO(bundle.read(name))))
    )


def _is_skipped(name: str) -> bool:
    *folders, file = name.split("/")
    return bool(_SKIPPED_FOLDERS & {*folders}) or file in _SKIPPED_FILES
