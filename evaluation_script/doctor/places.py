"""Slips of places: pixels, boxes and points that are mirrored, turned, moved, padded, cropped or written otherwise."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ..masks.stack import Array
from .samples import Examination, PictureBoxes, Points, Sample, find_step
from .slip import Change, Cure, Slip, change_frames, shape_of

_FLIPPED = "Undo the flip before you save"
_TURNED = "Write rows and columns in the order of the image"
_PADDED = "Cut off the padding before you resize to the size of the image"
_RESIZED = "Resize {content} to the size of the whole image"
_ORDER = "Write [x, y, width, height] in pixels"
_POINTS = "Write x, y and a flag for each point, in pixels"
#: The difference of opposite bars of padding, as a share of the side.
_UNEVEN = 0.02
#: The maximum number of labels whose places are compared, and the minimum step that counts as moved.
_MOST_LABELS, _LEAST_STEP = 6, 2
#: The grey above which a pixel belongs to an object.
_MIDDLE = 127
#: The number of pixels that are counted to find a step.
_SAMPLED = 1 << 15


# ── mirrored and turned ─────────────────────────────────────────────────────


def _exchange_sides(points: Points) -> Points:
    return points._replace(places=points.places[:, points.other_sides])


def _flip(sentence: str, axes: Tuple[int, ...], name: Optional[Callable[[Points], Points]] = None) -> Slip:
    """Return the slip of frames that are mirrored along axes: 0 is y, 1 is x; `name` names points anew."""

    def flip_boxes(boxes: PictureBoxes) -> PictureBoxes:
        places = np.array(boxes.places, float)
        for axis in axes:
            places[:, 1 - axis] = boxes.size[axis] - places[:, 1 - axis] - places[:, 3 - axis]
        return boxes._replace(places=places)

    def flip_points(points: Points) -> Points:
        places = np.array(points.places, float)
        for axis in axes:
            places[..., 1 - axis] = points.size[axis] - 1 - places[..., 1 - axis]
        points = points._replace(places=places)
        return name(points) if name else points

    flip_map: Change = partial(np.flip, axis=axes)
    changes: Dict[type, Change] = {np.ndarray: flip_map, PictureBoxes: flip_boxes} if name is None else {}
    return Slip(sentence, _FLIPPED, frozenset({"pictures"}), change_frames({**changes, Points: flip_points}))


def _redraw(sentence: str, remedy: str, change: Change, *traits: str, whole: bool = False) -> Slip:
    """Return the slip of maps that a change of each puts right."""
    return Slip(sentence, remedy, frozenset(traits or {"pictures"}), change_frames({np.ndarray: change}), whole=whole)


_MIRRORED = [
    _flip("{content} look mirrored, with left and right exchanged", (1,)),
    _flip("{content} look upside down", (0,)),
    _flip("{content} look rotated by 180 degrees", (0, 1)),
    _flip("{content} look mirrored, as if found in mirrored images", (1,), _exchange_sides),
]
_REORDERED = [
    _redraw("{content} look transposed, with rows and columns exchanged", _TURNED, lambda pixels: pixels.T),
    _redraw("{content} look rotated by 90 degrees", _TURNED, np.rot90),
    _redraw("{content} look rotated by 90 degrees", _TURNED, lambda pixels: np.rot90(pixels, 3)),
    _redraw(
        "{content} look reshaped from (width, height) to (height, width)", "Transpose arrays instead of reshaping them",
        lambda pixels: pixels.reshape(pixels.shape[::-1]).T, whole=True,
    ),
    _redraw(
        "run lengths look as if written row by row", "Encode np.asfortranarray(mask), column by column",
        lambda pixels: pixels.T.reshape(pixels.shape), "pictures", "runs", whole=True,
    ),
]  # fmt: skip


# ── padded, cropped and resized ─────────────────────────────────────────────


def _take(point: Callable[[Array, int, int, int], Array], pixels: Array) -> Array:
    """Return the pixels whose places along each axis follow from place, side, longest and shortest side."""
    longest, shortest = max(pixels.shape), min(pixels.shape)
    places = [
        np.clip(point(np.arange(side) + 0.5, side, longest, shortest).astype(int), 0, side - 1) for side in pixels.shape
    ]
    return pixels[np.ix_(*places)]


def _resize(sentence: str, remedy: str, point: Callable[[Any, float, float, float], Any]) -> Slip:
    """Return the slip of frames that were resized: where a right place along an axis lies, given the image's sides."""

    def write_back(frame: Any) -> Any:
        longest, shortest = max(frame.size), min(frame.size)
        origins = [point(0.0, side, longest, shortest) for side in frame.size[::-1]]
        scales = [point(1.0, side, longest, shortest) - start for side, start in zip(frame.size[::-1], origins)]
        if isinstance(frame, Points):
            return frame._replace(places=(frame.places - origins) / scales)
        starts, sides = (frame.places[:, :2] - origins) / scales, frame.places[:, 2:] / scales
        return frame._replace(places=np.hstack([starts, sides]))

    changes: Dict[type, Change] = {np.ndarray: partial(_take, point), PictureBoxes: write_back, Points: write_back}
    return Slip(sentence, remedy, frozenset({"pictures"}), change_frames(changes))


