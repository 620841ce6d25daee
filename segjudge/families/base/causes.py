"""The causes of units' losses: counts of examined segments by cause, and the sentence that describes them.

The causes refine the faults of `segments`: a match may be too small or too large. Causes are sorted by cost:
1 for each true or predicted segment without a match, and for a match what its IoU lacks. The costs of a unit are scaled
to its loss, if that is known. The sentence states only counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from segjudge.evaluation_script.files.problems import inflect, quantity
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.pictures import SeenFrame
from segjudge.families.base.segments import (
    FAULTS,
    FRAGMENTS,
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

#: A detection of an already detected object.
_REPEATED = "repeated"
#: Causes of what the IoU of a match lacks.
INEXACT_CAUSES = _TOO_SMALL, _TOO_LARGE, _BOTH = "too small", "too large", FAULTS[INEXACT].name
#: A mask is too small if its missing pixels are this many times its extra ones, and too large in the opposite case.
_LOPSIDED = 3
#: A second cause is named if its cost is at least this share of the first one's.
_ALSO = 0.15
#: A second pair of confused classes is named if it has at least this share of the first one's segments.
_BESIDE = 0.3
#: The maximum numbers of classes in a list, and of objects.
_MOST_NAMES, _MOST_OBJECTS = 3, 2
#: The share above which a pair of classes or objects represents all.
_MOSTLY = 0.5
#: The class with the most segments of a cause is named if its segments have the cause this many times as often as
#: others.
_OFTENER = 2
#: Faults of segments that a prediction may show completely.
_SHOWN = {RIGHT, PARTIAL, WRONG_CLASS, SWAPPED}
#: The lack of IoU above which the shape of a segment with another fault says nothing.
_SHAPELESS = 0.75
#: The cost below which every segment is correct.
_NONE = 1e-9


class _Place(NamedTuple):
    """The position of a segment: its unit and its frame."""

    unit: str
    frame: str


class Match(NamedTuple):
    """A true segment and its match, by row and column; -1 is none."""

    row: int
    column: int
    #: Rows of other segments that the prediction shows completely.
    other_rows: tuple[int, ...]

    def measure(self, seen: SeenFrame) -> tuple[float, float, float]:
        """Return the areas of the segment, of its match outside other segments, and of their overlap."""
        predicted = float(seen.prediction.areas[self.column]) - float(
            seen.shared[list(self.other_rows), self.column].sum()
        )
        return float(seen.truth.areas[self.row]), predicted, float(seen.shared[self.row, self.column])


def _lack_iou(area: float, predicted: float, shared: float) -> float:
    return 1 - shared / max(area + predicted - shared, 1)


@dataclass
class CauseCounts:
    """Segments by cause, in all examined frames."""

    #: The names of a segment and of a unit.
    segment: str
    unit: str
    #: The name of a segment's elements.
    element: str = "pixels"
    #: The weight of a match's missing IoU relative to a missed segment.
    edge_weight: float = 1.0
    #: Segments match one to one, so that a segment whose prediction does not match costs one on each side.
    one_to_one: bool = False
    #: Segments are whole tracks, whose shape is wrong wherever they are swapped.
    whole_tracks: bool = False
    #: Segments differ so much in size, as objects and stuff do, that shares of their pixels are averaged.
    averages_shares: bool = False
    #: The part of a match's missing IoU that the score loses, in the present frame.
    weigh: Callable[[Match, float], float] | None = None
    segments: int = 0
    predicted: int = 0
    costs: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    #: Segments by cause and class, and all true and predicted segments by class.
    classes: dict[str, Counter[str]] = field(default_factory=dict)
    true_classes: Counter[str] = field(default_factory=Counter)
    predicted_classes: Counter[str] = field(default_factory=Counter)
    #: Segments with a wrong class, by true and predicted class, and by unit.
    confused_in: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    #: All units with segments, or with segments of a class.
    units: set[str] = field(default_factory=set)
    units_with: dict[str, set[str]] = field(default_factory=dict)
    #: Pairs of objects, the second with the track of the first, and where the exchange begins.
    swapped: dict[tuple[str, str], _Place] = field(default_factory=dict)
    #: The objects with a cause, by unit and number, where objects are followed.
    objects: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)
    #: Segments that overlap a prediction too little to match, by cause.
    partial: Counter[str] = field(default_factory=Counter)
    #: Pixels by cause: missing from matches, extra in them, and of the truth there.
    pixels: dict[str, list[float]] = field(default_factory=dict)
    #: The shares of a segment that are missing from its match, and of the match that are extra: their sums by cause.
    shares: dict[str, list[float]] = field(default_factory=dict)
    #: Missing or extra pixels of matches, by cause and by the other class that has them.
    pixels_of: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, unit: str, seen: SeenFrame, judged: JudgedSegments, names: tuple[str, ...]) -> None:
        """Add a frame's counts; `names` are the classes' names, empty for a single class."""
        partners, joined = judged.list_partners(), _rejudge_parts(seen, judged)
        near = _pair_near(seen, judged, joined)
        partners |= near
        # Pixels of other segments that a prediction shows completely are no fault of its matched segment.
        shown: dict[int, list[int]] = {}
        for row, column in partners.items():
            if joined[row] in _SHOWN and seen.shared[row, column] >= HALF * seen.truth.areas[row]:
                shown.setdefault(column, []).append(row)
        parts = {column: row for column, row in enumerate(judged.partner.tolist()) if row >= 0}
        parts |= _find_enclosing_segments(seen, judged, joined)
        for row, kind in enumerate(joined):
            if not kind:
                continue
            name = names[int(seen.truth.classes[row])] if names else ""
            self.add_true(name, unit)
            column = partners.get(row, -1)
            match = Match(row, column, tuple(shown_row for shown_row in shown.get(column, []) if shown_row != row))
            cause, cost = self._judge_match(PARTIAL if row in near else kind, seen, match)
            self.note(cause, cost, name)
            if cause in {FAULTS[WRONG_CLASS].name, FAULTS[SWAPPED].name} and self._has_shape(
                seen, judged, match, shown
            ):
                cause = self._note_shape(match.measure(seen), name)  # next to its name
            elif cause == FAULTS[SPLIT].name:
                columns = [part_column for part_column, whole in parts.items() if whole == row]
                if self.one_to_one:
                    self.costs[cause] += len(columns) - 1
                sums = seen.truth.areas[row], seen.prediction.areas[columns].sum(), seen.shared[row, columns].sum()
                self._note_shape((float(sums[0]), float(sums[1]), float(sums[2])), name)
            if cause in INEXACT_CAUSES and names:
                self._add_pixels(cause, seen, match, names)
            if kind == WRONG_CLASS and names and column >= 0:
                pair = name, names[int(seen.prediction.classes[column])]
                self.confused_in.setdefault(pair, Counter())[unit] += 1
        explained = {partners.get(row, -1) for row, kind in enumerate(joined) if kind == WRONG_CLASS}
        explained |= {*near.values(), *parts}
        for column, kind in enumerate(judged.prediction.tolist()):
            name = names[int(seen.prediction.classes[column])] if names else ""
            if kind:
                self.predicted += 1
                self.predicted_classes[name] += 1
            if kind == SURPLUS and column not in explained:
                self.note(FAULTS[SURPLUS].name, 1.0, name)
            if kind == MERGED and self.one_to_one:
                self.costs[FAULTS[MERGED].name] = self.costs.get(FAULTS[MERGED].name, 0.0) + 1

    def _has_shape(self, seen: SeenFrame, judged: JudgedSegments, match: Match, shown: Mapping[int, list[int]]) -> bool:
        """Return whether the shape of a swapped or misnamed segment is a fault beside this one.

        A region of a class that its own label covers in part is misnamed in another part, and not too small.
        """
        row, column, _ = match
        if column < 0 or (self.whole_tracks and judged.truth[row] == SWAPPED):
            return False
        if judged.taken_for is None:
            return True
        own_pixels = seen.shared[row][seen.prediction.classes == seen.truth.classes[row]]
        is_partly_right = judged.truth[row] == WRONG_CLASS and own_pixels.any()
        return row in shown.get(column, []) and not is_partly_right

    def add_true(self, name: str, unit: str, count: int = 1) -> None:
        """Add segments of a class in the truth of a unit."""
        self.segments += count
        self.true_classes[name] += count
        self.units.add(unit)
        self.units_with.setdefault(name, set()).add(unit)

    def add_swaps(self, unit: str, swaps: Iterable[tuple[str, str, str]]) -> None:
        """Add the frames in which objects have others' tracks: object, other object, frame, in their order."""
        for name, owner, frame in swaps:
            self.swapped.setdefault((name, owner), _Place(unit, frame))

    def add_repeated(self, name: str) -> None:
        """Add a prediction of this class that repeats a better one."""
        self.predicted += 1
        self.predicted_classes[name] += 1
        self.note(_REPEATED, 1.0, name)

    def note(self, cause: str, cost: float, name: str = "", count: int = 1) -> None:
        """Add segments of a class with a cause, and their cost."""
        self.costs[cause] = self.costs.get(cause, 0.0) + cost
        self.counts[cause] += count
        if count:
            self.classes.setdefault(cause, Counter())[name] += count

    def note_object(self, cause: str, count: int, cost: float, owner: tuple[str, str]) -> None:
        """Add masks of an object, named by unit and number, if they cost something."""
        if count and cost:
            self.note(cause, cost, count=count)
            self.objects.setdefault(cause, Counter())[owner] += count

    def _judge_match(self, kind: int, seen: SeenFrame, match: Match) -> tuple[str, float]:
        """Return the cause of a true segment's loss, and its amount."""
        if kind not in {RIGHT, PARTIAL} or match.column < 0:
            both = self.one_to_one and kind in {WRONG_CLASS, SWAPPED} and match.column >= 0
            return FAULTS[MISSED if kind in {RIGHT, PARTIAL} else kind].name, 2.0 if both else 1.0
        pixels = match.measure(seen)
        cost = _lack_iou(*pixels)
        if cost <= _NONE:
            return FAULTS[RIGHT].name, 0.0
        if kind == PARTIAL:
            cost = 2.0 if self.one_to_one else cost
        else:
            cost = self.edge_weight * (cost if self.weigh is None else self.weigh(match, cost))
        cause = self.judge_pixels(*pixels)
        self.partial[cause] += kind == PARTIAL
        return cause, cost

    def subtract_costs(self, before: Mapping[str, float]) -> dict[str, float]:
        """Return the costs by cause that were added to those before."""
        return {cause: cost - before.get(cause, 0.0) for cause, cost in self.costs.items()}

    def scale_costs(self, before: Mapping[str, float], loss: float) -> None:
        """Scale the costs that were added to those before, so that they sum to a unit's loss."""
        added = self.subtract_costs(before)
        total = sum(added.values())
        if total > _NONE and loss > 0:
            for cause, cost in added.items():
                self.costs[cause] = before.get(cause, 0.0) + cost * loss / total

    def _note_shape(self, pixels: tuple[float, float, float], name: str) -> str:
        """Record why a segment with another fault is also inexact, given its pixels, those of its matches and of both.

        Return this cause; "" if the segment is exact or its shape shows no cause.
        """
        cost = _lack_iou(*pixels)
        if not _NONE < cost <= _SHAPELESS:
            return ""
        cause = self.judge_pixels(*pixels)
        self.note(cause, cost * self.edge_weight, name)
        return cause

    def judge_pixels(self, true_area: float, predicted_area: float, shared_area: float) -> str:
        """Return the cause of an inexact match, and count its pixels, given those of truth, prediction and both."""
        missed, surplus = max(true_area - shared_area, 0.0), max(predicted_area - shared_area, 0.0)
        cause = _TOO_SMALL if missed > _LOPSIDED * surplus else _TOO_LARGE if surplus > _LOPSIDED * missed else _BOTH
        pixels = self.pixels.setdefault(cause, [0.0, 0.0, 0.0, 0.0])
        for index, value in enumerate((missed, surplus, true_area, predicted_area)):
            pixels[index] += value
        shares = self.shares.setdefault(cause, [0.0, 0.0, 0.0])
        for index, value in enumerate((missed / max(true_area, 1), surplus / max(predicted_area, 1), 1)):
            shares[index] += value
        return cause

    def _add_pixels(self, cause: str, seen: SeenFrame, match: Match, names: Sequence[str]) -> None:
        """Add which classes have the pixels that a match lacks, or has wrongly."""
        row, column, other_rows = match
        if cause == _TOO_SMALL:
            shared, classes, own_index = seen.shared[row], seen.prediction.classes, column
        else:
            shared, classes, own_index = seen.shared[:, column].copy(), seen.truth.classes, row
            shared[list(other_rows)] = 0
        counts = self.pixels_of.setdefault(cause, Counter())
        for index in np.flatnonzero(shared).tolist():
            if index != own_index:
                counts[names[int(classes[index])]] += float(shared[index])  # type: ignore[assignment]

    # ── words ──

    def describe(self, scope: str = "") -> str:
        """Describe the two most expensive causes; `scope` names the units if they are not all."""
        causes = self._choose_causes()
        if not causes:
            return ""
        sentences = [self._describe_cause(cause) for cause in causes]
        if causes[0] in INEXACT_CAUSES and self._finds_all():
            sentences[0] = f"every {self.segment} is found, but {sentences[0]}"
        text = "; ".join(sentences)
        return f"{scope}{text}." if scope else f"{text[0].upper()}{text[1:]}."

    def _choose_causes(self) -> list[str]:
        """Return the two most expensive causes, or the only one."""
        costly = [
            (cause, cost)
            for cause, cost in sorted(self.costs.items(), key=lambda item: -item[1])
            if cost > _NONE and self._has_sentence(cause)
        ]
        causes = [cause for cause, cost in costly if cost >= _ALSO * costly[0][1]]
        return [*causes[:1], *(cause for cause in causes[1:] if not self._is_same(causes[0], cause))][:2]

    def _has_sentence(self, cause: str) -> bool:
        """Return whether a cause has a number: a cost alone, such as that of a part, would be `0 of 4 segments`."""
        return bool(self.counts[cause])

    def _is_same(self, cause: str, other_cause: str) -> bool:
        """Return whether segments of one class are too small where segments of another are too large."""
        if {cause, other_cause} != {_TOO_SMALL, _TOO_LARGE}:
            return False
        main_classes = {side: self.classes.get(side, Counter()).most_common(1) for side in (cause, other_cause)}
        names = [
            self._name_wrong_class(side) == main_classes[against][0][0] != ""
            for side, against in ((cause, other_cause), (other_cause, cause))
            if main_classes[against]
        ]
        return len(names) == 2 and all(names)

    def _finds_all(self) -> bool:
        lost = (cause for cause, count in self.counts.items() if count and not CAUSES[cause].is_found)
        return not self.partial.total() and not any(lost) and not self.objects.get(FAULTS[SWAPPED].name)

    def _describe_cause(self, cause: str) -> str:
        """Describe a cause as its row of the table does."""
        row, number = CAUSES[cause], self.counts[cause]
        some, verb = self._count_some(cause), inflect(number, "is", "are")
        if row.describe is not None:
            return row.describe(self, cause, some, verb)
        if row.does:
            noun = f"predicted {self.segment}"
            some = describe_share(number, self.predicted, noun) if self.predicted else quantity(number, noun)
            return f"{some} {row.does[number > 1]}{self._describe_owners(cause)}"
        return f"{some} {verb} {row.about}{self._describe_owners(cause)}"

    def _describe_owners(self, cause: str) -> str:
        """Name the class or the objects that have a cause, in parentheses; "" if they are many."""
        named = self._describe_class(cause)
        objects = sorted(self.objects.get(cause, ()), key=lambda owner: (len(owner[1]), owner[1]))
        units = {unit for unit, _ in objects}
        if named or len(units) != 1 or len(objects) > _MOST_OBJECTS or len(self.units) < 2:
            return named
        names = " and ".join(name for _, name in objects)
        return f" ({inflect(len(objects), 'object', 'objects')} {names} of {units.pop()})"

    def _count_some(self, cause: str) -> str:
        return describe_share(self.counts[cause], self.segments, self.segment)

    def _describe_class(self, cause: str) -> str:
        """Return the class of a cause's segments in parentheses; "" if other classes have the cause nearly as often."""
        is_query = any(name.startswith("“") for name in self.units_with)  # other units ask for something else
        if len(self.units_with) < 2 and not is_query:
            return ""
        total, ((name, count), *rivals) = self.counts[cause], self.classes[cause].most_common(2)
        if rivals and rivals[0][1] == count:
            return ""
        named = f"class {name}" if name.isdigit() else name
        if count == total:
            return f" ({named})" if total == 1 else f" (all {named})"
        among = self.predicted_classes if cause in {FAULTS[SURPLUS].name, _REPEATED} else self.true_classes
        rest_count = max(among.total() - among[name], 1)
        is_typical = count / max(among[name], 1) >= _OFTENER * (total - count) / rest_count
        return f" (mostly {named})" if count >= _MOSTLY * total and is_typical else ""

    def describe_confusion(self, _cause: str, some: str, verb: str) -> str:
        if not self.confused_in:
            return f"{some} {verb} of the wrong class"
        total = sum(units.total() for units in self.confused_in.values())
        confusions = self._list_confusions()[:2]
        counts = [count for _, _, count in confusions]
        texts = [self._describe_called(names, called) for names, called, _ in confusions]
        texts = texts[:1] if len(counts) > 1 and counts[1] < _BESIDE * counts[0] else texts
        if counts[0] >= _MOSTLY * total:
            return " and ".join(texts)
        if sum(counts[: len(texts)]) >= _MOSTLY * total:
            return f"{some} {verb} of the wrong class: {' and '.join(texts)}"
        return f"{some} {verb} of the wrong class; most often, {texts[0]}"

    def _list_confusions(self) -> list[tuple[list[str], str, int]]:
        """Return classes, the classes they are taken for, and their confused segments; exchanged classes once."""
        exchanged: dict[tuple[str, str], int] = {}
        called_so: dict[str, dict[str, int]] = {}
        confused = Counter({pair: units.total() for pair, units in self.confused_in.items()})
        for (name, called), count in confused.most_common():
            if not self._is_exchanged(name, called):
                called_so.setdefault(called, {})[name] = count
            elif (called, name) not in exchanged:
                exchanged[name, called] = count + confused[called, name]
        confusions = [([name], called, count) for (name, called), count in exchanged.items()]
        for called, names in called_so.items():
            chosen = [name for name, count in names.items() if count >= _BESIDE * max(names.values())]
            confusions.append((chosen, called, sum(names.values())))
        return sorted(confusions, key=lambda confusion: -confusion[2])

    def _is_exchanged(self, name: str, called: str) -> bool:
        """Return whether each of two classes is taken for the other."""
        exchanged = self._find_exchanged(name, called)
        directions = self._list_directions(name, called)
        count, back = (units.total() for units in directions)
        if sum(units[unit] for units in directions for unit in exchanged) < _MOSTLY * (count + back):
            return False
        is_mutual = count >= _MOSTLY * self.true_classes[name] and back >= _MOSTLY * self.true_classes[called]
        return bool(exchanged) and (is_mutual or min(count, back) >= _MOSTLY * max(count, back))

    def _describe_called(self, names: Sequence[str], called: str) -> str:
        """Describe in how many units a class is taken for another one, or two classes are exchanged."""
        if len(names) > 1:
            confused = set[str]().union(*(self.confused_in[name, called] for name in names))
            among = set[str]().union(*(self.units_with[name] for name in names))
            listed = f"{', '.join(names[:-1])} and {names[-1]}"
            listed = listed if len(names) <= _MOST_NAMES else f"{len(names)} classes, most often {names[0]},"
            return f"{listed} are called {called}{self._count_units(len(confused), among)}"
        name = names[0]
        directions = self._list_directions(name, called)
        exchanged = self._find_exchanged(name, called)
        if self._is_exchanged(name, called):
            units = self._count_units(len(exchanged), self.units_with[name])
            only = [direction.keys() - exchanged for direction in directions]
            more = f", and {name} is called {called} in {len(only[0]):,} more" if only[0] else ""
            more = f", and {called} is called {name} in {len(only[1]):,} more" if only[1] and not more else more
            return f"{name} and {called} are exchanged{units}{more}"
        units = self._count_units(len(directions[0]), self.units_with[name])
        beside = f", and the two are exchanged in {len(exchanged):,} of these" if exchanged and units else ""
        return f"{name} is called {called}{units}{beside}"

    def _list_directions(self, name: str, called: str) -> list[Counter[str]]:
        """Return by unit the segments of each of two classes that are taken for the other."""
        return [self.confused_in.get(pair, Counter()) for pair in ((name, called), (called, name))]

    def _find_exchanged(self, name: str, called: str) -> set[str]:
        """Return the units in which each of two classes, if present, is taken for the other."""
        directions = [units.keys() for units in self._list_directions(name, called)]
        absent = [self.units - self.units_with.get(class_name, set()) for class_name in (name, called)]
        units = {
            unit
            for unit in directions[0] | directions[1]
            if all(unit in direction or unit in without for direction, without in zip(directions, absent, strict=True))
        }
        return units if directions[0] & directions[1] else set()

    def _count_units(self, count: int, units: set[str]) -> str:
        """Return the number of units that have a class; "" for a single unit."""
        if len(self.units) < 2:
            return ""
        total = max(count, len(units))
        return (
            f" in {count:,} of {quantity(total, self.unit)}" if total > 1 else f" in the only {self.unit} that has it"
        )

    def describe_swaps(self, cause: str, some: str, verb: str) -> str:
        if not self.swapped:
            another = f"another object{self._describe_owners(cause)}"
            return f"{some} {verb} on {another if self.objects else 'a different track than in most frames'}"
        (name, owner), swap = next(iter(self.swapped.items()))
        start = f"from frame {swap.frame} of {swap.unit}"
        if (owner, name) in self.swapped:
            return f"{name} and {owner} exchange their tracks {start} ({some} {verb} swapped)"
        return f"{name} has the track of {owner} {start} ({some} {verb} swapped)"

    def describe_inexact(self, cause: str, some: str, verb: str) -> str:
        """Describe inexact segments and the shares of their pixels."""
        if cause not in self.pixels:
            return f"{some} {verb} inexact"
        missed, surplus, area, predicted = self.pixels[cause]
        lacks, wrong = 100 * missed / max(area, 1), 100 * surplus / max(predicted, 1)
        possessive = inflect(self.counts[cause], "its", "their")
        start = f"{self._describe_class(cause)}{self._describe_partial(cause)}: "
        if self.averages_shares and self.counts[cause] > 1:
            lacks, wrong = (100 * share / self.shares[cause][2] for share in self.shares[cause][:2])
            start = f"{start}on average, "
        if cause == _TOO_SMALL:
            other_class = self._name_wrong_class(cause)
            location = f"called {other_class}" if other_class else "missing"
            return f"{some} {verb} too small{start}{_percent(lacks)} of {possessive} {self.element} are {location}"
        if cause == _TOO_LARGE:
            other_class = self._name_wrong_class(cause)
            location = f"are {other_class}" if other_class else "lie outside"
            return f"{some} {verb} too large{start}{_percent(wrong)} of the predicted {self.element} {location}"
        sides = f"{_percent(lacks)} of {possessive} {self.element} are missing, {_percent(wrong)} are surplus"
        return f"{some} {verb} inexact{start}{sides}"

    def _describe_partial(self, cause: str) -> str:
        """Describe how many inexact segments the score does not match; "" if it matches all, or has no such rule."""
        count = self.partial[cause] if self.one_to_one else 0
        if not count:
            return ""
        return f", {'all' if count == self.counts[cause] > 1 else f'{count:,}'} with an IoU of .50 or less"

    def _name_wrong_class(self, cause: str) -> str:
        """Return the class that has most of the pixels that matches lack, or have wrongly; "" without one."""
        pixels = self.pixels[cause][0 if cause == _TOO_SMALL else 1]
        counts = self.pixels_of.get(cause, Counter[str]())
        name, count = max(counts.items(), key=lambda item: item[1], default=("", 0))
        return name if count > _MOSTLY * pixels else ""


