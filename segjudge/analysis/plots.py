"""Plots of comparisons and rankings."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from segjudge.evaluation_script.files.problems import name_hint
from segjudge.report.colours import line_of_method
from segjudge.report.labels import shorten_name, spread_labels
from segjudge.scoring.figures import ACCENT, GREY, INK, draw_figure, save_figure
from segjudge.system.errors import UsageError
from segjudge.system.files import file_name, make_folder

from .rankings import RankedTask
from .statistics import Mean, ranks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The size in points of a blob that stands for every bootstrap sample.
_LARGEST = 900


def plot_means(metric: str, means: Sequence[Mean]) -> Figure:
    """Draw the mean of each method with its interval, the best on top."""

    def draw(axes: Axes) -> None:
        for row, mean in enumerate(means):
            low, high = (mean.value, mean.value) if mean.low is None or mean.high is None else (mean.low, mean.high)
            axes.plot([low, high], [row, row], color=GREY, linewidth=1.5)
            axes.plot([mean.value], [row], "o", color=INK if mean.is_alone_best else GREY)
        axes.set_yticks(range(len(means)), [shorten_name(mean.name) for mean in means])
        axes.set(xlabel=f"{metric}, 95 %", ylim=(len(means) - 0.5, -0.5))

    return draw_figure((6.0, 1.0 + 0.35 * len(means)), draw)


# ── rankings ────────────────────────────────────────────────────────────────


#: The minimum width of a figure, in which its title fits, and the width of a letter of a name beside it, in inches.
_TITLED, _LETTER = 6.5, 0.08
#: The maximum number of letters of a name below an axis.
_MOST_BELOW = 24


def plot_ranking(task: RankedTask, kind: str) -> Figure:
    """Draw one of the plots of a ranking: `stability`, `places`, `significance`, `methods`."""
    if kind not in _PLOTS:
        raise UsageError(f"there is no plot {kind!r}{name_hint(kind, _PLOTS)}")
    order = task.order
    size = 2.2 + 0.35 * len(order)
    beside = _LETTER * max(map(len, _names(task, order))) if kind in ("places", "methods") else 0.0
    width = max(_TITLED, size + beside)
    return draw_figure((width, max(3.2, size * 0.8)), lambda axes: _PLOTS[kind](axes, task, order))


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


def _names(task: RankedTask, order: list[int]) -> list[str]:
    return [shorten_name(task.scores.algorithms[row]) for row in order]


def _set_names(axes: Axes, task: RankedTask, order: list[int]) -> None:
    names = [shorten_name(name, _MOST_BELOW) for name in _names(task, order)]
    axes.set_xticks(range(len(order)), names, rotation=45, ha="right")


def _draw_stability(axes: Axes, task: RankedTask, order: list[int]) -> None:
    """Draw the frequency of each rank over bootstrap draws as the area of a blob."""
    spread = task.stability
    frequency = np.array(spread["frequency"])[order]
    columns, ranks = np.nonzero(frequency)
    axes.scatter(columns, ranks + 1, frequency[columns, ranks] * _LARGEST, color=INK, alpha=0.75, linewidths=0)
    axes.vlines(range(len(order)), [spread["low"][row] for row in order], [spread["high"][row] for row in order], GREY)
    axes.plot(range(len(order)), [spread["median"][row] for row in order], "x", color="black")
    axes.set(ylabel="rank", title=f"{task.scores.name}: ranks of bootstrap samples; × median, line 95 %".lstrip(": "))
    axes.set_yticks(range(1, len(order) + 1))
    axes.set(xlim=(-0.7, len(order) - 0.3), ylim=(len(order) + 0.7, 0.3))
    _set_names(axes, task, order)


def _draw_places(axes: Axes, task: RankedTask, order: list[int]) -> None:
    """Draw each algorithm's value in each case at its rank there."""
    count = len(order)
    within = ranks_of(task.scores.values.T, smaller=task.scores.smaller)
    for values, ranks in zip(task.scores.values.T, within, strict=True):
        # Ties are broken by the ranking itself, so that equal runs draw equal plots.
        order_in_case = sorted(range(count), key=lambda index: (ranks[order[index]], index))
        x = [rank * (count + 1) + index for rank, index in enumerate(order_in_case)]
        y = [values[order[index]] for index in order_in_case]
        axes.plot(x, y, color=GREY, linewidth=0.4, alpha=0.5)
        axes.scatter(x, y, 12, [line_of_method(index)[0] for index in order_in_case], zorder=2)
    middle = (count - 1) / 2
    axes.set_xticks([rank * (count + 1) + middle for rank in range(count)], [f"\n{rank + 1}" for rank in range(count)])
    axes.xaxis.remove_overlapping_locs = False
    slots = [(rank * (count + 1) + index, index) for rank in range(count) for index in range(count)]
    axes.set_xticks([position for position, _ in slots], [f"{index + 1}" for _, index in slots], minor=True, fontsize=6)
    for label, (_, index) in zip(axes.get_xticklabels(minor=True), slots, strict=True):
        label.set_color(line_of_method(index)[0])
    axes.tick_params(which="both", length=0)
    axes.set(
        xlabel="place in the case",
        ylabel="value",
        title=f"{task.scores.name}: how often each method took each place".lstrip(": "),
    )
    for index, name in enumerate(_names(task, order)):
        line = 1 - (index + 0.5) / count
        colour = line_of_method(index)[0]
        axes.text(1.02, line, f"{index + 1} {name}", color=colour, va="center", fontsize=8, transform=axes.transAxes)


def _draw_significance(axes: Axes, task: RankedTask, order: list[int]) -> None:
    """Draw the significance matrix: algorithms (rows) better or worse than others (columns)."""
    better = np.array(task.better)[np.ix_(order, order)]
    for row, column in np.ndindex(better.shape):
        if row != column:
            sign, colour = ("+", INK) if better[row, column] else ("−", ACCENT) if better[column, row] else ("=", GREY)
            axes.text(column, row, sign, ha="center", va="center", color=colour, weight="bold")
    axes.set(xlim=(-0.5, len(order) - 0.5), ylim=(len(order) - 0.5, -0.5))
    axes.set_title(f"{task.scores.name}: row better +, worse −, no significant difference = (Holm)".lstrip(": "))
    axes.set_yticks(range(len(order)), _names(task, order))
    axes.set_aspect("equal")
    _set_names(axes, task, order)


def _draw_methods(axes: Axes, task: RankedTask, order: list[int]) -> None:
    """Draw the rank of each algorithm by each method of ranking."""
    methods = list(task.by_method)
    last = {row: task.by_method[methods[-1]][row] for row in order}
    ends = spread_labels([float(last[row]) for row in order], 0.45)
    for index, (row, name, end) in enumerate(zip(order, _names(task, order), ends, strict=True)):
        colour, dashes = line_of_method(index)
        ranks = [task.by_method[method][row] for method in methods]
        axes.plot(range(len(methods)), ranks, color=colour, linestyle=dashes, marker="o")
        axes.text(len(methods) - 0.75, end, name, color=colour, va="center", fontsize=8)
    axes.set_xticks(range(len(methods)), methods, rotation=30, ha="right")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(ylabel="rank", title=f"{task.scores.name}: does the method of ranking matter?".lstrip(": "))
    axes.set_yticks(range(1, len(order) + 1))
    axes.invert_yaxis()


_PLOTS: dict[str, Callable[[Axes, RankedTask, list[int]], None]] = {
    "stability": _draw_stability,
    "places": _draw_places,
    "significance": _draw_significance,
    "methods": _draw_methods,
}
