"""The page of a stored result, without truth and submission: what `evaluate()` or `segjudge score --json` left."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS
from segjudge.evaluation_script.families.base.family import Values
from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.files.limits import check_memory, size_text
from segjudge.evaluation_script.files.problems import Flaw
from segjudge.families import FamilyTools, tools_of
from segjudge.report.overview import digests, listed, origins, summary, tables
from segjudge.report.page import ReportPage, Section, rendered
from segjudge.report.stored_shapes import by_split, list_of, mapping_of, number_of, refuse, text_of, value_of
from segjudge.system.errors import UsageError

#: The file of a stored result has so many bytes at most, and takes so much memory.
MOST_BYTES, MOST_MEMORY = 256 << 20, 1 << 31
#: What a stored result holds beside its tables.
_BESIDE_TABLES = frozenset({"result", "scored", "warnings", "errors", "intervals"})


def stored_page(result: Mapping[str, object], title: str) -> str:
    """Return the page of a `submission_result`, of any track and level; raises UsageError for anything else."""
    sections: list[Section] = []
    streams: dict[str, bytes] = {}
    reports, losses = _reports(result), mapping_of(result.get("losses", {}))
    for report in reports:
        found = [summary(report)]
        if report.split in losses:
            tools = _tools_that_read(report.protocol.name)
            own, more = tools.make_stored_sections(mapping_of(losses[report.split]), report)
            streams |= more
            found += own
        elif report.rows():
            found.append(tables(report))
        sections += [one.of_split(report.split) for one in found] if len(reports) > 1 else found
    if not reports:
        sections.append(listed("Summary", [], "The scores of this phase are not shown."))
    warnings = [text_of(line) for line in list_of(result.get("warnings", []))]
    provenance = mapping_of(result.get("provenance") or result.get("versions") or {})
    try:
        sections.append(origins(warnings, provenance))
        page = rendered(ReportPage(title, sections, streams, digests(provenance)))
    except RecursionError:
        refuse("is nested too deeply")
    return page.encode("utf-8", "replace").decode("utf-8")  # a name may have half of a character


@dataclass(frozen=True)
class StoredProtocol:
    """What a stored result tells of a protocol; its metrics are those that were stored."""

    track: ClassVar[str] = ""
    name: str
    about: str
    metrics: tuple[str, ...]
    revision: int = 0
    form: str = ""


def read_stored(path: str) -> Mapping[str, object]:
    """Return the JSON of a stored result; raises UsageError where it is none."""
    try:
        if os.path.getsize(path) > MOST_BYTES:
            refuse(f"is larger than {size_text(MOST_BYTES)}")
        with open(path, "rb") as file:
            data = file.read()
        check_memory(data, MOST_MEMORY, "")
        return mapping_of(json.loads(data))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except (Flaw, ValueError, RecursionError):
        raise UsageError(f"{path}: is not JSON that can be read; without --truth, name what a phase left") from None


class StoredReport(Report):
    """A split of a stored result."""

    def __init__(self, split: str, values: Values, protocol: StoredProtocol, rows: dict[str, list[Row]]) -> None:
        super().__init__(split, protocol, values, rows, [])
        self.found_errors: Values = {}
        self.found_intervals: dict[str, tuple[float, float]] = {}

    def errors(self, metrics: object = ()) -> Values:
        del metrics
        return self.found_errors

    def intervals(self, level: float = 0.95, metrics: object = ()) -> dict[str, tuple[float, float]]:
        del level, metrics
        return self.found_intervals


def _reports(result: Mapping[str, object]) -> list[StoredReport]:
    """Return the splits of a stored result."""
    values, errors, intervals = (by_split(result, key) for key in ("result", "errors", "intervals"))
    if "result" not in result:
        refuse("has no result")
    every = {
        name: _rows(name, rows)
        for name, rows in result.items()
        if name not in _BESIDE_TABLES and isinstance(rows, list)
    }
    reports = []
    for split, found in values.items():
        scores = {metric: value_of(value) for metric, value in found.items()}
        if not scores:
            refuse("has a split without metrics")
        rows = {
            name: [{key: cell for key, cell in row.items() if key != "split"} for row in table if row["split"] == split]
            for name, table in every.items()
        }
        protocol = _protocol(result, split, scores)
        report = StoredReport(split, scores, protocol, {name: table for name, table in rows.items() if table})
        report.found_errors = {metric: value_of(value) for metric, value in errors.get(split, {}).items()}
        report.found_intervals = {metric: _interval(ends) for metric, ends in intervals.get(split, {}).items()}
        reports.append(report)
    return reports


def _protocol(result: Mapping[str, object], split: str, values: Values) -> StoredProtocol:
    """Return what is known of a split's protocol; metrics in its order, if it is one of ours."""
    named = mapping_of(mapping_of(mapping_of(result.get("provenance", {})).get("protocols", {})).get(split, {}))
    name = str(named.get("name", result.get("protocol", "")))
    ours = PROTOCOLS.get(name)
    if ours is None or named.get("changed"):
        return StoredProtocol(name, "", tuple(values))
    metrics = [metric for metric in ours.metrics if metric in values]
    return StoredProtocol(name, ours.about, tuple(metrics or values))


def _tools_that_read(protocol: str) -> FamilyTools:
    """Return what reads stored losses: the protocol's family if that keeps any, or else one that does."""
    own = [PROTOCOLS[protocol].track] if protocol in PROTOCOLS else []
    return next(filter(lambda tools: tools.keeps_losses, map(tools_of, [*own, *FAMILIES])), FamilyTools())


def _interval(ends: object) -> tuple[float, float]:
    found = [number_of(end) for end in list_of(ends)]
    return (found[0], found[1]) if len(found) == 2 else refuse("has an interval without two ends")


def _rows(name: str, rows: list[object]) -> list[Row]:
    """Return the rows of a table, all of the same columns; each names its split."""
    found = [mapping_of(row) for row in rows]
    for row in found:
        if not isinstance(row.get("split"), str) or row.keys() != found[0].keys():
            refuse(f"has rows of {name} without a split, or of different columns")
        for cell in row.values():
            if not isinstance(cell, str):
                value_of(cell)
    return [dict(row) for row in found]