class Cause(NamedTuple):
    """A row of the table of causes: how its sentence is made of the counts."""

    #: What its segments are, or what one and several of its predictions do, unless a function describes it.
    about: str = ""
    does: tuple[str, str] | None = None
    #: Takes the counts, the cause, the number of its segments in words, and `is` or `are`.
    describe: Callable[[CauseCounts, str, str, str], str] | None = None
    #: Whether its segments are found.
    is_found: bool = False


#: All causes by name, of all families.
CAUSES = {
    FAULTS[RIGHT].name: Cause("right", is_found=True),
    FAULTS[MISSED].name: Cause("missed"),
    FAULTS[SURPLUS].name: Cause(does=("matches nothing", "match nothing")),
    FAULTS[MERGED].name: Cause("merged with another one"),
    FAULTS[SPLIT].name: Cause("split into several predictions"),
    FAULTS[WRONG_CLASS].name: Cause(describe=lambda counts, *words: counts.describe_confusion(*words)),
    FAULTS[SWAPPED].name: Cause(describe=CauseCounts.describe_swaps, is_found=True),
    _REPEATED: Cause(does=("repeats another one", "repeat another one"), is_found=True),
    **dict.fromkeys(INEXACT_CAUSES, Cause(describe=CauseCounts.describe_inexact, is_found=True)),
    # of objects that are followed through frames
    "late": Cause("missed after the return of the object"),
    "drift": Cause("lost on the background"),
    "ghost": Cause(does=("shows an absent object", "show an absent object")),
    "confused": Cause("mixed with a neighbour"),
}


