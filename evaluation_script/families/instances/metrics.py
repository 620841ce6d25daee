"""Average precision as the COCO API computes it, to the last bit, also without each group of images."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Collection, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ...files.problems import SubmissionError, inflect, quantity
from ...masks.backend import backend
from ...masks.detections import CurveTables, CurveTask, RankedBits
from ...masks.stack import Array
from ...values.arithmetic import mean
from ..base.accumulator import Accumulator
from ..base.reports import Report, deal_groups
from .matching import InstanceCounts, decode_counts, merge_counts
from .protocols import AREAS, FREQUENCIES, OCCLUSIONS, THRESHOLDS, InstanceProtocol
from .records import Category
from .suspicions import judge_detections

if TYPE_CHECKING:
    from .cityscapes import StreetCurves

#: The number of images in a block of the saved state.
BLOCK = 4096
#: The recalls at which precision is sampled.
RECALLS = np.linspace(0.0, 1.0, 101)
#: Index of a range of areas, index of a number of detections.
_Pair = Tuple[int, int]
#: Metric -> value; None if there is nothing to average.
_Averages = Dict[str, Optional[float]]


@dataclass(frozen=True)
class InstanceScore:
    """The scores of a submission on one dataset."""

    values: _Averages
    #: One row per category of the truth.
    categories: List[Dict[str, Union[str, float, None]]]
    warnings: List[str]
    #: Suspected slips.
    suspicions: List[str] = field(default_factory=list)


class InstanceAccumulator(Accumulator[InstanceProtocol, InstanceCounts]):
    """The matches in the images of one split, from any number of processes."""

    noun = "image"
    decode = staticmethod(decode_counts)

    def __init__(
        self,
        protocol: InstanceProtocol,
        images: List[int],
        categories: List[Category],
        notes: Sequence[str] = (),
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(protocol, strict=strict)
        #: The ids of all images, in the truth's order, and all categories.
        self.images, self.categories = images, categories
        #: The notes from before matching.
        self.notes = list(notes)
        self._parts: List[InstanceCounts] = []
        #: The part that contains each image; -1 for none.
        self._part_of = np.full(len(images), -1)
        #: The last ranking, with the counts that it ranks.
        self._ranked: Optional[Tuple[InstanceCounts, MatchedDetections]] = None

    @classmethod
    def make_empty(
        cls, protocol: InstanceProtocol, description: Dict[str, Any], *, strict: bool
    ) -> InstanceAccumulator:
        categories = [Category(int(number), str(name), str(often)) for number, name, often in description["categories"]]
        images, notes = list(map(int, description["images"])), list(map(str, description["notes"]))
        return cls(protocol, images, categories, notes, strict=strict)

    def describe(self) -> Dict[str, Any]:
        categories = [[category.id, category.name, category.frequency] for category in self.categories]
        return {"images": self.images, "categories": categories, "notes": self.notes}

    def update(self, counts: InstanceCounts) -> None:
        images = counts.images["image"]
        categories = len(self.categories) * self.protocol.aspects
        for table, bound in (
            (images, len(self.images)),
            (counts.detections["category"], categories),
            (counts.truth["category"], categories),
        ):
            if len(table) and int(table.max()) >= bound:
                raise ValueError("it is for images or categories that this split lacks")
        repeated = images[self._part_of[images] >= 0]
        if len(repeated):
            parts = [self._parts[number] for number in np.unique(self._part_of[repeated]).tolist()]
            if merge_counts(parts).select_images(repeated).encode() != counts.select_images(repeated).encode():
                raise ValueError("images were matched twice, with different results")
            images = images[self._part_of[images] < 0]
            counts = counts.select_images(images)
        self._part_of[images] = len(self._parts)
        self._parts.append(counts)

    def missing(self) -> List[str]:
        return [str(self.images[index]) for index in np.flatnonzero(self._part_of < 0).tolist()]

    def state_dict(self) -> Dict[str, bytes]:
        return {name: counts.encode() for name, counts in merge_counts(self._parts).blocks(BLOCK).items()}

    def load_state_dict(self, state: Dict[str, bytes]) -> None:
        self._parts, self._part_of = [], np.full(len(self.images), -1)
        for name, data in state.items():
            counts = decode_counts(data)
            if list(counts.blocks(BLOCK)) != [name]:
                raise ValueError(f"block {name} holds other images")
            self.update(counts)

    def all_counts(self) -> List[InstanceCounts]:
        return self._parts

    def join_parts(self) -> InstanceCounts:
        if len(self._parts) != 1:
            self._parts = [merge_counts(self._parts)]
        self._part_of = np.minimum(self._part_of, 0)
        return self._parts[0]

    def rank_detections(self) -> MatchedDetections:
        """Return the detections of all images, ready for curves."""
        counts = self.join_parts()
        if self._ranked is None or self._ranked[0] is not counts:
            categories = len(self.categories) * self.protocol.aspects
            self._ranked = counts, MatchedDetections(counts, categories, self.protocol.detections)
        return self._ranked[1]

    def compute(self) -> InstanceScore:
        """Return the scores and warnings; if strict, a warning rejects the submission."""
        self.refuse_missing()
        warnings = [*self.notes, *self._warn_of_dropped()]
        if self.strict and warnings:
            problem = f"your file: {'; '.join(warnings)}. Scoring is strict. Omit everything that is not scored."
            raise SubmissionError(problem)
        counts = self.join_parts()
        suspicions = judge_detections(counts.truth, counts.detections, len(self.categories), self.protocol)
        if self.protocol.streets:
            from .cityscapes import list_categories, sum_up  # other benchmarks do not need it

            precisions = self._trace_streets().precisions()
            rows = list_categories(precisions, [(category.id, category.name) for category in self.categories])
            return InstanceScore(sum_up(precisions), rows, warnings, suspicions)
        curves = self.rank_detections().curves(_pairs_to_report(self.protocol.detections))
        rows = [
            {"id": category.id, "name": category.name, **values}
            for category, values in zip(self.categories, _list_averages(curves, len(self.categories)))
        ]
        return InstanceScore(averages(curves, self.protocol, self._frequencies()), rows, warnings, suspicions)

    def _trace_streets(self) -> StreetCurves:
        from .cityscapes import StreetCurves

        counts = self.join_parts()
        return StreetCurves(counts.truth, counts.detections, len(self.categories), len(self.images))

    def _warn_of_dropped(self) -> List[str]:
        """Return the warning about records beyond the cap."""
        dropped = self.join_parts().images["dropped"]
        total, images = int(dropped.sum()), int((dropped > 0).sum())
        if not total:
            return []
        cap, holders = self.protocol.detections[-1], quantity(images, "video" if self.protocol.tubes else "image")
        return [f"{quantity(total, 'record')} beyond {cap} in {holders} {inflect(total, 'was', 'were')} dropped"]

    def without_groups(self, metrics: Collection[str] = ()) -> Dict[str, Array]:
        """Return these metrics, or all, leaving out one group of images at a time; empty for a single image."""
        if len(self.images) < 2:
            return {}
        group, caps, frequencies = deal_groups(len(self.images)), self.protocol.detections, self._frequencies()
        if self.protocol.streets:
            from .cityscapes import sum_up

            curves = self._trace_streets()
            values_of_groups = [sum_up(curves.precisions(group != number)) for number in range(int(group.max()) + 1)]
            return {
                name: np.array([values[name] for values in values_of_groups], float)
                for name in metrics or self.protocol.metrics
            }
        read = {f"AR@{cap}": (0, number) for number, cap in enumerate(caps)}
        read.update(dict.fromkeys(("AP", "AP50", "AP75"), (0, len(caps) - 1)))
        few = metrics and read.keys() >= set(metrics)
        pairs = list({read[name] for name in metrics}) if few else _pairs_to_report(caps)
        curves_of_groups = self.rank_detections().without_each(pairs, group, int(group.max()) + 1)
        averages_of_groups = [averages(curves, self.protocol, frequencies) for curves in curves_of_groups]
        return {
            name: np.array([group_averages[name] for group_averages in averages_of_groups], float)
            for name in metrics or self.protocol.metrics
        }

    def _frequencies(self) -> List[str]:
        return [category.frequency for category in self.categories]


class InstanceReport(Report):
    """Scores of instance masks."""

    protocol: InstanceProtocol

    def __init__(self, split: str, accumulator: InstanceAccumulator) -> None:
        score = accumulator.compute()
        tables = {"categories": score.categories}
        units, leave_out = len(accumulator.images), accumulator.without_groups
        super().__init__(
            split,
            accumulator.protocol,
            score.values,
            tables,
            score.warnings,
            accumulator,
            units,
            leave_out,
            score.suspicions,
        )


class _Curves(NamedTuple):
    """Precision (thresholds, recalls, categories, areas, caps) and the recall reached; -1 without truth.

    The scores at which recalls are reached have the shape of precision, or are empty.
    """

    precision: Array
    recall: Array
    scores: Array


class MatchedDetections:
    """Matched detections, from which curves are computed."""

    def __init__(
        self,
        counts: InstanceCounts,
        categories: int,
        caps: Sequence[int],
        *,
        scored: bool = False,
        recalls: Array = RECALLS,
    ) -> None:
        self.truth, self.caps, self.categories = counts.truth, caps, categories
        #: The recalls at which precision is sampled, which rise from 0.
        self._recalls = recalls
        detections = counts.detections
        # Among equal scores, the first image comes first, then the first record in it.
        order = backend().order_by_score(detections["score"], detections["category"])
        self._bounds = np.searchsorted(detections["category"][order], np.arange(categories + 1))
        counted = ~detections["ignored"][order]
        self._ranked = RankedBits(
            detections["matched"][order] & counted,
            counted,
            detections["rank"][order],
            detections["image"][order],
            detections["score"][order] if scored else None,
        )

    def curves(self, pairs: Sequence[_Pair]) -> _Curves:
        (counts,) = self.instance_counts(np.zeros(int(self.truth["image"].max(initial=0)) + 1, np.int64), 1)
        shape = (len(AREAS) * len(self.caps), self.categories, 1, len(THRESHOLDS))
        precision, recall = np.full((*shape, len(self._recalls)), -1.0), np.full(shape, -1.0)
        scores = None if self._ranked.score is None else np.full(precision.shape, -1.0)
        nobody = np.ones(len(self._ranked.rank), np.uint8)
        self._enter_curves(pairs, nobody, counts[..., None], CurveTables(precision, recall, scores))
        if scores is not None:
            self._enter_first_scores(scores, recall, pairs)
        all_pairs = (len(AREAS), len(self.caps), self.categories, len(THRESHOLDS))
        precision, recall = precision.reshape(*all_pairs, len(self._recalls)), recall.reshape(all_pairs)
        scores = np.zeros((*all_pairs[:3], 0, 0)) if scores is None else scores.reshape(precision.shape)
        precision, scores = (table.transpose(3, 4, 2, 0, 1) for table in (precision, scores))
        return _Curves(precision, recall.transpose(3, 2, 0, 1), scores)

    def without_each(self, pairs: Sequence[_Pair], group: Array, groups: int) -> List[_Curves]:
        """Return the curves leaving out one group at a time; precision up to the last cap, averaged over recalls."""
        counts = self.instance_counts(group, groups)
        counts = np.moveaxis(counts.sum(axis=0) - counts, 0, 2)
        all_pairs, last = (len(AREAS), len(self.caps)), len(self.caps) - 1
        shape = (len(AREAS) * len(self.caps), self.categories, groups, len(THRESHOLDS))
        tables = CurveTables(np.full(shape, -1.0), np.full(shape, -1.0))
        group_of = group[self._ranked.image].astype(np.uint8)
        self._enter_curves([pair for pair in pairs if pair[1] == last], group_of, counts, tables, averaged=True)
        self._enter_curves(
            [pair for pair in pairs if pair[1] < last], group_of, counts, tables, averaged=True, recalls=0
        )
        both = (table.reshape(*all_pairs, *shape[1:]) for table in (tables.precision, tables.recall))
        precision, recall = (table.transpose(3, 4, 2, 0, 1) for table in both)
        nothing = np.zeros((len(THRESHOLDS), 0, self.categories, 0, 0))
        return [_Curves(precision[number][:, None], recall[number], nothing) for number in range(groups)]

    def _enter_curves(
        self,
        pairs: Sequence[_Pair],
        group: Array,
        counts: Array,
        tables: CurveTables,
        *,
        averaged: bool = False,
        recalls: Optional[int] = None,
    ) -> None:
        """Enter the curves of all categories, with some or all recalls, into tables with a row for each pair."""
        caps = self.caps
        limits = [(area, caps[cap], area * len(caps) + cap) for area, cap in pairs]
        needed, which = _list_needed(counts, self._recalls)
        task = CurveTask(
            self._ranked, self._bounds, group, limits, len(THRESHOLDS), counts, needed[:, :recalls], which, averaged
        )
        backend().draw_curves(task, range(self.categories), tables)

    def _enter_first_scores(self, scores: Array, recall: Array, pairs: Sequence[_Pair]) -> None:
        """Enter the score that reaches recall 0: that of the first detection up to the cap, whether correct or not."""
        starts, stops, caps = self._bounds[:-1], self._bounds[1:], self.caps
        score: Any = self._ranked.score
        for area, cap in pairs:
            within = np.append(np.flatnonzero(self._ranked.rank < caps[cap]), len(self._ranked.rank))
            leaders = within[np.searchsorted(within, starts)]
            first_scores = np.append(score, 0.0)[np.where(leaders < stops, leaders, -1)]
            row = area * len(caps) + cap
            present = recall[row, :, 0, 0] >= 0
            scores[row, present, ..., 0] = first_scores[present, None, None]

    def instance_counts(self, group: Array, groups: int) -> Array:
        """Return how many instances count (groups of images, categories, ranges of areas)."""
        shape = (groups, self.categories)
        index = group[self.truth["image"]] * self.categories + self.truth["category"]
        columns = (self.truth["counted"][:, area] for area in range(len(AREAS)))
        return np.stack([np.bincount(index, column, math.prod(shape)).reshape(shape) for column in columns], axis=2)


def _pairs_to_report(caps: Sequence[int]) -> List[_Pair]:
    """Return the pairs that the statistics read."""
    last = len(caps) - 1
    return [(0, cap) for cap in range(len(caps))] + [(area, last) for area in range(1, len(AREAS))]


def _list_needed(counts: Array, recalls: Array) -> Tuple[Array, Array]:
    """Return how many true detections each recall requires (numbers of instances, recalls), and each count's row."""
    ordered = np.sort(np.maximum(counts, 1).astype(np.int64).reshape(-1))
    numbers = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    column = numbers[:, None]
    needed = np.clip(np.ceil(recalls * column) - 1, 1, column).astype(np.int64)
    for _ in range(2):  # the tolerance for rounding
        needed += needed / column < recalls
    return needed, np.searchsorted(numbers, np.maximum(counts, 1))


