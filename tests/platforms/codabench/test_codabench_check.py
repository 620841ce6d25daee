"""The answers of Codabench's own unpacker, and those of `check` about the same bundles."""

from __future__ import annotations

import datetime
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.cli import main
from segjudge.platforms.codabench.check import check
from segjudge.platforms.codabench.serializer_fields import COLUMN
from segjudge.platforms.rules.problems import ERROR, BundleProblem
from tests import builders
from tests.data import CODABENCH
from tests.platforms.codabench.competitions import encrypt

ANSWERS = CODABENCH / "answers.jsonl"
Config = dict[str, Any]


def recorded() -> list[dict[str, Any]]:
    if not ANSWERS.exists():
        return []
    return [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]


def refusals(path: Path) -> list[BundleProblem]:
    return [problem for problem in check(str(path)) if problem.severity == ERROR]


@pytest.mark.skipif(not ANSWERS.exists(), reason="the recorded answers are not here")
def test_all_recorded_bundles_are_there() -> None:
    assert len(recorded()) == 48


@pytest.mark.parametrize("answer", recorded(), ids=lambda answer: answer["change"])
def test_check_refuses_what_codabench_refuses_in_its_words(answer: dict[str, Any]) -> None:
    results = refusals(CODABENCH / answer["bundle"])
    assert bool(results) != answer["accepted"], [str(problem) for problem in results]
    if results:
        assert results[0].quote.strip() == answer["answer"].strip()
        assert results[0].location.startswith(("competition.yaml", str(CODABENCH)))


CONFIG: Config = {
    "version": 2,
    "title": "Small",
    "image": "logo.png",
    "terms": "terms.md",
    "docker_image": "codalab/codalab-legacy:py312",
    "registration_auto_approve": True,
    "pages": [{"title": "Overview", "file": "page.md"}],
    "tasks": [{"index": 0, "name": "T", "scoring_program": "program.zip", "reference_data": "ref.zip"}],
    "phases": [
        {
            "name": "P",
            "start": "2026-01-01",
            "end": "2036-01-01",
            "tasks": [0],
            "max_submissions_per_day": None,
            "max_submissions": None,
        }
    ],
    "leaderboards": [
        {
            "title": "Results",
            "key": "main",
            "submission_rule": "Force_Best",
            "columns": [{"title": "A", "key": "a", "index": 0}, {"title": "B", "key": "b", "index": 1}],
        }
    ],
}
LOGO = Path(__file__).resolve().parents[3] / "logo.png"


