"""Comparisons of methods on the same truth: differences, significance, causes, and their presentation.

`segjudge.compare` returns it: with tables, words and a page, as Markdown for pull requests, as LaTeX for papers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.evaluation_script.families.base.reports import Report, bounds_of
from segjudge.evaluation_script.files.problems import name_hint, name_list, quantity
from segjudge.evaluation_script.scoring import VERSION
from segjudge.evaluation_script.scoring.answer import limit_warnings
from segjudge.families import FamilyTools, describe_unknown_metric, prefers_smaller, tools_of
from segjudge.families.base.tools import MethodCosts, ScoredMethod
from segjudge.report.browser import PicturedPage
from segjudge.report.page import (
    BY_CHANGE,
    PLAYER,
    PageOptions,
    ReportPage,
    Section,
    add_film,
    describe_digests,
    make_changes,
    make_origins,
)
from segjudge.report.sentences import HIDDEN, LITTLE
from segjudge.report.tables import (
    LOOK,
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
from segjudge.scoring.figures import write_film
from segjudge.scoring.notebook import draw_worst, is_quick, render_with_style
from segjudge.scoring.scores import Scores, cases_of
from segjudge.system.arguments import FLAG, SEVERAL, TEXT, Kind, check_arguments, check_options
from segjudge.system.errors import OptionError, UsageError

from .paper_tables import Column, escape_name, escape_text, format_latex, format_markdown, tabulate
from .plots import plot_means
from .score_tables import (
    AlgorithmScores,
    check_comparable,
    choose_ranking_metric,
    choose_split,
    name_scores,
    pseudo_values_by_group,
    sum_objects,
)
from .statistics import GROUPS, SEQUENCES, Difference, Mean, Sums, compare_pairs, describe_pair, estimate_means

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


#: The value that a flipped case crosses.
_HALF = 0.5
#: The maximum number of listed cases, and the smallest listed change of a kind.
_MOST_CASES, _SHOWN_FROM = 10, 0.0005
#: The maximum number of warnings in a pull request.
_MOST_WARNINGS = 3
#: The number of metrics in a paper's table by default.
_MOST_METRICS = 6


class CaseChange(NamedTuple):
    """A case (sequence, category or unit) with the values of the first and the last method."""

    case: str
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def has_flipped(self) -> bool:
        """Return whether the values lie on different sides of one half."""
        return (self.before >= _HALF) != (self.after >= _HALF)


@dataclass(frozen=True, repr=False)
class Comparison(PicturedPage):
    """A comparison of methods with the first one: statistics, causes and presentation."""

    metric: str
    sums: Sums
    #: The sequences, if metrics are means over their objects; otherwise the groups.
    sequences: list[str]
    #: The minimum and the maximum of the metric.
    bounds: tuple[float, float] = (0.0, 1.0)
    methods: Mapping[str, Scores] = field(default_factory=dict)
    split: str = ""

    # ── significant differences ──

    @cached_property
    def pairs(self) -> list[Difference]:
        """Return the difference of each pair of methods."""
        return compare_pairs(self.sums)

    @cached_property
    def means(self) -> list[Mean]:
        """Return the mean of each method, the best first."""
        means = estimate_means(self.sums, self.pairs, bounds=self.bounds)
        return sorted(means, key=lambda mean: mean.value, reverse=not self.sums.smaller)

    @property
    def about(self) -> str:
        """Return the description of the comparison."""
        counts = self.sums.counts
        about = f"{self.metric} over {len(counts)} {GROUPS}, each left out once"
        if self.sequences:
            about = f"{self.metric} over {quantity(len(counts), 'sequence')} ({quantity(int(counts.sum()), 'object')})"
        return "; ".join([about, *self.notes])

    @property
    def notes(self) -> list[str]:
        """Return a note if the scores of this split are hidden from participants."""
        is_hidden = any(self.split in scores.hidden for scores in self.methods.values())
        return [f"{self.split} {HIDDEN}"] if is_hidden else []

    @property
    def warnings(self) -> list[str]:
        """Return the warnings about the results of each method, after its name."""
        return [f"{name}: {line}" for name, report in self.reports.items() for line in limit_warnings(report.warnings)]

    def verdicts(self) -> list[str]:
        return [describe_pair(pair, self.sums, SEQUENCES if self.sequences else GROUPS) for pair in self.pairs]

    @property
    def verdict(self) -> str:
        """Return a sentence per pair: its difference, and whether it is significant."""
        return "\n".join(self.verdicts())

    def describe_best(self) -> str:
        """Return the sentence that names the best method, or the methods tied with it."""
        best, *rivals = self.means
        ties = [mean for mean in rivals if self.sign(best.name, mean.name) == "="]
        nearest = (ties or rivals)[0]
        values = (
            f"{self.metric} is {format_number(best.value)}, against {format_number(nearest.value)} for {nearest.name}"
        )
        if ties:
            return (
                f"{best.name} does not differ significantly from {name_list([mean.name for mean in ties])}: {values}."
            )
        return f"{best.name} is better than {rivals[0].name if len(rivals) == 1 else 'all others'}: {values}."

    def sign(self, row: str, column: str) -> str:
        """Return whether a method is significantly better (+) or worse (−) than another, or neither (=)."""
        for argument, name in (("row", row), ("column", column)):
            check_arguments(TEXT, **{argument: name})
            if name not in self.sums.algorithms:
                raise UsageError(f"there is no method {name!r:.60}{name_hint(name, self.sums.algorithms)}")
        better = self.sums.better_pairs(self.pairs)
        return "+" if (row, column) in better else "−" if (column, row) in better else "="

    @property
    def gain(self) -> float:
        """Return the gain of the last method over the first; negative if it is worse."""
        means = {mean.name: mean.value for mean in self.means}
        names = self.sums.algorithms
        difference = means[names[-1]] - means[names[0]]
        return -difference if self.sums.smaller else difference

    def for_metric(self, metric: str) -> Comparison:
        """Return the comparison of the same methods by another metric."""
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
        """Return the cost of each kind of failure per method, reading the files again unless costs were saved."""
        check_kinds(self.protocol, self.metric)
        saved = {name: self.methods[name].costs.get(report.split) for name, report in self.reports.items()}
        saved_costs = {name: costs for name, costs in saved.items() if costs}
        if len(saved_costs) == len(saved):
            return saved_costs
        return self.tools.compare_failures(self.open_methods(), None).costs

    @property
    def known_costs(self) -> Mapping[str, Mapping[str, float]]:
        """Return `costs`, or nothing if the metric has no kinds or files are missing."""
        try:
            return self.costs
        except UsageError:
            return {}

    def describe_kinds(self) -> list[str]:
        """Return a sentence per method after the first: the kinds that cost it more or less."""
        names, lines = list(self.costs), []
        base = self.costs[names[0]] if names else {}
        for name in names[1:] if base else ():
            costs = self.costs[name]
            difference = format_difference(costs, base)
            if difference == SAME:
                lines.append(f"Each kind of error costs {name} as much as {names[0]}.")
            elif self.sequences:  # only kinds of sequences sum to the loss
                change = sum(costs.values()) - sum(base.values())
                much = f"{abs(change):.3f} {'more' if change > 0 else 'less'} than"
                if f"{abs(change):.3f}" == "0.000":
                    much = "as much as"
                lines.append(f"{name} loses {much} {names[0]}: {difference}")
            else:
                lines.append(f"Kinds of error that cost {name} more (+) or less (−) than {names[0]}: {difference}")
        return lines

    @cached_property
    def scores_by_case(self) -> dict[str, dict[str, float | None]]:
        """Return the score of each method in each sequence, category or unit: by case, then by method."""
        cases: dict[str, dict[str, float | None]] = {}
        for name, report in self.reports.items():
            kind, rows = next(iter(report.rows().items()))
            metric = self.metric if rows and self.metric in rows[0] else first_metric(rows)
            for row in rows:
                cases.setdefault(str(row[key_of_rows(kind)]), {})[name] = row.get(metric)
        return cases

    @property
    def noun(self) -> str:
        """Return the noun of the cases: sequences, categories."""
        return next(iter(next(iter(self.reports.values())).rows()))

    def changes(self) -> list[CaseChange]:
        """Return the cases where the first and last method have values, largest loss first."""
        names = list(self.methods)
        changes = []
        for case, values in self.scores_by_case.items():
            before, after = values.get(names[0]), values.get(names[-1])
            if before is not None and after is not None:
                changes.append(CaseChange(case, before, after))
        return sorted(changes, key=lambda change: -change.change if self.sums.smaller else change.change)

    def places(self) -> list[tuple[str, str, float, str]]:
        """Return per method its range of ranks, name, mean and interval."""
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
        """Open the scored files again."""
        return [
            ScoredMethod(name, scores.open_inputs(), scores.choose_report(self.split), scores.provenance)
            for name, scores in self.methods.items()
        ]

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        quick = all(is_quick(scores, self.split) for scores in self.methods.values())
        costs = self.known_costs if quick else {}
        bars = {name: bar for name, kinds in costs.items() if (bar := self.tools.make_bar(kinds))}
        changes = self.changes()
        return render_with_style(
            "segjudge.analysis/comparison.html",
            self.reports.values(),
            compared=self,
            bars=bars,
            sentences=self.describe_kinds() if costs else [],
            film=draw_worst(self.methods, self.split, changes[0].case if changes else ""),
        )

    # ── tables ──

    @property
    def kinds(self) -> DataFrame:
        """Return the cost of each kind of failure: a row per method, a column per kind."""
        return to_frame([{"method": name, **costs} for name, costs in self.costs.items()])

    @property
    def table(self) -> DataFrame:
        """Return rank, mean and interval of each method, the best first."""
        return to_frame([{**asdict(mean), "places": mean.places} for mean in self.means])

    @property
    def differences(self) -> DataFrame:
        """Return per pair of methods the difference, its interval, p, and adjusted p."""
        return to_frame([{**asdict(pair), "apart": pair.apart} for pair in self.pairs])

    # ── presentation ──

    def text(self, look: Look = PLAIN) -> str:
        """Return the comparison, ranks and verdicts as text for a terminal."""
        check_arguments(LOOK, look=look)
        body = [[rank, name, format_number(value), reach] for rank, name, value, reach in self.places()]
        places = format_table(["place", "method", self.metric, "95 %"], body, look)
        return "\n".join([f"{self.about}\n\n{places}\n", *self._paint_verdicts(look)])

    def _paint_verdicts(self, look: Look) -> list[str]:
        return [
            look.paint(line, "good" if pair.apart else "faint")
            for line, pair in zip(self.verdicts(), self.pairs, strict=True)
        ]

    def kinds_text(self, look: Look = PLAIN) -> str:
        """Return the cost of each kind of failure and the differences between methods as text."""
        check_arguments(LOOK, look=look)
        kinds = list(next(iter(self.costs.values())))
        total = f"1 − {self.metric.removesuffix('-Mean')}" if self.tools.shares_loss else ""
        rows = [
            [name, *([format_number(sum(costs.values()))] if total else []), *map(format_number, costs.values())]
            for name, costs in self.costs.items()
        ]
        title = "Where the loss comes from" if total else "Loss by kind of error"
        table = format_table(["method", *([total] if total else []), *kinds], rows, look)
        return "\n".join([f"\n{title} (docs/ranking.md):", table, *self.describe_kinds()])

    def document(self, *, kinds: bool = False) -> dict[str, Any]:
        """Return everything as the document of `compare --json`."""
        check_arguments(FLAG, kinds=kinds)
        sequences = {"sequences": self.sequences} if self.sequences else {}
        pairs = [pair.document() for pair in self.pairs]
        costs = {"kinds": self.costs} if kinds else {}
        warnings = {"warnings": self.warnings} if self.warnings else {}
        means = list(map(asdict, self.means))
        return {"metric": self.metric, **sequences, "means": means, "pairs": pairs, **costs, **warnings}

    def markdown(self, *, kinds: bool = True) -> str:
        """Return Markdown for a pull request: ranks, changes by kind, and flipped cases."""
        check_arguments(FLAG, kinds=kinds)
        return _write_markdown(self, kinds=kinds)

    def latex(self, metrics: Sequence[str] = ()) -> str:
        """Return the table of a paper in LaTeX (booktabs): intervals, and significantly best methods in bold."""
        check_arguments(SEVERAL, metrics=metrics)
        columns = _list_columns(self, [metrics] if isinstance(metrics, str) else metrics)
        about = f"{self.protocol.name} (revision {self.protocol.revision}), {self.about}"
        return format_latex(columns, self.sums.algorithms, about)

    def film(self, path: str | os.PathLike[str], **choice: Any) -> None:
        """Write frames of a sequence as a figure with one row for the truth and each method.

        By default it is the sequence in which the last method loses most compared with the first; the options are
        those of `Scores.film`.
        """
        changes = self.changes()
        choice.setdefault("sequence", changes[0].case if changes else "")
        write_film(self.open_methods(), os.fspath(path), **choice)

    def plot(self) -> Figure:
        """Draw the mean of each method with its interval; needs matplotlib."""
        return plot_means(self.metric, self.means)

    def _explain_differences(self, options: PageOptions) -> MethodCosts:
        """Return the explanation of differences by masks, or by changed cases if files are missing."""
        if not all(scores.is_on_files for scores in self.methods.values()):
            values = {name: {case: row.get(name) for case, row in self.scores_by_case.items()} for name in self.methods}
            cells = {name: list(costs.values()) for name, costs in self.known_costs.items()}
            sections = [make_changes(self.noun.capitalize(), values, BY_CHANGE)]
            kinds = list(next(iter(self.known_costs.values()), ()))
            return MethodCosts(self.known_costs, kinds, cells, sections=sections)
        if self.tools.shares_loss:
            check_kinds(self.protocol, self.metric, "out")
        return self.tools.compare_failures(self.open_methods(), options)

    def make_page(self, options: PageOptions, title: str = "") -> ReportPage:
        """Return the page: ranks, verdicts, costs, and the family's sections."""
        check_arguments(Kind((PageOptions,), "what make_page_options returns"), options=options)
        check_options(TEXT, title=title)
        details = self._explain_differences(options)
        vars(self)["costs"] = details.costs  # they are not read twice
        provenances = {name: scores.provenance for name, scores in self.methods.items()}
        sections = [
            _make_methods(self, details),
            *details.sections,
            make_origins([*self.notes, *self.warnings], provenances),
        ]
        return ReportPage(title or " · ".join(self.methods), sections, describe_digests(*provenances.values()))


