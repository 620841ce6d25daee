"""Tables of scores, for a terminal, as CSV and as pandas has them, and the published numbers that stand beside them."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS
from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.files.problems import printable
from segjudge.system.errors import UsageError, install_line

if TYPE_CHECKING:
    from pandas import DataFrame

_PUBLISHED = os.path.join(os.path.dirname(__file__), "published.json")
#: The sequences of DAVIS, and the sets that they are in.
_SEQUENCES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "interactive", "davis_sequences.csv")

#: Longer lists of sequences are shown by their lowest rows.
_MOST_ROWS = 40
#: Columns of a table of pandas that repeat names.
_NAMES = ("split", "sequence", "object", "frame", "category")
#: The ends of no interval.
_UNKNOWN = (math.nan, math.nan)
#: Said where no kind differs.
SAME = "the same"
#: Differences of kinds below this are not named.
_SHOWN_FROM = 0.0005


#: The numbers of terminals' styles.
_STYLES = {"strong": 1, "faint": 2, "bad": 31, "good": 32, "warning": 33}
#: No name is cut shorter.
_NAME = 16


class _PublishedNumbers(TypedDict):
    """What a method reached, as its authors published it."""

    protocol: str
    dataset: str
    method: str
    values: dict[str, float]
    #: A citation.
    source: str


class Look(NamedTuple):
    """How text is shown."""

    #: So many columns wide at most; 0: as wide as it is.
    width: int = 0
    colour: bool = False

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.colour and text else text


#: As it is written to files.
PLAIN = Look()


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], look: Look = PLAIN) -> str:
    """Format columns as wide as they must be: names to the left, numbers to the right.

    Where the look is too narrow, long names are cut in their middle, and columns go on below.
    """
    lines = [[printable(cell) for cell in row] for row in (header, *rows)]
    if look.width:
        lines = [[_shorten(row[0], max(_NAME, look.width // 2)), *row[1:]] for row in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n\n".join(_format_columns(lines, widths, columns, look) for columns in _cut_columns(widths, look.width))


def _format_columns(lines: list[list[str]], widths: list[int], columns: range, look: Look) -> str:
    def line(cells: list[str]) -> str:
        numbers = (cells[column].rjust(widths[column]) for column in columns)
        return "  ".join([cells[0].ljust(widths[0]), *numbers]).rstrip()

    return "\n".join([look.paint(line(lines[0]), "strong"), *map(line, lines[1:])])


def _cut_columns(widths: list[int], width: int) -> list[range]:
    """Cut the columns after the first into ranges that fit beside it."""
    starts, across = [1], widths[0]
    for column in range(1, len(widths)):
        if width and column > starts[-1] and across + 2 + widths[column] > width:
            starts.append(column)
            across = widths[0]
        across += 2 + widths[column]
    return [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(widths)], strict=True)]


def _shorten(text: str, length: int) -> str:
    """Cut what is longer in its middle."""
    return text if len(text) <= length else f"{text[: length // 2]}…{text[len(text) - (length - 1 - length // 2) :]}"


def format_number(value: float | None, digits: int = 3) -> str:
    """Format a share, a whole number such as a count without decimals, or a dash where there is nothing to average."""
    if value is None:
        return "–"
    if isinstance(value, int) or (value > 1 and value.is_integer()):
        return f"{value:.0f}"
    text = f"{value:.{digits}f}"
    return text if float(text) else text.removeprefix("-")


def key_of_rows(kind: str) -> str:
    """Return the column by which the rows of a split's first table are called."""
    return "sequence" if kind == "sequences" else "name"


def first_metric(rows: list[Row]) -> str:
    """Return the first metric of a table; counts are none."""
    cells = rows[0].items() if rows else ()
    names = ("split", "id", "name", "sequence")
    return next((key for key, value in cells if key not in names and not isinstance(value, int)), "")


