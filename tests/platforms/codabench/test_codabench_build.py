"""Competitions for Codabench: their construction from phases, and their scoring program."""

from __future__ import annotations

import datetime
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.cli import main
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.kernel.compiling import WORKER_SYSTEM, Library
from segjudge.platforms.codabench.build import (
    BuiltCompetitions,
    CodabenchOptions,
    Notes,
    _chain_phases,
    _collect_phases,
    build,
)
from segjudge.platforms.codabench.check import check
from segjudge.platforms.evalai.bundle import build as evalai_build
from segjudge.platforms.evalai.bundle import opened_bundle
from segjudge.platforms.evalai.bundle.build import build as evalai_bundle
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from tests.builders import written
from tests.demo_challenge import CODENAMES

ROOT = Path(__file__).resolve().parents[3]


def config_with(phases: list[tuple[str, str, int]], visibility: int = 3) -> dict[str, Any]:
    """Return a config whose phases have these starts, ends and leaderboards."""
    schema = {"labels": ["loss", "score"], "default_order_by": "score", "metadata": {"loss": {"sort_ascending": True}}}
    return {
        "leaderboard": [{"id": number, "schema": schema} for number in (1, 2)],
        "challenge_phases": [
            {
                "id": number,
                "codename": f"p{number}",
                "name": f"Phase {number}",
                "start_date": start,
                "end_date": end,
                "leaderboard_public": True,
            }
            for number, (start, end, _) in enumerate(phases)
        ],
        "dataset_splits": [{"id": 1, "codename": "dev"}, {"id": 2, "codename": "hard"}],
        "challenge_phase_splits": [
            {
                "challenge_phase_id": number,
                "leaderboard_id": board,
                "dataset_split_id": split,
                "visibility": visibility if split == 2 else 3,
                "leaderboard_decimal_precision": 3,
                "is_leaderboard_order_descending": True,
            }
            for number, (_, _, board) in enumerate(phases)
            for split in (1, 2)
        ],
    }


def codenames(config: dict[str, Any]) -> list[list[str]]:
    return [
        [phase.codename for phase in chain] for chain in _chain_phases(_collect_phases(config, {}, hidden=False), {})
    ]


def test_phases_that_overlap_become_competitions_of_their_own() -> None:
    config = config_with(
        [("2026-01-01", "2026-03-01", 1), ("2026-02-01", "2026-04-01", 1), ("2026-03-02", "2026-05-01", 1)]
    )
    assert codenames(config) == [["p0", "p2"], ["p1"]]


def test_phases_of_two_leaderboards_never_share_a_competition() -> None:
    config = config_with([("2026-01-01", "2026-02-01", 1), ("2026-03-01", "2026-04-01", 2)])
    assert codenames(config) == [["p0"], ["p1"]]


def test_phases_that_touch_are_moved_apart_by_a_second() -> None:
    config = config_with([("2026-01-01", "2026-02-01", 1), ("2026-02-01 00:00:00", "2026-04-01", 1)])
    notes: Notes = {}
    (chain,) = _chain_phases(_collect_phases(config, {}, hidden=False), notes)
    assert chain[1].start == datetime.datetime(2026, 2, 1, 0, 0, 1)
    assert list(notes.values()) == [["p1"]]


def test_the_column_that_ranks_is_first_and_filled_in_every_phase() -> None:
    (phase,) = _collect_phases(config_with([("2026-01-01", "2026-02-01", 1)]), {}, hidden=False)
    assert [column.key for column in phase.columns] == ["score", "loss", "hard: score", "hard: loss"]
    assert [column.ascending for column in phase.columns[:2]] == [False, True]


def test_hidden_splits_are_left_out_unless_asked_for() -> None:
    config = config_with([("2026-01-01", "2026-02-01", 1)], visibility=1)
    (phase,) = _collect_phases(config, {}, hidden=False)
    assert [column.key for column in phase.columns] == ["score", "loss"]
    assert phase.left_out == ("hard",)
    (phase,) = _collect_phases(config, {}, hidden=True)
    assert [column.hidden for column in phase.columns] == [False, False, True, True]


def test_splits_that_only_phases_py_hides_are_left_out_too() -> None:
    config = config_with([("2026-01-01", "2026-02-01", 1)])
    splits = (PhaseSplit("dev", "davis2017", ("score",)), PhaseSplit("hard", "davis2017", ("score",), hidden=True))
    (phase,) = _collect_phases(config, {"p0": Phase("p0", "truth.zip", splits)}, hidden=False)
    assert (phase.left_out, phase.hidden) == (("hard",), ("hard",))


def test_a_leaderboard_that_is_not_public_is_left_out_unless_asked_for() -> None:
    config = config_with([("2026-01-01", "2026-02-01", 1)])
    for change in (lambda row: row.update(leaderboard_public=False), lambda row: row.pop("leaderboard_public", None)):
        change(config["challenge_phases"][0])
        (phase,) = _collect_phases(config, {}, hidden=False)
        assert phase.left_out == ("dev", "hard")
        (phase,) = _collect_phases(config, {}, hidden=True)
        assert len(phase.columns) == 4


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltCompetitions:
    return build(find_bundle(str(ROOT)), str(tmp_path_factory.mktemp("competitions")))


