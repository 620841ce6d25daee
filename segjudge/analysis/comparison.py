"""Methods on the same truth: how they differ, which can be told apart, what failures cost each, and how that is shown.

`segjudge.compare` returns it: with tables, words and a page, as Markdown for pull requests, as LaTeX for papers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.evaluation_script.families.base.reports import Report, bounds_of
from segjudge.evaluation_script.files.problems import name_hint, name_list, printable, quantity
from segjudge.evaluation_script.scoring import VERSION
from segjudge.families import FamilyTools, prefers_smaller, tools_of
from segjudge.families.base.tools import MethodCosts, ScoredMethod
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
from segjudge.report.tables import (
    PLAIN,
    SAME,
    Look,
    first_metric,
    format_difference,
    format_number,
    format_table,
    key_of_rows,
    to_frame,
)
from segjudge.scoring.document import cases_of
from segjudge.scoring.figures import write_film
from segjudge.scoring.notebook import draw_worst, is_quick, render_shown
from segjudge.scoring.scores import Scores
from segjudge.system.errors import OptionError, UsageError

from .plots import plot_means
from .score_tables import (
    AlgorithmScores,
    check_alike,
    choose_ranking_metric,
    choose_split,
    name_scores,
    sum_groups,
    sum_objects,
)
from .statistics import GROUPS, SEQUENCES, Difference, Mean, Sums, compare_pairs, describe_pair, estimate_means

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from segjudge.report.page import PageOptions


#: A case whose value crosses it has flipped.
_HALF = 0.5
#: So many cases are listed, and changes of a kind below this are not.
_MOST_CASES, _SHOWN_FROM = 10, 0.0005
#: Metrics that a table of a paper has where none are named.
_MOST_METRICS = 6
_BOLD = "Bold: better than every other method (sign flips, adjusted by Holm for all pairs, 5 %)"
#: How LaTeX writes what it would take for a command.
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "−": "--", "–": "--",
}  # fmt: skip


class CaseChange(NamedTuple):
    """What the first and the last method have in a sequence, category or unit."""

    case: str
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def has_flipped(self) -> bool:
        """Whether one half lies between them."""
        return (self.before >= _HALF) != (self.after >= _HALF)


@dataclass(frozen=True, repr=False)
class Comparison(ShownPage):
    """Methods, the first of which the others are compared with, what can be told of them, and how that is shown."""

    metric: str
    sums: Sums
    #: What is compared where metrics are means over the objects of sequences; else groups.
    sequences: list[str]
    #: The least and the most that the metric may be.
    bounds: tuple[float, float] = (0.0, 1.0)
    methods: Mapping[str, Scores] = field(default_factory=dict)
    split: str = ""

    # ── what can be told apart ──

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
            return f"{self.metric} over {quantity(len(counts), 'sequence')} ({quantity(int(counts.sum()), 'object')})"
        return f"{self.metric} over {len(counts)} {GROUPS}, left out one by one"

    def verdicts(self) -> list[str]:
        return [describe_pair(pair, self.sums, SEQUENCES if self.sequences else GROUPS) for pair in self.pairs]

    @property
    def verdict(self) -> str:
        """A sentence on each pair: its difference, and whether that can be told from chance."""
        return "\n".join(self.verdicts())

    def describe_best(self) -> str:
        """Say which method is better than all others, or which ones cannot be told apart from the best."""
        best, *rivals = self.means
        ties = [mean.name for mean in rivals if self.sign(best.name, mean.name) == "="]
        numbers = [format_number(mean.value) for mean in self.means[:2]]
        values = f"{self.metric} is {numbers[0]}, beside {numbers[1]} of {rivals[0].name}"
        if ties:
            return f"{best.name} cannot be told apart from {name_list(ties)}: {values}."
        return f"{best.name} is better than {rivals[0].name if len(rivals) == 1 else 'all others'}: {values}."

    def sign(self, row: str, column: str) -> str:
        """Whether a method is better (+) or worse (−) than another, or cannot be told apart (=)."""
        better = self.sums.better_pairs(self.pairs)
        return "+" if (row, column) in better else "−" if (column, row) in better else "="

    @property
    def gain(self) -> float:
        """By how much the last method is better than the first: below zero if it is worse."""
        means = {mean.name: mean.value for mean in self.means}
        names = self.sums.algorithms
        difference = means[names[-1]] - means[names[0]]
        return -difference if self.sums.smaller else difference

    def for_metric(self, metric: str) -> Comparison:
        """Compare the same methods by another metric."""
        return compare(self.methods, metric=metric, split=self.split)

    # ── kinds of failure, and cases ──

    @property
    def reports(self) -> dict[str, Report]:
        return {name: scores.choose_report(self.split) for name, scores in self.methods.items()}

    @property
    def protocol(self) -> FamilyProtocol:
        return next(iter(self.reports.values())).protocol

    @property
    def tools(self) -> FamilyTools:
        return tools_of(self.protocol.family)

    @cached_property
    def costs(self) -> Mapping[str, Mapping[str, float]]:
        """What each kind of failure costs each method; the files are read again, unless that was saved."""
        check_kinds(self.protocol, self.metric)
        saved = {name: self.methods[name].costs.get(report.split) for name, report in self.reports.items()}
        saved_costs = {name: costs for name, costs in saved.items() if costs}
        if len(saved_costs) == len(saved):
            return saved_costs
        return self.tools.compare_failures(self.open_methods(), None).costs

    @property
    def known_costs(self) -> Mapping[str, Mapping[str, float]]:
        """The same; nothing where failures of this metric have no kinds, or files are not at hand."""
        try:
            return self.costs
        except UsageError:
            return {}

    def describe_kinds(self) -> list[str]:
        """A sentence on each method but the first: which kinds cost it more or less than that one, if any."""
        names, lines = list(self.costs), []
        base = self.costs[names[0]] if names else {}
        for name in names[1:] if base else ():
            costs = self.costs[name]
            difference = format_difference(costs, base)
            if difference == SAME:
                lines.append(f"{name} loses as much as {names[0]}, and by the same kinds.")
                continue
            change = sum(costs.values()) - sum(base.values())
            # Only the kinds of sequences sum to what is lost.
            much = f"{abs(change):.3f} {'more' if change > 0 else 'less'} than"
            if not self.sequences:
                much = "by other kinds than"
            elif f"{abs(change):.3f}" == "0.000":
                much = "as much as"
            lines.append(f"{name} loses {much} {names[0]}: {difference}")
        return lines

    @cached_property
    def cases(self) -> dict[str, dict[str, float | None]]:
        """What each method has in each sequence, category or unit: by case, then by method."""
        cases: dict[str, dict[str, float | None]] = {}
        for name, report in self.reports.items():
            kind, rows = next(iter(report.rows().items()))
            metric = self.metric if rows and self.metric in rows[0] else first_metric(rows)
            for row in rows:
                cases.setdefault(str(row[key_of_rows(kind)]), {})[name] = row.get(metric)
        return cases

    @property
    def noun(self) -> str:
        """What the cases are called: sequences, categories."""
        return next(iter(next(iter(self.reports.values())).rows()))

    def changes(self) -> list[CaseChange]:
        """The cases in which both the first and the last method have a value, those that lost most first."""
        names = list(self.methods)
        changes = []
        for case, values in self.cases.items():
            before, after = values.get(names[0]), values.get(names[-1])
            if before is not None and after is not None:
                changes.append(CaseChange(case, before, after))
        return sorted(changes, key=lambda change: -change.change if self.sums.smaller else change.change)

    def places(self) -> list[tuple[str, str, float, str]]:
        """The places that each method may have, its name, its mean, and the interval of that."""
        return [
            (
                mean.places,
                mean.name,
                mean.value,
                "too few" if mean.low is None else f"{format_number(mean.low)} to {format_number(mean.high)}",
            )
            for mean in self.means
        ]

    def open_methods(self) -> list[ScoredMethod]:
        """Open again what was scored."""
        return [
            ScoredMethod(name, scores.open_inputs(), scores.choose_report(self.split), scores.provenance)
            for name, scores in self.methods.items()
        ]

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
        return _write_markdown(self, kinds=kinds)

    def latex(self, metrics: Sequence[str] = ()) -> str:
        """Write the table of a paper, for booktabs: intervals, and bold where a method is better than every other."""
        return _write_latex(self, metrics)

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
    scores_by_name = name_scores(methods)
    if len(scores_by_name) < 2:
        raise UsageError("compare needs two results at least")
    reports: dict[str, Report] = {}
    for name, scores in scores_by_name.items():
        by_split = {report.split: report for report in scores.reports}
        reports[name] = by_split[choose_split(name, list(by_split), split)]
    base = next(iter(reports.values()))
    metric = choose_metric(base.protocol, metric)
    in_groups = any(cases_of(report) is not None for report in reports.values())
    algorithms = [
        AlgorithmScores(
            name,
            report.protocol.name,
            report.values,
            [] if in_groups else report.rows()["objects"],
            origin={"rules": report.protocol, **_truth_of(scores_by_name[name])},
        )
        for name, report in reports.items()
    ]
    for algorithm in algorithms[1:]:
        check_alike(algorithms[0], algorithm)
    sums, sequences = (sum_groups(reports, metric), []) if in_groups else sum_objects(algorithms, metric)
    return Comparison(metric, sums, sequences, bounds_of(metric, base.protocol), scores_by_name, base.split)


def _truth_of(scores: Scores) -> dict[str, object]:
    truth = scores.provenance.get("truth")
    return {"truth": truth} if truth else {}


def choose_metric(protocol: FamilyProtocol, metric: str = "") -> str:
    """Choose what is compared; refuses a metric that the protocol lacks, before anything is scored."""
    metrics = [*protocol.metrics, *FAMILIES[protocol.family].own_metrics]
    if metric and metric not in metrics:
        raise UsageError(f"{protocol.name} has no metric {metric}{name_hint(metric, metrics)}")
    return choose_ranking_metric(protocol.metrics, metric)


def check_kinds(protocol: FamilyProtocol, metric: str, option: str = "kinds") -> None:
    """Refuse to tell kinds of failure where there are none, or none of this metric."""
    tools, ranked = tools_of(protocol.family), choose_ranking_metric(protocol.metrics)
    if tools.shares_loss and metric != ranked:
        raise OptionError(f"{option} has no meaning for {metric}, only for {ranked}")
    tools.check_kinds(protocol)


# ── the page ────────────────────────────────────────────────────────────────


def _make_methods(compared: Comparison, details: MethodCosts) -> Section:
    names = [mean.name for mean in compared.means]
    about = f"{compared.about}. Places and verdicts hold for all pairs together (sign flips by group, Holm)."
    if compared.sequences:
        counts = compared.sums.counts
        about = (
            f"{quantity(len(counts), 'sequence')}, {quantity(int(counts.sum()), 'object')}. Places and verdicts hold "
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


# ── pull requests ───────────────────────────────────────────────────────────


def _write_markdown(compared: Comparison, *, kinds: bool = True) -> str:
    """Write what a pull request shows of the first and the last method: gain, kinds, cases that flipped."""
    names = list(compared.sums.algorithms)
    before, after = names[0], names[-1]
    values = {mean.name: mean.value for mean in compared.means}
    sign = {"+": "better", "−": "worse", "=": "not told apart from chance"}[compared.sign(after, before)]
    gain = f"{values[after] - values[before]:+.3f}, {sign}"
    blocks = [
        f"### {compared.metric}: {format_number(values[before])} → {format_number(values[after])} ({gain})",
        _tabulate(
            ["method", compared.metric, "95 %", "place"],
            [[_name(name), format_number(value), reach, rank] for rank, name, value, reach in compared.places()],
        ),
        "\n".join(f"- {_text(line)}" for line in compared.verdicts()),
    ]
    if kinds and (table := _tabulate_kinds(compared, before, after)):
        blocks += ["**What grew and what shrank**", table]
    blocks += _list_flips(compared, before, after)
    protocol = compared.protocol
    truth = str(next(iter(compared.methods.values())).provenance.get("truth", "")).rpartition(":")[2][:12]
    origin = f"segjudge {VERSION}, {protocol.name} (revision {protocol.revision})"
    blocks.append(f"<sub>{origin}, {_text(compared.about)}{f', truth {truth}' if truth else ''}</sub>")
    return "\n\n".join(blocks) + "\n"


def _tabulate_kinds(compared: Comparison, before: str, after: str) -> str:
    """Show what each kind of failure costs both, those that changed most first; nothing where that is not known."""
    costs = compared.known_costs
    if not costs.get(before):
        return ""
    changes = {kind: costs[after][kind] - costs[before][kind] for kind in costs[before]}
    rows = [
        [
            kind,
            format_number(costs[before][kind]),
            format_number(costs[after][kind]),
            f"{change:+.3f} {'▲ grew' if change > 0 else '▼ shrank'}" if abs(change) >= _SHOWN_FROM else "–",
        ]
        for kind, change in sorted(changes.items(), key=lambda item: -abs(item[1]))
    ]
    return _tabulate(["kind of failure", _name(before), _name(after), "change"], rows)


def _list_flips(compared: Comparison, before: str, after: str) -> list[str]:
    """Say which cases crossed one half, and list those that changed most."""
    changes = compared.changes()
    if not changes:
        return []
    flips = [change for change in changes if change.has_flipped]
    fallen = sum(change.after < change.before for change in flips)
    cases, count = compared.noun.capitalize(), f"{len(flips)} of {len(changes)}"
    title = f"**{cases} that flipped to the other side of one half: {count}**"
    if flips:
        title += f" ({fallen} fell below, {len(flips) - fallen} rose to it or above)"
    header = [compared.noun, _name(before), _name(after), "change"]
    blocks = [title]
    if flips:
        blocks.append(_tabulate_cases(header, flips))
    moved = sorted(changes, key=lambda change: -abs(change.change))[:_MOST_CASES]
    table = _tabulate_cases(header, moved)
    blocks.append(f"<details><summary>Those that changed most</summary>\n\n{table}\n\n</details>")
    return blocks


def _tabulate_cases(header: list[str], changes: Sequence[CaseChange]) -> str:
    rows = [
        [_name(change.case), format_number(change.before), format_number(change.after), f"{change.change:+.3f}"]
        for change in changes[:_MOST_CASES]
    ]
    more = f"\n\n… and {len(changes) - _MOST_CASES} more" if len(changes) > _MOST_CASES else ""
    return _tabulate(header, rows) + more


def _tabulate(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table of Markdown: names to the left, numbers to the right."""
    ruler = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ruler, *rows))


