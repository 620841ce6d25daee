"""`segjudge merge`, and what `score` and it write: tables on the terminal, and files."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from segjudge.errors import UsageError
from segjudge.files import written

from .shared import DONE, say

if TYPE_CHECKING:
    from segjudge.evaluation_script.reports import Report


def merge(args: argparse.Namespace) -> int:
    """Merge the parts that `score --part` wrote into the scores of one run."""
    from segjudge.parts import merged

    check_outputs(args)
    show(*merged(args.parts), args)
    return DONE


def check_outputs(args: argparse.Namespace) -> None:
    """Refuse what cannot be written before anything is scored: that may take an hour."""
    try:
        if args.csv:
            os.makedirs(args.csv, exist_ok=True)
            _check_writable(args.csv)
        for path in (args.json, args.results_yaml, *(getattr(args, name, None) for name in ("out", "report"))):
            if path and path != "-":
                _check_file(path)
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written ({error.strerror})") from None


def _check_file(path: str) -> None:
    """Raise OSError where a file cannot be written; the file itself stays as it is."""
    if os.path.isfile(path) or os.path.isdir(path):
        with open(path, "ab"):
            return
    if os.path.exists(path):  # a pipe, which would end for whoever reads it
        return
    folder = os.path.dirname(path) or "."
    os.scandir(folder).close()
    _check_writable(folder)


def _check_writable(folder: str) -> None:
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


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
    from segjudge.evaluation_script.answer import public_warnings, tables
    from segjudge.evaluation_script.reports import InstanceReport
    from segjudge.report import score_files
    from segjudge.report.tables import of_report

    for note in public_warnings(notes):
        say(f"truth: {note}")
    document = ""
    if args.json:
        errors = [{report.split: report.errors()} for report in reports]
        reaches = [{report.split: report.intervals()} for report in reports]
        found = {**tables(reports), "errors": errors, "intervals": reaches, "provenance": provenance}
        document = json.dumps(found, indent=1, allow_nan=False)
    try:
        paths = score_files.write_all(reports, args.csv) if args.csv else []
        if args.json and args.json != "-":
            with written(args.json) as file:
                file.write(document + "\n")
        if args.results_yaml:
            with written(args.results_yaml) as file:
                public = [report for report in reports if report.split not in hidden]
                file.write(score_files.results_yaml(public, args.hub_dataset))
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written ({error.strerror})") from None
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
    sub.set_defaults(truth="parts", style=None)


def output_options(sub: argparse.ArgumentParser) -> None:
    """Add the options on what is written."""
    add = sub.add_argument
    add("--csv", metavar="DIR", help="write CSV files, for sequences as the official tool does")
    add("--json", metavar="FILE", help="write everything with full precision (- for stdout)")
    add("--results-yaml", metavar="FILE", help="write what model hubs read in .eval_results")
    add("--hub-dataset", metavar="ID", default="", help="the data set there (default: the protocol's name)")
