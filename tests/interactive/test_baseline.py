"""The baseline of interactive sessions: its scores, and its steps without the drawings of libraries."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import cv2
import numpy as np
import pytest

from examples.interactive import baseline
from segjudge.interactive import dataset, masks, robot, runs, scribbles
from segjudge.interactive.mask_datasets import DrawnScribbles

from .scene import write_root

#: J of both objects in each frame, after each interaction.
J_OF_BASELINE = [
    [[0.96, 0.71], [0.95, 0.71], [0.95, 0.71], [0.95, 0.72]],
    [[0.96, 0.71], [0.95, 0.78], [0.95, 0.95], [0.94, 0.95]],
    [[0.96, 0.71], [0.94, 0.94], [0.95, 0.95], [0.94, 0.95]],
]

SIZE = (6, 8)


def describe(layers: Any) -> Any:
    """Return some numbers of each layer: its mean, its extremes, and a mean weighted by position."""
    flat = np.asarray(layers, float).reshape(len(layers), -1)
    weights = 1 + np.arange(flat.shape[1]) % 11
    return [[row.mean(), row[0], row[-1], (row * weights).mean()] for row in flat]


class Still:
    """Frames of few colours, between which everything moves by a pixel per frame."""

    def __init__(self, frames: int) -> None:
        rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
        self.size = SIZE
        self.bins = [((columns + 3 * (rows > 2) + frame) // 4 * 500 + frame).astype(int) for frame in range(frames)]
        self.frames = [np.dstack([columns * 20, rows * 30, rows + frame]).astype(np.uint8) for frame in range(frames)]

    def move(self, layers: Any, k: int, j: int) -> Any:
        assert abs(k - j) == 1
        return np.roll(layers, k - j, axis=2)


def _draw_seeds(frames: int, *lines: tuple[int, int, int, int]) -> Any:
    """Return seeds of labels along rows (frame, row, first column, label); -1 elsewhere."""
    seeds = np.full((frames, *SIZE), -1)
    for frame, row, column, label in lines:
        seeds[frame, row, column : column + 3] = label
    return seeds


VIDEO: Any = Still(5)
SEEDS = _draw_seeds(5, (1, 1, 1, 1), (1, 4, 3, 2), (3, 0, 5, 0), (3, 3, 2, 1))


def _earlier_layers() -> Any:
    before = np.full((3, 5, *SIZE), 0.2, np.float32)
    before[1, :, :3, :5], before[2, :, 3:, 2:] = 0.7, 0.9
    return before / before.sum(axis=0)


class Cuts:
    """A stand-in of OpenCV's cut, which takes two rows, and the calls of it: the sums of frames and what masks hold."""

    def __init__(self) -> None:
        self.seeds, self.masks = list[int](), list[tuple[int, list[int]]]()

    def cut(self, frame: Any, mask: Any, _box: Any, background: Any, foreground: Any, *more: Any) -> None:
        assert (background.shape, foreground.shape, more) == ((1, 65), (1, 65), (2, 1))
        self.masks.append((int(frame.sum()), np.bincount(mask.ravel(), minlength=4).tolist()))
        mask[mask == cv2.GC_PR_FGD] = cv2.GC_PR_BGD
        mask[:2, :2] = cv2.GC_PR_FGD


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> Cuts:
    cuts = Cuts()
    monkeypatch.setattr(cv2, "grabCut", cuts.cut)
    monkeypatch.setattr(cv2, "setRNGSeed", cuts.seeds.append)
    return cuts


#: What is known before → the likelihoods of frames 1 and 3, the anchor at frame 1, and what its cuts begin with.
ANCHORS: dict[str, Any] = {
    "nothing": (
        [[0.0496, 0.0017, 0.1546, 0.2686], [0.4012, 0.9966, 0.0916, 2.3904], [0.5492, 0.0017, 0.7538, 3.0493]],
        [[0.3141, 0.0123, 0.388, 1.7229], [0.3716, 0.9754, 0.23, 2.0937], [0.3142, 0.0123, 0.382, 1.8917]],
        [[0.5561, 0.0012, 0.7579, 3.2216], [0.1739, 0.5697, 0.0031, 1.0552], [0.27, 0.4291, 0.239, 1.4316]],
        [(7128, [16, 10, 22, 0]), (7128, [10, 3, 0, 35])],
    ),
    "layers": (
        [[0.1543, 0.0706, 0.1983, 0.8669], [0.3791, 0.8716, 0.1191, 2.2475], [0.4665, 0.0577, 0.6826, 2.5939]],
        [[0.3669, 0.1453, 0.1951, 2.0402], [0.3508, 0.7359, 0.1163, 1.9816], [0.2823, 0.1187, 0.6886, 1.6865]],
        [[0.4511, 0.0249, 0.0052, 2.7074], [0.1028, 0.5324, 0.0047, 0.6135], [0.4461, 0.4427, 0.9901, 2.3874]],
        [(7128, [16, 3, 22, 7]), (7128, [3, 14, 7, 24])],
    ),
}


