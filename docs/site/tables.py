"""Write the tables of README.md and docs that repeat rows of the code: `python -m docs.site.tables`.

Every marked place shows the table of its name:

    <!-- tables: NAME -->
    <!-- /tables -->

Rows come from the protocols, the families and their mirrors; tables omit installed plug-ins.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from docs.site.writers import READERS, WRITERS, Writer
from segjudge.evaluation_script.families import FAMILIES, FOLDERS, PROTOCOLS, folder_of, plugins_of
from segjudge.evaluation_script.families.base.family import Family, FamilyProtocol
from segjudge.evaluation_script.files import limits
from segjudge.evaluation_script.files.limits import ArchiveLimits, size_text
from segjudge.families import FamilyTools, layout_of, tools_of
from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry
from segjudge.report.tables import PublishedNumbers, read_published_numbers
from segjudge.starting.benchmarks import Metric

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARKED = re.compile(r"(<!-- tables: ([\w-]+) -->\n)(.*?)(<!-- /tables -->)", re.DOTALL)
#: The page that lists all benchmarks, from the root.
LIST = "docs/benchmarks.md"


class DocumentedFamily(NamedTuple):
    """A family of this repository, with the content of its tables."""

    family: Family
    protocols: list[FamilyProtocol]
    tools: FamilyTools
    entry: FamilyEntry

    @property
    def place(self) -> str:
        """Return the anchor of its heading in the list of benchmarks."""
        return re.sub(r"[^\w -]", "", self.entry.title.lower()).replace(" ", "-")

    @property
    def limits(self) -> str:
        return self.tools.limits or ArchiveLimits.__name__


def list_families() -> list[DocumentedFamily]:
    """Return the families in the order of the documentation; raises LookupError for a missing text."""
    families = []
    for name, family in FAMILIES.items():
        if folder_of(name) not in FOLDERS:
            continue
        tools, rows = tools_of(name), [row for row in family.protocols.values() if not plugins_of([row.name])]
        entry = tools.read_entry()
        path = f"segjudge/families/{folder_of(name)}"
        if entry is None:
            raise LookupError(f"the family {name} is in no list of benchmarks; write ENTRY in {path}/benchmarks.py")
        listed = [protocol for row in entry.benchmarks for protocol in row.protocols]
        if missing := sorted({row.name for row in rows}.symmetric_difference(listed)):
            raise LookupError(
                f"{', '.join(missing)}: the protocols of the family {name} and those of its list of benchmarks differ; "
                f"correct ENTRY in {path}/benchmarks.py"
            )
        families.append(DocumentedFamily(family, rows, tools, entry))
    return families


# ── tables ──────────────────────────────────────────────────────────────────


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def name_all(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def list_benchmarks() -> str:
    """Return one section per family: its benchmarks, files, limits and arrays, and rules that no page has."""
    return "\n\n".join("\n\n".join(_describe_family(family)) for family in list_families())


def _describe_family(family: DocumentedFamily) -> Iterator[str]:
    entry = family.entry
    _check_meanings(family)
    yield f"## {entry.title}"
    rows = [
        (_link_page(row), _name_protocols(row), row.evaluator, row.truth, row.submission) for row in entry.benchmarks
    ]
    yield format_table(("benchmark", "protocols", "equals", "`--root` or `--truth`", "submission"), _mark_same(rows))
    if notes := [*_describe_uploads(family)]:
        yield " ".join(notes)
    with_page = {name for row in entry.benchmarks if row.page for name in row.protocols}
    if without_page := [row for row in family.protocols if row.name not in with_page]:
        yield f"### Protocols: {entry.title}"
        yield list_rules(without_page)
    if entry.columns:
        cells = [(f"`{row.name}`", *entry.cells[row.name]) for row in family.protocols]
        yield format_table(("protocols", *entry.columns), _merge_rows(cells))
    if entry.notes:
        yield entry.notes.strip()
    if entry.memory:
        yield f"### In memory: {entry.title}"
        forms = [
            f"- **{form.kind[:1].upper()}{form.kind[1:]}:** `score_arrays` takes {form.whole}; `update` {form.update}."
            for form in entry.memory
        ]
        yield "\n".join([*forms, *filter(None, [entry.arrays.strip()])])


def list_rules(protocols: Sequence[FamilyProtocol]) -> str:
    return format_table(("protocol", "rule"), [(f"`{row.name}`", row.about) for row in protocols])


#: The endings of uploads and the limits of most families, which the page states once.
_ENDINGS, _LIMITS = ".zip, .json, .gz, .tar", "UNIT_LIMITS"


def _describe_uploads(family: DocumentedFamily) -> Iterator[str]:
    """Return sentences on uploads that differ from most families'."""
    if family.tools.upload_types != _ENDINGS:
        yield f"Uploads end in {name_all(family.tools.upload_types.split(', '))}."
    if family.limits != _LIMITS:
        yield f"[Limits](#limits) are `{family.limits}`."
    if family.family.needs_packages:
        yield "On Codabench, the scoring program installs compiled packages."


