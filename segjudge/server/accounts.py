"""Users, their tokens, teams and rights.  A token is shown once and stored as a hash."""

import hashlib
import secrets
import time
from collections.abc import Collection

from segjudge.platforms.evalai.bundle.secrecy import is_visible

from .models import (
    AccessToken,
    Challenge,
    ChallengePhase,
    ChallengePhaseSplit,
    Membership,
    Participation,
    Submission,
    Team,
    User,
)
from .store import Store
from .wire import NOT_AUTHORIZED, JsonObject, Refusal

#: The lifetime in seconds of a token of the profile page, of a login, and of a browser.
_TOKEN_SECONDS = {"profile": 365 * 86400.0, "login": 7 * 86400.0, "browser": 7 * 86400.0}
HOST, PARTICIPANT = "host", "participant"
_SCRYPT = {"n": 1 << 13, "r": 8, "p": 1}


class Accounts:
    """All users and teams; rights here depend on the user, not on time or state."""

    def __init__(self, store: Store, hosts: Collection[str] = ()) -> None:
        """Open the accounts of a store; the users named in `hosts` may push challenges, whose scripts run here."""
        self._store, self._hosts = store, frozenset(hosts)

    def may_push(self, user: User | None) -> bool:
        """Return whether a user was named as a host when the server was started."""
        return user is not None and user.username in self._hosts

    def team_may_push(self, team: int) -> bool:
        """Return whether a host team has a member who may push; scripts of other teams are not run."""
        return self._store.exists(
            User.username.in_(self._hosts), User.id == Membership.user_id, Membership.team_id == team
        )

    def create(self, username: str, password: str) -> User:
        salt = secrets.token_hex(8)
        user = User(
            username=username, email=f"{username}@rehearsal.invalid", password=f"{salt}${_stretch(password, salt)}"
        )
        with self._store.write() as session:
            session.add(user)
            session.flush()
        return user

    def find_user(self, username: str) -> User | None:
        return self._store.find_first(User, User.username == username)

    def authenticate(self, username: str, password: str) -> User | None:
        """Return the user with a name and a password; None for a wrong pair, after the same amount of work."""
        user = self.find_user(username)
        salt, _, expected = (user.password if user else "x$").partition("$")
        matches = secrets.compare_digest(_stretch(password[:200], salt), expected)
        return user if matches else None

    def mint_token(self, user: User, kind: str) -> tuple[str, float]:
        """Create a token and return it with the moment when it ends."""
        # Hexadecimal: a token that begins with "-" would be read as an option by `evalai set_token`.
        token, created_at = secrets.token_hex(32), time.time()
        expires = created_at + _TOKEN_SECONDS[kind]
        with self._store.write() as session:
            self._store.remove(AccessToken, AccessToken.expires_at < created_at)
            session.add(AccessToken(hash=_hash_token(token), user_id=user.id, kind=kind, expires_at=expires))
        return token, expires

    def user_of_token(self, token: str) -> User | None:
        return self._store.find_first(
            User,
            User.id == AccessToken.user_id,
            AccessToken.hash == _hash_token(token),
            AccessToken.expires_at > time.time(),
        )

    def forget_token(self, token: str) -> None:
        self._store.remove(AccessToken, AccessToken.hash == _hash_token(token))

    def create_team(self, user: User, kind: str, name: str, url: str = "") -> int:
        """Create a team with one member and return its number; raises ValueError when the name is taken."""
        with self._store.write() as session:
            if self._store.exists(Team.kind == kind, Team.team_name == name):
                raise ValueError(name)
            team = Team(kind=kind, team_name=name, team_url=url, created_by=user.id)
            session.add(team)
            session.flush()
            session.add(Membership(team_id=team.id, user_id=user.id))
        return team.id

    def teams(self, user: User, kind: str) -> list[Team]:
        return self._store.find(Team, Team.kind == kind, Team.id == Membership.team_id, Membership.user_id == user.id)

    def team_json(self, team: Team) -> JsonObject:
        members = self.members(team.id)
        creator = self._store.get(User, team.created_by)
        key = "user" if team.kind == HOST else "member_name"
        return {
            "id": team.id,
            "team_name": team.team_name,
            "created_by": creator.username if creator else "",
            "team_url": team.team_url,
            "members": [
                {key: member.username, "member_id": member.id, "status": "Accepted", "permissions": "Admin"}
                for member in members
            ],
        }

    def members(self, team: int) -> list[User]:
        return self._store.find(User, User.id == Membership.user_id, Membership.team_id == team)

    def is_member(self, user: User | None, team: int, kind: str = "") -> bool:
        if user is None:
            return False
        conditions = [Membership.team_id == team, Membership.user_id == user.id]
        return self._store.exists(*conditions, *([Team.id == Membership.team_id, Team.kind == kind] if kind else []))

    # ── belonging ────────────────────────────────────────────────────────────

    def is_host(self, user: User | None, challenge: int) -> bool:
        return user is not None and self._store.exists(
            Challenge.id == challenge, Membership.team_id == Challenge.host_team, Membership.user_id == user.id
        )

    def team_of(self, user: User | None, challenge: int) -> Team | None:
        """Return the team with which a user takes part in a challenge; None without one."""
        if user is None:
            return None
        return self._store.find_first(
            Team,
            Team.id == Participation.team_id,
            Participation.challenge_id == challenge,
            Membership.team_id == Team.id,
            Membership.user_id == user.id,
        )

    # ── seeing ───────────────────────────────────────────────────────────────

    def may_see_phase(self, user: User | None, phase: ChallengePhase) -> bool:
        return phase.flag("is_public") or self.is_host(user, phase.challenge_id)

    def visible_phases(self, user: User | None, challenge: int) -> list[ChallengePhase]:
        phases, host = self._store.phases(challenge), self.is_host(user, challenge)
        return [phase for phase in phases if host or phase.flag("is_public")]

    def visible_phase(self, user: User | None, phase: int) -> ChallengePhase | None:
        row = self._store.get(ChallengePhase, phase)
        return row if row is not None and self.may_see_phase(user, row) else None

    def may_see_board(self, user: User | None, phase: ChallengePhase, split: ChallengePhaseSplit) -> bool:
        is_public = phase.flag("is_public") and phase.flag("leaderboard_public") and is_visible(split.visibility)
        return is_public or self.is_host(user, phase.challenge_id)

    def visible_splits(self, user: User | None, phase: ChallengePhase) -> list[ChallengePhaseSplit]:
        """Return the splits of a phase whose scores a user may see.

        As on EvalAI, only hosts see the splits for "owner and host".
        """
        splits, host = self._store.splits_of(phase.id), self.is_host(user, phase.challenge_id)
        return [split for split in splits if host or is_visible(split.visibility)]

    def may_see_submission(self, user: User | None, submission: Submission) -> bool:
        return self.is_member(user, submission.team_id) or self.hosts_submission(user, submission)

    def check_may_see_submission(self, user: User | None, submission: Submission) -> None:
        if not self.may_see_submission(user, submission):
            raise Refusal(403, "This submission is another team's.")

    # ── doing ────────────────────────────────────────────────────────────────

    def hosts_submission(self, user: User | None, submission: Submission) -> bool:
        return self.is_host(user, self._store.require(ChallengePhase, submission.phase_id).challenge_id)

    def check_host(self, user: User | None, challenge: int, refusal: Refusal | None = None) -> None:
        if not self.is_host(user, challenge):
            raise refusal or Refusal(403, NOT_AUTHORIZED)

    def check_may_push(self, user: User) -> None:
        """Reject users who may not push, since pushed code runs here; the server's start names the hosts."""
        if not self.may_push(user):
            name = user.username
            raise Refusal(403, f"{name} is not a host of this rehearsal; start it with --hosts {name} to change that.")

    def require_team_member(self, user: User, team: int) -> None:
        """Reject users who do not belong to a host team, in EvalAI's words."""
        if not self._store.exists(Team.id == team, Team.kind == "host"):
            # EvalAI's words; they mean: check the number of your host team.
            raise Refusal(406, "ChallengeHostTeam does not exist")
        if not self.is_member(user, team):
            raise Refusal(401, "Sorry, you do not belong to this Host Team!")


def _hash_token(token: str) -> str:
    """Return the stored hash of a token; tokens are long and random, so one round is enough."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _stretch(password: str, salt: str) -> str:
    return hashlib.scrypt(password.encode("utf-8", "replace"), salt=salt.encode(), **_SCRYPT).hex()
