"""Other readings of submissions that seem to follow another convention, such as swapped channels.

A few units with low scores are counted again with the mistake undone. Readings that change pixels are tried on a sample
of the unit's first map before. Both scores travel with the counts, so parts and processes merge as usual.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Callable, Collection, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ...files import name_list, quantity
from ...masks import run_lengths
from ...masks.backend import backend
from ...masks.overlaps import LabelMap
from ...masks.stack import Array, Size

if TYPE_CHECKING:
    from ...masks.restoration import Displacement
    from .few_masks import FrameMasks
    from .unit_truth import TruthFrame


@dataclass(frozen=True)
class Reading:
    """An alternative reading of a submission that undoes a common mistake."""

    #: Its name in the counts.
    name: str
    #: The suspected slip, as a clause.
    slip: str
    #: The remedy.
    remedy: str
    #: The name of the unit that is counted at once.
    noun: str
    #: Returns a copy of the submission that is read this way.
    open: Callable[[Any], Any]
    #: The minimum score of this reading.
    least: float = 0.2
    #: The minimum ratio of the scores. Units that cannot reach it are not read again.
    times: float = 3.0
    #: The metric of its scores, if it differs from that of the unit's other readings.
    metric: str = ""
    #: The minimum share of the units tried that score low; smaller ones need more than one unit.
    share: float = 0.5
    #: Returns whether it may score more, given the first maps of a unit.
    fits: Callable[[FirstMaps], bool] = lambda _maps: True
    #: Whether it is tried on few of the units, because it opens other files.
    few: bool = False
    #: Whether it is tried on few frames of a unit, because it rewrites masks pixel by pixel.
    few_frames: bool = False
    #: Whether its scores follow from frames that are compared while they are counted.
    compares_frames: bool = False
    #: Returns such a copy, given a unit's first maps too; `judge_shifts` then compares the units.
    open_moved: Optional[Callable[[FirstMaps, Any], Any]] = None


#: The number of sampled pixels, and the agreement that unrelated maps may have.
_SAMPLE, _UNRELATED = 4096, 0.8
#: The agreement above which maps may show the same scene, and its minimum increase.
_RELATED, _GAIN = 0.25, 1.1
#: Its minimum increase where maps are moved by few pixels.
_LESS_GAIN = 1.02
#: The agreement above which masks may show the same objects, its minimum increase, and its minimum share of the best.
_RELATED_MASKS, _MASK_GAIN, _ABOUT_BEST = 0.1, 1.5, 0.8


def sample_pixels(labels: Array, *, oddly: bool = False) -> Array:
    """Return the labels of evenly spread pixels of a map, optionally at an odd distance."""
    step = max(1, math.isqrt(labels.size // _SAMPLE))
    step -= oddly and step % 2 == 0
    return np.ascontiguousarray(labels[::step, ::step])


def keep_pixels(pixels: Array) -> Array:
    """Return a map as it is."""
    return pixels


class FirstMaps:
    """The first maps of a unit, truth and prediction, and how well their segments agree, whatever their labels."""

    def __init__(self) -> None:
        self._truth: Optional[LabelMap] = None
        self._prediction: Optional[Array] = None
        self._masks: Optional[Tuple[FrameMasks, FrameMasks, Size]] = None
        #: The unit's frames, which take long to load; None before.
        self.frames: Optional[List[TruthFrame]] = None

    def watch(self, unit: Any, submission: Any) -> Tuple[Any, Any]:
        """Return a unit and a submission whose `read` stores their first maps here; the truth's is not read again."""

        def load() -> Any:
            self.frames = frames = unit.load()
            return [*(replace(frame, read=partial(self._read_truth, frame.read)) for frame in frames[:1]), *frames[1:]]

        def read(*arguments: Any) -> Optional[Array]:
            labels: Optional[Array] = submission.read(*arguments)
            if self._prediction is None:
                self._prediction = labels
            return labels

        watched = switch("first_maps", value=self)(submission)
        return replace(unit, load=load), switch("read", value=read)(watched)

    def _read_truth(self, read: Callable[[], LabelMap]) -> LabelMap:
        if self._truth is None:
            self._truth = read()
        return self._truth

    @cached_property
    def _sample(self) -> Optional[Array]:
        """The labels of some pixels of the truth."""
        if self._truth is None or self._prediction is None or self._truth.numbers.shape != self._prediction.shape:
            return None
        return sample_pixels(self._truth.numbers)

    @property
    def prediction(self) -> Optional[Array]:
        """The first map of the prediction."""
        return self._prediction

    @property
    def sample(self) -> Optional[Tuple[Size, Array]]:
        """The size of the maps, and the labels that are compared; None where they cannot be."""
        if self._sample is None or self._prediction is None or self._prediction.ndim != 2:
            return None
        height, width = self._prediction.shape
        return (height, width), sample_pixels(self._prediction)

    def measure(self, change: Callable[[Array], Array] = keep_pixels) -> Optional[float]:
        """Return the Rand index of the changed prediction, adjusted for chance; None where it is undefined."""
        return None if self._sample is None else self.compare(self._sample, change)

    def compare(self, truth: Array, change: Callable[[Array], Array] = keep_pixels) -> Optional[float]:
        """Return the same with the sampled labels of another truth."""
        return self._compare(truth, change, oddly=False)

    def _compare(self, truth: Array, change: Callable[[Array], Array], *, oddly: bool) -> Optional[float]:
        if self._sample is None or self._prediction is None or self._prediction.ndim != 2:
            return None
        predicted = sample_pixels(change(self._prediction), oddly=oddly)
        pairs = backend().count_label_pairs(LabelMap(truth), LabelMap(predicted))
        areas = (pairs.pixels, *(_sum_areas(labels, pairs.pixels) for labels in (pairs.truth, pairs.prediction)))
        both, of_truth, of_prediction = (int(np.square(pixels).sum()) for pixels in areas)
        by_chance, maximum = of_truth * of_prediction / (truth.size * truth.size), (of_truth + of_prediction) / 2
        return (both - by_chance) / (maximum - by_chance) if maximum > by_chance else None

    @cached_property
    def agreement(self) -> Optional[float]:
        """How well the maps agree as sent."""
        return self.measure()

    @cached_property
    def _is_uniform(self) -> bool:
        """Whether all sampled pixels of the prediction have one label."""
        if self.sample is None:
            return False
        _, labels = self.sample
        return bool((labels == labels[0, 0]).all())

    def improve(self, change: Callable[[Array], Array]) -> bool:
        """Return whether a change of the prediction's pixels makes, or may make, the maps agree much better."""
        if self._truth is not None and self._is_uniform:  # an even distance misses half of stripes
            truth = sample_pixels(self._truth.numbers, oddly=True)
            before, after = (self._compare(truth, undo, oddly=True) for undo in (keep_pixels, change))
        else:
            before, after = self.agreement, self.measure(change)
        return before is None or after is None or after > max(_RELATED, _GAIN * before)

    def add_masks(self, truth: FrameMasks, predicted: FrameMasks, size: Size) -> None:
        """Keep the masks of some frames, the truth's and the predicted ones."""
        self._masks = truth, predicted, size

    @cached_property
    def _mask_agreement(self) -> Dict[str, float]:
        """How well the masks agree as sent, and by the name of each way to rearrange them."""
        if self._masks is None:
            return {}
        from .few_masks import measure_agreement  # few submissions need it

        changes = {"": keep_place, **PLACES, **_MORE_PLACES}
        return dict(zip(changes, measure_agreement(*self._masks, list(changes.values()))))

    def improve_masks(self, name: str) -> bool:
        """Return whether masks agree much better in this rearrangement, and about as well as in any."""
        if not self._mask_agreement:
            return False
        as_sent, after = self._mask_agreement[""], self._mask_agreement[name]
        best = max(self._mask_agreement.values())
        return after > max(_RELATED_MASKS, _MASK_GAIN * as_sent) and after >= _ABOUT_BEST * best

    @cached_property
    def displacement(self) -> Optional[Displacement]:
        """How the prediction is moved or stretched; None if it does not fit better at its true place."""
        if self._truth is None or self._prediction is None or self._sample is None or self._prediction.ndim != 2:
            return None
        from ...masks.restoration import Displacement, find_shift, try_stretch  # few submissions need it

        sides = self._truth.numbers, self._prediction
        moved = Displacement(find_shift(*sides))
        before, after = self.agreement, self.measure(moved.undo)
        if before is None or after is None:
            return None
        if after < max(_RELATED, _LESS_GAIN * before):
            moved, after = Displacement(), before
        best, _ = try_stretch(moved, after, sides, lambda displacement: self.measure(displacement.undo))
        return best or None

    def are_moved(self) -> bool:
        """Return whether the prediction seems to be moved or stretched."""
        return self.displacement is not None

    def are_blended(self) -> bool:
        """Return whether labels blend along the prediction's borders, and not along the truth's."""
        if self._truth is None or self._prediction is None or self._prediction.ndim != 2:
            return False
        from ...masks.restoration import is_blended  # few submissions need it

        return is_blended(self._prediction, self._truth.numbers)

    def are_compressed(self) -> bool:
        """Return whether the prediction is full of specks that lie in the blocks of JPEG."""
        if self._prediction is None or self._prediction.ndim != 2:
            return False
        from ...masks.restoration import is_compressed

        return is_compressed(self._prediction)

    def are_unrelated(self) -> bool:
        """Return whether the maps may show different scenes."""
        return self.agreement is None or self.agreement < _UNRELATED


