"""Scores of several algorithms in the same cases, read from the files that `score --json` writes, or from tables."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.base.units import UnitAccumulator
from segjudge.evaluation_script.families.instances.metrics import InstanceAccumulator
from segjudge.evaluation_script.files.problems import name_hint, name_list, printable, quantity
from segjudge.evaluation_script.scoring.answer import tables
from segjudge.families import prefers_smaller
from segjudge.scoring.parts import merge_parts, rules_as_json
from segjudge.system.errors import UsageError

from .rankings import Sums, TaskScores

#: What a ranking of metrics of mask sequences is of, where nothing else is said.
METRIC = "J&F-Mean"
#: The columns of a table of scores; `task` may be left out.
COLUMNS = ("algorithm", "case", "value")
#: What stands for a missing value.
ABSENT = frozenset({"", "NA", "NaN", "nan"})
#: The largest difference of a metric from the mean over objects that it is said to be.
SAME = 1e-9
MOST_ROWS = 5_000_000
#: Every two algorithms are compared in every redrawing.
MOST_ALGORITHMS = 500
#: Beyond it, squares cannot be summed.
MOST_VALUE = 1e100


#: How scores differ that cannot be ranked together, by the key of their origin.
_DIFFER = {
    "revision": "by different revisions of {}; score both with the same version of segjudge",
    "rules": "by different rules of {}; score both by the same",
    "truth": "on different truths; score both on the same file or folder",
    "cases": "on different images, videos or sequences; score both on the same",
}


@dataclass(frozen=True)
class AlgorithmScores:
    """What one algorithm scored: a split's metrics, and their rows by object."""

    name: str
    protocol: str
    values: Mapping[str, float | None]
    #: The sequence and the values of each object; nothing where the metrics are no means over objects.
    objects: list[dict[str, Any]]
    #: The values of each metric by group of images, videos or sequences, where there are no objects.
    groups: Mapping[str, list[float]] | None = None
    #: What has to be the same in whatever is ranked together, as far as a file says it.
    origin: Mapping[str, object] = field(default_factory=dict)


def algorithm_scores(name: str, document: Mapping[str, Any], split: str = "") -> AlgorithmScores:
    """Return what one algorithm scored, from the document that `score --json` writes; TypeError where it is none."""
    results = {key: values for one in document["result"] for key, values in one.items()}
    split = chosen_split(name, list(results), split)
    groups = document.get("groups", {}).get(split)
    if "objects" not in document and groups is None:
        remedy = "score it anew with this version of segjudge, which writes them"
        raise UsageError(f"{name} has no values by object or group; {remedy}")
    objects = [row for row in document.get("objects", []) if row["split"] == split]
    values = results[split]
    by_group: dict[str, list[float]] | None = None if groups is None else {**groups["values"]}
    if not all(isinstance(row, list) and all(map(_is_number, row)) for row in (by_group or {}).values()):
        raise TypeError
    texts = [document["protocol"], *values, *(row["sequence"] for row in objects)]
    numbers = [*values.values(), *(row.get(metric) for row in objects for metric in values)]
    if not all(isinstance(text, str) for text in texts) or not all(map(_is_value, numbers)):
        raise TypeError
    return AlgorithmScores(name, document["protocol"], values, objects, by_group, _origin(document, split))


def _origin(document: Mapping[str, Any], split: str) -> dict[str, object]:
    """Return what of a document has to be the same in whatever is ranked together; nothing that it does not say."""
    provenance = document.get("provenance") or {}
    protocol = (provenance.get("protocols") or {}).get(split) or {}
    found = {
        "revision": protocol.get("revision"),
        "rules": (document.get("rules") or {}).get(split, "changed" if protocol.get("changed") else None),
        "truth": provenance.get("truth"),
        "cases": ((document.get("groups") or {}).get(split) or {}).get("cases"),
    }
    return {key: value for key, value in found.items() if value is not None or (key == "rules" and protocol)}


def check_alike(first: AlgorithmScores, other: AlgorithmScores) -> None:
    """Refuse what cannot be ranked together: other protocols, revisions, rules, truths or cases."""
    pair = f"{other.name} and {first.name}"
    if other.protocol != first.protocol:
        were = f"{other.name} was scored as {printable(other.protocol)}, {first.name} as {printable(first.protocol)}"
        raise UsageError(were)
    differ = {key for key in other.origin.keys() & first.origin.keys() if other.origin[key] != first.origin[key]}
    for key in [key for key in _DIFFER if key in differ]:
        raise UsageError(f"{pair} were scored {_DIFFER[key].format(printable(first.protocol))}")


