"""`segjudge merge`, and what `score` and it write: tables on the terminal, and files."""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import TYPE_CHECKING, Any

from segjudge.system.errors import OptionError
from segjudge.system.files import OutputFile, OutputFolder, check_outputs, make_folder, written

from .shared import DONE, say

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.reports import Report


def merge(args: argparse.Namespace) -> int:
    """Merge the parts that `score --part` wrote into the scores of one run."""
    from segjudge.scoring.parts import merge_parts

    check_hub(args)
    show(*merge_parts(args.parts), args)
    return DONE


def check_hub(args: argparse.Namespace) -> None:
    """Refuse a file for model hubs that does not name their data set: the protocol's name is none of theirs."""
    if args.hub_dataset and not args.results_yaml:
        raise OptionError("hub-dataset goes with --results-yaml")
    if args.results_yaml and not re.fullmatch(r"[\w.-]+/[\w.-]+", args.hub_dataset, re.ASCII):
        given = f"{args.hub_dataset!r} is not that" if args.hub_dataset else "as it is called there"
        raise OptionError(f"results-yaml needs --hub-dataset OWNER/NAME, the data set on the hub: {given}")


def show(
    reports: list[Report],
    notes: list[str],
    provenance: dict[str, Any],
    args: argparse.Namespace,
    hidden: frozenset[str] = frozenset(),
) -> None:
    """Write the files that were asked for, and print what was scored, with notes on the truth and warnings.

    The scores of `hidden` splits are not for the file that hubs publish.
    """
    from segjudge.evaluation_script.families.instances.metrics import InstanceReport
    from segjudge.evaluation_script.scoring.answer import public_warnings
    from segjudge.report import score_files
    from segjudge.report.tables import of_report

    for note in public_warnings(notes):
        say(f"truth: {note}")
    document = ""
    if args.json:
        from segjudge.analysis.score_tables import comparable

        errors = [{report.split: report.errors()} for report in reports]
        reaches = [{report.split: report.intervals()} for report in reports]
        found = {**comparable(reports, provenance), "errors": errors, "intervals": reaches}
        document = json.dumps(found, indent=1, allow_nan=False)
    paths: list[str] = []
    if args.csv:
        make_folder(args.csv)
        paths = score_files.paths(reports, args.csv)
        others = [path for path in (args.json, args.results_yaml, getattr(args, "report", "")) if path and path != "-"]
        check_outputs([*paths, *others], [])
        score_files.write_all(reports, args.csv)
    if args.json and args.json != "-":
        with written(args.json) as file:
            file.write(document + "\n")
    if args.results_yaml:
        with written(args.results_yaml) as file:
            public = [report for report in reports if report.split not in hidden]
            file.write(score_files.results_yaml(public, args.hub_dataset))
    for path in paths:
        say(f"wrote {path}")
    for report in reports:
        if report.split in hidden:
            say(f"{report.split} is hidden from participants, and left out of {args.results_yaml}")
    for report in reports:
        say(f"Protocol {report.protocol.name}: {report.protocol.about}")
        if args.style == "official" and isinstance(report, InstanceReport):
            text = score_files.places(report)
        else:
            text = of_report(report, compare=bool(args.truth)) + "\n"
        print(text, file=sys.stderr if args.json == "-" else sys.stdout)
    if args.json == "-":
        print(document)  # alone: a program reads it
    for line in public_warnings([line for report in reports for line in report.warnings]):
        say(f"warning: {line}")


def merge_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `merge`."""
    sub.add_argument("parts", nargs="+", help="all parts of one scoring, in any order")
    output_options(sub)
    sub.set_defaults(truth=True, style=None)


def output_options(sub: argparse.ArgumentParser) -> None:
    """Add the options on what is written."""
    add = sub.add_argument
    add("--csv", metavar="DIR", type=OutputFolder, help="write CSV files, for sequences as the official tool does")
    add("--json", metavar="FILE", type=OutputFile, help="write everything with full precision (- for stdout)")
    add("--results-yaml", metavar="FILE", type=OutputFile, help="write what model hubs read in .eval_results")
    add("--hub-dataset", metavar="OWNER/NAME", default="", help="with --results-yaml: the data set there")
