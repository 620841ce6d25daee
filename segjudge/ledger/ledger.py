"""The keeping of a ledger: each change is one addition on top of the state that it was decided by."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from segjudge.evaluation_script.files.problems import HostError

from .page import FOLDER, render_pages
from .rows import (
    CLAIMS,
    DISQUALIFIED,
    ENTRIES,
    REFUSED,
    RERUNS,
    RESULTS,
    REVEALED,
    WITHDRAWN,
    Claim,
    LedgerEntry,
    Remark,
    Rows,
    RunOutcome,
    read_rows,
    row_path,
    to_bytes,
)
from .rules import Rules
from .storage import Storage, repeat_moved

#: The claims of a run after which it has failed: its workers were stopped.
MOST_CLAIMS = 3
_STOPPED = f"the evaluator was stopped {MOST_CLAIMS} times while it scored this submission"
_Files = dict[str, bytes]


class Ledger:
    """A ledger in a public storage, with the scores that are not public in a private one."""

    def __init__(
        self,
        public: Storage,
        private: Storage | None,
        rules: Rules,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.timezone.utc),
        render: Callable[[Rows, Rules, datetime.datetime], dict[str, bytes]] = render_pages,
    ) -> None:
        """Use a function for the files that follow from the rows."""
        self._public, self._private, self.now, self._render = public, private, now, render
        self.rules = rules
        self._files: dict[str, bytes] = {}
        self.rows = Rows()

    def stamp(self) -> str:
        """Return the time as rows have it."""
        return self.now().isoformat(timespec="seconds")

    # ── participants ────────────────────────────────────────────────────────

    def enter(self, entries: Sequence[LedgerEntry]) -> dict[int, str]:
        """Add submissions; return why some are not accepted, by their numbers."""
        refusals: dict[int, str] = {}

        def make() -> _Files:
            refusals.clear()
            rows = replace(self.rows, entries=dict(self.rows.entries))
            for entry in entries:
                if entry.number not in rows.entries:
                    if refusal := self.rules.explain_refusal(entry, rows):
                        refusals[entry.number] = refusal
                    else:
                        rows.entries[entry.number] = entry
            added = {number: rows.entries[number] for number in rows.entries if number not in self.rows.entries}
            return {row_path(ENTRIES, number): to_bytes(entry) for number, entry in added.items()}

        self._change(make, f"Enter {_name([entry.number for entry in entries])}")
        return refusals

    def refuse(self, reasons: Mapping[int, str]) -> None:
        """Add why submissions are not accepted, by their numbers, for platforms that cannot answer otherwise."""
        remarks = {number: Remark(self.stamp(), text, number) for number, text in reasons.items()}
        rows = {row_path(REFUSED, number): to_bytes(remark) for number, remark in remarks.items()}
        self._add_missing(rows, f"Refuse {_name([*reasons])}")

    def withdraw(self, number: int, account: str) -> str:
        """Take a submission of this account off the leaderboards; return why not, or ""."""
        refusal = ""

        def make() -> _Files:
            nonlocal refusal
            entry = self.rows.entries.get(number)
            refusal = "" if entry and entry.account == account else f"Your account has no submission {number}."
            if refusal or number in self.rows.withdrawals:
                return {}
            return {row_path(WITHDRAWN, number): to_bytes(Remark(self.stamp(), number=number))}

        self._change(make, f"Withdraw submission {number}")
        return refusal

    # ── workers ─────────────────────────────────────────────────────────────

    def list_free(self, worker: str) -> list[int]:
        """Return the waiting submissions that no other worker has claimed."""
        return [
            number
            for number in self.rows.list_waiting()
            if not (claims := self.rows.list_claims(number))
            or claims[-1].worker == worker
            or claims[-1].until <= self.stamp()
        ]

    def claim(self, numbers: Sequence[int], worker: str, seconds: float) -> dict[int, int]:
        """Return the runs of those submissions to score, by their numbers, which no other worker then has."""
        runs: dict[int, int] = {}

        def make() -> _Files:
            runs.clear()
            files: _Files = {}
            until = (self.now() + datetime.timedelta(seconds=seconds)).isoformat(timespec="seconds")
            for number in self.list_free(worker):
                run, claims = self.rows.run_of(number), len(self.rows.list_claims(number))
                if number in numbers and claims >= MOST_CLAIMS:
                    files[row_path(RESULTS, number, run)] = to_bytes(RunOutcome(self.stamp(), incident=_STOPPED))
                elif number in numbers:
                    runs[number] = run
                    files[row_path(CLAIMS, number, run, claims + 1)] = to_bytes(Claim(worker, self.stamp(), until))
            return files

        self._change(make, f"Claim {_name(numbers)}")
        return runs

    def settle(self, outcomes: Mapping[tuple[int, int], RunOutcome]) -> None:
        """Add the outcomes of runs that have none; scores that are not public go to the private storage."""
        hidden, visible = dict[str, bytes](), dict[str, bytes]()
        for (number, run), outcome in outcomes.items():
            phase, path = self.rules.phase(self.rows.entries[number].phase), row_path(RESULTS, number, run)
            shown = phase.list_shown(self.now()) if phase else []
            if secret := {split: scores for split, scores in outcome.scores.items() if split not in shown}:
                hidden[path] = to_bytes(replace(outcome, scores=secret))
            public = {split: scores for split, scores in outcome.scores.items() if split in shown}
            visible[path] = to_bytes(replace(outcome, scores=public))
        if hidden:
            self._write_private(hidden)
        self._add_missing(visible, f"Result of {_name([number for number, _ in outcomes])}")

    def note_incident(self, number: int, run: int, log: str) -> str:
        """Store an incident's log, which may name the truth, in the private storage; return its number."""
        incident = secrets.token_hex(4)
        with suppress(HostError):  # a key that may only read; the worker's own log may be public
            self._write_private({f"incidents/{number}.{run}.{incident}.log": log.encode()})
        return incident

    # ── organisers ──────────────────────────────────────────────────────────

    def disqualify(self, number: int, reason: str) -> None:
        """Take a submission off the leaderboards, with a reason that everybody reads."""
        self._require_entry(number)
        row = to_bytes(Remark(self.stamp(), reason, number))
        self._add_missing({row_path(DISQUALIFIED, number): row}, f"Disqualify submission {number}")

    def score_again(self, number: int, reason: str, order: str) -> None:
        """Let a submission (0: all) wait again, once per order; each keeps its last result until there is a new one."""
        if number:
            self._require_entry(number)
            if self.rows.entries[number].origin:
                raise HostError(f"submission {number} was imported without its file; ask its team to submit it again")
        row = to_bytes(Remark(self.stamp(), reason, number, order))
        about = f"submission {number}" if number else "all submissions"

        def make() -> _Files:
            reruns = self.rows.reruns
            return {} if order in [rerun.order for rerun in reruns] else {row_path(RERUNS, len(reruns) + 1): row}

        self._change(make, f"Score {about} again")

    def publish(self) -> None:
        """Publish scores whose day has come, and bring the page up to date."""
        stored: Rows | None = None

        def make() -> _Files:
            nonlocal stored
            files: _Files = {}
            for (number, run), outcome in self.rows.outcomes.items():
                phase = self.rules.phase(self.rows.entries[number].phase)
                published = {*outcome.scores, *self.rows.reveals.get((number, run), {})}
                lacking = set(phase.list_shown(self.now()) if phase else []) - published
                if not lacking or outcome.refused or outcome.incident or self._private is None:
                    continue
                stored = stored or read_rows(self._private.read())
                if (number, run) in stored.outcomes:
                    scores = stored.outcomes[number, run].scores
                    files |= {row_path(REVEALED, number, run, split): to_bytes(scores[split])
                              for split in lacking if split in scores}  # fmt: skip
            return files

        self._change(make, "Update the page")

    # ── changes ─────────────────────────────────────────────────────────────

    def read(self) -> None:
        """Read the rows as they are now."""
        self._files = self._public.read()
        self.rows = read_rows(self._files)

    def _require_entry(self, number: int) -> None:
        self.read()
        if number not in self.rows.entries:
            raise HostError(f"the ledger has no submission {number}")

    def _add_missing(self, rows: _Files, why: str) -> None:
        """Add the rows that the ledger lacks."""
        self._change(lambda: {path: row for path, row in rows.items() if path not in self._files}, why)

    def _change(self, make: Callable[[], _Files], why: str) -> None:
        """Add the rows that `make` returns for the state as read, and the page of the new state."""

        def write() -> None:
            self.read()
            files = {**self._files, **make()}
            rows = read_rows(files)
            pages = self._render(rows, self.rules, self.now())
            new: dict[str, bytes | None] = {**files, **pages}
            new |= {path: None for path in files if path.startswith(f"{FOLDER}/") and path not in pages}
            changed = {path: data for path, data in new.items() if self._files.get(path) != data}
            if changed:
                self._public.write(changed, why)
            self._files, self.rows = {path: data for path, data in new.items() if data is not None}, rows

        repeat_moved(write, "the ledger")

    def _write_private(self, rows: Mapping[str, bytes]) -> None:
        if self._private is None:
            raise HostError("this challenge hides scores, but it has no private storage")
        add_files(self._private, rows, "Hidden results and incidents")


def add_files(storage: Storage, files: Mapping[str, bytes], why: str) -> int:
    """Add the files that a storage lacks; return their number."""
    new: Mapping[str, bytes] = {}

    def write() -> None:
        nonlocal new
        present = storage.read()
        new = {path: data for path, data in files.items() if path not in present}
        if new:
            storage.write(new, why)

    repeat_moved(write, "the ledger")
    return len(new)


def _name(numbers: Sequence[int]) -> str:
    """Return the name of submissions in a commit's subject."""
    return f"submission{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
