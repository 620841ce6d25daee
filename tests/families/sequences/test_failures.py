"""Kinds of failure: the worked examples, sums that equal the loss, and synthetic videos with one known failure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.sequences.losses import (
    KINDS,
    SHARED,
    ComparedBlock,
    _share_tracked_loss,
    _states_of,
    _window_of,
)
from segjudge.families.base.segments import find_runs
from segjudge.families.sequences.report import list_failures
from segjudge.families.truths import TruthSource
from segjudge.scoring.request import ScoreRequest, find_protocol, prepare
from tests.builders import label_zip, stack_of
from tests.data import SEQUENCES
from tests.scoring.test_arrays import PREDICTIONS, TRUTHS
from tests.shared import needs_shared

EXAMPLES = SEQUENCES.parent / "reports/failures/examples.json"


def failures(request: ScoreRequest, reports: list[Report]) -> list[dict[str, float]]:
    """Return the cost of each kind for each object."""
    inputs = prepare(request)
    rows = [row for report in reports for row in list_failures(inputs, report)]
    return [{kind: row[kind] for kind in KINDS} for row in rows]


def decoded(runs: list[int], size: list[int]) -> Any:
    values = np.repeat(np.arange(len(runs)) % 2, runs)
    return values.reshape(size[1], size[0]).T.astype(bool)


def frame_of(truth: Any, prediction: Any, others: Any = (), predictions: Any = ()) -> ComparedBlock:
    sides = [{"1": stack_of(truth)}, {"1": stack_of(prediction)}]
    for side, more in zip(sides, (others, predictions), strict=True):
        side |= {str(number): stack_of(mask) for number, mask in enumerate(more, 2)}
    return ComparedBlock(["0"], np.shape(truth), *sides)


@needs_shared
def test_the_worked_examples_have_their_states_and_parts() -> None:
    for example in json.loads(EXAMPLES.read_text())["frames"]:
        masks = [decoded(example[side], example["size"]) for side in ("truth", "prediction")]
        more = [
            [decoded(runs, example["size"]) for runs in example[side]] for side in ("other_truth", "other_predictions")
        ]
        block = frame_of(*masks, *more)
        (state,) = _states_of("1", block)
        assert state == example["state"], example["name"]
        if state == "tracked":
            parts = dict(zip(SHARED, _share_tracked_loss(_window_of("1", block, np.array([0])))[0], strict=True))
            assert parts == pytest.approx(example["parts"], abs=1e-12), example["name"]


def losses_of(folder: Path, predictions: Any, truths: Any, protocol: str = "davis2017") -> Any:
    """Return the kinds of each object, and the J&F that remains."""
    paths = [folder / "predictions.zip", folder / "truth.zip"]
    for path, videos in zip(paths, (predictions, truths), strict=True):
        path.write_bytes(label_zip({name: list(frames) for name, frames in videos.items()}))
    scores = score(paths[0], paths[1], protocol, layout="davis2017")
    source = TruthSource(str(paths[1]), "davis2017", "", "", "")
    rows = failures(ScoreRequest(str(paths[0]), source, find_protocol(protocol)), scores.reports)
    return rows, [1 - row.get("J&F-Mean", row["J-Mean"]) for row in scores.tables["objects"]]


@pytest.mark.parametrize(
    "protocol",
    [
        "davis2016",
        "davis2017",
        "davis2017-unsupervised",
        "vos-benchmark",
        "mose",
        "sav",
        "vost",
        "lvos-unsupervised-single",
    ],
)
def test_kinds_sum_to_the_loss(protocol: str, tmp_path: Path) -> None:
    rows, losses = losses_of(tmp_path, PREDICTIONS, TRUTHS, protocol)
    assert len(rows) == len(losses) > 1
    for row, loss in zip(rows, losses, strict=True):
        assert sum(row.values()) == pytest.approx(loss, abs=1e-9)
        assert min(row.values()) >= 0


def test_kinds_sum_to_the_loss_where_a_side_fills_its_frame(tmp_path: Path) -> None:
    """A mask that fills its frame has no boundary."""
    full = np.ones((4, 60, 120), np.uint8)
    half = full * (np.arange(120) < 60)
    for prediction, truth in ((half, full), (full, half)):
        ((row,), (loss,)) = losses_of(tmp_path, {"video": prediction}, {"video": truth}, "vos-benchmark")
        assert sum(row.values()) == pytest.approx(loss, abs=1e-9)


def one_failure(kind: str) -> tuple[Any, Any]:
    """Return a video with two objects, of which the first fails in one way."""
    truth = np.zeros((8, 60, 120), np.uint8)
    truth[:, 10:30, 10:40], truth[:, 10:30, 70:100] = 1, 2
    prediction = truth.copy()
    if kind == "ghost":
        truth[3:, 10:30, 10:40] = 0
    elif kind == "miss":
        prediction[2:, 10:30, 10:40] = 0
    elif kind == "drift":
        prediction[2:, 10:30, 10:40] = 0
        prediction[2:, 40:58, 10:40] = 1
    elif kind == "swap":
        prediction[2:, 10:30, 10:40], prediction[2:, 10:30, 70:100] = 0, 1
    elif kind == "late":
        truth[2:4, 10:30, 10:40] = 0
        prediction[2:6, 10:30, 10:40] = 0
    elif kind == "part":
        prediction[:, 10:20, 10:40] = 0
    elif kind == "leak":
        prediction[:, 30:45, 10:40] = 1
    elif kind == "edge":
        prediction[:, 10:30, 40] = 1
    elif kind == "confused":
        truth[:, 10:30, 40:70] = 2
        prediction[:, 10:30, 40:70] = 1
    return prediction, truth


@pytest.mark.parametrize("kind", KINDS)
def test_a_known_failure_is_named(kind: str, tmp_path: Path) -> None:
    prediction, truth = one_failure(kind)
    rows, losses = losses_of(tmp_path, {"video": prediction}, {"video": truth}, "vos-benchmark")
    assert losses[0] > 0.01
    assert max(rows[0], key=rows[0].__getitem__) == kind
    assert rows[0][kind] > 0.6 * losses[0]


@pytest.mark.parametrize(
    ("failures_of_frames", "runs"),
    [
        ("", []),
        ("...", []),
        ("aaa", [(0, 3)]),
        (".a.", [(1, 2)]),
        ("a..a", [(0, 4)]),
        ("a...a", [(0, 1), (4, 5)]),
        ("ab.b.", [(0, 1), (1, 4)]),
    ],
)
def test_a_moment_goes_on_after_two_frames_and_not_after_three(
    failures_of_frames: str, runs: list[tuple[int, int]]
) -> None:
    failures = ["" if kind == "." else kind for kind in failures_of_frames]
    assert list(find_runs(failures, range(len(failures)))) == runs


#: The values of the definition's prototype, to three decimals: A on DAVIS 2016, L with the predictions of two frames
#: before.
PROTOTYPE = {
    "A": ("davis2016", {"drift": 0.010, "part": 0.043, "leak": 0.090, "edge": 0.078}),
    "L": (
        "davis2017",
        {
            "late": 0.035, "swap": 0.024, "drift": 0.066, "ghost": 0.015, "confused": 0.035, "part": 0.088, "leak": 0.103,
            "edge": 0.109,
        },
    ),
}  # fmt: skip


@needs_shared
@pytest.mark.long
@pytest.mark.parametrize("pair", PROTOTYPE)
def test_kinds_of_real_masks_sum_to_the_loss_and_are_those_of_the_prototype(pair: str, tmp_path: Path) -> None:
    from tests.golden.pairs import write_pair

    protocol, expected = PROTOTYPE[pair]
    truth, predictions = write_pair(pair, tmp_path, by_object=False)
    scores = score(predictions, truth, protocol)
    source = TruthSource(str(truth), "", "", "", "")
    rows = failures(ScoreRequest(str(predictions), source, find_protocol(protocol)), scores.reports)
    losses = [1 - row["J&F-Mean"] for row in scores.tables["objects"]]
    for row, loss in zip(rows, losses, strict=True):
        assert sum(row.values()) == pytest.approx(loss, abs=1e-9)
    means = {kind: sum(row[kind] for row in rows) / len(rows) for kind in KINDS}
    assert means == pytest.approx({**dict.fromkeys(KINDS, 0.0), **expected}, abs=0.004)
