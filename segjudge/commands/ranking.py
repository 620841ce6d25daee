"""`segjudge rank` and `segjudge compare`: which methods can be told apart, and how far a ranking holds."""

from __future__ import annotations

import argparse
import json
import math
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from segjudge.errors import UsageError
from segjudge.evaluation_script.phase import PROTOCOLS
from segjudge.files import written

from .shared import DONE, ProgressBar, say, whole_number

if TYPE_CHECKING:
    from segjudge.evaluation_script.answer import Report
    from segjudge.statistics.rankings import Difference, Mean, Rule, Sums, TaskScores

#: What a ranking of metrics of mask sequences is of, where nothing else is said.
METRIC = "J&F-Mean"


def compare(args: argparse.Namespace) -> int:
    """Compare methods on the same truth: differences, intervals, and which can be told apart."""
    from segjudge import score
    from segjudge.evaluation_script.answer import tables
    from segjudge.statistics.score_tables import algorithm_scores, sums_of

    if len(args.results) < 2:
        raise UsageError("compare needs two results at least")
    if args.kinds and args.metric != METRIC:
        raise UsageError(f"--kinds has no meaning for {args.metric}, only for {METRIC}")
    scores, losses = [], {}
    for text in args.results:
        name, _, path = text.rpartition("=") if not os.path.exists(text) else ("", "", text)
        with ProgressBar() as bar:
            found = score(path, args.truth, args.protocol, subset=args.subset or "", jobs=args.jobs, progress=bar)
        name = name or os.path.basename(path.rstrip(os.sep)).partition(".")[0]
        scores.append(algorithm_scores(name, tables(found.reports), args.split or ""))
        if args.kinds:
            losses[name] = _losses(path, args, found.reports)
    if len({one.name for one in scores}) < len(scores):
        raise UsageError("two results have the same name; give them as NAME=RESULTS")
    table, names = sums_of(scores, args.metric)
    document = _compared(table, names, args.metric)
    if losses:
        document["kinds"] = losses
        _print_losses(losses)
    _write(document, args.json)
    return DONE


def _losses(path: str, args: argparse.Namespace, reports: list[Report]) -> dict[str, float]:
    """Return how much of 1 - J&F each kind of failure takes, on average over the objects."""
    from segjudge.datasets.opening import TruthSource
    from segjudge.evaluation_script.answer import SequenceReport
    from segjudge.failures import KINDS, failures
    from segjudge.prepared import ScoreRequest, named_protocol

    chosen = [one for one in reports if isinstance(one, SequenceReport) and args.split in (None, "", one.split)]
    source = TruthSource(args.truth, "", args.subset or "", "", "")
    rows = failures(ScoreRequest(path, source, named_protocol(args.protocol), jobs=1), chosen)
    return {kind: math.fsum(row[kind] for row in rows) / len(rows) for kind in KINDS}


def _print_losses(losses: dict[str, dict[str, float]]) -> None:
    from segjudge.report.tables import number, table

    kinds = list(next(iter(losses.values())))
    rows = [
        [name, number(sum(loss.values())), *(number(loss[kind]) for kind in kinds)] for name, loss in losses.items()
    ]
    print("\nWhere the loss comes from (docs/ranking.md):")
    print(table(["method", "1 − J&F", *kinds], rows))
    (first, base), *others = losses.items()
    for name, loss in others:
        parts = sorted(((loss[kind] - base[kind], kind) for kind in kinds), key=lambda part: -abs(part[0]))
        text = ", ".join(f"{kind} {difference:+.3f}" for difference, kind in parts if abs(difference) >= 0.0005)
        print(f"{name} loses {sum(loss.values()) - sum(base.values()):+.3f} beside {first}: {text or 'the same'}")


def _compared(table: Sums, names: list[str], metric: str) -> dict[str, Any]:
    from segjudge.statistics.rankings import differences, means

    pairs = differences(table)
    rows = sorted(means(table, pairs), key=lambda one: -one.value)
    about = f"{metric} over {len(names)} sequences ({int(table.counts.sum())} objects)"
    print(f"{about}\n\n{_places(rows, metric)}\n")
    print("\n".join(_verdict(pair, table, names) for pair in pairs))
    return {"metric": metric, "sequences": names, "means": list(map(asdict, rows)), "pairs": list(map(asdict, pairs))}