def _name(name: str) -> str:
    """Write a name of somebody else's so that it is nothing but text: no link, no mention, no cell."""
    return f"`{printable(name).replace('`', chr(39)).replace('|', chr(92) + '|')}`"


def _text(text: str) -> str:
    """Write a sentence with names of somebody else's as text."""
    plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return re.sub(r"([\\`*_\[\]<>|#@])", r"\\\1", plain)


# ── papers ──────────────────────────────────────────────────────────────────


class _Column(NamedTuple):
    """A metric of a table."""

    metric: str
    #: None where the metric is no mean over cases, and has no interval that a difference could be tested by.
    means: dict[str, Mean] | None
    values: dict[str, float | None]
    #: It is a share, which papers write as hundredths.
    is_share: bool

    def number(self, value: float | None) -> str:
        if value is None:
            return "–"
        return f"{100 * value:.1f}".replace("-0.0", "0.0") if self.is_share else f"{value:.3f}".rstrip("0").rstrip(".")

    def cell(self, name: str) -> tuple[str, str, bool]:
        """The value of a method, its interval, and whether the method is better than every other."""
        mean = self.means[name] if self.means else None
        if mean is None:
            return self.number(self.values[name]), "", False
        interval = "" if mean.low is None else f"[{self.number(mean.low)}, {self.number(mean.high)}]"
        return self.number(mean.value), interval, mean.is_alone_best


