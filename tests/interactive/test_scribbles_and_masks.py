"""Lines become pixels, points and pictures; masks are compared and packed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.interactive import evaluation, masks, scribbles, wire_format
from tests.outcomes import outcome_of

from .scene import answer, draw_truth

LINE = {"path": [[0.0, 0.0], [0.5, 0.9], [1.0, 0.2]], "object_id": 2, "start_time": 0, "end_time": 1}
LATER = {"path": [[0.2, 1.0], [0.2, 0.0]], "object_id": 1, "start_time": 0, "end_time": 1}
LINES: Any = {"scribbles": [[LINE, LATER], [], [LATER]], "sequence": "s"}
EMPTY: Any = {"scribbles": [[], [], []], "sequence": "s"}

#: Options → the pixels of the first and the last of three frames; `·` is -1, which no line covers.
PIXELS: dict[str, tuple[dict[str, Any], str]] = {
    "straight lines": ({}, """
        2·1········    ··1········
        ·21·······2    ··1········
        ··12····22·    ··1········
        ··1·2·22···    ··1········
        ··1··2·····    ··1········
        ··1········    ··1········
    """),
    "curves of six points": ({"bezier_curve_sampling": True, "nb_points": 6}, """
        2·1········    ··1········
        ·21·······2    ··1········
        ··12222222·    ··1········
        ··1········    ··1········
        ··1········    ··1········
        ··1········    ··1········
    """),
    "points alone, on 0": ({"bresenham": False, "default_value": 0}, """
        2.1........    ..1........
        ..........2    ...........
        ...........    ...........
        ...........    ...........
        .....2.....    ...........
        ..1........    ..1........
    """),
    "points of curves": ({"bezier_curve_sampling": True, "bresenham": False}, """
        221········    ··1········
        ·112····222    ·11········
        ·11222222··    ·11········
        ··1········    ··1········
        ··1········    ··1········
        ··1········    ··1········
    """),
}  # fmt: skip


@pytest.mark.parametrize("about", PIXELS)
def test_lines_become_pixels(about: str) -> None:
    options, drawing = PIXELS[about]
    frames = scribbles.scribbles2mask(LINES, (6, 11), **options)[::2]
    columns = zip(*(row.split() for row in drawing.strip().split("\n")), strict=True)
    for frame, column in zip(frames, columns, strict=True):
        assert ["".join("·.12"[value + 1] for value in row) for row in frame] == [*column]


@pytest.mark.parametrize(
    ("size", "outcome"),
    [
        ((0, 5), "ValueError: Invalid output resolution: (0, 5)"),
        ((1, 5, 3), "ValueError: Invalid output resolution: (1, 5, 3)"),
        ((1, 1), [[[1]], [[-1]], [[1]]]),
    ],
)
def test_a_resolution_is_two_sides(size: Any, outcome: Any) -> None:
    pixels = outcome_of(lambda: scribbles.scribbles2mask(LINES, size))
    assert (pixels if isinstance(pixels, str) else pixels.tolist()) == outcome


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


def test_scribbles_are_fused_into_the_first() -> None:
    first: Any = {"scribbles": [[], [], []], "sequence": "s"}
    fused = scribbles.fuse_scribbles(first, LINES)
    assert ([len(frame) for frame in fused["scribbles"]], len(first["scribbles"][0])) == ([2, 0, 1], 2)
    for changes, sentence in (
        ({"sequence": "t"}, "Scribbles to fuse are not from the same sequence"),
        ({"scribbles": []}, "Scribbles does not have the same number of frames"),
    ):
        merged = {**LINES, **changes}
        assert outcome_of(lambda merged=merged: scribbles.fuse_scribbles(EMPTY, merged)) == f"ValueError: {sentence}"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("count", "points"),
    [
        (1, [[0, 0], [2, 4], [6, 0]]),
        (2, [[0, 0], [2, 4], [6, 0]]),
        (5, [[6, 0], [4.125, 1.5], [2.5, 2], [1.125, 1.5], [0, 0]]),
        (2000, [[6, 0], [5.99199, 0.008], [5.98399, 0.01598], [5.97599, 0.02395], [5.968, 0.0319], [5.96001, 0.03984]]),
    ],
)
def test_a_curve_has_so_many_points(count: int, points: Any) -> None:
    curve = scribbles.bezier_curve([[0, 0], [2, 4], [6, 0]], count)
    assert np.allclose(curve[:6], points, rtol=0, atol=1e-5)
    assert len(curve) == min(max(count, 3), 1000)


def test_curves_and_lines_of_unusual_points() -> None:
    assert scribbles.bezier_curve(np.zeros((1001, 2))).shape == (1001, 2)
    assert scribbles.bezier_curve([[1, 2]]).shape == (1000, 2)
    sentence = "ValueError: `points` should be two dimensional and have shape: (N, 2)"
    for points in ([1, 2], [[1, 2, 3]]):
        assert outcome_of(lambda points=points: scribbles.bezier_curve(points)) == sentence  # type: ignore[misc]
    joined = [[0, 0], [1, 0], [2, 1], [3, 1], [3, 1], [3, 2], [3, 3]]
    assert scribbles.bresenham([[0.9, 0], [3, 1], [3, 3]]).tolist() == joined
    assert scribbles.bresenham([[4, 5]]).tolist() == [[4, 5]]


def test_lines_are_drawn_into_pictures() -> None:
    picture = np.asarray(scribbles.draw_scribble(Image.new("RGB", (12, 7)), LINES, 0, width=2))
    colours = picture[..., 1] // 128 * 2 + picture[..., 0] // 128
    assert ["".join(".rgy"[value] for value in row) for row in colours] == [
        ".rr.........", "grr.......g.", ".rrg.....ggg", ".rrgg..ggg..", ".rrgggggg...", ".rr.ggg.....", ".rr..g......",
    ]  # fmt: skip
    small = np.asarray(scribbles.draw_scribble(Image.new("RGB", (5, 5)), LINES, 2, (9, 3), 1))[..., 0]
    assert np.argwhere(small).tolist() == [[0, 1], [1, 1], [2, 1]]


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


def test_objects_are_laid_over_a_picture() -> None:
    photo = np.full((2, 5, 3), 100.0)
    plain, red, green = [100] * 3, [114, 50, 50], [50, 114, 50]
    laid = scribbles.overlay_mask(photo, IDS)
    assert laid.round().tolist() == [[plain, red, red, plain, plain], [plain, green, red, plain, plain]]
    edge, one, two = [9] * 3, [200] * 3, [31] * 3
    laid = scribbles.overlay_mask(photo, IDS, 0.25, [[0] * 3, [9] * 3, [200] * 3], 1)
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


TRUTH, GUESS = np.stack([draw_truth("duo", frame) for frame in range(4)]), answer("duo", 4, 2)


@pytest.mark.parametrize(
    ("measure", "mean", "objects"),
    [
        (masks.batched_jaccard, 0.35099, [0.61502, 0.08696]),
        (masks.batched_f_measure, 0.37033, [0.57143, 0.16923]),
    ],
)
def test_masks_are_measured_frame_by_frame(measure: Any, mean: float, objects: list[float]) -> None:
    assert measure(TRUTH, GUESS) == pytest.approx(np.full(4, mean), abs=1e-5)
    assert measure(TRUTH, GUESS, False) == pytest.approx(np.array([objects] * 4), abs=1e-5)
    assert measure(TRUTH, GUESS, nb_objects=1) == pytest.approx(np.full(4, objects[0]), abs=1e-5)


def test_boundaries_match_within_some_pixels() -> None:
    assert masks.batched_f_measure(TRUTH, GUESS, bound_th=3) == pytest.approx(np.full(4, 0.71212), abs=1e-5)
    assert masks.f_measure(TRUTH[0] == 1, GUESS[0] == 1) == pytest.approx(0.57143, abs=1e-5)


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


@pytest.mark.parametrize(
    ("truth", "guess", "outcome"),
    [
        (TRUTH[0], GUESS[0], "ValueError: y_true array must have 3 dimensions."),
        (TRUTH, GUESS[0], "ValueError: y_pred array must have 3 dimensions."),
        (TRUTH, GUESS[1:], "ValueError: y_true and y_pred must have the same shape. (4, 40, 60) != (3, 40, 60)"),
        (np.full((1, 2, 2), 255), np.zeros((1, 2, 2)), "ValueError: Number of objects in y_true should be higher than 0."),
        (TRUTH, GUESS, [1, 2]),
    ],
    ids=["flat", "flat answer", "fewer frames", "void alone", "as it should be"],
)  # fmt: skip
def test_objects_are_those_of_the_truth(truth: Any, guess: Any, outcome: Any) -> None:
    ids = outcome_of(lambda: masks.object_ids(truth, guess))
    assert (ids if isinstance(ids, str) else [*ids]) == outcome
    assert isinstance(ids, str) or [*masks.object_ids(truth, guess, 4)] == [1, 2, 3, 4]


def test_the_likeliest_object_wins_above_a_threshold() -> None:
    assert masks.combine_masks([[[[0.5, 0.2, 0.6]]], [[[0.4, 0.51, 0.7]]]]).tolist() == [[[0, 2, 2]]]
    assert masks.combine_masks([[[0.3]]], 0.2).tolist() == [[1]]


def test_masks_are_packed_as_run_lengths_and_back() -> None:
    small = TRUTH[:2, 18:22, 34:40]
    one, two = {"object_id": 1, "counts": "h0"}, {"object_id": 2, "counts": "822000000"}
    assert masks.encode_mask(small[0]) == {"size": [4, 6], "objects": [two]}
    assert masks.encode_mask(small[0], 1) == {"size": [4, 6], "objects": [one]}
    assert masks.encode_batch_masks(small) == {"size": [2, 4, 6], "frames": [[one, two]] * 2}
    assert masks.encode_batch_masks(small, 1) == {"size": [2, 4, 6], "frames": [[one]] * 2}
    assert masks.encode_frames(small) == {"size": [2, 4, 6], "frames": [[two]] * 2}
    assert np.array_equal(masks.decode_batch_masks(masks.encode_batch_masks(TRUTH[:, :36])), TRUTH[:, :36])
    assert np.array_equal(masks.decode_mask(masks.encode_mask(small[0])), small[0])
    missing: Any = {"size": [2, 4, 6], "frames": []}
    assert outcome_of(lambda: masks.decode_batch_masks(missing)) == "ValueError: holds 0 frames, but its size says 2"
    for side, outcome in (
        (1, [[[0, 0]]]),
        (True, "ValueError: y_true and y_pred must have the same shape. (1, 1, 2) != (True, 1, 2)"),
    ):
        sent = wire_format.MaskSubmission([], {"size": [side, 1, 2], "frames": [[]]})
        decoded = outcome_of(lambda sent=sent: sent.decode((1, 1, 2), 9).tolist())  # type: ignore[misc]
        assert decoded == outcome


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
