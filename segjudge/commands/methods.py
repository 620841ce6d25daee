"""`segjudge compare` and `rank`: which methods can be told apart, where they differ, and how far a ranking holds."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from segjudge.analysis import METHODS
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFile, OutputFolder, name_of, open_output

from .shared import (
    DONE,
    TAKEN,
    Command,
    InputPath,
    add_jobs_option,
    add_page_options,
    choose_stream,
    look,
    mention,
    names,
    say,
    score_openly,
    whole_number,
    write_page,
)

if TYPE_CHECKING:
    from segjudge.analysis.comparison import Comparison
    from segjudge.scoring.scores import Scores


# ── compare ─────────────────────────────────────────────────────────────────


def _compare(args: argparse.Namespace) -> int:
    from segjudge.analysis.comparison import check_kinds, check_table, choose_metric, compare, write_table
    from segjudge.families import tools_of
    from segjudge.families.truths import TruthSource
    from segjudge.report.page import make_page_options
    from segjudge.scoring.scores import ScoreRequest

    paths = dict(map(_name_results, args.results))
    if len(paths) < len(args.results):
        raise UsageError("two results have the same name; give them as NAME=RESULTS")
    if len(paths) < 2:
        raise UsageError("compare needs two results at least")
    saved = {} if args.truth else _load_scores(args, paths)
    protocol = next(iter(saved.values())).reports[0].protocol if saved else PROTOCOLS[args.protocol]
    metric = choose_metric(protocol, args.metric or "")
    if args.kinds:
        check_kinds(protocol, metric)
        if not all(scores.costs for scores in saved.values()):
            raise UsageError("--kinds needs --truth, or scores that `score --save` wrote")
    if args.truth and args.out and tools_of(protocol.family).shares_loss:
        check_kinds(protocol, metric, "out")
    if args.table:
        check_table(args.table)
    if args.film:
        from segjudge.scoring.figures import check_ending

        check_ending(args.film)
    request = ScoreRequest("", TruthSource(args.truth or "", subset=args.subset or ""), protocol, jobs=args.jobs)
    methods = saved or {name: score_openly(replace(request, results=path)) for name, path in paths.items()}
    comparison = compare(methods, metric=metric, split=args.split or "")
    page = comparison.make_page(make_page_options(args.images, args.budget)) if args.out else None
    stream = choose_stream(args.json, args.markdown, args.table)
    print(comparison.text(look(stream)), file=stream)
    if args.kinds:
        print(comparison.kinds_text(look(stream)), file=stream)
    if page:
        write_page(page, args.out)
    if args.markdown:
        _write_text(comparison.markdown(), args.markdown)
    if args.table:
        _write_text(write_table(comparison, args.table), args.table)
    if args.film:
        choice = {"sequence": args.sequence} if args.sequence else {}
        comparison.film(args.film, frames=args.frames or (), images=args.images or "", errors=args.errors, **choice)
        mention(f"wrote {args.film}")
    _write_document(comparison.document(kinds=args.kinds), args.json)
    return _judge_gain(comparison, args.fail_below)


def _load_scores(args: argparse.Namespace, paths: dict[str, str]) -> dict[str, Scores]:
    """Read the scores that were saved; raises UsageError for what only masks tell."""
    from segjudge.scoring.scores import load

    for option in ("subset", "film", "images"):
        if getattr(args, option):
            raise UsageError(f"--{option} needs --truth: saved scores hold no masks")
    try:
        return {name: load(path) for name, path in paths.items()}
    except UsageError as error:
        needs = "compare needs --truth for results, and without it takes what `score --save` wrote"
        raise UsageError(f"{error}; {needs}") from None


def _judge_gain(comparison: Comparison, least: float | None) -> int:
    """Say whether the last method gained as much as it had to beside the first; a loss is below zero."""
    if least is None or comparison.gain >= least:
        return DONE
    base, *_, last = comparison.sums.algorithms
    say(f"{last} gains {comparison.gain:+.3f} beside {base} in {comparison.metric}, less than {least:+g}")
    return TAKEN


def _name_results(text: str) -> tuple[str, str]:
    """Split NAME=RESULTS into name and path; RESULTS alone have the name of their file."""
    name, _, path = text.rpartition("=") if not os.path.exists(text) else ("", "", text)
    return name or name_of(path).partition(".")[0], path


def _add_compare_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("results", nargs="+", type=InputPath, metavar="RESULTS", help="results of each method, or NAME=RESULTS")
    truth = "a packed annotation file, or a dataset root or zip (without: RESULTS are of `score --save`)"
    add("--truth", type=InputPath, help=truth)
    about = "a benchmark of those that `benchmarks` lists (davis2017)"
    add("--protocol", default="davis2017", choices=PROTOCOLS, metavar="PROTOCOL", help=about)
    add("--subset", help="the list of sequences to score, e.g. val")
    add("--split", help="the split to compare")
    add("--metric", help="which metric (default: J&F-Mean, or the protocol's first)")
    add("--kinds", action="store_true", help="say which kinds of failure the loss comes from")
    about = "write a page with the sequences and frames in which they differ"
    add("--out", metavar="FILE", type=OutputFile, help=about)
    add_page_options(sub)
    add_jobs_option(sub)
    add("--json", metavar="FILE", type=OutputFile, help="write everything with full precision (- for stdout)")
    add = sub.add_argument_group("for pull requests and papers").add_argument
    about = "write Markdown: what grew and shrank by kind, and what flipped, from the first method to the last"
    add("--markdown", metavar="FILE", type=OutputFile, help=about)
    about = "exit with 4 where the last method gains less than this beside the first: -0.005 lets it lose as much"
    add("--fail-below", type=float, metavar="GAIN", help=about)
    about = "write a paper's table as .tex (booktabs) or .md: intervals, and bold where a method is told apart"
    add("--table", metavar="FILE", type=OutputFile, help=about)
    about = "write frames of each method beside each other as .pdf, .svg or .png, over --images"
    add("--film", metavar="FILE", type=OutputFile, help=about)
    add("--sequence", help="of --film (default: where the last method loses most)")
    add("--frames", type=names, help="of --film, separated by commas (default: five, with the worst)")
    add("--errors", action="store_true", help="of --film: draw what is wrong, not the masks")


# ── rank ────────────────────────────────────────────────────────────────────


def _rank(args: argparse.Namespace) -> int:
    from segjudge.analysis.standings import rank

    ranking = rank(
        *args.scores,
        metric=args.metric or "",
        split=args.split or "",
        method=args.method,
        adjustment=args.adjustment,
        average_ties=args.average_ties,
        missing=args.missing,
        smaller=args.smaller,
        draws=args.draws,
    )
    for note in ranking.notes:
        say(note)
    stream = choose_stream(args.json)
    print(ranking.text(look(stream)), file=stream)
    if args.plots:
        from segjudge.analysis.plots import write_plots

        for path in [path for task in ranking.tasks for path in write_plots(task, args.plots)]:
            mention(f"wrote {path}")
    if args.out:
        write_page(ranking.make_page(), args.out)
    _write_document(ranking.document(), args.json)
    return DONE


def _write_document(document: dict[str, Any], path: str | None) -> None:
    """Write what was computed as JSON where it was asked for."""
    if path:
        _write_text(json.dumps(document, indent=1).replace("NaN", "null") + "\n", path)


def _write_text(text: str, path: str) -> None:
    if path == "-":
        print(text, end="")
        return
    with open_output(path) as file:
        file.write(text)
    mention(f"wrote {path}")


def _add_rank_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    what = "JSONs of `score --json` or saved scores (or NAME=FILE), or one CSV: algorithm, case, value and maybe task"
    add("scores", nargs="+", type=InputPath, metavar="SCORES", help=what)
    add("--metric", help="of JSONs, which metric (default: J&F-Mean, or the protocol's first)")
    add("--split", help="of JSONs, which split")
    add("--method", default=METHODS[0], choices=METHODS, help=f"(default: {METHODS[0]})")
    add("--adjustment", default="none", choices=["none", "holm"], help="of test-then-rank")
    add("--average-ties", action="store_true", help="equal ones share the mean of their ranks")
    missing = "a missing value is 0 (default, where none is worse), last in its case (default elsewhere), or left out"
    add("--missing", choices=["zero", "last", "remove"], help=missing)
    add("--smaller", action="store_true", help="small values of a table are good; of metrics it is known")
    add("--draws", type=whole_number(1, 100_000), default=1000, help="redrawings (default: 1000)")
    add("--out", metavar="FILE", type=OutputFile, help="write a page with the tables and what can be told apart")
    add("--plots", metavar="DIR", type=OutputFolder, help="write plots as SVG and PNG")
    add("--json", metavar="FILE", type=OutputFile, help="write everything with full precision (- for stdout)")


COMMANDS = {"compare": Command(_add_compare_options, _compare), "rank": Command(_add_rank_options, _rank)}
