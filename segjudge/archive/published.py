"""Published numbers of submissions: a CSV with a row per submission and a column per metric, beside their files."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from segjudge.evaluation_script.files.problems import name_list, near_hint, printable
from segjudge.system.errors import UsageError
from segjudge.system.files import ARCHIVES, name_of

from .rescored import BoardOrder, Scale
from .rescoring import Label, Number, SubmissionEntry, list_folder

#: The names of the columns with submissions and their teams.
_SUBMISSION, _TEAM = "submission", "team"
#: The texts of a missing number.
_ABSENT = frozenset({"", "-", "–", "—", "NA", "N/A", "NaN", "nan"})
#: The endings of a submission's file, which published names may omit.
_ENDINGS = (*ARCHIVES, ".json.gz", ".json")


@dataclass(frozen=True)
class FolderSource:
    """A folder whose files are submissions, and a CSV of their published numbers."""

    folder: str
    #: The CSV; "" without published numbers.
    published: str
    #: The output, which is no submission if it is in the folder.
    out: str
    #: The splits whose scores visitors of the challenge do not see, unless they are released.
    hidden: frozenset[str]
    #: Metrics by columns of the CSV.
    renames: Mapping[str, str]
    scale: Scale
    #: A phase's own notes say what is hidden.
    notes: Sequence[str] = ()

    @property
    def title(self) -> str:
        return f"{name_of(self.folder)}, scored again"

    def find_hidden(self, truths: Collection[str]) -> frozenset[str]:
        """Return the truth's splits that are not scored."""
        if self.hidden >= {*truths}:
            fault = f"the challenge hides the scores of {name_list(sorted(truths))} from visitors"
            raise UsageError(f"{fault}. If you release them, add --as-host")
        return self.hidden & {*truths}

    def list_entries(self, metrics: Mapping[str, Sequence[str]]) -> tuple[list[SubmissionEntry], list[str]]:
        """Return the submissions with their numbers of these metrics, and notes."""
        entries = list_folder(self.folder, (self.published, self.out))
        if not self.published:
            return entries, []
        rows, ignored = _read_table(self.published, metrics, self.renames)
        files = _match_files(self.published, rows, [entry.name for entry in entries])
        absence = f"{name_of(self.folder)} has no file of this name"
        entries += [SubmissionEntry(name, absence=absence) for name in rows if name not in files]
        by_file = {files.get(name, name): row for name, row in rows.items()}
        published = [(entry, *by_file.get(entry.name, ("", {}))) for entry in entries]
        notes = [f"{name_of(self.published)}: columns that name no metric are ignored: {name_list(ignored)}"]
        return [replace(entry, team=team, numbers=numbers) for entry, team, numbers in published], notes[: len(ignored)]

    def find_order(self, split: str) -> BoardOrder | None:
        """Return None: the first published metric orders the leaderboard of each split."""
        del split
        return None

    def explain_difference(self, split: str, protocol: str) -> str:
        """Return why a protocol may give other numbers in a split than were published."""
        del split
        return f"{protocol} scores now; another protocol, version, truth or file may have been scored then"


#: The team and the numbers of each submission.
_Rows = dict[str, tuple[str, dict[Label, Number]]]


def _read_table(path: str, metrics: Mapping[str, Sequence[str]], renames: Mapping[str, str]) -> tuple[_Rows, list[str]]:
    """Return the rows of a CSV, and its columns that name no metric; raises UsageError for another file.

    A column is a METRIC, or SPLIT/METRIC if there are several splits.
    """
    labels = {
        metric if len(metrics) == 1 else f"{split}/{metric}": Label(split, metric)
        for split, names in metrics.items()
        for metric in names
    }
    header, lines = _read_lines(path)
    for column, name in renames.items():
        if column not in header or name not in labels:
            choices, word = (labels, name) if column in header else (header, column)
            raise UsageError(f"--rename {column}={name}: there is no column {word}{near_hint(word, choices)}")
    lower = [name.lower() for name in header]
    key, team = lower.index(_SUBMISSION) if _SUBMISSION in lower else 0, lower.index(_TEAM) if _TEAM in lower else -1
    named = {index: renames.get(name, name) for index, name in enumerate(header) if index not in (key, team)}
    columns = {index: labels[name] for index, name in named.items() if name in labels}
    if not columns or len({*columns.values()}) < len(columns):
        fault = "two columns name one metric" if columns else f"no column names a metric, only {name_list(header)}"
        raise UsageError(f"{path}: {fault}; the metrics are {name_list([*labels], 30)}. Rename columns with --rename")
    rows: _Rows = {}
    for line, cells in lines:
        if cells[key] in rows:
            raise UsageError(f"{path}, line {line}: names {printable(cells[key])} again; keep one row of each")
        read = {label: _read_number(cells[index], f"{path}, line {line}") for index, label in columns.items()}
        numbers = {label: number for label, number in read.items() if number is not None}
        rows[cells[key]] = cells[team] if team >= 0 else "", numbers
    for label in columns.values():  # 0.81 is 0.810 in a column with three decimals; numbers without any are exact
        published = [each[label] for _, each in rows.values() if label in each]
        decimals = max((number.decimals or 0 for number in published), default=0) or None
        for _, numbers in rows.values():
            if label in numbers:
                numbers[label] = numbers[label]._replace(decimals=decimals)
    return rows, [name for index, name in enumerate(header) if index in named and index not in columns]


def _read_lines(path: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header of a CSV, and its rows with their lines, all as long as the header."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read as a CSV ({error}). Save the table as CSV in UTF-8") from None
    if not rows:
        raise UsageError(f"{path}: is empty. Its first row names the columns: submission, and metrics")
    header = rows[0][1]
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise UsageError(f"{path}, line {line}: has {len(row)} cells; the header has {len(header)}")
    return header, rows[1:]


def _read_number(text: str, line: str) -> Number | None:
    """Return the number of a cell with its decimals; None for an empty one."""
    if text in _ABSENT:
        return None
    try:
        value = Decimal(text)
        exponent = value.as_tuple().exponent
    except InvalidOperation:
        exponent = "n"
    if not isinstance(exponent, int) or abs(exponent) > 300:
        raise UsageError(f"{line}: {printable(text)!r} is not a number. Write 0.812, or leave the cell empty")
    return Number(float(value), max(-exponent, 0))


def _match_files(path: str, names: Iterable[str], files: Sequence[str]) -> dict[str, str]:
    """Return the file of each published name that has one: of the same name, or the same without its ending."""
    matched: dict[str, str] = {}
    by_name: dict[str, list[str]] = {}
    for file in files:
        by_name.setdefault(_stem_of(file), []).append(file)
    by_name |= {file: [file] for file in files}
    for name in names:
        fitting = by_name.get(name, [])
        if len(fitting) > 1 or (fitting and fitting[0] in matched.values()):
            fault = f"{printable(name)} fits {name_list(fitting)}"
            raise UsageError(f"{path}: {fault}{', as another row does' if len(fitting) == 1 else ''}; name files once")
        if fitting:
            matched[name] = fitting[0]
    if not matched:
        raise UsageError(f"{path}: no row names a file, such as {printable(files[0])}. Write the names of the files")
    return matched


def _stem_of(file: str) -> str:
    ending = next((ending for ending in _ENDINGS if file.lower().endswith(ending)), "")
    return file[: len(file) - len(ending)]
