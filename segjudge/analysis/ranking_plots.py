"""Plots of a ranking, as SVG and PNG: stability, places, significance, and what other methods of ranking say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from segjudge.analysis.rankings import TaskScores
from segjudge.analysis.ranks import ranks_of
from segjudge.evaluation_script.files.packed import replace_file
from segjudge.system.errors import UsageError, install_line
from segjudge.system.files import file_name, make_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREY = "#0072b2", "#e69f00", "#8a8f98"
#: Points of a blob that took every redrawing.
LARGEST = 900


def plot_ranking(task: TaskScores, ranked: dict[str, Any], folder: str) -> list[str]:
    """Write the plots of one ranking, as `segjudge rank` made it; return their files."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(f"plots need matplotlib: {install_line('interactive')}") from None
    import matplotlib as mpl

    make_folder(folder)
    order = sorted(range(len(task.algorithms)), key=lambda row: (ranked["ranks"][row], task.algorithms[row]))
    name = file_name(task.name) or "all"
    plots = {"stability": _stability, "places": _places, "significance": _significance, "methods": _methods}
    paths = []
    with mpl.rc_context({"svg.hashsalt": name, "font.size": 9, "text.parse_math": False}):
        for kind, draw in plots.items():
            size = 2.2 + 0.35 * len(order)
            figure = Figure(figsize=(max(4.5, size), max(3.2, size * 0.8)), layout="constrained")
            axes = figure.subplots()
            draw(axes, task, ranked, order)
            for ending, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
                paths.append(os.path.join(folder, f"{name}-{kind}.{ending}"))
                with replace_file(paths[-1]) as partial:
                    figure.savefig(partial, format=ending, dpi=150, metadata=metadata)
    return paths


def _label(name: str) -> str:
    """Return a name as legends show it: they leave out what begins with an underscore."""
    return f" {name}" if name.startswith("_") else name


def _names(axes: Axes, task: TaskScores, order: list[int]) -> None:
    axes.set_xticks(range(len(order)), [task.algorithms[row] for row in order], rotation=45, ha="right")


def _stability(axes: Axes, task: TaskScores, ranked: dict[str, Any], order: list[int]) -> None:
    """Draw how often redrawn cases gave each rank: the larger the blob, the more often."""
    spread = ranked["stability"]
    frequency = np.array(spread["frequency"])[order]
    columns, ranks = np.nonzero(frequency)
    axes.scatter(columns, ranks + 1, frequency[columns, ranks] * LARGEST, color=BLUE, alpha=0.75, linewidths=0)
    axes.vlines(range(len(order)), [spread["low"][row] for row in order], [spread["high"][row] for row in order], GREY)
    axes.plot(range(len(order)), [spread["median"][row] for row in order], "x", color="black")
    axes.set(ylabel="rank", title=f"{task.name}: ranks of redrawn cases; × median, line 95 %".lstrip(": "))
    axes.set_yticks(range(1, len(order) + 1))
    axes.set(xlim=(-0.7, len(order) - 0.3), ylim=(len(order) + 0.7, 0.3))
    _names(axes, task, order)


def _places(axes: Axes, task: TaskScores, _ranked: dict[str, Any], order: list[int]) -> None:
    """Draw the value of each algorithm in each case, at the place that it took there."""
    count = len(order)
    within = ranks_of(task.values.T, smaller=task.smaller)
    for values, ranks in zip(task.values.T, within, strict=True):
        # Ties are broken by the ranking itself, so that equal runs draw equal plots.
        taken = sorted(range(count), key=lambda place: (ranks[order[place]], place))
        x = [rank * (count + 1) + place for rank, place in enumerate(taken)]
        y = [values[order[place]] for place in taken]
        axes.plot(x, y, color=GREY, linewidth=0.4, alpha=0.5)
        axes.scatter(x, y, 12, [f"C{place % 10}" for place in taken], zorder=2)
    axes.set_xticks([rank * (count + 1) + (count - 1) / 2 for rank in range(count)], [f"{r + 1}" for r in range(count)])
    axes.set(xlabel="place in the case", ylabel="value", title=f"{task.name}: who took which place".lstrip(": "))
    for place, row in enumerate(order):
        axes.scatter([], [], 12, f"C{place % 10}", label=_label(task.algorithms[row]))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)


def _significance(axes: Axes, task: TaskScores, ranked: dict[str, Any], order: list[int]) -> None:
    """Draw which algorithm (row) is significantly better or worse than which (column)."""
    better = np.array(ranked["better"])[np.ix_(order, order)]
    for row, column in np.ndindex(better.shape):
        if row != column:
            sign, colour = ("+", BLUE) if better[row, column] else ("−", ORANGE) if better[column, row] else ("=", GREY)
            axes.text(column, row, sign, ha="center", va="center", color=colour, weight="bold")
    axes.set(xlim=(-0.5, len(order) - 0.5), ylim=(len(order) - 0.5, -0.5))
    axes.set_title(f"{task.name}: row better +, worse −, not told apart = (Holm)".lstrip(": "))
    axes.set_yticks(range(len(order)), [task.algorithms[row] for row in order])
    axes.set_aspect("equal")
    _names(axes, task, order)


def _methods(axes: Axes, task: TaskScores, ranked: dict[str, Any], order: list[int]) -> None:
    """Draw the rank of each algorithm by each method of ranking."""
    methods = list(ranked["by_method"])
    for place, row in enumerate(order):
        ranks = [ranked["by_method"][method][row] for method in methods]
        axes.plot(range(len(methods)), ranks, "o-", color=f"C{place % 10}", label=_label(task.algorithms[row]))
    axes.set_xticks(range(len(methods)), methods, rotation=30, ha="right")
    axes.set(ylabel="rank", title=f"{task.name}: does the method of ranking matter?".lstrip(": "))
    axes.set_yticks(range(1, len(order) + 1))
    axes.invert_yaxis()
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)