def _sum_areas(labels: Array, pixels: Array) -> Array:
    """Return the pixels of each distinct label."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    areas: Array = np.add.reduceat(pixels[order], starts)
    return areas


def switch(attribute: str, *, value: object = True) -> Callable[[Any], Any]:
    """Return a function that copies a submission and sets this attribute of the copy."""

    def open_otherwise(submission: Any) -> Any:
        changed = copy.copy(submission)
        setattr(changed, attribute, value)
        return changed

    return open_otherwise


def _cut_square(pixels: Array, *, centered: bool) -> Array:
    from ...masks.restoration import cut_square  # few submissions need it, or what follows

    return cut_square(pixels, centered=centered)


def _sharpen(pixels: Array) -> Array:
    from ...masks.restoration import sharpen

    return sharpen(pixels)


def _settle(pixels: Array) -> Array:
    from ...masks.restoration import settle

    return settle(pixels)


def _smooth(pixels: Array) -> Array:
    from ...masks.restoration import smooth

    return smooth(pixels)


def _double(pixels: Array) -> Array:
    """Return the upper left quarter at twice its size."""
    for axis, side in enumerate(pixels.shape):
        pixels = pixels.take(np.arange(side) // 2, axis)
    return pixels


_FLIPPED, _PADDED = "Undo the flip before you save", "Cut off the padding before you resize to the size of the image"
#: The slip and the remedy of masks that fill a quarter of the frame.
HALVED, RESIZE = "look half as wide and high, in the upper left corner", "Resize masks to the size of the image"
#: The name, slip and remedy of each way to mirror, rotate, reshape or pad masks, and the change of pixels (height,
#: width) that undoes it.
_REARRANGEMENTS: Tuple[Tuple[str, str, str, Callable[[Array], Array]], ...] = (
    ("mirrored", "look mirrored, with left and right exchanged", _FLIPPED, lambda pixels: pixels[:, ::-1]),
    ("upside down", "look upside down", _FLIPPED, lambda pixels: pixels[::-1]),
    ("rotated", "look rotated by 180 degrees", _FLIPPED, lambda pixels: pixels[::-1, ::-1]),
    (
        "reshaped",
        "look reshaped from (width, height) to (height, width)",
        "Transpose arrays instead of reshaping them",
        lambda pixels: pixels.reshape(pixels.shape[::-1]).T,
    ),
    ("square", "look as if their images had been padded to squares", _PADDED, partial(_cut_square, centered=True)),
    (
        "corner",
        "look as if their images had been padded to squares at one side",
        _PADDED,
        partial(_cut_square, centered=False),
    ),
    ("halved", HALVED, RESIZE, _double),
)
_ROWS = "rows"


def keep_place(row: Array, column: Array, height: int, _width: int) -> Array:
    """Return the place of pixels as they are."""
    return column * height + row


def _place_reshaped(row: Array, column: Array, height: int, width: int) -> Array:
    old_row, old_column = np.divmod(column * height + row, width)
    return old_column * height + old_row


def _place_in_square(row: Array, column: Array, height: int, width: int, *, centered: bool) -> Array:
    from ...masks.restoration import cut_side

    longest = max(height, width)
    rows, columns = (cut_side(*side, longest, centered=centered) for side in ((row, height), (column, width)))
    return columns * height + rows


#: The place in run lengths of pixels (row, column) of frames (height, width) that are rearranged, by these names.
PLACES: Dict[str, Callable[[Array, Array, int, int], Array]] = {
    _ROWS: lambda row, column, _, width: row * width + column,
    "mirrored": lambda row, column, height, width: (width - 1 - column) * height + row,
    "upside down": lambda row, column, height, _: column * height + height - 1 - row,
    "rotated": lambda row, column, height, width: (width - 1 - column) * height + height - 1 - row,
    "halved": lambda row, column, height, _: column // 2 * height + row // 2,
}
#: The same by all further names.
_MORE_PLACES: Dict[str, Callable[[Array, Array, int, int], Array]] = {
    "reshaped": _place_reshaped,
    "square": partial(_place_in_square, centered=True),
    "corner": partial(_place_in_square, centered=False),
}
#: The minimum score of rearranged masks, and of masks of other images, once corrected.
_LEAST_MEANT = 0.5


#: The name of the reading of maps that are moved or stretched, and the minimum ratio of its scores.
MOVED, TIMES_MOVED = "moved", 1.1
#: The names of what is noted beside these: the pixels along x and y, or the ratios along x and y, and the places of the
#: frame's start in shares of its sides.
MOVED_BY, STRETCHED_BY, STARTS_AT = "moved by", "stretched by", "starts at"


def is_moved(scores: Mapping[str, Tuple[float, float]]) -> bool:
    """Return whether the scores of a unit note how its maps are moved or stretched."""
    return MOVED_BY in scores or STRETCHED_BY in scores


def list_rearrangements(
    noun: str,
    open_changed: Callable[[Callable[[Array], Array], Any], Any],
    masks: str = "masks",
    times: float = Reading.times,
) -> List[Reading]:
    """Return the readings of masks that are mirrored, reshaped or padded; a function copies the submission, given the
    change that undoes it.
    """
    return [
        Reading(name, f"{masks} {slip}", remedy, noun, partial(open_changed, change), _LEAST_MEANT, times)
        for name, slip, remedy, change in _REARRANGEMENTS
    ]


def open_changed(change: Callable[[Array], Array], submission: Any) -> Any:
    """Return a copy of a submission whose `read` returns changed pixels."""

    def read(*arguments: Any) -> Optional[Array]:
        labels = submission.read(*arguments)
        return None if labels is None else np.ascontiguousarray(change(labels))

    return switch("read", value=read)(submission)


def read_rearranged(noun: str, masks: str = "masks", times: float = Reading.times) -> List[Reading]:
    """Return the readings of masks, which the submission's `read` returns, that are mirrored, reshaped or padded."""
    readings = list_rearrangements(noun, open_changed, masks, times)
    moved = Reading(MOVED, masks, "", noun, lambda submission: submission, times=TIMES_MOVED)
    moved = replace(moved, fits=FirstMaps.are_moved, open_moved=_move_back)
    return [
        *(
            replace(reading, fits=partial(FirstMaps.improve, change=change))
            for reading, (*_, change) in zip(readings, _REARRANGEMENTS)
        ),
        moved,
    ]


