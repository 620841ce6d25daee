"""Pages of scores: sections in one self-contained HTML file, whose policy forbids loading anything else.

A section is a template with its values and, if needed, scripts with their data. This module has the sections that every
family can show; a family's own section has its template, scripts and `page.css` in the family's `pages`:

    Section("wheels", "Wheels", {"rows": rows}, package="segjudge.families.wheels")
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from string import Template
from types import MappingProxyType
from typing import Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.files.problems import quantity
from segjudge.evaluation_script.masks.stack import Array
from segjudge.evaluation_script.scoring import VERSION
from segjudge.report.colours import INKS, letters_of_kind, style_of_kind
from segjudge.report.sentences import LITTLE, count_costly, describe_cost
from segjudge.report.tables import find_published_numbers, format_citations, format_metric, format_number, own_metrics
from segjudge.system.arguments import NUMBER, PATH, check_arguments, check_options
from segjudge.system.errors import ArgumentValueError

_PACKAGE = "segjudge.report"
_PAGES = os.path.join(os.path.dirname(__file__), "pages")
#: The style of a package's sections.
_STYLE = "page.css"
#: The columns that name a table's row, before its metrics.
_LEADING = ("sequence", "object", "name", "id")
#: The templates of the section before the summary, and of the player, whose worst moment it shows.
VERDICT, PLAYER = "verdict", "frames"
#: The parts of a bar: name, share, style.
Bar = Sequence[tuple[str, float, str]]
#: The maximum number of rows of a list.
MOST_ROWS = 1000


@dataclass(frozen=True)
class PageOptions:
    """The options of a page that users set."""

    #: The folder of a dataset's pictures, over which masks are drawn.
    images: str = ""
    #: The approximate maximum bytes of the page.
    budget: int = 6_000_000


def make_page_options(images: str | os.PathLike[str] | None, megabytes: int) -> PageOptions:
    check_options(PATH, images=images)
    check_arguments(NUMBER, budget=megabytes)
    if not megabytes > 0:
        raise ArgumentValueError(f"budget is {megabytes!r}; give the megabytes that the page may have, such as 6")
    return PageOptions(os.fspath(images or ""), megabytes * 1_000_000)


@dataclass(frozen=True)
class Section:
    """A part of a page: the template `TEMPLATE.html`, and its scripts `TEMPLATE.js` and `TEMPLATE_….js`."""

    template: str
    title: str
    #: The `values` of the template, which may import the macros of `parts.html`.
    values: Mapping[str, object]
    #: The `section.data` of scripts: any JSON value.
    data: object = None
    #: The data that scripts read on demand by `page.bytes(NAME)`, or by `page.inflated(NAME)` for a zlib stream.
    streams: Mapping[str, bytes] = field(default_factory=dict)
    #: The package whose folder `pages` has the template and its scripts.
    package: str = _PACKAGE
    #: Another package whose style it needs.
    style: str = _PACKAGE
    #: The split of the section.
    split: str = ""

    @property
    def id(self) -> str:
        """Return its anchor in the page."""
        return _anchor_of(self.title)

    @property
    def path(self) -> str:
        """Return the name by which the page includes its template."""
        return f"{self.package}/{self.template}.html"

    def of_split(self, split: str, *, named: bool = True) -> Section:
        """Return a copy about the split, whose title may also name it."""
        return replace(self, split=split, title=f"{self.title}: {split}" if named else self.title)


@dataclass(frozen=True)
class ReportPage:
    """A page of sections, in their order."""

    title: str
    sections: Sequence[Section]
    #: The identifier of its truth and results, in plain letters.
    origin: str = ""
    #: The kinds of separate files that it reads: `img`, `script`.
    beside: tuple[str, ...] = ()


@cache
def picture_kind() -> str:
    from PIL import features

    return "webp" if features.check("webp") else "jpeg"


# ── rendering ───────────────────────────────────────────────────────────────


def render_page(page: ReportPage) -> str:
    """Render the page as HTML; equal pages give equal bytes."""
    script = _join_scripts(page)
    beside = dict.fromkeys(page.beside, " 'self' file:")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    streams = {name: stream for section in page.sections for name, stream in section.streams.items()}
    return (
        templates()
        .get_template("page.html")
        .render(
            page=page,
            version=VERSION,
            policy=f"default-src 'none'; img-src data: blob:{beside.get('img', '')}; "
            f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'{beside.get('script', '')}; "
            "base-uri 'none'; form-action 'none'",
            style=Markup(_join_styles(page)),  # noqa: S704 - files of the packages
            script=Markup(script),  # noqa: S704 - files of the package
            data=_encode({section.id: section.data for section in page.sections if section.data is not None}),
            streams={name: base64.b64encode(stream).decode("ascii") for name, stream in streams.items()},
        )
    )


@cache
def templates() -> Environment:
    """Return the environment of templates: by name from here, as `PACKAGE/NAME` from other packages.

    Undefined names raise an error, and all values are escaped.
    """
    environment = Environment(
        loader=FunctionLoader(_load), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(number=_format_number, counted=quantity, unbroken=keep_percents, letters=letters_of_kind)
    return environment


def _format_number(value: float | None) -> str:
    """Format a number with a minus sign, as bars do; terminals use a hyphen."""
    return format_number(value).replace("-", "−")


def keep_percents(text: Markup | str) -> Markup | str:
    """Keep percent signs on the line of their numbers."""
    return text.replace(" %", "\u00a0%")


def _load(name: str) -> str:
    package, _, file = name.rpartition("/")
    return _read_text(_folder_of(package or _PACKAGE), file)


@cache
def _folder_of(package: str) -> str:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not a package with a folder of pages")
    return os.path.join(spec.submodule_search_locations[0], "pages")


def _read_text(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def _join_styles(page: ReportPage) -> str:
    return read_styles(package for section in page.sections for package in (section.package, section.style))


def read_styles(packages: Iterable[str]) -> str:
    """Join the style of all pages, and that of each package that has one; `$name` in them is a colour."""
    folders = dict.fromkeys([_PAGES, *map(_folder_of, packages)])
    styles = [_read_text(folder, _STYLE) for folder in folders if os.path.isfile(os.path.join(folder, _STYLE))]
    return Template("".join(styles)).substitute(INKS)


def _join_scripts(page: ReportPage) -> str:
    """Join the page's script: the common part, then each section's `TEMPLATE_….js` and `TEMPLATE.js`."""
    text = _read_text(_PAGES, "page.js")
    for section in page.sections:
        folder = _folder_of(section.package)
        pattern = re.compile(rf"{section.template}(_[a-z]+)?\.js")
        names = sorted(filter(pattern.fullmatch, os.listdir(folder)), reverse=True)
        scripts = "\n".join(_read_text(folder, name) for name in names)
        if scripts:
            text += f"\npage.section({json.dumps(section.id)}, (section) => {{\n{scripts}}});"
    return text + "\n"


def _encode(value: object) -> Markup:
    """Encode JSON that cannot end an HTML element, even with hostile names."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028"))  # noqa: S704 - nothing in it opens a tag


