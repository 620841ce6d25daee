"""Tables of scores for a terminal, CSV and pandas, with published numbers beside them."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS, folder_of
from segjudge.evaluation_script.families.base.reports import Report, Row, bounds_of
from segjudge.evaluation_script.files.problems import printable
from segjudge.system.arguments import Kind
from segjudge.system.errors import UsageError

if TYPE_CHECKING:
    from pandas import DataFrame

#: The folder of each family, which may have a file with the published numbers of its protocols.
_FAMILIES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "families")
#: The sequences of DAVIS and their sets.
_SEQUENCES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "interactive", "davis_sequences.csv")

#: The number of lowest rows shown of longer lists of sequences.
_MOST_ROWS = 40
#: Columns of a table of pandas that repeat names.
_NAMES = ("split", "sequence", "object", "frame", "category")
#: The ends of a missing interval.
_UNKNOWN = (math.nan, math.nan)
#: The text if no kind differs.
SAME = "the same"
#: The minimum difference of a named kind.
_SHOWN_FROM = 0.0005


#: The numbers of terminals' styles.
_STYLES = {"strong": 1, "faint": 2, "bad": 31, "good": 32, "warning": 33}
#: The ends of metrics that stand behind the means of all measures if not all fit, and the title of those left out.
_BEHIND, _HIDDEN = ("-Recall", "-Decay"), "Columns that --all-metrics shows: "
#: The minimum length of a shortened name.
_SHORTEST_NAME = 16


class PublishedNumbers(TypedDict):
    """A method's published score."""

    protocol: str
    dataset: str
    method: str
    values: dict[str, float]
    #: A citation.
    source: str


class Look(NamedTuple):
    """How text is shown."""

    #: The maximum width in columns; 0: unlimited.
    width: int = 0
    colour: bool = False

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.colour and text else text


#: The look of tables in files.
PLAIN = Look()
LOOK = Kind((Look,), "a Look of segjudge.report.tables")


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], look: Look = PLAIN) -> str:
    """Format columns as wide as they must be: names to the left, numbers to the right.

    If that is too wide for the look, long names lose their middle, and columns continue below.
    """
    lines, widths = _measure_columns(header, rows, look)
    return "\n\n".join(_format_columns(lines, widths, columns, look) for columns in _cut_columns(widths, look.width))


