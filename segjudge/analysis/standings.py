"""Rankings with tables, sentences, plots and page: the result of `segjudge.rank`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any, Literal

from segjudge.evaluation_script.files.problems import name_hint
from segjudge.families import describe_direction
from segjudge.report.browser import ShownPage
from segjudge.report.page import ReportPage, Section, make_list, render_page
from segjudge.report.tables import LOOK, PLAIN, Look, format_table, to_frame
from segjudge.scoring.scores import Scores
from segjudge.system.arguments import FLAG, TEXT, WHOLE, check_arguments, check_options
from segjudge.system.errors import ArgumentValueError, OptionError, UsageError

from . import CHALLENGE, METHODS, MOST_DRAWS, Method
from .challenge_ranks import find_rule, rank_means, rank_within_cases
from .rankings import SPREAD, RankedTask, Rule, TaskScores, average_ranks, rank_by_every_rule
from .score_tables import AlgorithmScores, name_scores, read_scores, read_table, scores_of, tasks_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

#: The treatments of a missing value, and their descriptions.
_MISSING = {"zero": "count as 0", "last": "are the worst of their case", "remove": "are ignored"}
_Missing = Literal["zero", "last", "remove"]
_ADJUSTMENTS = ("none", "holm")
_PACKAGE = "segjudge.analysis"
_COLUMNS = (
    "Better than: the number of methods that it beats significantly. The columns after it: its rank by each method of "
    "ranking."
)


@dataclass(frozen=True, repr=False)
class Ranking(ShownPage):
    """Algorithms ranked in one task or in several."""

    rule: Rule
    tasks: list[RankedTask]
    #: The treatment of missing values.
    notes: list[str] = field(default_factory=list)
    #: The final places by the rule of a challenge that ranks several metrics, the best first.
    places: list[dict[str, Any]] = field(default_factory=list)
    #: The warnings about the results of the algorithms, each after its name.
    warnings: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from segjudge.scoring.notebook import render_with_style

        return render_with_style("segjudge.analysis/standings.html", [], ranking=self)

    @cached_property
    def consensus(self) -> dict[str, float]:
        """Return the mean rank of each algorithm over all tasks."""
        ranks = [dict(zip(task.scores.algorithms, task.ranks, strict=True)) for task in self.tasks]
        return average_ranks({str(number): row for number, row in enumerate(ranks)})

    @property
    def verdict(self) -> str:
        """Return the sentence that names the leader and the significantly worse methods."""
        return " ".join(task.verdict() for task in self.tasks)

    @property
    def table(self) -> DataFrame:
        """Return rows by task and algorithm: ranks, values, bootstrap ranks, other methods' ranks."""
        return to_frame([{"task": task.scores.name, **row} for task in self.tasks for row in task.rows()])

    def text(self, look: Look = PLAIN) -> str:
        """Return the tables as text for a terminal."""
        check_arguments(LOOK, look=look)
        heads = [f"{task.title}: {task.scores.count_of_cases}" for task in self.tasks]
        tables = [format_table(*task.cells(), look) for task in self.tasks]
        blocks = [f"{head}\n{table}\n{task.tau}\n" for head, table, task in zip(heads, tables, self.tasks, strict=True)]
        if self.places:
            cells = [
                [f"{value:.4f}" if isinstance(value, float) else f"{value}" for value in row.values()]
                for row in self.places
            ]
            blocks.append(format_table([*self.places[0]], cells, look))
        elif len(self.tasks) > 1:
            rows = [[name, f"{rank:.2f}"] for name, rank in self.consensus.items()]
            blocks.append(format_table(["all tasks", "mean rank"], rows, look))
        return "\n".join(blocks)

    def document(self) -> dict[str, Any]:
        """Return everything as the document of `rank --json`."""
        document = {"rule": asdict(self.rule), "tasks": [task.document() for task in self.tasks]}
        document |= {"warnings": self.warnings} if self.warnings else {}
        if self.places:
            return document | {"places": self.places}
        return document | ({"consensus": self.consensus} if len(self.tasks) > 1 else {})

    def plot(self, kind: str = "stability", *, task: str = "") -> Figure:
        """Draw `stability`, `places`, `significance` or `methods` of the only task, or of one; needs matplotlib."""
        from .plots import plot_ranking

        check_arguments(TEXT, kind=kind)
        check_options(TEXT, task=task)
        tasks = {ranked.scores.name: ranked for ranked in self.tasks}
        if task not in tasks and (task or len(tasks) > 1):
            raise UsageError(f"there is no task {task!r}{name_hint(task, tasks)}")
        return plot_ranking(tasks[task] if task in tasks else self.tasks[0], kind)

    def page(self, *, title: str = "") -> str:
        """Return the page of tables and significant differences, as HTML."""
        return render_page(self.make_page(title))

    def make_page(self, title: str = "") -> ReportPage:
        check_options(TEXT, title=title)
        sections = [Section("verdict", "Verdict", {"sentences": [task.verdict() for task in self.tasks]})]
        sections += [_make_section(task, self.rule, is_one_of_several=len(self.tasks) > 1) for task in self.tasks]
        if self.places:
            sections.insert(
                0, make_list("Places", self.places, "As the challenge ranks: by the mean of the ranks below.")
            )
        elif len(self.tasks) > 1:
            rows = [{"algorithm": name, "mean rank": rank} for name, rank in self.consensus.items()]
            about = "The mean of the ranks over the tasks; a method without results in a task ranks last in it."
            sections.append(make_list("All tasks", rows, about))
        if self.warnings:
            rows = [{"warning": line} for line in self.warnings]
            sections.append(make_list("Warnings", rows, "What looks wrong in the results, by algorithm."))
        return ReportPage(title or "Ranking", sections)


