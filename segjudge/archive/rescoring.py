"""Submissions scored again: each result is kept in a small file, so that a stopped run continues where it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from segjudge.evaluation_script.families import plugins_of
from segjudge.evaluation_script.families.base.family import Progress, Values, ignore_progress
from segjudge.evaluation_script.files import HostError, SubmissionError
from segjudge.evaluation_script.files.limits import is_litter
from segjudge.evaluation_script.scoring import VERSION
from segjudge.scoring.parts import rules_as_json
from segjudge.scoring.request import PreparedScoring, ScoreRequest, score_each
from segjudge.system.addresses import RemoteFolder, digest_of, digest_of_content, resolve_address
from segjudge.system.errors import UsageError
from segjudge.system.files import file_name, make_folder, name_of, temporary_folder
from segjudge.system.files import replace as replace_file

if TYPE_CHECKING:
    from segjudge.scoring.sharing import DaskClient

#: The endings of files in a folder of submissions that are none.
_NOTES = (".txt", ".md", ".csv", ".html", ".pdf")


class Label(NamedTuple):
    """A column of a leaderboard."""

    split: str
    metric: str


class Number(NamedTuple):
    """A published number, and the decimals to which it was rounded; None if it was not."""

    value: float
    decimals: int | None = None


@dataclass(frozen=True)
class SubmissionEntry:
    """A submission: its file, and what was published of it."""

    name: str
    #: Its file or folder, or the zip of the archive that holds it as `member`; "" if there is none.
    path: str = ""
    member: str = ""
    #: The SHA-256 of its file, as the archive states it.
    digest: str = ""
    #: Why there is no file.
    absence: str = ""
    team: str = ""
    method: str = ""
    #: The entries of which a leaderboard shows the best one; "": itself.
    group: str = ""
    numbers: Mapping[Label, Number] = field(default_factory=dict)
    #: A leaderboard may show it.
    is_ranked: bool = True
    #: The leaderboard showed its numbers.
    was_ranked: bool = True


@dataclass(frozen=True)
class EntryOutcome:
    """The new scores of a submission by split, or the reason why it has none."""

    scores: dict[str, Values] = field(default_factory=dict)
    fault: str = ""
    #: A repetition would end in the same way.
    is_final: bool = True


def list_folder(folder: str, used_paths: Collection[str]) -> list[SubmissionEntry]:
    """Return the submissions in a folder, without notes, litter, and the given paths."""
    used = {os.path.realpath(path) for path in used_paths if path}
    paths = [os.path.join(os.path.abspath(folder), name) for name in sorted(os.listdir(folder))]
    entries = [
        SubmissionEntry(os.path.basename(path), path)
        for path in paths
        if not (os.path.basename(path).startswith(".") or is_litter([os.path.basename(path)]))
        and not path.lower().endswith(_NOTES)
        and os.path.realpath(path) not in used
    ]
    if not entries:
        raise UsageError(f"{folder}: holds no submissions. Put each into it as a zip, a JSON file or a folder")
    return entries


def choose_splits(prepared: PreparedScoring, hidden: Collection[str]) -> PreparedScoring:
    """Return the scoring of the splits that are not hidden."""
    return replace(prepared, scorers={name: each for name, each in prepared.scorers.items() if name not in hidden})


def score_entry(
    hidden: Collection[str], prepared: PreparedScoring, entry: SubmissionEntry, progress: Progress = ignore_progress
) -> dict[str, Any]:
    """Return the outcome of a submission as JSON values; a submission that cannot be scored ends nothing."""
    try:
        with _open_file(entry) as path:
            scores = choose_splits(prepared, hidden).for_results(path).score(progress, examines=False)
        return asdict(EntryOutcome(scores.metrics))
    except SubmissionError as error:
        return asdict(EntryOutcome(fault=str(error)))
    except (HostError, UsageError):
        raise
    except Exception as error:  # noqa: BLE001 - one hostile file must not end the scoring of all others
        text = str(error).partition("\n")[0][:200]
        return asdict(EntryOutcome(fault=f"Segjudge failed ({type(error).__name__}: {text})", is_final=False))


@contextmanager
def _open_file(entry: SubmissionEntry) -> Iterator[str]:
    """Yield the path of a submission, taken out of the archive if it is a zip; raises SubmissionError for damage."""
    with temporary_folder("segjudge-") as folder:
        path = os.path.join(folder, os.path.basename(entry.member)) if entry.member else entry.path
        try:
            if entry.member:
                with zipfile.ZipFile(entry.path) as archive, open(path, "wb") as out:
                    shutil.copyfileobj(archive.open(entry.member), out)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
            raise SubmissionError(f"{name_of(path)}: cannot be read from the archive ({error})") from None
        if (entry.digest or entry.member) and _digest_of(path) != entry.digest:
            raise SubmissionError(f"{name_of(path)}: differs from the archive's digest; fetch the archive again")
        try:
            yield path
        except SubmissionError as error:
            raise SubmissionError(str(error).replace(folder + os.sep, "")) from None


def _digest_of(path: str) -> str:
    """Return the SHA-256 of a file or folder; of a remote one, that of its names and sizes."""
    return digest_of(path) if isinstance(path, RemoteFolder) else digest_of_content(path)


@dataclass(frozen=True)
class Rescoring:
    """How submissions are scored, and the folder with a file for each outcome."""

    #: The request without results, by which a cluster's workers open the truth, and the truth opened here.
    request: ScoreRequest
    prepared: PreparedScoring
    #: The splits that are not scored.
    hidden: frozenset[str]
    folder: str

    def score(
        self,
        entries: Sequence[SubmissionEntry],
        client: DaskClient | None = None,
        bars: tuple[Progress, Progress] = (ignore_progress, ignore_progress),
    ) -> dict[str, EntryOutcome]:
        """Return the outcomes of submissions by name; those that the folder has are not scored again.

        `bars` show the progress within submissions and over them.
        """
        make_folder(self.folder)
        outcomes = {entry.name: EntryOutcome(fault=entry.absence) for entry in entries if not entry.path}
        key, waiting = self._make_key(), list[tuple[SubmissionEntry, dict[str, Any]]]()
        for entry in entries:
            if entry.path:
                whole_key = {"submission": entry.digest or _digest_of(entry.path), **key}
                outcome = self._read(entry, whole_key)
                if outcome is None:
                    waiting.append((entry, whole_key))
                else:
                    outcomes[entry.name] = outcome
        for number, document in self._score([entry for entry, _ in waiting], client, bars):
            entry, whole_key = waiting[number]
            outcomes[entry.name] = EntryOutcome(**document)
            if outcomes[entry.name].is_final:
                replace_file(self._path_of(entry), f"{json.dumps({'key': whole_key, **document}, indent=1)}\n")
        return outcomes

    def _score(
        self, entries: Sequence[SubmissionEntry], client: DaskClient | None, bars: tuple[Progress, Progress]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number and the outcome of each entry, as JSON values."""
        if client is not None:
            from segjudge.scoring.sharing import score_each_by_workers

            return score_each_by_workers(client, self.request, entries, partial(score_entry, self.hidden), bars[1])

        def score_one(prepared: PreparedScoring, number: int, progress: Progress) -> tuple[int, dict[str, Any]]:
            return number, score_entry(self.hidden, prepared, entries[number], progress)

        return score_each(self.prepared, [entry.path for entry in entries], score_one, *bars)

    def _make_key(self) -> dict[str, Any]:
        """Return what else decides a submission's scores: the truth, the rules and the version."""
        source, scorers = self.request.truth, choose_splits(self.prepared, self.hidden).scorers
        protocols = {split: scorer.rules.protocol for split, scorer in scorers.items()}
        truth = [_digest_of(resolve_address(path)) for path in (source.path, source.unseen, source.categories) if path]
        rules = {
            split: [rules_as_json(scorer.rules.protocol), asdict(scorer.rules.limits), scorer.rules.strict]
            for split, scorer in scorers.items()
        }
        return {
            "truth": " ".join([*truth, *filter(None, (source.layout, source.subset))]),
            "protocols": {split: f"{protocol.name} {protocol.revision}" for split, protocol in protocols.items()},
            "rules": hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest(),
            "version": " ".join([VERSION, *plugins_of(protocol.name for protocol in protocols.values()).values()]),
        }

    def _read(self, entry: SubmissionEntry, key: dict[str, Any]) -> EntryOutcome | None:
        """Return the outcome in an entry's file; None if it is of another key, or no such file."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            document = json.loads(self._path_of(entry).read_bytes())
            if document.pop("key") == key:
                return EntryOutcome(**document)
        return None

    def _path_of(self, entry: SubmissionEntry) -> Path:
        return Path(self.folder, f"{file_name(entry.name)}.json")
