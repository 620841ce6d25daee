"""The interactive session, compared with sessions of the original framework, and misused."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.ndimage import binary_erosion

from segjudge.interactive import DavisInteractiveSession
from segjudge.interactive.reports import COLUMNS
from segjudge.interactive.robot import InteractiveScribblesRobot
from tests.data import INTERACTIVE as HERE
from tests.interactive.scene import Clock
from tests.shared import needs_shared

SESSIONS = sorted((HERE / "sessions").glob("*.json")) if HERE.exists() else []
KEY = bytes(range(32)).hex()


def predicted(model: str, truth: Any, interaction: int) -> Any:
    """Return the answers of the golden sessions' toy models."""
    truth = np.where(truth == 255, 0, truth)
    if model == "shift":
        results = np.zeros_like(truth)
        for frame, labels in enumerate(truth):
            by = 2 + 3 * (frame % 7)
            results[frame, :, by:] = labels[:, :-by]
        return results
    if model == "erode":
        results = np.zeros_like(truth)
        for frame, labels in enumerate(truth):
            times = max(0, 9 - 2 * (interaction - 1) + frame % 3)
            for index in range(1, truth.max() + 1):
                results[frame][binary_erosion(labels == index, iterations=times) if times else labels == index] = index
        return results
    made = {
        "perfect": truth,
        "zeros": np.zeros_like(truth),
        "ones": np.ones_like(truth),
        "swap": np.where(truth > 0, truth % truth.max() + 1, 0),
    }
    return made[model]


def seconds(tag: str, interaction: int, number: int) -> float:
    if "slow" in tag:
        return 40.0 + 8 * number
    return (
        0.25 if "fast" in tag else 0.0 if tag.endswith("_zero") else 9.5 + 2.25 * (interaction - 1) + 1.5 * (number - 1)
    )


@pytest.mark.long
@needs_shared
@pytest.mark.filterwarnings("ignore:Candidates that are not frames", "ignore:The time for")
@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_session_is_the_originals(path: Path, tmp_path: Path) -> None:
    golden, clock = json.loads(path.read_text()), Clock()
    session = DavisInteractiveSession(
        davis_root=str(HERE / "data/SYN"),
        max_time=golden["max_time"],
        max_nb_interactions=golden["max_nb_interactions"],
        metric_to_optimize=golden["metric_to_optimize"],
        report_save_dir=tmp_path,
        clock=clock,
    )
    session.session_key = KEY
    with session:
        service = session.connector.service
        log = iter(golden["log"])
        while session.next():
            output, (sequence, scribbles, new) = next(log), session.get_scribbles()
            number = session.samples[session.sample_idx or 0][1]
            now = (sequence, number, (session.interaction_nb or 0) + 1, new)
            assert now == tuple(output[key] for key in ("sequence", "scribble_idx", "interaction", "new_sequence"))
            drawn = [frame for frame, lines in enumerate(scribbles["scribbles"]) if lines]
            assert drawn == output["given_frames"]
            clock.now += seconds(golden["tag"], output["interaction"], number)
            masks = predicted(golden["model"], service.davis.load_annotations(sequence), output["interaction"])
            session.submit_masks(masks, output["candidates"])
            if output["evaluated"]:
                _, _, _, frame, override = service.storage._annotated[-1]
                assert frame in output["tie_frames"]
                assert override == output["override"]
                if frame != output["next_frame"]:  # a tie: continue as the original did
                    service.storage._annotated[-1] = (KEY, sequence, number, output["next_frame"], override)
                    _move(session, frame, output["next_frame"])
            clock.now += 3.0 if "_gap" in golden["tag"] else 0.0
        assert next(log, None) is None
    _compare(session, golden, path, tmp_path)


