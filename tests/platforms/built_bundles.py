"""The builds of small bundles for EvalAI and Codabench, the variants of configs, and rejections, as one text."""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from segjudge.cli import main
from segjudge.evaluation_script.files.problems import HostError
from segjudge.kernel.compiling import CompileError
from segjudge.platforms.codabench import build as codabench_build
from segjudge.platforms.codabench.build import CodabenchOptions
from segjudge.platforms.codabench.build import build as build_competitions
from segjudge.platforms.evalai.bundle import build as evalai_build
from segjudge.platforms.evalai.bundle.build import VARIANTS, build, find_unwanted_files, with_variant
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from tests.answers import fold
from tests.builders import ROOT, drawn, png, written, zipped
from tests.platforms.damages import GOLDEN, GONE, Config, new_folder, plain, put, show, write_yaml
from tests.platforms.evalai.bundles import CONFIG as FOREIGN
from tests.platforms.evalai.bundles import FILES, SCRIPT

FILE = GOLDEN / "built_bundles.txt"
#: How hosts write the keys in which variants differ.
_TEXTS = {
    "as the starter": "title: x\nremote_evaluation: False\nis_docker_based: False  # no code\nchallenge_phases:\n  - id: 1\n"
    "    test_annotation_file: a.zip\n    environment_image: mine\n",
    "without flags and a last line break": "title: x\nchallenge_phases:\n  - id: 1\n    test_annotation_file: a.zip",
    "lines of Windows": "title: x\r\nis_docker_based: yes\r\nchallenge_phases:\r\n  - id: 1\r\n    test_annotation_file: a.zip # truth\r\n",
    "a byte order mark": "\ufeffis_docker_based: True # code\ntitle: x\n",
    "flags in quotes": "is_docker_based: 'True'\nremote_evaluation: \"no\"\nis_static_dataset_code_upload: 1\n",
    "flags that are written twice": "is_docker_based: True\nis_docker_based: False\n",
    "an image that is null": "challenge_phases:\n  - id: 1\n    environment_image: null\n    test_annotation_file: a.zip\n",
    "neither a file nor an image": "challenge_phases:\n  - id: 1\n    name: x\n",
    "a file beside the dash": "challenge_phases:\n  - test_annotation_file: a.zip\n    id: 1\n",
    "phases in braces": "challenge_phases: [{id: 1, test_annotation_file: a.zip}]\n",
    "a file in two lines": "challenge_phases:\n  - id: 1\n    test_annotation_file:\n      a.zip\n",
    "all in braces": "{title: x, is_docker_based: false}\n",
    "phases that are none": "challenge_phases: [1, x]\n",
    "a list": "- a\n",
}


def _list_variants() -> Iterator[str]:
    for name, text in _TEXTS.items():
        #: Outcome → the variants that have it.
        outcomes: dict[str, list[str]] = {}
        for variant in VARIANTS:
            for image in ("", "me/image") if variant == "code-upload" else ("",):
                outcome = "".join(f"    {line}\n" for line in _change(text, variant, image))
                outcomes.setdefault(outcome, []).append(f"{variant}{' with an image' if image else ''}")
        yield from (f"{name}, {' | '.join(variants)}\n{outcome}".rstrip("\n") for outcome, variants in outcomes.items())


def _change(text: str, variant: str, image: str) -> Iterator[str]:
    """Yield the changes of a config for a variant, and the new lines that they do not state to the last character."""
    try:
        changed, changes = with_variant(text, variant, image)
    except HostError as error:
        yield str(error)
        return
    sentences = [str(change) for change in changes]
    yield from sentences
    before = text.splitlines(keepends=True)
    for number, line in enumerate(changed.splitlines(keepends=True), 1):
        if before[number - 1 : number] != [line] and not any(_tells(text, number, line) for text in sentences):
            yield f"{number}: {line!r}"


def _tells(change: str, number: int, line: str) -> bool:
    """Return whether a change states the new content of a YAML line, to the last character."""
    return f":{number}: " in change and f"{change.rpartition(' → ')[2]}\n" == line


