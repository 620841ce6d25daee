"""`segjudge compare` and `rank`: which methods can be told apart, where they differ, and how far a ranking holds."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from segjudge.analysis import METHODS
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFile, OutputFolder, name_of, open_output

from .shared import (
    DONE,
    Command,
    InputPath,
    ProgressBar,
    add_jobs_option,
    add_page_options,
    make_page_options,
    read_options,
    say,
    whole_number,
    write_page,
)

if TYPE_CHECKING:
    from segjudge.analysis.comparison import ComparedMethods
    from segjudge.analysis.rankings import Rule, TaskScores
    from segjudge.evaluation_script.families.base.family import FamilyProtocol
    from segjudge.families.base.tools import ScoredMethod


# ── compare ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Comparison:
    """What is compared, and what is written of it."""

    results: list[str]
    truth: str
    protocol: str
    subset: str | None
    split: str | None
    metric: str | None
    kinds: bool
    out: str | None
    images: str | None
    budget: int
    jobs: Any
    json: str | None

    @property
    def rules(self) -> FamilyProtocol:
        """The protocol."""
        return PROTOCOLS[self.protocol]


def _compare(args: argparse.Namespace) -> int:
    from segjudge.analysis.comparison import compare_methods, make_comparison
    from segjudge.analysis.score_tables import ranking_metric
    from segjudge.families import tools_of

    options = read_options(_Comparison, args)
    if len(options.results) < 2:
        raise UsageError("compare needs two results at least")
    tools, ranked = tools_of(options.rules.family), ranking_metric(options.rules.metrics)
    metric = options.metric or ranked
    for option, value in (("--kinds", options.kinds), ("--out", options.out)):
        if tools.shares_loss and value and metric != ranked:
            raise UsageError(f"{option} has no meaning for {metric}, only for {ranked}")
    methods = [_score_method(text, options) for text in options.results]
    reports = {method.name: method.report for method in methods}
    if len(reports) < len(methods):
        raise UsageError("two results have the same name; give them as NAME=RESULTS")
    page = make_page_options(options.images, options.budget) if options.out else None
    details = tools.compare_failures(methods, page) if options.kinds or options.out else None
    if options.kinds and details and not all(details.costs.values()):
        raise UsageError(f"failures of {options.rules.name} have no kinds")
    comparison = compare_methods(reports, metric, details)
    print(comparison.text())
    document: dict[str, Any] = {"metric": metric}
    document |= {"sequences": comparison.sequences} if comparison.sequences else {}
    document |= {
        "means": list(map(asdict, comparison.means)),
        "pairs": [pair.document() for pair in comparison.pairs],
    }
    if options.kinds:
        document["kinds"] = comparison.costs
        _print_kinds(comparison, f"1 − {ranked.removesuffix('-Mean')}" if tools.shares_loss else "")
    if options.out and details:
        provenances = {method.name: method.provenance for method in methods}
        write_page(make_comparison(comparison, details, provenances), options.out)
    _write_document(document, options.json)
    return DONE


def _score_method(text: str, options: _Comparison) -> ScoredMethod:
    """Score a method, given as RESULTS or as NAME=RESULTS."""
    from segjudge.analysis.score_tables import choose_split
    from segjudge.datasets.opening import TruthSource
    from segjudge.families.base.tools import ScoredMethod
    from segjudge.scoring.scores import ScoreRequest, prepare

    name, _, path = text.rpartition("=") if not os.path.exists(text) else ("", "", text)
    name = name or name_of(path).partition(".")[0]
    source = TruthSource(options.truth, subset=options.subset or "")
    with ProgressBar() as bar:
        request = ScoreRequest(path, source, options.rules, jobs=options.jobs)
        job = prepare(request, bar)
        scores = job.score(bar)
    reports = {report.split: report for report in scores.reports}
    report = reports[choose_split(name, list(reports), options.split or "")]
    return ScoredMethod(name, job, report, scores.provenance)


def _print_kinds(comparison: ComparedMethods, total: str) -> None:
    """Print what each kind of failure takes, and in which kinds the methods differ; they sum to the total, if any."""
    from segjudge.report.tables import format_number, format_table

    kinds = list(next(iter(comparison.costs.values())))
    rows = [
        [name, *([format_number(sum(costs.values()))] if total else []), *map(format_number, costs.values())]
        for name, costs in comparison.costs.items()
    ]
    print(f"\n{'Where the loss comes from' if total else 'What each kind costs'} (docs/ranking.md):")
    print(format_table(["method", *([total] if total else []), *kinds], rows))
    print("\n".join(comparison.kinds()))


def _add_compare_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("results", nargs="+", type=InputPath, metavar="RESULTS", help="results of each method, or NAME=RESULTS")
    add("--truth", required=True, type=InputPath, help="a packed annotation file, or a dataset root or zip")
    add("--protocol", default="davis2017", choices=PROTOCOLS, metavar="PROTOCOL")
    add("--subset", help="the list of sequences to score, e.g. val")
    add("--split", help="the split to compare")
    add("--metric", help="which metric (default: J&F-Mean, or the protocol's first)")
    add("--kinds", action="store_true", help="say which kinds of failure the loss comes from")
    about = "write a page with the sequences and frames in which they differ"
    add("--out", metavar="FILE", type=OutputFile, help=about)
    add_page_options(sub)
    add_jobs_option(sub)
    add("--json", metavar="FILE", type=OutputFile, help="write everything with full precision (- for stdout)")


# ── rank ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Ranking:
    """What is ranked, by which rule, and what is written of it."""

    scores: list[str]
    metric: str | None
    split: str | None
    method: Any
    adjustment: Any
    average_ties: bool
    missing: str | None
    smaller: bool
    draws: int
    plots: str | None
    json: str | None


def _rank(args: argparse.Namespace) -> int:
    from segjudge.analysis.rankings import Rule, fill_missing, measure_stability, redraw_cases
    from segjudge.analysis.score_tables import read_scores, read_table, tasks_of

    options = read_options(_Ranking, args)
    if len(options.scores) == 1 and options.scores[0].endswith(".csv"):
        tasks = read_table(options.scores[0], smaller=options.smaller)
    else:
        tasks = tasks_of(read_scores(options.scores, options.split or ""), options.metric or "")
    missing = _treat_missing(tasks, options.missing)
    if missing == "zero":
        tasks = [task.fill(0.0) for task in tasks]
    rule = Rule(options.method, "average" if options.average_ties else "min", missing == "remove", options.adjustment)
    document: dict[str, Any] = {"rule": asdict(rule), "tasks": []}
    for task in tasks:
        spread = measure_stability(fill_missing(task, rule), rule, redraw_cases(len(task.cases), options.draws))
        row = {**_rank_task(task, rule), "stability": {key: value.tolist() for key, value in asdict(spread).items()}}
        document["tasks"].append(row)
        _print_task(task, row)
        if options.plots:
            from segjudge.analysis.rankings import plot_ranking

            for path in plot_ranking(task, row, options.plots):
                say(f"wrote {path}")
    if len(tasks) > 1:
        document["consensus"] = _print_consensus(document["tasks"])
    _write_document(document, options.json)
    return DONE


def _treat_missing(tasks: list[TaskScores], treatment: str | None) -> str:
    """Return what becomes of missing values, and say it; none may be better than those that are there."""
    incomplete = [task for task in tasks if task.missing]
    good = [task for task in incomplete if not task.zero_is_worst]
    if treatment == "zero" and good:
        task = f" of {good[0].name}" if good[0].name else ""
        raise UsageError(f"--missing zero: some values{task} are worse than 0, which would win; use last or remove")
    chosen = treatment or ("last" if good else "zero")
    if incomplete:
        words = {"zero": "count as 0", "last": "are the worst of their case", "remove": "are left out"}
        say(f"missing values {words[chosen]}")
    return chosen


def _rank_task(task: TaskScores, rule: Rule) -> dict[str, Any]:
    """Return the ranking of a task by the rule, its ranks by the other methods, and which pairs are significant."""
    from segjudge.analysis.rankings import Rule, count_ranks, fill_missing, pairwise_p, rank_task

    rules = {method: Rule(method, remove=rule.remove) for method in METHODS}
    ranked, tested = rank_task(fill_missing(task, rule), rule), fill_missing(task, rules["test-then-rank"])
    return {
        "task": task.name,
        "cases": list(task.cases),
        "algorithms": list(task.algorithms),
        "values": ranked.values[0].tolist(),
        "ranks": ranked.ranks[0].tolist(),
        "by_method": {
            name: rank_task(fill_missing(task, each), each).ranks[0].tolist() for name, each in rules.items()
        },
        "heatmap": count_ranks(task).tolist(),
        # Wilcoxon's one-sided test, Holm over all ordered pairs: the row is better than the column.
        "better": [[bool(p <= rule.alpha) for p in row] for row in pairwise_p(tested, None, "holm")[0].tolist()],
    }


def _print_task(task: TaskScores, ranked: dict[str, Any]) -> None:
    from segjudge.report.tables import format_number, format_table

    spread, methods = ranked["stability"], list(ranked["by_method"])
    body = []
    for row in sorted(range(len(task.algorithms)), key=lambda row: (ranked["ranks"][row], task.algorithms[row])):
        low, high = (f"{spread[key][row]:g}" for key in ("low", "high"))
        beaten = sum(ranked["better"][row])
        body.append(
            [f"{ranked['ranks'][row]:g}", task.algorithms[row], format_number(ranked["values"][row]),
             low if low == high else f"{low}–{high}", str(beaten),
             *(f"{ranked['by_method'][method][row]:g}" for method in methods)]
        )  # fmt: skip
    print(f"{task.name or 'All cases'}: {len(task.cases)} cases")
    print(format_table(["rank", "algorithm", "value", "95 % of redrawings", "better than", *methods], body))
    tau = spread["tau"]
    mean = f"{sum(tau) / len(tau):.3f}" if tau else "undefined"
    print(f"Kendall's tau of redrawn rankings with this one: {mean} on average\n")


def _print_consensus(tasks: list[dict[str, Any]]) -> dict[str, float]:
    """Print and return the mean rank of each algorithm over all tasks."""
    from segjudge.analysis.rankings import average_ranks
    from segjudge.report.tables import format_table

    ranks = average_ranks({task["task"]: dict(zip(task["algorithms"], task["ranks"], strict=True)) for task in tasks})
    print(format_table(["all tasks", "mean rank"], [[name, f"{rank:.2f}"] for name, rank in ranks.items()]))
    return ranks


def _write_document(document: dict[str, Any], path: str | None) -> None:
    """Write what was computed as JSON where it was asked for."""
    if not path:
        return
    text = json.dumps(document, indent=1).replace("NaN", "null") + "\n"
    if path == "-":
        print(text, end="")
        return
    with open_output(path) as file:
        file.write(text)
    say(f"wrote {path}")


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
    add("--plots", metavar="DIR", type=OutputFolder, help="write plots as SVG and PNG")
    add("--json", metavar="FILE", type=OutputFile, help="write everything with full precision (- for stdout)")


COMMANDS = {"compare": Command(_add_compare_options, _compare), "rank": Command(_add_rank_options, _rank)}