def compare(*methods: Scores | Mapping[str, Scores], metric: str = "", split: str = "") -> Comparison:
    """Compare methods by their scores on the same truth, as `segjudge compare` does.

    Args:
        methods: the scores of each, or one mapping from names to them; by default, their results name them.
        metric: the name of the metric (default: J&F-Mean, or the protocol's first).
        split: the name of the split, required if there are several.

    Raises:
        UsageError: the scores cannot be compared.

    """
    check_options(TEXT, metric=metric, split=split)
    scores_by_name = name_scores(methods)
    if len(scores_by_name) < 2:
        raise UsageError("compare needs at least two results")
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
        check_comparable(algorithms[0], algorithm)
    sums, sequences = (pseudo_values_by_group(reports, metric), []) if in_groups else sum_objects(algorithms, metric)
    return Comparison(metric, sums, sequences, bounds_of(metric, base.protocol), scores_by_name, base.split)


def _truth_of(scores: Scores) -> dict[str, object]:
    truth = scores.provenance.get("truth")
    return {"truth": truth} if truth else {}


def choose_metric(protocol: FamilyProtocol, metric: str = "") -> str:
    """Return the metric to compare; raises UsageError for an unknown one before scoring."""
    metrics = [*protocol.metrics, *FAMILIES[protocol.family].own_metrics]
    if metric and metric not in metrics:
        raise UsageError(describe_unknown_metric(protocol.name, metric, metrics))
    return choose_ranking_metric(protocol.metrics, metric)