_CONFIG: Config = {**FOREIGN, "evaluation_script": "evaluation_script.zip"}
#: What is otherwise in the folder of a bundle for EvalAI: files (None is not there), and how it is built.
_FOLDERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as it should be": ({}, {}),
    "hidden and compiled files": (
        {f"evaluation_script/{name}": "" for name in (".hidden", "a.pyc", "__pycache__/b.py", "data/c.txt", ".d/e.py")},
        {},
    ),
    "files that are missing": ({"text.html": None, "truth.txt": None}, {}),
    "files that may be missing": ({"text.html": None, "truth.txt": None}, {"lenient": True}),
    "a file elsewhere": ({"challenge_config.yaml": write_yaml({**_CONFIG, "image": "../logo.png"})}, {}),
    "a script of its own": (
        {"evaluation_script/main.py": None, "evaluation_script/__init__.py": None, "own.zip": zipped(SCRIPT),
         "challenge_config.yaml": write_yaml({**_CONFIG, "evaluation_script": "own.zip"})},
        {},
    ),
    "no script": ({"evaluation_script/main.py": None, "evaluation_script/__init__.py": None}, {}),
    "YAML that is none": ({"challenge_config.yaml": b"a: ["}, {}),
    "YAML that is none, but it may be": ({"challenge_config.yaml": b"a: ["}, {"lenient": True}),
    "YAML that is a list": ({"challenge_config.yaml": b"- a"}, {}),
    "two configs": ({"challenge_config.yml": b"a: 1"}, {}),
    "no config": ({"challenge_config.yaml": None}, {}),
    "over a file of its own": ({}, {"out": "b/logo.png"}),
    "into a file": ({}, {"out": "b/logo.png/x.zip"}),
    "a variant that is not reached": (
        {"challenge_config.yaml": b"a: &a {is_docker_based: True}\n<<: *a\n"}, {"variant": "prediction", "lenient": True}),
}  # fmt: skip


def _list_builds() -> Iterator[str]:
    scripts = {f"evaluation_script/{name}": text for name, text in SCRIPT.items()}
    texts = {name: FILES[name] for name in ("text.html", "logo.png", "truth.txt")}
    whole = {"challenge_config.yaml": write_yaml(_CONFIG), **texts, **scripts}
    for name, (files, options) in _FOLDERS.items():
        with new_folder():
            Path("b").mkdir()
            written(Path("b"), {key: data for key, data in {**whole, **files}.items() if data is not None})
            yield name
            try:
                built = build("b", **options)
                with zipfile.ZipFile(built.path) as bundle:
                    inner = [
                        entry
                        for entry in bundle.namelist()
                        if entry.endswith(".zip") and bundle.getinfo(entry).file_size
                    ]
                    for entry in bundle.namelist():
                        yield f"    {entry}"
                        with (
                            zipfile.ZipFile(io.BytesIO(bundle.read(entry)))
                            if entry in inner
                            else contextlib.nullcontext() as script
                        ):
                            yield from (f"        {module}" for module in (script.namelist() if script else ()))
                yield f"    {re.sub(r'[0-9.]+ kB', 'N kB', str(built))}"
            except (HostError, Exception) as error:  # noqa: BLE001 - what is said is noted
                yield f"    {type(error).__name__}: {str(error).replace(os.getcwd(), 'FOLDER')}"


def _list_small_builds() -> Iterator[str]:
    """Yield the script of a bundle that has only a `phases.py`: the installed scorers, plug-ins and the kernel."""
    installed = {
        path.relative_to(ROOT / "evaluation_script").as_posix() for path in (ROOT / "evaluation_script").rglob("*.py")
    }
    for table, options in ((TABLE, {}), (TABLE, {"kernel": False}), ("PHASES = 1 / 0", {"lenient": True})):
        asked = list[list[str]]()

        def read_uploads(protocols: list[str], asked: list[list[str]] = asked) -> dict[str, bytes]:
            asked.append(protocols)
            return {"families/odd/__init__.py": b"", "families/plugins.py": b"", "phases.py": b"", "main.py": b"odd"}

        with new_folder() as folder:
            written(
                folder, {"b/challenge_config.yaml": write_yaml({**MINE, "challenge_phases": []}), "b/text.html": HTML}
            )
            written(
                folder,
                {"b/evaluation_script/phases.py": table, "b/logo.png": b"", "k.so": "kernel", "k.so.sha256": "sum"},
            )
            library = SimpleNamespace(path=folder / "k.so", checksum=folder / "k.so.sha256")
            with mock.patch.multiple(
                evalai_build, read_uploads=read_uploads, find_for_worker=lambda library=library: library
            ):
                built = build("b", **options)
            with (
                zipfile.ZipFile(built.path) as bundle,
                zipfile.ZipFile(io.BytesIO(bundle.read("evaluation_script.zip"))) as script,
            ):
                names = script.namelist()
                yield f"{options}: {sorted({*names} - installed)}, without {sorted(installed - {*names})}, twice {len(names) - len({*names})}"
                yield f"    phases are the host's: {script.read('phases.py').decode() == table}, plug-ins take no place: {script.read('main.py') != b'odd'}"
                yield f"    protocols {asked}, {re.sub('[0-9.]+ kB', 'N kB', str(built))}, {built.about_kernel()}"


