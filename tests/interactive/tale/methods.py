"""The method for comparisons, in its parts; drawings of libraries are omitted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import cv2
import numpy as np

from examples.interactive import baseline

from . import Tale

SIZE = (6, 8)


def _digest(layers: Any) -> Any:
    """Return some numbers of each layer to four digits: its mean, its extremes, and a mean weighted by position."""
    flat = np.asarray(layers, float).reshape(len(layers), -1)
    weights = 1 + np.arange(flat.shape[1]) % 11
    return [[round(float(value), 4) for value in (row.mean(), row[0], row[-1], (row * weights).mean())] for row in flat]


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


def a_method_step_by_step(tale: Tale) -> None:
    video: Any = Still(5)
    seeds = _draw_seeds(5, (1, 1, 1, 1), (1, 4, 3, 2), (3, 0, 5, 0), (3, 3, 2, 1))
    before = np.full((3, 5, *SIZE), 0.2, np.float32)
    before[1, :, :3, :5], before[2, :, 3:, 2:] = 0.7, 0.9
    before /= before.sum(axis=0)
    cuts: list[Any] = []

    def cut(frame: Any, mask: Any, *more: Any) -> None:
        cuts.append(
            [
                int(frame.sum()),
                np.bincount(mask.ravel(), minlength=4).tolist(),
                [np.shape(each) for each in more[:3]],
                more[3:],
            ]
        )
        mask[mask == cv2.GC_PR_FGD] = cv2.GC_PR_BGD
        mask[:2, :2] = cv2.GC_PR_FGD

    with mock.patch.object(cv2, "grabCut", cut), mock.patch.object(cv2, "setRNGSeed", cuts.append):
        for about, earlier in (("first", None), ("later", before)):
            colours = baseline._Colours(video, seeds, earlier, 2)
            tale.say(
                f"colours, {about}:",
                _digest(colours.likelihoods(video.bins[1])),
                _digest(colours.likelihoods(video.bins[3])),
            )
            known = None if earlier is None else earlier[:, 1]
            anchor = baseline._make_anchor(video, 1, seeds[1], colours, known)
            tale.say("anchor:", _digest(anchor), anchor.dtype, cuts)
            cuts.clear()
        others = {1: anchor, 3: baseline._make_anchor(video, 3, seeds[3], colours, before[:, 3])}
        cuts.clear()
        for score in (np.array([[[0.5]], [[0.5]]]), np.array([[[0.96]], [[0.04]]]), np.array([[[0.02, 0.5]], [[0.98, 0.5]]]),
                      np.array([[[0.05, 0.03, 0.2]], [[0.95, 0.97, 0.8]], [[0.0, 0.0, 0.51]]])):  # fmt: skip
            drawn = np.full(score.shape[1:], -1)
            tale.say("cut:", baseline._cut_objects(np.zeros((1, 3, 3), np.uint8), score, drawn), cuts)
            cuts.clear()
    for known_frames in ({1: anchor}, others, {4: anchor}):
        spread = baseline._spread_masks(video, known_frames, colours)
        tale.say(f"spread from {[*known_frames]}:", [_digest(frame) for frame in spread.swapaxes(0, 1)])
    drop = np.full((2, 7, 7), 0.5, np.float32)
    drop[1, 3, 3] = 1
    tale.say("refined:", baseline._refine_layers(drop, np.full((2, 7, 7), 0.5))[1, 3:, 3:])


def a_method_that_is_asked_again(tale: Tale) -> None:
    """Note the frames that are segmented again, with the number of lines and the earlier state."""

    def note(_video: Any, frame: int, _seeds: Any, _colours: Any, earlier: Any) -> Any:
        tale.say(f"  - cuts frame {frame}, before: {None if earlier is None else earlier.shape}")
        return np.zeros((_colours + 1, *SIZE))

    def spread(_video: Any, anchors: Any, count: int) -> Any:
        tale.say(f"  - spreads {[*anchors]}, {count} objects")
        return np.zeros((count + 1, 3, *SIZE), np.float32)

    def line(label: int) -> Any:
        return {"path": [[0.1, 0.1], [0.5, 0.5]], "object_id": label, "start_time": 0, "end_time": 1}

    def show(_images: Any) -> Any:
        tale.say("  - looks at the video")
        return SimpleNamespace(size=SIZE, enlarge=lambda found: found.shape)

    stand_ins = {
        "_make_anchor": note,
        "_spread_masks": spread,
        "_Video": show,
        "_Colours": lambda _v, _s, _b, count: count,
    }
    method, images = baseline.Baseline(), [np.zeros((*SIZE, 3), np.uint8)] * 3
    with mock.patch.multiple(baseline, **stand_ins):
        for name, frames, new in (
            ("a", [[line(1)], [], []], True), ("a", [[line(1)], [], [line(1)]], False), ("a", [[line(1), line(1)], [], [line(1)]], False),
            ("a", [[line(1), line(1)], [line(3)], [line(1)]], False), ("a", [[line(1), line(1)], [line(3)], [line(1)]], False),
            ("a", [[], [line(2)], []], True), ("b", [[line(0)], [], []], True),
        ):  # fmt: skip
            tale.say(name, [[each["object_id"] for each in lines] for lines in frames], new)
            scribbles: Any = {"sequence": name, "scribbles": frames}
            tale.say("  - →", method(sequence=name, scribbles=scribbles, new_sequence=new, images=images))


def a_video_step_by_step(tale: Tale) -> None:
    """Sizes, bins and movement; where nothing moves, the flow is nothing."""
    for size in ((30, 60), (1, 900), (480, 854), (5, 5)):
        with mock.patch.object(cv2, "DISOpticalFlow") as flow:
            video = baseline._Video([np.zeros((*size, 3), np.uint8)])
            tale.say(
                size,
                video.size,
                [frame.shape for frame in video.frames],
                flow.create.call_args,
                flow.create().calc.call_count,
            )
    with mock.patch.object(baseline, "_SCALED_WIDTH", 8):
        flow = mock.Mock()
        flow.calc.side_effect = [np.full((4, 8, 2), value, np.float32) for value in (1, 2, -3, -1)]
        with mock.patch.object(cv2.DISOpticalFlow, "create", return_value=flow):
            colours = [(255, 255, 255), (0, 0, 0), (255, 0, 0), (0, 128, 255)]
            photo = np.repeat(np.repeat(np.array([colours[:2], colours[2:]], np.uint8), 2, 0), 4, 1)
            video = baseline._Video([photo, photo // 2, photo // 3])
        tale.say([(int(first.sum()), int(second.sum())) for (first, second, _), _ in flow.calc.call_args_list])
        tale.say("bins:", video.bins[0][::2, ::4])
        layers = np.arange(64, dtype=np.float32).reshape(2, 4, 8)
        for k, j in ((0, 1), (1, 2), (1, 0), (2, 1)):
            tale.say(f"moved from {j} to {k}:", video.move(layers, k, j)[:, 1])
        likely = np.zeros((3, 2, 4, 8), np.float32)
        likely[0], likely[1, 0, 1:3, 2:5], likely[2, 0, :2, 5:] = 0.5, 0.6, 0.9
        video._full = (8, 16)
        ids = video.enlarge(likely)
        tale.say(
            "enlarged:",
            ids.dtype,
            ids.shape,
            [np.bincount(frame.ravel(), minlength=3) for frame in ids],
            ids[0, ::2, ::2],
        )
