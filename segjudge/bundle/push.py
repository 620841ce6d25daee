"""`segjudge push`: validate and create or update a challenge through EvalAI's API."""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from dataclasses import dataclass, field
from typing import Any

import yaml

from segjudge.evalai import routes
from segjudge.evalai.client import ApiError, Client
from segjudge.evalai.settings import TEAM, TOKEN, EvalAISettings
from segjudge.evaluation_script.errors import HostError
from segjudge.evaluation_script.packed_file import add_member

from .opened_bundle import Bundle
from .server_sentences import RejectedError, sentences
from .server_state import SHOWN, State

#: Seconds for a call that uploads 200 MB and lets the server unpack and save it.
_UPLOAD_TIMEOUT = (10.0, 900.0)


@dataclass(frozen=True)
class Pushed:
    """A challenge as the server names it."""

    said: str
    challenge: int
    queue: str
    #: codename → id
    phases: dict[str, int] = field(default_factory=dict)
    approved: bool = False


def repository(told: str, root: str) -> str:
    """OWNER/NAME, by which the server knows a challenge again."""
    name = told or os.environ.get("GITHUB_REPOSITORY", "") or _remote(root)
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        found = f"{name!r} is not OWNER/NAME" if name else "no repository is known"
        remedy = "set GITHUB_REPOSITORY to OWNER/NAME, or give the checkout a git remote named origin"
        raise HostError(f"{found}: EvalAI knows a challenge again by its repository; {remedy}")
    return name