def _measure_columns(
    header: Sequence[str], rows: Sequence[Sequence[str]], look: Look
) -> tuple[list[list[str]], list[int]]:
    """Return the printable cells of a table, with long names cut, and the widths of its columns."""
    lines = [[printable(cell) for cell in row] for row in (header, *rows)]
    if look.width:
        lines = [[_shorten(row[0], max(_SHORTEST_NAME, look.width // 2)), *row[1:]] for row in lines]
    return lines, [max(map(len, column)) for column in zip(*lines, strict=True)]


def _format_columns(lines: list[list[str]], widths: list[int], columns: range, look: Look) -> str:
    def format_row(cells: list[str]) -> str:
        numbers = (cells[column].rjust(widths[column]) for column in columns)
        return "  ".join([cells[0].ljust(widths[0]), *numbers]).rstrip()

    return "\n".join([look.paint(format_row(lines[0]), "strong"), *map(format_row, lines[1:])])


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
    """Shorten a longer text in its middle."""
    return text if len(text) <= length else f"{text[: length // 2]}…{text[len(text) - (length - 1 - length // 2) :]}"


def format_number(value: float | None, digits: int = 3) -> str:
    """Format a share, a count without decimals, or a dash if there is nothing to average."""
    if value is None:
        return "–"
    if isinstance(value, int) or (value > 1 and value.is_integer()):
        return f"{value:.0f}"
    text = f"{value:.{digits}f}"
    return text if float(text) else text.removeprefix("-")


def format_column(values: Sequence[float | None], digits: int = 3) -> list[str]:
    """Format the values of a column, whole ones with decimals if another value has decimals."""
    texts = [format_number(value, digits) for value in values]
    if not any("." in text for text in texts):
        return texts
    return [
        text if value is None or isinstance(value, int) or "." in text else f"{value:.{digits}f}"
        for value, text in zip(values, texts, strict=True)
    ]


def format_metric(report: Report, metric: str) -> str:
    """Format a split's value of a metric: a count, which has no upper bound, without decimals."""
    value = report.values[metric]
    is_count = value is not None and float(value).is_integer() and math.isinf(bounds_of(metric)[1])
    return format_number(int(value) if is_count and value is not None else value)


def key_of_rows(kind: str) -> str:
    """Return the column that names the rows of a split's first table."""
    return "sequence" if kind == "sequences" else "name"


def first_metric(rows: list[Row]) -> str:
    """Return the first metric of a table; counts do not qualify."""
    cells = rows[0].items() if rows else ()
    names = ("split", "id", "name", "sequence", "object")
    return next((key for key, value in cells if key not in names and not isinstance(value, int)), "")


def format_report(
    report: Report, *, compare: bool, look: Look = PLAIN, all_metrics: bool = True, columns: Sequence[str] = ()
) -> str:
    """Format a split's sequences and means; `compare` sets the field's published numbers below.

    Without `all_metrics` and named columns, tables have the columns that fit, those of the protocol's first metrics
    before others.
    """
    kind, rows = next(iter(report.rows().items()))
    key, beside = key_of_rows(kind), FAMILIES[report.protocol.family].own_metrics
    metrics = [name for name in rows[0] if name not in (*beside, "split", "id", key)] if rows else []
    lowest = first_metric(rows) or next(iter(metrics), "")
    order = {name: rank for rank, name in enumerate(report.protocol.metrics)}
    metrics.sort(key=lambda name: order.get(name, len(order)))
    note = ""
    if len(rows) > _MOST_ROWS:
        note = f"(the {_MOST_ROWS} lowest of {len(rows)} {kind} by {lowest}; --json holds all)\n"
        rows = sorted(rows, key=lambda row: math.inf if row[lowest] is None else row[lowest])[:_MOST_ROWS]
    cells = {metric: format_column([row[metric] for row in rows]) for metric in metrics}
    body = _Columns(report.split, [str(row[key]) for row in rows], cells)
    body, more = body.choose(look, columns, all_metrics=all_metrics)
    hidden = _format_list(_HIDDEN, more, look)
    below = _format_means(report, compare=compare, look=look, all_metrics=all_metrics, columns=columns)
    return f"{body.format(look)}\n{hidden}{note}\n{below}".rstrip("\n")


class _Columns(NamedTuple):
    """A table of metrics: its title, the names of its rows, and the cells of each metric."""

    title: str
    names: list[str]
    cells: Mapping[str, Sequence[str]]

    def choose(self, look: Look, columns: Sequence[str], *, all_metrics: bool) -> tuple[_Columns, list[str]]:
        """Return the table with the named columns, all, or those that fit, means first; and the names of the others."""
        if columns:
            return self._take([name for name in columns if name in self.cells]), []
        metrics = list(self.cells)
        if all_metrics or self.count_fitting(look) == len(metrics):
            return self, []
        metrics.sort(key=lambda name: name.endswith(_BEHIND))
        fitting = self._take(metrics).count_fitting(look)
        return self._take(metrics[:fitting]), metrics[fitting:]

    def format(self, look: Look) -> str:
        return format_table([self.title, *self.cells], self._list_rows(), look)

    def _take(self, metrics: Sequence[str]) -> _Columns:
        return self._replace(cells={metric: self.cells[metric] for metric in metrics})

    def _list_rows(self) -> list[list[str]]:
        return [[name, *(cells[row] for cells in self.cells.values())] for row, name in enumerate(self.names)]

    def count_fitting(self, look: Look) -> int:
        """Return how many columns fit beside the names."""
        widths = _measure_columns([self.title, *self.cells], self._list_rows(), look)[1]
        return _cut_columns(widths, look.width)[0].stop - 1


def _format_means(report: Report, *, compare: bool, look: Look, all_metrics: bool, columns: Sequence[str]) -> str:
    """Format the protocol's metrics, their intervals, published scores, and additional statistics."""
    names = [name for name in columns if name in report.protocol.metrics] or list(report.protocol.metrics)
    entries = find_published_numbers(report) if compare else []
    rows = [
        ("this submission", {name: format_metric(report, name) for name in names}),
        *_format_intervals(report, names, look),
        *(
            (entry["method"], {name: format_number(value) for name, value in entry["values"].items()})
            for entry in entries
        ),
    ]
    cells = {name: [texts.get(name, "") for _, texts in rows] for name in names}
    table, more = _Columns(f"{report.split}, all", [row for row, _ in rows], cells).choose(
        look, columns, all_metrics=all_metrics
    )
    text = table.format(look)
    if entries:
        datasets = ", ".join(dict.fromkeys(entry["dataset"] for entry in entries))
        text += f"\nPublished for {datasets}: {format_citations(entries)}"
    text += "\n" + _format_list("More metrics: ", [f"{name} {format_metric(report, name)}" for name in more], look)
    beside = [] if columns else [f"{name} {format_number(report.values[name])}" for name in own_metrics(report)]
    return text + ("\n" if beside else "") + _format_list("Beyond the protocol: ", beside, look)


def _format_intervals(report: Report, names: Sequence[str], look: Look) -> list[tuple[str, dict[str, str]]]:
    """Format the intervals of metrics by name: in one row, or in two where the columns of one do not fit."""
    intervals = report.intervals()
    if not intervals:
        return []
    texts = {name: _format_interval(*intervals[name]) if name in intervals else "–" for name in names}
    table = _Columns(f"{report.split}, all", ["95 % interval"], {name: [text] for name, text in texts.items()})
    if not look.width or table.count_fitting(look) == len(names):
        return [("95 % interval", texts)]
    return [
        (label, {name: format_number(intervals[name][end]) if name in intervals else "–" for name in names})
        for end, label in enumerate(("95 % CI low", "95 % CI high"))
    ]


def _format_list(title: str, items: Sequence[str], look: Look) -> str:
    """Format items after a title, on separate lines if they do not fit; empty without items."""
    lines = [title] if items else []
    for number, item in enumerate(items, 1):
        text = item + (", " if number < len(items) else "")
        if look.width and len(lines[-1]) + len(text.rstrip()) > look.width and lines[-1].strip():
            lines.append("  ")
        lines[-1] += text
    return "".join(f"{line.rstrip()}\n" for line in lines)


def format_submissions(
    split: str,
    metrics: Sequence[str],
    rows: Sequence[tuple[str, Mapping[str, float | None] | str]],
    look: Look = PLAIN,
    *,
    all_metrics: bool = True,
    columns: Sequence[str] = (),
) -> str:
    """Format submissions by name: each one's metrics, or its fault."""
    cells = {metric: [""] * len(rows) for metric in metrics}
    scored = [(index, values) for index, (_, values) in enumerate(rows) if not isinstance(values, str)]
    for metric in metrics:
        texts = format_column([values[metric] for _, values in scored])
        for (index, _), text in zip(scored, texts, strict=True):
            cells[metric][index] = text
    whole = _Columns(split, [name for name, _ in rows], cells)
    table, more = whole.choose(look, columns, all_metrics=all_metrics)
    lines = table.format(look).split("\n")
    names, widths = _measure_columns([split], [[name] for name, _ in rows], look)
    for number, (_, fault) in enumerate(rows, 1):
        if isinstance(fault, str):
            lines[number] = _format_fault(names[number][0].ljust(widths[0]), fault, look)
    return "\n".join([*lines, _format_list(_HIDDEN, more, look)]).rstrip("\n")


def _format_fault(name: str, fault: str, look: Look) -> str:
    """Format a fault, or the first one of a list, behind a name."""
    import textwrap

    text = " ".join(line.strip() for line in fault.split("\n")[:2])
    if not look.width:
        return f"{name}  {text}"
    start, indent = f"{name}  ", " " * min(len(name) + 2, look.width // 2)
    lines = textwrap.wrap(text, look.width, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(lines)


def _format_interval(low: float, high: float) -> str:
    """Format the ends of an interval, without a dash, which would look like a minus."""
    return f"{format_number(low)}{'–' if low >= 0 else ' to '}{format_number(high)}"


def own_metrics(report: Report) -> list[str]:
    """Return the metrics that its family adds to those of every protocol."""
    family = FAMILIES.get(PROTOCOLS.get(report.protocol.name, report.protocol).family)
    return [name for name in (family.own_metrics if family else ()) if name in report.values]


def find_published_numbers(report: Report) -> list[PublishedNumbers]:
    """Find published scores of a protocol, if the scored sequences are the published set's.

    So they appear only beside the published sets whose sequences are known: those of DAVIS.
    """
    names = {str(row["sequence"]) for row in report.rows().get("sequences", []) if "sequence" in row}
    entries = read_published_numbers(report.protocol.family)
    datasets = [dataset for dataset, members in _members().items() if members == names] if entries else []
    return [entry for entry in entries if entry["protocol"] == report.protocol.name and entry["dataset"] in datasets]


def read_published_numbers(family: str) -> list[PublishedNumbers]:
    """Read the numbers that papers published of a family's protocols; most families have none."""
    path = os.path.join(_FAMILIES, folder_of(family), "published.json") if family in FAMILIES else ""
    if not os.path.isfile(path):
        return []
    with open(path, encoding="utf-8") as file:
        entries: list[PublishedNumbers] = json.load(file)
    return entries


@cache
def _members() -> dict[str, set[str]]:
    """Return the sequences of published sets, by their names in the published numbers."""
    import csv  # most commands do not need it

    with open(_SEQUENCES, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sets = {name: {row["sequence"] for row in rows if row["set"] == name} for name in ("val", "test-dev")}
    return {
        "DAVIS 2016 val": {row["sequence"] for row in rows if row["set"] == "val" and row["year"] == "2016"},
        "DAVIS 2017 val": sets["val"],
        "DAVIS 2017 unsupervised val": sets["val"],
        "DAVIS 2017 test-dev": sets["test-dev"],
    }


def format_citations(entries: Sequence[PublishedNumbers]) -> str:
    """Format the sources of published numbers, each once: mostly files of GitHub repositories at a commit."""
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
    """Format submissions by their value of one label, best first; non-numbers count as 0, as on EvalAI."""

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
    """Format the kinds in which two losses differ, the largest difference first."""
    changes = sorted(((kind, costs[kind] - base[kind]) for kind in base), key=lambda change: -abs(change[1]))
    shown = (f"{kind} {'−+'[more > 0]}{abs(more):.3f}" for kind, more in changes if abs(more) >= _SHOWN_FROM)
    return ", ".join(shown) or SAME


# ── CSV ─────────────────────────────────────────────────────────────────────


#: The keys that name rows of tables.
_UNIT_NAMES = ("name", "sequence")


def format_units(report: Report, metrics: Sequence[str] = ()) -> tuple[str, str]:
    """Return the name of the units in a split's first table, and the table as CSV, of these metrics or all."""
    kind, rows = next(iter(report.rows().items()))
    unit = "category" if kind == "categories" else kind.removesuffix("s")
    columns = metrics or [name for name in (rows[0] if rows else ()) if name not in ("split", "id", *_UNIT_NAMES)]
    cells = [
        [
            next(str(row[key]) for key in _UNIT_NAMES if key in row),
            str(row.get("id", "")),
            *(format_cell(row[name]) for name in columns),
        ]
        for row in rows
    ]
    return unit, format_csv([unit.capitalize(), "Id", *columns], cells)


def format_means(report: Report) -> str:
    """Return the metrics of a split's protocol as CSV."""
    metrics = list(report.protocol.metrics)
    return format_csv(metrics, [[format_cell(report.values[metric]) for metric in metrics]])


def format_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    import csv

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def escape_cell(value: object) -> object:
    """Return a value for a CSV; a spreadsheet would run a text that begins like a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def format_cell(value: float | None) -> str:
    """Format a number of a CSV as the official tools do; empty without a value."""
    return "" if value is None else f"{value:.3f}"


# ── pandas ──────────────────────────────────────────────────────────────────


def make_frame(
    reports: Sequence[Report], tables: Sequence[Mapping[str, Callable[[], Mapping[str, Any]]]], name: str
) -> DataFrame:
    """Make a table of all splits: of their rows, another table of `tables`, or `metrics`. Raises UsageError for an
    unknown name.
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
    """Convert columns or rows to a pandas table; None becomes NaN."""
    if isinstance(content, list):
        content = [{key: _or_nan(value) for key, value in row.items()} for row in content]
    try:
        import pandas as pd
    except ImportError:
        from segjudge.system.extras import make_error

        raise make_error("tables", "A table", "pandas") from None
    return pd.DataFrame(content)


def _list_metrics(report: Report) -> Mapping[str, Any]:
    """Return each metric with its standard error and Student's t interval at 95 %."""
    errors, bounds, names = report.errors(), report.intervals(), list(report.values)
    return {
        "metric": names,
        "value": [_or_nan(report.values[name]) for name in names],
        "error": [_or_nan(errors.get(name)) for name in names],
        "low": [bounds.get(name, _UNKNOWN)[0] for name in names],
        "high": [bounds.get(name, _UNKNOWN)[1] for name in names],
    }


def _or_nan(value: Any) -> Any:
    return math.nan if value is None else value
