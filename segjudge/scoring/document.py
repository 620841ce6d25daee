"""The document of `score --json`: scores with their origin, and the data for rankings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.scoring.answer import tables

#: The note after the name of a split whose scores are hidden from participants, in files and pages.
HIDDEN = "is hidden from participants: publish none of its scores"


def list_hidden_splits(reports: Iterable[Report], notes: Collection[str]) -> list[str]:
    """List the splits that notes call hidden."""
    return [report.split for report in reports if f"{report.split} {HIDDEN}" in notes]


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
