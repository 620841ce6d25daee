"""Panoptic segments: maps in memory, losses of PQ, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.families.base.unit_tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from collections.abc import Iterable

    from segjudge.evaluation_script.families.base.units import UnitAccumulator

__all__ = ["TOOLS"]


class _PanopticTools(UnitTools):
    nouns = "segments", "pixels"
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
        """Return the loss of PQ or VPQ: missed, surplus and inexact segments; the sum is 1 - PQ.

        Without windows, return the loss of AQ and IoU.
        """
        if not accumulator.protocol.windows:
            return _measure_sequences(accumulator)
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

    def has_several_losses(self, kinds: Iterable[str]) -> bool:
        return "swapped" in kinds

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        if not protocol.windows:
            return "AQ and IoU", "sequences"
        return ("VPQ", "videos") if protocol.video else ("PQ", "images")


#: The kinds of the loss of STQ; the first two concern pixels and objects.
_KINDS = {
    "missing": "pixels of a class that have another label, and of objects that have no track",
    "surplus": "pixels of other classes with its label, and of tracks outside all objects",
    "swapped": "frames in which the object has another track, or the track another object",
    "split": "objects that have several tracks in one frame",
    "merged": "tracks that cover several objects in one frame",
}
#: The loss of AQ if its kinds are unknown.
_UNKNOWN = "unexplained", "AQ without objects in the truth, or from counts that an earlier version stored"


def _measure_sequences(accumulator: UnitAccumulator[Any]) -> UnitLosses:
    """Return the loss of AQ and IoU by sequence, class and kind; the sum is 2 - AQ - IoU."""
    import numpy as np

    from segjudge.evaluation_script.families.panoptic.counting import sum_confusion, union_of

    videos, void = accumulator.complete_counts(), len(accumulator.facts["categories"])
    tables = np.stack([sum_confusion([video], void) for video in videos])
    union = union_of(tables.sum(axis=0), accumulator.protocol)
    weight = (union > 0) / np.maximum(union, 1) / max(int(np.count_nonzero(union)), 1)
    hits = np.diagonal(tables, axis1=1, axis2=2)
    losses = np.zeros((len(videos), void, len(_KINDS)))
    # If unlabelled pixels are a class, their true classes miss them: no true pixel is unlabelled.
    losses[:, :, 0] = ((tables.sum(axis=2) - hits) * weight + tables[:, :, -1] * weight[-1])[:, :-1]
    losses[:, :, 1] = ((tables.sum(axis=1) - hits) * weight)[:, :-1]
    quality, tubes = np.array([video.tables["association"] for video in videos]).T
    unknown = np.zeros(len(videos))
    for index, video in enumerate(videos):
        if "unassociated" in video.tables:
            losses[index] += video.tables["unassociated"] / max(tubes.sum(), 1)
        else:
            unknown[index] = (tubes[index] - quality[index]) / max(tubes.sum(), 1)
    if not tubes.any():
        unknown[:] = 1 / len(videos)
    by_unit, by_category = losses.sum(axis=1), losses.sum(axis=0)[union[:-1] > 0]
    if not unknown.any():
        return UnitLosses(_KINDS, by_unit, by_category)
    unknown_by_category = np.full((len(by_category), 1), unknown.sum() / max(len(by_category), 1))
    kinds = {**_KINDS, _UNKNOWN[0]: _UNKNOWN[1]}
    return UnitLosses(
        kinds, np.column_stack((by_unit, unknown)), np.concatenate((by_category, unknown_by_category), axis=1)
    )


TOOLS = _PanopticTools()
