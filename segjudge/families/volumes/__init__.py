"""Label maps in three dimensions: volumes in memory, tables of regions and cases, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from segjudge.families.base.unit_tools import UnitTools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from segjudge.evaluation_script.families.base.reports import Report
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.evaluation_script.masks.stack import Array
    from segjudge.families.base.drawing import UnitPictures
    from segjudge.families.base.tools import Facts, ScoredMethod, ScoringInputs
    from segjudge.families.base.unit_tools import UnitLosses
    from segjudge.report.page import PageOptions, Section

__all__ = ["TOOLS"]

_MEANINGS = {
    "Dice": "Twice the common voxels, divided by the voxels of both sides",
    "NSD": "Share of both surfaces within the tolerance of the other, by area",
    "HD95": "Distance in mm within which 95 % of each surface lies, by area",
    "HD-border": "Largest distance between border voxels in mm",
    "HD95-pooled": "Distance within which 95 % of the border voxels of both sides lie, in voxels",
    "HD95-border26": "Larger 95th percentile of both sides' border distances in mm, borders by 26 neighbours",
    "ASSD-border": "Mean distance between border voxels of both sides in mm",
    "RAVD": "Absolute difference of volumes, in percent of the true volume",
    "VolumeError": "Absolute difference of volumes in ml",
    "FPV": "Volume in ml of predicted components that touch no lesion",
    "FNV": "Volume in ml of true components that no prediction touches",
    "LesionError": "Absolute difference of the numbers of lesions",
    "LesionF1": "F1 of lesions that the other side touches",
    "B0Error": "Absolute difference of the numbers of components",
    "PQ": "SQ times RQ of components",
    "SQ": "Mean IoU of paired components, pairs at IoU 0.5",
    "RQ": "F1 of components that are paired",
    "ComponentRecall": "Share of true components that are paired",
    "ComponentPrecision": "Share of predicted components that are paired",
    "ComponentDice": "Mean Dice of paired components",
    "LesionDice": "Mean Dice of lesions; missed and false lesions score 0",
    "LesionHD95": "Mean HD95 of lesions in mm; missed and false lesions have a penalty",
    "LesionNSD0.5": "Mean NSD of lesions at 0.5 mm by border voxels; missed and false lesions score 0",
    "LesionNSD1": "Mean NSD of lesions at 1 mm by border voxels; missed and false lesions score 0",
    "DSCagg": "Dice of the voxels of all cases together",
}


class _VolumeTools(UnitTools):
    label_groups = (("ComponentRecall", "ComponentPrecision"), ("LesionF1", "LesionError"))
    limits = ""
    memory = "VolumesInMemory"
    groups = "regions"
    counts_kinds = False  # pages look at components
    endings = (".nii.gz", ".nii", ".mha", ".nrrd")

    def choose_region(self, protocol: Any, region: str) -> Any:
        from .regions import choose_region

        return choose_region(protocol, region)

    def prefers_smaller(self, metric: str) -> bool:
        from segjudge.evaluation_script.families.volumes.protocols import SMALLER

        return metric.partition("_")[0] in SMALLER

    def bounds_of(self, metric: str) -> tuple[float | None, float | None]:
        return (0.0, None) if self.prefers_smaller(metric) else (0.0, 1.0)

    def describe_metric(self, metric: str) -> str:
        measure, _, region = metric.partition("_")
        if measure not in _MEANINGS:
            return metric
        return f"{region}: {_MEANINGS[measure]}" if region else f"{_MEANINGS[measure]}; mean over regions"

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        from .losses import name_measure

        return name_measure(protocol), "cases"

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Return the loss of the first share, by case and region."""
        from .losses import divide_losses

        return divide_losses(accumulator)

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        from .report import make_sections

        return make_sections(inputs, report, self.measure_losses(self.counts_of(report)), options)

    def describe_cause(self, inputs: ScoringInputs, report: Report) -> str:
        from .diagnosis import diagnose
        from .report import describe_causes

        return describe_causes(diagnose(inputs, report))

    def _draw_differences(
        self, methods: Sequence[ScoredMethod], costs: Array, options: PageOptions
    ) -> UnitPictures | None:
        """Return the slices of the cases with the second method's largest loss against the first."""
        from .compared import draw_differences

        return draw_differences(methods, costs, options)

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        from segjudge.evaluation_script.files.problems import quantity

        cases = quantity(sum(len(truth.units) for truth in truths), "case")
        return {"content": cases, "about": f"Segment the volumes of {cases}.", "unit": truths[0].units[0].name}


TOOLS = _VolumeTools()
