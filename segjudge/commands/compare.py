"""`segjudge compare`: which methods can be told apart, and where they differ."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from segjudge.errors import UsageError
from segjudge.evaluation_script.phase import PROTOCOLS
from segjudge.evaluation_script.sequence_protocols import SequenceProtocol

from .compare_groups import compare_groups
from .methods import places, scored_method
from .pages import options_of, page_options, write_page
from .ranking import METRIC, write_document
from .shared import DONE, jobs_option

if TYPE_CHECKING:
    from segjudge.report.sequence_losses import LossReader, MethodLosses
    from segjudge.statistics.score_tables import AlgorithmScores


@dataclass(frozen=True)
class _ComparedMethod:
    """What a method scored, where its scores come from, and what it lost where that is asked for."""

    scores: AlgorithmScores
    provenance: dict[str, Any]
    losses: MethodLosses | None


def compare(args: argparse.Namespace) -> int:
    """Compare methods on the same truth: differences, intervals, and which can be told apart."""
    from segjudge.evaluation_script.intervals import bounds_of
    from segjudge.report.comparison import ComparedMethods, comparison_sections, verdict
    from segjudge.report.overview import digests
    from segjudge.report.page import ReportPage
    from segjudge.report.sequence_losses import LossReader
    from segjudge.statistics.rankings import differences, in_order, means
    from segjudge.statistics.score_tables import sums_of

    if len(args.results) < 2:
        raise UsageError("compare needs two results at least")
    if not isinstance(PROTOCOLS[args.protocol], SequenceProtocol):
        return compare_groups(args)
    for option, given in (("--kinds", args.kinds), ("--out", args.out)):
        if given and args.metric != METRIC:
            raise UsageError(f"{option} has no meaning for {args.metric}, only for {METRIC}")
    options = options_of(args)
    reader = LossReader(len(args.results), options if args.out else None)
    methods = [_read(text, args, reader) for text in args.results]
    if len({one.scores.name for one in methods}) < len(methods):
        raise UsageError("two results have the same name; give them as NAME=RESULTS")
    table, names = sums_of([one.scores for one in methods], args.metric)
    pairs = differences(table)
    rows = in_order(means(table, pairs, bounds=bounds_of(args.metric)), table)
    about = f"{args.metric} over {len(names)} sequences ({int(table.counts.sum())} objects)"
    print(f"{about}\n\n{places(rows, args.metric)}\n")
    print("\n".join(verdict(pair, table) for pair in pairs))
    document: dict[str, Any] = {"metric": args.metric, "sequences": names}
    document |= {"means": list(map(asdict, rows)), "pairs": list(map(asdict, pairs))}
    losses = [one.losses for one in methods if one.losses is not None]
    if args.kinds:
        document["kinds"] = _print_losses(losses)
    if args.out:
        origins = {one.scores.name: one.provenance for one in methods}
        sections = comparison_sections(ComparedMethods(losses, table, rows, pairs), reader, options, origins)
        page = ReportPage(" · ".join(origins), sections, reader.streams, digests(*origins.values()))
        write_page(page, args.out)
    write_document(document, args.json)
    return DONE


def _read(text: str, args: argparse.Namespace, reader: LossReader) -> _ComparedMethod:
    """Score a method, named or not."""
    from segjudge.evaluation_script.answer import tables
    from segjudge.evaluation_script.reports import SequenceReport
    from segjudge.failures import check_kinds
    from segjudge.statistics.score_tables import algorithm_scores

    method = scored_method(text, args)
    scores = algorithm_scores(method.name, tables(method.scores.reports), args.split or "")
    report, losses = method.report(scores.split), None
    if (args.kinds or args.out) and isinstance(report, SequenceReport):
        check_kinds(report.protocol)
        losses = reader.read(method.job, report, method.name)
    return _ComparedMethod(scores, method.scores.provenance, losses)


def _print_losses(methods: list[MethodLosses]) -> dict[str, dict[str, float]]:
    """Print how much of 1 - J&F each kind of failure takes, and in which kinds the methods differ; return both."""
    from segjudge.evaluation_script.failure_kinds import KINDS
    from segjudge.report.comparison import beside
    from segjudge.report.tables import number, table

    rows = [[one.name, number(sum(one.shares)), *map(number, one.shares)] for one in methods]
    print("\nWhere the loss comes from (docs/ranking.md):")
    print(table(["method", "1 − J&F", *KINDS], rows))
    print("\n".join(beside(one, methods[0]) for one in methods[1:]))
    return {one.name: dict(zip(KINDS, one.shares, strict=True)) for one in methods}


def compare_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `compare`."""
    sub.add_argument("results", nargs="+", metavar="RESULTS", help="results of each method, or NAME=RESULTS")
    sub.add_argument("--truth", required=True, help="a packed annotation file, or a dataset root or zip")
    sub.add_argument("--protocol", default="davis2017", choices=PROTOCOLS, metavar="PROTOCOL")
    sub.add_argument("--subset", help="the list of sequences to score, e.g. val")
    sub.add_argument("--split", help="the split to compare")
    sub.add_argument("--metric", default=METRIC, help=f"which metric (default: {METRIC})")
    sub.add_argument("--kinds", action="store_true", help="say which kinds of failure the loss comes from")
    sub.add_argument("--out", metavar="FILE", help="write a page with the sequences and frames in which they differ")
    page_options(sub)
    jobs_option(sub)
    sub.add_argument("--json", metavar="FILE", help="write everything with full precision (- for stdout)")
