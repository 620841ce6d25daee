"""Files of scores that others read: CSV as the official tools write it, and what model hubs take."""

import csv
import os
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.instances.metrics import InstanceReport
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, SequenceReport
from segjudge.evaluation_script.families.sequences.truth import is_number
from segjudge.evaluation_script.scoring import VERSION
from segjudge.system.files import file_name, open_output

from .tables import number

#: Columns of the per-sequence file, among the protocol's metrics.
PER_OBJECT = ("J-Mean", "F-Mean", "V-Mean", "J_last-Mean")

#: Columns of the per-category file.
PER_CATEGORY = ("AP", "AP50", "AP75", "AR")

#: Tools that write `results.csv`, in percent.
VOS_BENCHMARK = ("vos-benchmark", "vos-benchmark-all-frames", "sav")


def paths(reports: Sequence[Report], folder: str) -> list[str]:
    """Return the files that `write_all` writes."""
    return [path for report in reports for path in _paths(report, folder, alone=len(reports) == 1)]


def write_all(reports: Sequence[Report], folder: str) -> None:
    """Write the files of every split into a folder that is there."""
    for report in reports:
        _write(report, _paths(report, folder, alone=len(reports) == 1))


def _paths(report: Report, folder: str, *, alone: bool) -> list[str]:
    unit, split = _unit(report), file_name(report.split)
    names = [f"{part}_results-{split}.csv" for part in ("global", f"per-{unit}")]
    if isinstance(report, SequenceReport) and report.protocol.name in VOS_BENCHMARK:
        names.append("results.csv" if alone else f"results-{split}.csv")
    return [os.path.join(folder, name) for name in names]


def _unit(report: Report) -> str:
    kind = next(iter(report.rows()))
    return "category" if kind == "categories" else kind.removesuffix("s")


def _write(report: Report, paths: list[str]) -> None:
    unit, found = _unit(report), next(iter(report.rows().values()))
    metrics = report.protocol.metrics
    _write_csv(paths[0], list(metrics), [[_cell(report.values[metric]) for metric in metrics]])
    if not isinstance(report, SequenceReport):
        known = [name for name in (found[0] if found else ()) if name not in ("split", "id", "name")]
        metrics = PER_CATEGORY if isinstance(report, InstanceReport) else tuple(known)
        rows = [[row["name"], str(row.get("id", "")), *(_cell(row[metric]) for metric in metrics)] for row in found]
        _write_csv(paths[1], [unit.capitalize(), "Id", *metrics], rows)
    else:
        columns = [metric for metric in PER_OBJECT if metric in metrics]
        rows = [[name, *(_cell(score.values[metric]) for metric in columns)] for name, score in _named(report.scores)]
        _write_csv(paths[1], ["Sequence", *columns], rows)
        if report.protocol.name in VOS_BENCHMARK:
            with open_output(paths[-1]) as file:
                file.write(_vos_benchmark(report))


def results_yaml(reports: list[Report], dataset: str) -> str:
    """Return the entries of splits for a model's folder `.eval_results`: one metric, and a note on the others."""
    import yaml

    entries = []
    for report in reports:
        ranking, *others = report.protocol.metrics
        value = report.values[ranking]
        if value is not None:
            rest = "".join(f", {name} {number(report.values[name])}" for name in others)
            entries.append(
                {
                    "dataset": {"id": dataset, "task_id": report.split},
                    "value": float(value),
                    "date": datetime.now(UTC).date().isoformat(),
                    "notes": f"{ranking}{rest}; protocol {report.protocol.name}, scored by segjudge {VERSION}",
                }
            )
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000)


def places(report: InstanceReport) -> str:
    """Return what the script of the Places Challenge 2017 prints."""
    values = report.values
    lines = [f"* MeanAP: {_or_nan(values['AP'])}", "* Performance by class:"]
    lines += [f"{row['name']}, AP: {_or_nan(row['AP'])}" for row in report.rows()["categories"]]
    lines.append("* Performance at different thresholds:")
    caps = report.protocol.detections
    last = caps[-1]
    whole, sizes = "0.50:0.95", ("small", "medium", "large")
    shown = [("AP", whole, "all", last), ("AP50", "0.50", "all", last), ("AP75", "0.75", "all", last)]
    shown += [(f"AP{area[0]}", whole, area, last) for area in sizes]
    shown += [(f"AR@{cap}", whole, "all", cap) for cap in caps]
    shown += [(f"AR{report.protocol.recall_of(area[0])}", whole, area, last) for area in sizes]
    for name, iou, area, cap in shown:
        kind, short = ("Average Precision", "(AP)") if name.startswith("AP") else ("Average Recall", "(AR)")
        value = -1.0 if values[name] is None else values[name]
        lines.append(f" {kind:<18} {short} @[ IoU={iou:<9} | area={area:>6s} | maxDets={cap:>3d} ] = {value:0.3f}")
    return "\n".join(lines)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _named(scores: list[ObjectScore]) -> list[tuple[str, ObjectScore]]:
    """Name objects `sequence_k`, counted within each sequence, in the order of matched proposals."""
    return [
        (f"{name}_{number}", score)
        for name, objects in _by_sequence(scores).items()
        for number, score in enumerate(sorted(objects, key=lambda score: score.proposal), 1)
    ]


def _by_sequence(scores: list[ObjectScore]) -> dict[str, list[ObjectScore]]:
    grouped: dict[str, list[ObjectScore]] = {}
    for score in scores:
        grouped.setdefault(score.sequence, []).append(score)
    return grouped


def _write_csv(path: str, header: list[str], rows: list[list[str]]) -> None:
    with open_output(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _vos_benchmark(report: SequenceReport) -> str:
    """Return that tool's table: padded columns, one decimal, percent; averaged in percent too, as it does."""
    width = max([len("Global score"), *(len(score.sequence) for score in report.scores)])
    scores = [score for objects in _by_sequence(report.scores).values() for score in _in_set_order(objects)]
    j, f = (np.array([100 * (score.values[name] or 0.0) for score in scores]) for name in ("J-Mean", "F-Mean"))
    total = (float("nan"),) * 3 if not scores else ((j.mean() + f.mean()) / 2, j.mean(), f.mean())
    lines = [
        f"{'sequence':<{width}},{'obj':>3}, {'J&F':>4}, {'J':>4}, {'F':>4}",
        f"{'Global score':<{width}},   , {', '.join(f'{number:.1f}' for number in total)}",
    ]
    for score, region, boundary in zip(scores, j, f, strict=True):
        numbers = ", ".join(f"{number:>4.1f}" for number in ((region + boundary) / 2, region, boundary))
        lines.append(f"{score.sequence:<{width}},{score.name:0>3}, {numbers}")
    return "\n".join(lines) + "\n"


def _in_set_order(objects: list[ObjectScore]) -> list[ObjectScore]:
    """Return a sequence's objects in the order in which Python walks a set of their numbers, as in that tool."""
    by_name = {score.name: score for score in objects}
    if not all(is_number(name) for name in by_name):
        return objects
    return [by_name[str(number)] for number in {int(name) for name in by_name}]
