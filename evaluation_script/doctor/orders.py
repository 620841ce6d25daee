"""Slips of order: frames that are late, early or reversed, and units or objects that are exchanged."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..files import name_list
from .samples import PIXELS, Examination, Sample, choose_further, keep_frames
from .slip import Cure, Slip, shape_of

_NAMES = "Check the numbers in the names of frames"
#: The fit with their own truth below which units may be exchanged, the minimum fit with another one, and the maximum
#: ratio of the fits with the second best truth and the best.
MISFIT, _FITTING, _SECOND = 0.4, 0.6, 0.75
#: Where nearly all units fit another one alone: the minimum fit, the maximum ratio of the second best, and their share.
_ALONE, _NO_SECOND, _NEARLY_ALL = 0.25, 0.2, 0.75
#: Where volumes are alike: the fit with their own truth below which they may be exchanged, and the share of the misfits
#: with their own truth and with the second best that remains at most with another one.
_ALIKE, _REMAINS = 0.8, 0.3
#: The pixels of a frame that are compared with all others.
_PIXELS = 1 << 10
#: The share of exchanged units that must follow an order for it to be named.
_ORDERLY = 0.75
#: The minimum frames of a video that show frames late by more than one.
_SHORTEST = 8
#: What another order counts more than a movement, which explains it as well if everything moves alike.
_LEAD = 0.05
#: The minimum number of exchanged answers, without two for each right one, if a weak method confuses objects.
_FEWEST = 4


def _take_frames(source: Callable[[int, int], int]) -> Callable[[Examination, Sequence[Sample]], Optional[Cure]]:
    """Return the cure that gives each frame the prediction of another one, by its position and the number of frames."""

    def cure(_examination: Examination, samples: Sequence[Sample]) -> Optional[Cure]:
        predictions: List[List[Any]] = []
        for sample in samples:
            shown: Dict[int, Any] = dict(zip(sample.frames, sample.prediction))
            predictions.append([shown.get(source(frame, sample.total)) for frame in sample.frames])
        return Cure(predictions, lead=_LEAD)

    return cure


def _shift_frames(places: int) -> Slip:
    """Return the slip of frames that are late by so many places, or early."""
    side, shortest = "before" if places > 0 else "after", 1 if abs(places) == 1 else _SHORTEST
    where = f"the frame {side} its own" if abs(places) == 1 else f"the frame {abs(places)} places {side} its own"
    sentence = f"each frame of the {{content}} looks as if it belonged to {where}"
    cure = _take_frames(lambda frame, count: frame + places if count >= shortest else -1)
    return Slip(sentence, _NAMES, frozenset({"frames"}), cure, times=math.inf)


FRAME_SLIPS = [
    *map(_shift_frames, (1, -1, 2, -2, 3, -3)),
    Slip(
        "the order of frames looks reversed", "Give the first frame's prediction the first frame's name",
        frozenset({"frames"}), _take_frames(lambda frame, count: count - 1 - frame), times=1.2,
    ),
]  # fmt: skip


class _Entry(NamedTuple):
    """A sample, and its first frames with few pixels."""

    sample: Sample
    truth: List[Any]
    prediction: List[Any]


def find_exchanged(examination: Examination, samples: Sequence[Sample]) -> Optional[Cure]:
    """Give units and objects the predictions of those whose truths they fit far better than their own."""
    further = choose_further(len(examination.names))
    entries = [_enter(examination, sample) for sample in samples]
    pairs = _pair(examination, entries)
    if pairs and len(pairs) < len(entries) and further:
        more = (sample for number in further for sample in examination.sample(number) if sample.truth)
        entries += [_enter(examination, examination.shrink(sample, PIXELS)) for sample in more]
        pairs = _pair(examination, entries)
    right = [entry for entry in entries if examination.measure(entry.truth, entry.prediction) >= _FITTING]
    if len(pairs) < (_FEWEST + 2 * len(right) if "questions" in examination.traits else 2):
        return None
    # A truth outside the first samples is scored no less.
    predictions = [[None] * len(sample.truth) for sample in samples]
    for source, target in pairs:
        if target < len(samples):
            predictions[target] = entries[source].sample.prediction
    moved = [(entries[source], entries[target]) for source, target in pairs]
    return Cure(predictions, _describe(examination, moved))


def _enter(examination: Examination, sample: Sample) -> _Entry:
    few = examination.shrink(keep_frames(sample, sample.prediction, range(min(2, len(sample.truth)))), _PIXELS)
    return _Entry(sample, few.truth, few.prediction)


def _pair(examination: Examination, entries: List[_Entry]) -> List[Tuple[int, int]]:
    """Return entries and those whose truth their predictions fit, each another one."""
    pairs, alone = [], []
    for number, entry in enumerate(entries):
        own_fit = examination.measure(entry.truth, entry.prediction)
        if own_fit >= (_ALIKE if "voxels" in examination.traits else MISFIT):
            continue
        alike = [
            candidate
            for candidate, target in enumerate(entries)
            if [*map(shape_of, target.sample.truth[:2])] == [*map(shape_of, entry.sample.prediction[:2])]
        ]
        fits = {candidate: examination.measure(entries[candidate].truth, entry.prediction) for candidate in alike}
        second, best = sorted([0.0, 0.0, *fits.values()])[-2:]
        is_other = own_fit < MISFIT and best >= max(_FITTING, 2 * own_fit) and second <= _SECOND * best
        pair = number, max(fits, key=lambda candidate: fits[candidate])
        if is_other or 1 - best <= _REMAINS * (1 - max(own_fit, second)):
            pairs.append(pair)
        if best >= _ALONE and max(own_fit, second) <= _NO_SECOND * best:
            alone.append(pair)
    pairs, alone = map(_keep_single, (pairs, alone))
    return max(pairs, alone if len(alone) >= _NEARLY_ALL * len(entries) else [], key=len)


def _keep_single(pairs: List[Tuple[int, int]]) -> List[Tuple[int, int]]:
    """Return pairs without those of one target."""
    targets = [target for _, target in pairs]
    return [pair for pair in pairs if targets.count(pair[1]) == 1]


def _describe(examination: Examination, moved: Sequence[Tuple[_Entry, _Entry]]) -> str:
    """Return how units are exchanged: by one, in pairs, in reverse order, or which for which."""
    count, noun = len(examination.names), examination.noun
    orders: Tuple[Tuple[Callable[[int], int], str], ...] = (
        (lambda unit: unit + 1, f"each looks as if it belonged to the {noun} after its own"),
        (lambda unit: unit - 1, f"each looks as if it belonged to the {noun} before its own"),
        (lambda unit: unit ^ 1, "each looks exchanged with the one beside it, in pairs"),
        (lambda unit: count - 1 - unit, f"the order of {noun}s looks reversed"),
    )
    for follow, words in orders:
        if len(moved) > 2 and sum(follow(a.sample.unit) == b.sample.unit for a, b in moved) >= _ORDERLY * len(moved):
            return words
    fits = name_list([f"those of {a.sample.name} fit {b.sample.name}" for a, b in moved], 3)
    return f"some look exchanged, {fits}"


EXCHANGED = Slip(
    "{content}: {detail}", "Check which {noun} each of them belongs to", frozenset({"units"}), find_exchanged,
)  # fmt: skip
