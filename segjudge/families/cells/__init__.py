"""Cells that move and divide: label maps in memory, losses of SEG and TRA, pictures, new challenges."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.evaluation_script.files.problems import quantity
from segjudge.families.base.unit_tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.reports import Report
    from segjudge.evaluation_script.families.base.truth import SplitTruth
    from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
    from segjudge.families.base.pictures import UnitPainter
    from segjudge.families.base.tools import Facts, ScoringInputs
    from segjudge.report.page import PageOptions, Section

__all__ = ["TOOLS"]


class _CellTools(UnitTools):
    nouns = "cells", "pixels"
    label_groups = (("CT", "TF", "CCA"),)
    memory, painter = "CellsInMemory", "CellPainter"
    groups = "videos"
    meanings: ClassVar = {
        "OP_CTB": "tracking benchmark: the mean of SEG and TRA",
        "OP_CSB": "segmentation benchmark: the mean of SEG and DET",
        "OP_CLB": "linking benchmark: the mean of LNK and BIO",
        "SEG": "mean IoU of outlined cells; unmatched cells count as 0",
        "DET": "detection accuracy",
        "TRA": "tracking accuracy",
        "LNK": "linking accuracy",
        "CT": "complete tracks (F1)",
        "TF": "longest part of a track followed by one label, mean over detected tracks",
        "TF-all": "longest part of a track followed by one label, mean over all tracks",
        "BC": "detected divisions (F1)",
        "CCA": "cell cycle accuracy",
        "BIO": "mean of CT, TF, BC and CCA",
        "HOTA": "higher order tracking accuracy",
        "CHOTA": "higher order tracking accuracy of lineages",
    }

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return protocol.metrics[0], self.groups

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Return the loss of OP_CTB: one half from SEG, the other half from TRA.

        If correcting the graph costs more than building it from nothing, each operation gets its share of the maximum.
        """
        import math

        import numpy as np

        from segjudge.evaluation_script.families.cells.engine import (
            EA,
            EC,
            ED,
            FN,
            FP,
            IOU,
            MATCHED,
            NS,
            OUTLINED,
            WEIGHTS,
            measure_sequence,
        )

        kinds = {
            "inexact": "SEG: cells that match, but inexactly",
            "missed": "SEG and TRA: cells that no prediction matches",
            "surplus": "TRA: predictions that match no cell",
            "merged": "TRA: cells that share a prediction with others",
            "links": "TRA: missing, surplus and wrong links to the next frame or to a child",
        }
        columns: list[tuple[int, ...]] = [(), (FN,), (FP,), (NS,), (ED, EA, EC)]
        rows = []
        for unit in accumulator.complete_counts():
            measures, graph = measure_sequence(unit.tables, accumulator.protocol), unit.tables["graph"].tolist()
            tracking, (outlined, matched, overlap) = (
                measures["TRA"],
                unit.tables["cells"][[OUTLINED, MATCHED, IOU]].tolist(),
            )
            if measures["OP_CTB"] is None or tracking is None:
                rows.append([math.nan] * len(kinds))
                continue
            costs = [sum(WEIGHTS[column] * graph[column] for column in kind_columns) for kind_columns in columns]
            costs = [cost * (1 - tracking) / max(sum(costs), 1) for cost in costs]
            costs[0] += (matched - overlap) / outlined
            costs[1] += (outlined - matched) / outlined
            rows.append([cost / 2 for cost in costs])
        losses = np.array(rows).reshape(-1, len(kinds))
        scored = ~np.isnan(losses[:, 0])
        losses = np.where(scored[:, None], losses, 0) / max(np.count_nonzero(scored), 1)
        return UnitLosses(kinds, losses, losses)

    def _open_painter(
        self, inputs: ScoringInputs, report: Report, stack: ExitStack, images: str = ""
    ) -> tuple[UnitPainter | None, UnitTruth]:
        from .pictures import show_markers

        painter, truth = super()._open_painter(inputs, report, stack, images)
        return painter, show_markers(truth)

    def make_truth_sections(self, split: str, truth: SplitTruth, options: PageOptions) -> list[Section]:
        from .pictures import show_markers

        return super().make_truth_sections(split, show_markers(truth), options)

    def describe_metric(self, metric: str) -> str:
        stem, _, frames = metric.rstrip(")").partition("(")
        if not frames:
            return super().describe_metric(metric)
        late = f"at most {quantity(int(frames), 'frame')} early or late" if int(frames) else "in the exact frame"
        return f"{super().describe_metric(stem)}, {late}"

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        facts = super().describe_truth(truths, protocol)
        return {**facts, "about": f"Follow every cell and its children through {facts['content']}."}


TOOLS = _CellTools()
