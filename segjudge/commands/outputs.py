"""The outputs of `score` and `merge`: tables, files, a page, verdicts, warnings and the exit code."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.values import dataclass
from segjudge.system.errors import OptionError
from segjudge.system.files import check_outputs, make_folder, open_output

from .shared import DONE, THEIRS, choose_stream, look, mention, say, write_html

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import FamilyProtocol
    from segjudge.scoring.scores import ScoredSubmissions, Scores

#: The default size of a page in megabytes.
_BUDGET = 6
#: The width of tables in files and pipes.
_WIDTH = 80


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

    def write(self, results: Scores | ScoredSubmissions) -> int:
        """Write and print scores; return 1 if one of several submissions could not be scored."""
        from segjudge.evaluation_script.scoring.answer import limit_warnings
        from segjudge.families import tools_of
        from segjudge.report.tables import format_report, format_submissions
        from segjudge.scoring.scores import Scores

        for note in limit_warnings(results.notes):
            say(f"truth: {note}")
        text, stream = self._write_files(results), choose_stream(self.json)
        tables: list[tuple[FamilyProtocol, str]] = []
        style: dict[str, Any] = {"look": look(stream, _WIDTH), "all_metrics": self.all_metrics}
        if isinstance(results, Scores):
            warnings = limit_warnings(results.warnings)
            for report in results.reports:
                if report.split in self.hidden:
                    say(f"{report.split} is hidden from participants, and omitted from {self.results_yaml}")
                official = tools_of(report.protocol.family).format_official(report) if self.is_official else ""
                table = official or format_report(report, compare=self.compares, **style) + "\n"
                tables.append((report.protocol, table))
        else:
            warnings = results.warnings
            for split, protocol in results.protocols.items():
                rows = [(name, values if isinstance(values, str) else values[split]) for name, values in results.rows]
                table = format_submissions(split, list(protocol.metrics), rows, **style) + "\n"
                tables.append((protocol, table))
        for protocol, table in tables:
            mention(f"Protocol {protocol.name}: {protocol.about}")
            print(table, file=stream)
        if self.json == "-":
            print(text)  # alone: a program reads it
        for line in warnings:
            say(f"warning: {line}")
        if isinstance(results, Scores):
            return self._explain(results)
        faulty = sum(isinstance(values, str) for _, values in results.rows)
        if faulty:
            say(f"{faulty} of {len(results.rows)} submissions could not be scored", "bad")
        return THEIRS if faulty else DONE

    def _write_files(self, results: Scores | ScoredSubmissions) -> str:
        """Write the files, and print the paths of those in a folder; return the text of the JSON."""
        if not (self.json or self.csv or self.results_yaml):
            return ""
        from segjudge.scoring.document import make_csv, make_results_yaml, make_scores_document
        from segjudge.scoring.scores import Scores

        files, document, tables = dict[str, str](), dict[str, Any](), dict[str, str]()
        if not isinstance(results, Scores):
            document = {"submissions": results.documents}
        else:
            if self.json:
                document = make_scores_document(results.reports, results.provenance, results.notes)
            if self.results_yaml:
                public = [report for report in results.reports if report.split not in self.hidden]
                files[self.results_yaml] = make_results_yaml(public, self.hub_dataset)
            if self.csv:
                tables = make_csv(results.reports, self.csv)
                make_folder(self.csv)
                page = [self.report] if self.report and self.report != "-" else []
                check_outputs([*files, *tables, *page], [])
        text = json.dumps(document, indent=1, allow_nan=False) if self.json else ""
        if self.json and self.json != "-":
            files[self.json] = f"{text}\n"
        for path, content in {**files, **tables}.items():
            with open_output(path) as file:
                file.write(content)
        for path in tables:
            mention(f"Wrote {path}")
        return text

    def _explain(self, scores: Scores) -> int:
        """Write the page, or print the verdict on each split and the command that shows more."""
        from segjudge.evaluation_script.files.problems import printable
        from segjudge.families import tools_of

        if self.report:
            from segjudge.report.page import list_verdicts, make_page_options, render_page
            from segjudge.scoring.report import make_report

            page = make_report(scores, scores.title, make_page_options(self.images, _BUDGET))
            text, verdicts = render_page(page), list_verdicts(page)
            write_html(text, self.report, verdicts)
        if self.next_command:
            for report in scores.reports:
                loss = tools_of(report.protocol.family).describe_loss(report)
                which = f" on {printable(report.split)}" if len(scores.reports) > 1 else ""
                if loss:
                    mention(f"Verdict{which}: {loss}")
            mention(f"For causes and pictures, run: {self.next_command}")
        return DONE
