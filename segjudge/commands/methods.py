"""`segjudge compare` and `rank`: differences of methods, and the stability of rankings."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Any

from segjudge.analysis import CHALLENGE, METHODS, MOST_DRAWS
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import OutputFile, OutputFolder, name_of, open_output
from segjudge.system.options import whole_number

from .parser import CommandParser
from .shared import (
    DONE,
    FULL_PRECISION,
    OUTPUT,
    RARELY,
    SPEED,
    TAKEN,
    TRUTH,
    Command,
    InputPath,
    add_jobs_option,
    add_page_options,
    choose_stream,
    look,
    mention,
    names,
    say,
    write_html,
)
from .truths import OF_TRUTHS, TruthChoice, add_truth_choice

if TYPE_CHECKING:
    from segjudge.analysis.comparison import Comparison
    from segjudge.scoring.scores import Scores

#: The help of `--metric`, and the groups of options of single commands.
_METRIC = "the metric (default: J&F-Mean, or the first of the protocol)"
_PUBLISHING, _RANKING = "pull requests and papers", "ranking"

# ── compare ─────────────────────────────────────────────────────────────────


def _compare(args: argparse.Namespace) -> int:
    from segjudge.analysis.comparison import check_kinds, check_table, choose_metric, compare, write_table
    from segjudge.families import describe_direction, tools_of
    from segjudge.report.page import make_page_options, render_page

    paths = dict(map(_name_results, args.results))
    if len(paths) < len(args.results):
        raise UsageError("two results have the same name; name them as NAME=RESULTS")
    if len(paths) < 2:
        raise UsageError("compare needs at least two results, such as old.zip new.zip")
    choice, saved = _choose_truth(args, paths)
    protocol = next(iter(saved.values())).reports[0].protocol if saved else choice.rules
    metric = choose_metric(protocol, args.metric or "")
    if args.kinds:
        check_kinds(protocol, metric)
        if not all(scores.costs for scores in saved.values()):
            raise UsageError("--kinds needs --truth or --phase, or scores that `score --save` wrote")
    if not saved and args.out and tools_of(protocol.family).shares_loss:
        check_kinds(protocol, metric, "out")
    if args.table:
        check_table(args.table)
    if args.film:
        from segjudge.scoring.figures import check_ending

        check_ending(args.film)
    methods = saved or choice.score_each(paths)
    comparison = compare(methods, metric=metric, split=args.split or "")
    if note := describe_direction(comparison.metric, comparison.protocol.name):
        say(f"warning: {note}.")
    images = choice.choose_images(args.images)
    page = comparison.make_page(make_page_options(images, args.budget)) if args.out else None
    stream = choose_stream(args.json, args.markdown, args.table)
    print(comparison.text(look(stream)), file=stream)
    if args.kinds:
        print(comparison.kinds_text(look(stream)), file=stream)
    for line in comparison.warnings:
        say(f"warning: {line}")
    if page:
        write_html(render_page(page), args.out)
    if args.markdown:
        _write_text(comparison.markdown(), args.markdown)
    if args.table:
        _write_text(write_table(comparison, args.table), args.table)
    if args.film:
        sequence = {"sequence": args.sequence} if args.sequence else {}
        comparison.film(args.film, frames=args.frames or (), images=images, errors=args.errors, **sequence)
        mention(f"Wrote {args.film}")
    _write_document(comparison.document(kinds=args.kinds), args.json)
    return _judge_gain(comparison, args.fail_below)


def _choose_truth(args: argparse.Namespace, paths: dict[str, str]) -> tuple[TruthChoice, dict[str, Scores]]:
    """Return the truth that scores the methods, or their saved scores.

    Raises UsageError if a request needs masks but has only scores, or if files are not saved scores and no phase is
    available.
    """
    from segjudge.scoring.scores import load

    choice = TruthChoice.read(vars(args))
    if choice.truth or choice.phase:
        return choice.complete("compare"), {}
    try:
        saved = {name: load(path) for name, path in paths.items()}
    except UsageError as error:
        return choice.complete("compare", f"; or results that `score --save` wrote ({error})"), {}
    for option in (*OF_TRUTHS, "annotations", "film", "images"):
        if getattr(args, option):
            raise OptionError(f"{option} needs --truth or --phase: saved scores hold no masks")
    return choice, saved


def _judge_gain(comparison: Comparison, least: float | None) -> int:
    """Return the exit code of `--fail-below`: whether the last method gained enough over the first."""
    if least is None or comparison.gain >= least:
        return DONE
    base, *_, last = comparison.sums.algorithms
    gain, verb = comparison.gain, "loses" if comparison.gain < 0 else "gains"
    say(f"{last} {verb} {abs(gain):.3f} {comparison.metric} against {base}; --fail-below asks for at least {least:+g}")
    return TAKEN


def _name_results(text: str) -> tuple[str, str]:
    """Return the name and path of NAME=RESULTS; RESULTS without a name gets its file's name."""
    name, _, path = text.rpartition("=") if not os.path.exists(text) else ("", "", text)
    return name or name_of(path).partition(".")[0], path


def _add_page(sub: CommandParser, about: str) -> None:
    """Add the option that writes a page: `--report`, as in `score`, or `--out`."""
    sub.options_of(OUTPUT)("--report", "--out", dest="out", metavar="FILE", type=OutputFile, help=about)