def _merge_rows(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Join the first cells of rows whose other cells are equal."""
    merged = dict[tuple[str, ...], list[str]]()
    for name, *cells in rows:
        merged.setdefault(tuple(cells), []).append(name)
    return [(", ".join(names), *cells) for cells, names in merged.items()]


def _link_page(row: BenchmarkEntry) -> str:
    return f"[{row.title}](benchmarks/{row.page})" if row.page else row.title


def _name_protocols(row: BenchmarkEntry) -> str:
    """Return the protocols of a benchmark, and the layouts that are not named like their protocols."""
    layouts = {name: layout_of(PROTOCOLS[name]) for name in row.protocols}
    others = sorted({layout for name, layout in layouts.items() if name != layout})
    return name_all(row.protocols) + (f" (layout {name_all(others)})" if others else "")


def _mark_same(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Replace the last two cells of a row by "the same" where the row above has the same."""
    marked = list(rows[:1])
    for above, row in pairwise(rows):
        cells = ("the same" if cell == old else cell for old, cell in zip(above[-2:], row[-2:], strict=True))
        marked.append((*row[:-2], *cells))
    return marked


def _check_meanings(family: DocumentedFamily) -> None:
    """Raise LookupError for a metric without a meaning."""
    tools, beside = family.tools, [*family.family.own_metrics, *family.tools.other_metrics]
    for name in dict.fromkeys([*(name for row in family.protocols for name in row.metrics), *beside]):
        check_meaning(
            Metric(name, tools.describe_metric(name), tools.prefers_smaller(name), tools.bounds_of(name)), family
        )


def check_meaning(metric: Metric, family: DocumentedFamily) -> None:
    """Raise LookupError for a metric without a meaning."""
    if metric.about.strip() in ("", metric.name):
        path = f"segjudge/families/{folder_of(family.family.name)}/__init__.py"
        raise LookupError(f"the metric {metric.name} has no meaning; write one in `describe_metric` of {path}")


def summarize_families() -> str:
    """Return ten rows: the nine largest families, linked to the list, and all others in the last row."""
    families = sorted(list_families(), key=lambda family: -len(family.entry.benchmarks))
    rows = [(_link_list(family), _name_few([row.title for row in family.entry.benchmarks])) for family in families[:9]]
    rows += [(f"[more]({LIST})", ", ".join(map(_link_list, families[9:])))]
    return format_table(("family", "benchmarks"), rows)


def _link_list(family: DocumentedFamily) -> str:
    return f"[{family.entry.title}]({LIST}#{family.place})"


def _name_few(titles: Sequence[str], most: int = 5) -> str:
    """Return the first titles and the number of the others."""
    others = len(titles) - most
    return ", ".join(titles) if others <= 1 else f"{', '.join(titles[:most])} and {others} more"


def summarize_limits() -> str:
    """Return the limits of submissions, one column per set of limits."""
    sets = {family.limits: ArchiveLimits() for family in list_families()}
    sets.update({name: getattr(limits, name) for name in sets if name != ArchiveLimits.__name__})
    facts: dict[str, Callable[[ArchiveLimits], str]] = {
        "files and folders, `members`": lambda row: f"{row.members:,}",
        "one unpacked file, `member_bytes`": lambda row: size_text(row.member_bytes),
        "all unpacked files, `total_bytes`": lambda row: size_text(row.total_bytes),
        "one JSON file, `json_bytes`": lambda row: size_text(row.json_bytes),
        "JSON in memory, `memory_bytes`": lambda row: size_text(row.memory_bytes),
        "unpacked size / packed size, `ratio`": lambda row: str(row.ratio),
        "nested folders, `depth`": lambda row: str(row.depth),
        "objects per sequence, `objects`": lambda row: str(row.objects),
        "instances, `records`": lambda row: f"{row.records:,}",
    }
    rows = [(fact, *(describe(row) for row in sets.values())) for fact, describe in facts.items()]
    return format_table(("at most", *(f"`{name}`" for name in sets)), rows)


def list_writers() -> str:
    """Return the kinds of files that Segjudge reads of other programs."""
    rows = dict[tuple[str, str], list[Writer]]()
    for row in WRITERS:
        rows.setdefault((row.program, READERS[row.kind][0]), []).append(row)
    cells = [
        (
            program,
            ", ".join(dict.fromkeys(row.ending for row in same)),
            kind,
            "; ".join({row.note: 1 for row in same if row.note}),
        )
        for (program, kind), same in rows.items()
    ]
    return format_table(("program", "ending", "read as", "remark"), cells)


#: The purpose of each extra.
_PURPOSES = {
    "host": "`new`, `run`, `check`, `build`, `push`, `board`, `worker`; the conformance kit",
    "serve": "`rehearse`",
    "interactive": "`interactive`; plots",
    "agents": "`arena`, `rehearse --agents`, `segjudge.agent`, the Gymnasium environments",
    "hub": "`push` and `worker` on the Hugging Face Hub",
    "tables": "scores as pandas tables",
    "cluster": "`--scheduler`; truths and results at URLs and in buckets",
    "torch": "the metric for training loops",
    "aws": "your own queue and bucket for the worker",
    "all": "everything but `torch`",
}
#: Extras that no page names: earlier names, and the tests' extra.
_UNNAMED = {"agent", "environments", "test"}
_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)(?:\[([^]]+)\])?")