def averages(curves: _Curves, protocol: InstanceProtocol, frequencies: Sequence[str]) -> _Averages:
    """Return the statistics, also by frequency if the categories' frequencies are given."""
    caps, count = protocol.detections, len(frequencies)
    sizes, hidden = list(enumerate(AREAS))[1:], list(enumerate(OCCLUSIONS))[1:] if protocol.occlusion else []
    last = len(caps) - 1
    precision, recall = curves.precision[:, :, :count], curves.recall[:, :count]
    by_occlusion = curves.precision[:, :, count:], curves.recall[:, count:]
    groups = (
        [(name, [frequency == name for frequency in frequencies]) for name in FREQUENCIES] if protocol.federated else []
    )
    values = {
        "AP": _mean(precision[:, :, :, 0, last]),
        "AP50": _mean(precision[0, :, :, 0, last]),
        "AP75": _mean(precision[5, :, :, 0, last]),
        **{f"AP{name}": _mean(precision[:, :, :, area, last]) for area, name in sizes},
        **{f"AP{name}": _mean(by_occlusion[0][:, :, :, area, last]) for area, name in hidden},
        **{f"AP{name}": _mean(precision[:, :, members, 0, last]) for name, members in groups},
        "AR": _mean(recall[:, :, 0, last]),
        "AR50": _mean(recall[0, :, 0, last]),
        "AR75": _mean(recall[5, :, 0, last]),
        **{f"AR@{cap_size}": _mean(recall[:, :, 0, cap]) for cap, cap_size in enumerate(caps)},
        **{f"AR{protocol.recall_of(name)}": _mean(recall[:, :, area, last]) for area, name in sizes},
        **{f"AR{name}": _mean(by_occlusion[1][:, :, area, last]) for area, name in hidden},
    }
    return {name: values[name] for name in protocol.metrics}


def _list_averages(curves: _Curves, categories: int) -> List[_Averages]:
    """Return AP, AP50, AP75 and AR of each category, up to the last cap."""
    precision = curves.precision[:, :, :categories, 0, -1].transpose(2, 0, 1)
    tables = {
        "AP": precision.reshape(categories, math.prod(precision.shape[1:])),
        "AP50": precision[:, 0],
        "AP75": precision[:, 5],
        "AR": curves.recall[:, :categories, 0, -1].T,
    }
    columns = {}
    for name, table in tables.items():
        means = np.add.reduce(np.ascontiguousarray(table), axis=1) / table.shape[1]  # as `mean` adds each row
        columns[name] = [value if least > -1 else None for value, least in zip(means.tolist(), table[:, 0])]
    return [dict(zip(columns, values)) for values in zip(*columns.values())]


def _mean(values: Array) -> Optional[float]:
    present = values[values > -1]
    return mean(present) if len(present) else None
