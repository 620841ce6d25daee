"""`segjudge report`: one page that shows what went wrong."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.evaluation_script.files.problems import name_hint
from segjudge.families import OPTIONAL_LAYOUTS
from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFile, name_of

from .shared import (
    DONE,
    Command,
    InputPath,
    ProgressBar,
    add_jobs_option,
    add_page_options,
    make_page_options,
    names,
    read_options,
    write_html,
    write_page,
)


@dataclass(frozen=True)
class _Options:
    """What the page is about, and what it shows."""

    results: str | None
    truth: str | None
    protocol: str
    subset: str
    split: str | None
    sequences: list[str] | None
    layout: str | None
    unseen: str | None
    categories: str | None
    jobs: Any
    images: str | None
    budget: int
    title: str | None
    out: str

    @property
    def rules(self) -> FamilyProtocol:
        """The protocol."""
        return PROTOCOLS[self.protocol]


def _report(args: argparse.Namespace) -> int:
    from segjudge.evaluation_script.runner.tuning import reuse_memory

    reuse_memory()
    options = read_options(_Options, args)
    if not options.truth:
        _write_stored(options)
    elif not options.results:
        _write_truth(options)
    else:
        _write_scores(options)
    return DONE


def _write_scores(options: _Options) -> None:
    from segjudge.analysis.report import make_report
    from segjudge.datasets.opening import TruthSource
    from segjudge.scoring.scores import ScoreRequest, prepare

    truth, results = options.truth or "", options.results or ""
    with ProgressBar() as bar:
        source = TruthSource(
            truth, options.layout or "", options.subset, options.unseen or "", options.categories or ""
        )
        request = ScoreRequest(
            results, source, options.rules, options.split or "", options.sequences, jobs=options.jobs
        )
        job = prepare(request, bar)
        scores = job.score(bar)
    page = make_page_options(options.images, options.budget)
    write_page(make_report(job, scores, options.title or name_of(results), page), options.out)


def _write_stored(options: _Options) -> None:
    """Write the page of what a phase, or `score --json`, left."""
    from segjudge.analysis.report import make_stored_report
    from segjudge.report.stored import read_result

    if not options.results:
        raise UsageError("report needs --truth, or what a phase left of a submission")
    for option in ("subset", "split", "sequences", "layout", "unseen", "categories", "jobs", "images"):
        if getattr(options, option):
            raise UsageError(f"--{option} has no meaning without --truth")
    title = options.title or name_of(options.results)
    write_html(make_stored_report(read_result(options.results), title), options.out)


def _write_truth(options: _Options) -> None:
    from segjudge.analysis.report import make_truth_report
    from segjudge.datasets.opening import TruthSource, open_truth
    from segjudge.scoring.scores import choose_sequences

    path = options.truth or ""
    source = TruthSource(path, options.layout or "", options.subset, options.unseen or "", options.categories or "")
    with ProgressBar() as bar:
        truths = open_truth(source, options.rules, bar).splits
    chosen = options.split or options.subset
    if chosen and chosen not in truths:
        raise UsageError(f"{path} has no split {chosen!r}{name_hint(chosen, truths)}")
    splits = {
        name: choose_sequences(truths[name], options.sequences, options.rules)
        for name in ([chosen] if chosen else truths)
    }
    page = make_page_options(options.images, options.budget)
    write_page(make_truth_report(splits, options.rules.family, options.title or name_of(path), page), options.out)


def _add_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    results = "folder, zip, tar(.gz) or JSON with the predicted masks (without: the truth)"
    add("results", nargs="?", type=InputPath, help=results)
    truth = "a packed annotation file, or a dataset root or zip (without: RESULTS is what a phase left)"
    add("--truth", type=InputPath, help=truth)
    add("--protocol", default="davis2017", choices=PROTOCOLS, metavar="PROTOCOL")
    add("--subset", default="", help="the list of sequences to score, e.g. val")
    add("--split", help="report this split alone")
    add("--sequences", type=names, help="report these sequences alone, separated by commas")
    layout = "how TRUTH is laid out (default: recognised)"
    add("--layout", choices=OPTIONAL_LAYOUTS, metavar="LAYOUT", help=layout)
    unseen = "file with the names of unseen sequences (lvos) or categories (youtube-vos)"
    add("--unseen", type=InputPath, help=unseen)
    categories = "places2017 with a folder of PNGs as TRUTH: their categories"
    add("--categories", metavar="FILE", type=InputPath, help=categories)
    add_jobs_option(sub)
    add_page_options(sub)
    add("--title", help="the page's title (default: the name of the results)")
    out = "the page to write (default: report.html)"
    add("--out", default="report.html", metavar="FILE", type=OutputFile, help=out)


COMMANDS = {"report": Command(_add_options, _report)}
