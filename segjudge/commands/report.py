"""`segjudge report`: one page that shows what went wrong."""

from __future__ import annotations

import argparse

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files.problems import name_hint
from segjudge.families import OPTIONAL_LAYOUTS
from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFile, name_of

from .pages import options_of, page_options, write_html, write_page
from .shared import DONE, ProgressBar, jobs_option, names


def report(args: argparse.Namespace) -> int:
    """Write one page, for a browser without network, that shows what results scored and where they fail."""
    from segjudge.analysis.report import report_page
    from segjudge.commands.score import request_of
    from segjudge.evaluation_script.runner.tuning import reuse_memory
    from segjudge.scoring.scores import prepare

    reuse_memory()
    if not args.truth:
        return _stored(args)
    if not args.results:
        return _truth_alone(args)
    with ProgressBar() as bar:
        request = request_of(args)
        job = prepare(request, bar)
        scores = job.score(bar)
    title = args.title or name_of(args.results)
    write_page(report_page(job, scores, title, options_of(args)), args.out)
    return DONE


def _stored(args: argparse.Namespace) -> int:
    """Write the page of what a phase, or `score --json`, left."""
    from segjudge.analysis.stored_report import read_stored, stored_page

    if not args.results:
        raise UsageError("report needs --truth, or what a phase left of a submission")
    for option in ("subset", "split", "sequences", "layout", "unseen", "categories", "jobs", "images"):
        if getattr(args, option):
            raise UsageError(f"--{option} has no meaning without --truth")
    title = args.title or name_of(args.results)
    write_html(stored_page(read_stored(args.results), title), args.out)
    return DONE


def _truth_alone(args: argparse.Namespace) -> int:
    from segjudge.analysis.report import truth_page
    from segjudge.datasets.opening import TruthSource, open_truth
    from segjudge.scoring.scores import choose_sequences

    source = TruthSource(args.truth, args.layout or "", args.subset, args.unseen or "", args.categories or "")
    with ProgressBar() as bar:
        found = open_truth(source, PROTOCOLS[args.protocol], bar).splits
    chosen = args.split or args.subset
    if chosen and chosen not in found:
        raise UsageError(f"{args.truth} has no split {chosen!r}{name_hint(chosen, found)}")
    title = args.title or name_of(args.truth)
    splits = {
        name: choose_sequences(found[name], args.sequences, PROTOCOLS[args.protocol])
        for name in ([chosen] if chosen else found)
    }
    write_page(truth_page(splits, PROTOCOLS[args.protocol].track, title, options_of(args)), args.out)
    return DONE


def report_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `report`."""
    sub.add_argument(
        "results", nargs="?", help="folder, zip, tar(.gz) or JSON with the predicted masks (without: the truth)"
    )
    sub.add_argument(
        "--truth", help="a packed annotation file, or a dataset root or zip (without: RESULTS is what a phase left)"
    )
    sub.add_argument("--protocol", default="davis2017", choices=PROTOCOLS, metavar="PROTOCOL")
    sub.add_argument("--subset", default="", help="the list of sequences to score, e.g. val")
    sub.add_argument("--split", help="report this split alone")
    sub.add_argument("--sequences", type=names, help="report these sequences alone, separated by commas")
    sub.add_argument(
        "--layout", choices=OPTIONAL_LAYOUTS, metavar="LAYOUT", help="how TRUTH is laid out (default: recognised)"
    )
    sub.add_argument("--unseen", help="file with the names of unseen sequences (lvos) or categories (youtube-vos)")
    sub.add_argument("--categories", metavar="FILE", help="places2017 with a folder of PNGs as TRUTH: their categories")
    jobs_option(sub)
    page_options(sub)
    sub.add_argument("--title", help="the page's title (default: the name of the results)")
    sub.add_argument(
        "--out", default="report.html", metavar="FILE", type=OutputFile, help="the page to write (default: report.html)"
    )
    sub.set_defaults(strict=False, cap=None, id_zero_quirk=None)
