"""Users, their tokens and teams.  A token is shown once and kept as its hash."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from .store import Store

#: Seconds that a token of the profile page, of a login and of a browser lasts.
LIFE = {"profile": 365 * 86400.0, "login": 7 * 86400.0, "browser": 7 * 86400.0}
HOST, PARTICIPANT = "host", "participant"
_SCRYPT = {"n": 1 << 13, "r": 8, "p": 1}


@dataclass(frozen=True)
class User:
    """Who calls."""

    id: int
    username: str
    email: str


class Accounts:
    """Who may do what."""

    def __init__(self, store: Store, hosts: Collection[str] = ()) -> None:
        """`hosts` are the names of those who may push challenges, whose scripts are run here."""
        self._store, self._hosts = store, frozenset(hosts)

    def may_push(self, user: User | None) -> bool:
        """Whether a user was named as a host when the rehearsal was started."""
        return user is not None and user.username in self._hosts

    def pushed_by_host(self, team: int) -> bool:
        """Whether a host team has a member who may push: nobody else's script is run, however it came here."""
        rows = self._store.rows("SELECT username FROM users JOIN members ON user_id = users.id WHERE team_id = ?", team)
        return any(row["username"] in self._hosts for row in rows)

    def create(self, username: str, password: str) -> User:
        """A new user, verified at once."""
        salt = secrets.token_hex(8)
        with self._store.write() as db:
            number = db.execute(
                "INSERT INTO users (username, email, password) VALUES (?, ?, ?)",
                (username, f"{username}@rehearsal.invalid", f"{salt}${_stretched(password, salt)}"),
            ).lastrowid
        return User(int(number or 0), username, f"{username}@rehearsal.invalid")

    def named(self, username: str) -> User | None:
        """A user by name."""
        return _user(self._store.row("SELECT * FROM users WHERE username = ?", username))

    def with_password(self, username: str, password: str) -> User | None:
        """Who logs in; None when the pair is wrong, after as much work as when it is right."""
        row = self._store.row("SELECT * FROM users WHERE username = ?", username)
        salt, _, kept = (row["password"] if row else "x$").partition("$")
        right = secrets.compare_digest(_stretched(password[:200], salt), kept)
        return _user(row) if row and right else None

    def mint(self, user: User, kind: str) -> tuple[str, float]:
        """A new token, and when it ends."""
        # Hexadecimal: a token that begins with "-" would be read as an option by `evalai set_token`.
        token, expires = secrets.token_hex(32), time.time() + LIFE[kind]
        with self._store.write() as db:
            db.execute("DELETE FROM tokens WHERE expires_at < ?", (time.time(),))
            db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?)", (hashed(token), user.id, kind, expires))
        return token, expires

    def of_token(self, token: str) -> User | None:
        """Whose token it is, while it lasts."""
        return _user(
            self._store.row(
                "SELECT users.* FROM users JOIN tokens ON user_id = users.id WHERE hash = ? AND expires_at > ?",
                hashed(token),
                time.time(),
            )
        )

    def forget(self, token: str) -> None:
        """End a session."""
        with self._store.write() as db:
            db.execute("DELETE FROM tokens WHERE hash = ?", (hashed(token),))

    def new_team(self, user: User, kind: str, name: str, url: str = "") -> int:
        """A team with one member; raises ValueError when the name is taken."""
        with self._store.write() as db:
            if db.execute("SELECT 1 FROM teams WHERE kind = ? AND team_name = ?", (kind, name)).fetchone():
                raise ValueError(name)
            number = db.execute(
                "INSERT INTO teams (kind, team_name, team_url, created_by) VALUES (?, ?, ?, ?)",
                (kind, name, url, user.id),
            ).lastrowid
            db.execute("INSERT INTO members VALUES (?, ?)", (number, user.id))
        return int(number or 0)

    def teams(self, user: User, kind: str) -> list[dict[str, Any]]:
        """The teams of a user, as the API shows them."""
        rows = self._store.rows(
            "SELECT teams.*, users.username AS maker FROM teams JOIN members ON team_id = teams.id "
            "JOIN users ON users.id = teams.created_by WHERE kind = ? AND user_id = ? ORDER BY teams.id",
            kind,
            user.id,
        )
        return [self._shown(row, kind) for row in rows]

    def _shown(self, row: Any, kind: str) -> dict[str, Any]:
        people = self._store.rows(
            "SELECT users.id, username FROM users JOIN members ON user_id = users.id WHERE team_id = ?", row["id"]
        )
        key = "user" if kind == HOST else "member_name"
        return {
            "id": row["id"],
            "team_name": row["team_name"],
            "created_by": row["maker"],
            "team_url": row["team_url"],
            "members": [
                {key: one["username"], "member_id": one["id"], "status": "Accepted", "permissions": "Admin"}
                for one in people
            ],
        }

    def is_member(self, user: User | None, team: int, kind: str = "") -> bool:
        """Whether a user belongs to a team, of a kind."""
        sql = "SELECT 1 FROM members JOIN teams ON id = team_id WHERE team_id = ? AND user_id = ? AND ? IN ('', kind)"
        return user is not None and bool(self._store.row(sql, team, user.id, kind))


def hashed(token: str) -> str:
    """What is kept of a token; it is long and random, so one round is enough."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _stretched(password: str, salt: str) -> str:
    return hashlib.scrypt(password.encode("utf-8", "replace"), salt=salt.encode(), **_SCRYPT).hex()


def _user(row: Any) -> User | None:
    return User(row["id"], row["username"], row["email"]) if row else None
