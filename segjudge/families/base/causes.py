"""The causes of units' losses: counts of examined segments by cause, and the sentence that describes them.

The causes refine the faults of `segments`: a match may be too small, too large or displaced. Causes are sorted by cost:
1 for a segment without a match, 1 - IoU for a matched one. The sentence states only counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from segjudge.evaluation_script.files.problems import inflect, quantity
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.pictures import SeenFrame
from segjudge.families.base.segments import (
    FAULTS,
    HALF,
    INEXACT,
    LEAST_IOU,
    MERGED,
    MISSED,
    PARTIAL,
    RIGHT,
    SPLIT,
    SURPLUS,
    SWAPPED,
    WRONG_CLASS,
    JudgedSegments,
)

#: A detection of what another detection shows already.
_REPEATED = "repeated"
#: Causes of what the IoU of a match lacks.
INEXACT_CAUSES = _TOO_SMALL, _TOO_LARGE, _BOTH = "too small", "too large", FAULTS[INEXACT].name
#: A mask is too small where it lacks so many times the pixels that it has wrongly, and too large the other way.
_LOPSIDED = 3
#: A second cause is named from this share of the first one's cost on.
_ALSO = 0.25
#: A pair of classes, or of objects, stands for all where it makes this share of them.
_MOSTLY = 0.5
#: A class that most segments of a cause have is named if its segments have the cause so many times as often as others.
_OFTENER = 2
#: Costs below this are none: every segment is right.
_NONE = 1e-9


class _Place(NamedTuple):
    """Where a segment is: its unit, and its frame."""

    unit: str
    frame: str


@dataclass
class CauseCounts:
    """Segments by cause, of all frames that were looked at."""

    #: What one segment is called, and one unit.
    segment: str
    unit: str
    #: What segments consist of.
    element: str = "pixels"
    segments: int = 0
    predicted: int = 0
    costs: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    #: Segments by cause and class, and all segments of the truth and of the prediction by class.
    classes: dict[str, Counter[str]] = field(default_factory=dict)
    true_classes: Counter[str] = field(default_factory=Counter)
    predicted_classes: Counter[str] = field(default_factory=Counter)
    #: Of segments with a wrong class: what they are and what they are called, with the units in which that happens.
    confused: Counter[tuple[str, str]] = field(default_factory=Counter)
    confused_in: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    #: Units with any segment, and those that have a class.
    units: set[str] = field(default_factory=set)
    units_with: dict[str, set[str]] = field(default_factory=dict)
    #: Objects and the object whose track each has, and where that begins.
    swapped: dict[tuple[str, str], _Place] = field(default_factory=dict)
    #: Segments that overlap a prediction too little to match.
    partial: int = 0
    #: Pixels that matches lack, that they have wrongly, and that the truth has there, by cause.
    pixels: dict[str, list[float]] = field(default_factory=dict)
    #: Pixels that matches lack, or have wrongly, by cause and the other class that has them.
    pixels_of: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, unit: str, seen: SeenFrame, judged: JudgedSegments, names: tuple[str, ...]) -> None:
        """Add a frame's counts; `names` are the classes' names, empty for a single class."""
        partners, joined = judged.list_taken(), _rejudge_parts(seen, judged)
        near = _pair_near(seen, judged, joined)
        partners |= near
        # Pixels of segments that are called so as a whole are no fault of the one that is matched.
        called: dict[int, list[int]] = {}
        for row in (row for row, kind in enumerate(joined) if kind == WRONG_CLASS):
            called.setdefault(partners.get(row, -1), []).append(row)
        for row, kind in enumerate(joined):
            if not kind:
                continue
            name = names[int(seen.truth.classes[row])] if names else ""
            self.add_true(name, unit)
            column = partners.get(row, -1)
            cause, cost = self._judge_match(
                PARTIAL if row in near else kind, seen, (row, column), called.get(column, [])
            )
            self._note(cause, cost, name)
            if cause in INEXACT_CAUSES and names:
                self._add_pixels(cause, seen, (row, column), names)
            if cause == FAULTS[WRONG_CLASS].name and names and column >= 0:
                pair = name, names[int(seen.prediction.classes[column])]
                self.confused[pair] += 1
                self.confused_in.setdefault(pair, set()).add(unit)
        explained = {partners.get(row, -1) for row, kind in enumerate(joined) if kind == WRONG_CLASS}
        explained |= {*near.values(), *_find_parts(seen, judged, joined)}
        for column, kind in enumerate(judged.prediction.tolist()):
            name = names[int(seen.prediction.classes[column])] if names else ""
            if kind:
                self.predicted += 1
                self.predicted_classes[name] += 1
            if kind == SURPLUS and column not in explained:
                self._note(FAULTS[SURPLUS].name, 1.0, name)

    def add_true(self, name: str, unit: str, count: int = 1) -> None:
        """Add segments of a class in the truth of a unit."""
        self.segments += count
        self.true_classes[name] += count
        self.units.add(unit)
        self.units_with.setdefault(name, set()).add(unit)

    def add_swaps(self, unit: str, swaps: Iterable[tuple[str, str, str]]) -> None:
        """Add the frames in which objects have the track of others: object, the other object, frame, in their order."""
        for name, owner, frame in swaps:
            self.swapped.setdefault((name, owner), _Place(unit, frame))

    def add_repeated(self, name: str) -> None:
        """Add a prediction of this class that repeats a better one."""
        self.predicted += 1
        self.predicted_classes[name] += 1
        self._note(_REPEATED, 1.0, name)

    def _note(self, cause: str, cost: float, name: str) -> None:
        self.costs[cause] = self.costs.get(cause, 0.0) + cost
        self.counts[cause] += 1
        self.classes.setdefault(cause, Counter())[name] += 1

    def _judge_match(
        self, kind: int, seen: SeenFrame, pair: tuple[int, int], called: Sequence[int]
    ) -> tuple[str, float]:
        """Return the cause of a true segment's loss, and its amount, given its row and the column of its match.

        `called` are rows of other segments that have this match as a whole.
        """
        row, column = pair
        if kind not in {RIGHT, PARTIAL} or column < 0:
            return FAULTS[MISSED if kind in {RIGHT, PARTIAL} else kind].name, 1.0
        area, predicted = float(seen.truth.areas[row]), float(seen.prediction.areas[column])
        predicted -= float(seen.shared[called, column].sum())
        shared = float(seen.shared[row, column])
        cost = 1 - shared / max(area + predicted - shared, 1)
        if cost <= _NONE:
            return FAULTS[RIGHT].name, 0.0
        self.partial += kind == PARTIAL
        return self.judge_pixels(area, predicted, shared), cost

    def judge_pixels(self, area: float, predicted: float, shared: float) -> str:
        """Return the cause of an inexact match, and count its pixels, given those of truth, prediction and both."""
        missed, surplus = max(area - shared, 0.0), max(predicted - shared, 0.0)
        cause = _TOO_SMALL if missed > _LOPSIDED * surplus else _TOO_LARGE if surplus > _LOPSIDED * missed else _BOTH
        pixels = self.pixels.setdefault(cause, [0.0, 0.0, 0.0, 0.0])
        for index, value in enumerate((missed, surplus, area, predicted)):
            pixels[index] += value
        return cause

    def _add_pixels(self, cause: str, seen: SeenFrame, pair: tuple[int, int], names: Sequence[str]) -> None:
        """Add which classes have the pixels that a match lacks, or has wrongly."""
        row, column = pair
        if cause == _TOO_SMALL:
            shared, classes, own_index = seen.shared[row], seen.prediction.classes, column
        else:
            shared, classes, own_index = seen.shared[:, column], seen.truth.classes, row
        counts = self.pixels_of.setdefault(cause, Counter())
        for index in np.flatnonzero(shared).tolist():
            if index != own_index:
                counts[names[int(classes[index])]] += float(shared[index])  # type: ignore[assignment]

    # ── words ──

    def describe(self, scope: str = "") -> str:
        """Describe the two most expensive causes; `scope` names the units if they are not all."""
        costly = [
            (cause, cost) for cause, cost in sorted(self.costs.items(), key=lambda item: -item[1]) if cost > _NONE
        ]
        if not costly:
            return ""
        highest = costly[0][1]
        causes = [cause for cause, cost in costly if cost >= _ALSO * highest]
        causes = [causes[0], *(cause for cause in causes[1:] if not self._is_same(causes[0], cause))][:2]
        sentences = [self._describe_cause(cause) for cause in causes]
        if costly[0][0] in INEXACT_CAUSES and self._finds_all():
            sentences[0] = f"every {self.segment} is found, but {sentences[0]}"
        text = "; ".join(sentences)
        return f"{scope}{text}." if scope else f"{text[0].upper()}{text[1:]}."

    def _is_same(self, cause: str, other_cause: str) -> bool:
        """Return whether segments of one class are too small where those of another one are too large."""
        if {cause, other_cause} != {_TOO_SMALL, _TOO_LARGE}:
            return False
        main_classes = {side: self.classes.get(side, Counter()).most_common(1) for side in (cause, other_cause)}
        names = [
            self._name_other(side, self.pixels[side][0 if side == _TOO_SMALL else 1]) == main_classes[against][0][0]
            for side, against in ((cause, other_cause), (other_cause, cause))
            if main_classes[against]
        ]
        return len(names) == 2 and all(names)

    def _finds_all(self) -> bool:
        faults = (MISSED, SURPLUS, WRONG_CLASS, MERGED, SPLIT)
        return not self.partial and not any(self.counts[FAULTS[kind].name] for kind in faults)

    def _describe_cause(self, cause: str) -> str:
        number, some = self.counts[cause], self._count_some(cause)
        verb = inflect(number, "is", "are")
        if cause == FAULTS[WRONG_CLASS].name:
            return self._describe_confusion(some, verb)
        if cause == FAULTS[SWAPPED].name:
            return self._describe_swaps(some, verb)
        if cause == FAULTS[SURPLUS].name:
            predicted = _count_among(number, self.predicted, f"predicted {self.segment}")
            return f"{predicted} {inflect(number, 'matches', 'match')} nothing{self._describe_class(cause)}"
        if cause == _REPEATED:
            predicted = _count_among(number, self.predicted, f"predicted {self.segment}")
            return f"{predicted} {inflect(number, 'repeats', 'repeat')} another one{self._describe_class(cause)}"
        if cause in INEXACT_CAUSES:
            return self._describe_inexact(cause, some, verb)
        about = {
            FAULTS[MISSED].name: "missed",
            FAULTS[MERGED].name: "merged with another one",
            FAULTS[SPLIT].name: "split into several predictions",
        }[cause]
        return f"{some} {verb} {about}{self._describe_class(cause)}"

    def _count_some(self, cause: str) -> str:
        return _count_among(self.counts[cause], self.segments, self.segment)

    def _describe_class(self, cause: str) -> str:
        """Return the class of a cause's segments in parentheses; "" if other classes have the cause nearly as often."""
        is_query = any(name.startswith("“") for name in self.units_with)  # other units ask for something else
        if len(self.units_with) < 2 and not is_query:
            return ""
        total, (name, count) = self.counts[cause], self.classes[cause].most_common(1)[0]
        named = f"class {name}" if name.isdigit() else name
        if count == total:
            return f" ({named})" if total == 1 else f" (all {named})"
        among = self.predicted_classes if cause in {FAULTS[SURPLUS].name, _REPEATED} else self.true_classes
        rest_count = max(among.total() - among[name], 1)
        is_typical = count / max(among[name], 1) >= _OFTENER * (total - count) / rest_count
        return f" (mostly {named})" if count >= _MOSTLY * total and is_typical else ""

    def _describe_confusion(self, some: str, verb: str) -> str:
        if not self.confused:
            return f"{some} {verb} of the wrong class"
        (name, called), count = self.confused.most_common(1)[0]
        back = self.confused[called, name]
        both = self.confused_in[name, called] | self.confused_in.get((called, name), set())
        if _is_exchange(count, back, self.confused.total()):
            return f"{name} and {called} are exchanged{self._count_units(len(both), self.units_with[name])}"
        units = self._count_units(len(both if back else self.confused_in[name, called]), self.units_with[name])
        if count >= _MOSTLY * self.confused.total():
            return f"{name} is called {called}{units}"
        units = f" ({units.strip()})" if units else ""
        return f"{some} {verb} of the wrong class, most often {name} called {called}{units}"

    def _count_units(self, count: int, among: set[str]) -> str:
        """Return in how many of the units that have a class; "" if there is but one unit."""
        if len(self.units) < 2:
            return ""
        total = max(count, len(among))
        return (
            f" in {count:,} of {quantity(total, self.unit)}" if total > 1 else f" in the only {self.unit} that has it"
        )

    def _describe_swaps(self, some: str, verb: str) -> str:
        if not self.swapped:
            return f"{some} {verb} on a different track than in most frames"
        (name, owner), swap = next(iter(self.swapped.items()))
        start = f"from frame {swap.frame} of {swap.unit}"
        if (owner, name) in self.swapped:
            return f"{name} and {owner} exchange their tracks {start} ({some} {verb} swapped)"
        return f"{name} has the track of {owner} {start} ({some} {verb} swapped)"

    def _describe_inexact(self, cause: str, some: str, verb: str) -> str:
        missed, surplus, area, predicted = self.pixels[cause]
        lacks, wrong = 100 * missed / max(area, 1), 100 * surplus / max(predicted, 1)
        named, whose = self._describe_class(cause), inflect(self.counts[cause], "its", "their")
        if cause == _TOO_SMALL:
            other_class = self._name_other(cause, missed)
            location = f"called {other_class}" if other_class else "missing"
            return f"{some} {verb} too small{named}: {_percent(lacks)} of {whose} {self.element} are {location}"
        if cause == _TOO_LARGE:
            other_class = self._name_other(cause, surplus)
            location = f"are {other_class}" if other_class else "lie outside"
            return f"{some} {verb} too large{named}: {_percent(wrong)} of the predicted {self.element} {location}"
        sides = f"{_percent(lacks)} of {whose} {self.element} are missing, {_percent(wrong)} are surplus"
        return f"{some} {verb} inexact{named}: {sides}"

    def _name_other(self, cause: str, pixels: float) -> str:
        """Return the class that has most of the pixels that matches lack, or have wrongly; "" without one."""
        name, count = max(self.pixels_of.get(cause, Counter()).items(), key=lambda item: item[1], default=("", 0))
        return name if count > _MOSTLY * pixels else ""


