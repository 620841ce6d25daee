"""Tables of scores: files of `score`, and the values of algorithms in common cases."""

from __future__ import annotations

import csv
import json
import math
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.files.problems import name_hint, name_list, printable, quantity
from segjudge.families import describe_unknown_metric, prefers_smaller
from segjudge.report.sentences import HIDDEN
from segjudge.scoring.parts import merge_parts
from segjudge.scoring.scores import Scores, cases_of, make_ranking_document
from segjudge.system.errors import UsageError

from .rankings import TaskScores
from .statistics import Sums

#: The metric that ranks mask sequences by default.
_METRIC = "J&F-Mean"
#: The columns of a table of scores; `task` is optional.
_COLUMNS = ("algorithm", "case", "value")
#: The texts of a missing value.
_ABSENT = frozenset({"", "NA", "NaN", "nan"})
#: The maximum difference of a metric from the mean over objects that it claims to be.
_TOLERANCE = 1e-9
_MOST_ROWS = 5_000_000
#: The maximum number of algorithms, since every two are compared in every bootstrap sample.
_MOST_ALGORITHMS = 500
#: The maximum value, above which squares cannot be summed.
_MOST_VALUE = 1e100


#: The differences that prevent a common ranking, by the key of their origin.
_DIFFER = {
    "revision": "by different revisions of {}; score both with the same version of segjudge",
    "rules": "by different rules of {}; score both by the same rules",
    "truth": "on different truths; score both on the same file or folder",
    "cases": "on different images, videos, sequences or categories; score both on the same ones",
}


@dataclass(frozen=True)
class AlgorithmScores:
    """The scores of one algorithm: a split's metrics, and their rows by object."""

    name: str
    protocol: str
    values: Mapping[str, float | None]
    #: The sequence and the values of each object; empty if metrics are not means over objects.
    objects: list[dict[str, Any]]
    #: The values of each metric by group of images, videos or sequences, if there are no objects.
    groups: Mapping[str, list[float]] | None = None
    #: The facts that must agree in a common ranking, if a file states them.
    origin: Mapping[str, object] = field(default_factory=dict)
    #: The rows of its cases and their regions, if the family has them.
    cases: list[dict[str, Any]] = field(default_factory=list)
    #: The split, if its scores are hidden from participants.
    hidden_split: str = ""
    #: The warnings about its results.
    warnings: list[str] = field(default_factory=list)


def name_scores(entries: Iterable[object]) -> dict[str, Scores]:
    """Return scores by name: by key if given as a mapping, else by the names of their results."""
    named: list[tuple[str, Scores]] = []
    for entry in entries:
        pairs = entry.items() if isinstance(entry, Mapping) else [("", entry)]
        for name, scores in pairs:
            if not isinstance(scores, Scores):
                raise UsageError(f"{scores!r:.60} is not scores: segjudge.score and segjudge.load return scores")
            named.append((str(name) or scores.title.partition(".")[0], scores))
    names = [name for name, _ in named]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f'two have the name {twice}; name them: {{"A": scores, "B": scores}}')
    return dict(named)


def scores_of(name: str, scores: Scores, split: str = "") -> AlgorithmScores:
    """Return the data of scores that a ranking needs."""
    return _read_document(name, make_ranking_document(scores), split)


def _read_document(name: str, document: Mapping[str, Any], split: str = "") -> AlgorithmScores:
    """Return the scores in a document of `score --json`; raises TypeError for other documents."""
    results = {key: values for entry in document["result"] for key, values in entry.items()}
    split = choose_split(name, list(results), split)
    groups = document.get("groups", {}).get(split)
    if "objects" not in document and groups is None:
        remedy = "score it again with this version of segjudge, which writes them"
        raise UsageError(f"{name} has no values per object or group; {remedy}")
    # A family that counts by unit may call a table of its own `objects`.
    objects = [row for row in document.get("objects", []) if row["split"] == split] if groups is None else []
    values = results[split]
    by_group: dict[str, list[float]] | None = None if groups is None else {**groups["values"]}
    rows = [] if by_group is None else list(by_group.values())
    if not values or not all(isinstance(row, list) and row and all(map(_is_number, row)) for row in rows):
        raise TypeError
    texts = [document["protocol"], *values, *(row["sequence"] for row in objects)]
    cases = [row for row in document.get("cases", []) if row["split"] == split]
    numbers = [*values.values(), *(row.get(metric) for row in [*objects, *cases] for metric in values)]
    if not all(isinstance(text, str) for text in texts) or not all(
        number is None or _is_number(number) for number in numbers
    ):
        raise TypeError
    origin, hidden_split = _read_origin(document, split), split if split in document.get("hidden", []) else ""
    prefixes = tuple(f"{key}: " for key in results if key != split)
    warnings = [line for line in document.get("warnings", []) if not line.startswith(prefixes)]
    return AlgorithmScores(name, document["protocol"], values, objects, by_group, origin, cases, hidden_split, warnings)