# ── sections of every family ────────────────────────────────────────────────


def make_summary(report: Report, meanings: Mapping[str, str]) -> Section:
    """Show a split's metrics with their intervals and meanings, and the field's published numbers."""
    metrics, values = list(report.protocol.metrics), report.values
    entries = find_published_numbers(report)
    rows = [
        [f"{entry['method']}, {entry['dataset']}", *(entry["values"].get(name) for name in metrics)]
        for entry in entries
    ]
    return Section(
        "summary",
        "Summary",
        {
            "report": report,
            "first": metrics[0],
            "rest": [name for name in metrics[1:] if name in values],
            "beside": own_metrics(report),
            "meanings": meanings,
            "printed": {name: format_metric(report, name).replace("-", "−") for name in metrics if name in values},
            "intervals": report.intervals(),
            "errors": report.errors(),
            "citations": format_citations(entries),
            "columns": ["method", *metrics],
            "rows": [["these results", *(values[name] for name in metrics)], *rows] if rows else [],
        },
    )


def make_verdict(
    report: Report, metric: str, causes: Sequence[str], costs: Sequence[float], noun: str, worst: Markup | str
) -> Section:
    """Return a page's first section: a metric's value, its largest losses, the number of costly cases, and the worst
    one. `causes` are sentences, empty if unknown; `costs` are the costs of all cases, named by a plural noun. Slips
    that the doctor names are the first causes.
    """
    main, *beside = report.protocol.metrics
    value = Markup("<b>{} is {}.</b>").format(main, format_number(report.values[main]))
    if (last := metric.rsplit(" and ", maxsplit=1)[-1]) in beside:  # metrics that lead to the explained one
        explained = [f"{name} {format_number(report.values[name])}" for name in beside[: beside.index(last) + 1][-2:]]
        value = Markup("<b>{} is {}</b>, {}.").format(main, format_number(report.values[main]), " and ".join(explained))
    slips = [f"{line[:1].upper()}{line[1:]}." for line in report.slips]
    stated = [*slips, *(cause for cause in causes if cause)]
    if stated and _is_whole(report.values[main]):  # the explanation concerns other metrics
        lower = [
            f"{name} {format_number(report.values[name])}" for name in beside if not _is_whole(report.values[name])
        ]
        value = Markup("<b>{}.</b>").format(_list_values(main, report, lower[:2]))
    described = [*stated, count_costly(costs, noun), worst] if stated else [_describe_rest(main, report.values[main])]
    return Section(VERDICT, "Verdict", {"sentences": [sentence for sentence in (value, *described) if sentence]})


