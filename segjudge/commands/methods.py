"""`segjudge compare` and `rank`: which methods can be told apart, where they differ, and how far a ranking holds."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, replace
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
    say,
    whole_number,
    write_page,
)

if TYPE_CHECKING:
    from segjudge.analysis.comparison import ComparedMethods
    from segjudge.analysis.rankings import Rule, TaskScores
    from segjudge.families.base.tools import ScoredMethod
    from segjudge.scoring.scores import ScoreRequest


# ── compare ─────────────────────────────────────────────────────────────────


def _compare(args: argparse.Namespace) -> int:
    from segjudge.analysis.comparison import compare_methods, make_comparison
    from segjudge.analysis.score_tables import ranking_metric
    from segjudge.datasets.opening import TruthSource
    from segjudge.families import tools_of
    from segjudge.scoring.scores import ScoreRequest

    protocol = PROTOCOLS[args.protocol]
    if len(args.results) < 2:
        raise UsageError("compare needs two results at least")
    tools, ranked = tools_of(protocol.family), ranking_metric(protocol.metrics)
    metric = args.metric or ranked
    for option, value in (("--kinds", args.kinds), ("--out", args.out)):
        if tools.shares_loss and value and metric != ranked:
            raise UsageError(f"{option} has no meaning for {metric}, only for {ranked}")
    if args.kinds or (args.out and tools.shares_loss):
        tools.check_kinds(protocol)
    request = ScoreRequest("", TruthSource(args.truth, subset=args.subset or ""), protocol, jobs=args.jobs)
    paths = dict(map(_name_results, args.results))
    if len(paths) < len(args.results):
        raise UsageError("two results have the same name; give them as NAME=RESULTS")
    methods = [_score_method(name, replace(request, results=path), args.split or "") for name, path in paths.items()]
    reports = {method.name: method.report for method in methods}
    page = make_page_options(args.images, args.budget) if args.out else None
    details = tools.compare_failures(methods, page) if args.kinds or args.out else None
    comparison = compare_methods(reports, metric, details)
    print(comparison.text())
    document: dict[str, Any] = {"metric": metric}
    document |= {"sequences": comparison.sequences} if comparison.sequences else {}
    document |= {
        "means": list(map(asdict, comparison.means)),
        "pairs": [pair.document() for pair in comparison.pairs],
    }
    if args.kinds:
        document["kinds"] = comparison.costs
        _print_kinds(comparison, f"1 − {ranked.removesuffix('-Mean')}" if tools.shares_loss else "")
    if args.out and details:
        provenances = {method.name: method.provenance for method in methods}
        write_page(make_comparison(comparison, details, provenances), args.out)
    _write_document(document, args.json)
    return DONE


def _name_results(text: str) -> tuple[str, str]:
    """Split NAME=RESULTS into name and path; RESULTS alone have the name of their file."""
    name, _, path = text.rpartition("=") if not os.path.exists(text) else ("", "", text)
    return name or name_of(path).partition(".")[0], path


def _score_method(name: str, request: ScoreRequest, split: str) -> ScoredMethod:
    from segjudge.analysis.score_tables import choose_split
    from segjudge.families.base.tools import ScoredMethod
    from segjudge.scoring.scores import prepare

    with ProgressBar() as bar:
        scorer = prepare(request, bar)
        scores = scorer.score(bar)
    reports = {report.split: report for report in scores.reports}
    report = reports[choose_split(name, list(reports), split)]
    return ScoredMethod(name, scorer, report, scores.provenance)


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


def _rank(args: argparse.Namespace) -> int:
    from segjudge.analysis.rankings import Rule, fill_missing, measure_stability, redraw_cases
    from segjudge.analysis.score_tables import read_scores, read_table, tasks_of

    if len(args.scores) == 1 and args.scores[0].endswith(".csv"):
        tasks = read_table(args.scores[0], smaller=args.smaller)
    else:
        tasks = tasks_of(read_scores(args.scores, args.split or ""), args.metric or "")
    missing = _treat_missing(tasks, args.missing)
    if missing == "zero":
        tasks = [task.fill(0.0) for task in tasks]
    rule = Rule(args.method, "average" if args.average_ties else "min", missing == "remove", args.adjustment)
    document: dict[str, Any] = {"rule": asdict(rule), "tasks": []}
    for task in tasks:
        spread = measure_stability(fill_missing(task, rule), rule, redraw_cases(len(task.cases), args.draws))
        row = {**_rank_task(task, rule), "stability": {key: value.tolist() for key, value in asdict(spread).items()}}
        document["tasks"].append(row)
        _print_task(task, row)
        if args.plots:
            from segjudge.analysis.rankings import plot_ranking

            for path in plot_ranking(task, row, args.plots):
                say(f"wrote {path}")
    if len(tasks) > 1:
        document["consensus"] = _print_consensus(document["tasks"])
    _write_document(document, args.json)
    return DONE


def _treat_missing(tasks: list[TaskScores], treatment: str | None) -> str:
    """Choose what becomes of missing values, and say it; none may be better than those that are there."""
    incomplete = [task for task in tasks if task.missing]
    without_worst = [task for task in incomplete if not task.zero_is_worst]
    if treatment == "zero" and without_worst:
        task = f" of {without_worst[0].name}" if without_worst[0].name else ""
        raise UsageError(f"--missing zero: some values{task} are worse than 0, which would win; use last or remove")
    chosen_treatment = treatment or ("last" if without_worst else "zero")
    if incomplete:
        words = {"zero": "count as 0", "last": "are the worst of their case", "remove": "are left out"}
        say(f"missing values {words[chosen_treatment]}")
    return chosen_treatment


def _rank_task(task: TaskScores, rule: Rule) -> dict[str, Any]:
    """Rank a task by the rule and by the other methods, and say which pairs are significant."""
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
            name: rank_task(fill_missing(task, other_rule), other_rule).ranks[0].tolist()
            for name, other_rule in rules.items()
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
    """Print the mean rank of each algorithm over all tasks."""
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
