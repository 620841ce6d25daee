"""Mask sequences: masks in memory, kinds of failure, sections of the report and its player, new challenges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from segjudge.families.base.tools import (
    Columns,
    FamilyTools,
    Film,
    FilmChoice,
    MethodCosts,
    ScoredMethod,
    ScoringInputs,
)
from segjudge.system.errors import UsageError

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import Progress
    from segjudge.evaluation_script.families.base.reports import Report, Row
    from segjudge.evaluation_script.families.base.truth import AnnotationFile, SplitTruth
    from segjudge.families.base.memory import MemoryDoor
    from segjudge.families.base.published import PackedTruth, TruthSource
    from segjudge.report.page import PageOptions, Section

__all__ = ["TOOLS", "comparison", "compression", "published"]

_MEASURES = {
    "J&F": "the mean of J and F",
    "J": "region similarity (intersection over union)",
    "J_last": "region similarity over the last quarter of the frames",
    "F": "boundary similarity",
    "J&F_new": "the mean of J and the second F",
    "F_new": "boundary similarity with a tolerance that depends on the object's size",
    "A": "share of correct pixels",
    "R": "1 minus the ratio of false-positive pixels to the pixels of all candidate objects",
    "tIoU": "temporal IoU: frames with the object in truth and prediction, divided by frames with it in either",
    "vIoU": "J summed over frames with the object in both, divided by the number of frames with it in either",
    "V": "variation of J&F over time",
}
_KINDS = ("static", "dynamic", "hybrid", "referring", "reasoning", "no-target")
_STATISTICS = {
    "Mean": "{}",
    "seen-Mean": "{}, over seen classes",
    "unseen-Mean": "{}, over unseen classes",
    **{f"{kind}-Mean": f"{{}}, over {kind} expressions" for kind in _KINDS},
    "Recall": "share of frames with {} above 0.5",
    "Decay": "loss of {} from the first to the last quarter of the frames",
}
_PERIODS = {"": "", "disappear_": ", while the object is absent", "reappear_": ", after the object reappears"}
#: Meanings by full name: of the metrics of expressions, and of additional metrics.
_WHOLE = {
    "N-acc": "share of expressions without a target whose prediction is empty",
    "T-acc": "share of expressions with a target whose prediction is not empty",
    "Final": "the mean of J&F, N-acc and T-acc",
    "J-Volume": "region similarity of all frames together",
    "F-Volume": "boundary similarity of all frames together",
    "J-Visible": "region similarity over the frames with the object in the truth",
    "F-Visible": "boundary similarity over the frames with the object in the truth",
    "J_last-Recall": "share of frames in the last quarter with region similarity above 0.5",
    "J_last-Decay": "loss of region similarity within the last quarter of the frames",
    "False-Alarm": "share of frames without the object that have a prediction",
}


class _SequenceTools(FamilyTools):
    label_groups = (
        ("J-Mean", "F-Mean", "F_new-Mean"),
        ("J-seen-Mean", "J-unseen-Mean", "F-seen-Mean", "F-unseen-Mean"),
        ("V-Mean", "V-seen-Mean", "V-unseen-Mean"),
        ("disappear_J&F_new-Mean", "reappear_J&F_new-Mean"),
        ("A-Mean", "R-Mean"),
        ("tIoU-Mean", "vIoU-Mean"),
        ("J&F-referring-Mean", "J&F-reasoning-Mean"),
        ("J&F-static-Mean", "J&F-dynamic-Mean", "J&F-hybrid-Mean"),
    )
    other_metrics = ("J-Volume", "J-Visible", "False-Alarm")
    keeps_losses = True
    shares_loss = True

    def read_published(self, family: str, source: TruthSource, progress: Progress) -> AnnotationFile[SplitTruth]:
        from .published import read_published

        return read_published(source)  # its masks are read while it is scored

    def pack(self, family: str, source: TruthSource, out: str, split: str, progress: Progress) -> PackedTruth:
        from .published import pack

        return pack(source, out, split, progress)

    def open_memory(self, protocol: Any, categories: Sequence[Mapping[str, Any]], unseen: Iterable[str]) -> MemoryDoor:
        from .memory import SequencesInMemory

        return SequencesInMemory(protocol, unseen)

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        from .report import make_sections

        return make_sections(inputs, report, options)

    def describe_loss(self, report: Report) -> str:
        tables, described = report.rows(), super().describe_loss(report)
        objects = tables.get("objects", [])
        if len(objects) <= len(tables["sequences"]):
            return described
        names = [f"object {row['object']} of {row['sequence']}" for row in objects]
        return f"{described} {self._name_lowest(report, 'objects', names)}".strip()

    def make_stored_sections(self, losses: Mapping[str, Any], report: Report) -> list[Section]:
        from .stored import make_sections

        return make_sections(losses, report)

    def make_truth_sections(self, split: str, truth: SplitTruth, options: PageOptions) -> list[Section]:
        from .report import make_truth_sections

        return make_truth_sections(split, truth, options)

    def check_kinds(self, protocol: Any) -> None:
        from segjudge.evaluation_script.families.sequences.losses import kinds_sum_to_loss

        if not kinds_sum_to_loss(protocol):
            raise UsageError(f"failures of {protocol.name} have no kinds: J&F is not the mean over its frames")

    def list_failures(self, open_inputs: Callable[[], ScoringInputs], report: Report) -> list[Row]:
        from .report import list_failures

        self.check_kinds(report.protocol)
        return list_failures(open_inputs(), report)

    def sum_failures(self, inputs: ScoringInputs, report: Report) -> dict[str, float]:
        from .report import sum_failures

        return sum_failures(inputs, report)

    def explain_failures(self, inputs: ScoringInputs, report: Report) -> tuple[dict[str, float], str]:
        from .report import explain_failures

        return explain_failures(inputs, report)

    def make_bar(self, kinds: Mapping[str, float]) -> list[tuple[str, float, str]]:
        from .report import make_bar

        return make_bar([*kinds.values()])

    def rank_failures(self, kinds: Mapping[str, float], report: Report) -> str:
        from .report import rank_shares

        return rank_shares(kinds)

    def draw_film(self, methods: Sequence[ScoredMethod], choice: FilmChoice) -> Film:
        from .film import draw_film

        return draw_film(methods, choice)

    def compare_failures(self, methods: Sequence[ScoredMethod], options: PageOptions | None) -> MethodCosts:
        from .report import compare_failures

        return compare_failures(methods, options)

    def make_columns(self, report: Report) -> Mapping[str, Callable[[], Columns]]:
        from .tables import list_frames

        return {"frames": lambda: list_frames(report)}

    def make_files(self, report: Report) -> dict[str, str]:
        from segjudge.evaluation_script.families.sequences.metrics import SequenceReport

        from .tables import make_files

        return make_files(report) if isinstance(report, SequenceReport) else super().make_files(report)

    def describe_metric(self, metric: str) -> str:
        name = re.fullmatch(r"((?:dis|re)appear_)?([^-]+)-(.+)", metric)
        if metric in _WHOLE:
            text = _WHOLE[metric]
        elif name and name[2] in _MEASURES and name[3] in _STATISTICS:
            text = _STATISTICS[name[3]].format(_MEASURES[name[2]]) + _PERIODS[name[1] or ""]
        else:
            return metric
        return text[0].upper() + text[1:]

    def prefers_smaller(self, metric: str) -> bool:
        return metric.endswith("-Decay") or metric.startswith(("V-", "False-Alarm"))

    def bounds_of(self, metric: str) -> tuple[float | None, float | None]:
        return (-1.0, 1.0) if metric.endswith("-Decay") else super().bounds_of(metric)


TOOLS = _SequenceTools()
