"""The texts of the files that `score` and `merge` write."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from segjudge.system.files import file_name

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.reports import Report

    from .scores import Scores


def make_scores_document(scores: Scores) -> dict[str, Any]:
    """Return everything with full precision, for JSON."""
    from segjudge.scoring.document import make_document

    errors = [{report.split: report.errors()} for report in scores.reports]
    intervals = [{report.split: report.intervals()} for report in scores.reports]
    document = make_document(scores.reports, scores.provenance, scores.notes)
    return {**document, "errors": errors, "intervals": intervals}


def make_csv(reports: list[Report], folder: str) -> dict[str, str]:
    """Return the CSV files of all splits, by their paths in a folder."""
    from segjudge.families import tools_of
    from segjudge.report.tables import format_cell, format_csv

    files = {}
    for report in reports:
        metrics, split = list(report.protocol.metrics), file_name(report.split)
        means = format_csv(metrics, [[format_cell(report.values[metric]) for metric in metrics]])
        texts = {"global_results": means, **tools_of(report.protocol.family).make_files(report)}
        for stem, text in texts.items():
            name = "results.csv" if stem == "results" and len(reports) == 1 else f"{stem}-{split}.csv"
            files[os.path.join(folder, name)] = text
    return files


def make_results_yaml(reports: list[Report], dataset: str) -> str:
    """Write the entries of splits for a model's folder `.eval_results`: one metric, and a note on the others."""
    import yaml

    from segjudge.evaluation_script.scoring import VERSION
    from segjudge.report.tables import format_number

    entries = []
    for report in reports:
        ranking, *other_metrics = report.protocol.metrics
        value = report.values[ranking]
        if value is not None:
            notes = "".join(f", {name} {format_number(report.values[name])}" for name in other_metrics)
            entries.append(
                {
                    "dataset": {"id": dataset, "task_id": report.split},
                    "value": float(value),
                    "date": datetime.now(UTC).date().isoformat(),
                    "notes": f"{ranking}{notes}; protocol {report.protocol.name}, scored by segjudge {VERSION}",
                }
            )
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000)