def check_kinds(protocol: FamilyProtocol, metric: str, option: str = "kinds") -> None:
    """Raise UsageError if the protocol or metric has no kinds of failure."""
    tools, ranked = tools_of(protocol.family), choose_ranking_metric(protocol.metrics)
    if tools.shares_loss and metric != ranked:
        raise OptionError(f"{option} does not apply to {metric}, only to {ranked}")
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
            (name, bar, sum(share for _, share, style in bar if style != "kept"))
            for name, bar in ((name, details.bars[name]) for name in names if name in details.bars)
        ],
        "kinds_of_bars": list(
            {
                kind: (style, kind)
                for name in names
                for kind, share, style in details.bars.get(name, ())
                if share >= LITTLE and style != "kept"
            }.values()
        ),
        "measure": details.measure or compared.metric,
        "verdicts": compared.verdicts(),
        "names": names,
        "apart": {(row, column): compared.sign(row, column) for row, column in permutations(names, 2)},
        "kinds": [*(f"{name}: {cause}" for name, cause in details.causes.items() if cause), *compared.describe_kinds()],
    }
    methods = Section("methods", "Methods", values, package="segjudge.analysis", style=details.style)
    players = [section for section in details.sections if section.template == PLAYER]
    return add_film(methods, players[0]) if players else methods


