"""A method to measure others by: colours and places of what was drawn, graph cuts, and optical flow; no weights.

In a frame with scribbles each object is cut out by the colours under its lines and by the mask that was there before;
from there masks travel along the optical flow to both sides, up to the next frames with scribbles.  Where two meet,
the nearer counts more.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter

from segjudge.interactive.utils.scribbles import Scribbles, annotated_frames, scribbles2mask

#: Frames are worked on at this width.
WIDTH = 320
#: Bins of each colour channel in a histogram, and by how many they are blurred.
BINS, BLUR = 16, 1.0
#: How much a pixel under a line, and one of an earlier mask, count in a histogram.
UNDER_LINE, IN_MASK = 3.0, 0.2
#: Pixels: how far an object reaches from its lines at first, and how far a later line corrects.
REACH, CORRECTED = 13.0, 12.0
#: Beyond these a pixel is certain before it is cut.
SURELY_NOT, SURELY = 0.05, 0.97
#: Rounds of a cut, and how much it counts beside what was believed before.
ROUNDS, CUT = 2, 0.75
#: Pixels that `lines` adds around what was drawn.
PEN = 8
#: How much colours count beside what travelled, and how much rims are smoothed on the way.
STEADY, SMOOTHED = 0.25, 1.5


def lines(*, sequence: str, scribbles: Scribbles, new_sequence: bool, images: Sequence[Any]) -> Any:
    """The least that a method must beat: everything that was drawn, thick, in every frame."""
    del sequence, new_sequence
    drawn = scribbles2mask(scribbles, images[0].shape[:2])
    mask = np.zeros(drawn.shape[1:], np.uint8)
    for frame in drawn:
        for label in range(1, int(frame.max()) + 1):
            if (frame == label).any():
                mask[distance_transform_edt(frame != label) <= PEN] = label
    return np.repeat(mask[None], len(drawn), axis=0)


class Baseline:
    """Called with the scribbles so far, answers with the masks of all frames; one for each session."""

    def __init__(self) -> None:
        self._sequence: str | None = None

    def __call__(self, *, sequence: str, scribbles: Scribbles, new_sequence: bool, images: Sequence[Any]) -> Any:
        """Masks (frames, height, width)."""
        if not len(images):
            raise ValueError(f"{sequence}: there are no pictures to look at")
        if sequence != self._sequence:
            self._sequence, self._video = sequence, Video(images)
        if new_sequence:
            #: Frame → how many lines it had when it was cut, and its labels.
            self._known: dict[int, tuple[int, Any]] = {}
            self._probable: Any = None
        seeds = scribbles2mask(scribbles, self._video.size)
        count = max(int(seeds.max(initial=1)), 0 if self._probable is None else len(self._probable) - 1)
        if self._probable is not None and count >= len(self._probable):
            more = np.zeros((count + 1 - len(self._probable), *self._probable.shape[1:]), np.float32)
            self._probable = np.concatenate([self._probable, more])
        colours = _Colours(self._video, seeds, self._probable, count)
        for frame in annotated_frames(scribbles):
            lines = len(scribbles["scribbles"][frame])
            if self._known.get(frame, (0, None))[0] != lines or len(self._known[frame][1]) <= count:
                before = None if self._probable is None else self._probable[:, frame]
                self._known[frame] = (lines, _drawn(self._video, frame, seeds[frame], colours, before))
        self._probable = _spread(self._video, {frame: labels for frame, (_, labels) in self._known.items()}, colours)
        return self._video.enlarged(self._probable)


class Video:
    """Frames made small, the colours in them, and the flow between neighbours in both directions."""

    def __init__(self, images: Sequence[Any]) -> None:
        self._full: tuple[int, int] = images[0].shape[:2]
        height, width = max(2, round(self._full[0] * WIDTH / self._full[1])), WIDTH
        self.size = (height, width)
        self.frames = [cv2.resize(one, (width, height), interpolation=cv2.INTER_AREA) for one in images]
        grey = [cv2.cvtColor(one, cv2.COLOR_RGB2GRAY) for one in self.frames]
        flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        # To fetch a pixel of frame k from frame j one needs the flow from k to j.
        self._from_next = [flow.calc(a, b, None) for a, b in itertools.pairwise(grey)]  # type: ignore[call-overload]
        self._from_before = [flow.calc(b, a, None) for a, b in itertools.pairwise(grey)]  # type: ignore[call-overload]
        lab = [cv2.cvtColor(one, cv2.COLOR_RGB2LAB).astype(np.int32) for one in self.frames]
        self.bins = [one * BINS // 256 @ np.array([BINS * BINS, BINS, 1]) for one in lab]
        self._rows, self._columns = np.mgrid[:height, :width].astype(np.float32)

    def moved(self, layers: Any, k: int, j: int) -> Any:
        """Layers of frame j as they lie in its neighbour k."""
        flow = self._from_next[k] if j == k + 1 else self._from_before[j]
        x, y = self._columns + flow[..., 0], self._rows + flow[..., 1]
        return np.stack([cv2.remap(one, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE) for one in layers])

    def enlarged(self, probable: Any) -> Any:
        """Ids at the size of the frames."""
        out = np.zeros((probable.shape[1], *self._full), np.uint8)
        for k, labels in enumerate(probable.swapaxes(0, 1)):
            if labels.argmax(axis=0).any():
                out[k] = np.argmax([cv2.resize(one, self._full[::-1]) for one in labels], axis=0)
        return out


class _Colours:
    """How likely each colour is on each object, by histograms."""

    def __init__(self, video: Video, seeds: Any, probable: Any, count: int) -> None:
        tables = np.full((count + 1, BINS**3), 1e-3)
        for k in np.flatnonzero((seeds >= 0).any(axis=(1, 2))).tolist():
            for label in range(count + 1):
                tables[label] += np.bincount(video.bins[k][seeds[k] == label], minlength=BINS**3) * UNDER_LINE
                if probable is not None:
                    weights = probable[label, k].ravel() * IN_MASK
                    tables[label] += np.bincount(video.bins[k].ravel(), weights=weights, minlength=BINS**3)
            if probable is None:  # people draw on objects first: what is far from their lines is ground
                far = distance_transform_edt(seeds[k] <= 0) > REACH
                tables[0] += np.bincount(video.bins[k][far], minlength=BINS**3) * IN_MASK
        blurred = np.stack([gaussian_filter(one.reshape(BINS, BINS, BINS), BLUR).ravel() for one in tables]) + 1e-6
        self._tables = blurred / blurred.sum(axis=1, keepdims=True)

    def of(self, bins: Any) -> Any:
        """Likelihoods (labels, height, width) that add up to one."""
        return _normal(self._tables[:, bins])


def _normal(layers: Any) -> Any:
    return (layers / layers.sum(axis=0)).astype(np.float32)


def _drawn(video: Video, k: int, seeds: Any, colours: _Colours, before: Any) -> Any:
    """Probabilities of a frame that was drawn in: what was there before, pulled to the lines, and cut."""
    likely = colours.of(video.bins[k])
    prior = np.zeros_like(likely) if before is None else before.copy()
    for label in range(len(likely)):
        if (seeds == label).any():
            away = distance_transform_edt(seeds != label)
            pull = np.exp(-((away / (REACH if before is None else CORRECTED)) ** 2))
            prior *= 1 - 0.9 * pull
            prior[label] += 0.9 * pull
    if before is None:
        prior[0] = np.clip(1 - prior[1:].max(axis=0), SURELY_NOT, 1)
    return _cut(video.frames[k], _normal(np.maximum(prior, 1e-6) * likely), seeds)


def _cut(frame: Any, score: Any, seeds: Any) -> Any:
    """Graph cuts, an object at a time against all else."""
    out = score.copy()
    for label in range(1, len(score)):
        mask = np.where(score[label] > 0.5, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
        mask[score[label] < SURELY_NOT] = cv2.GC_BGD
        mask[score[label] > SURELY] = cv2.GC_FGD
        mask[(seeds >= 0) & (seeds != label)] = cv2.GC_BGD
        mask[seeds == label] = cv2.GC_FGD
        inside = mask & 1 == 1
        if inside.any() and not inside.all():
            cv2.setRNGSeed(0)  # its clusters are drawn by lot
            cv2.grabCut(frame, mask, None, np.zeros((1, 65)), np.zeros((1, 65)), ROUNDS, cv2.GC_INIT_WITH_MASK)  # type: ignore[call-overload]
            out[label] = (1 - CUT) * score[label] + CUT * (mask & 1)
    out[0] = np.clip(1 - out[1:].max(axis=0), 0, 1)
    return _normal(out)


def _spread(video: Video, known: dict[int, Any], colours: _Colours) -> Any:
    """Probabilities (labels, frames, height, width) of all frames, from those that are known."""
    total, anchors = len(video.frames), sorted(known)
    sums = np.zeros((len(known[anchors[0]]), total, *video.size), np.float32)
    weights = np.zeros(total, np.float32)
    for place, k in enumerate(anchors):
        sums[:, k], weights[k] = known[k], 1
        after = anchors[place + 1] if place + 1 < len(anchors) else None
        before = anchors[place - 1] if place else None
        for step, end in ((1, after), (-1, before)):
            last = (total if step > 0 else -1) if end is None else end
            at = known[k]
            for j in range(k + step, last, step):
                at = _refined(video.moved(at, j, j - step), colours.of(video.bins[j]))
                weight = 1.0 if end is None else 1 - (j - k) / (end - k)
                sums[:, j] += weight * at
                weights[j] += weight
    return sums / weights[:, None, None]


def _refined(moved: Any, likely: Any) -> Any:
    """What travelled to a frame, corrected by its colours; sharpened, or it would wash out on the way."""
    score = _normal(moved * (STEADY + likely))
    smooth = np.stack([cv2.GaussianBlur(one, (0, 0), SMOOTHED) for one in score])
    return _normal(smooth**2)