def _count_among(count: int, total: int, noun: str) -> str:
    """Return a count among all, such as `3 of 4 segments`, `all 4 segments` or `the only segment`."""
    if count < total:
        return f"{count:,} of {quantity(total, noun)}"
    return f"the only {noun}" if total == 1 else f"all {quantity(total, noun)}"


def _is_exchange(count: float, back: float, total: float) -> bool:
    """Return whether two classes that are called each other make most of a confusion."""
    return back >= _MOSTLY * count and count + back >= _MOSTLY * total


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value >= 1 else f"{value:.2g} %"


def _pair_near(seen: SeenFrame, judged: JudgedSegments, kinds: list[int]) -> dict[int, int]:
    """Return which surplus prediction each missed segment has nearly, where the score's own rule matches neither."""
    if judged.taken_for is None or seen.judged is None or not seen.shared.size:
        return {}
    ious = measure_ious(seen)
    near: dict[int, int] = {}
    for row in (row for row, kind in enumerate(kinds) if kind == MISSED):
        free = (judged.prediction == SURPLUS) & ~np.isin(np.arange(len(judged.prediction)), list(near.values()))
        column = int(np.argmax(np.where(free, ious[row], -1)))
        if free[column] and ious[row, column] >= LEAST_IOU:
            near[row] = column
    return near


