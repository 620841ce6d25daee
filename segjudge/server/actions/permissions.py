"""Who may see and do what."""

from segjudge.server.accounts import Accounts
from segjudge.server.models import (
    PUBLIC,
    Challenge,
    ChallengePhase,
    ChallengePhaseSplit,
    Membership,
    Participation,
    Submission,
    Team,
    User,
)
from segjudge.server.store import Store
from segjudge.server.wire import NOT_AUTHORIZED, Refusal


class Permissions:
    """The rules that depend on the user alone, not on time or state."""

    def __init__(self, store: Store, accounts: Accounts) -> None:
        self._store, self._accounts = store, accounts

    # ── belonging ───────────────────────────────────────────────────────────

    def is_host(self, user: User | None, challenge: int) -> bool:
        """Return whether a user belongs to the team that hosts a challenge."""
        return user is not None and self._store.exists(
            Challenge.id == challenge, Membership.team_id == Challenge.host_team, Membership.user_id == user.id
        )

    def team_of(self, user: User | None, challenge: int) -> Team | None:
        """Return the team with which a user takes part in a challenge; None when with none."""
        if user is None:
            return None
        return self._store.find_first(
            Team,
            Team.id == Participation.team_id,
            Participation.challenge_id == challenge,
            Membership.team_id == Team.id,
            Membership.user_id == user.id,
        )

    # ── seeing ──────────────────────────────────────────────────────────────

    def may_see_phase(self, user: User | None, phase: ChallengePhase) -> bool:
        """Return whether a phase is public, or a user hosts it."""
        return phase.flag("is_public") or self.is_host(user, phase.challenge_id)

    def visible_phases(self, user: User | None, challenge: int) -> list[ChallengePhase]:
        """Return the phases of a challenge that a user may see."""
        phases, host = self._store.phases(challenge), self.is_host(user, challenge)
        return [phase for phase in phases if host or phase.flag("is_public")]

    def visible_phase(self, user: User | None, phase: int) -> ChallengePhase | None:
        """Return a phase that a user may see; None where there is none."""
        row = self._store.get(ChallengePhase, phase)
        return row if row is not None and self.may_see_phase(user, row) else None

    def may_see_board(self, user: User | None, phase: ChallengePhase, split: ChallengePhaseSplit) -> bool:
        """Return whether a leaderboard and its phase are public, or a user hosts it."""
        public = phase.flag("is_public") and phase.flag("leaderboard_public") and split.visibility == PUBLIC
        return public or self.is_host(user, phase.challenge_id)

    def visible_splits(self, user: User | None, phase: ChallengePhase) -> list[ChallengePhaseSplit]:
        """Return the splits of a phase whose scores a user may see.

        EvalAI shows those for "owner and host" to hosts alone.
        """
        splits, host = self._store.splits_of(phase.id), self.is_host(user, phase.challenge_id)
        return [split for split in splits if host or split.visibility == PUBLIC]

    def may_see_submission(self, user: User | None, submission: Submission) -> bool:
        """Return whether a user belongs to the team of a submission, or hosts its challenge."""
        return self._accounts.is_member(user, submission.team_id) or self.hosts_submission(user, submission)

    def check_may_see_submission(self, user: User | None, submission: Submission) -> None:
        """Refuse other teams."""
        if not self.may_see_submission(user, submission):
            raise Refusal(403, "This submission is another team's.")

    # ── doing ───────────────────────────────────────────────────────────────

    def hosts_submission(self, user: User | None, submission: Submission) -> bool:
        """Return whether a user hosts the challenge of a submission."""
        return self.is_host(user, self._store.require(ChallengePhase, submission.phase_id).challenge_id)

    def check_host(self, user: User | None, challenge: int, refusal: Refusal | None = None) -> None:
        """Refuse who does not host a challenge."""
        if not self.is_host(user, challenge):
            raise refusal or Refusal(403, NOT_AUTHORIZED)

    def check_may_push(self, user: User) -> None:
        """Refuse who may not push: what hosts push is run here, for those only whom the server was started for."""
        if not self._accounts.may_push(user):
            name = user.username
            raise Refusal(403, f"{name} is not a host of this rehearsal; start it with --hosts {name} to change that.")

    def check_team(self, user: User, team: int) -> None:
        """Refuse who does not belong to a host team; the words are EvalAI's."""
        if not self._store.exists(Team.id == team, Team.kind == "host"):
            # As EvalAI words it, though it means: look at the number of your host team.
            raise Refusal(406, "ChallengeHostTeam does not exist")
        if not self._accounts.is_member(user, team):
            raise Refusal(401, "Sorry, you do not belong to this Host Team!")
