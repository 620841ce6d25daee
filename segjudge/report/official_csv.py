"""CSV files in the form that the official tools write, so that scripts that read those go on working."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence

import numpy as np

from segjudge.evaluation_script.answer import InstanceReport, Report, SequenceReport
from segjudge.evaluation_script.instance_protocols import PER_CATEGORY_METRICS
from segjudge.evaluation_script.sequence_metrics import ObjectScore
from segjudge.evaluation_script.sequence_truth import is_number

#: Columns of the per-sequence file, among the protocol's metrics.
PER_OBJECT = ("J-Mean", "F-Mean", "V-Mean", "J_last-Mean")

#: Tools that write `results.csv`, in percent.
VOS_BENCHMARK = ("vos-benchmark", "vos-benchmark-all-frames", "sav")


def write_all(reports: Sequence[Report], folder: str) -> list[str]:
    """Write the files of every split; returns their paths."""
    alone = len(reports) == 1
    return [path for report in reports for path in _write(report, folder, "" if alone else f"-{report.split}")]


def _write(report: Report, folder: str, tail: str) -> list[str]:
    os.makedirs(folder, exist_ok=True)
    part = "per-category" if isinstance(report, InstanceReport) else "per-sequence"
    paths = [os.path.join(folder, f"{kind}_results-{report.split}.csv") for kind in ("global", part)]
    metrics = report.protocol.metrics
    _write_csv(paths[0], list(metrics), [[_cell(report.values[metric]) for metric in metrics]])
    if isinstance(report, InstanceReport):
        rows = [
            [row["name"], str(row["id"]), *(_cell(row[metric]) for metric in PER_CATEGORY_METRICS)]
            for row in report.rows()["categories"]
        ]
        _write_csv(paths[1], ["Category", "Id", *PER_CATEGORY_METRICS], rows)
    elif isinstance(report, SequenceReport):
        paths += _write_objects(report, paths[1], os.path.join(folder, f"results{tail}.csv"))
    return paths


def _write_objects(report: SequenceReport, path: str, padded: str) -> list[str]:
    """The file with a row for each object, and where a tool writes it the padded one; the path of that."""
    metrics = report.protocol.metrics
    columns = [metric for metric in PER_OBJECT if metric in metrics]
    rows = [[name, *(_cell(one.values[metric]) for metric in columns)] for name, one in _named(report.scores)]
    _write_csv(path, ["Sequence", *columns], rows)
    if report.protocol.name not in VOS_BENCHMARK:
        return []
    with open(padded, "w", encoding="utf-8") as file:
        file.write(_vos_benchmark(report))
    return [padded]


def places(report: InstanceReport) -> str:
    """What the script of the Places Challenge 2017 prints."""
    values = report.values
    lines = [f"* MeanAP: {_or_nan(values['AP'])}", "* Performance by class:"]
    lines += [f"{row['name']}, AP: {_or_nan(row['AP'])}" for row in report.rows()["categories"]]
    lines.append("* Performance at different thresholds:")
    first, second, last = report.protocol.detections
    for name, iou, area, cap in (
        *(("AP", "0.50:0.95", "all", last), ("AP50", "0.50", "all", last), ("AP75", "0.75", "all", last)),
        *((f"AP{area[0]}", "0.50:0.95", area, last) for area in ("small", "medium", "large")),
        *((f"AR@{cap}", "0.50:0.95", "all", cap) for cap in (first, second, last)),
        *((f"AR{area[0]}", "0.50:0.95", area, last) for area in ("small", "medium", "large")),
    ):
        kind, short = ("Average Precision", "(AP)") if name.startswith("AP") else ("Average Recall", "(AR)")
        value = -1.0 if values[name] is None else values[name]
        lines.append(f" {kind:<18} {short} @[ IoU={iou:<9} | area={area:>6s} | maxDets={cap:>3d} ] = {value:0.3f}")
    return "\n".join(lines)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _named(scores: list[ObjectScore]) -> list[tuple[str, ObjectScore]]:
    """Objects as `sequence_k`, counted within each sequence, in the order of matched proposals."""
    ordered: dict[str, list[ObjectScore]] = {}
    for one in scores:
        ordered.setdefault(one.sequence, []).append(one)
    return [
        (f"{name}_{place}", one)
        for name, objects in ordered.items()
        for place, one in enumerate(sorted(objects, key=lambda one: one.proposal), 1)
    ]


def _write_csv(path: str, header: list[str], rows: list[list[str]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _vos_benchmark(report: SequenceReport) -> str:
    """Padded columns, one decimal, percent; averaged in percent too, as that tool does."""
    wide = max([len("Global score"), *(len(one.sequence) for one in report.scores)])
    scores = _in_set_order(report.scores)
    j, f = (np.array([100 * (one.values[name] or 0.0) for one in scores]) for name in ("J-Mean", "F-Mean"))
    total = (float("nan"),) * 3 if not scores else ((j.mean() + f.mean()) / 2, j.mean(), f.mean())
    lines = [
        f"{'sequence':<{wide}},{'obj':>3}, {'J&F':>4}, {'J':>4}, {'F':>4}",
        f"{'Global score':<{wide}},   , {', '.join(f'{number:.1f}' for number in total)}",
    ]
    for one, mine, theirs in zip(scores, j, f, strict=True):
        numbers = ", ".join(f"{number:>4.1f}" for number in ((mine + theirs) / 2, mine, theirs))
        lines.append(f"{one.sequence:<{wide}},{one.name:0>3}, {numbers}")
    return "\n".join(lines) + "\n"


def _in_set_order(scores: list[ObjectScore]) -> list[ObjectScore]:
    """Objects of a sequence in the order in which Python walks a set of their numbers, as in that tool."""
    by_sequence: dict[str, dict[str, ObjectScore]] = {}
    for one in scores:
        by_sequence.setdefault(one.sequence, {})[one.name] = one
    ordered = []
    for objects in by_sequence.values():
        names: list[str] = list(objects)
        if all(is_number(name) for name in names):
            names = [str(number) for number in {int(name) for name in names}]
        ordered += [objects[name] for name in names]
    return ordered