def _read_origin(document: Mapping[str, Any], split: str) -> dict[str, object]:
    """Return the fields of a document that must agree within a ranking, if stated."""
    provenance = document.get("provenance") or {}
    protocol = (provenance.get("protocols") or {}).get(split) or {}
    origin = {
        "revision": protocol.get("revision"),
        "rules": (document.get("rules") or {}).get(split, "changed" if protocol.get("changed") else None),
        "truth": provenance.get("truth"),
        "cases": ((document.get("groups") or {}).get(split) or {}).get("cases"),
    }
    return {key: value for key, value in origin.items() if value is not None or (key == "rules" and protocol)}


def check_comparable(base: AlgorithmScores, scores: AlgorithmScores) -> None:
    """Raise UsageError for scores with different protocols, revisions, rules, truths or cases."""
    pair = f"{scores.name} and {base.name}"
    if scores.protocol != base.protocol:
        were = f"{scores.name} was scored as {printable(scores.protocol)}, {base.name} as {printable(base.protocol)}"
        raise UsageError(were)
    differ = {key for key in scores.origin.keys() & base.origin.keys() if scores.origin[key] != base.origin[key]}
    for key in [key for key in _DIFFER if key in differ]:
        raise UsageError(f"{pair} were scored {_DIFFER[key].format(printable(base.protocol))}")


def choose_split(name: str, splits: list[str], split: str) -> str:
    """Return the named split, or the only one."""
    if split and split not in splits:
        raise UsageError(f"{name} has no split {split!r}{name_hint(split, splits)}")
    if not split and len(splits) != 1:
        raise UsageError(f"{name} has the splits {name_list(splits, 20)}; name one with --split")
    return split or splits[0]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= _MOST_VALUE


def sum_objects(scores: list[AlgorithmScores], metric: str) -> tuple[Sums, list[str]]:
    """Return the sums of a metric per sequence and the sequences' names; raises UsageError if incomparable."""
    base = scores[0]
    names = list(dict.fromkeys(row["sequence"] for row in base.objects))
    table = np.zeros((len(scores), len(names)))
    counts = np.zeros_like(table)
    for row, method in enumerate(scores):
        check_comparable(base, method)
        _refuse_differing(method, base, {entry["sequence"] for entry in method.objects} ^ set(names))
        if metric not in method.values:
            raise UsageError(describe_unknown_metric(method.protocol, metric, method.values))
        for entry in method.objects:
            if entry.get(metric) is not None:
                table[row, names.index(entry["sequence"])] += entry[metric]
                counts[row, names.index(entry["sequence"])] += 1
        value = method.values[metric]
        if value is None:
            raise UsageError(f"{metric} of {method.name} has no value, so it is not compared")
        if not counts[row].any() or abs(table[row].sum() / counts[row].sum() - value) > _TOLERANCE:
            raise UsageError(f"{metric} of {method.protocol} is not a mean over objects, so it is not compared")
        _refuse_differing(method, base, {names[at] for at in np.flatnonzero(counts[row] != counts[0])})
    return Sums(
        tuple(method.name for method in scores), table, counts[0], prefers_smaller(metric, base.protocol)
    ), names


def _refuse_differing(method: AlgorithmScores, base: AlgorithmScores, sequences: set[str]) -> None:
    """Raise UsageError if there are sequences whose objects two methods do not share."""
    if sequences:
        raise UsageError(
            f"{method.name} and {base.name} were not scored on the same objects of {name_list(sorted(sequences))}; "
            "score both without them (--sequences A,B)"
        )


def pseudo_values_by_group(reports: Mapping[str, Report], metric: str) -> Sums:
    """Return the jackknife pseudo-values of a metric by group of images, videos or sequences.

    Incomparable scores are rejected; see `docs/ranking.md`.
    """
    first_name, base = next(iter(reports.items()))
    rows = []
    for name, report in reports.items():
        if report.protocol != base.protocol:
            raise UsageError(f"{name} was scored as {report.protocol.name}, {first_name} as {base.protocol.name}")
        if metric not in report.values:
            raise UsageError(describe_unknown_metric(report.protocol.name, metric, report.values))
        if cases_of(report) != cases_of(base):
            raise UsageError(
                f"{name} and {first_name} were not scored on the same images, videos, sequences or categories"
            )
        sums = report.sums([metric])
        if metric not in sums:
            raise UsageError(f"{name}: {metric} has no value, or none if images or videos are left out")
        rows.append(sums[metric][0])
    smaller = prefers_smaller(metric, base.protocol.name)
    return Sums(tuple(reports), np.stack(rows), np.ones(len(rows[0])), smaller, pseudo=True)


def choose_ranking_metric(metrics: Iterable[str], metric: str = "") -> str:
    """Return the named metric, or the ranking one: J&F, else the first."""
    names = list(metrics)
    return metric or (_METRIC if _METRIC in names else names[0])


def tasks_of(scores: list[AlgorithmScores], metric: str = "") -> list[TaskScores]:
    """Return the single task of a metric by sequence or group."""
    metric = choose_ranking_metric(scores[0].values, metric)
    make = _make_task_of_objects if all(method.groups is None for method in scores) else _make_task_of_groups
    task = make(scores, metric)
    hidden_split = next((method.hidden_split for method in scores if method.hidden_split), "")
    return [replace(task, name=f"{metric}: {hidden_split} {HIDDEN}") if hidden_split else task]


