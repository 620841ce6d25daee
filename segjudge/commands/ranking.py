"""`segjudge rank`: methods by their scores, and how far a ranking holds."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from segjudge.analysis import METHODS
from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFile, OutputFolder, written

from .shared import DONE, say, whole_number

if TYPE_CHECKING:
    from segjudge.analysis.rankings import Rule, TaskScores


def rank(args: argparse.Namespace) -> int:
    """Rank methods by their scores, and tell how far the ranking holds."""
    from segjudge.analysis.rankings import Rule, complete, redrawn, stability
    from segjudge.analysis.score_tables import read_scores, read_table, tasks_of

    if len(args.scores) == 1 and args.scores[0].endswith(".csv"):
        tasks = read_table(args.scores[0], smaller=args.smaller)
    else:
        tasks = tasks_of(read_scores(args.scores, args.split or ""), args.metric or "")
    missing = _missing(tasks, args.missing)
    if missing == "zero":
        tasks = [task.filled(0.0) for task in tasks]
    chosen = Rule(args.method, "average" if args.average_ties else "min", missing == "remove", args.adjustment)
    document: dict[str, Any] = {"rule": asdict(chosen), "tasks": []}
    for task in tasks:
        spread = stability(complete(task, chosen), chosen, redrawn(len(task.cases), args.draws))
        document["tasks"].append(_ranked(task, chosen))
        document["tasks"][-1]["stability"] = {key: value.tolist() for key, value in asdict(spread).items()}
        _print_task(task, document["tasks"][-1])
        if args.plots:
            from segjudge.analysis.ranking_plots import plot_ranking

            for path in plot_ranking(task, document["tasks"][-1], args.plots):
                say(f"wrote {path}")
    if len(tasks) > 1:
        document["consensus"] = _consensus(document["tasks"])
    write_document(document, args.json)
    return DONE


def _missing(tasks: list[TaskScores], wanted: str | None) -> str:
    """Return what becomes of missing values, and say it; none may be better than those that are there."""
    incomplete = [task for task in tasks if task.missing]
    good = [task for task in incomplete if not task.zero_is_worst]
    if wanted == "zero" and good:
        where = f" of {good[0].name}" if good[0].name else ""
        raise UsageError(f"--missing zero: some values{where} are worse than 0, which would win; use last or remove")
    chosen = wanted or ("last" if good else "zero")
    if incomplete:
        words = {"zero": "count as 0", "last": "are the worst of their case", "remove": "are left out"}
        say(f"missing values {words[chosen]}")
    return chosen


def _ranked(task: TaskScores, chosen: Rule) -> dict[str, Any]:
    """Return the ranking of a task by the rule, its ranks by the other methods, and which pairs are significant."""
    from segjudge.analysis.rankings import Rule, complete, heatmap, pairwise_p, ranking

    rules = {method: Rule(method, remove=chosen.remove) for method in METHODS}
    found, tested = ranking(complete(task, chosen), chosen), complete(task, rules["test-then-rank"])
    return {
        "task": task.name,
        "cases": list(task.cases),
        "algorithms": list(task.algorithms),
        "values": found.values[0].tolist(),
        "ranks": found.ranks[0].tolist(),
        "by_method": {method: ranking(complete(task, rule), rule).ranks[0].tolist() for method, rule in rules.items()},
        "heatmap": heatmap(task).tolist(),
        # Wilcoxon's one-sided test, Holm over all ordered pairs: the row is better than the column.
        "better": [[bool(p <= chosen.alpha) for p in row] for row in pairwise_p(tested, None, "holm")[0].tolist()],
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
    from segjudge.analysis.rankings import consensus
    from segjudge.report.tables import table

    found = consensus({task["task"]: dict(zip(task["algorithms"], task["ranks"], strict=True)) for task in tasks})
    print(table(["all tasks", "mean rank"], [[name, f"{rank:.2f}"] for name, rank in found.items()]))
    return found


def write_document(document: dict[str, Any], path: str | None) -> None:
    """Write what was found as JSON where it was asked for."""
    if not path:
        return
    text = json.dumps(document, indent=1).replace("NaN", "null") + "\n"
    if path == "-":
        print(text, end="")
        return
    with written(path) as file:
        file.write(text)
    say(f"wrote {path}")


def rank_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `rank`."""
    what = "JSONs of `score --json` or saved scores (or NAME=FILE), or one CSV: algorithm, case, value and maybe task"
    sub.add_argument("scores", nargs="+", metavar="SCORES", help=what)
    sub.add_argument("--metric", help="of JSONs, which metric (default: J&F-Mean, or the protocol's first)")
    sub.add_argument("--split", help="of JSONs, which split")
    sub.add_argument("--method", default=METHODS[0], choices=METHODS, help=f"(default: {METHODS[0]})")
    sub.add_argument("--adjustment", default="none", choices=["none", "holm"], help="of test-then-rank")
    sub.add_argument("--average-ties", action="store_true", help="equal ones share the mean of their ranks")
    missing = "a missing value is 0 (default, where none is worse), last in its case (default elsewhere), or left out"
    sub.add_argument("--missing", choices=["zero", "last", "remove"], help=missing)
    sub.add_argument("--smaller", action="store_true", help="small values of a table are good; of metrics it is known")
    sub.add_argument("--draws", type=whole_number(1, 100_000), default=1000, help="redrawings (default: 1000)")
    sub.add_argument("--plots", metavar="DIR", type=OutputFolder, help="write plots as SVG and PNG")
    sub.add_argument(
        "--json", metavar="FILE", type=OutputFile, help="write everything with full precision (- for stdout)"
    )