@pytest.mark.parametrize("known", ANCHORS)
def test_an_anchor_is_cut_by_colours_lines_and_the_layers_before(known: str, cuts: Cuts) -> None:
    first, later, anchored, masks = ANCHORS[known]
    earlier = None if known == "nothing" else _earlier_layers()
    colours = baseline._Colours(VIDEO, SEEDS, earlier, 2)
    assert describe(colours.likelihoods(VIDEO.bins[1])) == pytest.approx(np.array(first), abs=1e-4)
    assert describe(colours.likelihoods(VIDEO.bins[3])) == pytest.approx(np.array(later), abs=1e-4)
    anchor = baseline._make_anchor(VIDEO, 1, SEEDS[1], colours, None if earlier is None else earlier[:, 1])
    assert describe(anchor) == pytest.approx(np.array(anchored), abs=1e-4)
    assert (anchor.dtype, cuts.seeds, cuts.masks) == (np.float32, [0, 0], masks)


@pytest.mark.parametrize(
    ("scores", "layers", "mask"),
    [
        ([[[0.5]], [[0.5]]], [[[0.5]], [[0.5]]], None),
        ([[[0.96]], [[0.04]]], [[[0.96]], [[0.04]]], None),
        ([[[0.02, 0.5]], [[0.98, 0.5]]], [[[0.005, 0.125]], [[0.995, 0.875]]], [0, 1, 1, 0]),
        ([[[0.05, 0.03, 0.2]], [[0.95, 0.97, 0.8]], [[0.0, 0.0, 0.51]]],
         [[[0.02857, 0.01714, 0.17738]], [[0.54286, 0.55429, 0.70953]], [[0.42857, 0.42857, 0.11308]]], [2, 0, 0, 1]),
    ],
    ids=["undecided", "nothing is certain", "one object", "two objects"],
)  # fmt: skip
def test_objects_are_cut_where_one_is_certain(scores: Any, layers: Any, mask: list[int] | None, cuts: Cuts) -> None:
    score = np.array(scores)
    results = baseline._cut_objects(np.zeros((1, 3, 3), np.uint8), score, np.full(score.shape[1:], -1))
    assert results == pytest.approx(np.array(layers), abs=1e-5)
    assert cuts.masks == ([(0, mask)] if mask else [])


#: The frames with anchors → the layers of all frames.
SPREAD: dict[tuple[int, ...], Any] = {
    (1,): [
        [[0.3474, 0.2741, 0.039, 2.005], [0.0975, 0.6863, 0.0002, 0.5379], [0.5551, 0.0396, 0.9607, 3.1654]],
        [[0.4511, 0.0249, 0.0052, 2.7074], [0.1028, 0.5324, 0.0047, 0.6135], [0.4461, 0.4427, 0.9901, 2.3874]],
        [[0.4681, 0.2743, 0.0152, 2.7237], [0.1022, 0.4847, 0.0001, 0.5468], [0.4297, 0.241, 0.9848, 2.4378]],
        [[0.614, 0.5319, 0.134, 3.5072], [0.0608, 0.2297, 0.0001, 0.3214], [0.3252, 0.2384, 0.8659, 1.8797]],
        [[0.8478, 0.7928, 0.6844, 4.8196], [0.0128, 0.043, 0.0001, 0.0676], [0.1393, 0.1642, 0.3155, 0.8211]],
    ],
    (1, 3): [
        [[0.3474, 0.2741, 0.039, 2.005], [0.0975, 0.6863, 0.0002, 0.5379], [0.5551, 0.0396, 0.9607, 3.1654]],
        [[0.4511, 0.0249, 0.0052, 2.7074], [0.1028, 0.5324, 0.0047, 0.6135], [0.4461, 0.4427, 0.9901, 2.3874]],
        [[0.6049, 0.3403, 0.4806, 3.4672], [0.1799, 0.5392, 0.0243, 1.0199], [0.2153, 0.1205, 0.4951, 1.2212]],
        [[0.6491, 0.0083, 0.7292, 3.6949], [0.3348, 0.9902, 0.1459, 1.9174], [0.0161, 0.0014, 0.1248, 0.096]],
        [[0.7622, 0.2393, 0.9294, 4.3563], [0.2376, 0.7606, 0.0697, 1.3504], [0.0003, 0.0, 0.0009, 0.0017]],
    ],
    (4,): [
        [[0.0569, 0.2633, 0.001, 0.3031], [0.0004, 0.004, 0.0, 0.002], [0.9427, 0.7327, 0.999, 5.4033]],
        [[0.2069, 0.6282, 0.0221, 1.1262], [0.0062, 0.061, 0.0, 0.0329], [0.787, 0.3108, 0.9779, 4.5492]],
        [[0.379, 0.6548, 0.1195, 2.1229], [0.0264, 0.2376, 0.0001, 0.1426], [0.5945, 0.1076, 0.8804, 3.4428]],
        [[0.4728, 0.4399, 0.0595, 2.728], [0.0613, 0.4938, 0.0003, 0.3319], [0.4659, 0.0663, 0.9403, 2.6485]],
        [[0.4511, 0.0249, 0.0052, 2.7074], [0.1028, 0.5324, 0.0047, 0.6135], [0.4461, 0.4427, 0.9901, 2.3874]],
    ],
}


