"""`segjudge build`: the zip that EvalAI takes, from a list of what goes in."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from segjudge import evaluation_script
from segjudge.evaluation_script.files.packed import add_member, replace_file
from segjudge.evaluation_script.files.problems import HostError
from segjudge.kernel.compiling import PLACE, Library, cached_for_worker

from .bundle_source import SCRIPT_FOLDER, BundleKind, BundleSource, find_bundle
from .fields import CHALLENGE, CONFIG, FILES, PHASE, SCRIPT
from .opened_bundle import escapes
from .problems import mappings_in
from .variants import LineChange, check_variant, with_variant

SAMPLES_FOLDER = "examples"
#: The installed scorers.
_SCORERS = os.path.dirname(os.path.abspath(evaluation_script.__file__))
OUT = os.path.join("dist", "challenge_config.zip")
_CHALLENGE_FILES = [key for key, field in CHALLENGE.items() if field.kind in FILES and field.kind != SCRIPT]
_PHASE_FILES = [key for key, field in PHASE.items() if field.kind in FILES]


@dataclass(frozen=True)
class BuiltBundle:
    """The path of a built zip, and how its config differs from the host's."""

    path: str
    changes: list[LineChange] = field(default_factory=list)
    #: Whether the compiled kernel for EvalAI's worker is in it; None where the scorers do not look for one.
    kernel: bool | None = None

    def __str__(self) -> str:
        about = self.about_kernel()
        size = f"{os.path.relpath(self.path)} ({os.path.getsize(self.path) / 1e3:,.0f} kB)"
        return f"{size}, {about}" if about else size

    def about_kernel(self) -> str:
        """Return whether the kernel is in it, and how it would be; "" where the scorers do not look for one."""
        if self.kernel is None:
            return ""
        return "with kernel" if self.kernel else "without kernel (`segjudge build --kernel` makes it once)"


def build(
    root: str, out: str = "", variant: str = "", image: str = "", *, lenient: bool = False, kernel: bool = True
) -> BuiltBundle:
    """Write the bundle below `dist/`; the same files give the same bytes.

    Without a variant the config goes in unchanged.  With `lenient`, files that are missing are left out, so that
    `check` can report them.  The kernel goes in where it was compiled for EvalAI's worker before.
    """
    source = find_bundle(root)
    library = cached_for_worker() if kernel and takes_kernel(source) else None
    out = out or os.path.join(root, OUT)
    text = _read_file(root, source.config_name)
    changes: list[LineChange] = []
    config: dict[str, Any] = {}
    with suppress(HostError) if lenient else nullcontext():
        config = _parsed(text)
    if variant and config:
        changed, changes = with_variant(text.decode("utf-8"), variant, image)
        text = changed.encode("utf-8")
        config = _parsed(text)
        check_variant(config, variant)
    names = {os.path.normpath(name): name for name in (*files_named(config), *_own_script(source, config))}
    missing = {name: why for name in names if (why := _why_missing(root, name))}
    if missing and not lenient:
        named = f"and {source.config_name} names it"
        raise HostError("\n".join(f"{name}: {why}, {named}" for name, why in missing.items()))
    if os.path.realpath(out) in [os.path.realpath(os.path.join(root, name)) for name in (source.config_name, *names)]:
        raise HostError(f"{out}: is a file of the bundle, and would be written over")
    try:
        os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
        with replace_file(out) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as bundle:
            add_member(bundle, source.config_name, text)
            if os.path.isdir(os.path.join(root, SCRIPT_FOLDER)) or not source.is_foreign:
                add_member(bundle, f"{SCRIPT_FOLDER}.zip", _script_zip(source, library))
            for name in [name for name in names if name not in missing]:
                add_member(bundle, name, _read_file(root, name))
    except OSError as error:
        raise HostError(f"{out}: cannot be written ({error.strerror}); name another place with --out") from None
    return BuiltBundle(out, changes, library is not None if takes_kernel(source) else None)