def summarize_extras() -> str:
    """Return the purpose, contained extras and packages of each extra of `pyproject.toml`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: rows for name, rows in project["optional-dependencies"].items() if name not in _UNNAMED}
    if missing := sorted(extras.keys() ^ _PURPOSES.keys()):
        raise LookupError(
            f"{', '.join(missing)}: the extras of pyproject.toml and `_PURPOSES` of docs/site/tables.py differ; "
            "say there what each extra is for"
        )
    return format_table(
        ("extra", "for", "contains", "packages"),
        [(f"`{name}`", _PURPOSES[name], *_sort_requirements(project["name"], rows)) for name, rows in extras.items()],
    )


def _sort_requirements(project: str, requirements: Sequence[str]) -> tuple[str, str]:
    """Return the extras and the packages that an extra requires."""
    matches = [match for row in requirements if (match := _REQUIREMENT.match(row))]
    contained = [
        extra
        for name, extras in (match.groups("") for match in matches)
        if name == project
        for extra in extras.split(",")
    ]
    return name_all(contained), ", ".join(match[1] for match in matches if match[1] != project)


def _find_published_numbers() -> dict[str, list[PublishedNumbers]]:
    """Return the numbers that papers published, by the page of their benchmark."""
    pages = dict[str, list[PublishedNumbers]]()
    for family in list_families():
        page_of = {name: row.page for row in family.entry.benchmarks for name in row.protocols}
        for entry in read_published_numbers(family.family.name):
            if page := page_of[entry["protocol"]].partition(".")[0]:
                pages.setdefault(page, []).append(entry)
    return pages


def list_published_numbers(page: str, entries: Sequence[PublishedNumbers]) -> str:
    """Return a row per method; the protocol is a column unless the page is named after it."""
    metrics = list(dict.fromkeys(name for entry in entries for name in entry["values"]))
    protocols = {entry["protocol"] for entry in entries} != {page}
    rows = [
        (
            *([f"`{entry['protocol']}`"] if protocols else []),
            entry["method"],
            entry["dataset"],
            *(f"{entry['values'][name]:.3f}" if name in entry["values"] else "" for name in metrics),
            ", ".join(entry["source"].split(", ")[:2]),
        )
        for entry in entries
    ]
    head = (*(["protocol"] if protocols else []), "method", "data", *(f"`{name}`" for name in metrics), "source")
    return format_table(head, rows)


#: The tables by name.
TABLES: Mapping[str, Callable[[], str]] = {
    "benchmarks": list_benchmarks,
    "extras": summarize_extras,
    "families": summarize_families,
    "limits": summarize_limits,
    "writers": list_writers,
    **{f"rules-{family.family.name}": partial(list_rules, family.protocols) for family in list_families()},
    **{
        f"published-{page}": partial(list_published_numbers, page, entries)
        for page, entries in _find_published_numbers().items()
    },
}


# ── pages ───────────────────────────────────────────────────────────────────


def fill(text: str) -> str:
    """Return a page's text with its tables filled in; raises LookupError for an unknown table."""
    if unknown := sorted({name for _, name, *_ in MARKED.findall(text)} - TABLES.keys()):
        raise LookupError(f"there is no table {', '.join(unknown)}; there are {', '.join(TABLES)}")
    return MARKED.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n\n{match[4]}", text)


def main() -> int:
    """Write the tables; print a message and return 1 if a text is missing."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        try:
            filled = fill(text)
        except LookupError as error:
            print(f"{page.relative_to(ROOT)}: {error.args[0]}", file=sys.stderr)
            return 1
        if filled != text:
            page.write_text(filled, encoding="utf-8")
            print(f"Wrote {page.relative_to(ROOT)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