def _places(rows: list[Mean], metric: str) -> str:
    from segjudge.report.tables import number, table

    body = []
    for one in rows:
        place = str(one.place_from) if one.place_from == one.place_to else f"{one.place_from}–{one.place_to}"
        reach = f"{number(one.low)} to {number(one.high)}" if one.low is not None else "too few"
        body.append([place, one.name, number(one.value), reach])
    return table(["place", "method", metric, "95 %"], body)


def _verdict(pair: Difference, table: Sums, names: list[str]) -> str:
    """Return a sentence on a pair: what the difference is, and whether it can be told from chance."""
    better, worse = (pair.one, pair.other) if pair.difference >= 0 else (pair.other, pair.one)
    sign = 1 if pair.difference >= 0 else -1
    rows = [table.algorithms.index(name) for name in (better, worse)]
    between = (table.sums[rows[0]] - table.sums[rows[1]]).tolist()
    won, lost = sum(one > 0 for one in between), sum(one < 0 for one in between)
    reach = ""
    if pair.low is not None and pair.high is not None:
        low, high = sorted((sign * pair.low, sign * pair.high))
        reach = f", 95 % {low:+.3f} to {high:+.3f}"
    text = (
        f"{better} − {worse}: {abs(pair.difference):+.3f}{reach}; p {pair.p:.3g}, adjusted {pair.adjusted:.3g}; "
        f"{won} won, {lost} lost, {len(names) - won - lost} tied"
    )
    if pair.apart:
        return f"{text}: {better} is better."
    return f"{text}: cannot be told apart on {len(names)} sequences{_needed(pair, table)}."


def _needed(pair: Difference, table: Sums) -> str:
    """Return how many sequences would tell a difference of this size, four times out of five."""
    from segjudge.statistics.significance import cases_needed

    needed = cases_needed(pair.difference, pair.error, len(table.counts), len(table.algorithms))
    return "" if needed is None else f"; if it is real, about {needed} would tell"


def rank(args: argparse.Namespace) -> int:
    """Rank methods by their scores, and tell how far the ranking holds."""
    from segjudge.statistics.rankings import METHODS, Rule, redrawn, stability
    from segjudge.statistics.score_tables import read_scores, read_table, tasks_of

    if len(args.scores) == 1 and args.scores[0].endswith(".csv"):
        tasks = read_table(args.scores[0], smaller=args.smaller)
    else:
        tasks = tasks_of(read_scores(args.scores, args.split or ""), args.metric)
    if any(math.isnan(value) for task in tasks for value in task.values.ravel()):
        say("missing values count as 0" if args.missing == "zero" else "missing values are as --missing says")
    if args.missing == "zero":
        tasks = [task.filled(0.0) for task in tasks]
    chosen = Rule(args.method, "average" if args.average_ties else "min", args.missing == "remove", args.adjustment)
    document: dict[str, Any] = {"rule": asdict(chosen), "tasks": []}
    for task in tasks:
        spread = stability(task, chosen, redrawn(len(task.cases), args.draws))
        document["tasks"].append(_ranked(task, chosen, [Rule(method) for method in METHODS]))
        document["tasks"][-1]["stability"] = {key: value.tolist() for key, value in asdict(spread).items()}
        _print_task(task, document["tasks"][-1])
        if args.plots:
            from segjudge.report.ranking_plots import plot_ranking

            for path in plot_ranking(task, document["tasks"][-1], args.plots):
                say(f"wrote {path}")
    if len(tasks) > 1:
        document["consensus"] = _consensus(document["tasks"])
    _write(document, args.json)
    return DONE


def _ranked(task: TaskScores, chosen: Rule, others: list[Rule]) -> dict[str, Any]:
    """Return the ranking of a task by the rule, its ranks by the other methods, and which pairs are significant."""
    from segjudge.statistics.rankings import adjusted_pairs, heatmap, pairwise_p, ranking

    found = ranking(task, chosen)
    pairs = adjusted_pairs(pairwise_p(task), "holm")[0]
    return {
        "task": task.name,
        "cases": list(task.cases),
        "algorithms": list(task.algorithms),
        "values": found.values[0].tolist(),
        "ranks": found.ranks[0].tolist(),
        "by_method": {rule.method: ranking(task, rule).ranks[0].tolist() for rule in others},
        "heatmap": heatmap(task).tolist(),
        # Wilcoxon's one-sided test, Holm over all ordered pairs: the row is better than the column.
        "better": [[bool(p <= chosen.alpha) for p in row] for row in pairs.tolist()],
    }