def _add_compare_options(sub: CommandParser) -> None:
    about = "the results of one method; NAME=RESULTS names it"
    sub.add_argument("results", nargs="+", type=InputPath, metavar="RESULTS", help=about)
    sub.arrange_groups(TRUTH, OUTPUT, _PUBLISHING, SPEED, RARELY)
    truth = "the ground truth: a dataset or a packed annotation file; omit it if RESULTS are files of `score --save`"
    add_truth_choice(sub, truth)
    sub.options_of(TRUTH)("--split", metavar="NAME", help="the split to compare")
    add = sub.options_of(OUTPUT)
    add("--metric", metavar="METRIC", help=_METRIC)
    add("--kinds", action="store_true", help="list the kinds of failure and how much each costs")
    _add_page(sub, "write a page of the sequences and frames that differ")
    add_page_options(sub)
    add("--json", metavar="FILE", type=OutputFile, help=FULL_PRECISION)
    add = sub.options_of(_PUBLISHING)
    about = "write Markdown: changes by kind of failure, and cases that flipped, from the first method to the last"
    add("--markdown", metavar="FILE", type=OutputFile, help=about)
    about = "exit with 4 if the last method gains less than this over the first; -0.005 allows a loss of 0.005"
    add("--fail-below", type=float, metavar="GAIN", help=about)
    about = "write a table for a paper as .tex (booktabs) or .md: intervals, and bold where a difference is significant"
    add("--table", metavar="FILE", type=OutputFile, help=about)
    about = "draw frames of all methods side by side over --images, as .pdf, .svg or .png"
    add("--film", metavar="FILE", type=OutputFile, help=about)
    about = "with --film: the sequence to draw (default: the last method's largest loss)"
    add("--sequence", metavar="NAME", help=about)
    about = "with --film: the frames to draw (default: five, the worst among them)"
    add("--frames", metavar="A,B", type=names, help=about)
    add("--errors", action="store_true", help="with --film: draw errors instead of masks")
    add_jobs_option(sub)


# ── rank ────────────────────────────────────────────────────────────────────


def _rank(args: argparse.Namespace) -> int:
    from segjudge.analysis.standings import rank

    if args.plots:
        from segjudge.scoring.figures import require_matplotlib

        require_matplotlib()  # before the ranking takes its time
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
    for line in ranking.warnings:
        say(f"warning: {line}")
    if args.plots:
        from segjudge.analysis.plots import write_plots

        for path in [path for task in ranking.tasks for path in write_plots(task, args.plots)]:
            mention(f"Wrote {path}")
    if args.out:
        from segjudge.report.page import render_page

        write_html(render_page(ranking.make_page()), args.out)
    _write_document(ranking.document(), args.json)
    return DONE


def _write_document(document: dict[str, Any], path: str | None) -> None:
    """Write a document as JSON if a path is given."""
    if path:
        _write_text(json.dumps(document, indent=1).replace("NaN", "null") + "\n", path)


def _write_text(text: str, path: str) -> None:
    if path == "-":
        print(text, end="")
        return
    with open_output(path) as file:
        file.write(text)
    mention(f"Wrote {path}")


def _add_rank_options(sub: CommandParser) -> None:
    about = (
        "files of `score --json` or `score --save`, one for each method (NAME=FILE names it), or one CSV table with "
        "the columns algorithm, case, value and optionally task"
    )
    sub.add_argument("scores", nargs="+", type=InputPath, metavar="SCORES", help=about)
    sub.arrange_groups(_RANKING, OUTPUT, RARELY)
    add = sub.options_of(_RANKING)
    add("--metric", metavar="METRIC", help=_METRIC)
    add("--split", metavar="NAME", help="the split to rank by")
    choices = [*METHODS, CHALLENGE]
    add("--method", metavar="METHOD", default=METHODS[0], choices=choices, help="%(choices)s (default: %(default)s)")
    add("--smaller", action="store_true", help="with a CSV table: lower values are better")
    add = sub.options_of(OUTPUT)
    _add_page(sub, "write a page with tables and significant differences")
    add("--plots", metavar="DIR", type=OutputFolder, help="write plots as SVG and PNG")
    add("--json", metavar="FILE", type=OutputFile, help=FULL_PRECISION)
    add = sub.options_of(RARELY)
    about = "with test-then-rank: the correction for multiple tests (default: none)"
    add("--adjustment", default="none", choices=["none", "holm"], help=about)
    add("--average-ties", action="store_true", help="give tied methods the mean of their ranks")
    about = (
        "count a missing value as 0 (default if 0 is the worst value), rank it last in its case (default otherwise), "
        "or ignore it"
    )
    add("--missing", choices=["zero", "last", "remove"], help=about)
    add("--draws", metavar="N", type=whole_number(1, MOST_DRAWS), default=1000, help="bootstrap draws (default: 1000)")


COMMANDS = {
    "compare": Command(
        _add_compare_options, _compare, "segjudge compare old.zip new.zip --truth DAVIS --protocol davis2017"
    ),
    "rank": Command(_add_rank_options, _rank, "segjudge rank a.json b.json c.json --report ranking.html"),
}
