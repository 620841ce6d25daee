"""Comparisons as pull requests and papers show them: Markdown, and tables for LaTeX's booktabs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from segjudge.evaluation_script.families.base.reports import bounds_of
from segjudge.evaluation_script.files.problems import printable
from segjudge.evaluation_script.scoring import VERSION
from segjudge.families import prefers_smaller
from segjudge.report.tables import format_number
from segjudge.system.errors import UsageError

from .methods import CaseChange, ComparedMethods
from .statistics import Mean

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


# ── pull requests ───────────────────────────────────────────────────────────


def write_markdown(compared: ComparedMethods, *, kinds: bool = True) -> str:
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


def _tabulate_kinds(compared: ComparedMethods, before: str, after: str) -> str:
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


def _list_flips(compared: ComparedMethods, before: str, after: str) -> list[str]:
    """Say which cases crossed one half, and list those that changed most."""
    changes = compared.changes()
    if not changes:
        return []
    flips = [change for change in changes if change.has_flipped]
    fallen = sum(change.after < change.before for change in flips)
    title = (
        f"**{len(flips)} of {len(changes)} {compared.noun} flipped**: {fallen} fell below one half, "
        f"{len(flips) - fallen} rose to it or above."
        if flips
        else f"**None of {len(changes)} {compared.noun} flipped** to the other side of one half."
    )
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


def write_latex(compared: ComparedMethods, metrics: Sequence[str] = ()) -> str:
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
        cells = [(_escape(value).replace("-", "$-$"), reach.replace("-", "$-$"), best) for value, reach, best in cells]
        values = [rf"\textbf{{{value}}}" if best else value for value, _, best in cells]
        intervals = [rf"{{\scriptsize {interval}}}" if interval else "" for _, interval, _ in cells]
        lines.append(rf"{_escape(printable(name))} & {' & '.join(values)} \\")
        if any(intervals):
            lines.append(rf" & {' & '.join(intervals)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _write_paper_markdown(compared: ComparedMethods, metrics: Sequence[str] = ()) -> str:
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


def write_table(compared: ComparedMethods, path: str, metrics: Sequence[str] = ()) -> str:
    """Write the table in the form that a path's ending names."""
    check_table(path)
    return write_latex(compared, metrics) if path.endswith(".tex") else _write_paper_markdown(compared, metrics)


def check_table(path: str) -> None:
    if not path.endswith((".tex", ".md")):
        raise UsageError(f"{path}: a table is written as .tex or .md, by the ending of its name")


def _list_columns(compared: ComparedMethods, metrics: Sequence[str]) -> list[_Column]:
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


def _arrow(metric: str, compared: ComparedMethods, form: str) -> str:
    smaller = prefers_smaller(metric, compared.protocol.name)
    return {"latex": r"\downarrow" if smaller else r"\uparrow", "text": "↓" if smaller else "↑"}[form]


def _escape(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in text)
