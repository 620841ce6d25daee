"""The format of an archive, a folder or a zip of JSON and files: its records, their reader and their writer.

Nothing is unpacked: files are read in place, and each one is checked against its digest. An archive is as private as
the truth, because it holds the truth and the scores of hidden splits, which `Event.find_hidden` names.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from segjudge.evaluation_script.files import (
    LETTER,
    ArchiveLimits,
    Files,
    Flaw,
    HostError,
    SubmissionError,
    name_list,
    printable,
    read_json,
)
from segjudge.evaluation_script.files.archive import open_files
from segjudge.evaluation_script.files.limits import ARCHIVE_ENDINGS
from segjudge.evaluation_script.files.packed import make_entry, replace_file
from segjudge.evaluation_script.files.problems import explain_damage
from segjudge.platforms.evalai.bundle.bundle_source import CONFIG
from segjudge.platforms.evalai.bundle.secrecy import find_unpublished
from segjudge.platforms.evalai.bundle.yaml_lines import parse_config
from segjudge.system.errors import UsageError
from segjudge.system.files import digest_of_bytes, file_name, make_folder, replace

_Kind = TypeVar("_Kind")

#: The number of the format; an archive with a larger one is rejected.
VERSION = 1
EVENT, DIGESTS, MISSING_FILES = "event.json", "digests.json", "missing.json"
TEAMS, SUBMISSIONS, BUNDLE = "teams.json", "submissions.json", "bundle"
_BOARDS, _FILES = "boards", "files"
_AGAIN = "Fetch the archive again, with `segjudge leave`"
#: The limits of an archive, which may hold large submissions, and those of its records, which are held in memory.
ARCHIVE_LIMITS = ArchiveLimits(
    members=10_000_000,
    member_bytes=1 << 40,
    total_bytes=1 << 44,
    json_bytes=1 << 40,
    ratio=100_000,
    depth=24,
    links=True,
    backslash=LETTER,
    compressed=ARCHIVE_ENDINGS,
    send="Name an archive that `segjudge leave` wrote",
)
_RECORD_LIMITS = ArchiveLimits(json_bytes=1 << 29, memory_bytes=1 << 32, smaller="Split the challenge")
#: Endings of files that a zip would not make smaller.
_COMPRESSED = (*ARCHIVE_ENDINGS, ".png", ".jpg", ".jpeg", ".npz")

#: Values that are not written.
_EMPTY: tuple[object, ...] = (None, {}, [])

#: The words about a method, by the keys of EvalAI's API.
METHOD = {
    "method_name": "name",
    "method_description": "description",
    "project_url": "url",
    "publication_url": "publication",
}
#: The files of a submission besides the submitted one, by the keys of EvalAI's API.
FILES = {
    "submission_input_file": "submission_input",
    "stdout_file": "stdout",
    "stderr_file": "stderr",
    "environment_log_file": "environment_log",
    "submission_result_file": "result",
    "submission_metadata_file": "metadata",
}
#: Where a submission's scores come from: a leaderboard, or the platform's result file.
BOARD, RESULT = "board", "result"


@dataclass(frozen=True)
class EventInfo:
    """The origin of an archive: its platform, challenge and times."""

    made_by: str
    #: "evalai", "codabench" or "codalab".
    platform: str
    #: The platform's server, and the challenge's number or name there.
    address: str
    id: int | str
    title: str
    #: The times of the first and the last call: "begin" and "end".
    times: dict[str, str] = field(default_factory=dict)
    #: Two readings of the platform agreed.
    is_complete: bool = True
    archive: int = VERSION


@dataclass(frozen=True)
class MissingFile:
    """Something that the platform did not give, and why."""

    phase: str
    what: str
    reason: str
    submission: int | None = None


@dataclass(frozen=True)
class EventTeam:
    """A team; its members only if the host asked for people's names."""

    id: int
    name: str
    is_host: bool = False
    approved: bool = True
    #: Each with a "name" and an "email".
    members: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class EventRow:
    """A row of a leaderboard, as its server listed it when ordered by one label."""

    submission: int
    team: int | None
    #: The label that ordered the rows.
    by: str
    scores: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    is_baseline: bool = False