def _remote(root: str) -> str:
    done = subprocess.run(
        ["git", "-C", root, "remote", "get-url", "origin"],  # noqa: S607 - the host's git
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.fullmatch(r"(?:\w+://[^/]+/|[\w.-]+@[\w.-]+:)([\w.-]+/[\w.-]+?)(\.git)?/?", done.stdout.strip())
    return found.group(1) if done.returncode == 0 and found else ""


#: With more phase splits than this the server's limit of 60 calls a minute would be met.
_MAPPINGS = 20


class Push:
    """One push of one bundle."""

    def __init__(self, settings: EvalAISettings, name: str) -> None:
        if not settings.team:
            raise HostError(f"{TEAM} is not set: it is the number of your host team, in the address of its page")
        self._settings, self._name = settings, name
        self._client = Client(settings.host, settings.token)

    def held(self) -> dict[str, Any] | None:
        """The challenge that this repository has on the server."""
        try:
            challenges = self._client.all_of(routes.CHALLENGES_OF_HOST, {"team": self._settings.team})
        except ApiError as error:
            raise HostError(self._explained(error)) from None
        ours = [one for one in challenges if one.get("github_repository") == self._name]
        return next((one for one in ours if isinstance(one.get("id"), int)), None)

    def state(self, known: State | None, held: dict[str, Any] | None = None) -> State | None:
        """What the server holds; what its API does not tell is taken from the last push from here."""
        challenge = held or self.held()
        if challenge is None:
            return None
        number = int(challenge["id"])
        source, approved = self.source(number), bool(challenge.get("approved_by_admin"))
        fifo = challenge.get("use_fifo_sqs")
        fifo = fifo if isinstance(fifo, bool) else None
        try:
            phases = self._client.all_of(routes.PHASES_OF_HOST, {"challenge": number})
            listed = [row for row in phases if _number(row.get("config_id"))]
            numbered = {row["config_id"]: str(row.get("codename")) for row in listed}
            told = self._mapped(number, {row["id"]: row["config_id"] for row in listed})
        except ApiError as error:
            raise HostError(self._explained(error)) from None
        if told is not None:
            return State(source, approved, phases=numbered, fifo=fifo, **told)
        if known is None or known.source != source:
            return State(source, approved, phases=numbered, fifo=fifo)
        return State(source, approved, known.leaderboards, numbered, known.splits, known.rows, fifo)

    def _mapped(self, challenge: int, phases: dict[int, int]) -> dict[str, Any] | None:
        """Leaderboards, dataset splits and phase splits by the ids of the YAML; None where the server does not tell."""
        listed = self._client.all_of(routes.PHASE_SPLITS, {"challenge": challenge})
        if len(listed) > _MAPPINGS:
            return None
        try:
            rows = [self._client.call("GET", routes.PHASE_SPLIT, {"split": one["id"]}) for one in listed]
            boards = {
                pk: self._client.call("GET", routes.LEADERBOARD_SCHEMA, {"leaderboard": pk})
                for pk in sorted({row["leaderboard"] for row in rows})
            }
            splits = {
                pk: self._client.call("GET", routes.DATASET_SPLIT, {"split": pk})
                for pk in sorted({row["dataset_split"] for row in rows})
            }
            return {
                "leaderboards": {int(board["config_id"]): board["schema"] for board in boards.values()},
                "splits": {int(one["config_id"]): [one["name"], one["codename"]] for one in splits.values()},
                "rows": [
                    [
                        int(boards[row["leaderboard"]]["config_id"]),
                        phases[row["challenge_phase"]],
                        int(splits[row["dataset_split"]]["config_id"]),
                        *(row[key] for key in SHOWN),
                    ]
                    for row in rows
                ],
            }
        except (KeyError, TypeError, ValueError):
            return None  # a server that tells less
        except ApiError as error:
            if error.status in (403, 404):
                return None
            raise

    def source(self, challenge: int) -> str:
        """Which challenge on which server, in words."""
        return f"challenge {challenge} of {self._name} on {self._settings.host}"

    def validate(self, bundle: str) -> str:
        """Ask the server what it thinks of a bundle; its words."""
        return self._upload(routes.VALIDATE, bundle)

    def create_or_update(self, bundle: str) -> str:
        """Make the challenge, or bring it up to date; the server's words."""
        return self._upload(routes.CREATE_OR_UPDATE, bundle)

    def looked_up(self, said: str) -> Pushed:
        """The numbers that the server gave, which its answer does not tell."""
        challenge = self.held()
        if challenge is None:
            told = f"no challenge of host team {self._settings.team} names {self._name}"
            raise HostError(f"{said}\nBut {told}.")
        number = int(challenge["id"])
        try:
            phases = self._client.all_of(routes.PHASES_OF_HOST, {"challenge": number})
        except ApiError as error:
            raise HostError(f"{said}\nIts phases could not be looked up: {self._explained(error)}") from None
        listed = sorted(phases, key=lambda phase: phase.get("config_id") or 0)
        names = {str(phase.get("codename")): phase["id"] for phase in listed if isinstance(phase.get("id"), int)}
        return Pushed(said, number, str(challenge.get("queue") or ""), names, bool(challenge.get("approved_by_admin")))

    def _upload(self, route: str, bundle: str) -> str:
        with open(bundle, "rb") as file:
            try:
                answer = self._client.call(
                    "POST",
                    route,
                    {"team": self._settings.team},
                    data={"GITHUB_REPOSITORY": self._name},
                    files={"zip_configuration": ("challenge_config.zip", file, "application/zip")},
                    timeout=_UPLOAD_TIMEOUT,
                )
            except ApiError as error:
                if error.status in (400, 406) and isinstance(error.body, dict) and _TEAMLESS not in error.message:
                    raise RejectedError(sentences(error.body)) from None
                raise HostError(self._explained(error)) from None
        return (
            str(answer.get("Success") or answer.get("success") or answer) if isinstance(answer, dict) else str(answer)
        )

    def _explained(self, error: ApiError) -> str:
        meaning = _NO_TEAM if _TEAMLESS in error.message else _MEANING.get(error.status, "")
        return f"{self._settings.host} says: {error.message}\n{meaning}".rstrip()


#: How the server says that there is no such host team.
_TEAMLESS = "ChallengeHostTeam"
_NO_TEAM = f"{TEAM} is not the number of a host team there: it is in the address of your host team's page."
_MEANING = {
    401: f"Your token is wrong, has expired (renew it on your profile page, then set {TOKEN}), or is not of a member "
    f"of host team {TEAM}.",
    403: "Another challenge of somebody else's already has this repository, or your e-mail address is not verified. "
    "Push under your own OWNER/NAME with --repository.",
    404: f"There is no such thing there: {TEAM} is the number in the address of your host team's page.",
    413: "The bundle is too large; upload large annotation files with the evalai client.",
    429: "Too many requests: 60 a minute are allowed for each user, over everything. Wait a minute.",
}


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def without_sponsors(bundle: str, out: str) -> bool:
    """Write the bundle for an update: a sponsor that is stored already makes the server fail; whether any was there."""
    with Bundle(bundle) as opened:
        if not opened.config.get("sponsors"):
            return False
        root = yaml.compose(opened.text, Loader=yaml.SafeLoader)
        if not isinstance(root, yaml.MappingNode):
            return False
        lines = opened.text.decode("utf-8").splitlines(keepends=True)
        for key, value in root.value:
            if key.value == "sponsors":
                # Commented out, so that every other line stays where it is.
                last = value.end_mark.line + (value.end_mark.column > 0)
                for number in range(key.start_mark.line, max(last, key.start_mark.line + 1)):
                    lines[number] = f"# {lines[number]}"
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
            for name in sorted(opened.names):
                data = "".join(lines).encode("utf-8") if name == opened.config_name else opened.read(name)
                add_member(target, name, data)
    return True