_SECRET = "-----BEGIN RSA " + "PRIVATE KEY-----\n"  # in two parts, so that this file holds none
_UNWANTED: dict[str, Any] = {
    **dict.fromkeys(
        (".env", "a/.env.local", "id_rsa", "x.pem", "token.txt", "tokens.txt", "credentials", "my_credentials"), "x"
    ),
    **dict.fromkeys(("a.sqlite3", "a.db-wal", ".segjudge/x", "b.journal", "journal.txt"), "x"),
    "annotations/other.txt": "x",
    "truth-of-others.zip": (ROOT / "annotations/sequences-dev.zip").read_bytes(),
    "examples/truth.zip": (ROOT / "annotations/sequences-dev.zip").read_bytes(),
    "notes.txt": _SECRET
    + f"ghp_{'a' * 36} AKIA{'B' * 16} eyJ{'a' * 10}.eyJ{'b' * 10}.{'c' * 10} hooks.slack.com/{'services'}/a/b/c",
    "large.txt": " " * (1 << 20) + _SECRET,
    "large.bin": " " * (1 << 20) + _SECRET,
    "short.bin": _SECRET,
}

_PHASE: Config = {
    "id": 1,
    "name": "First",
    "codename": "first",
    "description": "text.html",
    "is_public": True,
    "leaderboard_public": True,
    "start_date": plain("2026-01-01 00:00:00"),
    "end_date": plain("2030-01-01 00:00:00"),
    "test_annotation_file": "annotations/val.zip",
    "max_submissions_per_day": 5,
    "max_submissions": 50,
}
_LATER = {
    "id": 2,
    "name": "Second",
    "codename": "second",
    "start_date": plain("2030-01-01 00:00:00"),
    "end_date": plain("2031-01-01 12:30:00+02:00"),
}
_ROW = FOREIGN["challenge_phase_splits"][0]
MINE: Config = {
    **{key: FOREIGN[key] for key in ("title", "description", "evaluation_details", "terms_and_conditions", "image")},
    "submission_guidelines": "text.html",
    "evaluation_script": "evaluation_script.zip",
    "short_description": "Short",
    "start_date": plain("2026-01-01 00:00:00"),
    "end_date": plain("2040-01-01 00:00:00"),
    "leaderboard": [
        {
            "id": 1,
            "schema": {
                "labels": ["J-Decay", "J-Mean"],
                "default_order_by": "J-Mean",
                "metadata": {"J-Decay": {"sort_ascending": True, "description": "Less is better"}},
            },
        }
    ],
    "challenge_phases": [_PHASE],
    "dataset_splits": [{"id": 1, "name": "Val", "codename": "val"}, {"id": 2, "name": "Hard", "codename": "hard"}],
    "challenge_phase_splits": [_ROW],
}
TWO = {
    **MINE,
    "challenge_phases": [_PHASE, {**_PHASE, **_LATER}],
    "challenge_phase_splits": [_ROW, {**_ROW, "challenge_phase_id": 2}],
}
_BOTH = {
    **MINE,
    "challenge_phases": [{**_PHASE, "codename": "both"}],
    "challenge_phase_splits": [{**_ROW, "dataset_split_id": 2, "visibility": 1}, _ROW],
}
TABLE = """from .scoring import Phase, PhaseSplit

LABELS = ("J-Decay", "J-Mean")
VAL, HARD = PhaseSplit("val", "davis2017", LABELS), PhaseSplit("hard", "davis2017", LABELS, hidden=True)
PHASES = (
    Phase("first", "annotations/val.zip", (VAL,), seconds=100),
    Phase("both", "annotations/val.zip", (VAL, HARD), report=False, detail="all"),
    Phase("second", "annotations/val.zip", (VAL,)),
)
"""
_ASKED = [
    {"name": "size", "type": "radio", "options": ["a", "b"], "required": True},
    {"name": "fast", "type": "boolean"},
    {"name": "how", "type": "text"},
    {"name": "which", "type": "checkbox", "options": ["c", "d"]},
]
#: Challenges that become competitions, and the options.
_COMPETITIONS: dict[str, tuple[Config, CodabenchOptions]] = {
    "one phase": (MINE, CodabenchOptions()),
    "an image and a queue": (TWO, CodabenchOptions(image="me/image", queue="q")),
    "samples": (MINE, CodabenchOptions(samples=True)),
    "two phases that touch": (TWO, CodabenchOptions()),
    "two phases that overlap": (put(TWO, "challenge_phases.1.start_date", plain("2029-01-01 00:00:00")), CodabenchOptions()),
    "a phase that is not public": (put(TWO, "challenge_phases.1.is_public", False), CodabenchOptions()),
    "phases in another order": (
        put(TWO, "challenge_phases", [{**_PHASE, **_LATER}, _PHASE]), CodabenchOptions()),
    "a hidden split": (_BOTH, CodabenchOptions()),
    "a hidden split that is kept": (_BOTH, CodabenchOptions(hidden=True)),
    "a phase with hidden splits alone": (
        put(TWO, "challenge_phase_splits.1.visibility", 1), CodabenchOptions()),
    "phases with other splits": (
        {**TWO, "challenge_phase_splits": [*TWO["challenge_phase_splits"], {**_ROW, "challenge_phase_id": 2, "dataset_split_id": 2}]},
        CodabenchOptions(),
    ),
    "hidden splits alone": (put(_BOTH, "challenge_phase_splits", _BOTH["challenge_phase_splits"][:1]), CodabenchOptions()),
    "what Codabench cannot express": (
        {
            **MINE,
            "allowed_email_domains": ["a.org"], "enable_forum": False, "prizes": [{"rank": 2, "amount": "1EUR"}, {"rank": 1, "amount": "2EUR"}],
            "challenge_phases": [{**_PHASE, "submission_meta_attributes": _ASKED, "max_submissions_per_month": 9, "is_submission_public": True, "leaderboard_public": False}],
        },
        CodabenchOptions(hidden=True),
    ),
    "remote evaluation": ({**MINE, "remote_evaluation": True}, CodabenchOptions()),
    "code": ({**MINE, "is_docker_based": True}, CodabenchOptions()),
    "no annotation file": (put(MINE, "challenge_phases.0.test_annotation_file", GONE), CodabenchOptions()),
    "a long title": ({**MINE, "title": "x" * 182}, CodabenchOptions()),
    "a long name": (put(MINE, "challenge_phases.0.name", "x" * 257), CodabenchOptions()),
    "no codename": (put(MINE, "challenge_phases.0.codename", GONE), CodabenchOptions()),
    "no dates": (put(MINE, "challenge_phases.0.start_date", GONE), CodabenchOptions()),
    "a logo that is none": ({**MINE, "image": "text.html"}, CodabenchOptions()),
    "no logo": ({**MINE, "image": None}, CodabenchOptions()),
    "a logo that is wide": ({**MINE, "image": "wide.png"}, CodabenchOptions()),
}  # fmt: skip
_SECOND = 'Phase("second", "annotations/val.zip", (VAL,'
#: The phases of competitions that are not scored as the others.
_TABLES = {
    "a phase with hidden splits alone": TABLE.replace(_SECOND, _SECOND.replace("VAL", 'PhaseSplit("val", "davis2017", LABELS, hidden=True)')),
    "phases with other splits": TABLE.replace(_SECOND, f'{_SECOND} PhaseSplit("hard", "davis2017", LABELS)'),
}  # fmt: skip
_COCO = TABLE.replace("davis2017", "coco").replace('("J-Decay", "J-Mean")', '("AP", "AP50")')
_PAGE_OF_EACH = TABLE.replace("seconds=100", "report=True")
#: What needs packages on Codabench: the phases, whether pip finds them, and the options.
_PACKAGED: dict[str, tuple[str, bool, CodabenchOptions]] = {
    "a page of each submission": (_PAGE_OF_EACH, True, CodabenchOptions()),
    "a page of each submission, without a network": (_PAGE_OF_EACH, False, CodabenchOptions()),
    "masks of COCO": (_COCO, True, CodabenchOptions()),
    "masks of COCO, without a network": (_COCO, False, CodabenchOptions()),
    "masks of COCO, in another image": (_COCO, False, CodabenchOptions(image="me/image")),
}
HTML = b"<h1>Text</h1>\n    <p>indented</p>\n"