def _draw_whiskers(means: Sequence[Mean]) -> list[Markup]:
    """Return each mean's interval as a small picture, all on one scale."""
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
    """Return the Markdown about the first and last method: gain, kinds, flipped cases."""
    names = list(compared.sums.algorithms)
    before, after = names[0], names[-1]
    values = {mean.name: mean.value for mean in compared.means}
    sign = {"+": "better", "−": "worse", "=": "not significantly different"}[compared.sign(after, before)]
    gain = f"{values[after] - values[before]:+.3f}, {sign}"
    blocks = [
        f"### {compared.metric}: {format_number(values[before])} → {format_number(values[after])} ({gain})",
        tabulate(
            ["method", compared.metric, "95 %", "place"],
            [[escape_name(name), format_number(value), reach, rank] for rank, name, value, reach in compared.places()],
        ),
        "\n".join(f"- {escape_text(line)}" for line in compared.verdicts()),
    ]
    if compared.warnings:
        lines = [f"- **Warning:** {escape_text(line)}" for line in compared.warnings[:_MOST_WARNINGS]]
        more = len(compared.warnings) - len(lines)
        blocks.append("\n".join([*lines, *([f"- … and {quantity(more, 'more warning')}"] if more else [])]))
    if kinds and (table := _tabulate_kinds(compared, before, after)):
        blocks += ["**Kinds that grew and shrank**", table]
    blocks += _list_flips(compared, before, after)
    protocol = compared.protocol
    truth = str(next(iter(compared.methods.values())).provenance.get("truth", "")).rpartition(":")[2][:12]
    origin = f"segjudge {VERSION}, {protocol.name} (revision {protocol.revision})"
    blocks.append(f"<sub>{origin}, {escape_text(compared.about)}{f', truth {truth}' if truth else ''}</sub>")
    return "\n\n".join(blocks) + "\n"


