"""CSV files in the form that the official tools write, so that scripts that read those go on working."""

from __future__ import annotations

import csv
import os

from evaluation_script.answer import Report
from evaluation_script.sequences import ObjectScore
from evaluation_script.summaries import Values

#: Columns of the per-sequence file, among the protocol's metrics.
PER_OBJECT = ("J-Mean", "F-Mean", "V-Mean", "J_last-Mean")

#: Tools that write `results.csv`, in percent.
VOS_BENCHMARK = ("vos-benchmark", "vos-benchmark-all-frames", "sav")


def write(report: Report, folder: str, split: str) -> list[str]:
    """Write the files of one split; returns their paths."""
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, f"{kind}_results-{split}.csv") for kind in ("global", "per-sequence")]
    metrics = report.protocol.metrics
    _write_csv(paths[0], list(metrics), [[_cell(report.values[metric]) for metric in metrics]])
    columns = [metric for metric in PER_OBJECT if metric in metrics]
    rows = [[name, *(_cell(one.values[metric]) for metric in columns)] for name, one in _named(report.scores)]
    _write_csv(paths[1], ["Sequence", *columns], rows)
    if report.protocol.name in VOS_BENCHMARK:
        paths.append(os.path.join(folder, "results.csv"))
        with open(paths[2], "w", encoding="utf-8") as file:
            file.write(_vos_benchmark(report))
    return paths


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


def _vos_benchmark(report: Report) -> str:
    """Padded columns, one decimal, percent."""
    wide = max([len("Global score"), *(len(one.sequence) for one in report.scores)])
    total = ", ".join(f"{number:.1f}" for number in _percent(report.values))
    lines = [
        f"{'sequence':<{wide}},{'obj':>3}, {'J&F':>4}, {'J':>4}, {'F':>4}",
        f"{'Global score':<{wide}},   , {total}",
    ]
    for one in report.scores:
        numbers = ", ".join(f"{number:>4.1f}" for number in _percent(one.values))
        lines.append(f"{one.sequence:<{wide}},{one.name:0>3}, {numbers}")
    return "\n".join(lines) + "\n"


def _percent(values: Values) -> list[float]:
    return [100 * (values[metric] or 0.0) for metric in ("J&F-Mean", "J-Mean", "F-Mean")]
