"""The diagnosis: it tries the table's slips on a sample, and names the best one if the signs are sure."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from ..files import quantity
from ..masks.stack import Array
from .fits import count_pairs, fit_flags
from .orders import EXCHANGED, MISFIT
from .samples import PIXELS, Examination, Sample, choose_units, keep_frames, pool_frames, thin
from .slip import Cure, Slip
from .table import SLIPS

#: The number of units on which slips are tried first, and the gain without which one is not tried on the others.
_FEW, _PROMISING = 4, 1.1
#: The fit from which a sample shows no slip, and the share of the others that must fit better without it.
_GOOD, _MOST = 0.9, 0.75
#: The same share where a weak method confuses objects, such as the left one and the right one.
_NEARLY_MOST = 0.9
#: The share of the misfit that remains at most where a slip clearly explains it.
_CLEARLY = 0.5
#: The share that remains at most, and the minimum ratio of the fits, where hardly any lesion fits as sent.
_PARTLY, _MANY_TIMES = 0.75, 8
#: The fit up to which nothing matches.
_NOTHING = 0.01
#: Masks cover everything if they hold this share of the objects' pixels, and at least this many times as many in all.
_NEARLY_ALL, _TIMES_AS_LARGE = 0.99, 4
#: The minimum IoU of all objects together if they seem to have one label.
_ALL_TOGETHER = 0.6
#: The minimum number of labels that are grey levels, the minimum of the largest, and the number of all levels.
_FEWEST_LEVELS, _WHITE, _LEVELS = 64, 248, 256
#: The grey above which a pixel belongs to an object.
_MIDDLE = 127
#: The bits of labels that are shown as they were written.
_LABEL_BITS = 16


class _Diagnosis(NamedTuple):
    """A slip whose signs are sure: without it, the mean fit of the samples that tell, and their fit as sent."""

    slip: Slip
    cure: Cure
    changed: List[int]
    fit: float
    fit_as_sent: float


class _Samples(NamedTuple):
    """The samples of a submission: all frames with few pixels and their fits as sent, and one about the middle."""

    thinned: List[Sample]
    fits: List[float]
    middle: List[Sample]


def diagnose(examination: Examination) -> List[str]:
    """Return the sentence on the slip that explains low scores; empty if none surely does."""
    lines = _diagnose(examination)
    return lines if lines or examination.otherwise is None else diagnose(examination.otherwise)


def _diagnose(examination: Examination) -> List[str]:
    units = choose_units(len(examination.names))
    few = units[:: len(units) // _FEW] if len(units) > 2 * _FEW else units
    samples = _Samples([], [], [])
    _add_samples(examination, samples, few)
    slips = [slip for slip in SLIPS if slip.traits <= examination.traits]
    if len(few) < len(units) and samples.thinned:
        slips = _list_promising(examination, samples, slips)
        if not slips and not _may_need_all(examination, samples):
            return _judge_all(examination, samples, [])
    _add_samples(examination, samples, sorted({*units} - {*few}))
    return _judge_all(examination, samples, slips)


def _list_promising(examination: Examination, samples: _Samples, slips: Sequence[Slip]) -> List[Slip]:
    """Return the slips whose change raises the fits of few units a little."""
    promising, of_middle = [], _fit_middle(examination, samples, slips)
    for slip in slips:
        chosen, fits = (samples.middle, of_middle) if slip.whole else (samples.thinned, samples.fits)
        cure = slip.cure(examination, chosen)
        if cure is not None:
            _, before, after = _compare(examination, chosen, cure, fits)
            promising += [slip] if sum(after) >= _PROMISING * sum(before) else []
    return promising


def _may_need_all(examination: Examination, samples: _Samples) -> bool:
    """Return whether few units leave it open if others have a slip, or have the predictions of each other."""
    fits = samples.fits
    is_good, is_odd = min(fits) >= _GOOD, 2 * sum(fit < MISFIT for fit in fits) >= len(fits)
    return is_good or is_odd or bool(_judge_constant(examination, samples.thinned))


def _judge_all(examination: Examination, samples: _Samples, slips: Sequence[Slip]) -> List[str]:
    """Return the sentence on the slip of samples, of these that change them, and others."""
    thinned, as_sent = samples.thinned, samples.fits
    if not thinned:
        return []
    if sum(as_sent) >= _GOOD * len(thinned):
        return _judge_numbers(examination, samples.middle)
    constant = _judge_constant(examination, thinned) and _judge_constant(examination, samples.middle)  # all pixels
    if constant:
        return constant
    sure, of_middle = [], _fit_middle(examination, samples, slips)
    for slip in slips:
        chosen, fits = (samples.middle, of_middle) if slip.whole else (thinned, as_sent)
        sure += _try(examination, slip, chosen, fits)
    if not sure and EXCHANGED.traits <= examination.traits:
        sure = _try(examination, EXCHANGED, thinned, as_sent)
    if sure:
        best = max(sure, key=lambda diagnosis: diagnosis.fit + diagnosis.cure.lead)
        return [_describe(examination, best, samples)]
    whole = _judge_labels(examination, thinned) or _judge_numbers(examination, samples.middle)
    whole = whole or _judge_cover(examination, thinned)
    return whole or _judge_nothing(examination, thinned, as_sent)


def _add_samples(examination: Examination, samples: _Samples, units: Sequence[int]) -> None:
    for unit in units:
        for sample in examination.sample(unit):
            if sample.truth:
                few = examination.shrink(sample, PIXELS)
                samples.thinned.append(few)
                samples.fits.append(examination.measure(few.truth, few.prediction))
                position = (1 + unit % 3) * len(sample.truth) // 4  # masks that drift are moved otherwise in each
                samples.middle.append(keep_frames(sample, sample.prediction, [position]))


def _fit_middle(examination: Examination, samples: _Samples, slips: Sequence[Slip]) -> List[float]:
    """Return the fits of the frames about the middle as sent, if a slip needs them."""
    return [_measure(examination, sample) for sample in samples.middle] if any(slip.whole for slip in slips) else []


def _measure(examination: Examination, sample: Sample) -> float:
    few = examination.shrink(sample, PIXELS)
    return examination.measure(few.truth, few.prediction)


def _try(examination: Examination, slip: Slip, samples: Sequence[Sample], as_sent: Sequence[float]) -> List[_Diagnosis]:
    """Return a slip as a finding if its signs are sure."""
    cure = slip.cure(examination, samples)
    if cure is None:
        return []
    changed, before, after = _compare(examination, samples, cure, as_sent)
    doubtful = [pair for pair in zip(before, after) if min(pair) < _GOOD]
    better = sum(new > old for old, new in doubtful)
    if not doubtful or better < (_NEARLY_MOST if "questions" in examination.traits else _MOST) * len(doubtful):
        return []
    old, new = sum(before) / len(changed), sum(after) / len(changed)
    loss = (1 - new) / max(1 - old, _NOTHING)
    is_sure = new >= slip.least and (loss <= _CLEARLY or (new >= slip.times * old and loss <= slip.remains))
    if "voxels" in examination.traits:
        is_sure |= loss <= _PARTLY and new >= max(_MANY_TIMES, slip.times) * old
    return [_Diagnosis(slip, cure, changed, new, old)] if is_sure else []


def _compare(
    examination: Examination, samples: Sequence[Sample], cure: Cure, as_sent: Sequence[float]
) -> Tuple[List[int], List[float], List[float]]:
    """Return the samples that a cure changes, and their fits before and after."""
    changed: List[int] = []
    before: List[float] = []
    after: List[float] = []
    for number, (sample, frames) in enumerate(zip(samples, cure.predictions)):
        places = [position for position, frame in enumerate(frames) if frame is not None]
        if places:
            changed.append(number)
            fit_as_sent = as_sent[number]
            if len(places) < len(frames):
                fit_as_sent = _measure(examination, keep_frames(sample, sample.prediction, places))
            before.append(fit_as_sent)
            after.append(_measure(examination, keep_frames(sample, frames, places)))
    return changed, before, after


def _describe(examination: Examination, diagnosis: _Diagnosis, samples: _Samples) -> str:
    """Return the sentence on a slip with the score of the samples without it."""
    metric, before, after = examination.agreement, diagnosis.fit_as_sent, diagnosis.fit
    slip = diagnosis.slip
    words = {"content": examination.content, "noun": examination.noun, "labels": examination.labels}
    words["detail"] = diagnosis.cure.detail
    again = _score_again(examination, slip, samples.middle) if examination.rescore is not None else None
    if again is not None:
        metric, before, after = (examination.metric, *again)
    units = len({samples.thinned[number].unit for number in diagnosis.changed})
    scope = f"(tried on {quantity(units, examination.noun, len(examination.names))})"
    gain = f"corrected, {metric} would be {after:.2f} instead of {before:.2f}"
    return f"{slip.sentence.format(**words)}: {gain} {scope}. {slip.remedy.format(**words)}"


def _score_again(examination: Examination, slip: Slip, samples: Sequence[Sample]) -> Optional[Tuple[float, float]]:
    """Return the score of a frame of each sample as sent and without a slip, if it needs no other frames or units."""
    cure = slip.cure(examination, samples) if slip is not EXCHANGED else None
    if cure is None or examination.rescore is None or any(frame is None for (frame,) in cure.predictions):
        return None
    cured = [sample._replace(prediction=frames) for sample, frames in zip(samples, cure.predictions)]
    before, after = examination.rescore(samples), examination.rescore(cured)
    return None if before is None or after is None or after <= before else (before, after)


# ── what no change puts right ───────────────────────────────────────────────


def _judge_constant(examination: Examination, samples: Sequence[Sample]) -> List[str]:
    """Return a sentence if all predicted pixels have one value, or all pictures lack predictions."""
    check = f"check the {examination.labels}"
    if not isinstance(samples[0].truth[0], np.ndarray):
        if any(len(frame.places) for sample in samples for frame in sample.prediction):
            return []
        return [f"there are no {examination.content} in {quantity(len(samples), examination.noun)} tried: {check}"]
    true, predicted = _list_labels(examination, samples)
    if len(predicted) != 1 or len(true) < 2:
        return []
    (label,) = predicted
    if label == 0 and "masks" in examination.traits:
        return [f"all {examination.content} are empty: {check}, and that the results were written"]
    value = f" ({label})" if examination.label_bits > _LABEL_BITS else ""
    return [f"all places of the {examination.content} have the same value{value}: {check}"]


def _list_labels(examination: Examination, samples: Sequence[Sample]) -> Tuple[Set[int], Set[int]]:
    true: Set[int] = set()
    predicted: Set[int] = set()
    for sample in samples:
        pairs = count_pairs(sample.truth, [*map(examination.keep_labels, sample.prediction)])
        true.update(pairs.true[pairs.table.any(axis=1)].tolist())
        predicted.update(pairs.predicted[pairs.table.any(axis=0)].tolist())
    return true, predicted


def _judge_labels(examination: Examination, samples: Sequence[Sample]) -> List[str]:
    """Return a sentence if all objects have one label, though the truth has several, or if labels are grey levels."""
    if not {"masks", "labels"} <= examination.traits or not isinstance(samples[0].truth[0], np.ndarray):
        return []
    true, predicted = (side - {0} for side in _list_labels(examination, samples))
    if len(predicted) >= _FEWEST_LEVELS and _WHITE <= max(predicted) < _LEVELS and len(true) < len(predicted) // 2:
        remedy = "apply a threshold, and write each object's own label into its pixels, 0 elsewhere"
        return [f"{examination.content} look like grey maps, such as probabilities: {remedy}"]
    truth, prediction = pool_frames(samples)
    if len(predicted) != 1 or len(true) < 2:
        return []
    if fit_flags([np.minimum(frame, 1) for frame in truth], prediction) < _ALL_TOGETHER:
        return []
    label = min(predicted) - examination.label_shift
    fault = f"all {examination.content} have the label {label}, though the truth has {len(true)}"
    return [f"{fault}: give each object its own label"]


def _judge_numbers(examination: Examination, samples: Sequence[Sample]) -> List[str]:
    """Return a sentence if the background has a number, or objects share numbers."""
    if "segments" not in examination.traits:
        return []
    true_counts: List[int] = []
    predicted: List[Array] = []
    wide = covered = 0
    for sample in samples:
        truth, prediction = (thin(side[0], _NUMBERED).reshape(-1) for side in (sample.truth, sample.prediction))
        true_counts.append(len(np.unique(truth[truth > 0])))
        predicted.append(np.unique(prediction[prediction != 0]))
        outside = prediction[truth == 0]
        if len(outside) >= _WIDE * len(truth):
            wide += 1
            covered += 2 * int(np.unique(outside[outside != 0], return_counts=True)[1].max(initial=0)) > len(outside)
    if covered and covered >= _GOOD * wide:
        scope = f"in {quantity(covered, examination.noun, wide)} tried one number covers most of the background"
        return [f"{scope}: write 0 where there is no object"]
    crowded = [numbers for count, numbers in zip(true_counts, predicted) if count > _LAST_BYTE]
    if len(crowded) > 1 and all(int(numbers.max(initial=0)) == _LAST_BYTE for numbers in crowded):
        scope = f"{len(crowded):,} {examination.noun}s tried with more than {_LAST_BYTE} objects"
        return [f"no number is above {_LAST_BYTE} in {scope}: write maps of 16 bits"]
    number_count = max(map(len, predicted))
    if not 0 < number_count <= _FEW_NUMBERS or sum(true_counts) <= number_count * number_count * len(samples):
        return []
    true_frames, frames = pool_frames(samples)
    if fit_flags([np.minimum(frame, 1) for frame in true_frames], frames) < _ALL_TOGETHER:
        return []
    fault = f"no {examination.noun} tried has more than {quantity(number_count, 'number')}, though the truth has up to"
    return [f"{fault} {max(true_counts):,} objects: give each object its own number"]


#: The pixels of a frame whose numbers are listed, the minimum share of a wide background, the last number of 8 bits,
#: and how many numbers suggest classes, such as cell and outline.
_NUMBERED, _WIDE, _LAST_BYTE, _FEW_NUMBERS = 1 << 18, 0.25, 255, 2


def _judge_cover(examination: Examination, samples: Sequence[Sample]) -> List[str]:
    """Return a sentence if masks cover nearly all pixels of objects, and many more."""
    traits = examination.traits
    if not {"masks", "greys"} & traits or "segments" in traits or not isinstance(samples[0].truth[0], np.ndarray):
        return []
    sums = np.zeros(3)
    for sample in samples:
        for truth, prediction in zip(sample.truth, sample.prediction):
            bright = prediction > _MIDDLE if "greys" in traits else prediction != 0
            inside, filled = truth > 0, bright & (truth >= 0)
            sums += np.count_nonzero(inside), np.count_nonzero(filled), np.count_nonzero(inside & filled)
    true, predicted, shared = sums.tolist()
    if not true or shared < _NEARLY_ALL * true or predicted < _TIMES_AS_LARGE * true:
        return []
    times = f"{predicted / true:,.0f} times as many pixels in all"
    return [f"{examination.content} cover the objects and {times}: check the threshold, and that the background is 0"]


def _judge_nothing(examination: Examination, samples: Sequence[Sample], as_sent: Sequence[float]) -> List[str]:
    """Return a sentence if nothing matches, or classes match only as often as by chance."""
    noun, which = examination.noun, f"which {examination.noun} each belongs to"
    if max(as_sent) <= _NOTHING:
        fault = f"nothing in the {examination.content} of {quantity(len(as_sent), noun)} tried matches the truth"
        return [f"{fault}: check the {examination.labels}, and {which}"]
    if not {"filled", "labels"} <= examination.traits:
        return []
    truth, prediction = pool_frames(samples)
    pairs = count_pairs(truth, [*map(examination.keep_labels, prediction)])
    total = max(1, int(pairs.table.sum()))
    same = pairs.true[:, None] == pairs.predicted
    right = int(pairs.table[same].sum()) / total
    by_chance = float((np.outer(pairs.table.sum(axis=1), pairs.table.sum(axis=0)) * same).sum()) / (total * total)
    if right > by_chance + _BEYOND_CHANCE * (1 - by_chance):
        return []
    shares = f"{100 * right:.0f} % of the compared places have the right class, as many as by chance"
    return [f"{shares}: check the {examination.labels}, and {which}"]


#: The share of what chance leaves up to which classes match as if by chance.
_BEYOND_CHANCE = 0.02