def document_of(path: str) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        document: dict[str, Any] = yaml.safe_load(archive.read("competition.yaml"))
    return document


@pytest.mark.long
def test_the_demo_becomes_a_competition_for_each_phase_that_check_finds_nothing_in(built: BuiltCompetitions) -> None:
    assert [competition.codenames for competition in built.competitions] == [[codename] for codename in CODENAMES]
    assert [str(problem) for competition in built.competitions for problem in check(competition.path)] == []


@pytest.mark.long
def test_splits_become_columns_of_one_task(built: BuiltCompetitions) -> None:
    document = document_of(built.competitions[1].path)
    keys = [column["key"] for column in document["leaderboards"][0]["columns"]]
    assert keys[0] == "J&F-Mean"
    assert "test-hard: J&F-Mean" in keys
    assert len(keys) == 14
    assert len(document["tasks"]) == len(document["phases"]) == 1


def test_what_codabench_would_misread_is_written_out(built: BuiltCompetitions) -> None:
    document = document_of(built.competitions[0].path)
    (phase,) = document["phases"]
    assert phase["start"] == "2026-01-01 00:00:00"  # a text: an unquoted date loses its time
    assert document["docker_image"] == CodabenchOptions().image
    assert document["leaderboards"][0]["submission_rule"] == "Force_Best"
    assert phase["execution_time_limit"] == 600


