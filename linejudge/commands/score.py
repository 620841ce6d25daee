"""`linejudge score`: what a participant runs."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from evaluation_script.instance_protocols import INSTANCE_PROTOCOLS
from evaluation_script.sequence_protocols import PROTOCOLS
from linejudge.scoring import UsageError

from .shared import DONE, Bar, bundle_root, say

ALL_PROTOCOLS = [*PROTOCOLS, *INSTANCE_PROTOCOLS]


def score(args: argparse.Namespace) -> int:
    """Score a results folder, zip or JSON, exactly as the server would."""
    from evaluation_script.answer import shown_warnings
    from linejudge.scoring import reports_of_phase, reports_of_truth

    args.results = args.results or args.preds_json
    args.truth = args.truth or args.dataset_json
    if args.dataset_json and not args.protocol:
        args.protocol = "places2017-official"  # what the script with these options computes
    if not args.results:
        raise UsageError("score needs the results to score")
    if bool(args.phase) == bool(args.truth):
        raise UsageError("score needs either --phase, or --truth with --protocol")
    _check_options(args)
    if args.truth and not args.protocol:
        raise UsageError(f"--truth needs --protocol, one of: {', '.join(ALL_PROTOCOLS)}")
    notes: list[str] = []
    with Bar() as bar:
        if args.phase:
            reports = reports_of_phase(bundle_root(), args, bar)
        else:
            reports, notes = reports_of_truth(args, bar)
    for note in shown_warnings(notes):
        say(f"truth: {note}")
    _show(reports, args)
    for line in shown_warnings([line for report in reports for line in report.warnings]):
        say(f"warning: {line}")
    return DONE


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that would be ignored."""
    of_instances = args.protocol in INSTANCE_PROTOCOLS
    pointless = {
        "--phase": ("protocol", "subset", "layout", "unseen", "cap", "id_zero_quirk") if args.phase else (),
        "instances": ("csv", "sequences", "layout", "unseen") if of_instances else (),
        "sequences": ("cap", "id_zero_quirk", "style") if args.truth and not of_instances else (),
    }
    for what, names in pointless.items():
        for name in names:
            if getattr(args, name):
                raise UsageError(f"--{name.replace('_', '-')} has no meaning for {what}")


def _show(reports: list[Any], args: argparse.Namespace) -> None:
    """Write the files that were asked for, and print what was scored."""
    from evaluation_script.answer import InstanceReport, tables
    from linejudge.report import official
    from linejudge.report.tables import of_report

    text = json.dumps(tables(reports), indent=1, allow_nan=False) if args.json else ""
    try:
        written = official.write_all(reports, args.csv) if args.csv else []
        if args.json and args.json != "-":
            with open(args.json, "w", encoding="utf-8") as file:
                file.write(text + "\n")
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written ({error.strerror})") from None
    for path in written:
        say(f"wrote {path}")
    for report in reports:
        say(f"Protocol {report.protocol.name}: {report.protocol.about}")
        if args.style == "official" and isinstance(report, InstanceReport):
            shown = official.places(report)
        else:
            shown = of_report(report, compare=bool(args.truth)) + "\n"
        print(shown, file=sys.stderr if args.json == "-" else sys.stdout)
    if args.json == "-":
        print(text)  # alone: a program reads it


def score_options(sub: argparse.ArgumentParser, layouts: list[str]) -> None:
    """What `score` takes."""
    sub.add_argument("results", nargs="?", help="folder, zip, tar(.gz) or JSON with the predicted masks")
    sub.add_argument("--preds_json", help="the results, as the script of Places 2017 names them")
    sub.add_argument("--dataset_json", help="the truth, likewise")
    sub.add_argument("--phase", help="score as this phase of the bundle")
    sub.add_argument("--annotations", help="with --phase: another annotation file")
    sub.add_argument("--truth", help="a packed annotation file, or a dataset root or zip in its published layout")
    sub.add_argument("--protocol", choices=ALL_PROTOCOLS, metavar="PROTOCOL", help=", ".join(ALL_PROTOCOLS))
    sub.add_argument("--subset", default="", help="the list of sequences to score, e.g. val")
    sub.add_argument("--layout", choices=layouts, metavar="LAYOUT", help="how TRUTH is laid out (default: recognised)")
    sub.add_argument("--split", help="score this split alone")
    sub.add_argument("--sequences", help="score these sequences alone, separated by commas")
    sub.add_argument("--unseen", help="file with the names of unseen sequences (lvos) or categories (youtube-vos)")
    sub.add_argument("--jobs", type=int, default=1, help="instances with --truth: score with so many processes")
    sub.add_argument("--cap", choices=["image", "category"], help="instances: what the cap on detections counts")
    sub.add_argument("--id-zero-quirk", choices=["on", "off"], help="instances: the annotation with id 0 is lost")
    sub.add_argument("--style", choices=["official"], help="instances: print as the script of Places 2017 does")
    sub.add_argument("--strict", action="store_true", help="warnings are errors")
    sub.add_argument("--csv", metavar="DIR", help="write CSV files as the official tool does")
    sub.add_argument("--json", metavar="FILE", help="write everything with full precision (- for stdout)")
