"""Published numbers of submissions, read from a CSV: a row per submission, a column per metric."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from segjudge.evaluation_script.files.problems import name_list, near_hint, printable
from segjudge.system.errors import UsageError
from segjudge.system.files import ARCHIVES

#: The names of the columns with submissions and their teams.
_SUBMISSION, _TEAM = "submission", "team"
#: The texts of a missing number.
_ABSENT = frozenset({"", "-", "–", "—", "NA", "N/A", "NaN", "nan"})
#: The largest file that is read.
_MOST_CHARACTERS = 64 << 20
#: The endings of a submission's file, which published names may omit.
_ENDINGS = (*ARCHIVES, ".json.gz", ".json")


class Label(NamedTuple):
    """A column of a leaderboard."""

    split: str
    metric: str


class Number(NamedTuple):
    """A published number, and the decimals to which it was rounded; None if it was not."""

    value: float
    decimals: int | None = None


@dataclass
class PublishedNumbers:
    """The rows of a table of published numbers."""

    #: By submission and label.
    numbers: dict[str, dict[Label, Number]] = field(default_factory=dict)
    #: The teams of submissions, if the table names them.
    teams: dict[str, str] = field(default_factory=dict)
    #: The columns that name no metric.
    ignored: list[str] = field(default_factory=list)


def list_labels(metrics: Mapping[str, Iterable[str]]) -> dict[str, Label]:
    """Return the labels of splits by the names of their columns: METRIC, or SPLIT/METRIC if there are several."""
    labels = [Label(split, metric) for split, names in metrics.items() for metric in names]
    return {label.metric if len(metrics) == 1 else "/".join(label): label for label in labels}


def read_published(path: str, labels: Mapping[str, Label], renames: Mapping[str, str]) -> PublishedNumbers:
    """Read a CSV of published numbers; `renames` maps its columns to those of `labels`.

    Raises UsageError for a file that is no such table.
    """
    for column, name in renames.items():
        if name not in labels:
            raise UsageError(f"--rename {column}={name}: there is no metric {name}{near_hint(name, labels)}")
    header, rows = _read_rows(path)
    key = next((index for index, name in enumerate(header) if name.lower() == _SUBMISSION), 0)
    team = next((index for index, name in enumerate(header) if name.lower() == _TEAM), None)
    chosen = {index: labels.get(renames.get(name, name)) for index, name in enumerate(header) if index != key}
    columns = {index: label for index, label in chosen.items() if label is not None}
    if unknown := [name for name in renames if name not in header]:
        raise UsageError(f"{path}: has no column {printable(unknown[0])}{near_hint(unknown[0], header)}")
    if not columns:
        fault = f"no column names a metric, only {name_list(header)}; the metrics are {name_list([*labels], 30)}"
        raise UsageError(f"{path}: {fault}. Rename a column, or add --rename COLUMN=METRIC")
    if twice := [label for label in columns.values() if [*columns.values()].count(label) > 1]:
        raise UsageError(f"{path}: two columns are {'/'.join(twice[0])}; remove one of them")
    ignored = [header[index] for index, label in chosen.items() if label is None and index != team]
    table = PublishedNumbers(ignored=ignored)
    decimals: dict[Label, int] = {}
    for line, row in rows:
        name = row[key].strip()
        if name in table.numbers:
            raise UsageError(f"{path}, line {line}: names {printable(name)} again; keep one row for each submission")
        read = {label: _read_number(row[index], path, line, header[index]) for index, label in columns.items()}
        numbers = {label: number for label, number in read.items() if number is not None}
        for label, number in numbers.items():
            decimals[label] = max(decimals.get(label, 0), number.decimals or 0)
        table.numbers[name] = numbers
        if team is not None and row[team].strip():
            table.teams[name] = row[team].strip()
    # 0.81 is 0.810 in a column with three decimals; a column without decimals has exact numbers.
    for numbers in table.numbers.values():
        for label, number in numbers.items():
            numbers[label] = number._replace(decimals=decimals[label] or None)
    return table


def _read_rows(path: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header of a CSV, and its rows with their lines, all as long as the header."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read(_MOST_CHARACTERS)
        first = text.partition("\n")[0]
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read as a CSV ({error}). Save the table as CSV in UTF-8") from None
    if not rows:
        raise UsageError(f"{path}: is empty. Its first row names the columns: submission, and metrics")
    header = [name.strip() for name in rows[0][1]]
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise UsageError(f"{path}, line {line}: has {len(row)} cells; the header has {len(header)}")
    return header, rows[1:]


def _read_number(text: str, path: str, line: int, column: str) -> Number | None:
    """Return the number of a cell with its decimals; None for an empty one."""
    text = text.strip()
    if text in _ABSENT:
        return None
    try:
        value = Decimal(text)
        exponent = value.as_tuple().exponent
    except InvalidOperation:
        exponent = "n"
    if not isinstance(exponent, int) or abs(exponent) > 400:
        fault = f"{printable(column)} is {printable(text)!r}, which is not a number"
        raise UsageError(f"{path}, line {line}: {fault}. Write 0.812, or leave the cell empty")
    return Number(float(value), max(-exponent, 0))


def match_files(names: Iterable[str], files: Iterable[str]) -> dict[str, str]:
    """Return the file of each published name that has one: of the same name, or the same without its ending.

    Raises UsageError if a name fits two files, or two names one.
    """
    files = list(files)
    by_stem: dict[str, list[str]] = {}
    for file in files:
        by_stem.setdefault(_stem_of(file), []).append(file)
    matched: dict[str, str] = {}
    for name in names:
        fitting = [name] if name in files else by_stem.get(name, [])
        if len(fitting) > 1:
            raise UsageError(f"the published name {printable(name)} fits {name_list(fitting)}; write the whole name")
        for file in fitting:
            if file in matched.values():
                raise UsageError(f"two published names fit {printable(file)}; keep one row for each submission")
            matched[name] = file
    return matched


def _stem_of(file: str) -> str:
    ending = next((ending for ending in _ENDINGS if file.lower().endswith(ending)), "")
    return file[: len(file) - len(ending)]