@pytest.mark.parametrize("frames", SPREAD, ids=str)
@pytest.mark.usefixtures("cuts")
def test_masks_spread_from_anchors_to_all_frames(frames: tuple[int, ...]) -> None:
    before = _earlier_layers()
    colours = baseline._Colours(VIDEO, SEEDS, before, 2)
    first, third = (baseline._make_anchor(VIDEO, frame, SEEDS[frame], colours, before[:, frame]) for frame in (1, 3))
    anchors = {frame: third if frame == 3 else first for frame in frames}
    spread = baseline._spread_masks(VIDEO, anchors, colours)
    assert [describe(frame) for frame in spread.swapaxes(0, 1)] == pytest.approx(np.array(SPREAD[frames]), abs=1e-4)


def test_a_drop_is_refined_into_its_surroundings() -> None:
    drop = np.full((2, 7, 7), 0.5, np.float32)
    drop[1, 3, 3] = 1
    refined = [[0.5236, 0.51898, 0.51037, 0.50639], [0.51898, 0.51526, 0.50834, 0.50513],
               [0.51037, 0.50834, 0.50456, 0.50281], [0.50639, 0.50513, 0.50281, 0.50173]]  # fmt: skip
    assert baseline._refine_layers(drop, np.full((2, 7, 7), 0.5))[1, 3:, 3:] == pytest.approx(
        np.array(refined), abs=1e-5
    )


#: What is asked: the sequence, the objects of lines in each frame, and whether it is new; and the steps of the method.
LOOKS = "looks at the video"
ASKED: list[tuple[str, list[list[int]], bool, list[str], tuple[int, ...]]] = [
    ("a", [[1], [], []], True, [LOOKS, "cuts frame 0, before: None", "spreads [0], 1 objects"], (2, 3, *SIZE)),
    ("a", [[1], [], [1]], False, ["cuts frame 2, before: (2, 6, 8)", "spreads [0, 2], 1 objects"], (2, 3, *SIZE)),
    ("a", [[1, 1], [], [1]], False, ["cuts frame 0, before: (2, 6, 8)", "spreads [0, 2], 1 objects"], (2, 3, *SIZE)),
    ("a", [[1, 1], [3], [1]], False,
     [*(f"cuts frame {frame}, before: (4, 6, 8)" for frame in range(3)), "spreads [0, 2, 1], 3 objects"], (4, 3, *SIZE)),
    ("a", [[1, 1], [3], [1]], False, ["spreads [0, 2, 1], 3 objects"], (4, 3, *SIZE)),
    ("a", [[], [2], []], True, ["cuts frame 1, before: None", "spreads [1], 2 objects"], (3, 3, *SIZE)),
    ("b", [[0], [], []], True, [LOOKS, "cuts frame 0, before: None", "spreads [0], 1 objects"], (2, 3, *SIZE)),
]  # fmt: skip


def test_only_frames_with_new_lines_are_cut_again() -> None:
    steps = list[str]()

    def cut(_video: Any, frame: int, _seeds: Any, count: Any, earlier: Any) -> Any:
        steps.append(f"cuts frame {frame}, before: {None if earlier is None else earlier.shape}")
        return np.zeros((count + 1, *SIZE))

    def spread(_video: Any, anchors: Any, count: int) -> Any:
        steps.append(f"spreads {[*anchors]}, {count} objects")
        return np.zeros((count + 1, 3, *SIZE), np.float32)

    def look(_images: Any) -> Any:
        steps.append(LOOKS)
        return SimpleNamespace(size=SIZE, enlarge=lambda layers: layers.shape)

    def line(label: int) -> Any:
        return {"path": [[0.1, 0.1], [0.5, 0.5]], "object_id": label, "start_time": 0, "end_time": 1}

    method, images = baseline.Baseline(), [np.zeros((*SIZE, 3), np.uint8)] * 3
    with mock.patch.multiple(
        baseline, _make_anchor=cut, _spread_masks=spread, _Video=look, _Colours=lambda *words: words[-1]
    ):
        for name, frames, new, expected, shape in ASKED:
            scribbles: Any = {"sequence": name, "scribbles": [[line(label) for label in labels] for labels in frames]}
            assert method(sequence=name, scribbles=scribbles, new_sequence=new, images=images) == shape
            assert steps == expected
            steps.clear()


