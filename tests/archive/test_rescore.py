"""All submissions of an event scored again: numbers, places, a stop in the middle, and what stays hidden."""

from __future__ import annotations

import csv
import dataclasses
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import segjudge
from segjudge.archive.event import (
    BOARD,
    EventBoard,
    EventInfo,
    EventRow,
    EventSubmission,
    EventTeam,
    MissingFile,
    file_path,
)
from segjudge.archive.published import FolderSource
from segjudge.archive.rescore import rescore
from segjudge.archive.rescored import Scale
from segjudge.cli import main
from segjudge.families.truths import TruthSource
from segjudge.scoring.request import ScoreRequest, find_protocol
from tests.builders import ANNOTATIONS, DEV, ROOT, STRONG, written, zipped

EXAMPLES = ROOT / "examples"
INSTANCES = ROOT / "annotations/instances-dev.zip"
OF_INSTANCES = ["--truth", str(INSTANCES), "--protocol", "places2017"]
OF_SEQUENCES = ["--truth", str(ANNOTATIONS), "--protocol", "davis2017"]


@functools.cache
def scores_of(path: Path, truth: Path, protocol: str) -> dict[str, dict[str, float]]:
    return dict(segjudge.score(path, truth, protocol).metrics)  # type: ignore[arg-type]  # no value is None


def copy_examples(folder: Path, phase: str = DEV) -> Path:
    folder.mkdir()
    for path in (EXAMPLES / phase).iterdir():
        shutil.copy(path, folder)
    return folder


