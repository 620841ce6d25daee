"""`segjudge compare`: which methods can be told apart, and where they differ."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.sequences.protocols import SequenceProtocol
from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFile, name_of

from .pages import options_of, page_options, write_page
from .ranking import write_document
from .shared import DONE, ProgressBar, jobs_option

if TYPE_CHECKING:
    from segjudge.analysis.comparison import ComparedMethods
    from segjudge.evaluation_script.families.base.reports import Report
    from segjudge.families.sequences.losses import LossReader
    from segjudge.report.page import PageOptions, ReportPage
    from segjudge.scoring.scores import PreparedScoring


@dataclass(frozen=True)
class _ScoredMethod:
    """A method's scores of a split, and what they come from."""

    name: str
    job: PreparedScoring
    report: Report
    provenance: dict[str, Any]


def compare(args: argparse.Namespace) -> int:
    """Compare methods on the same truth: differences, intervals, and which can be told apart."""
    from segjudge.analysis.score_tables import ranking_metric
    from segjudge.families.sequences.losses import LossReader

    if len(args.results) < 2:
        raise UsageError("compare needs two results at least")
    protocol = PROTOCOLS[args.protocol]
    by_sequence = isinstance(protocol, SequenceProtocol)
    ranked = ranking_metric(protocol.metrics)
    args.metric = args.metric or ranked
    for option, given in (("--kinds", args.kinds), ("--out", args.out)):
        if by_sequence and given and args.metric != ranked:
            raise UsageError(f"{option} has no meaning for {args.metric}, only for {ranked}")
    methods = [_scored(text, args) for text in args.results]
    if len({one.name for one in methods}) < len(methods):
        raise UsageError("two results have the same name; give them as NAME=RESULTS")
    reader = LossReader(len(methods), options_of(args) if args.out else None)
    found = _compared(methods, reader, args)
    print(found.text())
    document: dict[str, Any] = {"metric": found.metric, **({"sequences": found.sequences} if by_sequence else {})}
    document |= {"means": list(map(asdict, found.means)), "pairs": list(map(asdict, found.pairs))}
    if args.kinds:
        document["kinds"] = found.costs
        _print_kinds(found, f"1 − {ranked.removesuffix('-Mean')}" if by_sequence else "")
    if args.out:
        write_page(_page(found, methods, reader, options_of(args)), args.out)
    write_document(document, args.json)
    return DONE


def _page(found: ComparedMethods, methods: list[_ScoredMethod], reader: LossReader, options: PageOptions) -> ReportPage:
    from segjudge.analysis.comparison import group_comparison
    from segjudge.families.sequences.comparison import sequence_comparison
    from segjudge.report.overview import digests
    from segjudge.report.page import ReportPage

    origins = {one.name: one.provenance for one in methods}
    if reader.methods:
        sections = sequence_comparison(found, reader, options, origins)
    else:
        sections = group_comparison(found, {one.name: one.report for one in methods}, origins)
    return ReportPage(" · ".join(origins), sections, reader.streams, digests(*origins.values()))


def _scored(text: str, args: argparse.Namespace) -> _ScoredMethod:
    """Score a method, given as RESULTS or as NAME=RESULTS."""
    from segjudge.analysis.score_tables import chosen_split
    from segjudge.datasets.opening import TruthSource
    from segjudge.scoring.scores import ScoreRequest, prepare

    name, _, path = text.rpartition("=") if not os.path.exists(text) else ("", "", text)
    name = name or name_of(path).partition(".")[0]
    source = TruthSource(args.truth, subset=args.subset or "")
    with ProgressBar() as bar:
        request = ScoreRequest(path, source, PROTOCOLS[args.protocol], jobs=args.jobs)
        job = prepare(request, bar)
        scores = job.score(bar)
    reports = {report.split: report for report in scores.reports}
    return _ScoredMethod(name, job, reports[chosen_split(name, list(reports), args.split or "")], scores.provenance)


def _compared(methods: list[_ScoredMethod], reader: LossReader, args: argparse.Namespace) -> ComparedMethods:
    """Return how methods compare, by sequence where the metric is a mean over objects; their losses are read too."""
    from segjudge.analysis.comparison import ComparedMethods
    from segjudge.analysis.score_tables import AlgorithmScores, grouped_sums, sums_of
    from segjudge.evaluation_script.families.sequences.losses import KINDS
    from segjudge.evaluation_script.families.sequences.metrics import SequenceReport
    from segjudge.families import tools_of
    from segjudge.families.sequences.failures import check_kinds

    protocol, wanted = PROTOCOLS[args.protocol], args.kinds or args.out
    if not isinstance(protocol, SequenceProtocol):
        kinds = (
            {one.name: tools_of(protocol.track).sum_failures(one.job, one.report) for one in methods} if wanted else {}
        )
        return ComparedMethods(
            args.metric, grouped_sums({one.name: one.report for one in methods}, args.metric), [], kinds
        )
    if wanted:
        check_kinds(protocol)
    scores = []
    for one in methods:
        scores.append(AlgorithmScores(one.name, protocol.name, one.report.values, one.report.rows()["objects"]))
        if wanted and isinstance(one.report, SequenceReport):
            reader.read(one.job, one.report, one.name)
    sums, names = sums_of(scores, args.metric)
    kinds = {one.name: dict(zip(KINDS, one.shares, strict=True)) for one in reader.methods}
    return ComparedMethods(args.metric, sums, names, kinds)


def _print_kinds(found: ComparedMethods, total: str) -> None:
    """Print what each kind of failure takes, and in which kinds the methods differ; they sum to the total, if any."""
    from segjudge.report.tables import number, table

    kinds = list(next(iter(found.costs.values())))
    rows = [
        [name, *([number(sum(costs.values()))] if total else []), *map(number, costs.values())]
        for name, costs in found.costs.items()
    ]
    print(f"\n{'Where the loss comes from' if total else 'What each kind costs'} (docs/ranking.md):")
    print(table(["method", *([total] if total else []), *kinds], rows))
    print("\n".join(found.kinds()))


def compare_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `compare`."""
    sub.add_argument("results", nargs="+", metavar="RESULTS", help="results of each method, or NAME=RESULTS")
    sub.add_argument("--truth", required=True, help="a packed annotation file, or a dataset root or zip")
    sub.add_argument("--protocol", default="davis2017", choices=PROTOCOLS, metavar="PROTOCOL")
    sub.add_argument("--subset", help="the list of sequences to score, e.g. val")
    sub.add_argument("--split", help="the split to compare")
    sub.add_argument("--metric", help="which metric (default: J&F-Mean, or the protocol's first)")
    sub.add_argument("--kinds", action="store_true", help="say which kinds of failure the loss comes from")
    sub.add_argument(
        "--out", metavar="FILE", type=OutputFile, help="write a page with the sequences and frames in which they differ"
    )
    page_options(sub)
    jobs_option(sub)
    sub.add_argument(
        "--json", metavar="FILE", type=OutputFile, help="write everything with full precision (- for stdout)"
    )
