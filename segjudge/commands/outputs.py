"""The outputs of `score` and `merge`: tables, files, a page, verdicts, warnings and the exit code."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from segjudge.evaluation_script.values import dataclass
from segjudge.system.errors import OptionError
from segjudge.system.files import check_outputs, make_folder, open_output

from .shared import DONE, THEIRS, choose_stream, look, mention, mention_verdicts, say, write_page

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import FamilyProtocol
    from segjudge.report.tables import Look
    from segjudge.scoring.scores import Scores
    from segjudge.scoring.several import ScoredSubmissions

#: The default size of a page in megabytes.
_BUDGET = 6
#: The width of tables in files and pipes.
_WIDTH = 80
#: A path, and the text to write there.
_File = tuple[str, str]


class _Table(NamedTuple):
    """The table of a split."""

    split: str
    protocol: FamilyProtocol
    text: str


@dataclass(frozen=True)
class Outputs:
    """The outputs of scores that a command was asked for."""

    json: str | None
    csv: str | None
    results_yaml: str | None
    hub_dataset: str
    #: Print columns that do not fit below the table.
    all_metrics: bool
    #: The page to write.
    report: str | None = None
    #: The folder of the pictures on the page.
    images: str = ""
    #: Splits whose scores are omitted from the published file of hubs.
    hidden: frozenset[str] = frozenset()
    #: Print published numbers, for results on a truth that the user named.
    compares: bool = True
    #: Print like the script of Places 2017.
    is_official: bool = False
    #: The command that shows causes and pictures, printed after the verdicts; "": print neither.
    next_command: str = ""

    def __post_init__(self) -> None:
        """Raise OptionError if a file for model hubs lacks the hub's name of the dataset."""
        if self.hub_dataset and not self.results_yaml:
            raise OptionError("hub-dataset needs --results-yaml")
        if self.results_yaml and not re.fullmatch(r"[\w.-]+/[\w.-]+", self.hub_dataset, re.ASCII):
            fault = f"{self.hub_dataset!r} does not have that form" if self.hub_dataset else "by its name there"
            raise OptionError(f"results-yaml needs --hub-dataset OWNER/NAME, the data set on the hub: {fault}")

    def write(self, scores: Scores) -> int:
        """Write and print the scores of one submission; return the exit code."""
        from segjudge.evaluation_script.files.problems import printable
        from segjudge.evaluation_script.scoring.answer import limit_warnings
        from segjudge.families import tools_of
        from segjudge.report.tables import format_report

        document, files = self._make_files(scores)
        shown_on, tables, verdicts = self._look(), list[_Table](), list[str]()
        for report in scores.reports:
            tools = tools_of(report.protocol.family)
            text = tools.format_official(report) if self.is_official else ""
            if not text:
                table = format_report(report, compare=self.compares, look=shown_on, all_metrics=self.all_metrics)
                text = f"{table}\n"
            tables.append(_Table(report.split, report.protocol, text))
            loss = tools.describe_loss(report) if self.next_command else ""
            if loss:
                which = f" on {printable(report.split)}" if len(scores.reports) > 1 else ""
                verdicts.append(f"Verdict{which}: {loss}")
        self._show(scores.notes, document, files, tables, limit_warnings(scores.warnings))
        if self.report:
            self._write_page(scores, self.report)
        if self.next_command:
            for line in [*verdicts, f"For causes and pictures, run: {self.next_command}"]:
                mention(line)
        return DONE

    def write_several(self, submissions: ScoredSubmissions) -> int:
        """Write and print the metrics of several submissions; return 1 if one of them could not be scored."""
        from segjudge.report.tables import format_submissions

        shown_on, tables = self._look(), list[_Table]()
        for split, protocol in submissions.protocols.items():
            rows = [(name, values if isinstance(values, str) else values[split]) for name, values in submissions.rows]
            text = format_submissions(split, list(protocol.metrics), rows, shown_on, all_metrics=self.all_metrics)
            tables.append(_Table(split, protocol, f"{text}\n"))
        self._show(submissions.notes, {"submissions": submissions.documents}, [], tables, submissions.warnings)
        faulty = sum(isinstance(values, str) for _, values in submissions.rows)
        if faulty:
            say(f"{faulty} of {len(submissions.rows)} submissions could not be scored", "bad")
        return THEIRS if faulty else DONE

    def _make_files(self, scores: Scores) -> tuple[dict[str, Any], list[_File]]:
        """Return the document for JSON, and the other files."""
        if not (self.json or self.csv or self.results_yaml):
            return {}, []
        from segjudge.scoring.score_files import make_csv, make_results_yaml, make_scores_document

        document, files = make_scores_document(scores) if self.json else {}, list[_File]()
        if self.results_yaml:
            public = [report for report in scores.reports if report.split not in self.hidden]
            files.append((self.results_yaml, make_results_yaml(public, self.hub_dataset)))
        if self.csv:
            files += make_csv(scores.reports, self.csv).items()
        return document, files

    def _look(self) -> Look:
        return look(choose_stream(self.json), _WIDTH)

    def _show(
        self,
        notes: list[str],
        document: dict[str, Any],
        files: list[_File],
        tables: list[_Table],
        warnings: list[str],
    ) -> None:
        """Write the files and the document, and print tables between the truth's notes and the warnings."""
        from segjudge.evaluation_script.scoring.answer import limit_warnings

        for note in limit_warnings(notes):
            say(f"truth: {note}")
        text = json.dumps(document, indent=1, allow_nan=False) if self.json else ""
        self._write_files([*files, *([(self.json, f"{text}\n")] if self.json and self.json != "-" else [])])
        for path, _ in files:
            if path != self.results_yaml:
                mention(f"Wrote {path}")
        for split, _, _ in tables:
            if split in self.hidden:
                say(f"{split} is hidden from participants, and omitted from {self.results_yaml}")
        for _, protocol, table in tables:
            mention(f"Protocol {protocol.name}: {protocol.about}")
            print(table, file=choose_stream(self.json))
        if self.json == "-":
            print(text)  # alone: a program reads it
        for line in warnings:
            say(f"warning: {line}")

    def _write_files(self, files: list[_File]) -> None:
        if self.csv:
            make_folder(self.csv)
            page = [self.report] if self.report and self.report != "-" else []
            check_outputs([*(path for path, _ in files), *page], [])
        for path, text in files:
            with open_output(path) as file:
                file.write(text)

    def _write_page(self, scores: Scores, path: str) -> None:
        """Write the page of `report`, and print its verdicts."""
        from segjudge.report.page import make_page_options
        from segjudge.scoring.report import make_report

        page = make_report(scores, scores.title, make_page_options(self.images, _BUDGET))
        write_page(page, path)
        mention_verdicts(page)
