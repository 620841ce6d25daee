"""Grey maps of objects: maps in memory, what costs S, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.families.base.tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.families.base.tools import Facts

__all__ = ["TOOLS"]

_E = "how well map and mask agree in where they are above their means"
_F = "precision and recall of pixels, where precision weighs more"
_ADAPTIVE, _BEST = "at twice the map's mean", "at the threshold that is best for all images together"
_MEAN = "mean over 256 thresholds"


class _SaliencyTools(UnitTools):
    memory, painter = "MapsInMemory", "SaliencyPainter"
    groups = "datasets"
    names_subsets = True
    meanings: ClassVar = {
        "S": "structure: how alike map and mask are within object and background, and around the object's centre",
        "E_adp": f"{_E}, {_ADAPTIVE}",
        "E_max": f"{_E}, {_BEST}",
        "E_mean": f"{_E}, {_MEAN}",
        "F_adp": f"{_F}, {_ADAPTIVE}",
        "F_max": f"{_F}, {_BEST}",
        "F_mean": f"{_F}, {_MEAN}",
        "wF": "precision and recall of grey values, where errors near the object weigh less",
        "MAE": "mean difference of map and mask: smaller is better",
    }

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return protocol.metrics[0], "images"

    def prefers_smaller(self, metric: str) -> bool:
        return metric == "MAE"

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Measure what each image takes from S: it has one kind of mistake, by what lies above the middle."""
        import numpy as np

        from segjudge.evaluation_script.families.saliency import counting
        from segjudge.evaluation_script.families.saliency.engine import find_scored

        images = accumulator.stack("image")
        area, predicted, shared = images[:, [counting.TRUTH_AREA, counting.MAP_AREA, counting.SHARED]].T
        kind = np.select([area == 0, predicted == 0, shared == 0, predicted - shared > area - shared], [0, 1, 2, 3], 4)
        scored = find_scored(images, accumulator.protocol)
        costs = np.where(scored, 1 - images[:, counting.S], 0) / max(int(scored.sum()), 1)
        by_unit = np.where(kind[:, None] == np.arange(5), costs[:, None], 0.0)
        by_dataset = np.zeros((len(accumulator.facts["subsets"]), 5))
        np.add.at(by_dataset, images[:, counting.GROUP].astype(int), by_unit)
        kinds = {
            "false alarm": "there is no object, and the map is not black",
            "missed": "there is an object, and no value above the middle",
            "wrong object": "what is above the middle shares no pixel with the object",
            "too much": "more pixels are wrongly above the middle than wrongly below",
            "too little": "as many pixels of the object are below the middle, or only values between are wrong",
        }
        return UnitLosses(kinds, by_unit, by_dataset)

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        facts = super().describe_truth(truths, protocol)
        several = len({name for truth in truths for (name,) in truth.facts["subsets"]}) > 1
        return {**facts, "about": f"Find the object in {facts['content']}.", "several": several}


TOOLS = _SaliencyTools()
