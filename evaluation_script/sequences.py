"""A phase of mask sequences: pair truth with prediction, gather what is wrong, score.

Sequences are independent of each other and stream block by block, so peak
memory is a few frames whatever their length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import AbstractSet, Callable, Dict, List, Optional

import numpy as np

from . import summaries
from .errors import Problem, Problems, SubmissionError, listed, shown
from .mask_files import MaskFiles, SalientImages, Stacks
from .masks import Array, Stack, joined, nothing
from .matching import best_proposals
from .members import Limits
from .sequence_protocols import BESIDE, COMBINED, Missing, Objects, Protocol, Span
from .similarity import Counts, Region, boundary_similarity, disk, reach, region_similarity
from .similarity import joined as joined_counts
from .submission import Submission
from .summaries import Values
from .truth import VOID, Sequence, Split, flags_of, is_number, label_order

#: Warnings of one kind that are shown.
ALIKE = 4

#: Told before each sequence: its name, how many are done, how many there are.
Progress = Callable[[str, int, int], None]

#: LVOS leaves out objects that are seen in fewer frames.
SHORTEST_LIFE = 4


@dataclass(frozen=True)
class ObjectScore:
    """What one object of one sequence scored."""

    sequence: str
    name: str
    values: Values
    #: Frame by frame: names, J and F of the frames that counted.
    frames: List[str]
    j: Array
    f: Array
    unseen: bool = False
    #: Which proposal was matched, in protocols that match.
    proposal: int = 0


@dataclass(frozen=True)
class Life:
    """An object to be scored and the frames that may count for it."""

    name: str
    counted: Array


class Warnings:
    """Things a participant should know though the submission is scored; errors when strict."""

    def __init__(self, *, strict: bool, problems: Problems) -> None:
        self._found: Dict[str, List[str]] = {}
        self._strict, self._problems = strict, problems

    def add(self, kind: str, where: str, found: str, remedy: str) -> None:
        """Note it, or refuse it."""
        if self._strict:
            self._problems.add(Problem(where, found, remedy))
        else:
            self._found.setdefault(kind, []).append(f"{shown(where)}: {found}")

    @property
    def lines(self) -> List[str]:
        """Kind by kind, the first few of each."""
        lines = []
        for found in self._found.values():
            lines += found[:ALIKE]
            if len(found) > ALIKE:
                lines.append(f"… and {len(found) - ALIKE} more like this")
        return lines


def _unheard(name: str, done: int, total: int) -> None:
    """Progress that nobody asked for."""
    del name, done, total


def score(  # noqa: PLR0913 - the one place where everything meets
    path: str,
    split: Split,
    protocol: Protocol,
    limits: Limits,
    *,
    strict: bool = False,
    elsewhere: AbstractSet[str] = frozenset(),
    progress: Progress = _unheard,
) -> tuple[List[ObjectScore], List[str]]:
    """Score a submission against one split: every object, and warnings.

    `elsewhere` names the sequences of other splits, which a submission may hold too.
    """
    truth = [sequence for sequence in split.sequences if not protocol.salient or sequence.salient]
    submission = Submission(path, truth, protocol, limits, elsewhere)
    warnings = Warnings(strict=strict, problems=submission.problems)
    for line in submission.warnings:
        warnings.add("extra", "extra files", line, "Leave them out")
    try:
        pairs = _paired(truth, submission, protocol, warnings)
        scores: List[ObjectScore] = []
        for done, (sequence, masks) in enumerate(pairs):
            progress(sequence.name, done, len(pairs))
            scores += SequenceScorer(sequence, masks, protocol, split, warnings).scores()
        submission.problems.raise_if_any()
    finally:
        submission.close()
    progress("", len(pairs), len(pairs))
    return scores, warnings.lines


def _paired(
    truth: List[Sequence], submission: Submission, protocol: Protocol, warnings: Warnings
) -> List[tuple[Sequence, Optional[MaskFiles]]]:
    """Every sequence with its masks; what is missing is found before anything is decoded."""
    pairs: List[tuple[Sequence, Optional[MaskFiles]]] = []
    sent = submission.names()
    missing = [sequence.name for sequence in truth if sequence.name not in sent]
    if missing and protocol.missing is Missing.ERROR:
        found = f"{len(missing)} of {len(truth)} sequences are missing: {listed(missing, 5)}"
        submission.problems.add(Problem("your file", found, "Send a folder of masks for each sequence of the phase"))
    elif missing:
        meaning = "they score 0" if protocol.missing is Missing.ZEROS else "they are left out of the means"
        found = f"{len(missing)} of {len(truth)} are missing ({listed(missing, 5)}); {meaning}"
        warnings.add("missing", "sequences", found, "Send all sequences")
    for sequence in truth:
        masks = submission.sequence(sequence.name)
        if masks is not None:
            living = lives(sequence, protocol) or [Life("", _ends_cut(np.ones(len(sequence.frames), bool), protocol))]
            wanted = {life.name: [sequence.frames[frame] for frame in np.flatnonzero(life.counted)] for life in living}
            for problem in masks.lacks(wanted):
                submission.problems.add(problem)
            surplus = sorted(masks.frames() - set(sequence.frames))
            if surplus:
                found = f"{len(surplus)} frames are not in the truth and were ignored: {listed(surplus)}"
                warnings.add("frames", sequence.name, found, "Name the frames as the truth does")
        if masks is not None or protocol.missing is Missing.ZEROS:
            pairs.append((sequence, masks))
    submission.problems.raise_if_any()
    if not pairs:
        found = "holds none of the sequences of this phase"
        raise SubmissionError.of(Problem("your file", found, "Send a folder of masks for each sequence"))
    return pairs


def lives(sequence: Sequence, protocol: Protocol) -> List[Life]:
    """The objects that a protocol scores in a sequence, each with the frames that may count."""
    found = []
    for name in _objects(sequence, protocol):
        counted = _ends_cut(_span(sequence, name, protocol), protocol)
        if protocol.objects is Objects.SEEN and not (_visible(sequence, name) & counted).any():
            continue
        found.append(Life(name, counted))
    return found


def _ends_cut(counted: Array, protocol: Protocol) -> Array:
    """These frames without the first and last of them, where the protocol skips those."""
    places = np.flatnonzero(counted)
    if protocol.skip_first:
        counted[places[:1]] = False
    if protocol.skip_last:
        counted[places[-1:]] = False
    return counted


def _objects(sequence: Sequence, protocol: Protocol) -> List[str]:
    numbered = sorted((name for name in sequence.objects if name != VOID), key=label_order)
    first = [name for name in numbered if _visible(sequence, name)[:1].any()]
    if protocol.objects is Objects.FOREGROUND:
        return ["1"]
    if protocol.objects is Objects.NUMBERED:
        highest = max((int(name) for name in first if is_number(name)), default=0)
        return [str(number) for number in range(1, highest + 1)]
    if protocol.objects is Objects.SEEN:
        return sorted(sequence.objects, key=label_order)
    if sequence.told:
        return [name for name, facts in sequence.objects.items() if facts.frames is not None]
    if protocol.objects is Objects.FIRST:
        return first
    return [name for name in numbered if _span(sequence, name, protocol).sum() >= SHORTEST_LIFE]


def _visible(sequence: Sequence, name: str) -> Array:
    facts = sequence.objects.get(name)
    return flags_of(facts.visible if facts else [], len(sequence.frames))


def _span(sequence: Sequence, name: str, protocol: Protocol) -> Array:
    count = len(sequence.frames)
    facts = sequence.objects.get(name)
    if protocol.span is not Span.VIDEO and facts is not None and facts.frames is not None:
        return flags_of(facts.frames, count)
    if protocol.span is Span.LIFE:
        return np.maximum.accumulate(_visible(sequence, name))
    return np.ones(count, bool)


class SequenceScorer:
    """Scores one sequence: reads block by block, counts, then sums up."""

    def __init__(
        self, truth: Sequence, masks: Optional[MaskFiles], protocol: Protocol, split: Split, warnings: Warnings
    ) -> None:
        self._truth, self._masks, self._protocol, self._split = truth, masks, protocol, split
        self._warnings = warnings
        self._lives = lives(truth, protocol)
        # Without objects the masks are read all the same: what is wrong with them is said.
        wanted = [life.counted for life in self._lives] or [_ends_cut(np.ones(len(truth.frames), bool), protocol)]
        self._read = np.flatnonzero(np.any(wanted, axis=0))
        self._counts: Dict[tuple[str, str], List[Counts]] = {}
        self._strict: Dict[str, List[Array]] = {life.name: [] for life in self._lives}
        self._strays: Dict[str, str] = {}
        self._proposals: List[str] = []

    def scores(self) -> List[ObjectScore]:
        """Every object's score; nothing when a mask could not be read."""
        complete = True
        for index, block in enumerate(self._truth.blocks):
            frames = self._read[(self._read >= block.start) & (self._read < block.stop)]
            if len(frames):
                names = [self._truth.frames[frame] for frame in frames]
                predicted: Optional[Stacks] = {}
                if self._masks is not None:
                    predicted = self._masks.stacks(names, block.size)
                if predicted is None:
                    complete = False
                elif complete:
                    truth = self._truth.read_block(index)
                    places = frames - block.start
                    here = {name: stack.frames(places) for name, stack in truth.items()}
                    self._block(here, predicted, names, nothing(len(frames), block.size))
        self._warn()
        if not complete or (self._masks is not None and self._masks.problems):
            return []
        return self._summed()

    def _block(self, truth: Stacks, predicted: Stacks, names: List[str], empty: Stack) -> None:
        """Count one block, object by object."""
        protocol, frames, size = self._protocol, len(names), empty.size
        if protocol.void and VOID in truth:
            predicted = {name: stack.without(truth[VOID]) for name, stack in predicted.items()}
        if protocol.objects is Objects.FOREGROUND:
            truth = {"1": joined(list(truth.values()), frames, size)}
        if protocol.salient or protocol.objects is Objects.FOREGROUND:
            predicted = {SalientImages.NAME: joined(list(predicted.values()), frames, size)}
        elif protocol.proposals:
            self._note_proposals(predicted)
        else:
            self._note_strays(predicted, names)
        regions = {name: Region(stack) for name, stack in predicted.items()}
        none, match = Region(empty), disk(reach(size))
        for life in self._lives:
            region = Region(truth[life.name]) if life.name in truth else none
            for partner in self._partners(life.name):
                other = regions.get(partner, none)
                counts = region.compared(other, match)
                self._counts.setdefault((life.name, partner), []).append(counts)
                if protocol.reappearance:
                    self._strict[life.name].append(np.array(summaries.strict_boundary(region, other)))

    def _partners(self, name: str) -> List[str]:
        """Which predictions an object is compared with."""
        if self._protocol.proposals:
            most = max(self._protocol.proposals, len(self._lives))
            return [str(number) for number in range(1, most + 1)]
        if self._protocol.salient or self._protocol.objects is Objects.FOREGROUND:
            return [SalientImages.NAME]
        return [name]

    def _note_proposals(self, predicted: Stacks) -> None:
        self._proposals += [name for name in predicted if name not in self._proposals]

    def _note_strays(self, predicted: Stacks, names: List[str]) -> None:
        known = self._truth.objects.keys() | {life.name for life in self._lives}
        for name, stack in predicted.items():
            if name not in known and name not in self._strays:
                first = int(np.argmax(stack.area > 0))
                self._strays[name] = names[first]

    def _warn(self) -> None:
        protocol, where = self._protocol, self._truth.name
        for name, frame in self._strays.items():
            found = f"object {shown(name)} (first in frame {frame}) is not in the truth and was ignored"
            self._warnings.add("stray", where, found, "Use the object numbers of the first frame")
        surplus = [name for name in self._proposals if not (is_number(name) and int(name) <= protocol.proposals)]
        if surplus:
            found = f"has proposals beyond {protocol.proposals}: {listed(sorted(surplus, key=label_order))}"
            remedy = f"Number the proposals from 1 to {protocol.proposals}"
            if protocol.surplus_is_error and self._masks is not None:
                self._masks.problems.add(Problem(where, found, remedy))
            else:
                self._warnings.add("surplus", where, found + "; they were ignored", remedy)

    def _summed(self) -> List[ObjectScore]:
        chosen = self._matched()
        return [self._object(life, chosen.get(life.name, 0)) for life in self._lives]

    def _matched(self) -> Dict[str, int]:
        """The proposal of each object; nothing in protocols that do not match."""
        if not self._protocol.proposals or not self._lives or not len(self._read):
            return {}
        rows = self._protocol.proposals
        if self._protocol.surplus_is_error:  # as many as were sent, and as there are objects at least
            rows = max([len(self._lives), *(int(name) for name in self._proposals if is_number(name))])
        quality = np.zeros((rows, len(self._lives)))
        for column, life in enumerate(self._lives):
            for row in range(rows):
                _, counts = self._counted(life, str(row + 1))
                both = (region_similarity(counts), boundary_similarity(counts))
                quality[row, column] = sum(summaries.mean(values) or 0.0 for values in both) / 2
        return {life.name: row + 1 for life, row in zip(self._lives, best_proposals(quality))}

    def _counted(self, life: Life, partner: str) -> tuple[Array, Counts]:
        """The frames that count for an object, and their counts."""
        counts = joined_counts(self._counts[life.name, partner])
        counted = life.counted[self._read]
        if self._protocol.span is Span.SIGHT:
            counted &= np.maximum.accumulate(counted & ((counts.truth > 0) | (counts.prediction > 0)))
        return counted, counts.at(counted)

    def _object(self, life: Life, proposal: int) -> ObjectScore:
        protocol = self._protocol
        partner = str(proposal) if proposal else self._partners(life.name)[0]
        if len(self._read):
            counted, counts = self._counted(life, partner)
        else:
            counted, counts = np.array([], bool), Counts(*[np.array([], np.int64)] * 7)
        if protocol.reappearance:
            values = self._reappearance(life, counted, counts)
        else:
            values = summaries.summary(counts, protocol)
        return ObjectScore(
            self._truth.name,
            life.name,
            {**values, **summaries.beside(counts)},
            [self._truth.frames[frame] for frame in self._read[counted]],
            region_similarity(counts),
            boundary_similarity(counts),
            self._unseen(life.name),
            proposal,
        )

    def _reappearance(self, life: Life, counted: Array, counts: Counts) -> Values:
        """MOSEv2's values; a sequence that was not sent, or has no frame to score, has zeros and no absences."""
        both = np.concatenate(self._strict[life.name], axis=1) if self._strict[life.name] else np.zeros((2, 0))
        f_new, f = both[:, counted] if len(counted) else both
        visible = counts.truth > 0
        values = summaries.reappearance(summaries.rewarded_similarity(counts), f_new, f, visible)
        if self._masks is None or not len(self._read):
            values = {name: None if "appear_" in name else 0.0 for name in values}
        return summaries.only_named(values, self._protocol)

    def _unseen(self, name: str) -> bool:
        facts = self._truth.objects.get(name)
        category = facts.category if facts else None
        return self._truth.unseen or (category is not None and category in self._split.unseen_categories)


