"""LiDAR scans: points in memory, losses of mIoU and PQ, new challenges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.evaluation_script.files.problems import HostError
from segjudge.families.base.unit_tools import UnitLosses, UnitTools
from segjudge.system.errors import UsageError

if TYPE_CHECKING:
    from contextlib import ExitStack

    from segjudge.evaluation_script.families.base.family import ScoringRules
    from segjudge.evaluation_script.families.base.reports import Report
    from segjudge.evaluation_script.families.base.truth import SplitTruth
    from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
    from segjudge.families.base.drawing import UnitPictures
    from segjudge.families.base.pictures import UnitPainter
    from segjudge.families.base.tools import Facts, ScoringInputs
    from segjudge.report.page import PageOptions, Section

__all__ = ["TOOLS"]

_FILES = "files such as sequences/08/velodyne/000000.bin"
_LACKS_POINTS = f"has no points of the scored scans; it needs {_FILES}"
_WITHOUT_POINTS = f"To draw them, name the folder of their points with --images: it needs {_FILES}."


class _ScanTools(UnitTools):
    nouns = "segments", "points"
    label_groups = (*((f"{name}-Things", f"{name}-Stuff") for name in ("PQ", "SQ", "RQ")), ("mIoU",))
    memory = "ScansInMemory"
    names_subsets = True
    meanings: ClassVar = {
        "mIoU": "intersection over union, mean over the classes",
        "mIoU-official": "intersection over union, mean over all 19 classes; absent classes count as 0",
        "Acc": "share of points with the correct class",
        "IoU": "intersection over union",
        "PQ": "panoptic quality",
        "PQ_dagger": "PQ of things and IoU of stuff, mean over classes",
        "SQ": "mean IoU of matched segments",
        "RQ": "F1 of matched segments",
    }

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return protocol.metrics[0], "scans"

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Return the loss of the first metric; the parts sum to 1 minus its value.

        If all segments of a class are too small to count, the scans with its points miss it. A class that is absent
        from the truth but averaged by the script costs all scans equally.
        """
        import numpy as np

        from segjudge.evaluation_script.families.scans.engine import (
            IOU,
            MATCHED,
            MISSED,
            SURPLUS,
            confuse_units,
            measure_classes,
        )

        protocol, count = accumulator.protocol, len(accumulator.names)
        end = len(protocol.class_labels) + 1
        sums, confusion = np.zeros((3, count, end), np.int64), np.zeros((end, end), np.int64)
        for numbers, tables in confuse_units(accumulator.cells(), protocol):
            diagonals = np.diagonal(tables, axis1=1, axis2=2)
            for target, source in zip(sums, (tables.sum(axis=2), tables.sum(axis=1), diagonals), strict=True):
                target[numbers] = source
            confusion += tables.sum(axis=0)
        measures = measure_classes(accumulator, confusion)
        true_points, predicted_points, hits = sums[..., :-1]
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
            costs = [predicted_points - hits, true_points - hits]
            divisor = true_points.sum(axis=0) + costs[0].sum(axis=0)
            kinds = {
                "surplus": "points with the label of a class to which they do not belong",
                "missing": "points of a class that have another label",
            }
        missing = len(kinds) - 1
        if protocol.as_script:
            kinds["absent"] = "classes absent from the truth, which the script counts as 0"
            costs.append(np.zeros(true_points.shape))
        losses = np.stack(costs, axis=-1) / np.maximum(divisor, 0.5)[:, None]  # scans, classes, kinds
        in_truth = true_points.any(axis=0)
        shares = np.where(divisor > 0, 0, np.where(in_truth, true_points, 1) / np.maximum(true_points.sum(axis=0), 1))
        losses[..., missing] += np.where(in_truth, shares, 0)
        losses[..., -1] += np.where(in_truth, 0, shares / count)
        losses *= (measures.averaged / max(int(measures.averaged.sum()), 1))[:, None]
        return UnitLosses(kinds, losses.sum(axis=1), losses.sum(axis=0)[measures.shown])

    def open_painter(self, results: str, truth: UnitTruth, rules: ScoringRules, images: str = "") -> UnitPainter | None:
        """Return the painter of scans, given the folder of their points; None without points.

        Raises HostError for a truth alone (without results) if the folder has no points.
        """
        from .pictures import ScanPainter
        from .points import ScanPoints

        points = ScanPoints(images) if images else None
        if points is not None and not points and not results:
            raise HostError(f"{images}: {_LACKS_POINTS}")
        return ScanPainter(results, truth, rules, points) if points else None

    def _open_painter(
        self, inputs: ScoringInputs, report: Report, stack: ExitStack, images: str = ""
    ) -> tuple[UnitPainter | None, UnitTruth]:
        """Return the painter of scans, whose points lie beside the truth unless another folder is named."""
        painter, truth = super()._open_painter(inputs, report, stack, images or inputs.truth)
        if images and painter is None:
            raise HostError(f"{images}: {_LACKS_POINTS}")
        return painter, truth

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        from segjudge.evaluation_script.families.scans.engine import measure_classes
        from segjudge.evaluation_script.files.problems import quantity
        from segjudge.report.page import PLAYER, make_confusion

        accumulator, _ = self._measure_report(report)
        names = [*accumulator.protocol.class_names, "nothing"]
        about = f"Points of {quantity(len(accumulator.names), 'scan')}."
        confusion = make_confusion(names, measure_classes(accumulator).confusion, "points", about)
        verdict, kinds, *lists = super().make_sections(inputs, report, options)
        players = [section for section in lists if section.template == PLAYER]
        scans, *tables = lists[len(players) :]
        if not players:
            scans = replace(scans, values={**scans.values, "about": f"{scans.values['about']} {_WITHOUT_POINTS}"})
        return [verdict, kinds, *players, confusion, scans, *tables]

    def make_confusions(self, painter: UnitPainter, pictures: UnitPictures, noun: str, report: Report) -> list[Section]:
        """Return nothing: `make_sections` shows the confusion of all points."""
        return []

    def make_truth_sections(self, split: str, truth: SplitTruth, options: PageOptions) -> list[Section]:
        if not options.images:
            raise UsageError("a page of scans draws their points; name the folder of the points with --images")
        return super().make_truth_sections(split, truth, options)

    def describe_cause(self, inputs: ScoringInputs, report: Report) -> str:
        from .causes import describe_classes

        accumulator = self.counts_of(report)
        if accumulator.protocol.panoptic:
            return self._describe_cause_of_segments(inputs, report)
        return describe_classes(accumulator)

    def _describe_cause_of_segments(self, inputs: ScoringInputs, report: Report) -> str:
        from segjudge.evaluation_script.families.base.units import UnitTruth

        from .causes import describe_causes

        scorer, (_, losses) = inputs.scorers[report.split], self._measure_report(report)
        if not isinstance(scorer.truth, UnitTruth):
            raise TypeError(f"{report.split} has no scans")
        order = (-losses.by_unit.sum(axis=1)).argsort(kind="stable").tolist()
        return describe_causes(inputs.results, scorer.truth, scorer.rules, order)

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        facts = super().describe_truth(truths, protocol)
        task = "Predict whether each point moves" if protocol.reported >= 0 else "Label every point"
        return {**facts, "about": f"{task}, in {facts['content']}."}


TOOLS = _ScanTools()