def _move_back(maps: FirstMaps, submission: Any) -> Any:
    return open_changed(maps.displacement.undo, submission) if maps.displacement else submission


def read_blended(noun: str, masks: str) -> Reading:
    """Return the reading of maps whose labels blend along borders."""
    return Reading(
        "blended", f"labels of {masks} blend along borders, as if resized with interpolation",
        "Resize labels by nearest neighbour", noun, partial(open_changed, _sharpen),
        times=_TIMES_SHARPENED, fits=FirstMaps.are_blended,
    )  # fmt: skip


#: The minimum ratio of the scores of sharpened maps.
_TIMES_SHARPENED = 1.03


def read_compressed(noun: str, masks: str) -> List[Reading]:
    """Return the readings of maps with the noise that JPEG leaves along borders."""
    return [
        Reading(
            name, f"labels of {masks} waver along borders, as after JPEG compression",
            "Write labels as PNG at once, never through JPEG", noun, partial(open_changed, change),
            times=_TIMES_SMOOTHED, fits=FirstMaps.are_compressed,
        )
        for name, change in (("compressed", _settle), ("smoothed", _smooth))
    ]  # fmt: skip


#: The minimum ratio of the scores of smoothed maps: what JPEG removed does not return.
_TIMES_SMOOTHED = 1.01


