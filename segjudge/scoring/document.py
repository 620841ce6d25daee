"""The document of `score --json`: what was scored, and what rankings read of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.scoring.answer import tables


def make_document(reports: list[Report], provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document, as far as rankings read it."""
    beside = {"groups": _groups_of(reports), "rules": _rules_of(reports)}
    return {**tables(reports), **{key: value for key, value in beside.items() if value}, "provenance": provenance}


def cases_of(report: Report) -> dict[str, Any] | None:
    """Return what tells images or videos apart whose groups metrics are known by; None where objects are the cases."""
    counts = report.counts
    if counts is None or not report.in_groups:
        return None
    return {key: value for key, value in counts.describe().items() if key != "notes"}


def _groups_of(reports: Iterable[Report]) -> dict[str, dict[str, object]]:
    """Return, by split, the metrics that are no means over objects by group, and what tells the cases apart."""
    groups: dict[str, dict[str, object]] = {}
    for report in reports:
        cases = cases_of(report)
        if cases is not None:
            values = {metric: sums.tolist() for metric, (sums, _) in report.sums(()).items()}
            digest = hashlib.sha256(json.dumps(cases, sort_keys=True).encode()).hexdigest()
            groups[report.split] = {"cases": digest, "values": values}
    return groups


def _rules_of(reports: Iterable[Report]) -> dict[str, object]:
    """Return, by split, the rules of a protocol where they are not its own."""
    changed = [report for report in reports if report.protocol != PROTOCOLS.get(report.protocol.name)]
    if not changed:
        return {}
    from .parts import rules_as_json

    return {report.split: rules_as_json(report.protocol) for report in changed}