def zipped(path: Path, files: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Return a flawless folder that Codabench accepts."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    shutil.copy(LOGO, folder / "logo.png")
    for name in ("terms.md", "page.md"):
        (folder / name).write_text("text")
    zipped(folder / "program.zip", {"metadata.yaml": "command: python3 s.py", "s.py": "import numpy\n"})
    zipped(folder / "ref.zip", {"truth.txt": "1"})
    (folder / "competition.yaml").write_text(yaml.safe_dump(CONFIG, sort_keys=False))
    return folder


def change(folder: Path, edit: Callable[[Config], object]) -> None:
    config = yaml.safe_load((folder / "competition.yaml").read_text())
    edit(config)
    (folder / "competition.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def test_nothing_is_wrong_with_a_good_bundle(bundle: Path) -> None:
    assert check(str(bundle)) == []


def phase(config: Config) -> Config:
    results: Config = config["phases"][0]
    return results


def board(config: Config) -> Config:
    results: Config = config["leaderboards"][0]
    return results


COLUMNS = {
    "never-written": (55, [("a",)]),
    "without-a-column": (56, [("a", "b", "c")]),
    "not-in-each-phase": (53, [("a", "b"), ("b",)]),
}


@pytest.mark.parametrize(("rule", "tasks"), COLUMNS.values(), ids=COLUMNS)
def test_columns_are_compared_with_what_tasks_write(bundle: Path, rule: int, tasks: list[tuple[str, ...]]) -> None:
    for index, keys in enumerate(tasks):
        document = {"columns": [{"key": key} for key in keys]}
        zipped(bundle / f"ref{index}.zip", {"task.json": json.dumps(document)})

    def edit(config: Config) -> None:
        first = config["tasks"][0]
        config["tasks"] = [
            {**first, "index": index, "reference_data": f"ref{index}.zip"} for index in range(len(tasks))
        ]
        phase(config)["tasks"] = list(range(len(tasks)))

    change(bundle, edit)
    assert rule in [problem.rule for problem in check(str(bundle))]


def test_submissions_that_migrate_to_other_columns_are_told(bundle: Path) -> None:
    zipped(bundle / "ref.zip", {"task.json": json.dumps({"columns": [{"key": "a"}]})})
    zipped(bundle / "other.zip", {"task.json": json.dumps({"columns": [{"key": "a"}, {"key": "b"}]})})

    def edit(config: Config) -> None:
        config["tasks"].append({**config["tasks"][0], "index": 1, "reference_data": "other.zip"})
        later = {"start": "2036-01-02", "end": None, "tasks": [1], "auto_migrate_to_this_phase": True}
        config["phases"].append({**phase(config), **later})

    change(bundle, edit)
    assert [problem.rule for problem in check(str(bundle))] == [42]


def question(selection: object, name: str = "q") -> Config:
    """Return a fact sheet of one question."""
    kind = {"key": name, "type": "select", "title": "Q", "is_required": "true", "is_on_leaderboard": "false"}
    return {name: {**kind, "selection": selection}}


ODD: dict[str, tuple[int, Any]] = {
    "a-list-as-a-task": (32, lambda c: phase(c).update(tasks=[[0]])),
    "a-list-as-a-key": (48, lambda c: board(c)["columns"][0].update(key=["a"])),
    "a-path-that-none-can-be": (10, lambda c: c.update(image="a\0b")),
    "a-path-of-half-a-character": (10, lambda c: c.update(image="\ud800")),
    "data-of-half-a-character": (24, lambda c: c["tasks"][0].update(reference_data="\ud800")),
    "a-column-that-is-a-number": (48, lambda c: board(c)["columns"].append(2)),
    "a-number-of-columns": (48, lambda c: board(c).update(columns=2)),
    "the-whole-machine": (24, lambda c: c["tasks"][0].update(reference_data="/")),
    "the-whole-machine-by-dots": (24, lambda c: c["tasks"][0].update(reference_data="../" * 40)),
    "data-that-none-can-be": (24, lambda c: c["tasks"][0].update(reference_data="a\0b")),
    **{
        f"fact-sheet-{name}": (18, lambda c, value=value: c.update(fact_sheet=question(value)))
        for name, value in {
            "inf": float("inf"), "nan": float("nan"), "in-a-list": [1, [float("-inf")]], "in-a-key": {"\0": 1},
            "nul": "a\0b", "surrogate": "\ud800",
        }.items()
    },
    "nul-in-the-name-of-a-question": (18, lambda c: c.update(fact_sheet=question("", "q\0"))),
    "a-long-name-of-an-image": (14, lambda c: c.update(docker_image="a" * 129)),
    "a-page-without-a-title": (13, lambda c: c["pages"][0].pop("title")),
    "a-type-of-its-own": (16, lambda c: c.update(competition_type="game")),
    "a-flag-that-is-a-word": (17, lambda c: c.update(auto_run_submissions="often")),
    "a-solution-without-an-index": (24, lambda c: c.update(solutions=[{"tasks": [0], "path": "page.md"}])),
    "a-solution-without-tasks": (24, lambda c: c.update(solutions=[{"index": 0, "path": "page.md"}])),
    "a-solution-of-one-number": (24, lambda c: c.update(solutions=[{"index": 0, "tasks": 0, "path": "page.md"}])),
    "a-solution-of-a-lost-task": (24, lambda c: c.update(solutions=[{"index": 0, "tasks": [7], "path": "page.md"}])),
    "a-long-title-of-a-column": (48, lambda c: board(c)["columns"][0].update(title="a" * 37)),
    "a-column-that-is-hidden-often": (48, lambda c: board(c)["columns"][0].update(hidden="often")),
    "a-column-in-any-order": (50, lambda c: board(c)["columns"][0].update(sorting="any")),
    "a-precision-in-words": (51, lambda c: board(c)["columns"][0].update(precision="high")),
    "a-median": (52, lambda c: board(c)["columns"][0].update(computation="median")),
    "a-half-character": (9, lambda c: c.update(title="a\udc00")),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "edit"), ODD.values(), ids=ODD)
def test_values_of_a_kind_that_nobody_expects_are_refused(bundle: Path, rule: int, edit: Any) -> None:
    zipped(bundle / "ref.zip", {"task.json": json.dumps({"columns": [{"key": "a"}, {"key": "b"}]})})
    change(bundle, edit)
    assert rule in [problem.rule for problem in refusals(bundle)]


@pytest.mark.parametrize(
    ("key", "value", "answer"),
    [
        ("computation", "avg", ""),
        ("computation", "", ""),
        ("computation", None, ""),
        ("computation", "median", '"median" is not a valid choice.'),
        ("sorting", "asc", ""),
        ("sorting", "", '"" is not a valid choice.'),
        ("sorting", None, "This field may not be null."),
        ("title", "a" * 36, ""),
        ("title", "a" * 37, "Ensure this field has no more than 36 characters."),
        ("index", -1, "Ensure this value is greater than or equal to 0."),
    ],
)
def test_a_value_of_a_column_gets_the_serializers_answer(key: str, value: object, answer: str) -> None:
    assert COLUMN[key].answer(value) == answer


@pytest.mark.parametrize("sheet", [datetime.date(2026, 1, 1), question(datetime.date(2026, 1, 1)), {"q": {"a", "b"}}])
def test_a_fact_sheet_with_what_json_lacks_is_refused_in_codabenchs_words(bundle: Path, sheet: object) -> None:
    change(bundle, lambda config: config.update(fact_sheet=sheet))
    assert "fact_sheet: Value must be valid JSON.\n" in [problem.quote for problem in refusals(bundle)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("page.md", "pages: content: Null characters are not allowed.\n\n"),
        ("terms.md", "terms: Null characters are not allowed.\n"),
    ],
)
def test_a_text_with_a_nul_character_is_refused(bundle: Path, name: str, message: str) -> None:
    (bundle / name).write_text("one\ntwo\0")
    (problem,) = refusals(bundle)
    assert (problem.quote, "in line 2" in problem.fault) == (message, True)