def read_neighbours(
    masks: str,
    times: float = Reading.times,
    *,
    subject: str = "",
    remedy: str = "",
    method: str = "read",
    noun: str = "image",
) -> List[Reading]:
    """Return the readings of maps that belong to the unit before or after theirs, by a method of the submission."""

    def open_rearranged(rearrange: Callable[[List[str]], List[str]], submission: Any) -> Any:
        names = submission.truth.item_names
        sources = dict(zip(names, rearrange(names)))

        def read(name: str, *arguments: Any) -> Any:
            return getattr(submission, method)(sources.get(name, name), *arguments)

        return switch(method, value=read)(submission)

    def open_neighbours(step: int, submission: Any) -> Any:
        return open_rearranged(lambda names: [*names[step:], *names[:step]], submission)

    subject, remedy = subject or f"each of the {masks}", remedy or f"Check the numbers in the names of {masks}"
    readings = [
        *list_neighbours(subject, noun, remedy, open_neighbours, _LEAST_MEANT, times),
        *(
            Reading(
                name,
                f"{subject} looks {slip.format(noun=noun)}",
                remedy,
                noun,
                partial(open_rearranged, rearrange),
                _LEAST_MEANT,
                times,
            )
            for name, slip, rearrange in _EXCHANGES
        ),
    ]
    return [replace(reading, fits=FirstMaps.are_unrelated, few=True) for reading in readings]