@dataclass(frozen=True)
class EventBoard:
    """The leaderboard of a phase's split, with the rows of every order after each other, best first."""

    phase: str
    split: str
    visibility: str
    #: The scores are hidden from visitors: no public page may show them.
    hidden: bool
    #: The label that orders the board by default.
    order: str
    labels: list[str] = field(default_factory=list)
    #: The labels whose smaller values are better.
    ascending: list[str] = field(default_factory=list)
    decimals: int = 2
    rows: list[EventRow] = field(default_factory=list)

    def places(self, by: str = "") -> list[EventRow]:
        """Return the rows in the order of a label, best first; by default of the board's own label."""
        return [row for row in self.rows if row.by == (by or self.order)]


@dataclass(frozen=True)
class EventSubmission:
    """A submission with the paths of its files in the archive."""

    id: int
    phase: str
    team: int | None
    number: int
    status: str
    submitted: str
    started: str | None = None
    completed: str | None = None
    #: Texts by the names in METHOD.
    method: dict[str, str] = field(default_factory=dict)
    is_public: bool = False
    is_baseline: bool = False
    #: The host withdrew it from all boards.
    is_ignored: bool = False
    #: Why it failed, as the platform says.
    cause: str | None = None
    #: The submitted file, and further ones such as "stdout" by name.
    file: str | None = None
    extra_files: dict[str, str] = field(default_factory=dict)
    #: The known numbers by split and label, and their origin: BOARD, RESULT, or None without numbers. Hidden
    #: splits' numbers are among them.
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    trust: str | None = None

    @property
    def is_shown(self) -> bool:
        """Return whether visitors of the platform may see it."""
        return self.is_public or self.is_baseline


@dataclass
class Exported:
    """The records of an export, and how the platform's bundle differs from the host's own."""

    title: str = ""
    is_complete: bool = True
    teams: list[EventTeam] = field(default_factory=list)
    boards: list[EventBoard] = field(default_factory=list)
    submissions: list[EventSubmission] = field(default_factory=list)
    missing: list[MissingFile] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


