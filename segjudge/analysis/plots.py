"""Plots of comparisons and rankings."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from segjudge.evaluation_script.files.problems import name_hint
from segjudge.scoring.figures import BLUE, GREY, ORANGE, draw_figure, format_label, save_figure
from segjudge.system.errors import UsageError
from segjudge.system.files import file_name, make_folder

from .rankings import RankedTask
from .statistics import Mean, ranks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Points of a blob that took every redrawing.
_LARGEST = 900


def plot_means(metric: str, means: Sequence[Mean]) -> Figure:
    """Draw the mean of each method with its interval, the best on top."""

    def draw(axes: Axes) -> None:
        for row, mean in enumerate(means):
            low, high = (mean.value, mean.value) if mean.low is None or mean.high is None else (mean.low, mean.high)
            axes.plot([low, high], [row, row], color=GREY, linewidth=1.5)
            axes.plot([mean.value], [row], "o", color=BLUE if mean.is_alone_best else GREY)
        axes.set_yticks(range(len(means)), [format_label(mean.name) for mean in means])
        axes.set(xlabel=f"{metric}, 95 %", ylim=(len(means) - 0.5, -0.5))

    return draw_figure((6.0, 1.0 + 0.35 * len(means)), draw)


# ── rankings ────────────────────────────────────────────────────────────────


#: So wide is a figure at least that its title is not cut, in inches.
_TITLED = 6.5


def plot_ranking(task: RankedTask, kind: str) -> Figure:
    """Draw one of the plots of a ranking: `stability`, `places`, `significance`, `methods`."""
    if kind not in _PLOTS:
        raise UsageError(f"there is no plot {kind!r}{name_hint(kind, _PLOTS)}")
    order = task.order
    size = 2.2 + 0.35 * len(order)
    return draw_figure((max(_TITLED, size), max(3.2, size * 0.8)), lambda axes: _PLOTS[kind](axes, task, order))


def write_plots(task: RankedTask, folder: str) -> list[str]:
    """Write all plots of a ranking as SVG and PNG; return their files."""
    make_folder(folder)
    name = file_name(task.scores.name) or "all"
    paths = []
    for kind in _PLOTS:
        figure = plot_ranking(task, kind)
        for ending in ("svg", "png"):
            paths.append(os.path.join(folder, f"{name}-{kind}.{ending}"))
            save_figure(figure, paths[-1])
    return paths


def _set_names(axes: Axes, task: RankedTask, order: list[int]) -> None:
    axes.set_xticks(range(len(order)), [task.scores.algorithms[row] for row in order], rotation=45, ha="right")


def _draw_stability(axes: Axes, task: RankedTask, order: list[int]) -> None:
    """Draw how often redrawn cases gave each rank: the larger the blob, the more often."""
    spread = task.stability
    frequency = np.array(spread["frequency"])[order]
    columns, ranks = np.nonzero(frequency)
    axes.scatter(columns, ranks + 1, frequency[columns, ranks] * _LARGEST, color=BLUE, alpha=0.75, linewidths=0)
    axes.vlines(range(len(order)), [spread["low"][row] for row in order], [spread["high"][row] for row in order], GREY)
    axes.plot(range(len(order)), [spread["median"][row] for row in order], "x", color="black")
    axes.set(ylabel="rank", title=f"{task.scores.name}: ranks of redrawn cases; × median, line 95 %".lstrip(": "))
    axes.set_yticks(range(1, len(order) + 1))
    axes.set(xlim=(-0.7, len(order) - 0.3), ylim=(len(order) + 0.7, 0.3))
    _set_names(axes, task, order)


def _draw_places(axes: Axes, task: RankedTask, order: list[int]) -> None:
    """Draw the value of each algorithm in each case, at the place that it took there."""
    count = len(order)
    within = ranks_of(task.scores.values.T, smaller=task.scores.smaller)
    for values, ranks in zip(task.scores.values.T, within, strict=True):
        # Ties are broken by the ranking itself, so that equal runs draw equal plots.
        order_in_case = sorted(range(count), key=lambda index: (ranks[order[index]], index))
        x = [rank * (count + 1) + index for rank, index in enumerate(order_in_case)]
        y = [values[order[index]] for index in order_in_case]
        axes.plot(x, y, color=GREY, linewidth=0.4, alpha=0.5)
        axes.scatter(x, y, 12, [f"C{index % 10}" for index in order_in_case], zorder=2)
    axes.set_xticks([rank * (count + 1) + (count - 1) / 2 for rank in range(count)], [f"{r + 1}" for r in range(count)])
    axes.set(xlabel="place in the case", ylabel="value", title=f"{task.scores.name}: who took which place".lstrip(": "))
    for index, row in enumerate(order):
        axes.scatter([], [], 12, f"C{index % 10}", label=format_label(task.scores.algorithms[row]))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)


def _draw_significance(axes: Axes, task: RankedTask, order: list[int]) -> None:
    """Draw which algorithm (row) is significantly better or worse than which (column)."""
    better = np.array(task.better)[np.ix_(order, order)]
    for row, column in np.ndindex(better.shape):
        if row != column:
            sign, colour = ("+", BLUE) if better[row, column] else ("−", ORANGE) if better[column, row] else ("=", GREY)
            axes.text(column, row, sign, ha="center", va="center", color=colour, weight="bold")
    axes.set(xlim=(-0.5, len(order) - 0.5), ylim=(len(order) - 0.5, -0.5))
    axes.set_title(f"{task.scores.name}: row better +, worse −, not told apart = (Holm)".lstrip(": "))
    axes.set_yticks(range(len(order)), [task.scores.algorithms[row] for row in order])
    axes.set_aspect("equal")
    _set_names(axes, task, order)


def _draw_methods(axes: Axes, task: RankedTask, order: list[int]) -> None:
    """Draw the rank of each algorithm by each method of ranking."""
    methods = list(task.by_method)
    for index, row in enumerate(order):
        ranks = [task.by_method[method][row] for method in methods]
        axes.plot(
            range(len(methods)), ranks, "o-", color=f"C{index % 10}", label=format_label(task.scores.algorithms[row])
        )
    axes.set_xticks(range(len(methods)), methods, rotation=30, ha="right")
    axes.set(ylabel="rank", title=f"{task.scores.name}: does the method of ranking matter?".lstrip(": "))
    axes.set_yticks(range(1, len(order) + 1))
    axes.invert_yaxis()
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)


_PLOTS: dict[str, Callable[[Axes, RankedTask, list[int]], None]] = {
    "stability": _draw_stability,
    "places": _draw_places,
    "significance": _draw_significance,
    "methods": _draw_methods,
}