def _exchange_pairs(names: List[str]) -> List[str]:
    """Return the first name and the second one exchanged, and so on."""
    pairs = [names[start : start + 2][::-1] for start in range(0, len(names), 2)]
    return [name for pair in pairs for name in pair]


#: The name and slip of each way to exchange units, and the units whose maps are read instead.
_EXCHANGES: Tuple[Tuple[str, str, Callable[[List[str]], List[str]]], ...] = (
    ("pairs", "exchanged with the one beside it, in pairs", _exchange_pairs),
    ("backwards", "as if the order of {noun}s were reversed", lambda names: names[::-1]),
)


def list_neighbours(
    subject: str, noun: str, remedy: str, open_neighbours: Callable[[int, Any], Any], least: float, times: float
) -> List[Reading]:
    """Return the readings of the units before and after; a function copies the submission, given the step back."""
    return [
        Reading(
            side, describe_neighbour(subject, noun, side), remedy, noun, partial(open_neighbours, step), least, times
        )
        for side, step in (("before", 1), ("after", -1))
    ]


def describe_neighbour(subject: str, noun: str, side: str) -> str:
    """Return the sentence on units that seem to be those before or after."""
    return f"{subject} looks as if it belonged to the {noun} {side} its own"


def read_rewritten(noun: str) -> List[Reading]:
    """Return the readings of run lengths whose pixels (height, width) the submission's `change` changes."""

    def open_changed(change: Callable[[Array], Array], submission: Any) -> Any:
        return switch("change", value=change)(submission)

    turned = read_turned(noun, partial(open_changed, run_lengths.turn_pixels))
    return [turned, *list_rearrangements(noun, open_changed)]


