"""Grey maps of objects: maps in memory, losses of S, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.families.base.unit_tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.families.base.tools import Facts

__all__ = ["TOOLS"]

_E = "enhanced alignment of map and mask"
_F = "F-measure of pixels, weighted towards precision"
_ADAPTIVE, _BEST = "at twice the map's mean", "at the best threshold for all images together"
_MEAN = "mean over 256 thresholds"
#: A prediction is too large if the pixels wrongly above the middle are this many times the pixels wrongly below, and
#: too small in the opposite case.
_LOPSIDED = 3
_KINDS = {
    "false alarm": "images without an object whose map is not black",
    "missed": "objects whose map has no value above the middle",
    "wrong object": "maps that share no pixel above the middle with the object",
    "grey": "maps that are right when thresholded at the middle, but have wrong grey values",
    "too much": "maps with too many pixels above the middle",
    "too little": "maps with too few pixels above the middle",
    "inexact": "maps with pixels wrongly above and pixels wrongly below the middle, such as a displaced object",
}


class _SaliencyTools(UnitTools):
    memory, painter = "MapsInMemory", "SaliencyPainter"
    groups = "datasets"
    names_subsets = True
    meanings: ClassVar = {
        "S": "structural similarity of map and mask, by object and by region",
        "E_adp": f"{_E}, {_ADAPTIVE}",
        "E_max": f"{_E}, {_BEST}",
        "E_mean": f"{_E}, {_MEAN}",
        "F_adp": f"{_F}, {_ADAPTIVE}",
        "F_max": f"{_F}, {_BEST}",
        "F_mean": f"{_F}, {_MEAN}",
        "wF": "F-measure of grey values; errors near the object weigh less",
        "MAE": "mean absolute difference between map and mask",
    }

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return protocol.metrics[0], "images"

    def prefers_smaller(self, metric: str) -> bool:
        return metric == "MAE"

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Measure each image's loss of S; its one kind of mistake follows from pixels brighter than the middle."""
        import numpy as np

        from segjudge.evaluation_script.families.saliency import counting
        from segjudge.evaluation_script.families.saliency.engine import find_scored

        images = accumulator.stack("image")
        area, predicted, shared = images[:, [counting.TRUTH_AREA, counting.MAP_AREA, counting.SHARED]].T
        missed, surplus = area - shared, predicted - shared
        conditions = [
            area == 0, predicted == 0, shared == 0, (missed == 0) & (surplus == 0),
            surplus > _LOPSIDED * missed, missed > _LOPSIDED * surplus,
        ]  # fmt: skip
        kind = np.select(conditions, range(len(conditions)), len(conditions))
        scored = find_scored(images, accumulator.protocol)
        costs = np.where(scored, 1 - images[:, counting.S], 0) / max(int(scored.sum()), 1)
        by_unit = np.where(kind[:, None] == np.arange(len(_KINDS)), costs[:, None], 0.0)
        by_dataset = np.zeros((len(accumulator.facts["subsets"]), len(_KINDS)))
        np.add.at(by_dataset, images[:, counting.GROUP].astype(int), by_unit)
        return UnitLosses(_KINDS, by_unit, by_dataset)

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        facts = super().describe_truth(truths, protocol)
        several = len({name for truth in truths for (name,) in truth.facts["subsets"]}) > 1
        return {**facts, "about": f"Find the object in {facts['content']}.", "several": several}


TOOLS = _SaliencyTools()
