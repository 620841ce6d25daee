"""LiDAR scans: points in memory, what costs mIoU and PQ, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.families.base.tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.reports import Report
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.families.base.tools import Facts, ScoringInputs
    from segjudge.report.page import PageOptions, Section

__all__ = ["TOOLS"]


class _ScanTools(UnitTools):
    memory = "ScansInMemory"
    names_subsets = True
    meanings: ClassVar = {
        "mIoU": "intersection over union, mean over the classes",
        "mIoU-official": "intersection over union, mean over all 19 classes, 0 for those that the truth lacks",
        "Acc": "share of points with the right class",
        "IoU": "intersection over union",
        "PQ": "panoptic quality",
        "PQ_dagger": "panoptic quality of things, and the IoU of stuff",
        "SQ": "mean overlap of matched segments",
        "RQ": "share of segments that are matched (F1)",
    }

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return protocol.metrics[0], "scans"

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """What costs the first metric; the sum is what it lacks to 1.

        A class whose segments are all too small to count is missed by the scans that have points of it; one that the
        truth has nowhere, and the script averages nevertheless, costs all scans as much.
        """
        import numpy as np

        from segjudge.evaluation_script.families.scans.engine import (
            IOU,
            MATCHED,
            MISSED,
            SURPLUS,
            measure_classes,
            sum_confusion,
        )

        protocol, units = accumulator.protocol, accumulator.complete_counts()
        measures = measure_classes(accumulator)
        confusions = np.stack([sum_confusion([unit], protocol) for unit in units])
        own, hits = confusions.sum(axis=2)[:, :-1], np.diagonal(confusions, axis1=1, axis2=2)[:, :-1]
        if protocol.panoptic:
            table = accumulator.stack("segments")
            costs = [table[..., MATCHED] - table[..., IOU], table[..., SURPLUS] / 2, table[..., MISSED] / 2]
            divisor = measures.segments[:, [MATCHED, SURPLUS, MISSED]] @ [1, 0.5, 0.5]
            kinds = {
                "inexact": "segments that match, but not exactly",
                "surplus": "segments that match nothing",
                "missed": "segments of the truth that nothing matches",
            }
        else:
            costs = [confusions.sum(axis=1)[:, :-1] - hits, own - hits]
            divisor = own.sum(axis=0) + costs[0].sum(axis=0)
            kinds = {
                "surplus": "points that have the label of a class wrongly",
                "missed": "points of a class that have another label",
            }
        if protocol.as_script:
            kinds["absent"] = "classes that the truth has nowhere, and the script counts as 0"
            costs.append(np.zeros(own.shape))
        losses = np.stack(costs, axis=-1) / np.maximum(divisor, 0.5)[:, None]  # scans, classes, kinds
        in_truth = own.any(axis=0)
        shares = np.where(divisor > 0, 0, np.where(in_truth, own, 1) / np.maximum(own.sum(axis=0), 1))
        losses[..., list(kinds).index("missed")] += np.where(in_truth, shares, 0)
        losses[..., -1] += np.where(in_truth, 0, shares / len(units))
        losses *= (measures.averaged / max(int(measures.averaged.sum()), 1))[:, None]
        return UnitLosses(kinds, losses.sum(axis=1), losses.sum(axis=0)[measures.shown])

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        from segjudge.evaluation_script.families.scans.engine import measure_classes
        from segjudge.report.page import make_confusion

        accumulator, _ = self._measure_report(report)
        names = [*accumulator.protocol.class_names, "nothing"]
        about = f"Points of all {len(accumulator.names):,} scans."
        confusion = make_confusion(names, measure_classes(accumulator).confusion, "points", about)
        verdict, kinds, *lists = super().make_sections(inputs, report, options)
        return [verdict, kinds, confusion, *lists]

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        facts = super().describe_truth(truths, protocol)
        task = "Say of every point whether it moves" if protocol.reported >= 0 else "Label every point"
        return {**facts, "about": f"{task}, in {facts['content']}."}


TOOLS = _ScanTools()