def _find_parts(seen: SeenFrame, judged: JudgedSegments, kinds: list[int]) -> list[int]:
    """Return the surplus predictions inside a matched or split segment, if the score has its own rule.

    A segment that nothing matches is split if several predictions lie inside it, and cover half of it together.
    """
    if judged.taken_for is None or seen.judged is None or not seen.shared.size:
        return []
    inside = seen.shared / np.maximum(seen.prediction.areas, 1) * _same_classes(seen)
    columns = np.flatnonzero((judged.prediction == SURPLUS) & (inside.max(axis=0) >= HALF))
    rows = inside[:, columns].argmax(axis=0)
    parts = []
    for row in np.unique(rows).tolist():
        row_columns = columns[rows == row]
        covers = seen.shared[row, row_columns].sum() >= HALF * seen.truth.areas[row]
        if kinds[row] in {RIGHT, SPLIT} or (kinds[row] == MISSED and len(row_columns) > 1 and covers):
            parts += row_columns.tolist()
    return parts


def _same_classes(seen: SeenFrame) -> Array:
    same: Array = seen.truth.classes[:, None] == seen.prediction.classes
    return same


def measure_ious(seen: SeenFrame) -> Array:
    """Return the IoU of segments of one class."""
    union = seen.truth.areas[:, None] + seen.prediction.areas - seen.shared
    ious: Array = seen.shared / np.maximum(union, 1) * _same_classes(seen)
    return ious


def _rejudge_parts(seen: SeenFrame, judged: JudgedSegments) -> list[int]:
    """Return the verdict on each true segment; a joined or split match counts as merged or split too."""
    kinds: list[int] = judged.truth.tolist()
    if not seen.shared.size:
        return kinds
    if judged.taken_for is not None:
        inside = seen.shared / np.maximum(seen.prediction.areas, 1) * _same_classes(seen)
        for column in _find_parts(seen, judged, kinds):
            kinds[int(np.argmax(inside[:, column]))] = SPLIT
        return kinds
    covered = seen.shared / np.maximum(seen.truth.areas, 1)[:, None]
    same = seen.truth.classes[:, None] == seen.prediction.classes
    joined = {int(np.argmax(covered[row] * same[row])) for row, kind in enumerate(kinds) if kind == MERGED}
    for column, row in enumerate(judged.partner.tolist()):
        if row >= 0 and kinds[row] == RIGHT:
            if column in joined and judged.prediction[column] == RIGHT:
                kinds[row] = MERGED
            elif judged.prediction[column] == SPLIT:
                kinds[row] = SPLIT
    return kinds
