"""Several methods on the same truth: places, what can be told apart, where they differ, and frames side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

from markupsafe import Markup

from segjudge.analysis.rankings import Difference, Mean, Sums, differences, means
from segjudge.analysis.significance import cases_needed
from segjudge.evaluation_script.families.base.reports import Report, Row, bounds_of
from segjudge.families import tools_of
from segjudge.report.overview import first_metric, listed, origins
from segjudge.report.page import Section
from segjudge.report.tables import number, table

#: What is compared: sequences, of metrics that are means over their objects; else groups, always as many.
SEQUENCES, GROUPS = "sequences", "groups of images or videos"
#: Differences of kinds below this are not named.
SHOWN_FROM = 0.0005
#: What kinds cost a method.
Costs = Mapping[str, float]


def verdict(pair: Difference, table: Sums, cases_are: str = SEQUENCES) -> str:
    """Return a sentence on a pair: what the difference is, and whether it can be told from chance."""
    better, worse = table.ordered(pair)
    sign, cases = (1 if better == pair.one else -1), len(table.counts)
    rows = [table.algorithms.index(name) for name in (better, worse)]
    between = (table.sums[rows[0]] - table.sums[rows[1]]).tolist()
    won, lost = sum(one > 0 for one in between), sum(one < 0 for one in between)
    if table.smaller:
        won, lost = lost, won
    reach = ""
    if pair.low is not None and pair.high is not None:
        low, high = sorted((sign * pair.low, sign * pair.high))
        reach = f", 95 % {low:+.3f} to {high:+.3f}"
    text = (
        f"{better} − {worse}: {sign * pair.difference:+.3f}{reach}; "
        f"p {pair.p:.3g}, adjusted {pair.adjusted:.3g}; {won} won, {lost} lost, {cases - won - lost} tied"
    )
    if pair.apart:
        return f"{text}: {better} is better."
    needed = cases_needed(pair.difference, pair.error, cases, len(table.algorithms))
    many = f"about {needed}" if cases_are == SEQUENCES or not needed else f"{needed / cases:.1f} times as many"
    more = "" if needed is None else f"; to detect a difference of this size takes {many}"
    return f"{text}: cannot be told apart on {cases} {cases_are}{more}."


def difference_of_kinds(costs: Costs, base: Costs) -> str:
    """Return in which kinds a loss differs from another, those that differ most first."""
    changes = sorted(((kind, costs[kind] - base[kind]) for kind in base), key=lambda change: -abs(change[1]))
    return ", ".join(f"{kind} {more:+.3f}" for kind, more in changes if abs(more) >= SHOWN_FROM) or "the same"


@dataclass(frozen=True)
class ComparedMethods:
    """Methods, the first of which the others are compared with, and what can be told of them."""

    metric: str
    sums: Sums
    #: What is compared where metrics are means over the objects of sequences; else groups.
    sequences: list[str]
    #: What each kind of failure costs each method, where that is asked for.
    costs: Mapping[str, Costs]

    @cached_property
    def pairs(self) -> list[Difference]:
        """How each two differ."""
        return differences(self.sums)

    @cached_property
    def means(self) -> list[Mean]:
        """The mean of each, the best first."""
        found = means(self.sums, self.pairs, bounds=bounds_of(self.metric))
        return sorted(found, key=lambda one: one.value, reverse=not self.sums.smaller)

    @property
    def about(self) -> str:
        """What is compared."""
        counts = self.sums.counts
        if self.sequences:
            return f"{self.metric} over {len(counts)} {SEQUENCES} ({int(counts.sum())} objects)"
        return f"{self.metric} over {len(counts)} {GROUPS}, left out one by one"

    def verdicts(self) -> list[str]:
        """Return a sentence on each pair."""
        return [verdict(pair, self.sums, SEQUENCES if self.sequences else GROUPS) for pair in self.pairs]

    def sign(self, one: str, other: str) -> str:
        """Return whether one is better (+) or worse (−) than the other, or cannot be told apart (=)."""
        better = self.sums.better_pairs(self.pairs)
        return "+" if (one, other) in better else "−" if (other, one) in better else "="

    def kinds(self) -> list[str]:
        """Return a sentence on each method but the first: which kinds cost it more or less than that one."""
        (first, base), *others = self.costs.items()
        lines = []
        for name, costs in others:
            # Only the kinds of sequences sum to what is lost.
            more = f" {sum(costs.values()) - sum(base.values()):+.3f}" if self.sequences else ","
            lines.append(f"{name} loses{more} beside {first}: {difference_of_kinds(costs, base)}")
        return lines

    def places(self) -> list[tuple[str, str, float, str]]:
        """Return the places that each method may have, its name, its mean, and the interval of that."""
        return [
            (
                str(one.place_from) if one.place_from == one.place_to else f"{one.place_from}–{one.place_to}",
                one.name,
                one.value,
                "too few" if one.low is None else f"{number(one.low)} to {number(one.high)}",
            )
            for one in self.means
        ]

    def text(self) -> str:
        """Return what is compared, the places and the verdicts as a terminal shows them."""
        body = [[place, name, number(value), reach] for place, name, value, reach in self.places()]
        places = table(["place", "method", self.metric, "95 %"], body)
        return "\n".join([f"{self.about}\n\n{places}\n", *self.verdicts()])


def whiskers(rows: list[Mean]) -> list[Markup]:
    """Return the interval of each mean as a small picture, all on one scale."""
    ends = [end for one in rows for end in (one.low, one.value, one.high) if end is not None]
    first, across = min(ends), (max(ends) - min(ends)) or 1.0
    pictures = []
    for one in rows:
        low, value, high = (
            100 * ((one.value if end is None else end) - first) / across for end in (one.low, one.value, one.high)
        )
        pictures.append(
            Markup(
                '<svg class="whisker" viewBox="-3 -5 106 10" preserveAspectRatio="none" aria-hidden="true">'
                '<path d="M{:.1f} 0H{:.1f}"/><path class="mean" d="M{:.1f} -4V4"/></svg>'
            ).format(low, high, value)
        )
    return pictures


def methods_section(
    found: ComparedMethods, about: str, columns: Iterable[str], cells: Mapping[str, list[object]], **more: object
) -> Section:
    """Return places, verdicts and costs; `cells` are what columns hold of each method."""
    names = [row.name for row in found.means]
    rows = zip(found.places(), whiskers(found.means), names, strict=True)
    values = {
        "about": about,
        "columns": ["place", "method", found.metric, "95 %", "", *columns],
        "rows": [[*place, picture, *cells[name]] for place, picture, name in rows],
        "points": [],
        "bars": [],
        "verdicts": found.verdicts(),
        "names": names,
        "apart": {(one, other): found.sign(one, other) for one, other in permutations(names, 2)},
        "kinds": found.kinds(),
        **more,
    }
    return Section("methods", "Methods", values)


def group_comparison(
    found: ComparedMethods, reports: Mapping[str, Report], provenance: Mapping[str, object]
) -> list[Section]:
    """Return the sections of several methods of instances, or of a track that counts by unit: regressions first."""
    about = f"{found.about}. Places and verdicts hold for all pairs together (sign flips by group, Holm)."
    cells: dict[str, list[object]] = {name: [*costs.values()] for name, costs in found.costs.items()}
    sections = [methods_section(found, about, next(iter(found.costs.values())), cells)]
    categories = {}
    for name, report in reports.items():
        rows = report.rows()["categories"]
        metric = first_metric(rows)
        categories[name] = {str(row["name"]): row[metric] for row in rows}
    sections.append(listed("Categories", _beside(categories), "Those first in which the second lost most."))
    units = {name: tools_of(report.protocol.track).list_unit_costs(report) for name, report in reports.items()}
    if all(units.values()):
        sections.append(listed("Images or videos", _beside(units), "What each costs, regressions first."))
    return [*sections, origins([], provenance)]


def _beside(values: dict[str, dict[str, float | None]]) -> list[Row]:
    """Return what each method has in each case, and the differences from the first, regressions first."""
    (first, base), *others = values.items()
    rows = []
    for case in base:
        row: Row = {"name": case, **{name: one[case] for name, one in values.items()}}
        for name, one in others:
            mine, before = one[case], base[case]
            row[f"{name} − {first}"] = None if mine is None or before is None else mine - before
        rows.append(row)
    change = f"{others[0][0]} − {first}"
    return sorted(rows, key=lambda row: (row[change] is None, row[change] or 0.0))
