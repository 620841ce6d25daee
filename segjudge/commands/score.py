"""`segjudge score`: what a participant runs."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
from typing import Any

from segjudge.evaluation_script.instance_protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.sequence_protocols import SEQUENCE_PROTOCOLS
from segjudge.files import written as whole
from segjudge.scoring import UsageError

from .shared import DONE, Bar, bundle_root, say, whole_number

ALL_PROTOCOLS = [*SEQUENCE_PROTOCOLS, *INSTANCE_PROTOCOLS]


#: Our names of what is asked for, and the official tools' names: Places 2017's script, then DAVIS's.
NAMES = {
    "results": ("preds_json", "results_path"),
    "truth": ("dataset_json", "davis_path"),
    "subset": ("set",),
    "categories": ("imgCatIdsFile",),
}
#: The tasks of DAVIS's script.
TASKS = {"semi-supervised": "davis2017", "unsupervised": "davis2017-unsupervised"}


def score(args: argparse.Namespace) -> int:
    """Score a results folder, zip or JSON, exactly as the server would."""
    from segjudge.evaluation_script.answer import public_warnings
    from segjudge.scoring import reports_of_phase, reports_of_truth

    _take_official_names(args)
    if not args.results:
        raise UsageError("score needs the results to score")
    if bool(args.phase) == bool(args.truth):
        raise UsageError("score needs either --phase, or --truth with --protocol")
    _check_options(args)
    if args.truth and not args.protocol:
        raise UsageError(f"--truth needs --protocol, one of: {', '.join(ALL_PROTOCOLS)}")
    _check_outputs(args)
    notes: list[str] = []
    with Bar() as bar:
        if args.phase:
            reports = reports_of_phase(bundle_root(), args, bar)
        else:
            reports, notes = reports_of_truth(args, bar)
    for note in public_warnings(notes):
        say(f"truth: {note}")
    _show(reports, args)
    for line in public_warnings([line for report in reports for line in report.warnings]):
        say(f"warning: {line}")
    return DONE


def _take_official_names(args: argparse.Namespace) -> None:
    """Options of the official tools as ours, with the defaults of those tools."""
    if args.task:
        wanted = TASKS[args.task]
        if args.protocol not in (None, wanted):
            raise UsageError(f"--task {args.task} means --protocol {wanted}, not {args.protocol}; give one of the two")
        args.protocol = wanted
    if args.dataset_json and not args.protocol:
        args.protocol = "places2017-official"  # what the script with these options computes
    if args.davis_path:
        args.protocol = args.protocol or TASKS["unsupervised"]
        args.set = args.set or args.subset or "val"
    for ours, theirs in NAMES.items():
        options = [f"--{name}" for name in theirs if getattr(args, name)]
        values = {getattr(args, name) for name in (ours, *theirs)} - {None, ""}
        if len(values) > 1:
            raise UsageError(f"{' and '.join(options)}: {ours} is given twice, as {' and '.join(sorted(values))}")
        setattr(args, ours, next(iter(values), getattr(args, ours)))


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that would be ignored."""
    of_instances = args.protocol in INSTANCE_PROTOCOLS
    truth_alone = ("protocol", "subset", "layout", "unseen", "cap", "id_zero_quirk", "categories", "jobs")
    pointless = {
        "--phase": truth_alone if args.phase else (),
        "--truth": ("annotations",) if args.truth else (),
        "instances": ("sequences", "layout", "unseen") if of_instances else (),
        "sequences": ("cap", "id_zero_quirk", "style", "categories", "jobs") if args.truth and not of_instances else (),
    }
    for what, names in pointless.items():
        for name in names:
            if getattr(args, name):
                raise UsageError(f"--{name.replace('_', '-')} has no meaning for {what}")


def _check_outputs(args: argparse.Namespace) -> None:
    """Refuse what cannot be written before anything is scored: that may take an hour."""
    try:
        if args.csv:
            os.makedirs(args.csv, exist_ok=True)
            _check_writable(args.csv)
        if args.json and args.json != "-":
            _check_file(args.json)
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


def _show(reports: list[Any], args: argparse.Namespace) -> None:
    """Write the files that were asked for, and print what was scored."""
    from segjudge.evaluation_script.answer import InstanceReport, tables
    from segjudge.report import official_csv
    from segjudge.report.tables import of_report

    text = json.dumps(tables(reports), indent=1, allow_nan=False) if args.json else ""
    try:
        written = official_csv.write_all(reports, args.csv) if args.csv else []
        if args.json and args.json != "-":
            with whole(args.json) as file:
                file.write(text + "\n")
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written ({error.strerror})") from None
    for path in written:
        say(f"wrote {path}")
    for report in reports:
        say(f"Protocol {report.protocol.name}: {report.protocol.about}")
        if args.style == "official" and isinstance(report, InstanceReport):
            shown = official_csv.places(report)
        else:
            shown = of_report(report, compare=bool(args.truth)) + "\n"
        print(shown, file=sys.stderr if args.json == "-" else sys.stdout)
    if args.json == "-":
        print(text)  # alone: a program reads it


def score_options(sub: argparse.ArgumentParser, layouts: list[str]) -> None:
    """What `score` takes."""
    sub.add_argument("results", nargs="?", help="folder, zip, tar(.gz) or JSON with the predicted masks")
    sub.add_argument("--phase", help="score as this phase of the bundle")
    sub.add_argument("--annotations", help="with --phase: another annotation file")
    sub.add_argument("--truth", help="a packed annotation file, or a dataset root or zip in its published layout")
    sub.add_argument("--categories", metavar="FILE", help="places2017 with a folder of PNGs as TRUTH: their categories")
    sub.add_argument("--protocol", choices=ALL_PROTOCOLS, metavar="PROTOCOL", help=", ".join(ALL_PROTOCOLS))
    sub.add_argument("--subset", default="", help="the list of sequences to score, e.g. val")
    sub.add_argument("--layout", choices=layouts, metavar="LAYOUT", help="how TRUTH is laid out (default: recognised)")
    sub.add_argument("--split", help="score this split alone")
    sub.add_argument("--sequences", help="score these sequences alone, separated by commas")
    sub.add_argument("--unseen", help="file with the names of unseen sequences (lvos) or categories (youtube-vos)")
    sub.add_argument("--jobs", type=whole_number(1, 256), help="instances with --truth: score with so many processes")
    sub.add_argument("--cap", choices=["image", "category"], help="instances: what the cap on detections counts")
    sub.add_argument("--id-zero-quirk", choices=["on", "off"], help="instances: the annotation with id 0 is lost")
    sub.add_argument("--style", choices=["official"], help="instances: print as the script of Places 2017 does")
    sub.add_argument("--strict", action="store_true", help="warnings are errors")
    sub.add_argument("--csv", metavar="DIR", help="write CSV files, for sequences as the official tool does")
    sub.add_argument("--json", metavar="FILE", help="write everything with full precision (- for stdout)")
    official = sub.add_argument_group("as the scripts of DAVIS and Places 2017 call them")
    official.add_argument("--davis_path", metavar="DIR", help="TRUTH, by default for the task unsupervised and set val")
    official.add_argument("--results_path", metavar="DIR", help="the results")
    official.add_argument("--task", choices=list(TASKS), help="the protocol davis2017 or davis2017-unsupervised")
    official.add_argument("--set", metavar="SUBSET", help="as --subset")
    official.add_argument("--dataset_json", metavar="FILE", help="TRUTH, by default for places2017-official")
    official.add_argument("--preds_json", metavar="FILE", help="the results")
    official.add_argument("--imgCatIdsFile", metavar="FILE", help="as --categories")