def add_bar(verdict: Section, about: str, bar: Bar, meanings: Mapping[str, str] = MappingProxyType({})) -> Section:
    """Return the verdict with a bar of a metric, named by `about`: its value, and any loss by kind of error."""
    if max((share for _, share, _ in bar[1:]), default=0.0) < LITTLE:
        return verdict
    named = ", ".join(f"{name} {format_number(share)}" for name, share, _ in bar if share >= LITTLE)
    return replace(verdict, values={**verdict.values, "bar": bar, "about": about, "named": named, "meanings": meanings})


def make_loss_bar(rows: Iterable[Row]) -> Bar:
    """Return the bar of a metric, given its loss by kind of error: rows with `kind` and `cost`."""
    lost = [(row["kind"], row["cost"], style_of_kind(row["kind"], number)) for number, row in enumerate(rows, 1)]
    return [("kept", max(0.0, 1 - sum(cost for _, cost, _ in lost)), "kept"), *lost]


def add_film(verdict: Section, player: Section) -> Section:
    """Return the verdict with the worst moment of the sequence that its link opens, or of the player's first one."""
    moments: Any = player.values["moments"]
    sequences: Any = player.values["sequences"]
    if not moments or player.values["alone"]:
        return verdict
    sentences: Any = verdict.values.get("sentences", ())
    opened = re.findall(r'data-open="([^"]*)"', " ".join(map(str, sentences)))
    named = [sequence["name"] for sequence in sequences if escape(sequence["stream"]) in opened]
    of_worst = (moment for moment in moments if moment["sequence"] == [*named, sequences[0]["name"]][0])
    return replace(
        verdict, values={**verdict.values, "film": next(of_worst, moments[0]), "legend": player.values["legend"]}
    )


def add_summary(report: Report, sections: Sequence[Section], meanings: Mapping[str, str]) -> list[Section]:
    """Insert the summary of a split after its verdict, which shows the worst moment of the player."""
    verdict = [section for section in sections[:1] if section.template == VERDICT]
    for player in [section for section in sections if section.template == PLAYER][:1]:
        verdict = [add_film(section, player) for section in verdict]
    return [*verdict, make_summary(report, meanings), *sections[len(verdict) :]]


def join_splits(splits: Mapping[str, Sequence[Section]]) -> list[Section]:
    """Join the sections of all splits; with several splits, titles name them."""
    return [section.of_split(name, named=len(splits) > 1) for name, sections in splits.items() for section in sections]


def list_verdicts(page: ReportPage) -> list[str]:
    """Return the verdict on each split as plain text: the value of the metric, and the cause of most of the loss."""
    titles = [section.title for section in page.sections if section.template == VERDICT]
    verdicts = read_verdicts(page).values()
    return [f"{title}: {' '.join(sentences[:2])}" for title, sentences in zip(titles, verdicts, strict=True)]


def read_verdicts(page: ReportPage) -> dict[str, list[str]]:
    """Return the sentences of the verdict on each split as plain text."""
    verdicts = {}
    for section in page.sections:
        if section.template == VERDICT:
            sentences: Any = section.values["sentences"]
            verdicts[section.split] = [escape(sentence).striptags() for sentence in sentences]
    return verdicts