def _list_competitions() -> Iterator[str]:
    with new_folder():
        arguments = [
            "new",
            "mine",
            "--protocol",
            "davis2017",
            "--truth",
            str(ROOT / "annotations/sequences-dev.zip"),
            "--quiet",
        ]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main(arguments)
        os.rename(next(Path("mine/annotations").iterdir()), "mine/annotations/val.zip")
        wide = png(drawn("#" * 600, "." * 600))
        written(Path("mine"), {"text.html": HTML, "logo.png": FILES["logo.png"], "wide.png": wide})
        written(Path("mine"), {"evaluation_script/phases.py": TABLE, "examples/first/good.zip": zipped({"a": "b"})})
        first: list[str] = []
        for number, (name, (config, options)) in enumerate(_COMPETITIONS.items()):
            Path("mine/challenge_config.yaml").write_bytes(write_yaml(config))
            Path("mine/evaluation_script/phases.py").write_text(_TABLES.get(name, TABLE))
            yield f"{name}"
            try:
                built = build_competitions(find_bundle("mine"), f"out-{number}", replace(options, kernel=False))
            except HostError as error:
                yield f"    refused: {re.sub('x{40,}', lambda run: f'{len(run[0])} x', str(error))}"
                continue
            yield from (f"    {', '.join(subjects)}: {text}" for text, subjects in built.notes.items())
            for competition in built.competitions:
                yield f"    {re.sub(r'[0-9.]+ kB', 'N kB', str(competition))}: {competition.title}"
                lines = [*_read_competition(competition.path)]
                changes = difflib.unified_diff(first, lines, lineterm="", n=0)  # all of the first one
                yield from (f"        {line}" for line in changes if not line.startswith(("---", "+++", "@@")))
                first = first or lines
        yield from _list_packaged()


