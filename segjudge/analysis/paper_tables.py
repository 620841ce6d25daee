"""The table of a paper, a row per method: in LaTeX, and in Markdown with its escapes."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from segjudge.evaluation_script.files.problems import printable
from segjudge.evaluation_script.scoring import VERSION

from .statistics import Mean

_BOLD = "Bold: better than every other method (sign flips, adjusted by Holm for all pairs, 5 %)"
#: Characters that are commands in LaTeX, and their escapes.
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "−": "--", "–": "--",
}  # fmt: skip


def tabulate(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table: names left-aligned, numbers right-aligned."""
    ruler = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ruler, *rows))


def escape_name(name: str) -> str:
    """Return an untrusted name escaped for Markdown: no link, mention or cell."""
    return f"`{printable(name).replace('`', chr(39)).replace('|', chr(92) + '|')}`"


def escape_text(text: str) -> str:
    """Return a sentence with untrusted names, escaped as plain text."""
    plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return re.sub(r"([\\`*_\[\]<>|#@])", r"\\\1", plain)


class Column(NamedTuple):
    """A metric column of a table."""

    metric: str
    #: The means by method; None if the metric is not a mean over cases, so that no interval tests a difference.
    means: dict[str, Mean] | None
    values: dict[str, float | None]
    #: Whether it is a share, which papers print in percent.
    is_share: bool
    smaller_is_better: bool

    def format_value(self, value: float | None) -> str:
        if value is None:
            return "–"
        return f"{100 * value:.1f}".replace("-0.0", "0.0") if self.is_share else f"{value:.3f}".rstrip("0").rstrip(".")

    def cell(self, name: str) -> tuple[str, str, bool]:
        """Return a method's value, its interval, and whether it is significantly best."""
        mean = self.means[name] if self.means else None
        if mean is None:
            return self.format_value(self.values[name]), "", False
        interval = "" if mean.low is None else f"[{self.format_value(mean.low)}, {self.format_value(mean.high)}]"
        return self.format_value(mean.value), interval, mean.is_alone_best


def format_latex(columns: Sequence[Column], methods: Sequence[str], about: str) -> str:
    """Return a booktabs table: a row per method, intervals below the values."""
    arrows = {True: r"\downarrow", False: r"\uparrow"}
    heads = [rf"{_escape(column.metric)} ${arrows[column.smaller_is_better]}$" for column in columns]
    lines = [
        f"% segjudge {VERSION}: {about}.",
        f"% Intervals: 95 %, Student's t. {_BOLD}.",
        rf"\begin{{tabular}}{{l{'c' * len(columns)}}}",
        r"\toprule",
        rf"Method & {' & '.join(heads)} \\",
        r"\midrule",
    ]
    for name in methods:
        cells = [column.cell(name) for column in columns]
        cells = [(_write_signs(value), _write_signs(reach), best) for value, reach, best in cells]
        values = [rf"\textbf{{{value}}}" if best else value for value, _, best in cells]
        intervals = [rf"{{\scriptsize {interval}}}" if interval else "" for _, interval, _ in cells]
        lines.append(rf"{_escape(printable(name))} & {' & '.join(values)} \\")
        if any(intervals):
            lines.append(rf" & {' & '.join(intervals)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def format_markdown(columns: Sequence[Column], methods: Sequence[str]) -> str:
    """Return the same table as Markdown."""
    rows = []
    for name in methods:
        cells = [column.cell(name) for column in columns]
        texts = [
            " ".join(filter(None, [f"**{value}**" if best else value, interval])) for value, interval, best in cells
        ]
        rows.append([escape_name(name), *texts])
    heads = [f"{escape_text(column.metric)} {'↓' if column.smaller_is_better else '↑'}" for column in columns]
    return f"{tabulate(['method', *heads], rows)}\n\nIntervals: 95 %. {_BOLD}.\n"


def _write_signs(number: str) -> str:
    """Return numbers with minus signs, and a dash for missing ones."""
    return number.replace("-", "$-$").replace("–", "--")


def _escape(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in text)