def _is_whole(value: float | None) -> bool:
    return value is not None and value >= 1 - LITTLE


def _list_values(main: str, report: Report, lower_values: Sequence[str]) -> str:
    listed = [f"{main} is {format_number(report.values[main])}", *lower_values]
    return f"{', '.join(listed[:-1])} and {listed[-1]}" if len(listed) > 1 else listed[0]


def _describe_rest(metric: str, value: float | None) -> str:
    """Describe a loss of zero, or a loss without a cause that the page names."""
    if value is None:
        return ""
    return "Nothing is lost." if _is_whole(value) else f"No kind of error on this page explains the loss of {metric}."


def name_worst(
    rows: list[Row], noun: str, split: str = "", names: Mapping[str, str] = MappingProxyType({})
) -> Markup | str:
    """Return a sentence about the first row: its name, its loss, and the largest kind of that loss. Its link opens it
    in a split's player, or in its table if the player lacks it.
    """
    if len(rows) < 2 or rows[0]["costs"] < LITTLE:
        return ""
    name = rows[0]["name"]
    opens = Markup(' data-open="{}"').format(f"{split}/{name}") if split else ""
    text = Markup('Worst: <a href="#{}"{}>{}</a>, {}.')
    return text.format(_anchor_of(noun), opens, names.get(name, name), describe_cost(rows[0]))


def _anchor_of(title: str) -> str:
    return re.sub("[^a-z0-9]+", "-", title.lower()).strip("-")


def make_tables(report: Report) -> Section:
    """Show the tables of a split as in the JSON of scores; long tables show their first rows."""
    tables: dict[str, tuple[list[str], list[list[object]]]] = {}
    counts: dict[str, int] = {}
    for name, rows in report.rows().items():
        columns = [key for key in (rows[0] if rows else {}) if key != "split"]
        columns.sort(key=lambda key: key not in _LEADING)
        tables[name] = columns, [[row[key] for key in columns] for row in rows[:MOST_ROWS]]
        counts[name] = len(rows)
    return Section("tables", "Tables", {"tables": tables, "counts": counts})


def make_list(title: str, rows: list[Row], about: str) -> Section:
    """Show a table, whose columns are the keys of its rows, with a sentence above it."""
    if len(rows) > MOST_ROWS:
        about += f" The first {MOST_ROWS:,} of {len(rows):,}."
    return Section("listed", title, {"about": about, **_take_rows(rows)})


def _take_rows(rows: list[Row]) -> dict[str, object]:
    """Return the columns of a table, and the rows that a page shows."""
    return {"columns": list(rows[0]) if rows else [], "rows": [list(row.values()) for row in rows[:MOST_ROWS]]}


def draw_bar(parts: Sequence[tuple[str, float, str]], whole: float, about: str = "") -> Markup:
    """Return a bar for a table's cell: parts (name, share, style) fill it up to `whole`."""
    macros: Any = templates().get_template("parts.html").module
    return Markup(macros.bar(parts, whole, about).strip())  # noqa: S704 - a template escaped it


def link_frames(rows: list[Row], streams: Mapping[str, str], names: Mapping[str, str]) -> list[Row]:
    """Add readable names to rows, with links to the player where it has a stream of the row."""
    return [{**row, "name": link_stream(row["name"], streams, names.get(row["name"], row["name"]))} for row in rows]


def link_stream(name: str, streams: Mapping[str, str], shown: str = "") -> Markup | str:
    """Return a name, with a link to the player where it has a stream of this name."""
    shown = shown or name
    return Markup('<a href="#frames" data-open="{}">{}</a>').format(streams[name], shown) if name in streams else shown


#: The order of rows that `make_changes` shows.
BY_CHANGE = "Sorted by the second method's loss against the first, largest first."