def format_report(report: Report, *, compare: bool, look: Look = PLAIN) -> str:
    """Format a split's sequences and means; `compare` sets the field's published numbers below."""
    kind, rows = next(iter(report.rows().items()))
    key, beside = key_of_rows(kind), FAMILIES[report.protocol.family].own_metrics
    metrics = [name for name in rows[0] if name not in (*beside, "split", "id", key)] if rows else []
    note = ""
    if len(rows) > _MOST_ROWS:
        metric = first_metric(rows) or metrics[0]
        note = f"(the {_MOST_ROWS} lowest of {len(rows)} {kind} by {metric}; --json holds all)\n"
        rows = sorted(rows, key=lambda row: math.inf if row[metric] is None else row[metric])[:_MOST_ROWS]
    body = [[row[key], *(format_number(row[metric]) for metric in metrics)] for row in rows]
    head = format_table([report.split, *metrics], body, look)
    return f"{head}\n{note}\n{_format_means(report, compare=compare, look=look)}"


def _format_means(report: Report, *, compare: bool, look: Look) -> str:
    """Format the protocol's metrics, their intervals, what others reached, and the statistics beside the protocol."""
    names = list(report.protocol.metrics)
    rows = [["this submission", *(format_number(report.values[name]) for name in names)]]
    intervals = report.intervals()
    if intervals:
        ends = {name: _format_interval(*interval) for name, interval in intervals.items()}
        rows.append(["95 % interval", *(ends.get(name, "–") for name in names)])
    entries = find_published_numbers(report) if compare else []
    for entry in entries:
        values = entry["values"]
        label = f"{entry['method']}, {entry['dataset']}"
        rows.append([label, *(format_number(values[name]) if name in values else "" for name in names)])
    lines = [format_table([f"{report.split}, all", *names], rows, look)]
    if entries:
        lines.append(f"Published: {format_citations(entries)}")
    beside = ", ".join(f"{name} {format_number(report.values[name])}" for name in own_metrics(report))
    return "\n".join([*lines, f"\nBeside the protocol: {beside}"] if beside else lines)


def _format_interval(low: float, high: float) -> str:
    """Format the ends of an interval; a dash beside a minus could not be told from it."""
    return f"{format_number(low)}{'–' if low >= 0 else ' to '}{format_number(high)}"


def own_metrics(report: Report) -> list[str]:
    """The metrics that its family reports beside those of every protocol."""
    family = FAMILIES.get(PROTOCOLS.get(report.protocol.name, report.protocol).family)
    return [name for name in (family.own_metrics if family else ()) if name in report.values]


def find_published_numbers(report: Report) -> list[_PublishedNumbers]:
    """Find the field's numbers for a protocol, where the scored sequences are those of the published set.

    So they stand beside sets whose sequences are known here: those of DAVIS.
    """
    names = {str(row["sequence"]) for row in report.rows().get("sequences", []) if "sequence" in row}
    datasets = [dataset for dataset, members in _members().items() if members == names]
    with open(_PUBLISHED, encoding="utf-8") as file:
        entries: list[_PublishedNumbers] = json.load(file)
    return [entry for entry in entries if entry["protocol"] == report.protocol.name and entry["dataset"] in datasets]


