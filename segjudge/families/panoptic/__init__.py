"""Panoptic segments: maps in memory, losses of PQ, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.families.base.tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.evaluation_script.masks.stack import Array

__all__ = ["TOOLS"]


class _PanopticTools(UnitTools):
    label_groups = (
        *((f"{name}-Things", f"{name}-Stuff") for name in ("PQ", "SQ", "RQ", "VPQ")),
        ("VPQ1", "VPQ2", "VPQ4", "VPQ6", "VPQ8"),
        ("STQ", "AQ", "IoU"),
    )
    memory, painter = "PanopticInMemory", "PanopticPainter"
    meanings: ClassVar = {
        "PQ": "panoptic quality",
        "SQ": "mean IoU of matched segments",
        "RQ": "F1 of matched segments",
        "VPQ": "video panoptic quality",
        "STQ": "segmentation and tracking quality",
        "AQ": "association quality of instances over time",
        "IoU": "intersection over union of pixels, mean over classes",
    }

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Return the loss of PQ or VPQ: missed, surplus and inexact segments; the sum is 1 - PQ."""
        if not accumulator.protocol.windows:
            return _measure_pixels(accumulator)
        import numpy as np

        from segjudge.evaluation_script.families.panoptic.counting import IOU, MATCHED, MISSED, SURPLUS

        table = accumulator.stack("quality")
        total = table.sum(axis=0)
        segments = total[..., MATCHED] + total[..., SURPLUS] / 2 + total[..., MISSED] / 2
        seen = segments > 0  # windows, categories
        weight = seen / np.maximum(segments, 0.5) / np.maximum(seen.sum(axis=1, keepdims=True), 1) / len(seen)
        costs = (table[..., MATCHED] - table[..., IOU], table[..., SURPLUS] / 2, table[..., MISSED] / 2)
        losses = np.stack([(cost * weight).sum(axis=1) for cost in costs], axis=-1)
        kinds = {
            "inexact": "segments that match, but not exactly",
            "surplus": "segments that match nothing",
            "missed": "segments of the truth that nothing matches",
        }
        return UnitLosses(kinds, losses.sum(axis=1), losses.sum(axis=0))

    def measure_rest(self, accumulator: UnitAccumulator[Any]) -> Array | None:
        """Return the loss of AQ of each video's objects, if AQ is scored."""
        if accumulator.protocol.windows:
            return None
        import numpy as np

        quality, tubes = np.array([unit.tables["association"] for unit in accumulator.complete_counts()]).T
        unexplained: Array = np.maximum(tubes - quality, 0) / max(float(tubes.sum()), 1)
        return unexplained

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        if not protocol.windows:
            return "IoU", "sequences"
        return ("VPQ", "videos") if protocol.video else ("PQ", "images")


def _measure_pixels(accumulator: UnitAccumulator[Any]) -> UnitLosses:
    """Return the loss of IoU: missed and surplus pixels of a class; the sum is 1 - IoU."""
    import numpy as np

    from segjudge.evaluation_script.families.panoptic.counting import sum_confusion, union_of

    videos, void = accumulator.complete_counts(), len(accumulator.facts["categories"])
    tables = np.stack([sum_confusion([video], void) for video in videos])
    union = union_of(tables.sum(axis=0), accumulator.protocol)
    weight = (union > 0) / np.maximum(union, 1) / max(int(np.count_nonzero(union)), 1)
    hits = np.diagonal(tables, axis1=1, axis2=2)
    # Where what is unlabelled is a class, its pixels are missed by those that they have: that class has no others.
    missed = (tables.sum(axis=2) - hits) * weight + tables[:, :, -1] * weight[-1]
    surplus = (tables.sum(axis=1) - hits) * weight
    losses = np.stack((missed, surplus), axis=-1)[:, :-1]
    kinds = {"missed": "pixels of a class that have another label", "surplus": "pixels of other classes with its label"}
    return UnitLosses(kinds, losses.sum(axis=1), losses.sum(axis=0)[union[:-1] > 0])


TOOLS = _PanopticTools()
