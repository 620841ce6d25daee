"""The keeping of a ledger: each change is one addition on top of the state that it was decided by."""

from __future__ import annotations

import datetime
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from segjudge.evaluation_script.files.problems import HostError

from .page import FOLDER, render_pages
from .rows import (
    Claim,
    LedgerEntry,
    Remark,
    Rows,
    RunOutcome,
    claim_path,
    disqualification_path,
    entry_path,
    outcome_path,
    read_rows,
    rerun_path,
    reveal_path,
    to_bytes,
    withdrawal_path,
)
from .rules import Rules
from .storage import MovedError, Storage

#: The attempts at one change while others write, and the longest pause between two in seconds.
_TRIES, _PAUSE = 30, 2.0
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
    ) -> None:
        self._public, self._private, self.now = public, private, now
        self.rules = rules
        self._files: dict[str, bytes] = {}
        self.rows = Rows()

    def stamp(self) -> str:
        """Return the time as rows have it."""
        return self.now().isoformat(timespec="seconds")

    # ── participants ────────────────────────────────────────────────────────

    def enter(self, entry: LedgerEntry) -> str:
        """Add a submission; return why it is not accepted, or ""."""
        refusal = ""

        def make() -> _Files:
            nonlocal refusal
            refusal = "" if entry.number in self.rows.entries else self.rules.explain_refusal(entry, self.rows)
            return {} if refusal or entry.number in self.rows.entries else {entry_path(entry.number): to_bytes(entry)}

        self._change(make, f"Submission {entry.number}")
        return refusal

    def withdraw(self, number: int, account: str) -> str:
        """Take a submission of this account off the leaderboards; return why not, or ""."""
        refusal = ""

        def make() -> _Files:
            nonlocal refusal
            entry = self.rows.entries.get(number)
            refusal = "" if entry and entry.account == account else f"Your account has no submission {number}."
            if refusal or number in self.rows.withdrawals:
                return {}
            return {withdrawal_path(number): to_bytes(Remark(self.stamp(), number=number))}

        self._change(make, f"Withdraw submission {number}")
        return refusal

    # ── workers ─────────────────────────────────────────────────────────────

    def claim(self, number: int, worker: str, seconds: float) -> int:
        """Return the run of a submission to score, which no other worker then has; 0 if there is nothing to do."""
        run = 0

        def make() -> _Files:
            nonlocal run
            run = 0
            if number not in self.rows.list_waiting():
                return {}
            current, now = self.rows.run_of(number), self.now()
            claims = self.rows.claims.get((number, current), [])
            if claims and claims[-1].worker != worker and claims[-1].until > self.stamp():
                return {}
            if len(claims) >= MOST_CLAIMS:
                return {outcome_path(number, current): to_bytes(RunOutcome(self.stamp(), incident=_STOPPED))}
            run = current
            until = (now + datetime.timedelta(seconds=seconds)).isoformat(timespec="seconds")
            return {claim_path(number, run, len(claims) + 1): to_bytes(Claim(worker, self.stamp(), until))}

        self._change(make, f"Claim submission {number}")
        return run

    def settle(self, number: int, run: int, outcome: RunOutcome) -> None:
        """Add the outcome of a run, unless there is one; scores that are not public go to the private storage."""
        phase = self.rules.phase(self.rows.entries[number].phase)
        shown = phase.list_shown(self.now()) if phase else []
        hidden = {split: scores for split, scores in outcome.scores.items() if split not in shown}
        path = outcome_path(number, run)
        if hidden:
            self._write_private({path: to_bytes(replace(outcome, scores=hidden))})
        visible = replace(outcome, scores={split: outcome.scores[split] for split in shown if split in outcome.scores})
        self._change(lambda: {} if path in self._files else {path: to_bytes(visible)}, f"Result of submission {number}")

    # ── organisers ──────────────────────────────────────────────────────────

    def disqualify(self, number: int, reason: str) -> None:
        """Take a submission off the leaderboards, with a reason that everybody reads."""
        self._require_entry(number)
        row = to_bytes(Remark(self.stamp(), reason, number))
        path = disqualification_path(number)
        self._change(lambda: {} if path in self._files else {path: row}, f"Disqualify submission {number}")

    def score_again(self, number: int, reason: str, order: str) -> None:
        """Let a submission (0: all) wait again, once per order; each keeps its last result until there is a new one."""
        if number:
            self._require_entry(number)
        row = to_bytes(Remark(self.stamp(), reason, number, order))
        about = f"submission {number}" if number else "all submissions"

        def make() -> _Files:
            reruns = self.rows.reruns
            return {} if order in [rerun.order for rerun in reruns] else {rerun_path(len(reruns) + 1): row}

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
                    files |= {reveal_path(number, run, split): to_bytes(scores[split])
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

    def _change(self, make: Callable[[], _Files], why: str) -> None:
        """Add the rows that `make` returns for the state as read, and the page of the new state."""

        def write() -> None:
            self.read()
            files = {**self._files, **make()}
            rows = read_rows(files)
            pages = render_pages(rows, self.rules, self.now())
            new: dict[str, bytes | None] = {**files, **pages}
            new |= {path: None for path in files if path.startswith(f"{FOLDER}/") and path not in pages}
            changed = {path: data for path, data in new.items() if self._files.get(path) != data}
            if changed:
                self._public.write(changed, why)
            self._files, self.rows = {path: data for path, data in new.items() if data is not None}, rows

        _repeat(write)

    def _write_private(self, rows: Mapping[str, bytes]) -> None:
        if self._private is None:
            raise HostError("this challenge hides scores, but it has no private storage")
        storage = self._private

        def write() -> None:
            files = storage.read()
            if new := {path: data for path, data in rows.items() if path not in files}:
                storage.write(new, "Hidden results")

        _repeat(write)


def _repeat(write: Callable[[], None]) -> None:
    """Repeat a change while other writers are faster."""
    for _ in range(_TRIES):
        try:
            write()
        except MovedError:
            time.sleep(random.uniform(0, _PAUSE))  # so that writers do not meet again
        else:
            return
    raise HostError("other writers kept changing the ledger; run again")