@pytest.fixture(scope="module")
def plain_bundle(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of the demo's bundle, without a kernel."""
    path = evalai_bundle(str(ROOT), str(tmp_path_factory.mktemp("bundle") / "bundle.zip"), kernel=False).path
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def build_changed(files: dict[str, bytes], folder: Path, change: Callable[[Any], object]) -> BuiltCompetitions:
    """Return the competitions of a bundle whose YAML was changed."""
    config = yaml.safe_load(files["challenge_config.yaml"])
    change(config)
    with zipfile.ZipFile(folder / "changed.zip", "w") as archive:
        for name, data in (files | {"challenge_config.yaml": yaml.safe_dump(config).encode()}).items():
            archive.writestr(name, data)
    return build(find_bundle(str(folder / "changed.zip")), str(folder / "out"))


@pytest.mark.long
def test_long_texts_are_refused_and_not_cut(plain_bundle: dict[str, bytes], tmp_path: Path) -> None:
    def lengthen(config: Any) -> None:
        config["title"] = "x" * 160
        config["leaderboard"][0]["schema"]["labels"].append("y" * 37)

    with pytest.raises(HostError, match=r"has 18\d characters(.|\n)*has 37 characters"):
        build_changed(plain_bundle, tmp_path, lengthen)


@pytest.mark.long
def test_questions_have_flags_that_are_texts(plain_bundle: dict[str, bytes], tmp_path: Path) -> None:
    questions = [
        {"name": "method", "type": "text", "required": True},
        {"name": "size", "type": "radio", "options": ["small", "large"]},
    ]
    built = build_changed(
        plain_bundle,
        tmp_path,
        lambda config: config["challenge_phases"][0].update(submission_meta_attributes=questions),
    )
    sheet = document_of(built.competitions[0].path)["fact_sheet"]
    assert (sheet["method"]["is_required"], sheet["size"]["is_required"]) == ("true", "false")
    assert (sheet["size"]["type"], sheet["size"]["selection"]) == ("select", ["small", "large"])


@pytest.mark.long
def test_phases_that_follow_each_other_share_a_competition(tmp_path: Path) -> None:
    for name in ("annotations", "templates", "evaluation_script"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.so*", "__pycache__"))
    text = (ROOT / "challenge_config.yaml").read_text().replace("image: logo.png\n", "")
    before, dev, rest = text.partition("codename: sequences-dev")
    rest = rest.replace("2036-12-31 23:59:59", "2026-06-01 00:00:00", 1)
    first, test, last = rest.partition("codename: sequences-test")
    last = last.replace("2026-01-01 00:00:00", "2026-06-01 00:00:00", 1)
    (tmp_path / "challenge_config.yaml").write_text(before + dev + first + test + last)
    results = build(find_bundle(str(tmp_path)), str(tmp_path / "out"))
    assert [competition.codenames for competition in results.competitions] == [
        ["sequences-dev", "sequences-test"],
        *([name] for name in CODENAMES if not name.startswith("sequences-")),
    ]
    document = document_of(results.competitions[0].path)
    assert [phase["tasks"] for phase in document["phases"]] == [[0], [1]]
    assert document["phases"][1]["start"] == "2026-06-01 00:00:01"
    assert [str(problem) for competition in results.competitions for problem in check(competition.path)] == []
    assert [text for text, where in results.notes.items() if where == ["image"]]
    assert "the phases have different splits, so their leaderboard has gaps" in results.notes


@pytest.mark.long
def test_a_queue_of_ones_own_lifts_the_cap(tmp_path: Path) -> None:
    queue = "7d3c1b5e-7a63-4a6c-9a3e-111111111111"
    results = build(find_bundle(str(ROOT)), str(tmp_path), CodabenchOptions(queue=queue))
    document = document_of(results.competitions[0].path)
    assert document["queue"] == queue
    assert document["phases"][0]["execution_time_limit"] == 3720
    assert not [note for note in results.notes if "seconds" in note]


@pytest.mark.long
def test_samples_which_may_show_the_truth_are_offered_only_when_asked(built: BuiltCompetitions, tmp_path: Path) -> None:
    assert "starting_kit" not in document_of(built.competitions[0].path)["phases"][0]
    asked = build(find_bundle(str(ROOT)), str(tmp_path), CodabenchOptions(samples=True))
    assert document_of(asked.competitions[0].path)["phases"][0]["starting_kit"] == "starting_kit/sequences-dev.zip"
    assert not check(asked.competitions[0].path)


@pytest.mark.long
def test_the_same_files_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other copy has other dates and modes, and its machine has a kernel in its cache."""
    assert main(["new", str(tmp_path / "mine"), "--protocol", "davis2017", "--demo"]) == 0
    shutil.copytree(tmp_path / "mine", tmp_path / "copy", copy_function=shutil.copyfile)
    for path in (tmp_path / "copy").rglob("*.*"):
        os.utime(path, (0, 0))
        path.chmod(0o700)
    (competition,) = build(find_bundle(str(tmp_path / "mine")), str(tmp_path / "out")).competitions
    library = Library(tmp_path / "cache", WORKER_SYSTEM)
    written(library.folder, {library.path.name: b"a kernel", library.checksum.name: b"its checksum"})
    monkeypatch.setattr(evalai_build, "find_for_worker", lambda: library)
    previous = os.umask(0o077)
    try:
        (there,) = build(find_bundle(str(tmp_path / "copy")), str(tmp_path / "other")).competitions
    finally:
        os.umask(previous)
    assert Path(competition.path).read_bytes() == Path(there.path).read_bytes()

    options = CodabenchOptions(kernel=True)
    (with_kernel,) = build(find_bundle(str(tmp_path / "copy")), str(tmp_path / "third"), options).competitions
    with zipfile.ZipFile(with_kernel.path) as archive:
        program = zipfile.ZipFile(io.BytesIO(archive.read("scoring_program.zip")))
    assert program.read(f"evaluation_script/masks/{library.path.name}") == b"a kernel"


def test_the_wheel_goes_only_where_instances_are_scored(built: BuiltCompetitions) -> None:
    results = {}
    for competition in built.competitions:
        with zipfile.ZipFile(competition.path) as archive:
            program = zipfile.ZipFile(io.BytesIO(archive.read("scoring_program.zip")))
        results[competition.codenames[0]] = any(name.startswith("packages/pycocotools/") for name in program.namelist())
    assert [name for name, has_wheel in results.items() if has_wheel] == ["instances-dev"]
    assert list(results) == CODENAMES


@pytest.mark.long
def test_without_the_wheel_the_phases_that_cannot_be_scored_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    notes = build(find_bundle(str(ROOT)), str(tmp_path / "out")).notes
    assert [where for text, where in notes.items() if text.startswith("cannot be scored on Codabench")] == [
        ["instances-dev"]
    ]


def test_the_task_says_which_columns_are_written(built: BuiltCompetitions) -> None:
    with zipfile.ZipFile(built.competitions[0].path) as archive:
        reference = zipfile.ZipFile(io.BytesIO(archive.read("reference_data/sequences-dev.zip")))
    task = json.loads(reference.read("task.json"))
    assert task["phase"] == "sequences-dev"
    assert task["seconds"] == 480
    assert task["columns"][0] == {"key": "J&F-Mean", "split": "dev", "label": "J&F-Mean", "hidden": False}
    assert task["annotations"] in reference.namelist()


@pytest.mark.long
def test_a_bundle_that_is_too_large_for_evalai_goes_to_other_platforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", str(tmp_path / "mine"), "--demo"]) == 0
    monkeypatch.setattr(opened_bundle, "UPLOAD_BYTES", 1000)
    assert main(["check", "--quick", str(tmp_path / "mine")]) == 3
    assert main(["build", "--platform", "codabench", str(tmp_path / "mine")]) == 0
    assert main(["check", "--quick", "--platform", "codabench", str(tmp_path / "mine")]) == 0
    assert main(["build", "--platform", "grand-challenge", str(tmp_path / "mine")]) == 0
    assert capsys.readouterr().out.count("EvalAI allows") == 1


def test_a_zip_that_is_no_bundle_is_a_sentence_for_other_platforms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = evalai_bundle(str(ROOT), str(tmp_path / "b.zip"), kernel=False).path
    with zipfile.ZipFile(built) as whole, zipfile.ZipFile(tmp_path / "without.zip", "w") as rest:
        for name in whole.namelist():
            if name != "challenge_config.yaml":
                rest.writestr(name, whole.read(name))
    for platform in ("codabench", "grand-challenge"):
        assert main(["build", "--platform", platform, str(tmp_path / "without.zip")]) == 3
        assert "holds no challenge config" in capsys.readouterr().err