def _write_latex(compared: Comparison, metrics: Sequence[str] = ()) -> str:
    """Write a table for LaTeX with booktabs: a row for each method, intervals below the values."""
    columns = _list_columns(compared, metrics)
    heads = [rf"{_escape(column.metric)} ${_arrow(column.metric, compared, 'latex')}$" for column in columns]
    lines = [
        f"% segjudge {VERSION}: {compared.protocol.name} (revision {compared.protocol.revision}), {compared.about}.",
        f"% Intervals: 95 %, Student's t. {_BOLD}.",
        rf"\begin{{tabular}}{{l{'c' * len(columns)}}}",
        r"\toprule",
        rf"Method & {' & '.join(heads)} \\",
        r"\midrule",
    ]
    for name in compared.sums.algorithms:
        cells = [column.cell(name) for column in columns]
        cells = [(_write_signs(value), _write_signs(reach), best) for value, reach, best in cells]
        values = [rf"\textbf{{{value}}}" if best else value for value, _, best in cells]
        intervals = [rf"{{\scriptsize {interval}}}" if interval else "" for _, interval, _ in cells]
        lines.append(rf"{_escape(printable(name))} & {' & '.join(values)} \\")
        if any(intervals):
            lines.append(rf" & {' & '.join(intervals)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _write_paper_markdown(compared: Comparison, metrics: Sequence[str] = ()) -> str:
    """Write the same table as Markdown."""
    columns = _list_columns(compared, metrics)
    rows = []
    for name in compared.sums.algorithms:
        cells = [column.cell(name) for column in columns]
        texts = [
            " ".join(filter(None, [f"**{value}**" if best else value, interval])) for value, interval, best in cells
        ]
        rows.append([_name(name), *texts])
    header = ["method", *(f"{_text(column.metric)} {_arrow(column.metric, compared, 'text')}" for column in columns)]
    return f"{_tabulate(header, rows)}\n\nIntervals: 95 %. {_BOLD}.\n"


def write_table(compared: Comparison, path: str, metrics: Sequence[str] = ()) -> str:
    """Write the table in the form that a path's ending names."""
    check_table(path)
    return _write_latex(compared, metrics) if path.endswith(".tex") else _write_paper_markdown(compared, metrics)


def check_table(path: str) -> None:
    if not path.endswith((".tex", ".md")):
        raise UsageError(f"{path}: a table is written as .tex or .md, by the ending of its name")


def _list_columns(compared: Comparison, metrics: Sequence[str]) -> list[_Column]:
    reports = compared.reports
    names = list(metrics) or [*dict.fromkeys([compared.metric, *compared.protocol.metrics])][:_MOST_METRICS]
    columns = []
    for metric in names:
        try:
            means = {mean.name: mean for mean in compared.for_metric(metric).means}
        except UsageError:
            if any(metric not in report.values for report in reports.values()):
                raise
            means = None  # it is no mean over cases
        values = {name: report.values[metric] for name, report in reports.items()}
        is_share = max(map(abs, bounds_of(metric, compared.protocol))) <= 1
        columns.append(_Column(metric, means, values, is_share))
    return columns


def _arrow(metric: str, compared: Comparison, form: str) -> str:
    smaller = prefers_smaller(metric, compared.protocol.name)
    return {"latex": r"\downarrow" if smaller else r"\uparrow", "text": "↓" if smaller else "↑"}[form]


def _write_signs(number: str) -> str:
    """Write the signs of numbers as such, and the dash of one that is absent."""
    return number.replace("-", "$-$").replace("–", "--")


def _escape(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in text)
