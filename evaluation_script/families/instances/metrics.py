"""Average precision as the COCO API computes it, to the last bit, also without each group of images."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING, Any, Collection, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from ...files.problems import SubmissionError, inflect, quantity
from ...masks.backend import backend
from ...masks.detections import CappedRange, RankedBits
from ...masks.stack import Array
from ...runner.parallel import results_of_threads
from ...values import dataclass
from ...values.arithmetic import mean
from ..base.accumulator import Accumulator
from ..base.reports import Report, deal_groups
from .matching import InstanceCounts, decode_counts, merge_counts
from .protocols import AREAS, FREQUENCIES, OCCLUSIONS, THRESHOLDS, InstanceProtocol
from .records import Category
from .suspicions import judge_detections

if TYPE_CHECKING:
    from .cityscapes import StreetCurves

#: Images in a block of the saved state.
BLOCK = 4096
#: Precision is read off at these recalls.
RECALLS = np.linspace(0.0, 1.0, 101)
#: Index of a range of areas, index of a number of detections.
_Pair = Tuple[int, int]
#: Metrics by name; None where there is nothing to average.
_Averages = Dict[str, Optional[float]]


@dataclass(frozen=True)
class InstanceScore:
    """The scores of a submission on one dataset."""

    values: _Averages
    #: A row for each category of the truth.
    categories: List[Dict[str, Union[str, float, None]]]
    warnings: List[str]
    #: What looks like a slip.
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
        suspicions: Sequence[str] = (),
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(protocol, strict=strict)
        #: The ids of all images, in the truth's order, and all categories.
        self.images, self.categories = images, categories
        #: So many threads draw its curves.
        self.jobs = 1
        #: What was noted before anything was matched.
        self.notes = list(notes)
        #: What the records look like, if a slip was made.
        self.suspicions = list(suspicions)
        self._parts: List[InstanceCounts] = []
        #: The part that holds an image, -1 where there is none.
        self._part_of = np.full(len(images), -1)
        #: What was ranked last, and of which counts.
        self._ranked: Optional[Tuple[InstanceCounts, MatchedDetections]] = None

    @classmethod
    def make_empty(
        cls, protocol: InstanceProtocol, description: Dict[str, Any], *, strict: bool
    ) -> InstanceAccumulator:
        categories = [Category(int(number), str(name), str(often)) for number, name, often in description["categories"]]
        images, notes = list(map(int, description["images"])), list(map(str, description["notes"]))
        suspicions = list(map(str, description.get("suspicions", ())))
        return cls(protocol, images, categories, notes, suspicions, strict=strict)

    def describe(self) -> Dict[str, Any]:
        categories = [[category.id, category.name, category.frequency] for category in self.categories]
        suspicions = {"suspicions": self.suspicions} if self.suspicions else {}
        return {"images": self.images, "categories": categories, "notes": self.notes, **suspicions}

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
            self._ranked = counts, MatchedDetections(counts, categories, self.protocol.detections, self.jobs)
        return self._ranked[1]

    def compute(self) -> InstanceScore:
        """Return the scores and warnings; if strict, a warning rejects the submission."""
        self.refuse_missing()
        warnings = [*self.notes, *self._warn_of_dropped()]
        if self.strict and warnings:
            problem = f"your file: {'; '.join(warnings)}. This is scored strictly. Send only what is scored."
            raise SubmissionError(problem)
        counts = self.join_parts()
        suspicions = [*self.suspicions, *judge_detections(counts.truth, counts.detections, self.categories)]
        if self.protocol.streets:
            from .cityscapes import list_categories, sum_up  # what other benchmarks do not need

            precisions = self._trace_streets().precisions()
            rows = list_categories(precisions, [(category.id, category.name) for category in self.categories])
            return InstanceScore(sum_up(precisions), rows, warnings, suspicions)
        curves = self.rank_detections().curves(_pairs_to_report(self.protocol.detections))
        rows = [
            {"id": category.id, "name": category.name, **_category_averages(curves, index)}
            for index, category in enumerate(self.categories)
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


@dataclass(frozen=True)
class _Curves:
    """Precision (thresholds, recalls, categories, areas, caps) and the recall reached; -1 without truth.

    The score at which each recall is reached is as large as precision, or empty.
    """

    precision: Array
    recall: Array
    scores: Array


class MatchedDetections:
    """Matched detections, from which curves are computed."""

    def __init__(
        self, counts: InstanceCounts, categories: int, caps: Sequence[int], jobs: int = 1, *, scored: bool = False
    ) -> None:
        self.truth, self.caps, self.categories, self._jobs = counts.truth, caps, categories, jobs
        detections = counts.detections
        # Of equal scores the first image's, the first there.
        order = backend().order_by_score(detections["score"], detections["category"])
        self._bounds = np.searchsorted(detections["category"][order], np.arange(categories + 1))
        self._image, self._rank = detections["image"][order], detections["rank"][order]
        self._counted = ~detections["ignored"][order]
        self._true = detections["matched"][order] & self._counted
        #: Where the score at each recall is wanted.
        self._score = detections["score"][order] if scored else None

    def curves(self, pairs: Sequence[_Pair]) -> _Curves:
        (counts,) = self.instance_counts(np.zeros(int(self.truth["image"].max(initial=0)) + 1, np.int64), 1)
        shape = (len(AREAS), len(self.caps), self.categories, len(THRESHOLDS))
        precision, recall = np.full((*shape, len(RECALLS)), -1.0), np.full(shape, -1.0)
        scores = np.full((*shape[:3], 0, 0) if self._score is None else precision.shape, -1.0)
        needed = NeededCounts(counts)

        def draw(category: int) -> None:
            area, cap, ranges = self._pairs_with_truth(counts[category], pairs)
            if ranges:
                ranked = self.rank_category(category)
                if self._score is not None:
                    ranked = ranked._replace(score=self._score[self._members(category)])
                points, true_counts, reached = backend().read_precision(
                    ranked, ranges, len(THRESHOLDS), needed.look_up(counts[category, area])
                )
                precision[area, cap, category] = points
                recall[area, cap, category] = true_counts / counts[category, area, None]
                if ranked.score is not None:
                    # Recall 0 is reached by the first detection, be it true or not.
                    first_scores = [next(iter(ranked.score[ranked.rank < limit][:1]), 0.0) for _, limit in ranges]
                    reached[..., RECALLS == 0] = np.array(first_scores)[:, None, None]
                    scores[area, cap, category] = reached

        categories = np.flatnonzero(counts.any(axis=1)).tolist()
        results_of_threads(lambda index: draw(categories[index]), len(categories), self._jobs)
        precision, scores = (table.transpose(3, 4, 2, 0, 1) for table in (precision, scores))
        return _Curves(precision, recall.transpose(3, 2, 0, 1), scores)

    def without_each(self, pairs: Sequence[_Pair], group: Array, groups: int) -> List[_Curves]:
        """Return the curves leaving out one group at a time; precision up to the last cap, averaged over recalls."""
        counts = self.instance_counts(group, groups)
        counts = np.moveaxis(counts.sum(axis=0) - counts, 0, 2)
        shape = (len(AREAS), len(self.caps), self.categories, groups, len(THRESHOLDS))
        precision, recall = -np.ones(shape), -np.ones(shape)
        needed, last = NeededCounts(counts), len(self.caps) - 1
        whole, recalls_alone = [pair for pair in pairs if pair[1] == last], [pair for pair in pairs if pair[1] < last]

        def draw(category: int) -> None:
            ranked, has_truth = self.rank_category(category), counts[category].any(axis=1)
            group_of = group[ranked.image]
            for area, cap, ranges in (self._pairs_with_truth(has_truth, some) for some in (whole, recalls_alone)):
                if not ranges:
                    continue
                remaining = counts[category, area, :, None]
                recalls = slice(None) if cap[0] == last else slice(0)
                points, true_counts = backend().read_precision_without_each(
                    ranked, group_of, ranges, len(THRESHOLDS), needed.look_up(remaining[..., 0])[..., recalls]
                )
                if points.size:
                    precision[area, cap, category] = np.where(remaining > 0, points.mean(axis=3), -1)
                recall[area, cap, category] = np.where(remaining > 0, true_counts / np.maximum(remaining, 1), -1)

        categories = np.flatnonzero(counts.any(axis=(1, 2))).tolist()
        results_of_threads(lambda index: draw(categories[index]), len(categories), self._jobs)
        precision, recall = precision.transpose(3, 4, 2, 0, 1), recall.transpose(3, 4, 2, 0, 1)
        nothing = np.zeros((len(THRESHOLDS), 0, self.categories, 0, 0))
        return [_Curves(precision[number][:, None], recall[number], nothing) for number in range(groups)]

    def _pairs_with_truth(self, has_truth: Array, pairs: Sequence[_Pair]) -> Tuple[Array, Array, List[CappedRange]]:
        """Return the pairs of area and cap with any counted instance, and the same with the caps' values."""
        remaining = [pair for pair in pairs if has_truth[pair[0]]]
        areas, caps = np.array(remaining, np.int64).reshape(-1, 2).T
        return areas, caps, [(area, self.caps[cap]) for area, cap in remaining]

    def rank_category(self, category: int) -> RankedBits:
        """Return the detections of a category by falling score."""
        members = self._members(category)
        return RankedBits(self._true[members], self._counted[members], self._rank[members], self._image[members])

    def _members(self, category: int) -> slice:
        return slice(self._bounds[category], self._bounds[category + 1])

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


class NeededCounts:
    """The numbers of instances to find for each recall, given the number of instances."""

    def __init__(self, counts: Array) -> None:
        ordered = np.sort(np.maximum(counts, 1).astype(np.int64).reshape(-1))
        self._counts = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
        count = self._counts[:, None]
        self._needed = np.clip(np.ceil(RECALLS * count) - 1, 1, count).astype(np.int64)
        for _ in range(2):  # what rounding may be off
            self._needed += self._needed / count < RECALLS

    def look_up(self, counts: Array) -> Array:
        """Return (counts, recalls) of some of the counts."""
        needed: Array = self._needed[np.searchsorted(self._counts, np.maximum(counts, 1))]
        return needed


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


def _category_averages(curves: _Curves, category: int) -> _Averages:
    """Return AP, AP50, AP75 and AR of one category, up to the last cap."""
    precision, recall = curves.precision[:, :, category, 0, -1], curves.recall[:, category, 0, -1]
    return {"AP": _mean(precision), "AP50": _mean(precision[0]), "AP75": _mean(precision[5]), "AR": _mean(recall)}


def _mean(values: Array) -> Optional[float]:
    present = values[values > -1]
    return mean(present) if len(present) else None