def rank(  # noqa: PLR0913 - published: what a user may say of a ranking
    *scores: Scores | str | os.PathLike[str] | Mapping[str, Scores],
    metric: str = "",
    split: str = "",
    method: Method | Literal["challenge"] = "mean-then-rank",
    adjustment: Literal["none", "holm"] = "none",
    average_ties: bool = False,
    missing: _Missing | None = None,
    smaller: bool = False,
    draws: int = 1000,
) -> Ranking:
    """Rank methods by their scores and measure how stable the ranking is, as `segjudge rank` does.

    Args:
        scores: scores, or one mapping from names to them; or files: of `Scores.save`, of `score --json`, as FILE or
            NAME=FILE, or one CSV with the columns algorithm, case, value and optionally task.
        metric: the name of the metric (default: J&F-Mean, or the protocol's first).
        split: the name of the split, required if there are several.
        method: the method of ranking (docs/ranking.md); "challenge" ranks as the protocol's challenge does.
        adjustment: the adjustment of the p values of test-then-rank.
        average_ties: tied methods share the mean of their ranks.
        missing: the treatment of a missing value (default: 0 if that is the worst value, else last in its case).
        smaller: lower values of a table are better; for metrics, the direction is known.
        draws: the number of bootstrap samples.

    Raises:
        UsageError: the scores cannot be ranked together.

    """
    check_options(TEXT, metric=metric, split=split)
    for name, value, choices in (
        ("method", method, (*METHODS, CHALLENGE)),
        ("adjustment", adjustment, _ADJUSTMENTS),
        ("missing", "last" if missing is None else missing, _MISSING),
    ):
        check_arguments(TEXT, **{name: value})
        if value not in choices:
            raise UsageError(f"there is no {name} {value!r:.60}{name_hint(value, choices)}")
    check_arguments(FLAG, average_ties=average_ties, smaller=smaller)
    check_arguments(WHOLE, draws=draws)
    if not 1 <= draws <= MOST_DRAWS:
        raise ArgumentValueError(f"draws is {draws}; give a whole number from 1 to {MOST_DRAWS:,}")
    if method == CHALLENGE:
        return _rank_as_challenge(_open_scores(scores, split), metric, draws, average_ties=average_ties)
    tasks, directions, warnings = _open_tasks(scores, metric, split, smaller=smaller)
    treatment, notes = _treat_missing(tasks, missing)
    notes += directions
    if treatment == "zero":
        tasks = [task.fill(0.0) for task in tasks]
    rule = Rule(method, "average" if average_ties else "min", treatment == "remove", adjustment)
    return Ranking(rule, [rank_by_every_rule(task, rule, draws) for task in tasks], notes, warnings=warnings)


