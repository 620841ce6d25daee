"""`segjudge report`: one page that shows what went wrong."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files.problems import name_hint
from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFile, name_of

from .shared import (
    DONE,
    Command,
    InputPath,
    ProgressBar,
    add_jobs_option,
    add_page_options,
    add_truth_options,
    names,
    read_source,
    score_openly,
    write_html,
    write_page,
)

if TYPE_CHECKING:
    from segjudge.report.page import PageOptions, ReportPage
    from segjudge.scoring.scores import ScoreRequest


def _report(args: argparse.Namespace) -> int:
    from segjudge.evaluation_script.runner.tuning import reuse_memory
    from segjudge.report.page import make_page_options
    from segjudge.report.stored import read_result
    from segjudge.scoring.report import make_report, make_stored_report

    reuse_memory()
    if not args.truth and not args.results:
        raise UsageError("report needs --truth, or what a phase left of a submission")
    title = args.title or name_of(args.results or args.truth)
    if not args.truth:
        for option in ("subset", "split", "sequences", "layout", "unseen", "categories", "jobs", "images"):
            if getattr(args, option):
                raise UsageError(f"--{option} has no meaning without --truth")
        write_html(make_stored_report(read_result(args.results), title), args.out)
        return DONE
    from segjudge.scoring.scores import ScoreRequest

    source = read_source(args, args.truth)
    request = ScoreRequest(
        args.results or "", source, PROTOCOLS[args.protocol], args.split or "", args.sequences, jobs=args.jobs
    )
    options = make_page_options(args.images, args.budget)
    page = (
        make_report(score_openly(request), title, options) if args.results else _report_truth(request, title, options)
    )
    write_page(page, args.out)
    return DONE


def _report_truth(request: ScoreRequest, title: str, options: PageOptions) -> ReportPage:
    from segjudge.families.truths import open_truth
    from segjudge.scoring.report import make_truth_report
    from segjudge.scoring.scores import choose_sequences

    source, protocol = request.truth, request.protocol
    with ProgressBar() as bar:
        truths = open_truth(source, protocol, bar).splits
    split = request.split or source.subset
    if split and split not in truths:
        raise UsageError(f"{source.path} has no split {split!r}{name_hint(split, truths)}")
    splits = {
        name: choose_sequences(truths[name], request.sequences, protocol) for name in ([split] if split else truths)
    }
    return make_truth_report(splits, protocol.family, title, options)


def _add_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    results = "folder, zip, tar(.gz) or JSON with the predicted masks (without: the truth)"
    add("results", nargs="?", type=InputPath, help=results)
    truth = "a packed annotation file, or a dataset root or zip (without: RESULTS is what a phase left)"
    add("--truth", type=InputPath, help=truth)
    about = "a benchmark of those that `benchmarks` lists (davis2017)"
    add("--protocol", default="davis2017", choices=PROTOCOLS, metavar="PROTOCOL", help=about)
    add("--split", help="report this split alone")
    add("--sequences", type=names, help="report these sequences alone, separated by commas")
    add_truth_options(sub)
    add_jobs_option(sub)
    add_page_options(sub)
    add("--title", help="the page's title (default: the name of the results)")
    out = "the page to write (default: report.html)"
    add("--out", default="report.html", metavar="FILE", type=OutputFile, help=out)


COMMANDS = {"report": Command(_add_options, _report)}
