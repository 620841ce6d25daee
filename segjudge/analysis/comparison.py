"""A comparison with its tables, its words, its page: what `segjudge.compare` returns, and what the command shows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import permutations
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from segjudge.families.base.tools import MethodCosts
from segjudge.report.browser import ShownPage
from segjudge.report.page import (
    ReportPage,
    Section,
    describe_digests,
    make_changes,
    make_origins,
    make_page_options,
    render_page,
)
from segjudge.report.tables import PLAIN, Look, format_number, format_table, to_frame
from segjudge.scoring.figures import write_film
from segjudge.scoring.notebook import draw_worst, is_quick, render_shown
from segjudge.scoring.scores import Scores

from .methods import ComparedMethods, check_kinds, compare_methods
from .plots import plot_means
from .publishing import write_latex, write_markdown
from .score_tables import name_scores
from .statistics import Mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from segjudge.report.page import PageOptions


class Comparison(ComparedMethods, ShownPage):
    """Methods that are compared, as people see them."""

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        quick = all(is_quick(scores, self.split) for scores in self.methods.values())
        costs = self.known_costs if quick else {}
        bars = {name: self.tools.make_bar(kinds) for name, kinds in costs.items() if kinds}
        changes = self.changes()
        return render_shown(
            "segjudge.analysis/comparison.html",
            self.reports.values(),
            compared=self,
            bars=bars,
            sentences=self.describe_kinds() if bars else [],
            film=draw_worst(self.methods, self.split, changes[0].case if changes else ""),
        )

    # ── tables ──

    @property
    def kinds(self) -> DataFrame:
        """What each kind of failure costs: a row for each method, a column for each kind."""
        return to_frame([{"method": name, **costs} for name, costs in self.costs.items()])

    @property
    def table(self) -> DataFrame:
        """The place, mean and interval of each method, the best first."""
        return to_frame([{**asdict(mean), "places": mean.places} for mean in self.means])

    @property
    def differences(self) -> DataFrame:
        """How each two methods differ: their interval, p, and p adjusted for all pairs."""
        return to_frame([{**asdict(pair), "apart": pair.apart} for pair in self.pairs])

    # ── what is shown ──

    def text(self, look: Look = PLAIN) -> str:
        """What is compared, the places and the verdicts as a terminal shows them."""
        body = [[rank, name, format_number(value), reach] for rank, name, value, reach in self.places()]
        places = format_table(["place", "method", self.metric, "95 %"], body, look)
        return "\n".join([f"{self.about}\n\n{places}\n", *self._paint_verdicts(look)])

    def _paint_verdicts(self, look: Look) -> list[str]:
        return [
            look.paint(line, "good" if pair.apart else "faint")
            for line, pair in zip(self.verdicts(), self.pairs, strict=True)
        ]

    def kinds_text(self, look: Look = PLAIN) -> str:
        """What each kind of failure takes, and in which kinds the methods differ; they sum to the total, if any."""
        kinds = list(next(iter(self.costs.values())))
        total = f"1 − {self.metric.removesuffix('-Mean')}" if self.tools.shares_loss else ""
        rows = [
            [name, *([format_number(sum(costs.values()))] if total else []), *map(format_number, costs.values())]
            for name, costs in self.costs.items()
        ]
        title = "Where the loss comes from" if total else "What each kind costs"
        table = format_table(["method", *([total] if total else []), *kinds], rows, look)
        return "\n".join([f"\n{title} (docs/ranking.md):", table, *self.describe_kinds()])

    def document(self, *, kinds: bool = False) -> dict[str, Any]:
        """Everything, as `compare --json` writes it."""
        sequences = {"sequences": self.sequences} if self.sequences else {}
        pairs = [pair.document() for pair in self.pairs]
        costs = {"kinds": self.costs} if kinds else {}
        return {"metric": self.metric, **sequences, "means": list(map(asdict, self.means)), "pairs": pairs, **costs}

    def markdown(self, *, kinds: bool = True) -> str:
        """Write what a pull request shows: places, what grew and shrank by kind, and which cases flipped."""
        return write_markdown(self, kinds=kinds)

    def latex(self, metrics: Sequence[str] = ()) -> str:
        """Write the table of a paper, for booktabs: intervals, and bold where a method is better than every other."""
        return write_latex(self, metrics)

    def film(self, path: str | os.PathLike[str], **choice: Any) -> None:
        """Write frames of a sequence beside each other, a row for the truth and for each method.

        Where none is named, it is the sequence in which the last method loses most beside the first; the options are
        those of `Scores.film`.
        """
        changes = self.changes()
        choice.setdefault("sequence", changes[0].case if changes else "")
        write_film(self.open_methods(), os.fspath(path), **choice)

    def plot(self) -> Figure:
        """Draw the mean of each method with its interval; needs matplotlib."""
        return plot_means(self.metric, self.means)

    def page(self, *, images: str | os.PathLike[str] = "", budget: int = 6, title: str = "") -> str:
        """Return the page that `report` writes, as HTML.

        Args:
            images: the dataset's pictures, over which masks are drawn.
            budget: megabytes that the page may have.
            title: its title (default: the names of the results).

        """
        return render_page(self.make_page(make_page_options(images, budget), title))

    def _explain(self, options: PageOptions) -> MethodCosts:
        """Explain by their masks where methods differ; where files are not at hand, by the cases that changed."""
        if not all(scores.is_on_files for scores in self.methods.values()):
            values = {name: {case: row.get(name) for case, row in self.cases.items()} for name in self.methods}
            about = "Those first in which the second lost most."
            cells = {name: list(costs.values()) for name, costs in self.known_costs.items()}
            sections = [make_changes(self.noun.capitalize(), values, about)]
            kinds = list(next(iter(self.known_costs.values()), ()))
            return MethodCosts(self.known_costs, kinds, cells, sections=sections)
        if self.tools.shares_loss:
            check_kinds(self.protocol, self.metric, "out")
        return self.tools.compare_failures(self.open_methods(), options)

    def make_page(self, options: PageOptions, title: str = "") -> ReportPage:
        """Make the page: places, verdicts and costs, and what their family shows of the methods."""
        details = self._explain(options)
        vars(self)["costs"] = details.costs  # they are not read twice
        provenances = {name: scores.provenance for name, scores in self.methods.items()}
        sections = [_make_methods(self, details), *details.sections, make_origins([], provenances)]
        return ReportPage(title or " · ".join(self.methods), sections, describe_digests(*provenances.values()))


def compare(*methods: Scores | Mapping[str, Scores], metric: str = "", split: str = "") -> Comparison:
    """Compare methods by their scores on the same truth, as `segjudge compare` does.

    Args:
        methods: the scores of each, or one mapping from names to them; without names they have that of their results.
        metric: which metric (default: J&F-Mean, or the protocol's first).
        split: which split, where there are several.

    Raises:
        UsageError: the scores cannot be compared.

    """
    compared = compare_methods(name_scores(methods), metric, split)
    return Comparison(**{name: getattr(compared, name) for name in ComparedMethods.__dataclass_fields__})


# ── the page ────────────────────────────────────────────────────────────────


def _make_methods(compared: Comparison, details: MethodCosts) -> Section:
    names = [mean.name for mean in compared.means]
    about = f"{compared.about}. Places and verdicts hold for all pairs together (sign flips by group, Holm)."
    if compared.sequences:
        counts = compared.sums.counts
        about = (
            f"{len(counts)} sequences, {int(counts.sum())} objects. Places and verdicts hold "
            "for all pairs together (sign flips by sequence, adjusted by Holm)."
        )
    rows = zip(compared.places(), _draw_whiskers(compared.means), names, strict=True)
    values = {
        "about": about,
        "verdict": compared.describe_best(),
        "columns": ["place", "method", compared.metric, "95 %", "interval", *details.columns],
        "rows": [[*cells, picture, *details.cells.get(name, ())] for cells, picture, name in rows],
        "points": details.points,
        "axes": list(details.costs)[:2],
        "bars": [
            (name, details.bars[name], sum(details.costs[name].values())) for name in names if name in details.bars
        ],
        "verdicts": compared.verdicts(),
        "names": names,
        "apart": {(row, column): compared.sign(row, column) for row, column in permutations(names, 2)},
        "kinds": compared.describe_kinds(),
    }
    return Section("methods", "Methods", values, package="segjudge.analysis", style=details.style)


def _draw_whiskers(means: Sequence[Mean]) -> list[Markup]:
    """Draw the interval of each mean as a small picture, all on one scale."""
    values = [end for mean in means for end in (mean.low, mean.value, mean.high) if end is not None]
    lowest, across = min(values), (max(values) - min(values)) or 1.0
    pictures = []
    for mean in means:
        low, value, high = (
            100 * ((mean.value if end is None else end) - lowest) / across for end in (mean.low, mean.value, mean.high)
        )
        pictures.append(
            Markup(
                '<svg class="whisker" viewBox="-3 -5 106 10" preserveAspectRatio="none" aria-hidden="true">'
                '<path d="M{:.1f} 0H{:.1f}"/><path class="mean" d="M{:.1f} -4V4"/></svg>'
            ).format(low, high, value)
        )
    return pictures
