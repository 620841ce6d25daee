"""Instances: masks in memory, TIDE's kinds of error, report sections, new challenges."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.files.problems import quantity
from segjudge.families.base.tools import Columns, FamilyTools, MethodCosts, ScoredMethod, ScoringInputs

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import Progress
    from segjudge.evaluation_script.families.base.reports import Report, Row
    from segjudge.evaluation_script.families.base.truth import AnnotationFile, SplitTruth
    from segjudge.families.base.published import PackedTruth, TruthSource
    from segjudge.report.page import PageOptions, Section

__all__ = ["TOOLS", "pictures", "published"]

_GROUPS = {
    "": "",
    **{name[0]: f" of {name} instances" for name in ("small", "medium", "large")},
    **{name[0]: f" of {name} categories" for name in ("rare", "common", "frequent")},
    **{f"-{name}": f" of instances with {name} occlusion" for name in ("light", "medium", "heavy")},
}


class _InstanceTools(FamilyTools):
    label_groups = (
        ("AP50", "AP75"),
        ("APs", "APm", "APl"),
        ("APr", "APc", "APf"),
        ("AP-light", "AP-medium", "AP-heavy"),
        ("AR@1", "AR@10", "AR@50", "AR@255"),
        ("AR", "AR50", "AR75", "AR@100", "ARs", "ARm", "ARl"),
    )
    memory = "InstancesInMemory"
    limits = "INSTANCE_LIMITS"
    upload_types = ".json, .zip, .gz"
    sends_one_file = True

    def read_published(self, family: str, source: TruthSource, progress: Progress) -> AnnotationFile[SplitTruth]:
        from .published import open_instances

        return open_instances(source, progress=progress)

    def pack(self, family: str, source: TruthSource, out: str, split: str, progress: Progress) -> PackedTruth:
        from .published import pack

        return pack(source, out, split, progress)

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        from .report import make_sections

        return make_sections(inputs, report, options)

    def describe_loss(self, report: Report) -> str:
        from segjudge.report.sentences import LITTLE
        from segjudge.report.tables import format_number

        main, name_at_half = report.protocol.metrics[:2]
        value, at_half, lost = report.values[main], report.values[name_at_half], ""
        if value is not None and at_half is not None and value < 1 - LITTLE:
            measure, above = getattr(report.protocol, "measure", ""), at_half - value
            lost = f"{main} is {format_number(value)}, the same as at an {measure} of .50 alone. "
            if above >= LITTLE:
                alone = f"at an {measure} of .50 alone it is {format_number(at_half)}"
                lost = f"{main} is {format_number(value)}; {alone}, so higher thresholds cost {format_number(above)}. "
        return (lost + super().describe_loss(report)).strip()

    def check_kinds(self, protocol: Any) -> None:
        """Do nothing: every protocol has TIDE's kinds."""

    def list_failures(self, open_inputs: Callable[[], ScoringInputs], report: Report) -> list[Row]:
        from .diagnosis import KINDS, diagnose

        rows = diagnose(open_inputs(), report).list_categories()
        return [{"category": row["name"], **{kind: row[kind] for kind in KINDS}} for row in rows]

    def sum_failures(self, inputs: ScoringInputs, report: Report) -> dict[str, float]:
        from .diagnosis import diagnose

        return diagnose(inputs, report).sum_kinds()

    def explain_failures(self, inputs: ScoringInputs, report: Report) -> tuple[dict[str, float], str]:
        from .causes import describe_causes
        from .diagnosis import diagnose

        diagnosis = diagnose(inputs, report)
        return diagnosis.sum_kinds(), describe_causes(diagnosis)

    def rank_failures(self, kinds: Mapping[str, float], report: Report) -> str:
        from .report import describe_rises

        protocol: Any = report.protocol
        return describe_rises(protocol.measure, {f"{kind} errors": cost for kind, cost in kinds.items()})

    def make_bar(self, kinds: Mapping[str, float]) -> list[tuple[str, float, str]]:
        """Make no bar, since the gains of AP from correcting each kind have no meaningful sum."""
        return []

    def compare_failures(self, methods: Sequence[ScoredMethod], options: PageOptions | None) -> MethodCosts:
        if options is None:
            return super().compare_failures(methods, None)
        from .causes import describe_causes
        from .diagnosis import InstanceDiagnosis, diagnose
        from .report import make_ap_bar, make_compared_sections

        causes: dict[str, str] = {}
        costs: dict[str, dict[str, float]] = {}
        bars: dict[str, list[tuple[str, float, str]]] = {}
        drawn: dict[str, InstanceDiagnosis] = {}
        for method in methods:
            diagnosis = diagnose(method.inputs, method.report)
            costs[method.name], causes[method.name] = diagnosis.sum_kinds(), describe_causes(diagnosis)
            if bar := make_ap_bar(diagnosis, method.report):
                bars[method.name] = bar
            if len(drawn) < 2:
                drawn[method.name] = diagnosis
        compared = self.tabulate_costs(methods, costs)
        pictures = make_compared_sections(drawn, methods[0].report.split, options) if drawn else []
        return compared._replace(bars=bars, causes=causes, sections=[*pictures, *compared.sections])

    def make_columns(self, report: Report) -> Mapping[str, Callable[[], Columns]]:
        from .tables import list_curves, list_images

        return {"images": lambda: list_images(report), "curves": lambda: list_curves(report)}

    def make_files(self, report: Report) -> dict[str, str]:
        from .tables import make_files

        return make_files(report)

    def format_official(self, report: Report) -> str:
        from .tables import format_places

        return format_places(report)

    def describe_metric(self, metric: str) -> str:
        if level := re.fullmatch(r"AP(50|75)", metric):
            return f"Average precision at an IoU (or OKS) of .{level[1]}"
        if near := re.fullmatch(r"AP(50%)?(50m|100m)?", metric):
            which = f" of instances up to {near[2][:-1]} metres away" if near[2] else ""
            return f"Average precision{which}, {'at an IoU of .50' if near[1] else 'over IoU (or OKS) .50 to .95'}"
        if level := re.fullmatch(r"AR(50|75)", metric):
            return f"Average recall at an OKS of .{level[1]}"
        if recall := re.fullmatch(r"AR@(\d+)", metric):
            return f"Average recall with {quantity(int(recall[1]), 'detection')} per image or video"
        if kind := re.fullmatch(r"A([PR])([smlrcf]?|-light|-medium|-heavy)(?:@\d+)?", metric):
            return (
                f"Average {'precision' if kind[1] == 'P' else 'recall'}{_GROUPS[kind[2]]}, over IoU (or OKS) .50 to .95"
            )
        return metric


TOOLS = _InstanceTools()
