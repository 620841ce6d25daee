"""`segjudge report`: one page that shows what went wrong."""

from __future__ import annotations

import argparse
import os

from segjudge.datasets.layouts import LAYOUTS
from segjudge.errors import OptionError, UsageError
from segjudge.evaluation_script.phase import PROTOCOLS
from segjudge.files import written

from .shared import DONE, ProgressBar, say, whole_number


def report(args: argparse.Namespace) -> int:
    """Write one page, for a browser without network, that shows what results scored and where they fail."""
    from segjudge.commands.score import request_of
    from segjudge.evaluation_script.tuning import reuse_memory
    from segjudge.prepared import prepared
    from segjudge.report.page import PageOptions, rendered
    from segjudge.reporting import report_page
    from segjudge.scoring import scored_here

    reuse_memory()
    try:
        with ProgressBar() as bar:
            request = request_of(args)
            job = prepared(request, bar)
            scores = scored_here(job, request, bar)
    except OptionError as error:
        raise UsageError(f"--{error}") from None
    title = args.title or os.path.basename(os.path.normpath(args.results))
    options = PageOptions(args.images or "", args.budget * 1_000_000)
    with written(args.out) as file:
        file.write(rendered(report_page(job, scores, title, options)))
    say(f"wrote {args.out} ({os.path.getsize(args.out) / 1e6:.1f} MB)")
    return DONE


def report_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `report`."""
    from segjudge.commands.score import jobs_option

    sub.add_argument("results", help="folder, zip, tar(.gz) or JSON with the predicted masks")
    sub.add_argument("--truth", required=True, help="a packed annotation file, or a dataset root or zip")
    sub.add_argument("--protocol", default="davis2017", choices=PROTOCOLS, metavar="PROTOCOL")
    sub.add_argument("--subset", default="", help="the list of sequences to score, e.g. val")
    sub.add_argument("--split", help="report this split alone")
    sub.add_argument("--sequences", help="report these sequences alone, separated by commas")
    sub.add_argument("--layout", choices=LAYOUTS, metavar="LAYOUT", help="how TRUTH is laid out (default: recognised)")
    sub.add_argument("--unseen", help="file with the names of unseen sequences (lvos) or categories (youtube-vos)")
    sub.add_argument("--categories", metavar="FILE", help="places2017 with a folder of PNGs as TRUTH: their categories")
    sub.add_argument("--jobs", type=jobs_option, help="score with so many processes (auto: as many as there are cores)")
    page_options(sub)
    sub.add_argument("--title", help="the page's title (default: the name of the results)")
    sub.add_argument("--out", default="report.html", metavar="FILE", help="the page to write (default: report.html)")
    sub.set_defaults(strict=False, cap=None, id_zero_quirk=None)


def page_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of whatever writes a page."""
    sub.add_argument("--images", metavar="DIR", help="the dataset's pictures, over which the page draws masks")
    size = "megabytes that the page may have: masks become smaller, and pictures fewer (default: 6)"
    sub.add_argument("--budget", type=whole_number(1, 500), default=6, metavar="MB", help=size)