def _list_packaged() -> Iterator[str]:
    """Yield the files next to the scorers in a program, with a pip that fetches one small wheel."""
    Path("mine/challenge_config.yaml").write_bytes(write_yaml(MINE))
    for number, (name, (table, is_found, options)) in enumerate(_PACKAGED.items()):
        Path("mine/evaluation_script/phases.py").write_text(table)
        yield name

        def run_pip(folder: Path, arguments: list[str], name: str = name, is_found: bool = is_found) -> None:
            if not is_found:
                raise CompileError("pip failed: no network")
            written(
                folder,
                {"b.whl": zipped({"small/": "", "small/a.py": name, f"{Path(arguments[-2]).name}/x": ""}), "a.txt": ""},
            )

        toolkits = {"families/odd/shown.py": b"import segjudge.static\n", "families/odd/x.html": b""}
        with (
            mock.patch.multiple(codabench_build, run_pip=run_pip, read_toolkits=lambda _, toolkits=toolkits: toolkits),
            mock.patch.dict(os.environ, XDG_CACHE_HOME=f"cache-{number}"),
        ):
            built = build_competitions(find_bundle("mine"), f"packaged-{number}", replace(options, kernel=False))
        yield from (f"    {', '.join(subjects)}: {text}" for text, subjects in built.notes.items())
        with (
            zipfile.ZipFile(built.competitions[0].path) as files,
            zipfile.ZipFile(io.BytesIO(files.read("scoring_program.zip"))) as program,
        ):
            tops = dict.fromkeys(
                entry if "odd" in entry else "/".join(entry.split("/")[:3])
                for entry in program.namelist()
                if not entry.startswith("evaluation")
            )
            yield from (f"    {top}" for top in tops)


def _read_competition(path: str) -> Iterator[str]:
    with zipfile.ZipFile(path) as files:
        yield from files.read("competition.yaml").decode().splitlines()
        for name in files.namelist()[1:]:
            data = files.read(name)
            if name.endswith(".zip"):
                with zipfile.ZipFile(io.BytesIO(data)) as inner:
                    tops = dict.fromkeys(entry.split("/")[0] for entry in inner.namelist())
                    yield f"── {name}: {', '.join(tops)}"
                    yield from (
                        json.dumps(json.loads(inner.read("task.json"))).splitlines() if "task.json" in tops else ()
                    )
                    yield from inner.read("metadata.yaml").decode().splitlines() if "metadata.yaml" in tops else ()
            elif name.endswith(".html"):
                yield f"── {name}"
                yield from data.decode().splitlines()
            else:
                yield f"── {name}: {_measure(data)}"


def _measure(data: bytes) -> str:
    from PIL import Image

    with Image.open(io.BytesIO(data)) as picture:
        return f"{picture.format} of {picture.size}"


def write_text() -> str:
    with new_folder():
        Path("starter.zip").write_bytes(
            zipped({"challenge_config.yaml": write_yaml(_CONFIG), **FILES, **_UNWANTED}, method=0)
        )
        unwanted = [show(problem) for problem in find_unwanted_files("starter.zip")]
    parts: dict[str, Callable[[], Any]] = {
        "variants": _list_variants,
        "bundles for EvalAI": _list_builds,
        "small bundles for EvalAI": _list_small_builds,
        "what a starter should not upload": lambda: unwanted,
        "competitions for Codabench": _list_competitions,
    }
    texts = (f"── {title} ──\n" + "".join(f"{line}\n" for line in lines()) for title, lines in parts.items())
    return fold("".join(texts))


if __name__ == "__main__":
    FILE.write_text(write_text(), encoding="utf-8")