def averaged(scores: List[ObjectScore], protocol: Protocol) -> Values:
    """The protocol's metrics, and those beside it, over these objects."""
    table = _Table(scores, protocol)
    means = _combined(protocol, lambda metric, rows: table.means(metric, rows).reshape(1), table.groups)
    return {metric: None if np.isnan(value[0]) else float(value[0]) for metric, value in means.items()}


def standard_errors(scores: List[ObjectScore], protocol: Protocol) -> Values:
    """How much each metric would vary with other sequences: the jackknife over sequences."""
    table = _Table(scores, protocol)
    count = len(table.sequences)
    if count < 2:
        return {}
    without = _combined(protocol, table.means_without_each, table.groups)
    return {
        metric: float(np.sqrt((count - 1) / count * ((value - value.mean()) ** 2).sum()))
        for metric, value in without.items()
        if not np.isnan(value).any()
    }


class _Table:
    """The values of all objects, ready to be averaged with or without a sequence."""

    def __init__(self, scores: List[ObjectScore], protocol: Protocol) -> None:
        place = {name: number for number, name in enumerate(dict.fromkeys(one.sequence for one in scores))}
        # Matched proposals are summed in their own order officially: it decides the last bit.
        scores = sorted(scores, key=lambda one: (place[one.sequence], one.proposal))
        self.sequences, self._of = np.unique([one.sequence for one in scores], return_inverse=True)
        unseen = np.array([one.unseen for one in scores], bool)
        self.groups = {"": np.ones(len(scores), bool), "seen": ~unseen, "unseen": unseen}
        names = [*protocol.metrics, *BESIDE]
        self._columns = {name: np.array([one.values.get(name) for one in scores], float) for name in names}

    def means(self, metric: str, rows: Array) -> Array:
        """The mean over some objects; NaN where none has a value."""
        value = summaries.mean(self._columns[metric][rows])
        return np.array(np.nan if value is None else value)

    def means_without_each(self, metric: str, rows: Array) -> Array:
        """The mean over some objects, each time without one sequence."""
        values = np.where(rows, self._columns[metric], np.nan)
        there = ~np.isnan(values)
        sums = np.bincount(self._of, np.where(there, values, 0.0), len(self.sequences))
        counts = np.bincount(self._of, there, len(self.sequences))
        left = counts.sum() - counts
        return np.where(left > 0, (sums.sum() - sums) / np.maximum(left, 1), np.nan)


