"""The accumulator of instance masks: what matching found by image and category, and the scores that it makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Collection, Dict, List, Union

import numpy as np

from ...files.problems import SubmissionError, counted, verb
from ...masks.stack import Array
from ..base import codings
from ..base.accumulator import Accumulator
from ..base.intervals import dealt
from ..base.reports import Report
from .columns import Category
from .counts import InstanceCounts, decoded, joined
from .precision import Averages, MatchedDetections, averages, category_averages, reported_pairs
from .protocols import InstanceProtocol

#: Images in a block of the saved state.
BLOCK = 4096


@dataclass(frozen=True)
class InstanceScore:
    """What a submission scored on one dataset."""

    values: Averages
    #: A row for each category of the truth.
    categories: List[Dict[str, Union[str, float, None]]]
    warnings: List[str]


class InstanceAccumulator(Accumulator[InstanceProtocol, InstanceCounts]):
    """What matching found in the images of one split, whoever matched."""

    noun = "image"

    def __init__(
        self, protocol: InstanceProtocol, images: List[int], categories: List[Category], *, strict: bool = False
    ) -> None:
        super().__init__(protocol, strict=strict)
        #: The ids of all images, in the truth's order, and all categories.
        self.images, self.categories = images, categories
        self.notes: List[str] = []
        self._parts: List[InstanceCounts] = []
        #: The part that holds an image, -1 where there is none.
        self._where = np.full(len(images), -1)

    @classmethod
    def restored(cls, protocol: InstanceProtocol, described: Dict[str, Any], *, strict: bool) -> InstanceAccumulator:
        categories = [Category(int(number), str(name), str(often)) for number, name, often in described["categories"]]
        total = cls(protocol, [int(number) for number in described["images"]], categories, strict=strict)
        total.notes = [str(note) for note in described["notes"]]
        return total

    def described(self) -> Dict[str, Any]:
        categories = [[category.id, category.name, category.frequency] for category in self.categories]
        return {"images": self.images, "categories": categories, "notes": self.notes}

    def __len__(self) -> int:
        return int((self._where >= 0).sum())

    def update(self, counts: InstanceCounts) -> None:
        images = counts.images["image"]
        categories = len(self.categories) * self.protocol.aspects
        for table, bound in (
            (images, len(self.images)),
            (counts.detections["category"], categories),
            (counts.truth["category"], categories),
        ):
            if len(table) and int(table.max()) >= bound:
                raise ValueError("it is of images or categories that this split does not have")
        known = images[self._where[images] >= 0]
        if len(known):
            parts = [self._parts[number] for number in np.unique(self._where[known]).tolist()]
            if joined(parts).of(known).encoded() != counts.of(known).encoded():
                raise ValueError("images were matched twice, with different results")
            images = images[self._where[images] < 0]
            counts = counts.of(images)
        self._where[images] = len(self._parts)
        self._parts.append(counts)

    def missing(self) -> List[str]:
        return [str(self.images[index]) for index in np.flatnonzero(self._where < 0).tolist()]

    def state_dict(self) -> Dict[str, bytes]:
        return {name: part.encoded() for name, part in joined(self._parts).blocks(BLOCK).items()}

    def load_state_dict(self, state: Dict[str, bytes]) -> None:
        self._parts, self._where = [], np.full(len(self.images), -1)
        for name, data in state.items():
            counts = decoded(data)
            if list(counts.blocks(BLOCK)) != [name]:
                raise ValueError(f"block {name} holds other images")
            self.update(counts)

    def held(self) -> List[InstanceCounts]:
        return self._parts

    def whole(self) -> InstanceCounts:
        """Return what was found in all images."""
        self._parts = [joined(self._parts)]
        self._where = np.minimum(self._where, 0)
        return self._parts[0]

    def matched(self) -> MatchedDetections:
        """Return the detections of all images, ready for curves."""
        categories = len(self.categories) * self.protocol.aspects
        return MatchedDetections(self.whole(), categories, self.protocol.detections)

    def compute(self) -> InstanceScore:
        """Return the scores and warnings; when strict, a warning refuses the submission."""
        self.refuse_missing()
        matching, caps = self.matched(), self.protocol.detections
        warnings = [*self.notes, *self._dropped()]
        if self.strict and warnings:
            found = f"your file: {'; '.join(warnings)}. This is scored strictly. Send only what is scored."
            raise SubmissionError(found)
        curves = matching.curves(reported_pairs(caps))
        if len(self.whole().detections):
            real, hits = int((curves.recall >= 0).any()), int((curves.recall > 0).any())
            warnings += codings.of_matches("detection", real, 1, hits)
        rows = [
            {"id": category.id, "name": category.name, **category_averages(curves, index)}
            for index, category in enumerate(self.categories)
        ]
        return InstanceScore(averages(curves, self.protocol, self._frequencies()), rows, warnings)

    def _dropped(self) -> List[str]:
        """Return the warning about what lies beyond the cap."""
        dropped = self._parts[0].images["dropped"]
        total, images = int(dropped.sum()), int((dropped > 0).sum())
        if not total:
            return []
        where, were = counted(images, "video" if self.protocol.tubes else "image"), verb(total, "was", "were")
        return [f"{counted(total, 'record')} beyond {self.protocol.detections[-1]} in {where} {were} dropped"]

    def without_groups(self, metrics: Collection[str] = ()) -> Dict[str, Array]:
        """Return these metrics, or all if there are none, without each group of images; nothing of a single image."""
        if len(self.images) < 2:
            return {}
        group, caps, frequencies = dealt(len(self.images)), self.protocol.detections, self._frequencies()
        read = {f"AR@{cap}": (0, number) for number, cap in enumerate(caps)}
        read.update(dict.fromkeys(("AP", "AP50", "AP75"), (0, len(caps) - 1)))
        few = metrics and read.keys() >= set(metrics)
        pairs = list({read[name] for name in metrics}) if few else reported_pairs(caps)
        each = self.matched().without_each(pairs, group, int(group.max()) + 1)
        without = [averages(curves, self.protocol, frequencies) for curves in each]
        return {name: np.array([one[name] for one in without], float) for name in metrics or self.protocol.metrics}

    def _frequencies(self) -> List[str]:
        return [category.frequency for category in self.categories]


class InstanceReport(Report):
    """Scores of instance masks."""

    protocol: InstanceProtocol

    def __init__(self, split: str, accumulator: InstanceAccumulator) -> None:
        score = accumulator.compute()
        super().__init__(split, accumulator.protocol, score.values, {"categories": score.categories}, score.warnings)
        self._left_out, self._units = accumulator.without_groups, len(accumulator.images)
