"""The files of `score`: the JSON document, with the data for rankings, CSV files, and the file of model hubs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.scoring.answer import tables
from segjudge.system.files import file_name

#: The note after the name of a split whose scores are hidden from participants, in files and pages.
HIDDEN = "is hidden from participants: publish none of its scores"


def list_hidden_splits(reports: Iterable[Report], notes: Collection[str]) -> list[str]:
    """List the splits that notes call hidden."""
    return [report.split for report in reports if f"{report.split} {HIDDEN}" in notes]


def make_scores_document(
    reports: list[Report], provenance: Mapping[str, Any], notes: Collection[str]
) -> dict[str, Any]:
    """Return everything with full precision, for JSON."""
    errors = [{report.split: report.errors()} for report in reports]
    intervals = [{report.split: report.intervals()} for report in reports]
    return {**make_document(reports, provenance, notes), "errors": errors, "intervals": intervals}


def make_document(reports: list[Report], provenance: Mapping[str, Any], notes: Collection[str] = ()) -> dict[str, Any]:
    """Return the part of the document that rankings read."""
    entries = {"groups": _groups_of(reports), "rules": _rules_of(reports), "hidden": list_hidden_splits(reports, notes)}
    return {**tables(reports), **{key: value for key, value in entries.items() if value}, "provenance": provenance}


def cases_of(report: Report) -> dict[str, Any] | None:
    """Return the column that identifies images or videos of group metrics; None if objects are the cases."""
    counts = report.counts
    if counts is None or not report.in_groups:
        return None
    return {key: value for key, value in counts.describe().items() if key != "notes"}


def _groups_of(reports: Iterable[Report]) -> dict[str, dict[str, object]]:
    """Return, by split, the metrics per group, if not means over objects, and the column that identifies cases."""
    groups: dict[str, dict[str, object]] = {}
    for report in reports:
        cases = cases_of(report)
        if cases is not None:
            values = {metric: sums.tolist() for metric, (sums, _) in report.sums(()).items()}
            digest = hashlib.sha256(json.dumps(cases, sort_keys=True).encode()).hexdigest()
            groups[report.split] = {"cases": digest, "values": values}
    return groups


def _rules_of(reports: Iterable[Report]) -> dict[str, object]:
    """Return, by split, the rules of a protocol if they differ from its own."""
    changed = [report for report in reports if report.protocol != PROTOCOLS.get(report.protocol.name)]
    if not changed:
        return {}
    from .parts import rules_as_json

    return {report.split: rules_as_json(report.protocol) for report in changed}


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