def _print_task(task: TaskScores, ranked: dict[str, Any]) -> None:
    from segjudge.report.tables import number, table

    spread, methods = ranked["stability"], list(ranked["by_method"])
    body = []
    for row in sorted(range(len(task.algorithms)), key=lambda row: (ranked["ranks"][row], task.algorithms[row])):
        low, high = (f"{spread[key][row]:g}" for key in ("low", "high"))
        beaten = sum(ranked["better"][row])
        body.append(
            [f"{ranked['ranks'][row]:g}", task.algorithms[row], number(ranked["values"][row]),
             low if low == high else f"{low}–{high}", str(beaten),
             *(f"{ranked['by_method'][method][row]:g}" for method in methods)]
        )  # fmt: skip
    print(f"{task.name or 'All cases'}: {len(task.cases)} cases")
    print(table(["rank", "algorithm", "value", "95 % of redrawings", "better than", *methods], body))
    tau = spread["tau"]
    mean = f"{sum(tau) / len(tau):.3f}" if tau else "undefined"
    print(f"Kendall's tau of redrawn rankings with this one: {mean} on average\n")


def _consensus(tasks: list[dict[str, Any]]) -> dict[str, float]:
    from segjudge.report.tables import table
    from segjudge.statistics.rankings import consensus

    found = consensus({task["task"]: dict(zip(task["algorithms"], task["ranks"], strict=True)) for task in tasks})
    print(table(["all tasks", "mean rank"], [[name, f"{rank:.2f}"] for name, rank in found.items()]))
    return found


def _write(document: dict[str, Any], path: str | None) -> None:
    if not path:
        return
    text = json.dumps(document, indent=1).replace("NaN", "null") + "\n"
    if path == "-":
        print(text, end="")
        return
    with written(path) as file:
        file.write(text)
    say(f"wrote {path}")


def compare_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `compare`."""
    from segjudge.commands.score import jobs_option

    sub.add_argument("results", nargs="+", metavar="RESULTS", help="results of each method, or NAME=RESULTS")
    sub.add_argument("--truth", required=True, help="a packed annotation file, or a dataset root or zip")
    sub.add_argument("--protocol", default="davis2017", choices=PROTOCOLS, metavar="PROTOCOL")
    sub.add_argument("--subset", help="the list of sequences to score, e.g. val")
    sub.add_argument("--split", help="the split to compare")
    sub.add_argument("--metric", default=METRIC, help=f"which metric (default: {METRIC})")
    sub.add_argument("--kinds", action="store_true", help="say which kinds of failure the loss comes from")
    sub.add_argument("--jobs", type=jobs_option, help="score with so many processes (auto: as many as there are cores)")
    sub.add_argument("--json", metavar="FILE", help="write everything with full precision (- for stdout)")


def rank_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `rank`."""
    from segjudge.statistics.rankings import METHODS

    what = "JSONs of `score --json` (or NAME=FILE), or one CSV with the columns algorithm, case, value and maybe task"
    sub.add_argument("scores", nargs="+", metavar="SCORES", help=what)
    sub.add_argument("--metric", default=METRIC, help=f"of JSONs, which metric (default: {METRIC})")
    sub.add_argument("--split", help="of JSONs, which split")
    sub.add_argument("--method", default=METHODS[0], choices=METHODS, help=f"(default: {METHODS[0]})")
    sub.add_argument("--adjustment", default="none", choices=["none", "holm"], help="of test-then-rank")
    sub.add_argument("--average-ties", action="store_true", help="equal ones share the mean of their ranks")
    missing = "a missing value counts as 0 (default), is last in its case, or its case is left out"
    sub.add_argument("--missing", default="zero", choices=["zero", "last", "remove"], help=missing)
    sub.add_argument("--smaller", action="store_true", help="small values are good")
    sub.add_argument("--draws", type=whole_number(1, 100_000), default=1000, help="redrawings (default: 1000)")
    sub.add_argument("--plots", metavar="DIR", help="write plots as SVG and PNG")
    sub.add_argument("--json", metavar="FILE", help="write everything with full precision (- for stdout)")