@pytest.mark.parametrize(
    ("size", "scaled"), [((30, 60), (160, 320)), ((1, 900), (2, 320)), ((480, 854), (180, 320)), ((5, 5), (320, 320))]
)
def test_a_video_is_scaled_to_one_width(size: tuple[int, int], scaled: tuple[int, int]) -> None:
    with mock.patch.object(cv2, "DISOpticalFlow") as flow:
        video = baseline._Video([np.zeros((*size, 3), np.uint8)])
    assert (video.size, [frame.shape for frame in video.frames]) == (scaled, [(*scaled, 3)])
    assert (flow.create.call_args, flow.create().calc.call_count) == (mock.call(2), 0)


def test_layers_move_along_the_flow_and_are_enlarged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "_SCALED_WIDTH", 8)
    flow = mock.Mock()
    flow.calc.side_effect = [np.full((4, 8, 2), value, np.float32) for value in (1, 2, -3, -1)]
    monkeypatch.setattr(cv2.DISOpticalFlow, "create", mock.Mock(return_value=flow))
    colours = [(255, 255, 255), (0, 0, 0), (255, 0, 0), (0, 128, 255)]
    photo = np.repeat(np.repeat(np.array([colours[:2], colours[2:]], np.uint8), 2, 0), 4, 1)
    video = baseline._Video([photo, photo // 2, photo // 3])
    sums = [(int(first.sum()), int(second.sum())) for (first, second, _), _ in flow.calc.call_args_list]
    assert sums == [(3480, 1736), (1736, 1152), (1736, 3480), (1152, 1736)], "forwards and backwards"
    assert video.bins[0][::2, ::4].tolist() == [[3976, 136], [2268, 2195]]
    layers = np.arange(64, dtype=np.float32).reshape(2, 4, 8)
    for k, j, row in (
        (0, 1, [17, 18, 19, 20, 21, 22, 23, 23]),
        (1, 2, [26, 27, 28, 29, 30, 31, 31, 31]),
        (1, 0, [0, 0, 0, 0, 1, 2, 3, 4]),
        (2, 1, [0, 0, 1, 2, 3, 4, 5, 6]),
    ):
        assert video.move(layers, k, j)[:, 1].tolist() == [row, [value + 32 for value in row]]
    likely = np.zeros((3, 2, 4, 8), np.float32)
    likely[0], likely[1, 0, 1:3, 2:5], likely[2, 0, :2, 5:] = 0.5, 0.6, 0.9
    video._full = (8, 16)
    ids = video.enlarge(likely)
    assert (ids.dtype, ids.shape) == (np.uint8, (2, 8, 16))
    assert [np.bincount(frame.ravel(), minlength=3).tolist() for frame in ids] == [[96, 8, 24], [128, 0, 0]]
    drawn = [[0, 0, 0, 0, 0, 2, 2, 2], [0, 0, 0, 0, 0, 2, 2, 2], [0, 0, 0, 1, 1, 0, 0, 0], [0] * 8]
    assert ids[0, ::2, ::2].tolist() == drawn


def test_the_baseline_finds_what_it_found(tmp_path: Path) -> None:
    """J of each object in each frame equals the noted value to the digits that all machines share."""
    write_root(tmp_path)
    opened = dataset.Davis(str(tmp_path))
    images: Any = runs.Frames(opened.image_paths("duo"))
    truth, method, lines = (
        opened.load_annotations("duo"),
        baseline.Baseline(),
        DrawnScribbles(opened).load_scribble("duo", 1),
    )
    values = []
    for interaction in (1, 2, 3):
        guess = method(sequence="duo", scribbles=lines, new_sequence=interaction == 1, images=images)
        assert (guess.shape, guess.dtype) == (truth.shape, np.uint8)
        values.append(masks.batched_jaccard(truth, guess, False, 2))
        drawer = robot.InteractiveScribblesRobot(0.2, clock=float)
        lines = scribbles.fuse_scribbles(lines, drawer.interact("duo", guess, truth, 2, 3 - interaction))
    with pytest.raises(ValueError, match="^duo: there are no pictures$"):
        method(sequence="duo", scribbles=lines, new_sequence=True, images=[])
    drawn = baseline.lines(sequence="duo", scribbles=lines, new_sequence=True, images=images)
    assert np.allclose(values, J_OF_BASELINE, atol=0.015)
    assert [np.bincount(frame.ravel()).tolist() for frame in drawn] == [[576, 915, 909]] * 4
