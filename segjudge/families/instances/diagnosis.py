"""The diagnosis of a submission of instance masks: all tables of one split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.instances.protocols import THRESHOLDS, InstanceProtocol
from segjudge.evaluation_script.families.instances.submission import read_records
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.tools import ScoringInputs
from segjudge.families.instances.curves import points_of
from segjudge.families.instances.error_kinds import BKG, CLS, KINDS, MISS, DetectionErrors, errors_of
from segjudge.families.instances.judged import JudgedDetections, confusion, judged
from segjudge.families.instances.thresholds import BestThreshold, ImageCounts, best_threshold, by_image
from segjudge.system.errors import UsageError

#: So many suspected errors of the truth are listed.
MOST_SUSPECTS = 50


@dataclass(frozen=True)
class InstanceDiagnosis:
    """The diagnosis of a split's detections, at an IoU of one half where nothing else is said."""

    judged: JudgedDetections
    protocol: InstanceProtocol

    @cached_property
    def errors(self) -> DetectionErrors:
        """What is wrong with each detection, and what it costs."""
        return errors_of(self.judged)

    @cached_property
    def best(self) -> BestThreshold | None:
        """The threshold of scores with the largest F1 over all categories."""
        return best_threshold(self.judged)

    @cached_property
    def least(self) -> float:
        """The score from which on detections are kept: the best threshold, or all where nothing is right."""
        return self.best.score if self.best else -np.inf

    @cached_property
    def counts(self) -> ImageCounts:
        """What is right and wrong in each image, of the detections that are kept."""
        return by_image(self.judged, self.least)

    @cached_property
    def kept(self) -> Array:
        """Which detections are kept, and count for or against."""
        return self.judged.kept(self.least)

    @cached_property
    def missed(self) -> Array:
        """Which instances none of the detections that are kept is right about."""
        flags = ~self.judged.crowd
        flags[self.judged.partner[self.kept & self.judged.right]] = False
        return flags

    @cached_property
    def names(self) -> list[str]:
        """The names of the categories."""
        return [category.name for category in self.judged.truth.categories]

    def kinds(self) -> list[Row]:
        """Return a row for each kind of error: how often it is, and how much AP it costs at an IoU of one half."""
        counts = np.bincount(self.errors.kind[self.errors.kind >= 0], minlength=len(KINDS))
        counts[MISS] = self.errors.missed.sum()
        costs = self.errors.costs()
        return [
            {"kind": name, "about": about, "count": int(count), "cost": costs[name]}
            for (name, about), count in zip(KINDS.items(), counts, strict=True)
        ]

    def categories(self) -> list[Row]:
        """Return a row for each category with instances: what each kind costs there, and its best threshold."""
        gains = {name: np.maximum(self.errors.repaired[name] - self.errors.precision, 0) for name in KINDS}
        rows = []
        for index in np.flatnonzero(self.judged.instances).tolist():
            costs = {name: float(np.nan_to_num(gain[index])) for name, gain in gains.items()}
            best = best_threshold(self.judged, index)
            rows.append(
                {
                    "name": self.names[index],
                    "instances": int(self.judged.instances[index]),
                    "detections": int((self.judged.category == index).sum()),
                    "AP50": float(self.errors.precision[index]),
                    **costs,
                    "threshold": best and best.score,
                    "F1": best.f1 if best else 0.0,
                }
            )
        return rows

    def curves(self) -> dict[float, Array]:
        """Return the precision at 101 recalls, as a mean over categories, for each IoU that AP looks at."""
        found = {}
        for threshold in THRESHOLDS:
            one = self.judged.at(threshold)
            curves = points_of(one).of(~one.ignored).curves()[one.instances > 0]
            found[round(threshold, 2)] = curves.mean(axis=0) if len(curves) else np.zeros(curves.shape[1])
        return found

    def steps(self, category: int) -> tuple[Array, Array, Array]:
        """Return recall, precision and score of a category after each of its detections, by falling score."""
        found = self.judged
        mine = np.flatnonzero((found.category == category) & ~found.ignored)
        mine = mine[np.argsort(-found.score[mine], kind="stable")]
        true = np.cumsum(found.right[mine])
        return true / found.instances[category], true / np.arange(1, len(mine) + 1), found.score[mine]

    def confusions(self) -> list[Row]:
        """Return which categories were taken for which others, the most frequent first, of the detections kept."""
        table = confusion(self.judged, self.least)[:-1, :-1]
        np.fill_diagonal(table, 0)
        rows, columns = np.nonzero(table)
        order = np.argsort(-table[rows, columns], kind="stable")
        return [
            {
                "truth": self.names[row],
                "detected as": self.names[column],
                "count": int(table[row, column]),
                "share": float(table[row, column] / self.judged.instances[row]),
            }
            for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True)
        ]

    def images(self) -> list[Row]:
        """Return a row for each image, those with most mistakes first."""
        counts = self.counts
        columns = {"right": counts.right, "wrong": counts.wrong, "missed": counts.missed, "F1": counts.f1}
        return [
            {"image": self.image_name(index), **{name: column[index].item() for name, column in columns.items()}}
            for index in self.worst_images(len(counts.right))
        ]

    def image_name(self, index: int) -> str:
        """Return the name of an image, or its number."""
        number = int(self.judged.truth.images.ids[index])
        return self.judged.truth.names.get(number, str(number))

    def worst_images(self, count: int) -> list[int]:
        """Return the indices of so many images, those with most mistakes first."""
        order = np.argsort(-(self.counts.wrong + self.counts.missed), kind="stable")
        return [int(index) for index in order[:count]]

    def worst_of_categories(self) -> list[int]:
        """Return the image with most mistakes of each category that has any, categories with the lowest AP first."""
        found, wrong = self.judged, self.kept & ~self.judged.right
        images = np.concatenate((found.image[wrong], found.instance_image[self.missed]))
        categories = np.concatenate((found.category[wrong], found.instance_category[self.missed]))
        chosen = []
        for index in np.argsort(self.errors.precision, kind="stable"):
            mine = images[categories == index]
            if len(mine) and found.instances[index]:
                chosen.append(int(np.bincount(mine).argmax()))
        return chosen

    def suspects(self) -> list[Row]:
        """Return confident detections that the truth contradicts, where rather the truth may be wrong."""
        found, kind, target = self.judged, self.errors.kind, self.errors.target
        wrong = np.flatnonzero(((kind == BKG) | (kind == CLS)) & self.kept)
        wrong = wrong[np.argsort(-found.score[wrong], kind="stable")][:MOST_SUSPECTS]
        return [
            {
                "image": self.image_name(found.image[one]),
                "detected": self.names[found.category[one]],
                "score": float(found.score[one]),
                "truth": "nothing" if target[one] < 0 else self.names[found.instance_category[target[one]]],
            }
            for one in wrong.tolist()
        ]


def diagnosed(inputs: ScoringInputs, report: Report) -> InstanceDiagnosis:
    """Return the diagnosis of a submission; raises SubmissionError where it cannot be read."""
    scorer, protocol = inputs.scorers[report.split], report.protocol
    truth = scorer.truth
    if not isinstance(truth, InstanceTruth) or not isinstance(protocol, InstanceProtocol):
        raise UsageError(f"failures of {protocol.name} have no kinds")
    records = read_records(inputs.results, truth.images, protocol, scorer.rules.limits)
    return InstanceDiagnosis(judged(records, truth, protocol), protocol)
