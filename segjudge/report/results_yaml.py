"""What model hubs read: one value for each split, as a file for the folder `.eval_results` of a model's repository."""

from __future__ import annotations

from datetime import UTC, datetime

import yaml

from segjudge.evaluation_script.reports import Report
from segjudge.evaluation_script.version import VERSION

from .tables import number


def results_yaml(reports: list[Report], dataset: str) -> str:
    """Return the entries of splits: a hub has room for the metric that ranks, and a note for the others."""
    entries = []
    for report in reports:
        ranking, *others = report.protocol.metrics
        value = report.values[ranking]
        if value is not None:
            rest = "".join(f", {name} {number(report.values[name])}" for name in others)
            entries.append(
                {
                    "dataset": {"id": dataset or report.protocol.name, "task_id": report.split},
                    "value": float(value),
                    "date": datetime.now(UTC).date().isoformat(),
                    "notes": f"{ranking}{rest}; protocol {report.protocol.name}, scored by segjudge {VERSION}",
                }
            )
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000)