def _combined(protocol: Protocol, mean: Callable[[str, Array], Array], groups: Dict[str, Array]) -> Dict[str, Array]:
    """Means by metric, then means of means, which leave an empty part out."""
    values: Dict[str, Array] = {}
    for metric in (*protocol.metrics, *BESIDE):
        letter, _, group = metric.rpartition("-")[0].partition("-")
        if group in ("seen", "unseen"):
            values[metric] = mean(f"{letter}-Mean", groups[group])
        elif metric not in COMBINED:
            values[metric] = mean(metric, groups[""])
    if protocol.by_class:
        for letter in {metric[0] for metric in values if "-seen-" in metric}:
            values[f"{letter}-Mean"] = _average(values[f"{letter}-seen-Mean"], values[f"{letter}-unseen-Mean"])
    for metric in protocol.metrics:
        if metric in COMBINED:
            values[metric] = _average(*(values[part] for part in COMBINED[metric]))
    return {metric: values[metric] for metric in (*protocol.metrics, *BESIDE)}


def _average(*parts: Array) -> Array:
    """The mean of the parts that are there, place by place."""
    there = [~np.isnan(part) for part in parts]
    total = sum(np.where(here, part, 0.0) for here, part in zip(there, parts))
    count = np.sum(there, axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def by_sequence(scores: List[ObjectScore], metrics: List[str]) -> Dict[str, Values]:
    """A sequence's value is the mean over its objects."""
    sequences: Dict[str, List[ObjectScore]] = {}
    for one in scores:
        sequences.setdefault(one.sequence, []).append(one)
    return {
        name: {metric: summaries.average([one.values[metric] for one in objects]) for metric in metrics}
        for name, objects in sequences.items()
    }
