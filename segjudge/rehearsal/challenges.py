"""Challenges, their phases and their splits, by their numbers."""

import re

from .models import Challenge, ChallengePhase, ChallengePhaseSplit, LogLine
from .store import Store
from .timestamps import written

#: Visibilities of a phase split, as EvalAI numbers them.
HOST_ONLY, OWNER_AND_HOST, PUBLIC = 1, 2, 3
#: Lines of the log that hosts read.
_LOG_LINES = 1000


class Challenges:
    """All challenges."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> list[Challenge]:
        """Return every challenge."""
        return self._store.find(Challenge)

    def get(self, challenge: int) -> Challenge | None:
        """Return a challenge; None where there is none."""
        return self._store.get(Challenge, challenge)

    def of_repository(self, repository: str) -> Challenge | None:
        """Return the challenge that was pushed from a repository."""
        return self._store.first(Challenge, Challenge.repository == repository)

    def phase(self, phase: int) -> ChallengePhase | None:
        """Return a phase; None where there is none."""
        return self._store.get(ChallengePhase, phase)

    def phases(self, challenge: int) -> list[ChallengePhase]:
        """Return the phases of a challenge, in the order of the YAML's numbers."""
        return self._store.find(
            ChallengePhase, ChallengePhase.challenge_id == challenge, order=ChallengePhase.config_id
        )

    def splits_of(self, phase: int) -> list[ChallengePhaseSplit]:
        """Return the phase splits of a phase."""
        return self._store.find(ChallengePhaseSplit, ChallengePhaseSplit.phase_id == phase)

    def log_lines(self, challenge: int) -> list[str]:
        """Return the hosted worker's log."""
        lines = self._store.find(LogLine, LogLine.challenge_id == challenge, order=LogLine.id.desc(), limit=_LOG_LINES)
        return [f"[{written(line.at)}] {line.line}" for line in reversed(lines)]


def slug(text: str) -> str:
    """Return a title as it stands in addresses."""
    return re.sub(r"[^a-z0-9]+", "-", str(text).lower()).strip("-") or "challenge"