def describe_share(count: int, total: int, noun: str) -> str:
    """Return a count among all, such as `3 of 4 segments`, `all 4 segments`, `both segments` or `the only segment`."""
    if count < total:
        return f"{count:,} of {quantity(total, noun)}"
    return {1: f"the only {noun}", 2: f"both {noun}s"}.get(total, f"all {quantity(total, noun)}")


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value >= 1 else f"{value:.2g} %"


def _pair_near(seen: SeenFrame, judged: JudgedSegments, kinds: list[int]) -> dict[int, int]:
    """Return for each missed segment the surplus prediction that almost matches it, if the score matches neither."""
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


def _find_enclosing_segments(seen: SeenFrame, judged: JudgedSegments, kinds: list[int]) -> dict[int, int]:
    """Return, by surplus prediction, the matched or split segment around it, if the score has its own rule.

    An unmatched segment is split if several predictions inside it together cover enough of it.
    """
    if judged.taken_for is None or seen.judged is None or not seen.shared.size:
        return {}
    inside = seen.shared / np.maximum(seen.prediction.areas, 1) * _same_classes(seen)
    columns = np.flatnonzero((judged.prediction == SURPLUS) & (inside.max(axis=0) >= HALF))
    rows = inside[:, columns].argmax(axis=0)
    parts: dict[int, int] = {}
    for row in np.unique(rows).tolist():
        row_columns = columns[rows == row]
        covers = seen.shared[row, row_columns].sum() >= FRAGMENTS * seen.truth.areas[row]
        if kinds[row] in {RIGHT, SPLIT} or (kinds[row] == MISSED and len(row_columns) > 1 and covers):
            parts |= dict.fromkeys(row_columns.tolist(), row)
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
        for row in _find_enclosing_segments(seen, judged, kinds).values():
            kinds[row] = SPLIT
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
