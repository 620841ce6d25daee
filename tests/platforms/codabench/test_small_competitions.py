"""Competitions for Codabench from a small challenge: each file, and what changes with phases, splits and options."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from PIL import Image

from segjudge.cli import main
from segjudge.kernel.compiling import CompileError
from segjudge.platforms.codabench import build as codabench_build
from segjudge.platforms.codabench.build import BuiltCompetitions, CodabenchOptions, build
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from tests.builders import ROOT, drawn, png, written, zipped
from tests.outcomes import outcome_of
from tests.platforms.damages import GONE, Config, plain, put, write_yaml
from tests.platforms.evalai.bundles import FILES
from tests.platforms.small_challenge import BOTH, HTML, LATER, MINE, PHASE, ROW, TABLE, TWO

#: Pages of a competition have no indentation, which Markdown would take for code.
PAGE = "<h1>Text</h1>\n<p>indented</p>\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small") / "mine"
    truth = str(ROOT / "annotations/sequences-dev.zip")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(["new", str(folder), "--protocol", "davis2017", "--truth", truth, "--quiet"])
    os.rename(next((folder / "annotations").iterdir()), folder / "annotations/val.zip")
    wide = png(drawn("#" * 600, "." * 600))
    written(folder, {"text.html": HTML, "logo.png": FILES["logo.png"], "wide.png": wide})
    written(folder, {"examples/first/good.zip": zipped({"a": "b"})})
    return folder


@pytest.fixture
def build_small(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., BuiltCompetitions]:
    """How competitions are built from a config and the phases."""
    shutil.copytree(made, tmp_path / "mine", symlinks=True)
    monkeypatch.chdir(tmp_path)

    def build_small(config: Config, table: str = TABLE, options: CodabenchOptions | None = None) -> BuiltCompetitions:
        Path("mine/challenge_config.yaml").write_bytes(write_yaml(config))
        Path("mine/evaluation_script/phases.py").write_text(table)
        return build(find_bundle("mine"), "out", replace(options or CodabenchOptions(), kernel=False))

    return build_small


def read(path: str) -> dict[str, Any]:
    """Return the files of a competition: documents, pages, sizes of pictures, and what zips hold."""
    with zipfile.ZipFile(path) as files:
        return {name: _read(name, files.read(name)) for name in files.namelist()}


def _read(name: str, data: bytes) -> Any:
    if name.endswith(".yaml"):
        return yaml.safe_load(data)
    if name.endswith(".html"):
        return data.decode()
    if not name.endswith(".zip"):
        with Image.open(io.BytesIO(data)) as picture:
            return picture.format, picture.size
    with zipfile.ZipFile(io.BytesIO(data)) as inner:
        tops = [*dict.fromkeys(entry.split("/")[0] for entry in inner.namelist())]
        documents = {"task.json": json.loads, "metadata.yaml": yaml.safe_load}
        return [tops, *(parse(inner.read(top)) for top, parse in documents.items() if top in tops)]


def notes_of(built: BuiltCompetitions) -> list[str]:
    return [f"{', '.join(subjects)}: {text}" for text, subjects in built.notes.items()]


def phase_of(index: int, name: str, start: str, end: str, seconds: int) -> dict[str, Any]:
    return {
        "index": index, "name": name, "description": PAGE, "start": start, "end": end, "tasks": [index],
        "max_submissions_per_day": 5, "max_submissions": 50, "execution_time_limit": seconds,
    }  # fmt: skip


def task_of(index: int, name: str, codename: str, splits: str = "val") -> dict[str, Any]:
    return {
        "index": index, "name": name, "description": f"{codename}: {splits}", "scoring_program": "scoring_program.zip",
        "reference_data": f"reference_data/{codename}.zip",
    }  # fmt: skip


def columns_of(*splits: str, hidden: bool = False) -> list[dict[str, Any]]:
    """Return the columns of the first split, and of others with their names; the ranking one is first."""
    names = [
        (name, "") if split == splits[0] else (name, f"{split}: ") for split in splits for name in ("J-Mean", "J-Decay")
    ]
    return [
        {"title": split + name, "key": split + name, "index": index, "sorting": "asc" if name == "J-Decay" else "desc",
         "precision": 2, "hidden": hidden and bool(split)}
        for index, (name, split) in enumerate(names)
    ]  # fmt: skip


def reference_of(codename: str, name: str, seconds: int, *splits: str, hidden: bool = False) -> list[Any]:
    """Return what the reference data of a phase hold."""
    columns = [
        {"key": (f"{split}: " if number else "") + label, "split": split, "label": label, "hidden": hidden and bool(number)}
        for number, split in enumerate(splits or ("val",)) for label in ("J-Mean", "J-Decay")
    ]  # fmt: skip
    title = f"Small challenge: {name}"
    task = {
        "phase": codename, "title": title, "annotations": "val.zip", "seconds": seconds, "page": "",
        "columns": columns,
    }  # fmt: skip
    return [["task.json", "val.zip"], task]


FIRST = phase_of(0, "First", "2026-01-01 00:00:00", "2030-01-01 00:00:00", 220)
COMPETITION: dict[str, Any] = {
    "version": 2, "title": "Small challenge", "description": "Short", "image": "logo.png", "terms": "terms.html",
    "pages": [
        {"title": "Overview", "file": "pages/description.html"},
        {"title": "Evaluation", "file": "pages/evaluation_details.html"},
        {"title": "Submission", "file": "pages/submission_guidelines.html"},
    ],
    "docker_image": "codalab/codalab-legacy:py312", "registration_auto_approve": True, "enable_detailed_results": True,
    "forum_enabled": True, "can_participants_make_submissions_public": False, "tasks": [task_of(0, "First", "first")], "phases": [FIRST],
    "leaderboards": [
        {"title": "Leaderboard", "key": "main", "submission_rule": "Force_Best", "primary_index": 0, "hidden": False,
         "columns": columns_of("val")},
    ],
}  # fmt: skip
METADATA = {"command": "python3 score.py /app/input /app/output"}


def explained(*columns: str) -> str:
    rows = "".join(f"<tr><td>{column}</td><td>Less is better</td></tr>\n" for column in columns)
    return f"{PAGE}<table>\n<tr><th>Column</th><th>Meaning</th></tr>\n{rows}</table>\n"


def competition(
    *references: list[Any],
    board: dict[str, Any] | None = None,
    explain: tuple[str, ...] = ("J-Decay",),
    more: Any = None,
    **changes: Any,
) -> dict[str, Any]:
    """Return the files of a competition with these reference data, changes of its document and of its leaderboard."""
    document = {**copy.deepcopy(COMPETITION), **changes}
    document["leaderboards"][0] |= board or {}
    return {
        "competition.yaml": document, "logo.png": ("PNG", (2, 1)), "terms.html": PAGE,
        "scoring_program.zip": [["metadata.yaml", "score.py", "evaluation_script"], METADATA],
        "pages/description.html": PAGE, "pages/evaluation_details.html": explained(*explain),
        "pages/submission_guidelines.html": PAGE,
        **{f"reference_data/{reference[1]['phase']}.zip": reference for reference in references}, **(more or {}),
    }  # fmt: skip


REFERENCE, SECOND_REFERENCE = reference_of("first", "First", 100), reference_of("second", "Second", 480)
ONE = competition(REFERENCE)
CAPPED = (
    "scoring may take 480 seconds, not 3600, because the public queue allows 600 for a run (--queue names your own)"
)
TOUCHES = "second: starts one second later, because phases must not touch on Codabench"
TASKS = [task_of(0, "First", "first"), task_of(1, "Second", "second")]


def second_phase(index: int = 1, start: str = "2030-01-01 00:00:01", seconds: int = 600) -> dict[str, Any]:
    return phase_of(index, "Second", start, "2031-01-01 10:30:00", seconds)


def alone(start: str) -> dict[str, Any]:
    """Return the competition of the second phase, whose title names it."""
    return competition(
        SECOND_REFERENCE, title="Small challenge: Second", tasks=[task_of(0, "Second", "second")], phases=[second_phase(0, start)]
    )  # fmt: skip


FIRST_ALONE = competition(REFERENCE, title="Small challenge: First")
TOGETHER = competition(REFERENCE, SECOND_REFERENCE, tasks=TASKS, phases=[FIRST, second_phase()])
LONG = phase_of(0, "First", "2026-01-01 00:00:00", "2030-01-01 00:00:00", 600)
ASKED: list[dict[str, Any]] = [
    {"name": "size", "type": "radio", "options": ["a", "b"], "required": True},
    {"name": "fast", "type": "boolean"},
    {"name": "how", "type": "text"},
    {"name": "which", "type": "checkbox", "options": ["c", "d"]},
]
SHEET = {
    name: {"key": name, "type": kind, "title": name, "selection": selection, "is_required": required, "is_on_leaderboard": "false"}
    for name, kind, selection, required in (
        ("size", "select", ["a", "b"], "true"), ("fast", "checkbox", [True, False], "false"), ("how", "text", "", "false"),
        ("which", "text", "", "false"),
    )
}  # fmt: skip
SECOND_LINE = 'Phase("second", "annotations/val.zip", (VAL,'
HIDDEN_SECOND = TABLE.replace(
    SECOND_LINE, SECOND_LINE.replace("VAL", 'PhaseSplit("val", "davis2017", LABELS, hidden=True)')
)
HARD_SECOND = TABLE.replace(SECOND_LINE, f'{SECOND_LINE} PhaseSplit("hard", "davis2017", LABELS)')
SPLITS = [*TWO["challenge_phase_splits"], {**ROW, "challenge_phase_id": 2, "dataset_split_id": 2}]
BOTH_TASK = [task_of(0, "First", "both")]

#: Config, phases and options → the notes, and the files of each competition.
COMPETITIONS: dict[str, tuple[Config, str, CodabenchOptions, list[str], dict[str, Any]]] = {
    "one phase": (MINE, TABLE, CodabenchOptions(), [], {"first": ONE}),
    "an image and a queue": (
        TWO, TABLE, CodabenchOptions(image="me/image", queue="q"), [TOUCHES],
        {"first+second": competition(REFERENCE, reference_of("second", "Second", 3600), docker_image="me/image", queue="q",
                                     tasks=TASKS, phases=[FIRST, second_phase(seconds=3720)])},
    ),
    "samples": (
        MINE, TABLE, CodabenchOptions(samples=True), [],
        {"first": competition(REFERENCE, phases=[{**FIRST, "starting_kit": "starting_kit/first.zip"}],
                              more={"starting_kit/first.zip": [["good.zip"]]})},
    ),
    "two phases that touch": (TWO, TABLE, CodabenchOptions(), [TOUCHES, f"second: {CAPPED}"], {"first+second": TOGETHER}),
    "two phases that overlap": (
        put(TWO, "challenge_phases.1.start_date", plain("2029-01-01 00:00:00")), TABLE, CodabenchOptions(), [f"second: {CAPPED}"],
        {"first": FIRST_ALONE, "second": alone("2029-01-01 00:00:00")},
    ),
    "a phase that is not public": (
        put(TWO, "challenge_phases.1.is_public", False), TABLE, CodabenchOptions(),
        [f"second: {CAPPED}", "second: is not public, so its competition stays unpublished; push publishes none"],
        {"first": FIRST_ALONE, "second": alone("2030-01-01 00:00:00")},
    ),
    "phases of two leaderboards": (
        {**TWO, "leaderboard": [*TWO["leaderboard"], {**TWO["leaderboard"][0], "id": 2}],
         "challenge_phase_splits": [ROW, {**ROW, "challenge_phase_id": 2, "leaderboard_id": 2}]},
        TABLE, CodabenchOptions(), [f"second: {CAPPED}"], {"first": FIRST_ALONE, "second": alone("2030-01-01 00:00:00")},
    ),
    "a leaderboard that is not public": (
        put(TWO, "challenge_phases.1.leaderboard_public", False), TABLE, CodabenchOptions(),
        ["second: is omitted, because its leaderboard is not public (--hidden keeps it)"], {"first": ONE},
    ),
    "phases in another order": (
        put(TWO, "challenge_phases", [{**PHASE, **LATER}, PHASE]), TABLE, CodabenchOptions(), [TOUCHES, f"second: {CAPPED}"],
        {"first+second": TOGETHER},
    ),
    "a hidden split": (
        BOTH, TABLE, CodabenchOptions(),
        [f"both: {CAPPED}", "both: hard is omitted, because only Codabench's page hides it (--hidden keeps it)"],
        {"both": competition(reference_of("both", "First", 480), tasks=BOTH_TASK, phases=[LONG])},
    ),
    "a hidden split that is kept": (
        BOTH, TABLE, CodabenchOptions(hidden=True),
        [f"both: {CAPPED}", "both: only Codabench's page hides its hidden columns: the API shows them to anybody"],
        {"both": competition(reference_of("both", "First", 480, "val", "hard", hidden=True), tasks=[task_of(0, "First", "both", "val, hard")],
                             phases=[LONG], board={"columns": columns_of("val", "hard", hidden=True)}, explain=("J-Decay", "hard: J-Decay"))},
    ),
    "a phase with hidden splits alone": (
        put(TWO, "challenge_phase_splits.1.visibility", 1), HIDDEN_SECOND, CodabenchOptions(),
        ["second: is omitted, because all of its splits are hidden (--hidden keeps it)"], {"first": ONE},
    ),
    "phases with other splits": (
        {**TWO, "challenge_phase_splits": SPLITS}, HARD_SECOND, CodabenchOptions(),
        [TOUCHES, f"second: {CAPPED}", "first: the phases have different splits, so their leaderboard has gaps"],
        {"first+second": competition(REFERENCE, reference_of("second", "Second", 480, "val", "hard"),
                                     tasks=[TASKS[0], task_of(1, "Second", "second", "val, hard")], phases=[FIRST, second_phase()],
                                     board={"columns": columns_of("val", "hard")}, explain=("J-Decay", "hard: J-Decay"))},
    ),
    "what Codabench cannot express": (
        {
            **MINE, "allowed_email_domains": ["a.org"], "enable_forum": False,
            "prizes": [{"rank": 2, "amount": "1EUR"}, {"rank": 1, "amount": "2EUR"}],
            "challenge_phases": [{**PHASE, "submission_meta_attributes": ASKED, "max_submissions_per_month": 9,
                                  "is_submission_public": True, "leaderboard_public": False}],
        },
        TABLE, CodabenchOptions(hidden=True),
        ["allowed_email_domains: has no counterpart on Codabench and is omitted",
         "first: max_submissions_per_month is omitted; Codabench counts per day and in total",
         "first: only Codabench's page hides its leaderboard: the API shows it to anybody",
         "first: the question 'which' becomes a text field: Codabench has no multiple choice"],
        {"first": competition(REFERENCE, forum_enabled=False, can_participants_make_submissions_public=True, reward="1: 2EUR, 2: 1EUR",
                              fact_sheet=SHEET, board={"hidden": True})},
    ),
    "remote evaluation": (
        {**MINE, "remote_evaluation": True}, TABLE, CodabenchOptions(),
        ["remote_evaluation: Codabench's worker scores; with --queue, your own worker scores"], {"first": ONE},
    ),
    "no logo": (
        {**MINE, "image": None}, TABLE, CodabenchOptions(), ["image: is missing, but Codabench requires one, so a plain one was made"],
        {"first": {**ONE, "logo.png": ("PNG", (256, 256))}},
    ),
    "a logo that is wide": (
        {**MINE, "image": "wide.png"}, TABLE, CodabenchOptions(), [], {"first": {**ONE, "logo.png": ("PNG", (600, 2))}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("about", COMPETITIONS)
def test_a_challenge_becomes_competitions(about: str, build_small: Callable[..., BuiltCompetitions]) -> None:
    config, table, options, notes, files = COMPETITIONS[about]
    built = build_small(config, table, options)
    assert sorted(notes_of(built)) == sorted(notes)
    for made, (name, expected) in zip(built.competitions, files.items(), strict=True):
        title = expected["competition.yaml"]["title"]
        about = r"\([0-9.]+ kB\), without kernel \(.+\)"
        assert re.fullmatch(rf"out/{re.escape(name)}\.zip {about}: {name.replace('+', ', ')}", str(made))
        assert made.title == title
        files_of = read(made.path)
        for file in {*files_of, *expected}:
            assert files_of.get(file) == expected.get(file), file


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({**MINE, "is_docker_based": True}, "is_docker_based: Codabench accepts only results here, not code; build it without that flag"),
        (put(MINE, "challenge_phases.0.test_annotation_file", GONE), "first: has no test_annotation_file, but Codabench's worker scores it"),
        ({**MINE, "title": "x" * 182}, f"'{'x' * 182}' has 182 characters; Codabench allows 181"),
        (put(MINE, "challenge_phases.0.name", "x" * 257), f"'{'x' * 257}' has 257 characters; Codabench allows 256"),
        (put(MINE, "challenge_phases.0.codename", GONE), "evaluation_script/phases.py: lacks the phase None; run `segjudge check`"),
        (put(MINE, "challenge_phases.0.start_date", GONE),
         "challenge_config.yaml: has missing or invalid keys by EvalAI's rules (KeyError('start_date')). Run `segjudge check`"),
        ({**MINE, "image": "text.html"}, "text.html: is not a readable picture, but Codabench requires one"),
        (put(BOTH, "challenge_phase_splits", BOTH["challenge_phase_splits"][:1]),
         "phases.py, both: its splits differ from the YAML's (hard). Make them agree."),
    ],
    ids=["code", "no annotations", "a long title", "a long name", "no codename", "no dates", "no picture", "hidden splits alone"],
)  # fmt: skip
def test_a_challenge_that_becomes_no_competition(config: Config, sentence: str, build_small: Any) -> None:
    assert outcome_of(lambda: build_small(config)) == f"HostError: {sentence}"


COCO = TABLE.replace("davis2017", "coco").replace('("J-Decay", "J-Mean")', '("AP", "AP50")')
PAGE_OF_EACH = TABLE.replace("seconds=100", "report=True")
PROGRAM = ["metadata.yaml", "score.py"]
TOOLKIT = [
    "page_program.py", "segjudge/__init__.py", "segjudge/families", "segjudge/masks", "segjudge/report", "segjudge/scoring",
    "segjudge/static.py", "segjudge/system", "segjudge/interactive", "segjudge/evaluation_script",
    "segjudge/families/odd/shown.py", "segjudge/families/odd/x.html",
]  # fmt: skip
PLAIN_PAGE = "has a plain page for submissions, because Jinja2, which makes the full page, cannot be downloaded (pip failed: no network)"
NO_WHEEL = "cannot be scored on Codabench, because pycocotools, which the image lacks, cannot be downloaded (pip failed: no network)"


@pytest.mark.parametrize(
    ("table", "is_found", "image", "notes", "files"),
    [
        pytest.param(
            PAGE_OF_EACH, True, "", [f"first: {CAPPED}"],
            [*PROGRAM, "packages/small/a.py", "packages/page-wheels.txt/x", *(f"page/{name}" for name in TOOLKIT)], id="a page of each",
        ),
        pytest.param(PAGE_OF_EACH, False, "", [f"first: {PLAIN_PAGE}", f"first: {CAPPED}"], PROGRAM, id="without a network"),
        pytest.param(COCO, True, "", [], [*PROGRAM, "packages/small/a.py", "packages/wheels.txt/x"], id="masks of COCO"),
        pytest.param(COCO, False, "", [f"first: {NO_WHEEL}"], PROGRAM, id="masks of COCO without a network"),
        pytest.param(COCO, False, "me/image", ["first: needs pycocotools, which me/image must have"], PROGRAM, id="another image"),
    ],
)  # fmt: skip
def test_packages_that_the_image_lacks_are_in_the_program(
    table: str, is_found: bool, image: str, notes: list[str], files: list[str], build_small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    def run_pip(folder: Path, arguments: list[str]) -> None:
        if not is_found:
            raise CompileError("pip failed: no network")
        wheel = zipped({"small/": "", "small/a.py": "", f"{Path(arguments[-2]).name}/x": ""})
        written(folder, {"b.whl": wheel, "a.txt": ""})

    toolkits = {"families/odd/shown.py": b"import segjudge.static\n", "families/odd/x.html": b""}
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    with mock.patch.multiple(codabench_build, run_pip=run_pip, read_toolkits=lambda _: toolkits):
        built = build_small(MINE, table, CodabenchOptions(image=image) if image else CodabenchOptions())
    assert notes_of(built) == notes
    with (
        zipfile.ZipFile(built.competitions[0].path) as competition,
        zipfile.ZipFile(io.BytesIO(competition.read("scoring_program.zip"))) as program,
    ):
        names = [name for name in program.namelist() if not name.startswith("evaluation")]
    shown = dict.fromkeys(name if "odd" in name else "/".join(name.split("/")[:3]) for name in names)
    assert [*shown] == files