def _make_task_of_objects(scores: list[AlgorithmScores], metric: str) -> TaskScores:
    sums, names = sum_objects(scores, metric)
    with np.errstate(invalid="ignore"):
        values = sums.sums / sums.counts
    return TaskScores(metric, sums.algorithms, tuple(names), values, sums.smaller, sums.counts)


def _make_task_of_groups(scores: list[AlgorithmScores], metric: str) -> TaskScores:
    rows = []
    for method in scores:
        check_comparable(scores[0], method)
        if metric not in method.values:
            raise UsageError(describe_unknown_metric(method.protocol, metric, method.values))
        if method.groups is None or metric not in method.groups:
            raise UsageError(f"{method.name}: {metric} has no value, or none if images or videos are left out")
        rows.append(method.groups[metric])
    if len({len(row) for row in rows}) > 1:
        raise UsageError(f"{scores[0].name} and the others were scored {_DIFFER['cases']}")
    cases = tuple(f"group {number}" for number in range(1, len(rows[0]) + 1))
    names, smaller = tuple(method.name for method in scores), prefers_smaller(metric, scores[0].protocol)
    return TaskScores(metric, names, cases, np.array(rows, float), smaller, pseudo=True)


def read_table(path: str, *, smaller: bool) -> list[TaskScores]:
    """Return the tasks in a CSV with the columns algorithm, case, value and optionally task."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True, strict=True)
            header = list(reader.fieldnames or ())
            for column in (column for column in (*_COLUMNS, "task") if header.count(column) != 1):
                if column in header or column in _COLUMNS:
                    many = "several columns" if column in header else "no column"
                    remedy = f"a table has {', '.join(_COLUMNS)} once each, separated by commas"
                    raise UsageError(f"{path}: has {many} {column}; {remedy}")
            return _read_tasks(path, reader, smaller=smaller)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: is not a CSV in UTF-8 ({error})") from None


def _read_tasks(path: str, rows: Iterable[dict[str, str]], *, smaller: bool) -> list[TaskScores]:
    tasks: dict[str, dict[tuple[str, str], float]] = {}
    for number, row in enumerate(rows, 2):
        if number > _MOST_ROWS + 1:  # line 1 is the header
            raise UsageError(f"{path}: has more than {_MOST_ROWS} rows")
        if None in row:  # cells beyond the header
            raise UsageError(f"{path}: line {number}: has more cells than the header; write 0.5, not 0,5")
        key = (row["algorithm"] or "", row["case"] or "")
        cells = tasks.setdefault(row.get("task") or "", {})
        if key in cells:
            raise UsageError(f"{path}: line {number}: {key[0]} has case {key[1]} twice")
        cells[key] = _read_value(row["value"] or "", f"{path}: line {number}")
    if not tasks:
        raise UsageError(f"{path}: has no rows")
    return [_make_task(path, name, cells, smaller=smaller) for name, cells in tasks.items()]


def _read_value(text: str, location: str) -> float:
    if text.strip() in _ABSENT:
        return float("nan")
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if not abs(value) <= _MOST_VALUE:
        raise UsageError(f"{location}: {printable(text)} is not a valid score; leave a missing value empty")
    return value


def _make_task(path: str, name: str, cells: Mapping[tuple[str, str], float], *, smaller: bool) -> TaskScores:
    algorithms = sorted({algorithm for algorithm, _ in cells})
    cases = sorted({case for _, case in cells})
    if len(algorithms) > _MOST_ALGORITHMS:
        size = f"{len(algorithms):,} algorithms and {quantity(len(cases), 'case')}"
        raise UsageError(f"{path}: has {size}; at most {_MOST_ALGORITHMS} algorithms are ranked")
    rows, columns = ({name: index for index, name in enumerate(names)} for names in (algorithms, cases))
    values = np.full((len(algorithms), len(cases)), np.nan)
    for (algorithm, case), value in cells.items():
        values[rows[algorithm], columns[case]] = value
    return TaskScores(name, tuple(algorithms), tuple(cases), values, smaller)


def _read_file(path: str) -> Any:
    """Return the scores in a file of `score --json` or `Scores.save`."""
    if zipfile.is_zipfile(path):
        return make_ranking_document(Scores(*merge_parts([path])))
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_scores(names_and_files: list[str], split: str = "") -> list[AlgorithmScores]:
    """Read files of `score --json` or of `Scores.save`, each given as FILE or NAME=FILE."""
    scores = []
    for text in names_and_files:
        name, _, path = text.rpartition("=") if not os.path.exists(text) else ("", "", text)
        try:
            document = _read_file(path)
            scores.append(_read_document(name or os.path.basename(path).partition(".")[0], document, split))
        except OSError as error:
            raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UsageError(
                f"{path}: was written neither by `score --json` nor by `score --save`; do that first"
            ) from None
    names = [method.name for method in scores]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f"two have the name {twice[0]}; name them as NAME=FILE")
    return scores