def _cut_bars(pixels: Array) -> Array:
    """Return the pixels between equal bars of one value, stretched to the whole map."""
    filled = pixels != pixels[0, 0]
    places = []
    for axis, side in enumerate(pixels.shape):
        inside = np.flatnonzero(filled.any(axis=1 - axis))
        start, end = (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, side)
        if abs(start - (side - end)) > 1 + _UNEVEN * side:
            return pixels
        places.append(start + np.arange(side) * (end - start) // side)
    return pixels[np.ix_(*places)]


_RESIZED_SLIPS = [
    _resize(
        "{content} look as if their images had been padded to squares", _PADDED,
        lambda point, side, longest, _: (point + (longest - side) / 2) * side / longest,
    ),
    _resize(
        "{content} look as if their images had been padded to squares at one side", _PADDED,
        lambda point, side, longest, _: point * side / longest,
    ),
    _redraw("{content} look as if their images had been padded with bars", _PADDED, _cut_bars, "pictures", "filled"),
    _resize(
        "{content} look as if their images had been cropped to squares", _RESIZED,
        lambda point, side, _, shortest: (point - (side - shortest) / 2) * side / shortest,
    ),
    _resize("{content} look half as wide and high, in the upper left corner", _RESIZED, lambda point, *_: point / 2),
    _resize(
        "{content} look half as wide and high, in the middle", _RESIZED,
        lambda point, side, *_: point / 2 + side / 4,
    ),
    _resize("{content} look twice as wide and high as their images", _RESIZED, lambda point, *_: point * 2),
    _resize(
        "{content} look as if made of the middle of their images", _RESIZED,
        lambda point, side, *_: point * 2 - side / 2,
    ),
]  # fmt: skip


# ── volumes ─────────────────────────────────────────────────────────────────

_AXES = "Write the axes in the order and direction in which the image was read"


def _list_volume_slips() -> List[Slip]:
    flips = [axes for count in (1, 2, 3) for axes in combinations("xyz", count)]
    slips = []
    for axes in flips:
        listed = " and ".join(filter(None, [", ".join(axes[:-1]), axes[-1]]))
        change = partial(np.flip, axis=tuple("zyx".index(axis) for axis in axes))
        slips.append(_redraw(f"{{content}} look mirrored along {listed}", _AXES, change, "voxels"))
    for names, order in (("x and y", (0, 2, 1)), ("x and z", (2, 1, 0)), ("y and z", (1, 0, 2))):
        slips.append(_redraw(f"{names} look exchanged", _AXES, partial(np.transpose, axes=order), "voxels"))
    for turns in (1, 3):
        change = partial(np.rot90, k=turns, axes=(1, 2))
        slips.append(_redraw("slices look rotated by 90 degrees", _AXES, change, "voxels"))
    slips.append(
        _redraw(
            "{content} look reshaped from (x, y, z) to (z, y, x)", "Transpose arrays instead of reshaping them",
            lambda volume: volume.reshape(volume.shape[::-1]).transpose(2, 1, 0), "voxels", whole=True,
        )
    )  # fmt: skip
    return slips


# ── moved ───────────────────────────────────────────────────────────────────


def _correlate(truth: Array, prediction: Array, axis: int) -> Array:
    """Return how well a map fits for each step along an axis, by the pixels of each label in each plane."""
    step = find_step(truth.size, truth.ndim - 1, _SAMPLED)
    chosen = tuple(slice(None, None, 1 if side == axis else step) for side in range(truth.ndim))
    true, predicted = (np.moveaxis(side[chosen], axis, 0).reshape(side.shape[axis], -1) for side in (truth, prediction))
    labels, areas = np.unique(true[true > 0], return_counts=True)
    fits = np.zeros(2 * len(true) - 1)
    for label in labels[np.argsort(-areas)][:_MOST_LABELS]:
        profile, true_profile = (_center(np.count_nonzero(side == label, axis=1)) for side in (predicted, true))
        fits += np.correlate(profile, true_profile, "full")
    return fits / max(1.0, float(fits.max(initial=0)))


def _center(profile: Array) -> Array:
    """Return a profile minus its mean, times its length: whole numbers, whose products are exact."""
    centered: Array = len(profile) * profile.astype(np.int64) - int(profile.sum())
    return centered


def _find_steps_of_maps(pairs: Sequence[Tuple[Array, Array]]) -> List[int]:
    """Return the steps along each axis by which maps fit best together."""
    steps = []
    for axis in range(pairs[0][0].ndim):
        longest = max(truth.shape[axis] for truth, _ in pairs)
        fits = np.zeros(2 * longest - 1)
        for truth, prediction in pairs:
            start = longest - truth.shape[axis]
            fits[start : start + 2 * truth.shape[axis] - 1] += _correlate(truth, prediction, axis)
        steps.append(int(fits.argmax()) - longest + 1)
    return steps


def _find_steps_of_places(pairs: Sequence[Tuple[Any, Any]]) -> List[int]:
    """Return the step along y and x between most boxes or people and predictions of their label."""
    votes: Dict[Tuple[int, int], int] = {}
    for truth, prediction in pairs:
        true, predicted = (_find_middles(side) for side in (truth, prediction))
        differences = np.rint(predicted[:, None] - true)[prediction.labels[:, None] == truth.labels]
        for x, y in differences.astype(int).tolist():
            votes[y, x] = votes.get((y, x), 0) + 1
    return [*max(votes, key=lambda step: votes[step])] if votes else [0, 0]


def _find_middles(frame: Any) -> Array:
    places = np.asarray(frame.places, float)
    middles: Array = places[:, :2] + places[:, 2:] / 2 if isinstance(frame, PictureBoxes) else places.mean(axis=1)
    return middles


def _move(steps: Sequence[int], frame: Any) -> Any:
    """Return a frame whose places are moved back by these steps along its axes."""
    if isinstance(frame, PictureBoxes):
        return frame._replace(places=frame.places - [steps[1], steps[0], 0, 0])
    if isinstance(frame, Points):
        return frame._replace(places=frame.places - [steps[1], steps[0]])
    for axis, step in enumerate(steps):
        places = np.arange(frame.shape[axis]) + step
        frame = frame.take(np.clip(places, 0, frame.shape[axis] - 1), axis) if step else frame
    return frame


def _cure_moved(examination: Examination, samples: Sequence[Sample]) -> Optional[Cure]:
    """Move all samples back by the same steps."""
    pairs = []
    for sample in samples:
        middle = len(sample.truth) // 2
        truth, prediction = sample.truth[middle], sample.prediction[middle]
        if isinstance(truth, np.ndarray) and "labels" not in examination.traits:
            truth, prediction = truth > 0, prediction > (_MIDDLE if "greys" in examination.traits else 0)
        pairs.append((truth, prediction))
    is_map = isinstance(pairs[0][0], np.ndarray)
    steps = _find_steps_of_maps(pairs) if is_map else _find_steps_of_places(pairs)
    if max(map(abs, steps)) * examination.step < _LEAST_STEP:
        return None
    names, about = ["x", "y", "z"][: len(steps)], "about " if examination.step > 1 else ""
    along = " and ".join(
        f"{about}{step * examination.step} along {name}" for name, step in zip(names, reversed(steps)) if step
    )
    # Symmetric objects that are moved a little fit when mirrored, too, and mirrored ones when moved far.
    is_near = all(_NEAR * abs(step) <= side for step, side in zip(steps, shape_of(pairs[0][0])))
    predictions = [[_move(steps, frame) for frame in sample.prediction] for sample in samples]
    return Cure(
        predictions,
        f"{along} (in {'voxels' if 'voxels' in examination.traits else 'pixels'})",
        _LEAD if is_near else -_LEAD,
    )


#: The sides per step of predictions that are moved a little, and what these or other slips count more.
_NEAR, _LEAD = 6, 0.03


# ── notations of boxes and points ───────────────────────────────────────────


def _rewrite(sentence: str, change: Callable[[Array, Any], Array], kind: type = PictureBoxes) -> Slip:
    """Return the slip of boxes or points in another notation, given the change of their places and size."""
    changes: Dict[type, Change] = {kind: lambda frame: frame._replace(places=change(frame.places, frame.size))}
    remedy = _ORDER if kind is PictureBoxes else _POINTS
    return Slip(sentence, remedy, frozenset({"pictures"}), change_frames(changes))


def _scale(places: Array, size: Tuple[int, int]) -> Array:
    height, width = size
    scaled: Array = places * np.resize([width, height], places.shape[-1])
    return scaled


_NOTATIONS = [
    _rewrite("boxes look like [x1, y1, x2, y2]", lambda box, _: np.hstack([box[:, :2], box[:, 2:] - box[:, :2]])),
    _rewrite(
        "boxes look like [center x, center y, width, height]",
        lambda box, _: np.hstack([box[:, :2] - box[:, 2:] / 2, box[:, 2:]]),
    ),
    _rewrite("boxes look like [y, x, height, width]", lambda box, _: box[:, [1, 0, 3, 2]]),
    _rewrite(
        "boxes look like [y1, x1, y2, x2]",
        lambda box, _: np.hstack([box[:, 1::-1], box[:, :1:-1] - box[:, 1::-1]]),
    ),
    _rewrite("boxes look like fractions of the image size", _scale),
    _rewrite("keypoints look like y and x", lambda points, _: points[..., ::-1], Points),
    _rewrite("keypoints look like fractions of the image size", _scale, Points),
    Slip(
        "keypoints look as if left and right were exchanged", "Write the points in the order of the truth",
        frozenset({"pictures"}),
        change_frames({Points: _exchange_sides}), times=1.2,
    ),
]  # fmt: skip

PLACE_SLIPS = [
    *_MIRRORED,
    *_REORDERED,
    *_RESIZED_SLIPS,
    *_list_volume_slips(),
    *_NOTATIONS,
    Slip(
        "{content} look moved by {detail}", "Undo the crop, padding or offset before you save", frozenset({"places"}),
        _cure_moved, least=0.75, times=math.inf, whole=True,
    ),
]  # fmt: skip