def chosen_split(name: str, splits: list[str], split: str) -> str:
    """Return the split that was named, or the only one."""
    if split and split not in splits:
        raise UsageError(f"{name} has no split {split!r}{name_hint(split, splits)}")
    if not split and len(splits) != 1:
        raise UsageError(f"{name} has the splits {name_list(splits, 20)}; name one with --split")
    return split or splits[0]


def _is_value(value: object) -> bool:
    return value is None or _is_number(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= MOST_VALUE


def sums_of(scores: list[AlgorithmScores], metric: str) -> tuple[Sums, list[str]]:
    """Return what a metric sums to in each sequence, and the sequences' names; refuses what cannot be compared."""
    first = scores[0]
    names = list(dict.fromkeys(row["sequence"] for row in first.objects))
    table = np.zeros((len(scores), len(names)))
    counts = np.zeros_like(table)
    for row, one in enumerate(scores):
        check_alike(first, one)
        if {entry["sequence"] for entry in one.objects} != set(names):
            raise UsageError(f"{one.name} and {first.name} were not scored on the same sequences")
        if metric not in one.values:
            raise UsageError(f"{printable(one.protocol)} has no metric {metric}{name_hint(metric, one.values)}")
        for entry in one.objects:
            if entry.get(metric) is not None:
                table[row, names.index(entry["sequence"])] += entry[metric]
                counts[row, names.index(entry["sequence"])] += 1
        value = one.values[metric]
        if value is None or not counts[row].any() or abs(table[row].sum() / counts[row].sum() - value) > SAME:
            raise UsageError(f"{metric} of {one.protocol} is not a mean over objects, so it is not compared")
        if not np.array_equal(counts[row], counts[0]):
            raise UsageError(f"{one.name} and {first.name} were not scored on the same objects")
    return Sums(tuple(one.name for one in scores), table, counts[0], prefers_smaller(metric)), names


def grouped_sums(reports: Mapping[str, Report], metric: str) -> Sums:
    """Return the pseudo-values of a metric that is no mean over objects, by group of images, videos or sequences.

    What cannot be compared is refused; see `docs/ranking.md`.
    """
    first_name, first = next(iter(reports.items()))
    rows = []
    for name, report in reports.items():
        if report.protocol != first.protocol:
            raise UsageError(f"{name} was scored as {report.protocol.name}, {first_name} as {first.protocol.name}")
        if metric not in report.values:
            raise UsageError(f"{report.protocol.name} has no metric {metric}{name_hint(metric, report.values)}")
        if _cases(report) != _cases(first):
            raise UsageError(f"{name} and {first_name} were not scored on the same truth")
        found = report.sums([metric])
        if metric not in found:
            raise UsageError(f"{name}: {metric} has no value, or none without some of the images or videos")
        rows.append(found[metric][0])
    return Sums(tuple(reports), np.stack(rows), np.ones(len(rows[0])), prefers_smaller(metric))


def _cases(report: Report) -> object:
    found = report.counts
    if isinstance(found, InstanceAccumulator):
        return found.images, found.categories
    return (found.names, found.facts) if isinstance(found, UnitAccumulator) else None


def ranking_metric(metrics: Iterable[str], wanted: str = "") -> str:
    """Return the metric that was named, or the one that ranks where none is: J&F, or the first that there is."""
    found = list(metrics)
    return wanted or (METRIC if METRIC in found else found[0])


def tasks_of(scores: list[AlgorithmScores], metric: str = "") -> list[TaskScores]:
    """Return the table of a metric by sequence or group, as one task."""
    metric = ranking_metric(scores[0].values, metric)
    if any(one.groups is not None for one in scores):
        return [_grouped_task(scores, metric)]
    sums, names = sums_of(scores, metric)
    with np.errstate(invalid="ignore"):
        values = sums.sums / sums.counts
    return [TaskScores(metric, sums.algorithms, tuple(names), values, sums.smaller)]


def _grouped_task(scores: list[AlgorithmScores], metric: str) -> TaskScores:
    rows = []
    for one in scores:
        check_alike(scores[0], one)
        if metric not in one.values:
            raise UsageError(
                f"{printable(one.protocol)} has no metric {metric}, only {name_list(list(one.values), 99)}"
            )
        if one.groups is None or metric not in one.groups:
            raise UsageError(f"{one.name}: {metric} has no value, or none without some of the images or videos")
        rows.append(one.groups[metric])
    if len({len(row) for row in rows}) > 1:
        raise UsageError(f"{scores[0].name} and the others were scored {_DIFFER['cases']}")
    cases = tuple(f"group {number}" for number in range(1, len(rows[0]) + 1))
    return TaskScores(metric, tuple(one.name for one in scores), cases, np.array(rows, float), prefers_smaller(metric))


def groups_of(reports: Iterable[Report]) -> dict[str, dict[str, object]]:
    """Return, by split, the metrics that are no means over objects by group, and what tells the cases apart."""
    found: dict[str, dict[str, object]] = {}
    for report in reports:
        counted = report.counts
        if isinstance(counted, (InstanceAccumulator, UnitAccumulator)):
            values = {metric: sums.tolist() for metric, (sums, _) in report.sums(()).items()}
            cases = {key: value for key, value in counted.describe().items() if key != "notes"}
            digest = hashlib.sha256(json.dumps(cases, sort_keys=True).encode()).hexdigest()
            found[report.split] = {"cases": digest, "values": values}
    return found


def changed_rules(reports: Iterable[Report]) -> dict[str, object]:
    """Return, by split, the rules of a protocol where they are not its own."""
    changed = [report for report in reports if report.protocol != PROTOCOLS.get(report.protocol.name)]
    return {report.split: rules_as_json(report.protocol) for report in changed}


def comparable(reports: list[Report], provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of `score --json`, as far as rankings read it."""
    beside = {"groups": groups_of(reports), "rules": changed_rules(reports)}
    return {**tables(reports), **{key: value for key, value in beside.items() if value}, "provenance": provenance}


def read_table(path: str, *, smaller: bool) -> list[TaskScores]:
    """Read a CSV with the columns algorithm, case, value, and task where there are several."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True, strict=True)
            header = list(reader.fieldnames or ())
            for found in (column for column in (*COLUMNS, "task") if header.count(column) != 1):
                if found in header or found in COLUMNS:
                    many = "several columns" if found in header else "no column"
                    remedy = f"a table has {', '.join(COLUMNS)} once each, separated by commas"
                    raise UsageError(f"{path}: has {many} {found}; {remedy}")
            return _tasks(path, reader, smaller=smaller)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: is not a CSV of UTF-8 ({error})") from None


def _tasks(path: str, rows: Iterable[dict[str, str]], *, smaller: bool) -> list[TaskScores]:
    found: dict[str, dict[tuple[str, str], float]] = {}
    for number, row in enumerate(rows, 2):
        if number > MOST_ROWS + 1:  # line 1 is the header
            raise UsageError(f"{path}: has more than {MOST_ROWS} rows")
        if None in row:  # what is beyond the header
            raise UsageError(f"{path}: line {number}: has more cells than the header; write 0.5, not 0,5")
        key = (row["algorithm"] or "", row["case"] or "")
        cells = found.setdefault(row.get("task") or "", {})
        if key in cells:
            raise UsageError(f"{path}: line {number}: {key[0]} has case {key[1]} twice")
        cells[key] = _value(row["value"] or "", f"{path}: line {number}")
    if not found:
        raise UsageError(f"{path}: has no rows")
    return [_task(path, name, cells, smaller=smaller) for name, cells in found.items()]


def _value(text: str, where: str) -> float:
    if text.strip() in ABSENT:
        return float("nan")
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if not abs(value) <= MOST_VALUE:
        raise UsageError(f"{where}: {printable(text)} is not a number that a score can be; leave a missing value empty")
    return value


def _task(path: str, name: str, cells: Mapping[tuple[str, str], float], *, smaller: bool) -> TaskScores:
    algorithms = sorted({algorithm for algorithm, _ in cells})
    cases = sorted({case for _, case in cells})
    if len(algorithms) > MOST_ALGORITHMS:
        found = f"{len(algorithms):,} algorithms and {quantity(len(cases), 'case')}"
        raise UsageError(f"{path}: has {found}; at most {MOST_ALGORITHMS} algorithms are ranked")
    rows, columns = ({one: place for place, one in enumerate(names)} for names in (algorithms, cases))
    values = np.full((len(algorithms), len(cases)), np.nan)
    for (algorithm, case), value in cells.items():
        values[rows[algorithm], columns[case]] = value
    return TaskScores(name, tuple(algorithms), tuple(cases), values, smaller)


def _document(path: str) -> Any:
    """Return what `score --json` wrote to a file, or would of what `Scores.save` wrote there."""
    if zipfile.is_zipfile(path):
        reports, _, provenance = merge_parts([path])
        return comparable(reports, provenance)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_scores(names_and_files: list[str], split: str = "") -> list[AlgorithmScores]:
    """Read files of `score --json` or of `Scores.save`, each given as FILE or NAME=FILE."""
    found = []
    for text in names_and_files:
        name, _, path = text.rpartition("=") if not os.path.exists(text) else ("", "", text)
        try:
            document = _document(path)
            found.append(algorithm_scores(name or os.path.basename(path).partition(".")[0], document, split))
        except OSError as error:
            raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UsageError(f"{path}: is not what `score --json` writes, nor saved scores") from None
    names = [one.name for one in found]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f"two are called {twice[0]}; name them as NAME=FILE")
    return found
