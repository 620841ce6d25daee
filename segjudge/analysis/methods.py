"""Methods on the same truth: how they differ, which can be told apart, and what failures cost each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.evaluation_script.families.base.reports import Report, bounds_of
from segjudge.evaluation_script.files.problems import name_hint, name_list
from segjudge.families import FamilyTools, tools_of
from segjudge.families.base.tools import ScoredMethod
from segjudge.report.page import first_metric
from segjudge.report.tables import SAME, format_difference, format_number, key_of_rows
from segjudge.scoring.document import cases_of
from segjudge.scoring.scores import Scores
from segjudge.system.errors import OptionError, UsageError

from .score_tables import AlgorithmScores, check_alike, choose_split, ranking_metric, sum_groups, sum_objects
from .statistics import GROUPS, SEQUENCES, Difference, Mean, Sums, compare_pairs, describe_pair, estimate_means

#: A case whose value crosses it has flipped.
_HALF = 0.5


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
class ComparedMethods:
    """Methods, the first of which the others are compared with, and what can be told of them."""

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
            return f"{self.metric} over {len(counts)} {SEQUENCES} ({int(counts.sum())} objects)"
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

    def for_metric(self, metric: str) -> ComparedMethods:
        """Compare the same methods by another metric."""
        return compare_methods(self.methods, metric, self.split)

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


def compare_methods(methods: Mapping[str, Scores], metric: str = "", split: str = "") -> ComparedMethods:
    """Compare methods by their scores; refuses those that were scored otherwise, or on something else."""
    if len(methods) < 2:
        raise UsageError("compare needs two results at least")
    reports: dict[str, Report] = {}
    for name, scores in methods.items():
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
            origin={"rules": report.protocol, **_truth_of(methods[name])},
        )
        for name, report in reports.items()
    ]
    for algorithm in algorithms[1:]:
        check_alike(algorithms[0], algorithm)
    sums, sequences = (sum_groups(reports, metric), []) if in_groups else sum_objects(algorithms, metric)
    return ComparedMethods(metric, sums, sequences, bounds_of(metric, base.protocol), methods, base.split)


def _truth_of(scores: Scores) -> dict[str, object]:
    truth = scores.provenance.get("truth")
    return {"truth": truth} if truth else {}


def choose_metric(protocol: FamilyProtocol, metric: str = "") -> str:
    """Choose what is compared; refuses a metric that the protocol lacks, before anything is scored."""
    metrics = [*protocol.metrics, *FAMILIES[protocol.family].own_metrics]
    if metric and metric not in metrics:
        raise UsageError(f"{protocol.name} has no metric {metric}{name_hint(metric, metrics)}")
    return ranking_metric(protocol.metrics, metric)


def check_kinds(protocol: FamilyProtocol, metric: str, option: str = "kinds") -> None:
    """Refuse to tell kinds of failure where there are none, or none of this metric."""
    tools, ranked = tools_of(protocol.family), ranking_metric(protocol.metrics)
    if tools.shares_loss and metric != ranked:
        raise OptionError(f"{option} has no meaning for {metric}, only for {ranked}")
    tools.check_kinds(protocol)