def _rank_as_challenge(scores: list[AlgorithmScores], metric: str, draws: int, *, average_ties: bool) -> Ranking:
    """Return the ranking by the rule of the protocol's challenge."""
    if metric:
        raise OptionError("metric: the protocol's challenge ranks its own metrics; omit it")
    challenge = find_rule(scores)
    rule = Rule("mean-then-rank", "average" if average_ties else "min")
    warnings = _list_warnings(scores)
    if challenge.within_cases:
        ranked = rank_by_every_rule(rank_within_cases(scores, rule.ties), rule, draws)
        return Ranking(rule, [ranked], warnings=warnings)
    tasks, places = rank_means(scores, challenge.tie_breaker)
    notes = [f"{name} share a place" for name in _list_shared(places)]
    return Ranking(rule, [rank_by_every_rule(task, rule, draws) for task in tasks], notes, places, warnings)


def _list_warnings(scores: list[AlgorithmScores]) -> list[str]:
    return [f"{algorithm.name}: {line}" for algorithm in scores for line in algorithm.warnings]


def _list_shared(places: list[dict[str, Any]]) -> list[str]:
    """Return the algorithms that share a place."""
    names: dict[int, list[str]] = {}
    for row in places:
        names.setdefault(row["place"], []).append(row["algorithm"])
    return [" and ".join(together) for together in names.values() if len(together) > 1]


def _open_scores(
    scores: tuple[Scores | str | os.PathLike[str] | Mapping[str, Scores], ...], split: str
) -> list[AlgorithmScores]:
    """Return the scores to rank, from memory or files."""
    paths = [os.fspath(entry) for entry in scores if isinstance(entry, (str, os.PathLike))]
    if len(paths) < len(scores):
        if paths:
            raise UsageError("rank takes scores or files, not both; segjudge.load opens a file")
        scores_by_name = name_scores(scores)
        if not scores_by_name:
            raise UsageError('rank needs scores: give them by name, such as {"A": scores, "B": scores}')
        return [scores_of(name, entry, split) for name, entry in scores_by_name.items()]
    if not paths:
        raise UsageError("rank needs scores")
    return read_scores(paths, split)


def _open_tasks(
    scores: tuple[Scores | str | os.PathLike[str] | Mapping[str, Scores], ...],
    metric: str,
    split: str,
    *,
    smaller: bool,
) -> tuple[list[TaskScores], list[str], list[str]]:
    """Return the tasks to rank, a note if the direction of a metric is unknown, and warnings about the results."""
    path = os.fspath(scores[0]) if len(scores) == 1 and isinstance(scores[0], (str, os.PathLike)) else ""
    if path.lower().endswith(".csv"):
        return read_table(path, smaller=smaller), [], []
    opened = _open_scores(scores, split)
    tasks = tasks_of(opened, metric)
    notes = [describe_direction(task.name, opened[0].protocol) for task in tasks]
    return tasks, [note for note in notes if note], _list_warnings(opened)


def _treat_missing(tasks: list[TaskScores], treatment: _Missing | None) -> tuple[_Missing, list[str]]:
    """Return the treatment of missing values and a note about it; raises OptionError if it favours them."""
    incomplete = [task for task in tasks if task.missing]
    without_worst = [task for task in incomplete if not task.zero_is_worst]
    if treatment == "zero" and without_worst:
        task = f" of {without_worst[0].name}" if without_worst[0].name else ""
        raise OptionError(f"missing zero: some values{task} are worse than 0, so 0 would win; use last or remove")
    chosen_treatment: _Missing = treatment or ("last" if without_worst else "zero")
    return chosen_treatment, [f"missing values {_MISSING[chosen_treatment]}"] if incomplete else []


def _make_section(task: RankedTask, rule: Rule, *, is_one_of_several: bool) -> Section:
    columns, rows = task.cells()
    names, order = [task.scores.algorithms[row] for row in task.order], task.order
    values = {
        "about": f"{task.scores.count_of_cases}, ranked by {rule.method}. {task.tau}. {_COLUMNS}",
        "columns": columns,
        "rows": [
            [cell if column == SPREAD else _number_of(cell) for column, cell in zip(columns, row)] for row in rows
        ],
        "names": names,
        "apart": {(names[i], names[k]): task.sign(order[i], order[k]) for i, k in permutations(range(len(order)), 2)},
    }
    return Section("ranking", f"Ranking: {task.title}" if is_one_of_several else "Ranking", values, package=_PACKAGE)


def _number_of(cell: str) -> object:
    """Return a cell as a number if it is one, for sorting tables."""
    try:
        return int(cell) if cell.isdecimal() else float(cell)
    except ValueError:
        return cell
