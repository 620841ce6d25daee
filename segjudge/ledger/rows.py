"""The rows of a ledger, one JSON file each, and their state together.

A submission's number, its run (1, or more if it was scored again) and a split are in the path, so that no row is
written twice.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from segjudge.evaluation_script.files.problems import HostError

#: Split → label → value.
Scores = dict[str, dict[str, float]]


@dataclass(frozen=True)
class LedgerEntry:
    """A submission as its participant made it."""

    number: int
    #: The account's identifier on the platform, which survives a renaming, and its name.
    account: str
    team: str
    method: str
    phase: str
    #: The address of the file, and its SHA-256; "" if the address always has the same bytes.
    address: str
    sha256: str
    at: str
    #: Where an imported submission was scored, such as `evalai 345`; its file is not here. "" for others.
    origin: str = ""


@dataclass(frozen=True)
class Claim:
    """An attempt to score a submission, valid until a time."""

    worker: str
    at: str
    until: str


@dataclass(frozen=True)
class RunOutcome:
    """The result of a run: scores, or the reason why there are none."""

    at: str
    scores: Scores = field(default_factory=dict)
    #: The sentence for the participant whose file was rejected.
    refused: str = ""
    #: The number of an incident, if the submission is not the cause.
    incident: str = ""
    #: The version of Segjudge, and the digest of the scored file.
    version: str = ""
    digest: str = ""


@dataclass(frozen=True)
class Remark:
    """A decision about a submission (0: about all): its time and reason."""

    at: str
    reason: str = ""
    number: int = 0
    #: The identifier of the order, so that its repetition changes nothing.
    order: str = ""


@dataclass
class Rows:
    """All rows of a ledger."""

    entries: dict[int, LedgerEntry] = field(default_factory=dict)
    #: Number and run → claims in their order; → outcome; → scores of splits that were published later.
    claims: defaultdict[tuple[int, int], list[Claim]] = field(default_factory=lambda: defaultdict(list))
    outcomes: dict[tuple[int, int], RunOutcome] = field(default_factory=dict)
    reveals: defaultdict[tuple[int, int], Scores] = field(default_factory=lambda: defaultdict(dict))
    #: Submissions that were not accepted, which have no entry.
    refusals: dict[int, Remark] = field(default_factory=dict)
    withdrawals: dict[int, Remark] = field(default_factory=dict)
    disqualifications: dict[int, Remark] = field(default_factory=dict)
    reruns: list[Remark] = field(default_factory=list)

    def run_of(self, number: int) -> int:
        """Return the number of the run that a submission needs now; an imported one keeps its result."""
        if number in self.entries and self.entries[number].origin:
            return 1
        return 1 + sum(remark.number in (0, number) for remark in self.reruns)

    def list_claims(self, number: int) -> list[Claim]:
        """Return the claims of a submission's current run."""
        return self.claims.get((number, self.run_of(number)), [])

    def last_outcome(self, number: int) -> tuple[int, RunOutcome] | None:
        """Return a submission's last outcome and its run."""
        for run in range(self.run_of(number), 0, -1):
            if (number, run) in self.outcomes:
                return run, self.outcomes[number, run]
        return None

    def scores_of(self, number: int) -> Scores:
        """Return the published scores of a submission's last outcome."""
        last = self.last_outcome(number)
        return {**last[1].scores, **self.reveals.get((number, last[0]), {})} if last else {}

    def is_removed(self, number: int) -> bool:
        return any(number in rows for rows in (self.refusals, self.withdrawals, self.disqualifications))

    def list_waiting(self) -> list[int]:
        """Return the submissions without an outcome of their current run, in the order of their arrival."""
        return [
            number
            for number in sorted(self.entries)
            if (number, self.run_of(number)) not in self.outcomes and not self.is_removed(number)
        ]


# ── files ───────────────────────────────────────────────────────────────────


#: The folders of rows.
ENTRIES, CLAIMS, RESULTS, REVEALED = "submissions", "claims", "results", "revealed"
REFUSED, WITHDRAWN, DISQUALIFIED, RERUNS = "refused", "withdrawn", "disqualified", "reruns"
#: Folder → the attribute of `Rows` that has one row for each submission, and the class of these.
_BY_NUMBER: dict[str, tuple[str, type]] = {
    ENTRIES: ("entries", LedgerEntry),
    REFUSED: ("refusals", Remark),
    WITHDRAWN: ("withdrawals", Remark),
    DISQUALIFIED: ("disqualifications", Remark),
}


def row_path(folder: str, number: int, *further: int | str) -> str:
    """Return the path of a row: of a submission, and further its run, and the attempt or split."""
    return f"{folder}/{'.'.join(map(str, (number, *further)))}.json"


def to_bytes(row: object) -> bytes:
    """Return a row's file; equal rows give equal bytes."""
    values = row if isinstance(row, dict) else asdict(row)  # type: ignore[call-overload]
    return (json.dumps(values, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


_PATH = re.compile(r"([a-z]+)/(\d{1,15})(?:\.(\d{1,9}))?(?:\.([\w-]{1,100}))?\.json", re.ASCII)


def read_rows(files: Mapping[str, bytes]) -> Rows:
    """Read the rows among the files; raises HostError with the path of one that is no row."""
    rows = Rows()
    for path in sorted(files, key=_order):
        if match := _PATH.fullmatch(path):
            kind, number, run, name = match[1], int(match[2]), int(match[3] or 0), match[4] or ""
            try:
                _add_row(rows, kind, (number, run), name, json.loads(files[path]))
            except (ValueError, TypeError, RecursionError):
                raise HostError(f"{path}: is not a row of the ledger; restore it from the branch's history") from None
    return rows


def _order(path: str) -> tuple[object, ...]:
    return tuple((0, int(word), "") if word.isdecimal() else (1, 0, word) for word in re.split(r"[/.]", path))


def _add_row(rows: Rows, kind: str, key: tuple[int, int], name: str, values: dict[str, Any]) -> None:
    if kind in _BY_NUMBER:
        attribute, row_class = _BY_NUMBER[kind]
        getattr(rows, attribute)[key[0]] = row_class(**values)
    elif kind == CLAIMS:
        rows.claims[key].append(Claim(**values))
    elif kind == RESULTS:
        rows.outcomes[key] = RunOutcome(**values)
    elif kind == REVEALED:
        rows.reveals[key][name] = values
    elif kind == RERUNS:
        rows.reruns.append(Remark(**values))