def write_table(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def rescored(source: Path, out: Path, *options: object) -> Any:
    """Return the JSON of a run that ends well."""
    assert main(["rescore", str(source), "--out", str(out), *map(str, options)]) == 0
    return json.loads((out / "board.json").read_text())


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# ── a folder and a table ────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("phase", "protocol", "metrics"),
    [(DEV, "davis2017", ["J&F-Mean", "J-Decay", "J-Visible"]), ("instances-dev", "places2017", ["AP", "AR@50"])],
)
@pytest.mark.parametrize("decimals", [3, 17])
def test_published_numbers_are_found_again(
    phase: str, protocol: str, metrics: list[str], decimals: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, truth = copy_examples(tmp_path / "sent", phase), ROOT / f"annotations/{phase}.zip"
    rows = [
        [
            path.name.partition(".")[0],
            *(f"{scores_of(path, truth, protocol)['dev'][name]:.{decimals}f}" for name in metrics),
        ]
        for path in sorted(folder.iterdir())
    ]
    table = write_table(tmp_path / "board.csv", [["submission", *metrics], *rows])
    board = rescored(folder, tmp_path / "out", "--truth", truth, "--protocol", protocol, "--published", table)
    assert board["summary"] == "3 of 3 equal, 0 differ, 0 places change"
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == board["summary"]
    assert (len(shown) > 1) == (decimals == 3), "rounded numbers are said to be rounded"
    for row in board["boards"][0]["rows"]:
        values = scores_of(folder / row["submission"], truth, protocol)["dev"]
        assert {name: row["scores"][name]["now"] for name in metrics} == {name: values[name] for name in metrics}


def test_each_kind_of_difference_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy_examples(tmp_path / "sent")
    (folder / "broken.zip").write_text("nothing")
    shutil.copy(STRONG, folder / "unlisted.zip")
    (folder / "README.md").write_text("The submissions")
    rows = [
        ["strong", "Ours", "0.933", "0.865"],
        ["lagging.zip", "=cmd()", "0.445", "0.560"],
        ["first-mask", "Third", "0.9", ""],
        ["gone.zip", "Lost", "0.5", "0.5"],
        ["broken", "Bad", "0.1", "0.2"],
    ]
    table = write_table(folder / "board.csv", [["Submission", "team", "J&F", "J-Mean"], *rows])
    options = [*OF_SEQUENCES, "--published", table, "--rename", "J&F=J&F-Mean"]
    board = rescored(folder, tmp_path / "out", *options)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert " ".join(out.split()).startswith(
        "1 of 5 equal, 2 differ, 3 places change, 1 without a file, 1 could not be scored, 1 not published"
    )
    rows_by_name = {row["submission"]: row for row in board["boards"][0]["rows"]}
    states = {name: (row["state"], row["published place"], row["place"]) for name, row in rows_by_name.items()}
    assert states == {
        "strong.zip": ("equal", 1, 1),
        "gone.zip": ("no file", 3, 2),
        "lagging.zip": ("differs", 4, 3),
        "first-mask.json": ("differs", 2, 4),
        "broken.zip": ("not scored", 5, 5),
        "unlisted.zip": ("not published", None, None),
    }
    assert rows_by_name["lagging.zip"]["why"].startswith("J-Mean differs; davis2017 scores now")
    assert rows_by_name["strong.zip"]["why"] == "equal to the 3 published decimals"
    assert "is neither a zip nor a tar archive" in rows_by_name["broken.zip"]["why"]
    with (tmp_path / "out/board.csv").open(encoding="utf-8", newline="") as file:
        lines = {row["submission"]: row for row in csv.DictReader(file)}
    assert lines["lagging.zip"]["team"] == "'=cmd()"
    assert float(lines["first-mask.json"]["J&F-Mean difference"]) == pytest.approx(0.2366 - 0.9, abs=1e-4)
    assert "What changes" in (tmp_path / "out/board.html").read_text()


def test_a_number_that_differs_less_than_what_is_shown_is_shown_longer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy_examples(tmp_path / "sent")
    value = scores_of(STRONG, ANNOTATIONS, "davis2017")["dev"]["J&F-Mean"]
    table = write_table(tmp_path / "board.csv", [["file", "J&F-Mean"], ["strong.zip", repr(value + 3e-8)]])
    assert rescored(folder, tmp_path / "out", *OF_SEQUENCES, "--published", table)["counts"]["differs"] == 1
    published, now, difference = capsys.readouterr().out.splitlines()[-1].split()[-3:]
    assert published != now
    assert float(difference) == pytest.approx(-3e-8, rel=0.5)


def test_percents_are_asked_for(tmp_path: Path) -> None:
    folder = copy_examples(tmp_path / "sent")
    rows = [["file", "J&F-Mean"], ["strong", "93.3"], ["lagging", "44.5"]]
    options = [*OF_SEQUENCES, "--published", write_table(tmp_path / "board.csv", rows)]
    assert rescored(folder, tmp_path / "out", *options)["counts"]["differs"] == 2
    assert rescored(folder, tmp_path / "out", *options, "--percent")["counts"]["equal"] == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("submission,score\nstrong,1\n", "no column names a metric, only submission, score"),
        ("submission,J-Mean\nstrong,high\n", "line 2: 'high' is not a number"),
        ("submission,J-Mean\nstrong,inf\n", "'inf' is not a number"),
        ("submission,J-Mean\nstrong\n", "line 2: has 1 cells; the header has 2"),
        ("submission,J-Mean\nstrong,1\nstrong,1\n", "line 3: names strong again"),
        ("submission,J-Mean\nstrong,1\nstrong.zip,1\n", "strong.zip fits strong.zip, as another row does"),
        ("submission,J-Mean\nother,1\n", "no row names a file, such as first-mask.json"),
        ("submission,J-Mean,J-Mean\nstrong,1,1\n", "two columns name one metric"),
        ("submission,J-Mean\nstrong,\xff\n", "Save the table as CSV in UTF-8"),
    ],
)
def test_tables_that_cannot_be_compared(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, table = copy_examples(tmp_path / "sent"), tmp_path / "board.csv"
    table.write_bytes(text.encode("latin-1"))
    options = ["--out", str(tmp_path / "out"), "--published", str(table), *OF_SEQUENCES]
    assert main(["rescore", str(folder), *options]) == 2
    assert words in capsys.readouterr().err


def test_hidden_splits_of_a_phase_are_not_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = make_bundle(tmp_path / "bundle", hidden="test-hard")
    monkeypatch.chdir(bundle)
    folder = copy_examples(tmp_path / "sent", "sequences-test")
    options = ["--phase", "sequences-test"]
    assert [board["split"] for board in rescored(folder, tmp_path / "out", *options)["boards"]] == ["test"]
    assert not any(b'"test-hard": {' in data for data in contents(tmp_path / "out").values())
    both = rescored(folder, tmp_path / "both", *options, "--as-host")
    assert [board["split"] for board in both["boards"]] == ["test", "test-hard"]
    assert "Publish it only if you release them" in capsys.readouterr().err
    assert main(["rescore", str(folder), "--out", str(tmp_path / "none"), *options, "--split", "test-hard"]) == 2
    assert "If you release them, add --as-host" in capsys.readouterr().err


# ── stops and processes ─────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return 200 submissions of instances, all different."""
    folder = tmp_path_factory.mktemp("many") / "sent"
    folder.mkdir()
    records = json.loads((EXAMPLES / "instances-dev/sharp.json").read_text())
    for number in range(200):
        chosen = [record | {"score": round(0.001 * number + 0.0001 * k, 4)} for k, record in enumerate(records)]
        (folder / f"{number:03}.json").write_text(json.dumps(chosen[number % len(chosen) :]))
    return folder


@pytest.fixture(scope="module")
def whole(many: Path) -> Path:
    """Return the output of a run that nothing stopped."""
    out = many.parent / "whole"
    rescored(many, out, *OF_INSTANCES)
    return out


@pytest.mark.long
def test_a_killed_run_continues_and_ends_in_the_same_files(many: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "segjudge", "rescore", str(many), "--out", str(out), *OF_INSTANCES]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for least in (20, 90):
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            deadline = time.monotonic() + 60
            while len(list(out.glob("scores/*.json"))) < least and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
    before = {path: path.stat().st_mtime_ns for path in out.glob("scores/*.json")}
    assert 90 <= len(before) < 200
    assert not (out / "board.json").exists()
    rescored(many, out, *OF_INSTANCES)
    assert contents(out) == contents(whole)
    assert {path: path.stat().st_mtime_ns for path in before} == before, "a kept score was made again"


def test_rounded_numbers_keep_their_ties_and_a_changed_one_is_named(
    many: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The new numbers of a tie differ beyond the published decimals, which moves nobody."""
    document = json.loads((whole / "board.json").read_text())
    values = {row["submission"]: row["scores"]["AP"]["now"] for row in document["boards"][0]["rows"]}
    shown = {name: f"{value:.1f}" for name, value in values.items()}
    assert len({*shown.values()}) < len({*values.values()})
    out = shutil.copytree(whole, tmp_path / "out")
    table = write_table(tmp_path / "board.csv", [["file", "AP"], *map(list, shown.items())])
    board = rescored(many, out, *OF_INSTANCES, "--published", table)
    assert board["summary"] == "200 of 200 equal, 0 differ, 0 places change"
    best = max(values, key=lambda name: values[name])
    shown |= {best: "0.1", "003.json": f"{values['003.json'] + 0.2:.1f}"}
    write_table(table, [["file", "AP"], *map(list, shown.items())])
    capsys.readouterr()
    board = rescored(many, out, *OF_INSTANCES, "--published", table)
    assert board["summary"].startswith("198 of 200 equal, 2 differ, ")
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()[-2:]} == {best, "003.json"}
    moved = {row["submission"] for row in board["boards"][0]["rows"] if row["place"] != row["published place"]}
    assert f"{len(moved)} places change" in board["summary"]
    assert best in moved


def test_only_what_changed_is_scored_again(many: Path, whole: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "sent", tmp_path / "out"
    shutil.copytree(many, folder)
    shutil.copytree(whole, out)
    times = {path: path.stat().st_mtime_ns for path in out.glob("scores/*.json")}
    (folder / "007.json").write_text((folder / "007.json").read_text().replace("0.0", "0.1", 1))
    (out / "scores/009.json.json").write_text("half a fi")
    rescored(folder, out, *OF_INSTANCES)
    assert {path.name for path, moment in times.items() if path.stat().st_mtime_ns != moment} == {
        "007.json.json", "009.json.json",
    }  # fmt: skip
    rescored(folder, out, "--truth", INSTANCES, "--protocol", "coco")
    assert all(path.stat().st_mtime_ns != moment for path, moment in times.items()), "another protocol scores all"


@pytest.mark.long
def test_processes_and_workers_give_the_same_files(many: Path, whole: Path, tmp_path: Path) -> None:
    rescored(many, tmp_path / "out", *OF_INSTANCES, "--jobs", 2)
    assert contents(tmp_path / "out") == contents(whole)
    request = ScoreRequest("", TruthSource(str(INSTANCES)), find_protocol("places2017"), is_identified=False)
    source = FolderSource(str(many), "", "", frozenset(), {}, Scale())
    with ProcessPoolExecutor(2) as executor:
        event = rescore(source, request, str(tmp_path / "scores"), executor)  # type: ignore[arg-type]
    assert contents(tmp_path / "scores") == contents(whole / "scores")
    assert json.loads(json.dumps(event.document())) == json.loads((whole / "board.json").read_text())


def test_a_folder_with_other_contents_of_equal_sizes_is_another_submission(tmp_path: Path) -> None:
    folder = tmp_path / "sent"
    for name in ("strong", "lagging"):
        shutil.unpack_archive(EXAMPLES / DEV / f"{name}.zip", folder / name)
    first = rescored(folder, tmp_path / "out", *OF_SEQUENCES)["boards"][0]["rows"]
    assert [row["submission"] for row in first] == ["strong", "lagging"]
    frame = next(iter(sorted((folder / "strong").rglob("*.png"))[5:]))
    data = frame.read_bytes()
    frame.write_bytes(data[:-20] + bytes(8) + data[-12:])
    again = rescored(folder, tmp_path / "out", *OF_SEQUENCES)["boards"][0]["rows"]
    assert {row["submission"]: row["state"] for row in again} == {"strong": "not scored", "lagging": "not published"}


def test_a_defect_of_ours_is_a_row_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from segjudge.scoring.request import PreparedScoring

    folder, real = copy_examples(tmp_path / "sent"), PreparedScoring.score

    def score(self: PreparedScoring, *rest: Any, **more: Any) -> Any:
        if self.results.endswith("lagging.zip"):
            raise ZeroDivisionError("by zero")
        return real(self, *rest, **more)

    with monkeypatch.context() as patched:
        patched.setattr(PreparedScoring, "score", score)
        board = rescored(folder, tmp_path / "out", *OF_SEQUENCES)
    assert [row["why"] for row in board["boards"][0]["rows"] if row["state"] == "not scored"] == [
        "Segjudge failed (ZeroDivisionError: by zero)"
    ]
    assert rescored(folder, tmp_path / "out", *OF_SEQUENCES)["counts"]["not scored"] == 0


# ── an archive ──────────────────────────────────────────────────────────────


def make_bundle(folder: Path, hidden: str = "", phases: str = "") -> Path:
    """Write the bundle of the demo challenge, whose own scorers are those of the checkout."""
    (folder / "evaluation_script").mkdir(parents=True)
    for name in ("annotations", "templates"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "logo.png", folder)
    config = (ROOT / "challenge_config.yaml").read_text()
    rules = phases or (ROOT / "evaluation_script/phases.py").read_text()
    if hidden:
        assert hidden == "test-hard"
        config = re.sub(r"(dataset_split_id: 3\n    visibility: )3", r"\g<1>1", config)
        rules = rules.replace(
            'PhaseSplit("test-hard", "davis2017", LABELS)', 'PhaseSplit("test-hard", "davis2017", LABELS, hidden=True)'
        )
    (folder / "challenge_config.yaml").write_text(config)
    (folder / "evaluation_script/phases.py").write_text(rules)
    return folder


PHASE, TRUTH = "sequences-test", ROOT / "annotations/sequences-test.zip"
LABELS = ["J&F-Mean", "J-Mean", "J-Recall", "J-Decay", "F-Mean", "F-Recall", "F-Decay"]


def make_event(
    target: Path, change: Callable[[EventSubmission], EventSubmission] = lambda row: row, phases: str = ""
) -> Path:
    """Write an archive: three teams, a submission without a file, a private one; the split test-hard is hidden."""
    bundle = make_bundle(target.with_name(f"{target.name}-bundle"), "test-hard", phases)
    files: dict[str, Any] = {f"bundle/{name}": data for name, data in contents(bundle).items()}
    paths = sorted((EXAMPLES / PHASE).iterdir())
    submissions = []
    for number, path in enumerate([*paths, *paths[:2]], 1):
        scores = scores_of(path, TRUTH, "davis2017")
        name = file_path(PHASE, number, path.name)
        if number != 4:
            files[name] = path.read_bytes()
        row = EventSubmission(
            number, PHASE, min(number, 3), 1, "finished", f"2026-01-0{number}T00:00:00Z",
            method={"name": path.stem}, is_public=number != 5, file=None if number == 4 else name,
            scores={split: {label: values[label] for label in LABELS} for split, values in scores.items()},
            trust=BOARD if number <= 3 else None,
        )  # fmt: skip
        submissions.append(change(row))
    for split in ("test", "test-hard"):
        rows = [EventRow(row.id, row.team, LABELS[0], row.scores[split]) for row in submissions[:3]]
        rows.sort(key=lambda row: -row.scores[LABELS[0]])
        is_hidden = split == "test-hard"
        board = EventBoard(
            phase=PHASE, split=split, visibility="1" if is_hidden else "3", hidden=is_hidden, order=LABELS[0],
            labels=LABELS, ascending=["J-Decay", "F-Decay"], rows=rows, decimals=4,
        )  # fmt: skip
        files[f"boards/{PHASE}/{split}.json"] = dataclasses.asdict(board)
    teams = [EventTeam(1, "Ants"), EventTeam(2, "Bees"), EventTeam(3, "=Cats")]
    files["event.json"] = dataclasses.asdict(EventInfo("segjudge 1", "evalai", "https://eval.ai", 7, "Cups"))
    files["missing.json"] = [dataclasses.asdict(MissingFile(PHASE, "input file", "expired (404)", 4))]
    files["teams.json"] = list(map(dataclasses.asdict, teams))
    files["submissions.json"] = list(map(dataclasses.asdict, submissions))
    folder = written(target.with_name(f"{target.name}-files"), files)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in contents(folder).items()}
    written(folder, {"digests.json": digests})
    if target.suffix:
        target.write_bytes(zipped(contents(folder)))
        return target
    return folder.rename(target)


@pytest.fixture(scope="module", params=["event.zip", "event"])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_event(tmp_path_factory.mktemp("archive") / str(request.param))


def test_an_archive_is_scored_by_its_own_rules_and_hidden_numbers_stay_hidden(archive: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    board = rescored(archive, out)
    assert board["title"] == "Cups: sequences-test"
    assert board["summary"] == "3 of 4 equal, 0 differ, 0 places change, 1 without a file"
    (test,) = board["boards"]
    assert [(row["submission"], row["team"], row["place"]) for row in test["rows"]][:3] == [
        ("3", "=Cats", 1), ("2", "Bees", 2), ("1", "Ants", 3),
    ]  # fmt: skip
    assert [row["why"] for row in test["rows"] if row["submission"] == "4"] == ["expired (404)"]
    assert any("1 of 5 submissions are private" in note for note in board["notes"])
    secret = {repr(value) for path in (EXAMPLES / PHASE).iterdir() for value in
              scores_of(path, TRUTH, "davis2017")["test-hard"].values() if len(repr(value)) > 8}  # fmt: skip
    texts = "".join(data.decode() for data in contents(out).values())
    assert secret
    assert not [value for value in secret if value[:9] in texts]


def test_a_host_sees_all_splits_and_submissions(archive: Path, tmp_path: Path) -> None:
    board = rescored(archive, tmp_path / "out", "--as-host")
    assert [each["split"] for each in board["boards"]] == ["test", "test-hard"]
    assert len(board["boards"][0]["rows"]) == 5
    assert board["counts"]["equal"] == 4


def test_another_protocol_is_the_reason_and_its_places_are_counted(archive: Path, tmp_path: Path) -> None:
    board = rescored(archive, tmp_path / "out", "--protocol", "davis2017-unsupervised")
    assert board["counts"]["differs"] == 3
    row = next(row for row in board["boards"][0]["rows"] if row["submission"] == "1")
    assert row["why"].endswith("davis2017-unsupervised scores now, davis2017 did then")


def test_a_truth_of_the_host_replaces_the_archives(archive: Path, tmp_path: Path) -> None:
    assert rescored(archive, tmp_path / "out", "--truth", TRUTH)["counts"]["equal"] == 3


def test_damaged_files_of_an_archive_are_rows(archive: Path, tmp_path: Path) -> None:
    if archive.suffix:
        pytest.skip("a zip has checksums of its own")
    copied = shutil.copytree(archive, tmp_path / "event")
    path = next((copied / "files" / PHASE / "3").iterdir())
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    rows = rescored(copied, tmp_path / "out")["boards"][0]["rows"]
    assert "differs from the archive's digest" in next(row["why"] for row in rows if row["submission"] == "3")


def test_numbers_of_result_files_are_compared_as_they_are_rounded(tmp_path: Path) -> None:
    def rounded(row: EventSubmission) -> EventSubmission:
        scores = {
            split: {name: round(value, 3) for name, value in values.items()} for split, values in row.scores.items()
        }
        return dataclasses.replace(row, trust="result", scores=scores)

    event = make_event(tmp_path / "event", rounded)
    board = rescored(event, tmp_path / "out")
    assert board["summary"].startswith("3 of 4 equal, 0 differ")
    assert {row["published place"] for row in board["boards"][0]["rows"]} == {None}, "no leaderboard showed them"


def test_an_event_of_other_scripts_needs_a_protocol(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    event = make_event(tmp_path / "event", phases="def evaluate(): ...\n")
    assert main(["rescore", str(event), "--out", str(tmp_path / "out")]) == 2
    assert "name a protocol with --protocol NAME" in capsys.readouterr().err
    assert rescored(event, tmp_path / "out", "--protocol", "davis2017")["counts"]["equal"] == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--phase", "sequences-tset"],
            "has no submissions of the phase 'sequences-tset', only sequences-test; did you",
        ),
        (["--published", str(STRONG)], "--published is for a folder of submissions"),
        (["--annotations", str(STRONG)], "--annotations does not apply to an archive"),
        (["--truth", str(ANNOTATIONS)], "no split"),
    ],
)
def test_options_that_do_not_fit_an_archive(
    options: list[str], words: str, archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rescore", str(archive), "--out", str(tmp_path / "out"), *options]) in (2, 3)
    assert words in capsys.readouterr().err


def test_another_file_is_neither_an_archive_nor_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rescore", str(STRONG), "--out", str(tmp_path / "out"), *OF_SEQUENCES]) == 2
    assert "is neither a folder of submissions nor an archive" in capsys.readouterr().err


def test_the_boards_of_an_archive_are_frozen(archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", str(archive), "--out", str(tmp_path / "out")]) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"index.html", "1.csv", "1.svg"}
    with (tmp_path / "out/1.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["rank"], row["team"], row["method"]) for row in rows] == [
        ("1", "'=Cats", "strong"), ("2", "Bees", "lagging"), ("3", "Ants", "first-mask"),
    ]  # fmt: skip
    assert (
        float(rows[0]["J&F-Mean"]) == scores_of(EXAMPLES / PHASE / "strong.zip", TRUTH, "davis2017")["test"]["J&F-Mean"]
    )
    assert main(["board", str(archive), "--out", str(tmp_path / "host"), "--as-host"]) == 0
    assert (tmp_path / "host/2-hidden.csv").exists()
    assert "holds hidden results (sequences-test / test-hard)" in capsys.readouterr().err


@pytest.mark.long
def test_the_challenge_of_an_archive_runs(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(archive)]) == 0
    out = capsys.readouterr().out
    assert "Checked: EvalAI would accept it." in out
    assert re.search(r"1\. 1-3-strong\.zip +0\.\d+", out)
