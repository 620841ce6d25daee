"""The baseline method: colours and positions of scribbles, graph cuts, and optical flow; no weights.

In a frame with scribbles, each object is segmented by the colours under its lines and by its earlier mask. From there
masks follow the optical flow in both directions, up to the next frames with scribbles; between two of these, the nearer
one has more weight.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter

from segjudge.interactive.scribbles import Scribbles, annotated_frames, scribbles2mask

Array = np.ndarray[Any, Any]

#: The width to which frames are scaled.
_SCALED_WIDTH = 320
#: Bins of each colour channel in a histogram, and the bins over which they are blurred.
_BINS, _BLUR = 16, 1.0
#: The weight of a pixel under a line, and of one in an earlier mask, in a histogram.
_UNDER_LINE, _IN_MASK = 3.0, 0.2
#: The maximum distance in pixels of an object from its first lines, and from a later line.
_FIRST_REACH, _LATER_REACH = 13.0, 12.0
#: The probabilities below and above which a cut takes a pixel for certain.
_CERTAINLY_NOT, _CERTAINLY = 0.05, 0.97
#: The rounds of a cut, and its weight relative to the previous probabilities.
_CUT_ROUNDS, _CUT_WEIGHT = 2, 0.75
#: The width in pixels that `lines` adds to a line.
_PEN = 8
#: The minimum weight of a colour in a frame to which masks moved, and the pixels over which these are smoothed.
_COLOUR_FLOOR, _SMOOTHING = 0.25, 1.5


def lines(*, sequence: str, scribbles: Scribbles, new_sequence: bool, images: Sequence[Array]) -> Array:
    """Return the simplest masks: all lines, thick, in every frame."""
    del sequence, new_sequence
    seeds = scribbles2mask(scribbles, images[0].shape[:2])
    mask = np.zeros(seeds.shape[1:], np.uint8)
    for frame in seeds:
        for label in range(1, int(frame.max()) + 1):
            if (frame == label).any():
                mask[distance_transform_edt(frame != label) <= _PEN] = label
    return np.repeat(mask[None], len(seeds), axis=0)


class Baseline:
    """The baseline, called with the scribbles so far; each session needs its own instance."""

    def __init__(self) -> None:
        self._sequence: str | None = None

    def __call__(self, *, sequence: str, scribbles: Scribbles, new_sequence: bool, images: Sequence[Array]) -> Array:
        if not len(images):
            raise ValueError(f"{sequence}: there are no pictures")
        if sequence != self._sequence:
            self._sequence, self._video = sequence, _Video(images)
        if new_sequence:
            #: Frame → the number of its lines when it was cut, and the probabilities (labels, height, width).
            self._anchors: dict[int, tuple[int, Array]] = {}
            self._probabilities: Array | None = None
        seeds = scribbles2mask(scribbles, self._video.size)
        before = self._probabilities
        count = max(int(seeds.max(initial=1)), 0 if before is None else len(before) - 1)
        if before is not None and count >= len(before):
            more = np.zeros((count + 1 - len(before), *before.shape[1:]), np.float32)
            before = np.concatenate([before, more])
        colours = _Colours(self._video, seeds, before, count)
        for frame in annotated_frames(scribbles):
            lines = len(scribbles["scribbles"][frame])
            if frame in self._anchors and self._anchors[frame][0] == lines and len(self._anchors[frame][1]) > count:
                continue
            earlier = None if before is None else before[:, frame]
            self._anchors[frame] = (lines, _make_anchor(self._video, frame, seeds[frame], colours, earlier))
        anchors = {frame: probabilities for frame, (_, probabilities) in self._anchors.items()}
        self._probabilities = _spread_masks(self._video, anchors, colours)
        return self._video.enlarge(self._probabilities)


class _Video:
    """Scaled frames, their colours, and the flow between neighbours in both directions."""

    def __init__(self, images: Sequence[Array]) -> None:
        self._full: tuple[int, int] = images[0].shape[:2]
        height, width = max(2, round(self._full[0] * _SCALED_WIDTH / self._full[1])), _SCALED_WIDTH
        self.size = (height, width)
        self.frames = [cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA) for image in images]
        grey = [cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) for frame in self.frames]
        flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        # A pixel of frame k is fetched from frame j by the flow from k to j.
        self._from_next = [flow.calc(a, b, None) for a, b in itertools.pairwise(grey)]  # type: ignore[call-overload]
        self._from_before = [flow.calc(b, a, None) for a, b in itertools.pairwise(grey)]  # type: ignore[call-overload]
        lab = [cv2.cvtColor(frame, cv2.COLOR_RGB2LAB).astype(np.int32) for frame in self.frames]
        self.bins = [frame * _BINS // 256 @ np.array([_BINS * _BINS, _BINS, 1]) for frame in lab]
        self._rows, self._columns = np.mgrid[:height, :width].astype(np.float32)

    def move(self, layers: Array, k: int, j: int) -> Array:
        """Move layers of frame j to its neighbour k."""
        flow = self._from_next[k] if j == k + 1 else self._from_before[j]
        x, y = self._columns + flow[..., 0], self._rows + flow[..., 1]
        return np.stack([cv2.remap(layer, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE) for layer in layers])

    def enlarge(self, probabilities: Array) -> Array:
        """Return the most likely ids (frames, height, width) at the size of the images."""
        ids = np.zeros((probabilities.shape[1], *self._full), np.uint8)
        for k, layers in enumerate(probabilities.swapaxes(0, 1)):
            if layers.argmax(axis=0).any():
                ids[k] = np.argmax([cv2.resize(layer, self._full[::-1]) for layer in layers], axis=0)
        return ids


class _Colours:
    """The likelihood of each colour on each object, from histograms."""

    def __init__(self, video: _Video, seeds: Array, probabilities: Array | None, count: int) -> None:
        tables = np.full((count + 1, _BINS**3), 1e-3)
        for k in np.flatnonzero((seeds >= 0).any(axis=(1, 2))).tolist():
            for label in range(count + 1):
                tables[label] += np.bincount(video.bins[k][seeds[k] == label], minlength=_BINS**3) * _UNDER_LINE
                if probabilities is not None:
                    weights = probabilities[label, k].ravel() * _IN_MASK
                    tables[label] += np.bincount(video.bins[k].ravel(), weights=weights, minlength=_BINS**3)
            if probabilities is None:  # people draw on objects first: pixels far from their lines are background
                far = distance_transform_edt(seeds[k] <= 0) > _FIRST_REACH
                tables[0] += np.bincount(video.bins[k][far], minlength=_BINS**3) * _IN_MASK
        blurred = (
            np.stack([gaussian_filter(table.reshape(_BINS, _BINS, _BINS), _BLUR).ravel() for table in tables]) + 1e-6
        )
        self._tables = blurred / blurred.sum(axis=1, keepdims=True)

    def likelihoods(self, bins: Array) -> Array:
        """Return likelihoods (labels, height, width) that sum to one."""
        return _normalize(self._tables[:, bins])


def _normalize(layers: Array) -> Array:
    normalized: Array = (layers / layers.sum(axis=0)).astype(np.float32)
    return normalized


def _make_anchor(video: _Video, k: int, seeds: Array, colours: _Colours, before: Array | None) -> Array:
    """Return the probabilities of a scribbled frame: earlier ones, corrected by lines and graph cut."""
    likely = colours.likelihoods(video.bins[k])
    prior = np.zeros_like(likely) if before is None else before.copy()
    for label in range(len(likely)):
        if (seeds == label).any():
            away = distance_transform_edt(seeds != label)
            pull = np.exp(-((away / (_FIRST_REACH if before is None else _LATER_REACH)) ** 2))
            prior *= 1 - 0.9 * pull
            prior[label] += 0.9 * pull
    if before is None:
        prior[0] = np.clip(1 - prior[1:].max(axis=0), _CERTAINLY_NOT, 1)
    return _cut_objects(video.frames[k], _normalize(np.maximum(prior, 1e-6) * likely), seeds)


def _cut_objects(frame: Array, score: Array, seeds: Array) -> Array:
    """Return masks by graph cuts, one object at a time against the rest."""
    after = score.copy()
    for label in range(1, len(score)):
        mask = np.where(score[label] > 0.5, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
        mask[score[label] < _CERTAINLY_NOT] = cv2.GC_BGD
        mask[score[label] > _CERTAINLY] = cv2.GC_FGD
        mask[(seeds >= 0) & (seeds != label)] = cv2.GC_BGD
        mask[seeds == label] = cv2.GC_FGD
        inside = mask & 1 == 1
        if inside.any() and not inside.all():
            cv2.setRNGSeed(0)  # its clusters are random
            cv2.grabCut(frame, mask, None, np.zeros((1, 65)), np.zeros((1, 65)), _CUT_ROUNDS, cv2.GC_INIT_WITH_MASK)  # type: ignore[call-overload]
            after[label] = (1 - _CUT_WEIGHT) * score[label] + _CUT_WEIGHT * (mask & 1)
    after[0] = np.clip(1 - after[1:].max(axis=0), 0, 1)
    return _normalize(after)


def _spread_masks(video: _Video, by_frame: dict[int, Array], colours: _Colours) -> Array:
    """Return the probabilities (labels, frames, height, width) of all frames from the known ones."""
    total, anchors = len(video.frames), sorted(by_frame)
    sums = np.zeros((len(by_frame[anchors[0]]), total, *video.size), np.float32)
    weights = np.zeros(total, np.float32)
    for index, k in enumerate(anchors):
        sums[:, k], weights[k] = by_frame[k], 1
        next_anchor = anchors[index + 1] if index + 1 < len(anchors) else None
        previous_anchor = anchors[index - 1] if index else None
        for step, anchor in ((1, next_anchor), (-1, previous_anchor)):
            stop_frame = (total if step > 0 else -1) if anchor is None else anchor
            moving = by_frame[k]
            for j in range(k + step, stop_frame, step):
                moving = _refine_layers(video.move(moving, j, j - step), colours.likelihoods(video.bins[j]))
                weight = 1.0 if anchor is None else 1 - (j - k) / (anchor - k)
                sums[:, j] += weight * moving
                weights[j] += weight
    return sums / weights[:, None, None]


def _refine_layers(moved: Array, likely: Array) -> Array:
    """Correct moved probabilities by a frame's colours, and sharpen them against blurring."""
    score = _normalize(moved * (_COLOUR_FLOOR + likely))
    smooth = np.stack([cv2.GaussianBlur(layer, (0, 0), _SMOOTHING) for layer in score])
    return _normalize(smooth**2)
