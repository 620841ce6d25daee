"""Label maps: maps in memory, losses of mIoU, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.evaluation_script.families.semantic.protocols import VIDEOS
from segjudge.families.base.unit_tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.reports import Report
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.evaluation_script.masks.stack import Array
    from segjudge.families.base.drawing import UnitPictures
    from segjudge.families.base.pictures import UnitPainter
    from segjudge.report.page import Section

__all__ = ["TOOLS"]


class _SemanticTools(UnitTools):
    label_groups = (("mIoU-super", "Acc-super", "Acc_class-super", "fwIoU-super"),)
    memory, painter = "SemanticInMemory", "SemanticPainter"
    meanings: ClassVar = {
        "mIoU": "intersection over union, mean over the classes in the truth",
        "IoU": "intersection over union, mean over the classes in truth or prediction",
        "iIoU": "IoU of classes with objects; each object has the weight of an average one",
        "IoU-categories": "intersection over union of categories, mean over those in truth or prediction",
        "iIoU-categories": "IoU of categories with objects; each object has the weight of an average one",
        "mIoU-super": "intersection over union of super categories, mean over those in the truth",
        "Acc-super": "share of pixels with the correct super category",
        "Acc_class-super": "share of pixels with the correct super category, mean over super categories",
        "fwIoU-super": "intersection over union of super categories, weighted by their frequency",
        "Acc": "share of pixels with the correct class",
        "Acc_class": "share of pixels with the correct class, mean over classes",
        "fwIoU": "intersection over union, weighted by class frequency",
        "Precision": "precision of pixels, mean over classes (BDD100K's Acc)",
        "mIoU-official": "intersection over union, mean over all 150 classes; absent classes count as 0",
        "Score": "mean of mIoU-official and Acc: the ranking of the 2016 challenge",
        "VC": "video consistency: share of pixels with a constant true label whose prediction is constant too,",
    }

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return protocol.metrics[0], "videos" if protocol.form == VIDEOS else "images"

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Return the loss of the mean IoU: missing and surplus pixels of a class; the sum is 1 - mean."""
        import numpy as np

        protocol, classes = accumulator.protocol, accumulator.protocol.classes
        missed, surplus, present = _sum_by_unit(accumulator)
        union = present + surplus.sum(axis=0)
        averaged = union if protocol.averages_predicted else present
        seen = (averaged > 0) & (np.arange(classes) < (protocol.averaged or classes))
        weight = seen / np.maximum(union, 1) / max(int(seen.sum()), 1)
        losses = np.stack((missed * weight, surplus * weight), axis=-1)
        kinds = {
            "missing": "pixels of a class that have another label",
            "surplus": "pixels of other classes with its label",
        }
        return UnitLosses(kinds, losses.sum(axis=1), losses.sum(axis=0)[union > 0])

    def make_confusions(self, painter: UnitPainter, pictures: UnitPictures, noun: str, report: Report) -> list[Section]:
        """Return the section of confused classes over all videos."""
        from segjudge.evaluation_script.families.semantic.engine import describe_classes, sum_confusion
        from segjudge.report.page import make_confusion

        accumulator = self.counts_of(report)
        protocol = describe_classes(accumulator.protocol, accumulator.facts)
        table = sum_confusion(accumulator)
        names = [*map(protocol.name_class, protocol.labels), "nothing"]
        about = f"Pixels of all {len(accumulator.names):,} {noun}."
        return [make_confusion(names, table, "pixels", about)]


def _sum_by_unit(accumulator: UnitAccumulator[Any]) -> tuple[Array, Array, Array]:
    """Return the missed and the surplus pixels of each class by unit, and the true pixels of each class."""
    import numpy as np

    from segjudge.evaluation_script.families.semantic.engine import class_indices, split_keys
    from segjudge.evaluation_script.masks.overlaps import tabulate

    protocol = accumulator.protocol
    end = protocol.classes + 1
    wrong, present = np.zeros((2, len(accumulator.names), end)), np.zeros(end, np.int64)
    for batch in accumulator.cells():
        rows = batch.rows()
        truth, prediction = (class_indices(labels, protocol) for labels in split_keys(batch.keys))
        is_right = truth == prediction
        wrong_pixels = np.where(is_right, 0, batch.sums)
        present += np.bincount(truth[is_right], batch.sums[is_right], end).astype(np.int64)
        for sums, side in zip(wrong, (truth, prediction), strict=True):
            sums[batch.numbers] = tabulate(rows, side, wrong_pixels, (len(batch.numbers), end))
    missed, surplus = wrong[:, :, :-1]
    return missed, surplus, present[:-1] + missed.sum(axis=0).astype(np.int64)


TOOLS = _SemanticTools()
