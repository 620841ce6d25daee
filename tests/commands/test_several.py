"""Several submissions in one command: each has the same scores as alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from segjudge.commands.score import list_results
from segjudge.commands.truths import TruthChoice
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.family import ignore_progress
from segjudge.families.truths import TruthSource
from segjudge.scoring import request
from segjudge.starting.new_challenge import NewChallenge, create, write_demo_truth
from tests.builders import written
from tests.families.contract import examples

ROOT = Path(__file__).parents[2]
EXAMPLES, ANNOTATIONS = ROOT / "examples", ROOT / "annotations"


def scored(arguments: list[str], file: Path) -> Any:
    """Return the JSON of a command."""
    main(["score", *arguments, "--json", str(file), "--quiet"])
    return json.loads(file.read_text())


@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]])
@pytest.mark.parametrize(
    ("names", "truth"),
    [
        (["sequences-dev/strong.zip", "sequences-dev/first-mask.json"], ["davis2017", "sequences-dev.zip"]),
        (["instances-dev/sharp.json", "instances-dev/wild.json"], ["places2017", "instances-dev.zip"]),
        (["photo-panoptic/coarse.zip", "photo-panoptic/merging.zip"], []),
    ],
)
def test_each_has_the_scores_that_it_has_alone(
    names: list[str], truth: list[str], jobs: list[str], tmp_path: Path
) -> None:
    chosen = (
        ["--protocol", truth[0], "--truth", str(ANNOTATIONS / truth[1])] if truth else ["--phase", "photo-panoptic"]
    )
    paths = [str(EXAMPLES / name) for name in names]
    together = scored([*paths, *chosen, *jobs], tmp_path / "all.json")["submissions"]
    for path, document in zip(paths, together, strict=True):
        assert document.pop("name") == Path(path).name
        assert document == scored([path, *chosen], tmp_path / "one.json")


@pytest.mark.parametrize("jobs", ["2", "auto"])
def test_processes_that_score_whole_submissions_give_the_same(
    jobs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(request, "cores", lambda: 2)
    monkeypatch.setattr(request, "_MANY_BYTES", 0)
    (tmp_path / "a.zip").write_text("nothing")
    names = ("strong", "lagging", "first-mask")
    paths = [
        str(tmp_path / "a.zip"),
        *(str(path) for name in names for path in EXAMPLES.glob(f"sequences-dev/{name}.*")),
    ]
    command = ["score", *paths, "--truth", str(ANNOTATIONS / "sequences-dev.zip"), "--protocol", "davis2017"]
    answers = []
    for number, options in enumerate(([], ["--jobs", jobs])):
        file = tmp_path / f"{number}.json"
        assert main([*command, *options, "--json", str(file)]) == 1
        answers.append((capsys.readouterr(), file.read_text()))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("protocol", examples("machines"))
def test_a_truth_that_was_used_before_gives_the_same_scores(protocol: str, tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    truth = write_demo_truth(PROTOCOLS[protocol], str(tmp_path / "demo"))
    create(NewChallenge(str(tmp_path / "new"), protocol, TruthSource(truth)), ignore_progress)
    chosen = ["--truth", truth, "--protocol", protocol]
    (folder,) = (tmp_path / "new/examples").iterdir()
    together = scored([str(folder), *chosen], tmp_path / "all.json")["submissions"]
    assert [document.pop("name") for document in together] == ["good.zip", "poor.zip"]
    for name, document in zip(("good", "poor"), together, strict=True):
        assert document == scored([str(folder / f"{name}.zip"), *chosen], tmp_path / "one.json")


def test_a_faulty_one_is_a_row_and_the_exit_code_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "sent"
    folder.mkdir()
    (folder / "a.zip").write_text("nothing")
    shutil.copy(EXAMPLES / "sequences-dev/strong.zip", folder / "b.zip")
    for litter in (".DS_Store", "Thumbs.db", "desktop.ini"):
        (folder / litter).touch()
    command = ["score", str(folder), "--truth", str(ANNOTATIONS / "sequences-dev.zip"), "--protocol", "davis2017"]
    assert main([*command, "--json", str(tmp_path / "scores.json")]) == 1
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[1].startswith("a.zip  a.zip: is neither a zip nor a tar archive nor JSON.")
    assert max(map(len, lines)) <= 80
    assert lines[3].split()[:2] == ["b.zip", "0.933"]
    assert err.splitlines()[-1] == "1 of 2 submissions could not be scored"
    faulty, scores = json.loads((tmp_path / "scores.json").read_text())["submissions"]
    assert set(faulty) == {"name", "error"}
    assert scores["result"][0]["dev"]["J&F-Mean"] == pytest.approx(0.933, abs=5e-4)


@pytest.mark.parametrize(
    ("names", "protocol"),
    [
        (["instances-dev/sharp.json", "instances-dev/wild.json"], "places2017"),
        (["sequences-dev/first-mask.json", "sequences-dev/strong.zip"], "davis2017"),
    ],
)
def test_a_folder_of_records_or_with_texts_holds_submissions(names: list[str], protocol: str, tmp_path: Path) -> None:
    folder = written(tmp_path / "sent", {Path(name).name: (EXAMPLES / name).read_bytes() for name in names})
    (folder / "README.md").write_text("Two methods")
    chosen = ["--truth", str(ANNOTATIONS / f"{Path(names[0]).parent}.zip"), "--protocol", protocol]
    together = scored([str(folder), *chosen], tmp_path / "all.json")
    assert together == scored([*(str(EXAMPLES / name) for name in names), *chosen], tmp_path / "each.json")


def test_a_folder_of_subsets_is_one_submission(tmp_path: Path) -> None:
    folder = written(tmp_path / "sent", {"a.json": b"[]", "b.json": b"[]"})
    choice = TruthChoice(None, None, "truth", "sa-co-gold", "", "", "", "", None)
    assert list_results([str(folder)], choice) == [str(folder)]


def test_a_table_that_is_too_wide_keeps_the_means_of_all_measures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copies = [tmp_path / f"{name}-of-the-method-with-a-long-name.zip" for name in ("first", "second")]
    for path in copies:
        shutil.copy(EXAMPLES / "sequences-dev/strong.zip", path)
    arguments = ["score", *map(str, copies), "--phase", "sequences-dev"]

    def print_header(*more: str) -> list[str]:
        assert main([*arguments, *more]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 80
        return lines[0].split()

    assert print_header() == ["dev", "J&F-Mean", "J-Mean", "F-Mean", "J-Recall"]
    assert print_header("--columns", "F-Mean,J-Decay") == ["dev", "F-Mean", "J-Decay"]
    assert main([*arguments, "--columns", "FMean"]) == 2
    assert "--columns: davis2017 has no metric FMean, only" in capsys.readouterr().err


def test_columns_are_named_for_one_submission_too(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / "sequences-dev/strong.zip")
    assert main(["score", path, "--phase", "sequences-dev", "--columns", "F-Mean,J-Mean"]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[-2:] for line in shown.splitlines() if "-Mean" in line] == [["F-Mean", "J-Mean"]] * 2
    assert "Beyond the protocol" not in shown
