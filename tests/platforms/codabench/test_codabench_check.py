"""The answers of Codabench's own unpacker, and those of `check` about the same bundles."""

from __future__ import annotations

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
from segjudge.platforms.rules.problems import ERROR, BundleProblem
from tests.data import CODABENCH

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
    "phases": [{"name": "P", "start": "2026-01-01", "end": "2036-01-01", "tasks": [0], "max_submissions_per_day": None, "max_submissions": None}],
    "leaderboards": [
        {
            "title": "Results",
            "key": "main",
            "submission_rule": "Force_Best",
            "columns": [{"title": "A", "key": "a", "index": 0}, {"title": "B", "key": "b", "index": 1}],
        }
    ],
}  # fmt: skip
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


def phase(config: Config) -> Config:
    results: Config = config["phases"][0]
    return results


def board(config: Config) -> Config:
    results: Config = config["leaderboards"][0]
    return results


def test_a_phase_that_does_not_fill_the_ranking_column_is_told(bundle: Path) -> None:
    for index, keys in enumerate((("a", "b"), ("b",))):
        zipped(bundle / f"ref{index}.zip", {"task.json": json.dumps({"columns": [{"key": key} for key in keys]})})

    def edit(config: Config) -> None:
        first = config["tasks"][0]
        config["tasks"] = [{**first, "index": index, "reference_data": f"ref{index}.zip"} for index in range(2)]
        phase(config)["tasks"] = [0, 1]

    change(bundle, edit)
    assert 53 in [problem.rule for problem in check(str(bundle))]


def test_submissions_that_migrate_to_other_columns_are_told(bundle: Path) -> None:
    zipped(bundle / "ref.zip", {"task.json": json.dumps({"columns": [{"key": "a"}]})})
    zipped(bundle / "other.zip", {"task.json": json.dumps({"columns": [{"key": "a"}, {"key": "b"}]})})

    def edit(config: Config) -> None:
        config["tasks"].append({**config["tasks"][0], "index": 1, "reference_data": "other.zip"})
        later = {"start": "2036-01-02", "end": None, "tasks": [1], "auto_migrate_to_this_phase": True}
        config["phases"].append({**phase(config), **later})

    change(bundle, edit)
    assert [problem.rule for problem in check(str(bundle))] == [42]


ADDRESSES = {
    "taken": ["a@b.de", "a@bücher.de", "a@例え.jp", "A.b+c@localhost", "a@[127.0.0.1]", "a@[::1]", '"a+b"@c.de', ""],
    "refused": [
        "a", "a@", "@b.de", "a@b", "ä@b.de", "a@b..de", "a@-b.de", "a@[b]", "a b@c.de", "a@b.de@", "a@ü.", "a@ü",
    ],
}  # fmt: skip


@pytest.mark.parametrize("answer", ADDRESSES)
def test_addresses_are_taken_as_django_takes_them(bundle: Path, answer: str) -> None:
    quotes = ["contact_email: Enter a valid email address.\n"] if answer == "refused" else []
    for address in ADDRESSES[answer]:
        change(bundle, lambda c, address=address: c.update(contact_email=address))
        assert [problem.quote for problem in refusals(bundle)] == quotes, address


CODALAB: dict[str, Callable[[Config], object]] = {
    "whole": lambda c: None,
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