def make_changes(
    title: str,
    values: Mapping[str, Mapping[str, float | None]],
    about: str,
    shown: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> Section:
    """Show each method's value in each case, and the differences from the first method.

    The cases in which the second method lost most come first; `shown` are streams of the player, and names, by case.
    A method has no value in a case that it lacks, such as a class that only others predict.
    """
    names = list(values)
    base = values[names[0]]
    rows = []
    for case in dict.fromkeys(case for cases in values.values() for case in cases):
        row: Row = {"name": case, **{name: values[name].get(case) for name in names}}
        for name in names[1:]:
            value, before = values[name].get(case), base.get(case)
            row[f"{name} − {names[0]}"] = None if value is None or before is None else value - before
        rows.append(row)
    change = f"{names[1]} − {names[0]}"
    rows.sort(key=lambda row: (row[change] is None, row[change] or 0.0))
    return make_list(title, link_frames(rows, *shown), about)


def make_kinds(
    title: str,
    rows: list[Row],
    about: str,
    note: str = "",
    *,
    caption: str = "Loss by kind of error",
    head: str = "kind",
) -> Section:
    """Show kinds of mistakes, or other parts of a loss (kind, about, cost, and maybe count), each with a bar."""
    values = {
        "caption": caption,
        "head": head,
        "about": about,
        "counted": any("count" in row for row in rows),
        "rows": [{**row, "style": style_of_kind(row["kind"], number)} for number, row in enumerate(rows, 1)],
        "largest": max([row["cost"] for row in rows] + [1e-9]),
        "note": note,
    }
    return Section("kinds", title, values)


def make_origins(warnings: list[str], provenance: Mapping[str, object]) -> Section:
    """Show the provenance of the scores, and the warnings."""
    text = json.dumps(provenance, indent=1, ensure_ascii=False)
    return Section("origins", "What was scored", {"warnings": warnings, "provenance": text})


def describe_digests(*provenances: Mapping[str, object]) -> str:
    """Return the digests that identify a truth and results, given the scores' origin."""
    results = (("results", provenance.get("submission", "")) for provenance in provenances)
    digests = [("truth", provenances[0].get("truth", "")), *results]
    text = ", ".join(f"{name} {str(digest).rpartition(':')[2][:12]}" for name, digest in digests if digest)
    return re.sub(r"[^\w, ]", "", text, flags=re.ASCII)


# ── classes taken for others ────────────────────────────────────────────────


#: The maximum number of classes in the matrix, besides `nothing`, and of pairs in the list.
_IN_MATRIX, _MOST_PAIRS = 14, 200
#: The number of pairs that are visible at once.
_VISIBLE_PAIRS = 5


def make_confusion(names: Sequence[str], table: Array, unit: str, about: str, missed: str = "") -> Section:
    """Show counts by class of the truth (rows) and the prediction (columns); the last class means unmatched.

    `missed` names true items without a prediction, if they have a name of their own.
    """
    wrong = table.sum(axis=0) + table.sum(axis=1) - 2 * np.diagonal(table)
    costly = np.argsort(-wrong[:-1], kind="stable")[:_IN_MATRIX]
    shown = [*costly[wrong[costly] > 0].tolist(), len(table) - 1]
    pairs = list_pairs(names, table, unit)
    in_rows = np.maximum(table.sum(axis=1), 1)
    rows = [
        (names[row], [(int(table[row, column]), float(table[row, column] / in_rows[row])) for column in shown])
        for row in shown
        if table[row].any()
    ]
    values = {
        "about": about,
        "unit": unit,
        "missed": missed or unit,
        "names": [names[column] for column in shown],
        "rows": rows,
        "left_out": int((table.any(axis=0) | table.any(axis=1)).sum()) - len(shown),
        "top": pairs[:_VISIBLE_PAIRS],
        "pairs": _take_rows(pairs[:_MOST_PAIRS]),
    }
    return Section("confusion", "Confusion", values)


def list_pairs(names: Sequence[str], table: Array, unit: str) -> list[Row]:
    """List confused classes, most frequent first; shares are relative to all true items of a class."""
    off = table.copy()
    np.fill_diagonal(off, 0)
    in_rows = table.sum(axis=1)
    rows: list[Row] = []
    for cell in np.argsort(-off, axis=None, kind="stable")[:_MOST_PAIRS].tolist():
        truth, prediction = divmod(cell, len(table))
        if not off[truth, prediction]:
            break
        share = float(off[truth, prediction] / in_rows[truth]) if truth < len(table) - 1 else None
        rows.append(
            {"truth": names[truth], "taken for": names[prediction], unit: int(off[truth, prediction]), "share": share}
        )
    return rows
