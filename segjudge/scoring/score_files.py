"""The files that `score` and `merge` write."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.values import dataclass
from segjudge.system.errors import OptionError
from segjudge.system.files import check_outputs, file_name, make_folder, open_output

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.reports import Report

    from .scores import Scores


@dataclass(frozen=True)
class ScoreFiles:
    """The paths to which scores are written."""

    csv: str | None
    json: str | None
    results_yaml: str | None
    hub_dataset: str
    #: The page to write as well.
    page: str | None = None
    #: Splits whose scores are omitted from the published file of hubs.
    hidden: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Raise OptionError if a file for model hubs lacks the hub's name of the dataset."""
        if self.hub_dataset and not self.results_yaml:
            raise OptionError("hub-dataset needs --results-yaml")
        if self.results_yaml and not re.fullmatch(r"[\w.-]+/[\w.-]+", self.hub_dataset, re.ASCII):
            fault = f"{self.hub_dataset!r} does not have that form" if self.hub_dataset else "by its name there"
            raise OptionError(f"results-yaml needs --hub-dataset OWNER/NAME, the data set on the hub: {fault}")

    def write(self, scores: Scores) -> tuple[str, list[str]]:
        """Write the files; return the JSON, which may be for stdout, and the paths of the CSV files."""
        document = _format_scores(scores) if self.json else ""
        texts: dict[str, str] = {}
        if self.json and self.json != "-":
            texts[self.json] = document + "\n"
        if self.results_yaml:
            public = [report for report in scores.reports if report.split not in self.hidden]
            texts[self.results_yaml] = _format_results_yaml(public, self.hub_dataset)
        tables = _make_csv(scores.reports, self.csv) if self.csv else {}
        if self.csv:
            make_folder(self.csv)
            check_outputs([*tables, *texts, *([self.page] if self.page and self.page != "-" else [])], [])
        for path, text in {**tables, **texts}.items():
            with open_output(path) as file:
                file.write(text)
        return document, list(tables)


def _format_scores(scores: Scores) -> str:
    return json.dumps(make_scores_document(scores), indent=1, allow_nan=False)


def make_scores_document(scores: Scores) -> dict[str, Any]:
    """Return everything with full precision, for JSON."""
    from segjudge.scoring.document import make_document

    errors = [{report.split: report.errors()} for report in scores.reports]
    intervals = [{report.split: report.intervals()} for report in scores.reports]
    document = make_document(scores.reports, scores.provenance, scores.notes)
    return {**document, "errors": errors, "intervals": intervals}


def _make_csv(reports: list[Report], folder: str) -> dict[str, str]:
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


def _format_results_yaml(reports: list[Report], dataset: str) -> str:
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
