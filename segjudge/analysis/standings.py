"""A ranking with its tables, its words, its plots and its page: what `segjudge.rank` returns, and the command shows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any, Literal

from segjudge.evaluation_script.files.problems import name_hint, quantity
from segjudge.report.browser import ShownPage
from segjudge.report.page import ReportPage, Section, make_list, render_page
from segjudge.report.tables import PLAIN, Look, format_table, to_frame
from segjudge.scoring.scores import Scores
from segjudge.system.errors import OptionError, UsageError

from . import METHODS, Method
from .rankings import SPREAD, RankedTask, Rule, TaskScores, average_ranks, rank_by_every_rule
from .score_tables import name_scores, read_scores, read_table, scores_of, tasks_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

#: What becomes of a missing value, and how that is said.
_MISSING = {"zero": "count as 0", "last": "are the worst of their case", "remove": "are left out"}
_Missing = Literal["zero", "last", "remove"]
_PACKAGE = "segjudge.analysis"
_COLUMNS = (
    "Better than: the number of others that it is significantly better than; the columns after it have its rank by "
    "each way of ranking."
)


@dataclass(frozen=True, repr=False)
class Ranking(ShownPage):
    """Algorithms ranked in one task or in several."""

    rule: Rule
    tasks: list[RankedTask]
    #: What was done about missing values.
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from segjudge.scoring.notebook import render_shown

        return render_shown("segjudge.analysis/standings.html", [], ranking=self)

    @cached_property
    def consensus(self) -> dict[str, float]:
        """The mean rank of each algorithm over all tasks."""
        ranks = [dict(zip(task.scores.algorithms, task.ranks, strict=True)) for task in self.tasks]
        return average_ranks({str(number): row for number, row in enumerate(ranks)})

    @property
    def verdict(self) -> str:
        """Who leads, and whom that can be told apart from, in words."""
        return " ".join(task.verdict() for task in self.tasks)

    @property
    def table(self) -> DataFrame:
        """Ranks, values, ranks of redrawn cases and those by other methods: a row by task and algorithm."""
        return to_frame([{"task": task.scores.name, **row} for task in self.tasks for row in task.rows()])

    def text(self, look: Look = PLAIN) -> str:
        """The tables, as a terminal shows them."""
        heads = [f"{task.title}: {quantity(len(task.scores.cases), 'case')}" for task in self.tasks]
        tables = [format_table(*task.cells(), look) for task in self.tasks]
        blocks = [f"{head}\n{table}\n{task.tau}\n" for head, table, task in zip(heads, tables, self.tasks, strict=True)]
        if len(self.tasks) > 1:
            rows = [[name, f"{rank:.2f}"] for name, rank in self.consensus.items()]
            blocks.append(format_table(["all tasks", "mean rank"], rows, look))
        return "\n".join(blocks)

    def document(self) -> dict[str, Any]:
        """Everything, as `rank --json` writes it."""
        document = {"rule": asdict(self.rule), "tasks": [task.document() for task in self.tasks]}
        return document | ({"consensus": self.consensus} if len(self.tasks) > 1 else {})

    def plot(self, kind: str = "stability", *, task: str = "") -> Figure:
        """Draw `stability`, `places`, `significance` or `methods` of the only task, or of one; needs matplotlib."""
        from .plots import plot_ranking

        tasks = {ranked.scores.name: ranked for ranked in self.tasks}
        if task not in tasks and (task or len(tasks) > 1):
            raise UsageError(f"there is no task {task!r}{name_hint(task, tasks)}")
        return plot_ranking(tasks[task] if task in tasks else self.tasks[0], kind)

    def page(self, *, title: str = "") -> str:
        """Return the page of tables and of what can be told apart, as HTML."""
        return render_page(self.make_page(title))

    def make_page(self, title: str = "") -> ReportPage:
        sections = [Section("verdict", "Verdict", {"sentences": [task.verdict() for task in self.tasks]})]
        sections += [_make_section(task, self.rule, several=len(self.tasks) > 1) for task in self.tasks]
        if len(self.tasks) > 1:
            rows = [{"algorithm": name, "mean rank": rank} for name, rank in self.consensus.items()]
            about = "The mean of the ranks over the tasks; who has no results in a task is last there."
            sections.append(make_list("All tasks", rows, about))
        return ReportPage(title or "Ranking", sections)


def rank(  # noqa: PLR0913 - published: what a user may say of a ranking
    *scores: Scores | str | os.PathLike[str] | Mapping[str, Scores],
    metric: str = "",
    split: str = "",
    method: Method = "mean-then-rank",
    adjustment: Literal["none", "holm"] = "none",
    average_ties: bool = False,
    missing: _Missing | None = None,
    smaller: bool = False,
    draws: int = 1000,
) -> Ranking:
    """Rank methods by their scores, and measure how far the ranking holds, as `segjudge rank` does.

    Args:
        scores: scores, or one mapping from names to them; or files: of `Scores.save`, of `score --json`, as FILE or
            NAME=FILE, or one CSV with the columns algorithm, case, value and maybe task.
        metric: which metric (default: J&F-Mean, or the protocol's first).
        split: which split, where there are several.
        method: how values of cases become a ranking (docs/ranking.md).
        adjustment: of the p values of test-then-rank.
        average_ties: equal ones share the mean of their ranks.
        missing: what becomes of a missing value (default: 0 where none is worse, elsewhere last in its case).
        smaller: small values of a table are good; of metrics it is known.
        draws: how often cases are drawn again.

    Raises:
        UsageError: the scores cannot be ranked together.

    """
    if method not in METHODS:
        raise UsageError(f"there is no method {method!r}{name_hint(method, METHODS)}")
    tasks = _open_tasks(scores, metric, split, smaller=smaller)
    treatment, notes = _treat_missing(tasks, missing)
    if treatment == "zero":
        tasks = [task.fill(0.0) for task in tasks]
    rule = Rule(method, "average" if average_ties else "min", treatment == "remove", adjustment)
    return Ranking(rule, [rank_by_every_rule(task, rule, draws) for task in tasks], notes)


def _open_tasks(
    scores: tuple[Scores | str | os.PathLike[str] | Mapping[str, Scores], ...],
    metric: str,
    split: str,
    *,
    smaller: bool,
) -> list[TaskScores]:
    paths = [os.fspath(entry) for entry in scores if isinstance(entry, (str, os.PathLike))]
    if len(paths) < len(scores):
        if paths:
            raise UsageError("rank takes scores or files, not both; segjudge.load opens a file")
        return tasks_of([scores_of(name, entry, split) for name, entry in name_scores(scores).items()], metric)
    if not paths:
        raise UsageError("rank needs scores")
    if len(paths) == 1 and paths[0].endswith(".csv"):
        return read_table(paths[0], smaller=smaller)
    return tasks_of(read_scores(paths, split), metric)


def _treat_missing(tasks: list[TaskScores], treatment: _Missing | None) -> tuple[_Missing, list[str]]:
    """Choose what becomes of missing values, and say it; none may be better than those that are there."""
    incomplete = [task for task in tasks if task.missing]
    without_worst = [task for task in incomplete if not task.zero_is_worst]
    if treatment == "zero" and without_worst:
        task = f" of {without_worst[0].name}" if without_worst[0].name else ""
        raise OptionError(f"missing zero: some values{task} are worse than 0, which would win; use last or remove")
    chosen_treatment: _Missing = treatment or ("last" if without_worst else "zero")
    return chosen_treatment, [f"missing values {_MISSING[chosen_treatment]}"] if incomplete else []


def _make_section(task: RankedTask, rule: Rule, *, several: bool) -> Section:
    columns, rows = task.cells()
    names, order = [task.scores.algorithms[row] for row in task.order], task.order
    values = {
        "about": f"{quantity(len(task.scores.cases), 'case')}, ranked by {rule.method}. {task.tau}. {_COLUMNS}",
        "columns": columns,
        "rows": [
            [cell if column == SPREAD else _number_of(cell) for column, cell in zip(columns, row)] for row in rows
        ],
        "names": names,
        "apart": {(names[i], names[k]): task.sign(order[i], order[k]) for i, k in permutations(range(len(order)), 2)},
    }
    return Section("ranking", f"Ranking: {task.title}" if several else "Ranking", values, package=_PACKAGE)


def _number_of(cell: str) -> object:
    """Take a cell as a number where it is one, by which tables of a page are sorted."""
    try:
        return int(cell) if cell.isdecimal() else float(cell)
    except ValueError:
        return cell