def read_rewritten_frames(noun: str) -> List[Reading]:
    """Return the same readings of masks of videos: few frames are rewritten, in the way that makes samples agree."""
    return [
        replace(reading, few_frames=True, fits=partial(FirstMaps.improve_masks, name=reading.name))
        for reading in read_rewritten(noun)
    ]


def read_turned(noun: str, open_turned: Callable[[Any], Any], times: float = Reading.times) -> Reading:
    """Return the reading of row-wise run lengths; a function copies the submission."""
    slip = "run lengths look as if written row by row"
    return Reading(_ROWS, slip, ENCODE_COLUMNS, noun, open_turned, times=times)


ENCODE_COLUMNS = "Encode np.asfortranarray(mask), column by column"


#: Reading -> a unit's score as submitted, and its score by that reading.
ReadingScores = Dict[str, Tuple[float, float]]
#: Every third unit is examined again, at least two of several and up to a maximum, and about this many by readings that
#: open other files.
_EVERY, _FEWEST_UNITS, _MOST_UNITS, _FEW_UNITS = 3, 2, 16, 4
#: The minimum score of the only one of several units that scores low.
_CERTAIN = 0.95
#: The maximum number of few units that must all score more.
_MOST_UNANIMOUS = 3


def choose_units(count: int) -> FrozenSet[int]:
    """Return evenly spread indices of the units to count again if they score close to 0."""
    few = max(min(_FEWEST_UNITS, count), min(_MOST_UNITS, count // _EVERY))
    return frozenset(spread_evenly(few, count)) if count else frozenset()


def spread_evenly(few: int, count: int) -> List[int]:
    """Return few of the indices below a count, evenly spread."""
    return [(2 * number + 1) * count // (2 * few) for number in range(few)]


#: The maximum number of units that are all compared with each other's truths; of more, some are, with so many around
#: them.
_MOST_COMPARED, _AROUND = 96, 16
#: The maximum ratio of the fit with the second best truth to that with the best.
_SECOND = 0.7


def choose_compared(count: int, limit: int = _MOST_COMPARED) -> FrozenSet[int]:
    """Return the indices of the units that are compared with the truths of others if they fit their own badly."""
    return frozenset(range(count)) if count <= limit else choose_units(count)


def list_around(number: int, count: int, limit: int = _MOST_COMPARED) -> List[int]:
    """Return the indices of the other units with whose truths a unit is compared."""
    around = (0, count) if count <= limit else (max(0, number - _AROUND), min(count, number + _AROUND))
    return [neighbour for neighbour in range(*around) if neighbour != number]


#: The name of the score by which masks of units are compared with other truths, and the fit with their own below which
#: they are.
OVERALL_IOU, LOW_FIT = "the IoU over all pixels", 0.4
#: The minimum fit with another truth, the minimum ratio to that with their own, and the minimum of a single unit.
_FITTING, _TIMES_FIT, _CERTAIN_FIT = 0.5, 2.0, 0.75


def least_fit(before: float) -> float:
    """Return the minimum fit of masks otherwise, given their fit as sent."""
    return max(_FITTING, _TIMES_FIT * before)


def find_fit(fits: Mapping[int, float], least: float) -> Optional[int]:
    """Return the unit whose truth fits at least so well, and clearly better than any other; None without one."""
    second, best = sorted([0.0, 0.0, *fits.values()])[-2:]
    if best < least or second > _SECOND * best:
        return None
    return next(number for number, fit in fits.items() if fit == best)


def list_moved(scores: Mapping[str, ReadingScores], prefix: str) -> List[Tuple[str, str, Tuple[float, float]]]:
    """Return units and those whose truths they fit, as readings with a prefix name them, with their fit with both."""
    return [
        (name, reading[len(prefix) :], pair)
        for name, unit in scores.items()
        for reading, pair in unit.items()
        if reading.startswith(prefix)
    ]


def judge_moved(
    moved: Sequence[Tuple[str, str, Tuple[float, float]]], slip: str, metric: str, remedy: str
) -> List[str]:
    """Return a suspicion if units, as `list_moved` lists them, fit others, each another one."""
    if not moved or any(len({*names}) < len(moved) for names in list(zip(*moved))[:2]):
        return []
    if len(moved) == 1 and moved[0][-1][-1] < _CERTAIN_FIT:
        return []  # masks of a method that fails may resemble those of another unit
    before, after = (math.fsum(column) / len(moved) for column in zip(*(pair for *_, pair in moved)))
    pairs = name_list([f"those of {name} fit {source}" for name, source, _ in moved])
    return [f"{slip}, {pairs}: {describe_gain(metric, before, after)}. {remedy}"]


def choose_few(units: Collection[int]) -> FrozenSet[int]:
    """Return some of the chosen units, evenly spread."""
    return frozenset(sorted(units)[:: max(1, len(units) // _FEW_UNITS)])


def score_readings(
    score: Optional[float], readings: Sequence[Reading], score_otherwise: Callable[[Reading], Optional[float]]
) -> ReadingScores:
    """Return a low-scoring unit's scores by other readings; empty if its score is not low."""
    if score is None:
        return {}
    scores_otherwise = {reading.name: score_otherwise(reading) for reading in readings if score * reading.times < 1}
    return {name: (score, after) for name, after in scores_otherwise.items() if after is not None}


def may_explain(reading: Reading, failures: Optional[Mapping[str, int]]) -> bool:
    """Return whether a reading that is tried on few units may explain them, given how many scored no more by it."""
    return failures is not None and failures.get(reading.name, 0) <= 1


def note_failures(reading_scores: ReadingScores, failures: Dict[str, int]) -> None:
    """Count the readings by which a unit scores no more."""
    for name, (before, after) in reading_scores.items():
        failures[name] = failures.get(name, 0) + (after <= before)


def judge_readings(
    reading_scores: Sequence[ReadingScores], count: int, readings: Sequence[Reading], metric: str
) -> List[str]:
    """Return the mistake that best explains the low scores of the units counted again."""
    best: Tuple[float, str] = (0.0, "")
    units = choose_units(count)
    for reading in readings:
        if reading.open_moved:
            continue
        scores = [unit[reading.name] for unit in reading_scores if reading.name in unit]
        tried = choose_few(units) if reading.few else units
        # One of several units that scores low, or whose few samples fit another order, proves nothing.
        fewest = max(min(_FEWEST_UNITS, max(1, count // _EVERY)), math.ceil(0.5 / reading.share))
        if len(scores) < max(fewest, math.ceil(reading.share * len(tried))):
            continue
        # Of few units, one may be the last image, but a lucky mean proves nothing.
        if reading.few and sum(after <= before for before, after in scores) > (len(scores) > _MOST_UNANIMOUS):
            continue
        before, after = (math.fsum(column) / len(scores) for column in zip(*scores))
        if len(scores) == 1 < count and after < _CERTAIN:
            continue
        if after > max(best[0], reading.times * before) and after >= reading.least:
            scope = f"(tried on {quantity(len(scores), reading.noun, count)})"
            gain = describe_gain(reading.metric or metric, before, after)
            line = f"{reading.slip}: {gain} {scope}. {reading.remedy}"
            best = after, line
    return [best[1]] if best[1] else []


def describe_gain(metric: str, before: float, after: float) -> str:
    """Return the clause that states a score before and after a correction."""
    return f"corrected, {metric} would be {after:.2f} instead of {before:.2f}"


def encode_reading_scores(reading_scores: ReadingScores) -> Dict[str, Dict[str, List[float]]]:
    """Return the header entry of the rescored units; empty if there are none."""
    return {"looks": {name: list(scores) for name, scores in reading_scores.items()}} if reading_scores else {}


def decode_reading_scores(header: Mapping[str, Any]) -> ReadingScores:
    """Return the scores by readings of a header; raises ValueError for malformed ones."""
    reading_scores = {str(name): tuple(scores) for name, scores in header.get("looks", {}).items()}
    for scores in reading_scores.values():
        if len(scores) != 2 or not all(type(score) is float and math.isfinite(score) for score in scores):
            raise ValueError("has comparisons that are not two scores each")
    return {name: (scores[0], scores[1]) for name, scores in reading_scores.items()}