def _move(session: DavisInteractiveSession, frame: int, wanted: int) -> None:
    """Move the robot's last lines to the frame that the original chose."""
    last, whole = session.sample_last_scribble, session.sample_scribbles
    assert last is not None
    assert whole is not None
    lines = last["scribbles"][frame]
    last["scribbles"][frame], last["scribbles"][wanted] = [], lines
    kept = whole["scribbles"][frame]
    whole["scribbles"][frame] = kept[: len(kept) - len(lines)]
    # Two frames that score alike may differ in whether there is something to draw: only places are compared.
    whole["scribbles"][wanted] = whole["scribbles"][wanted] + lines


def _compare(session: DavisInteractiveSession, golden: dict[str, Any], path: Path, folder: Path) -> None:
    summary, wanted, metric = session.get_global_summary(), golden["summary"], golden["metric_to_optimize"]
    assert summary.keys() == wanted.keys()
    assert summary["auc"] == pytest.approx(wanted["auc"], abs=1e-9)
    assert summary["metric_at_threshold"] == pytest.approx(wanted["metric_at_threshold"], abs=1e-9)
    for key in ("time", metric):
        assert summary["curve"][key] == pytest.approx(wanted["curve"][key], abs=1e-9)
    assert [name.name for name in folder.iterdir()] == [f"{session.report_name}.csv"]
    report = pd.read_csv(folder / f"{session.report_name}.csv", index_col=0)
    assert len(report) == golden["nrows"]
    stored = path.with_suffix("").with_suffix(".report.csv.gz")
    if stored.exists():
        with gzip.open(stored) as file:
            original = pd.read_csv(file, index_col=0)
        assert list(report.columns) == list(original.columns) == COLUMNS
        pd.testing.assert_frame_equal(report, original, check_exact=False, rtol=0, atol=1e-9)


# ── a small root of our own ─────────────────────────────────────────────────


def begun(root: Path, **more: Any) -> DavisInteractiveSession:
    return DavisInteractiveSession(
        davis_root=str(root), report_save_dir=root.parent / "out",
        **{"max_nb_interactions": 2, "clock": Clock(), **more},
    )  # fmt: skip


EMPTY = np.zeros((4, 40, 60), int)


@pytest.mark.filterwarnings("ignore:Candidates that are not frames")
@pytest.mark.parametrize(
    ("candidates", "frame"),
    [([2], 2), ((2, 3), 2), (np.array([1, 3]), 1), ([], 0), ([100], 0), ([-1, 3], 3), ([1.0], 1)],
    ids=str,
)
def test_candidates_say_where_the_robot_may_draw(root: Path, candidates: Any, frame: int) -> None:
    with begun(root) as session:
        session.next()
        session.get_scribbles()
        session.submit_masks(EMPTY, candidates)
        (row,) = session.connector.service.storage.annotated_frames.drop(columns="session_id").to_numpy().tolist()
        assert row == ["box", 1, frame, True]


def test_another_thread_is_refused(root: Path) -> None:
    seen: list[Exception] = []
    with begun(root) as session:

        def other() -> None:
            try:
                session.next()
            except RuntimeError as error:
                seen.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert "belongs to the thread" in str(seen[0])


def test_a_program_may_set_published_attributes(root: Path) -> None:
    session = begun(root)
    session.max_nb_interactions, session.session_key, session.report_name = 1, KEY, "mine"
    with session:
        for _ in session.scribbles_iterator():
            session.submit_masks(EMPTY)
    assert set(session.get_report()["session_id"]) == {KEY}
    assert session.get_report()["interaction"].max() == 1
    assert [path.name for path in session.report_save_dir.iterdir()] == ["mine.csv"]


def two_objects(root: Path) -> None:
    """Add a second object in the corner of each frame, with its own line."""
    for path in (root / "Annotations/480p/box").iterdir():
        mask = np.array(Image.open(path))
        mask[:6, :6] = 2
        Image.fromarray(mask).save(path)
    path = root / "Scribbles/box/001.json"
    scribbles = json.loads(path.read_text())
    scribbles["scribbles"][0].append({"path": [[0.02, 0.02], [0.05, 0.05]], "object_id": 2})
    path.write_text(json.dumps(scribbles))


