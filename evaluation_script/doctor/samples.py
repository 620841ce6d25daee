"""What a family shows to the doctor: samples of its units, and how well truth and prediction agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, Callable, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..masks.backend import backend
from ..masks.stack import Array, Size
from ..values.arithmetic import power
from .fits import fit_masks

#: The number of units in a sample, and how many of them follow each other.
_MOST_UNITS, _RUN = 12, 3
#: The maximum number of further units that are searched for exchanged ones, and their share of all.
_MOST_FURTHER, _SHARE = 12, 0.25
#: The pixels of a frame that are compared while slips are tried.
PIXELS = 1 << 12
#: The first frames of a video that are sampled, and likewise the last: they lie 1 to 3 apart, as late frames do.
_OPENING = (1, 2, 4)


class PictureBoxes(NamedTuple):
    """Boxes of a picture (x, y, width, height), each with its label."""

    places: Array
    labels: Array
    size: Size


class Points(NamedTuple):
    """The keypoints of the people of a picture: x and y (people, points, 2), which of them are marked, and labels."""

    places: Array
    marked: Array
    labels: Array
    size: Size
    #: The point on the other side of the body, for each point.
    other_sides: Array


class Sample(NamedTuple):
    """The truth and the prediction of a unit, or of one of its objects, in some frames.

    Each frame is `PictureBoxes`, `Points` or a map: an array of labels, along two axes in pictures, three in volumes.
    Pixels with a negative true label are not compared.
    """

    #: The number of its unit, and its own name.
    unit: int
    name: str
    truth: List[Any]
    prediction: List[Any]
    #: The positions of these frames in the video, and the number of all its frames.
    frames: Sequence[int] = (0,)
    total: int = 1
    #: Data of the family's own for each frame, for `Examination.rescore`.
    origin: Any = None


@dataclass(frozen=True)
class Examination:
    """A scored submission as the doctor examines it."""

    #: The names of its units, in the truth's order.
    names: Sequence[str]
    #: Returns the samples of a unit, by its number: one, or one for each object if objects overlap.
    sample: Callable[[int], Sequence[Sample]]
    #: What the data are like, which decides the slips that are possible; `table.TRAITS` defines these words.
    traits: FrozenSet[str]
    #: The words for a unit, its predictions and their labels.
    noun: str = "image"
    content: str = "masks"
    labels: str = "labels"
    #: Returns from 0 to 1 how well predicted frames agree with true ones.
    fit: Callable[[List[Any], List[Any]], float] = fit_masks
    #: Returns the score of samples of a frame each by the family's own counting; without it, the mean fit is stated.
    rescore: Optional[Callable[[Sequence[Sample]], Optional[float]]] = None
    #: The names of that score, and of the fit.
    metric: str = ""
    agreement: str = "the IoU over all pixels"
    #: The labels of all classes in the order of their training ids, if the benchmark fixes them.
    classes: Sequence[int] = ()
    #: What each label of maps is above the one that was written, if the truth has a label 0 beside the background.
    label_shift: int = 0
    #: The number of low bits of a predicted pixel that hold its label, if others hold more.
    label_bits: int = 64
    #: How many pixels along each axis a pixel of the maps stands for.
    step: int = 1
    #: The same units by other labels, examined if these show no slip.
    otherwise: Optional[Examination] = None

    def measure(self, truth: List[Any], prediction: List[Any]) -> float:
        """Return the fit of frames, by their labels."""
        return self.fit(truth, [self.keep_labels(frame) for frame in prediction])

    def shrink(self, sample: Sample, pixels: int) -> Sample:
        """Return a sample whose maps have about so many pixels, or 8 times as many voxels; small regions stay."""
        if not isinstance(sample.truth[0], np.ndarray):
            return sample._replace(origin=None)
        sides = sample.truth, sample.prediction
        shrink: Callable[[Array, int], Array] = thin
        if "voxels" in self.traits:
            pixels *= 8
            are_small = all(2 * np.count_nonzero(frame) < frame.size for side in sides for frame in side)
            shrink = _pool if are_small and "segments" not in self.traits else thin
        truth, prediction = ([shrink(frame, pixels) for frame in side] for side in sides)
        return sample._replace(truth=truth, prediction=prediction, origin=None)

    def keep_labels(self, frame: Any) -> Any:
        """Return the labels of a predicted frame, without its other bits."""
        is_cut = isinstance(frame, np.ndarray) and self.label_bits < _BITS
        return frame & (1 << self.label_bits) - 1 if is_cut else frame


#: The bits of labels that are not cut.
_BITS = 64


def keep_frames(sample: Sample, prediction: Sequence[Any], places: Sequence[int]) -> Sample:
    """Return a sample with another prediction, and only with these of its frames."""
    truth, predicted = ([side[position] for position in places] for side in (sample.truth, prediction))
    frames = [sample.frames[position] for position in places]
    origin = None if sample.origin is None else [sample.origin[position] for position in places]
    return sample._replace(truth=truth, prediction=predicted, frames=frames, origin=origin)


def pool_frames(samples: Sequence[Sample]) -> Tuple[List[Any], List[Any]]:
    """Return all true frames of samples, and all predicted ones."""
    return [frame for sample in samples for frame in sample.truth], [
        frame for sample in samples for frame in sample.prediction
    ]


def choose_units(count: int) -> List[int]:
    """Return the units of a sample, spread evenly and symmetrically; neighbours show an order that is off by one."""
    if count <= _MOST_UNITS:
        return list(range(count))
    starts = np.linspace(1, count - _RUN - 1, _MOST_UNITS // _RUN).astype(int)[: _MOST_UNITS // _RUN // 2]
    return _mirror([int(start) + step for start in starts for step in range(_RUN)], count)


def choose_further(count: int) -> List[int]:
    """Return the units that are searched for exchanged ones beside the sample."""
    units = sorted({*range(count)} - {*choose_units(count)})
    further = min(_MOST_FURTHER, len(units), int(_SHARE * count))
    return units[:: max(1, len(units) // max(1, further))][:further]


def choose_sampled(count: int) -> List[int]:
    """Return all units that may be sampled."""
    return sorted({*choose_units(count), *choose_further(count)})


def choose_frames(count: int) -> List[int]:
    """Return the frames of a video that a sample holds, symmetrically too; the first one is often given."""
    return _mirror(_OPENING, count) if count > 2 * len(_OPENING) else list(range(count))


def _mirror(opening: Sequence[int], count: int) -> List[int]:
    return sorted({*opening, *(count - 1 - number for number in opening)})


def paint(masks: Iterable[Tuple[int, str]], size: Size) -> Array:
    """Return a map with the labels of checked run lengths; small masks lie on large ones."""
    height, width = size
    drawn = [
        (label, np.unpackbits(backend().draw_mask(text, height * width), count=height * width, bitorder="little") > 0)
        for label, text in masks
    ]
    labels = np.zeros(height * width, np.int64)
    for label, flags in sorted(drawn, key=lambda mask: -np.count_nonzero(mask[1])):
        labels[flags] = label
    return labels.reshape(width, height).T


def find_step(size: int, axes: int, limit: int) -> int:
    """Return the odd distance along each axis at which about so many pixels of a map lie."""
    step = 1
    while power(step + 1, max(1, axes)) * limit <= size:
        step += 1
    return step | 1


def thin_by(frame: Array, step: int) -> Array:
    """Return the pixels of a map at a distance along each axis, spread evenly and symmetrically."""
    middles = tuple(slice(start + length // 2, end, length) for start, end, length in _cut_cells(frame, step))
    return np.ascontiguousarray(frame[middles])  # a view would keep the whole frame in memory


def thin(frame: Array, limit: int) -> Array:
    """Return a map with about so many pixels, spread evenly and symmetrically."""
    return thin_by(frame, find_step(frame.size, sum(side > 1 for side in frame.shape), limit))


def _pool(volume: Array, limit: int) -> Array:
    """Return the highest label in each of the cells in whose middles `thin` takes voxels."""
    cells = _cut_cells(volume, find_step(volume.size, volume.ndim, limit))
    for axis, (start, end, length) in enumerate(cells):
        before = (slice(None),) * axis
        volume = reduce(np.maximum, [volume[(*before, slice(start + k, end, length))] for k in range(length)])
    return volume


def _cut_cells(frame: Array, step: int) -> List[Tuple[int, int, int]]:
    """Return for each axis where cells with sides of so many pixels begin and end, and their length."""
    cells = []
    for side in frame.shape:
        length = max(1, min(step, side))
        start = side % length // 2
        cells.append((start, start + side // length * length, length))
    return cells
