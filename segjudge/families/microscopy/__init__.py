"""Cells in images: label maps in memory, losses of AP, pictures, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.families.base.unit_tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.evaluation_script.masks.stack import Array
    from segjudge.families.base.tools import Facts

__all__ = ["TOOLS"]

_AP = "matched cells, divided by all matched, surplus and missed cells, at an IoU of at least"


class _MicroscopyTools(UnitTools):
    nouns = "cells", "pixels"
    memory, painter = "LabelsInMemory", "MicroscopyPainter"
    groups = "images"
    meanings: ClassVar = {"AP50": f"{_AP} 0.5", "AP75": f"{_AP} 0.75", "AP90": f"{_AP} 0.9"}

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return protocol.metrics[0], "images"

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Return the loss of AP50 per image: missed and surplus cells."""
        import numpy as np

        from segjudge.evaluation_script.families.microscopy.engine import list_mistakes

        hits, surplus, missed = (table[:, 0] for table in list_mistakes(accumulator))
        cells = hits + surplus + missed
        scored = cells > 0
        shares = np.stack([missed, surplus], axis=1) / np.maximum(cells, 1)[:, None]
        losses = np.where(scored[:, None], shares, 0) / max(int(scored.sum()), 1)
        kinds = {"missed": "cells that nothing matches", "surplus": "predictions that match no cell"}
        return UnitLosses(kinds, losses, losses)

    def measure_further_loss(self, accumulator: UnitAccumulator[Any]) -> Array | None:
        """Return each image's loss at the greater thresholds."""
        import numpy as np

        from segjudge.evaluation_script.families.microscopy.engine import list_mistakes

        hits, surplus, missed = list_mistakes(accumulator)
        cells = hits + surplus + missed
        unexplained: Array = ((surplus + missed) / np.maximum(cells, 1)).mean(axis=1)
        return unexplained

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        facts = super().describe_truth(truths, protocol)
        return {**facts, "about": f"Outline every cell in {facts['content']}."}


TOOLS = _MicroscopyTools()