@pytest.mark.parametrize("objects", [1, 2])
def test_the_time_is_for_each_object_of_the_sequence(root: Path, objects: int) -> None:
    if objects == 2:
        two_objects(root)
    for past_the_end in (0.0, 0.5):
        clock = Clock()
        with begun(root, max_time=10, max_nb_interactions=None, clock=clock) as session:
            assert session.next()
            session.get_scribbles()
            clock.now += 10 * objects + past_the_end
            if past_the_end:
                with pytest.warns(UserWarning, match="The time for box is over"):
                    session.submit_masks(EMPTY)
            else:
                session.submit_masks(EMPTY)
            clock.now += 1
            assert not session.next(), "the sequence is over either way"
            assert len(session.get_report()) == (0 if past_the_end else 4 * objects)


def second_set(root: Path) -> None:
    (root / "Scribbles/box/002.json").write_text((root / "Scribbles/box/001.json").read_text())


def test_a_sample_whose_masks_all_came_late_counts_as_zero(root: Path) -> None:
    second_set(root)
    clock = Clock()
    with begun(root, max_time=20, clock=clock) as session:
        for sequence, _, _ in session.scribbles_iterator():
            late = session.samples[session.sample_idx or 0][1] == 2
            clock.now += 21 if late else 4
            masks = session.connector.service.davis.load_annotations(sequence)
            if late:
                with pytest.warns(UserWarning, match="these masks do not count"):
                    session.submit_masks(masks)
            else:
                session.submit_masks(masks)
    global_summary = session.get_global_summary()
    # Half of the samples have 1 and 4 seconds for each interaction, the other half 0 and none; the end is 20 s.
    assert global_summary["curve"] == {"time": [0.0, 2.0, 4.0, 20.0], "J_AND_F": [0.0, 0.5, 0.5, 0.5]}
    assert global_summary["auc"] == pytest.approx((0.5 * 2 / 2 + 0.5 * 18) / 20)


DYING = """
import os, sys, numpy as np
from segjudge.interactive import DavisInteractiveSession
root, out, die_at, resume = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1"
now = [0.0]
with DavisInteractiveSession(
    davis_root=root, report_save_dir=out, max_nb_interactions=3, max_time=600, resume=resume, clock=lambda: now[0]
) as session:
    session.session_key = session.session_key if resume else "00" * 32
    for sequence, scribbles, new in session.scribbles_iterator():
        now[0] += 2.0
        masks = np.zeros((4, 40, 60), int)
        masks[:, 10:30, 10 : 20 + 5 * session.interaction_nb] = 1
        if len(session.get_report()) // 4 == die_at:
            os._exit(9)
        session.submit_masks(masks)
"""


@pytest.mark.long
@pytest.mark.parametrize("die_at", [1, 3])
def test_a_session_goes_on_after_its_program_died(root: Path, die_at: int) -> None:
    second = json.loads((root / "Scribbles/box/001.json").read_text())
    (root / "Scribbles/box/002.json").write_text(json.dumps(second))

    def run(out: Path, die: int, resume: str) -> int:
        command = [sys.executable, "-c", DYING, str(root), str(out), str(die), resume]
        return subprocess.run(command, check=False).returncode

    whole, parts = root.parent / "whole", root.parent / "parts"
    assert run(whole, 99, "0") == 0
    assert run(parts, die_at, "0") == 9
    assert len(list(parts.glob("*.state.json"))) == 1
    assert run(parts, 99, "1") == 0
    (wanted,), (results,) = (list(folder.iterdir()) for folder in (whole, parts))
    pd.testing.assert_frame_equal(pd.read_csv(results, index_col=0), pd.read_csv(wanted, index_col=0))


def test_a_line_thinner_than_the_least_disk_gets_no_scribble() -> None:
    missing = np.zeros((9, 900), bool)
    missing[4] = True
    assert InteractiveScribblesRobot(kernel_size=0.2).paths(missing) == []
