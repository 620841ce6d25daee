"""The evaluator of a ledger: it enters what a platform's queue receives, scores it in batches, and answers.

Several may run at once, and each may be killed at any moment: a claim that is not settled in time is taken over.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.bundle_source import BundleSource
from segjudge.system.download import DiskError, GoneError, TooLargeError
from segjudge.system.files import digest_of_bytes, temporary_folder

from .ledger import Ledger
from .rows import LedgerEntry, RunOutcome
from .rules import MOST_BYTES
from .scoring import Answer, score_file

#: The seconds of a claim beyond the phase's limit: for download and report.
_MARGIN = 1800.0
#: The seconds after which results are added, and the submissions of a batch: platforms limit the commits of an hour.
_SECONDS, _MOST = 60.0, 16
#: The choices of an organiser.
SCORE, DISQUALIFY, AGAIN = "score", "disqualify", "score again"


class Queue(Protocol):
    """A platform's submissions."""

    def receive(self, ledger: Ledger) -> Iterator[str]:
        """Enter new submissions and withdrawals, and answer those that are not accepted; yield a line for each."""

    def fetch(self, entry: LedgerEntry, path: str) -> None:
        """Write a submission's file to a path; raises TooLargeError, GoneError, or DiskError."""

    def report(self, ledger: Ledger) -> Iterator[str]:
        """Answer the submissions that have outcomes; yield a line for each."""


@dataclass
class Evaluator:
    """An evaluator with a name that no other one has; a restarted one continues its claims under the same name."""

    ledger: Ledger
    source: BundleSource
    queue: Queue
    worker: str

    def __post_init__(self) -> None:
        self._outcomes = dict[tuple[int, int], RunOutcome]()
        self._size = 1

    def sweep(self) -> Iterator[str]:
        """Bring the board up to date; yields a line for each action, without hidden scores."""
        self._settle()  # what a failure left behind
        yield from self.queue.receive(self.ledger)
        yield from self._score()
        self.ledger.publish()
        yield from self.queue.report(self.ledger)

    def obey(self, action: str, number: int, reason: str, order: str) -> Iterator[str]:
        """Do what an organiser chose; a submission of 0 means all."""
        if action == DISQUALIFY:
            if not number or not reason:
                raise HostError("to disqualify a submission, give its number and a reason, which everybody will read")
            self.ledger.disqualify(number, reason)
            yield f"submission {number}: disqualified"
        elif action == AGAIN:
            self.ledger.score_again(number, reason, order)
            yield f"{f'submission {number}' if number else 'all submissions'}: waiting again"

    def _score(self) -> Iterator[str]:
        """Score all waiting submissions that no other evaluator has."""
        self.ledger.read()
        while batch := self._choose_batch():
            seconds = max(map(self._seconds_of, batch))
            runs = self.ledger.claim(batch, self.worker, seconds)
            began = settled = time.monotonic()
            for number, run in runs.items():
                yield f"submission {number}: {self._score_run(number, run)}"
                if time.monotonic() > settled + _SECONDS:
                    self._settle()
                    settled = time.monotonic()
            self._settle()
            if runs:
                self._size = max(1, min(_MOST, int(_SECONDS * len(runs) / (time.monotonic() - began))))

    def _choose_batch(self) -> list[int]:
        """Return the next submissions; one at which an evaluator was stopped is a batch by itself."""
        batch = self.ledger.list_free(self.worker)[: self._size]
        stopped = next((index for index, number in enumerate(batch) if self.ledger.rows.list_claims(number)), _MOST)
        return batch[: max(1, stopped)]

    def _seconds_of(self, number: int) -> float:
        phase = self.ledger.rules.phase(self.ledger.rows.entries[number].phase)
        return (phase.seconds if phase else 0.0) + _MARGIN

    def _score_run(self, number: int, run: int) -> str:
        """Keep the outcome of a run until it is settled; return it in words."""
        with temporary_folder("segjudge-") as folder:
            answer, digest = self._score_entry(self.ledger.rows.entries[number], folder)
        incident = self.ledger.note_incident(number, run, answer.fault) if answer.fault else ""
        self._outcomes[number, run] = RunOutcome(
            self.ledger.stamp(), answer.scores or {}, answer.refused, incident, answer.version, digest
        )
        return "scored" if answer.scores else "rejected" if answer.refused else f"incident {incident}"

    def _settle(self) -> None:
        if self._outcomes:
            self.ledger.settle(self._outcomes)
            self._outcomes = {}

    def _score_entry(self, entry: LedgerEntry, folder: str) -> tuple[Answer, str]:
        """Return the answer about a submission, and the digest of its file."""
        if self.ledger.rules.phase(entry.phase) is None:
            return Answer(fault=f"the challenge no longer has the phase {entry.phase}"), ""
        path = os.path.join(folder, "submission")
        try:
            self.queue.fetch(entry, path)
        except TooLargeError:
            return Answer(refused=f"Your file is larger than {MOST_BYTES:,} bytes. Send a smaller file."), ""
        except GoneError as error:
            return Answer(refused=f"Your file could not be fetched: {error}. Check the link and submit again."), ""
        except DiskError as error:
            return Answer(fault=str(error)), ""
        digest = digest_of_bytes(path)
        if entry.sha256 not in ("", digest):
            return Answer(refused=f"The file at your link has the SHA-256 {digest}, not {entry.sha256}."), digest
        return score_file(self.source, entry.phase, path, folder), digest