ADDRESSES = {
    "taken": ["a@b.de", "a@bücher.de", "a@例え.jp", "A.b+c@localhost", "a@[127.0.0.1]", "a@[::1]", '"a+b"@c.de', ""],
    "refused": [
        "a",
        "a@",
        "@b.de",
        "a@b",
        "ä@b.de",
        "a@b..de",
        "a@-b.de",
        "a@[b]",
        "a b@c.de",
        "a@b.de@",
        "a@ü.",
        "a@ü",
    ],
}


@pytest.mark.parametrize(("answer", "address"), [(key, item) for key, many in ADDRESSES.items() for item in many])
def test_addresses_are_taken_as_django_takes_them(bundle: Path, answer: str, address: str) -> None:
    change(bundle, lambda c: c.update(contact_email=address))
    assert [problem.quote for problem in refusals(bundle)] == (
        ["contact_email: Enter a valid email address.\n"] if answer == "refused" else []
    )


@pytest.mark.parametrize("packed", [False, True])
def test_a_config_that_is_a_folder_is_refused(bundle: Path, tmp_path: Path, packed: bool) -> None:
    (bundle / "competition.yaml").unlink()
    (bundle / "competition.yaml").mkdir()
    path = tmp_path / "bundle.zip"
    zipped(path, {"competition.yaml/": ""})
    (problem,) = refusals(path if packed else bundle)
    assert (problem.rule, problem.fault) == (1, "is a folder")
    assert "[Errno 21] Is a directory" in problem.quote


CODALAB: dict[str, Callable[[Config], object]] = {
    "whole": lambda c: None,
    "no phases": lambda c: c.pop("phases"),
    "no leaderboard": lambda c: c.pop("leaderboard"),
    "version 1": lambda c: c.update(version=1),
    "no version": lambda c: c.pop("version"),
    "pages that are not there": lambda c: c["html"].update(overview="lost.html"),
}


@pytest.mark.parametrize("edit", CODALAB.values(), ids=CODALAB)
def test_a_bundle_of_codalabs_is_not_judged(bundle: Path, edit: Any, capsys: pytest.CaptureFixture[str]) -> None:
    html, board = {"overview": "page.md", "terms": "terms.md"}, {"leaderboards": {}, "columns": {}}
    config: Config = {"version": 1.5, "title": "T", "html": html, "phases": {}, "leaderboard": board}
    edit(config)
    (bundle / "competition.yaml").write_text(yaml.safe_dump(config))
    for command in ("check", "push", "run"):
        assert (
            main([command, "--platform", "codabench", "--bundle", str(bundle), *["--dry-run"] * (command == "push")])
            == 2
        )
        output = capsys.readouterr()
        assert "is a CodaLab bundle" in output.err
        assert "accept" not in output.out


def test_a_zip_with_a_password_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(encrypt(builders.zipped({"competition.yaml": b"version: 2"})))
    (problem,) = refusals(path)
    assert problem.subject == str(path)
    assert problem.fault.startswith("cannot be unpacked (File <ZipInfo ")
    assert problem.remedy == "Zip it again, without encryption"


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (["board title", "lost file"], 'Cannot find dataset: "nowhere.zip"'),
        (["no board", "lost file"], "Could not find leaderboards in the competition yaml"),
        (["empty boards", "lost file"], 'Cannot find dataset: "nowhere.zip"'),
        (["board title", "lost kit"], "title: This field is required."),
        (["empty boards", "lost kit"], "list index out of range"),
        (["empty boards", "lost task"], "Here is the error log: 5"),
        (["board title", "lost task"], "title: This field is required."),
        (["number as boards", "lost file"], 'Cannot find dataset: "nowhere.zip"'),
    ],
)
def test_the_first_reason_is_that_of_what_is_saved_first(edits: list[str], message: str, bundle: Path) -> None:
    """Tasks are saved before leaderboards, and these before phases; the first phase refers to its leaderboard."""
    edit_of: dict[str, Callable[[Config], object]] = {
        "board title": lambda c: board(c).pop("title"),
        "no board": lambda c: c.pop("leaderboards"),
        "empty boards": lambda c: c.update(leaderboards=[]),
        "number as boards": lambda c: c.update(leaderboards=1),
        "lost file": lambda c: c["tasks"][0].update(reference_data="nowhere.zip"),
        "lost kit": lambda c: phase(c).update(starting_kit="nowhere.zip"),
        "lost task": lambda c: phase(c).update(tasks=[5]),
    }
    for edit in edits:
        change(bundle, edit_of[edit])
    assert message in refusals(bundle)[0].quote