def _tabulate_kinds(compared: Comparison, before: str, after: str) -> str:
    """Return the table of costs by kind for two methods, largest change first."""
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
    return tabulate(["kind of failure", escape_name(before), escape_name(after), "change"], rows)


def _list_flips(compared: Comparison, before: str, after: str) -> list[str]:
    """Return the flipped cases and a list of the largest changes."""
    changes = compared.changes()
    if not changes:
        return []
    flips = [change for change in changes if change.has_flipped]
    fallen = sum(change.after < change.before for change in flips)
    cases, count = compared.noun.capitalize(), f"{len(flips)} of {len(changes)}"
    title = f"**{cases} that crossed one half: {count}**"
    if flips:
        title += f" ({fallen} fell below it, {len(flips) - fallen} rose to it or above)"
    header = [compared.noun, escape_name(before), escape_name(after), "change"]
    blocks = [title]
    if flips:
        blocks.append(_tabulate_cases(header, flips))
    moved = sorted(changes, key=lambda change: -abs(change.change))[:_MOST_CASES]
    table = _tabulate_cases(header, moved)
    blocks.append(f"<details><summary>Largest changes</summary>\n\n{table}\n\n</details>")
    return blocks


def _tabulate_cases(header: list[str], changes: Sequence[CaseChange]) -> str:
    rows = [
        [escape_name(change.case), format_number(change.before), format_number(change.after), f"{change.change:+.3f}"]
        for change in changes[:_MOST_CASES]
    ]
    more = f"\n\n… and {len(changes) - _MOST_CASES} more" if len(changes) > _MOST_CASES else ""
    return tabulate(header, rows) + more


def write_table(compared: Comparison, path: str, metrics: Sequence[str] = ()) -> str:
    """Return the table in the format of the path's ending."""
    check_table(path)
    if path.endswith(".tex"):
        return compared.latex(metrics)
    return format_markdown(_list_columns(compared, metrics), compared.sums.algorithms)


def check_table(path: str) -> None:
    if not path.endswith((".tex", ".md")):
        raise UsageError(f"{path}: name the table FILE.tex or FILE.md")


def _list_columns(compared: Comparison, metrics: Sequence[str]) -> list[Column]:
    reports = compared.reports
    names = list(metrics) or [*dict.fromkeys([compared.metric, *compared.protocol.metrics])][:_MOST_METRICS]
    columns = []
    for metric in names:
        if not isinstance(metric, str) or any(metric not in report.values for report in reports.values()):
            raise UsageError(
                describe_unknown_metric(compared.protocol.name, metric, next(iter(reports.values())).values)
            )
        try:
            means = {mean.name: mean for mean in compared.for_metric(metric).means}
        except UsageError:
            means = None  # not a mean over cases
        values = {name: report.values[metric] for name, report in reports.items()}
        is_share = max(map(abs, bounds_of(metric, compared.protocol))) <= 1
        columns.append(Column(metric, means, values, is_share, prefers_smaller(metric, compared.protocol.name)))
    return columns