class Event:
    """An open archive."""

    def __init__(self, path: str, files: Files) -> None:
        self.path, self._files = path, files
        #: The SHA-256 of the other files by their paths.
        self.digests: dict[str, str] = {}
        about = self._read_json(EVENT)
        version = about.get("archive") if isinstance(about, dict) else None
        if type(version) is int and version > VERSION:
            raise HostError(
                f"{path}: is an archive of version {version}; this Segjudge reads versions up to {VERSION}. "
                "Update Segjudge"
            )
        self.info: EventInfo = self._parse(EventInfo, about, EVENT)
        self.digests = self._read(dict[str, str], DIGESTS)
        self.read(EVENT)  # which had no digest yet
        self.missing = self._read(list[MissingFile], MISSING_FILES)
        self.teams = {team.id: team for team in self._read(list[EventTeam], TEAMS)}
        self.submissions = {row.id: row for row in self._read(list[EventSubmission], SUBMISSIONS)}
        self.boards = [self._read(EventBoard, name) for name in self.names(f"{_BOARDS}/")]
        for row in self.submissions.values():
            for name in (row.file, *row.extra_files.values()):
                if name is not None and name not in self._files.sizes:
                    raise self._error(f"submission {row.id}", f"names {printable(name)}, which the archive lacks")

    def names(self, start: str = "") -> list[str]:
        """Return the paths of the files that begin so, sorted."""
        return sorted(name for name in self._files.sizes if name.startswith(start))

    def read_chunks(self, name: str) -> Iterator[bytes]:
        """Yield a file in chunks; raises HostError, at its end, if its digest is wrong."""
        digest = hashlib.sha256()
        try:
            for chunk in self._files.read_chunks(name):
                digest.update(chunk)
                yield chunk
        except Flaw as flaw:
            raise HostError(f"{self.path}: {flaw.as_problem(name)}") from None
        except KeyError:
            raise HostError(f"{self.path}: lacks {printable(name)}. {_AGAIN}") from None
        if self.digests and self.digests.get(name) != digest.hexdigest() and name != DIGESTS:
            fault = "differs from its digest" if name in self.digests else f"is not listed in {DIGESTS}"
            raise self._error(printable(name), fault)

    def read(self, name: str) -> bytes:
        """Return a file's bytes, checked against its digest."""
        return b"".join(self.read_chunks(name))

    def copy(self, name: str, target: str | os.PathLike[str]) -> None:
        """Write a file of the archive to a path, if its digest is right."""
        make_folder(os.path.dirname(target))
        with replace_file(os.fspath(target)) as partial, open(partial, "wb") as out:
            out.writelines(self.read_chunks(name))

    def copy_folder(self, name: str, target: str | os.PathLike[str]) -> None:
        """Write the files below a folder of the archive, such as BUNDLE, to a folder."""
        for path in self.names(f"{name}/"):
            self.copy(path, os.path.join(target, path.removeprefix(f"{name}/")))

    def find_hidden(self, phase: str) -> frozenset[str]:
        """Return the splits of a phase that the platform hid, by its leaderboards or by the bundle's YAML.

        No public page may show their scores.
        """
        hidden = {board.split for board in self.boards if board.phase == phase and board.hidden}
        path = f"{BUNDLE}/{CONFIG}"
        unpublished = find_unpublished(parse_config(CONFIG, self.read(path)), phase) if self.names(path) else ()
        return frozenset(hidden.union(unpublished))

    @cached_property
    def errors(self) -> dict[tuple[int, str, str], dict[str, float]]:
        """Return the standard errors on leaderboards by submission, phase and split."""
        errors: dict[tuple[int, str, str], dict[str, float]] = {}
        for board in self.boards:
            for row in board.rows:
                errors.setdefault((row.submission, board.phase, board.split), row.errors)
        return errors

    def _read(self, kind: type[_Kind], name: str) -> _Kind:
        parsed: _Kind = self._parse(kind, self._read_json(name), name)
        return parsed

    def _read_json(self, name: str) -> object:
        data = self.read(name)
        try:
            return read_json(data, _RECORD_LIMITS, "the records of an archive", digits=20)
        except Flaw as flaw:
            raise HostError(f"{self.path}: {flaw.as_problem(name)}") from None

    def _parse(self, kind: Any, value: Any, path: str) -> Any:
        """Return a JSON value as a record or another type of its fields; raises HostError for a wrong one."""
        generic, inner = get_origin(kind), get_args(kind)
        if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
            return self._parse_record(kind, value, path)
        if generic is list and isinstance(value, list):
            return [self._parse(inner[0], item, f"{path}[{index}]") for index, item in enumerate(value)]
        if generic is dict and isinstance(value, dict):
            return {name: self._parse(inner[1], item, f"{path}.{name}") for name, item in value.items()}
        if type(value) in (inner or (kind,)) or (kind is float and type(value) is int):
            return value
        name = "a JSON list" if generic is list else "a JSON object" if generic is dict or is_dataclass(kind) else ""
        raise self._error(path, f"is not {name}" if name else f"is {printable(repr(value))[:60]}")

    def _parse_record(self, kind: type, values: dict[str, Any], path: str) -> Any:
        """Return an object as a record, ignoring unknown keys."""
        types, parsed = _types_of(kind), {}
        for column in fields(kind):
            if column.name in values:
                parsed[column.name] = self._parse(types[column.name], values[column.name], f"{path}.{column.name}")
            elif NoneType in get_args(types[column.name]):
                parsed[column.name] = None
            elif column.default is MISSING and column.default_factory is MISSING:
                raise self._error(path, f"has no {column.name}")
        return kind(**parsed)

    def _error(self, path: str, fault: str) -> HostError:
        return HostError(f"{self.path}: {path} {fault}. {_AGAIN}")


@cache
def _types_of(kind: type) -> dict[str, Any]:
    """Return the types of a record's fields."""
    return get_type_hints(kind)


@contextmanager
def open_container(path: str, kind: str) -> Iterator[Files]:
    """Open a folder or zip of a kind; raises HostError if it cannot be read."""
    try:
        files = open_files(path, ARCHIVE_LIMITS)
    except (SubmissionError, Flaw) as error:
        raise HostError(f"{path}: is not {kind} ({explain_damage(error)})") from None
    try:
        yield files
    finally:
        files.close()


@contextmanager
def open_event(path: str) -> Iterator[Event]:
    """Open an archive, a folder or a zip; raises HostError if it cannot be read."""
    with open_container(path, "an archive of a challenge") as files:
        yield Event(path, files)


