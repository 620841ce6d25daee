"""Cells in images: label maps in memory, what costs AP, pictures, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.families.base.tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.families.base.tools import Facts

__all__ = ["TOOLS"]

_AP = "matched cells, as a share of those that are right, surplus or missed; from an IoU of"


class _MicroscopyTools(UnitTools):
    memory, painter = "LabelsInMemory", "MicroscopyPainter"
    groups = "images"
    meanings: ClassVar = {"AP50": f"{_AP} 0.5 on", "AP75": f"{_AP} 0.75 on", "AP90": f"{_AP} 0.9 on"}

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return protocol.metrics[0], "images"

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Measure what each image takes from AP50: the cells that are missed, and those that are surplus."""
        import numpy as np

        from segjudge.evaluation_script.families.microscopy.engine import list_mistakes

        hits, surplus, missed = (table[:, 0] for table in list_mistakes(accumulator))
        cells = hits + surplus + missed
        scored = cells > 0
        shares = np.stack([missed, surplus], axis=1) / np.maximum(cells, 1)[:, None]
        losses = np.where(scored[:, None], shares, 0) / max(int(scored.sum()), 1)
        kinds = {"missed": "cells that nothing matches", "surplus": "predictions that match no cell"}
        return UnitLosses(kinds, losses, losses)

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        facts = super().describe_truth(truths, protocol)
        return {**facts, "about": f"Outline every cell in {facts['content']}."}


TOOLS = _MicroscopyTools()
