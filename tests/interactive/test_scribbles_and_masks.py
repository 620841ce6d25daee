"""Lines become pixels, points and pictures; masks are compared and packed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from segjudge.interactive import evaluation, masks, scribbles
from tests.outcomes import outcome_of

LINE = {"path": [[0.0, 0.0], [0.5, 0.9], [1.0, 0.2]], "object_id": 2, "start_time": 0, "end_time": 1}
LATER = {"path": [[0.2, 1.0], [0.2, 0.0]], "object_id": 1, "start_time": 0, "end_time": 1}
LINES: Any = {"scribbles": [[LINE, LATER], [], [LATER]], "sequence": "s"}
EMPTY: Any = {"scribbles": [[], [], []], "sequence": "s"}


def test_lines_become_points() -> None:
    points, ids = scribbles.scribbles2points(LINES)
    shares = [[0, 0, 0], [0, 0.5, 0.9], [0, 1, 0.2], [0, 0.2, 1], [0, 0.2, 0], [2, 0.2, 1], [2, 0.2, 0]]
    assert (points.tolist(), ids.tolist()) == (shares, [2, 2, 2, 1, 1, 1, 1])
    points, ids = scribbles.scribbles2points(LINES, (6, 11))
    pixels = [[0, 0, 0], [0, 2, 9], [0, 5, 2], [0, 1, 10], [0, 1, 0], [2, 1, 10], [2, 1, 0]]
    assert (points.tolist(), ids.tolist()) == (pixels, [2, 2, 2, 1, 1, 1, 1])
    assert [*scribbles.annotated_frames(LINES)] == [0, 2]
    assert [[*scribbles.annotated_frames_object(LINES, number)] for number in range(3)] == [[], [0, 2], [0]]
    assert (scribbles.is_empty(EMPTY), scribbles.is_empty(LINES)) == (True, False)


def test_a_curve_has_at_most_a_thousand_points() -> None:
    assert len(scribbles.bezier_curve([[0, 0], [2, 4], [6, 0]], 2000)) == 1000


def test_lines_are_fused_behind_those_of_the_first() -> None:
    first: Any = {"scribbles": [[LATER], [], []], "sequence": "s"}
    fused = scribbles.fuse_scribbles(first, LINES)
    assert [[line["object_id"] for line in lines] for lines in fused["scribbles"]] == [[1, 2, 1], [], [1]]


def test_lines_are_drawn_into_plots() -> None:
    plotted: list[Any] = []

    def plot(columns: Any, rows: Any, *, color: Any, **options: Any) -> None:
        plotted.append(([*columns], [*rows], color if isinstance(color, str) else np.round(color, 5).tolist(), options))

    axes: Any = SimpleNamespace(plot=plot)
    scribbles.plot_scribble(axes, LINES, 0, linewidth=3)
    scribbles.plot_scribble(axes, LINES, 2, (11, 6), color="red")
    assert plotted == [
        ([0.0, 0.5, 1.0], [0.0, 0.9, 0.2], [0.0, 0.50196, 0.0], {"linewidth": 3}),
        ([0.2, 0.2], [1.0, 0.0], [0.50196, 0.0, 0.0], {"linewidth": 3}),
        ([2.0, 2.0], [5.0, 0.0], "red", {}),
    ]
    for frame in (-1, 3):
        sentence = "ValueError: Frame value not valid"
        assert outcome_of(lambda frame=frame: scribbles.plot_scribble(axes, LINES, frame)) == sentence  # type: ignore[misc]


IDS = np.array([[0, 1, 1, 0, 0], [0, 2, 1, 0, 0]])


def test_objects_have_a_rim_outside_of_them() -> None:
    edge, one, two, plain = [9] * 3, [200] * 3, [31] * 3, [100] * 3
    laid = scribbles.overlay_mask(np.full((2, 5, 3), 100.0), IDS, 0.25, [[0] * 3, [9] * 3, [200] * 3], 1)
    assert laid.round().tolist() == [[edge, one, two, edge, plain], [one, [175] * 3, one, edge, plain]]


@pytest.mark.parametrize(
    ("shape", "ids", "sentence"),
    [
        ((2, 5, 3), IDS[:1], "First two dimensions of `im` and `ann` must match"),
        ((2, 5), IDS, "`im` must have three channels (RGB): its shape is (2, 5)"),
        ((2, 5, 4), IDS, "`im` must have three channels (RGB): its shape is (2, 5, 4)"),
    ],
)
def test_a_picture_that_objects_do_not_fit(shape: Any, ids: Any, sentence: str) -> None:
    assert outcome_of(lambda: scribbles.overlay_mask(np.zeros(shape), ids)) == f"ValueError: {sentence}"


@pytest.mark.parametrize(
    ("values", "ids"),
    [
        ([True, False], [1, 0]),
        ([0.9, 1.7, -0.5, 254.0, 300.0], [0, 1, 0, 254, 255]),
        ([-1, 0, 254, 255, 256], [255, 0, 254, 255, 255]),
    ],
)
def test_values_become_ids(values: Any, ids: list[int]) -> None:
    assert masks.as_ids(values).tolist() == ids


def test_the_likeliest_object_wins_above_a_threshold() -> None:
    assert masks.combine_masks([[[[0.5, 0.2, 0.6]]], [[[0.4, 0.51, 0.7]]]]).tolist() == [[[0, 2, 2]]]


def test_objects_are_packed_up_to_the_largest_or_as_a_frame_shows_them() -> None:
    frames = np.array([[[0, 2]], [[0, 0]]])
    packed = [masks.encode_batch_masks(frames), masks.encode_frames(frames)]
    ids = [[[each["object_id"] for each in objects] for objects in each["frames"]] for each in packed]
    assert ids == [[[1, 2], [1, 2]], [[2], []]]
    missing: Any = {"size": [2, 4, 6], "frames": []}
    assert outcome_of(lambda: masks.decode_batch_masks(missing)) == "ValueError: holds 0 frames, but its size says 2"


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        (None, "TypeError: int() argument must be a string, a bytes-like object or a number, not 'NoneType'"),
        ([[1.0, float("nan")]], "ValueError: The masks hold values that are not finite numbers (NaN or infinity)."),
        ([[1.0, 2.5]], [[1, 2]]),
    ],
)
def test_what_a_program_submits_becomes_masks(values: Any, outcome: Any) -> None:
    assert outcome_of(lambda: evaluation.as_masks(values).tolist()) == outcome


@pytest.mark.parametrize(
    ("used", "frame"), [(set(), 1), ({1}, 0), ({0, 1}, 3), ({0, 1, 3}, 1), ({0, 1, 2, 3}, 1)], ids=str
)
def test_the_worst_candidate_that_was_not_annotated_is_next(used: set[int], frame: int) -> None:
    assert evaluation._find_worst_frame(np.array([0.5, 0.2, 0.2, 0.9]), used, {0, 1, 3}) == frame