def takes_kernel(source: BundleSource) -> bool:
    """Return whether the scorers look for the kernel: our own small bundles do, and scripts with its module."""
    loader = os.path.join(source.root, SCRIPT_FOLDER, PLACE, "kernel.py")
    return source.kind is BundleKind.SMALL or os.path.isfile(loader)


def read_config(root: str) -> dict[str, Any]:
    """Return the YAML; raises `HostError` when it is not a mapping."""
    return _parsed(_read_file(root, find_bundle(root).config_name))


def _parsed(text: bytes) -> dict[str, Any]:
    import yaml

    from .yaml_lines import read_yaml, yaml_problem

    try:
        config, _ = read_yaml(CONFIG, text)
    except yaml.YAMLError as error:
        raise HostError(str(yaml_problem(CONFIG, error))) from None
    if not isinstance(config, dict):
        raise HostError(f"{CONFIG}: is empty or not a mapping of keys")
    return config


def files_named(config: dict[str, Any]) -> Iterator[str]:
    """Yield the paths of the files that the YAML names, except the evaluation script, which is built."""
    phases = mappings_in(config, "challenge_phases")
    for item, keys in [(config, _CHALLENGE_FILES), *((phase, _PHASE_FILES) for phase in phases)]:
        yield from (item[key] for key in keys if isinstance(item.get(key), str) and item[key])


def samples(root: str, codename: str) -> list[str]:
    """Return the paths of a phase's sample submissions, `examples/CODENAME/FILE`, in order."""
    folder = os.path.join(root, SAMPLES_FOLDER, codename)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names]


def _own_script(source: BundleSource, config: dict[str, Any]) -> list[str]:
    """Return the script's zip that the YAML names, where a host keeps one in the place of the folder."""
    name = config.get("evaluation_script")
    made = source.is_foreign and os.path.isdir(os.path.join(source.root, SCRIPT_FOLDER))
    return [name] if isinstance(name, str) and name and not made and source.is_foreign else []


def _script_zip(source: BundleSource, kernel: Library | None) -> bytes:
    """Return `evaluation_script/` as a zip: the modules, the requirements, a kernel for the worker.

    Of a host's own script everything goes in, since it may hold packages and data; a small repository gets what it
    lacks from the installed scorers.
    """
    folder = os.path.join(source.root, SCRIPT_FOLDER)
    if not os.path.isdir(folder):
        raise HostError(f"{SCRIPT_FOLDER}/: is not there")
    names = sorted(_files_below(folder)) if source.is_foreign else _modules_in(folder)
    installed = [name for name in _modules_in(_SCORERS) if name not in names and source.kind is BundleKind.SMALL]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as script:
        for name in sorted((*names, *installed)):
            of_host = (source.root, os.path.join(SCRIPT_FOLDER, name))
            add_member(script, name, _read_file(*((_SCORERS, name) if name in installed else of_host)))
        for path in [kernel.path, kernel.checksum] if kernel else []:
            add_member(script, f"{PLACE}/{path.name}", path.read_bytes())
    return out.getvalue()


def _modules_in(folder: str) -> list[str]:
    return sorted(name for name in _files_below(folder) if name.endswith(".py") or name == "requirements.txt")


def _files_below(folder: str) -> Iterator[str]:
    """Yield the files of a folder but hidden and compiled ones, by their paths in it."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        kept = [name for name in names if not name.startswith(".") and not name.endswith(".pyc")]
        yield from (os.path.relpath(os.path.join(path, name), folder) for name in kept)


def _why_missing(root: str, name: str) -> str:
    """Return why a file cannot go into the bundle; "" when it can."""
    path = os.path.join(root, name)
    if not escapes(name) and _is_inside(root, name) and os.path.isfile(path):
        return ""
    return "is a link that leads outside the bundle" if os.path.exists(path) else "is not there"


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
