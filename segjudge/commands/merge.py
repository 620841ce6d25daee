"""`segjudge merge`: one run of several parts."""

from __future__ import annotations

import argparse

from .score_output import check_outputs, output_options, show
from .shared import DONE, say


def merge(args: argparse.Namespace) -> int:
    """Merge the parts that `score --part` wrote into the scores of one run."""
    from segjudge.evaluation_script.answer import public_warnings
    from segjudge.parts import merged

    check_outputs(args)
    reports, notes, provenance = merged(args.parts)
    for note in public_warnings(notes):
        say(f"truth: {note}")
    show(reports, provenance, args)
    for line in public_warnings([line for report in reports for line in report.warnings]):
        say(f"warning: {line}")
    return DONE


def merge_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `merge`."""
    sub.add_argument("parts", nargs="+", help="all parts of one scoring, in any order")
    output_options(sub)
    sub.set_defaults(truth="parts", style=None)
