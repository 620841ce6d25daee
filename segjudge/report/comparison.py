"""Several methods on the same truth: places, what can be told apart, where they differ, and frames side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from segjudge.evaluation_script.failure_kinds import KINDS
from segjudge.evaluation_script.sequence_losses import SequenceLosses
from segjudge.statistics.rankings import Difference, Mean, Sums
from segjudge.statistics.significance import cases_needed

from .page import PageOptions, Section, link
from .sequence_losses import LossReader, MethodLosses
from .sequence_sections import frames_section, loss_cells, parts_of_bar
from .tables import number

#: What is compared, where nothing else is said; of groups there are always as many.
CASES = "sequences"
#: Differences of kinds below this are not named.
SHOWN_FROM = 0.0005


def verdict(pair: Difference, table: Sums, cases_are: str = CASES) -> str:
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
    many = f"about {needed}" if cases_are == CASES or not needed else f"{needed / cases:.1f} times as many"
    more = "" if needed is None else f"; if it is real, {many} would tell"
    return f"{text}: cannot be told apart on {cases} {cases_are}{more}."


def place_row(one: Mean) -> tuple[str, str, float, str]:
    """Return the places that a method may have, its name, its mean, and the interval of that."""
    place = str(one.place_from) if one.place_from == one.place_to else f"{one.place_from}–{one.place_to}"
    return place, one.name, one.value, "too few" if one.low is None else f"{number(one.low)} to {number(one.high)}"


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


def beside(one: MethodLosses, base: MethodLosses) -> str:
    """Return a sentence on how much more a method loses than another, and by which kinds."""
    kinds = difference_of_kinds(one.shares, base.shares)
    return f"{one.name} loses {sum(one.shares) - sum(base.shares):+.3f} beside {base.name}: {kinds}"


def difference_of_kinds(shares: list[float], base: list[float]) -> str:
    """Return in which kinds a loss differs from another, those that differ most first."""
    parts = sorted(zip(KINDS, shares, base, strict=True), key=lambda part: -abs(part[1] - part[2]))
    text = ", ".join(f"{kind} {mine - other:+.3f}" for kind, mine, other in parts if abs(mine - other) >= SHOWN_FROM)
    return text or "the same"


@dataclass(frozen=True)
class ComparedMethods:
    """Methods, the first of which the others are compared with, and what can be said of them."""

    methods: list[MethodLosses]
    sums: Sums
    means: list[Mean]
    pairs: list[Difference]


def comparison_sections(
    compared: ComparedMethods, reader: LossReader, options: PageOptions, origins: Mapping[str, object]
) -> list[Section]:
    """Return the sections of several methods."""
    methods = compared.methods
    return [
        _methods(compared),
        _sequences(methods),
        frames_section(reader, methods, _by_difference(methods), options),
        Section("origins", "What was scored", {"warnings": [], "provenance": json.dumps(origins, indent=1)}),
    ]


def _methods(compared: ComparedMethods) -> Section:
    methods, table, rows, pairs = compared.methods, compared.sums, compared.means, compared.pairs
    by_name = {method.name: method for method in methods}
    names = [row.name for row in rows]
    apart = {(one, other): sign_of(table, pairs, one, other) for one in names for other in names if one != other}
    return Section(
        "methods",
        "Methods",
        {
            "about": f"{len(table.counts)} sequences, {int(table.counts.sum())} objects. Places and verdicts hold "
            "for all pairs together (sign flips by sequence, adjusted by Holm).",
            "columns": ["place", "method", "J&F-Mean", "95 %", "", "loss", "by kind", *KINDS],
            "rows": [
                [*place_row(row), picture, *loss_cells(by_name[row.name].shares)]
                for row, picture in zip(rows, whiskers(rows), strict=True)
            ],
            "points": _points(methods),
            "axes": [method.name for method in methods[:2]],
            "bars": [(row.name, parts_of_bar(by_name[row.name].shares), sum(by_name[row.name].shares)) for row in rows],
            "verdicts": [verdict(pair, table) for pair in pairs],
            "names": names,
            "apart": apart,
            "kinds": [beside(one, methods[0]) for one in methods[1:]],
        },
    )


def _points(methods: list[MethodLosses]) -> list[tuple[str, str, float, float]]:
    """Return what two methods reach in each sequence: its name, the stream that opens it, and both values."""
    base = {one.name: 1 - one.lost for one in methods[0].sequences}
    return [(one.name, one.stream, base[one.name], 1 - one.lost) for one in methods[1].sequences]


def sign_of(table: Sums, pairs: list[Difference], one: str, other: str) -> str:
    """Return whether one is better (+) or worse (−) than the other, or cannot be told apart (=)."""
    for pair in pairs:
        if {pair.one, pair.other} == {one, other}:
            return "=" if not pair.apart else "+" if table.ordered(pair)[0] == one else "−"
    return "="


def _by_difference(methods: list[MethodLosses]) -> list[SequenceLosses]:
    """Return the sequences of the second method, those first in which it lost most beside the first."""
    base = {one.name: one.lost for one in methods[0].sequences}
    return sorted(methods[1].sequences, key=lambda one: (base[one.name] - one.lost, one.name))


def _sequences(methods: list[MethodLosses]) -> Section:
    base, *others = ({one.name: one for one in method.sequences} for method in methods)
    rows = []
    for one in _by_difference(methods):
        found = [method[one.name] for method in (base, *others)]
        rows.append(
            [
                link(one.name, one.stream), len(one.objects), *(1 - method.lost for method in found),
                *(found[0].lost - method.lost for method in found[1:]),
                difference_of_kinds(found[1].shares, found[0].shares),
            ]
        )  # fmt: skip
    names = [method.name for method in methods]
    columns = [
        "sequence", "objects", *names, *(f"{name} − {names[0]}" for name in names[1:]), f"why {names[1]} loses",
    ]  # fmt: skip
    return Section("tables", "Sequences", {"tables": {"sequences": {"columns": columns, "rows": rows}}})