def is_event(path: str) -> bool:
    """Return whether a path is an archive of a challenge rather than another folder or zip."""
    if os.path.isdir(path):
        return os.path.isfile(os.path.join(path, EVENT)) and os.path.isfile(os.path.join(path, DIGESTS))
    try:
        with zipfile.ZipFile(path) as archive:
            return {EVENT, DIGESTS} <= set(archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError):
        return False


# ── writing ─────────────────────────────────────────────────────────────────


class EventWriter:
    """An archive that is made in a folder, and becomes a folder or a zip when it is whole."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = pathlib.Path(folder)
        #: The files that belong to the archive; the folder may hold others, of earlier runs.
        self.names: set[str] = set()

    def write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, data)
        self.names.add(name)

    def write_records(self, info: EventInfo, records: Exported) -> None:
        """Write all JSON but the digests; equal records give equal bytes, in any order.

        The submissions' files are in the folder.
        """
        submissions = sorted(records.submissions, key=lambda row: row.id)
        self.names.update(path for row in submissions for path in (row.file, *row.extra_files.values()) if path)
        missing = sorted(records.missing, key=lambda row: (row.phase, row.submission or 0, row.what, row.reason))
        self._write_json(EVENT, _as_json(info))
        self._write_json(MISSING_FILES, [_as_json(row) for row in missing])
        self._write_json(TEAMS, [_as_json(row) for row in sorted(records.teams, key=lambda row: row.id)])
        self._write_json(SUBMISSIONS, [_as_json(row) for row in submissions])
        for board in records.boards:
            self._write_json(board_path(board.phase, board.split), _as_json(board))

    def finish(self, target: str) -> None:
        """Write the digests, and the archive to `target`: a zip if it ends in .zip, else a new folder."""
        self._write_json(
            DIGESTS, {name: digest_of_bytes(self.folder / name) for name in sorted(self.names - {DIGESTS})}
        )
        if target.endswith(".zip"):
            with replace_file(target) as partial:
                os.close(os.open(partial, os.O_WRONLY | os.O_CREAT, 0o600))  # for its owner alone
                _zip_folder(self.folder, sorted(self.names), partial)
            shutil.rmtree(self.folder)
            return
        if os.path.isdir(target) and os.listdir(target):
            raise UsageError(f"{target}: already exists and is not overwritten; name another folder with --out")
        for path in [path for path in self.folder.rglob("*") if path.is_file()]:
            if path.relative_to(self.folder).as_posix() not in self.names:
                path.unlink()
        os.replace(self.folder, target)

    def _write_json(self, name: str, value: object) -> None:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1, default=str)
        self.write(name, f"{text}\n".encode("utf-8", "backslashreplace"))


def board_path(phase: str, split: str) -> str:
    """Return the path of a leaderboard in an archive."""
    return f"{_BOARDS}/{file_name(phase)}/{file_name(split)}.json"


def file_path(phase: str, submission: int, name: str) -> str:
    """Return the path of a submission's file in an archive."""
    return f"{_FILES}/{file_name(phase)}/{submission}/{file_name(name) or 'file'}"


def _as_json(record: Any) -> dict[str, object]:
    """Return a record without empty values, which a reader supplies."""
    return asdict(record, dict_factory=lambda pairs: {name: value for name, value in pairs if value not in _EMPTY})


def _zip_folder(folder: pathlib.Path, names: Sequence[str], target: str) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        for name in names:
            entry = make_entry(name)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(_COMPRESSED) else zipfile.ZIP_DEFLATED
            with (folder / name).open("rb") as file, archive.open(entry, "w", force_zip64=True) as member:
                shutil.copyfileobj(file, member, 1 << 20)


def describe_missing(missing: Sequence[MissingFile]) -> list[str]:
    """Return a line for each phase and reason: what could not be had, how often, and of which submissions."""
    groups: dict[tuple[str, str, str], list[MissingFile]] = {}
    for row in missing:
        groups.setdefault((row.phase, row.what, row.reason), []).append(row)
    lines = []
    for (phase, what, reason), rows in sorted(groups.items()):
        numbers = [str(row.submission) for row in rows if row.submission is not None]
        whose = f" of submission{'s' if len(numbers) > 1 else ''} {name_list(numbers, 8)}" if numbers else ""
        lines.append(f"{phase or 'challenge'}: no {what}{whose}: {reason}")
    return lines