@cache
def _members() -> dict[str, set[str]]:
    """The sequences of published sets, by their names in the published numbers."""
    with open(_SEQUENCES, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sets = {name: {row["sequence"] for row in rows if row["set"] == name} for name in ("val", "test-dev")}
    return {
        "DAVIS 2016 val": {row["sequence"] for row in rows if row["set"] == "val" and row["year"] == "2016"},
        "DAVIS 2017 val": sets["val"],
        "DAVIS 2017 unsupervised val": sets["val"],
        "DAVIS 2017 test-dev": sets["test-dev"],
    }


def format_citations(entries: Sequence[_PublishedNumbers]) -> str:
    """Format where published numbers stand, once for each place: mostly files of GitHub repositories at a commit."""
    methods: dict[str, list[str]] = {}
    for entry in entries:
        methods.setdefault(entry["source"], []).append(entry["method"])
    return "; ".join(f"{', '.join(names)}: {source}" for source, names in methods.items())


def format_leaderboard(
    title: str,
    rows: Mapping[str, Mapping[str, object]],
    labels: Sequence[str],
    order: str,
    *,
    descending: bool,
    look: Look = PLAIN,
) -> str:
    """Format submissions by their value of one label, best first; what is no number counts as 0, as on EvalAI."""

    def number(value: object) -> float:
        return float(value) if isinstance(value, (int, float)) else 0.0

    def text(value: object) -> str:
        return format_number(value, 4) if value is None or isinstance(value, (int, float)) else str(value)

    ranked = sorted(rows.items(), key=lambda row: number(row[1].get(order)), reverse=descending)
    body = [
        [f"{rank}. {name}", *(text(values.get(label)) for label in labels)]
        for rank, (name, values) in enumerate(ranked, 1)
    ]
    return format_table([title, *labels], body, look)


def format_difference(costs: Mapping[str, float], base: Mapping[str, float]) -> str:
    """Format in which kinds a loss differs from another, those that differ most first."""
    changes = sorted(((kind, costs[kind] - base[kind]) for kind in base), key=lambda change: -abs(change[1]))
    shown = (f"{kind} {'−+'[more > 0]}{abs(more):.3f}" for kind, more in changes if abs(more) >= _SHOWN_FROM)
    return ", ".join(shown) or SAME


# ── CSV ─────────────────────────────────────────────────────────────────────


def format_units(report: Report, metrics: Sequence[str] = ()) -> tuple[str, str]:
    """What the units of a split's first table are called, and this as CSV: of these metrics, or of all."""
    kind, rows = next(iter(report.rows().items()))
    unit = "category" if kind == "categories" else kind.removesuffix("s")
    columns = metrics or [name for name in (rows[0] if rows else ()) if name not in ("split", "id", "name")]
    cells = [[row["name"], str(row.get("id", "")), *(format_cell(row[name]) for name in columns)] for row in rows]
    return unit, format_csv([unit.capitalize(), "Id", *columns], cells)


def format_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def format_cell(value: float | None) -> str:
    """Format a number of a CSV as the official tools do, or nothing."""
    return "" if value is None else f"{value:.3f}"


# ── pandas ──────────────────────────────────────────────────────────────────


def make_frame(
    reports: Sequence[Report],
    tables: Sequence[Mapping[str, Callable[[], Mapping[str, Any]]]],
    name: str,
) -> DataFrame:
    """Make a table of all splits: of their rows, of what else `tables` can make of each, or `metrics`.

    Raises UsageError where there is none of this name.
    """
    frames = []
    for report, more in zip(reports, tables, strict=True):
        rows = report.rows()
        makers: dict[str, Callable[[], Mapping[str, Any]]] = {**more, "metrics": partial(_list_metrics, report)}
        if name in makers:
            frames.append(to_frame({"split": report.split, **makers[name]()}))
        elif name in rows:
            frames.append(to_frame(rows[name]))
        else:
            raise UsageError(f"{report.protocol.name} has no table {name}, only {', '.join([*rows, *makers])}")
    import pandas as pd

    joined = pd.concat(frames, ignore_index=True)
    return joined.astype({column: "category" for column in joined if column in _NAMES})


def to_frame(content: Mapping[str, Any] | list[Row]) -> DataFrame:
    """Make columns or rows a table of pandas; None becomes NaN."""
    if isinstance(content, list):
        content = [{key: _or_nan(value) for key, value in row.items()} for row in content]
    try:
        import pandas as pd
    except ImportError:
        raise UsageError(f"tables need pandas: {install_line('tables')}") from None
    return pd.DataFrame(content)


def _list_metrics(report: Report) -> Mapping[str, Any]:
    """Each metric with its standard error and Student's t interval at 95 %."""
    errors, ends, names = report.errors(), report.intervals(), list(report.values)
    return {
        "metric": names,
        "value": [_or_nan(report.values[name]) for name in names],
        "error": [_or_nan(errors.get(name)) for name in names],
        "low": [ends.get(name, _UNKNOWN)[0] for name in names],
        "high": [ends.get(name, _UNKNOWN)[1] for name in names],
    }


def _or_nan(value: Any) -> Any:
    return math.nan if value is None else value
