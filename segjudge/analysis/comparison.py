"""Several methods on the same truth: places, what can be told apart, what failures cost each, and the page of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING

from markupsafe import Markup

from segjudge.evaluation_script.families.base.reports import Report, bounds_of
from segjudge.report.page import ReportPage, Section, describe_digests, make_origins
from segjudge.report.tables import format_difference, format_number, format_table
from segjudge.scoring.document import cases_of

from .rankings import Difference, Mean, Sums, compare_pairs, estimate_means
from .score_tables import AlgorithmScores, sum_groups, sum_objects
from .statistics import cases_needed

if TYPE_CHECKING:
    from segjudge.families.base.tools import MethodCosts

#: What is compared: sequences, of metrics that are means over their objects; else groups, always as many.
_SEQUENCES, _GROUPS = "sequences", "groups of images or videos"


@dataclass(frozen=True)
class ComparedMethods:
    """Methods, the first of which the others are compared with, and what can be told of them."""

    metric: str
    sums: Sums
    #: What is compared where metrics are means over the objects of sequences; else groups.
    sequences: list[str]
    #: What each kind of failure costs each method, where that is asked for.
    costs: Mapping[str, Mapping[str, float]]
    #: The least and the most that the metric may be.
    bounds: tuple[float, float] = (0.0, 1.0)

    @cached_property
    def pairs(self) -> list[Difference]:
        """How each two differ."""
        return compare_pairs(self.sums)

    @cached_property
    def means(self) -> list[Mean]:
        """The mean of each, the best first."""
        means = estimate_means(self.sums, self.pairs, bounds=self.bounds)
        return sorted(means, key=lambda mean: mean.value, reverse=not self.sums.smaller)

    @property
    def about(self) -> str:
        """What is compared."""
        counts = self.sums.counts
        if self.sequences:
            return f"{self.metric} over {len(counts)} {_SEQUENCES} ({int(counts.sum())} objects)"
        return f"{self.metric} over {len(counts)} {_GROUPS}, left out one by one"

    def verdicts(self) -> list[str]:
        return [describe_pair(pair, self.sums, _SEQUENCES if self.sequences else _GROUPS) for pair in self.pairs]

    def sign(self, row: str, column: str) -> str:
        """Whether a method is better (+) or worse (−) than another, or cannot be told apart (=)."""
        better = self.sums.better_pairs(self.pairs)
        return "+" if (row, column) in better else "−" if (column, row) in better else "="

    def kinds(self) -> list[str]:
        """A sentence on each method but the first: which kinds cost it more or less than that one, if any."""
        names = list(self.costs)
        base = self.costs[names[0]]
        lines = []
        for name in names[1:] if base else ():
            costs = self.costs[name]
            # Only the kinds of sequences sum to what is lost.
            change = f" {sum(costs.values()) - sum(base.values()):+.3f}" if self.sequences else ","
            lines.append(f"{name} loses{change} beside {names[0]}: {format_difference(costs, base)}")
        return lines

    def places(self) -> list[tuple[str, str, float, str]]:
        """The places that each method may have, its name, its mean, and the interval of that."""
        return [
            (
                str(mean.place_from) if mean.place_from == mean.place_to else f"{mean.place_from}–{mean.place_to}",
                mean.name,
                mean.value,
                "too few" if mean.low is None else f"{format_number(mean.low)} to {format_number(mean.high)}",
            )
            for mean in self.means
        ]

    def text(self) -> str:
        """What is compared, the places and the verdicts as a terminal shows them."""
        body = [[rank, name, format_number(value), reach] for rank, name, value, reach in self.places()]
        places = format_table(["place", "method", self.metric, "95 %"], body)
        return "\n".join([f"{self.about}\n\n{places}\n", *self.verdicts()])


def compare_methods(reports: Mapping[str, Report], metric: str, details: MethodCosts | None = None) -> ComparedMethods:
    """Compare methods by their reports on one split: by sequence where the metric is a mean over objects."""
    costs = details.costs if details else {}
    bounds = bounds_of(metric, next(iter(reports.values())).protocol)
    if any(cases_of(report) is not None for report in reports.values()):
        return ComparedMethods(metric, sum_groups(reports, metric), [], costs, bounds)
    scores = [
        AlgorithmScores(name, report.protocol.name, report.values, report.rows()["objects"])
        for name, report in reports.items()
    ]
    sums, sequences = sum_objects(scores, metric)
    return ComparedMethods(metric, sums, sequences, costs, bounds)


def describe_pair(pair: Difference, table: Sums, cases_are: str = _SEQUENCES) -> str:
    """Say in a sentence what the difference of a pair is, and whether it can be told from chance."""
    better, worse = table.sort_pair(pair)
    sign, cases = (1 if better == pair.name else -1), len(table.counts)
    rows = [table.algorithms.index(name) for name in (better, worse)]
    between = (table.sums[rows[0]] - table.sums[rows[1]]).tolist()
    cases_won, cases_lost = sum(value > 0 for value in between), sum(value < 0 for value in between)
    if table.smaller:
        cases_won, cases_lost = cases_lost, cases_won
    interval = ""
    if pair.low is not None and pair.high is not None:
        low, high = sorted((sign * pair.low, sign * pair.high))
        interval = f", 95 % {low:+.3f} to {high:+.3f}"
    text = (
        f"{better} − {worse}: {sign * pair.difference:+.3f}{interval}; "
        f"p {pair.p:.3g}, adjusted {pair.adjusted:.3g}; "
        f"{cases_won} won, {cases_lost} lost, {cases - cases_won - cases_lost} tied"
    )
    if pair.apart:
        return f"{text}: {better} is better."
    needed = cases_needed(pair.difference, pair.error, cases, len(table.algorithms))
    many = f"about {needed}" if cases_are == _SEQUENCES or not needed else f"{needed / cases:.1f} times as many"
    outlook = "" if needed is None else f"; to detect a difference of this size takes {many}"
    return f"{text}: cannot be told apart on {cases} {cases_are}{outlook}."


# ── the page ────────────────────────────────────────────────────────────────


def make_comparison(
    compared: ComparedMethods, details: MethodCosts, provenances: Mapping[str, Mapping[str, object]]
) -> ReportPage:
    """Make the page of several methods: places, verdicts and costs, and what their family shows of them."""
    sections = [_make_methods(compared, details), *details.sections, make_origins([], provenances)]
    return ReportPage(" · ".join(provenances), sections, describe_digests(*provenances.values()))


def _make_methods(compared: ComparedMethods, details: MethodCosts) -> Section:
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
        "columns": ["place", "method", compared.metric, "95 %", "", *details.columns],
        "rows": [[*cells, picture, *details.cells[name]] for cells, picture, name in rows],
        "points": details.points,
        "axes": list(details.costs)[:2],
        "bars": [
            (name, details.bars[name], sum(details.costs[name].values())) for name in names if name in details.bars
        ],
        "verdicts": compared.verdicts(),
        "names": names,
        "apart": {(row, column): compared.sign(row, column) for row, column in permutations(names, 2)},
        "kinds": compared.kinds(),
    }
    return Section("methods", "Methods", values, package="segjudge.analysis")


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
