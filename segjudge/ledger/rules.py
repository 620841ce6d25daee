"""The rules of a board: phases with dates and limits, and leaderboards with what everybody may see."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .rows import LedgerEntry, Rows

#: The limits of a phase: the length of the dates that share one, and the period in a sentence.
PERIODS = {"day": (10, "today (UTC)"), "month": (7, "this month (UTC)"), "all": (0, "in this phase")}
#: The maximum bytes of a submission.
MOST_BYTES = 2 << 30
#: How many files of an account are looked at for each submission that counts: rejected files do not count.
_TRIES = 3


@dataclass(frozen=True)
class BoardRules:
    """A leaderboard: one split of a phase."""

    split: str
    name: str
    #: The metrics, and the one that ranks.
    labels: Sequence[str]
    order: str
    descending: bool
    decimals: int
    #: Whether everybody may see its scores now.
    public: bool


@dataclass(frozen=True)
class PhaseRules:
    """A phase: when and how often an account may submit, and its leaderboards."""

    codename: str
    start: datetime.datetime
    end: datetime.datetime
    boards: Sequence[BoardRules]
    #: Period → the number of submissions of an account.
    limits: Mapping[str, int] = field(default_factory=dict)
    #: The seconds that scoring may take.
    seconds: float = 3600.0
    #: The day before which a blind phase shows no scores.
    reveal: datetime.date | None = None

    def is_blind(self, now: datetime.datetime) -> bool:
        return self.reveal is not None and now.date() < self.reveal

    def list_shown(self, now: datetime.datetime) -> list[str]:
        """Return the splits whose scores everybody may see."""
        return [] if self.is_blind(now) else [board.split for board in self.boards if board.public]


@dataclass(frozen=True)
class Rules:
    """A challenge: its title and phases."""

    title: str
    phases: Sequence[PhaseRules]

    def phase(self, codename: str) -> PhaseRules | None:
        return next((phase for phase in self.phases if phase.codename == codename), None)

    def explain_refusal(self, entry: LedgerEntry, rows: Rows) -> str:
        """Return why a submission is not accepted; "" if it is."""
        phase = self.phase(entry.phase)
        if phase is None:
            names = ", ".join(phase.codename for phase in self.phases)
            return f"This challenge has no such phase; its phases are: {names}."
        now = datetime.datetime.fromisoformat(entry.at)
        if now < phase.start:
            return f"The phase {phase.codename} begins on {phase.start:%Y-%m-%d %H:%M} UTC."
        if now > phase.end:
            return f"The phase {phase.codename} ended on {phase.end:%Y-%m-%d %H:%M} UTC."
        return _explain_limits(phase, entry, rows)


def _explain_limits(phase: PhaseRules, entry: LedgerEntry, rows: Rows) -> str:
    """Return which limit of its account a submission exceeds; "" if none."""
    earlier = [each for each in rows.entries.values() if (each.phase, each.account) == (entry.phase, entry.account)]
    for period, limit in phase.limits.items():
        length, words = PERIODS[period]
        tries = [each.number for each in earlier if each.at[:length] == entry.at[:length]]
        counted = [number for number in tries if not _is_free(rows, number)]
        if len(counted) >= limit:
            return f"Your account has used its {limit} submissions {words}."
        if len(tries) >= _TRIES * limit:
            return f"Too many of your files were rejected {words}."
    return ""


def _is_free(rows: Rows, number: int) -> bool:
    """Return whether a submission does not count, since it was rejected or scoring failed."""
    last = rows.last_outcome(number)
    is_failed = last is not None and not last[1].scores and bool(last[1].refused or last[1].incident)
    return is_failed or number in rows.refusals
