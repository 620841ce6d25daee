"""`linejudge push`: validate and create or update a challenge through EvalAI's API."""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from dataclasses import dataclass, field
from typing import Any

import yaml

from evaluation_script.errors import HostError
from evaluation_script.truth import add_member
from linejudge.evalai import routes
from linejudge.evalai.client import ApiError, Client
from linejudge.evalai.settings import TEAM, TOKEN, Settings

from .finding import Finding, Findings
from .opened import Bundle
from .state import State

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
        found = f"{name!r} is no OWNER/NAME" if name else "it is not known"
        raise HostError(f"--repository: {found}; EvalAI knows a challenge again by its repository")
    return name


def _remote(root: str) -> str:
    done = subprocess.run(
        ["git", "-C", root, "remote", "get-url", "origin"],  # noqa: S607 - the host's git
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"[:/]([\w.-]+/[\w.-]+?)(\.git)?/?$", done.stdout.strip())
    return found.group(1) if done.returncode == 0 and found else ""


class Push:
    """One push of one bundle."""

    def __init__(self, settings: Settings, name: str) -> None:
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
        return next((one for one in challenges if one.get("github_repository") == self._name), None)

    def state(self, known: State | None) -> State | None:
        """What the server holds, as far as its API tells, completed by what the last push from here left."""
        challenge = self.held()
        if challenge is None:
            return None
        try:
            phases = self._client.all_of(routes.PHASES_OF_HOST, {"challenge": challenge["id"]})
        except ApiError as error:
            raise HostError(self._explained(error)) from None
        numbered = {row["config_id"]: str(row.get("codename")) for row in phases if row.get("config_id") is not None}
        source, approved = (
            f"{self._settings.host}, challenge {challenge['id']}",
            bool(challenge.get("approved_by_admin")),
        )
        if known is None:
            return State(source, approved, phases=numbered)
        return State(source, approved, known.leaderboards, numbered, known.splits, known.rows)

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
        names = {str(phase.get("codename")): int(phase["id"]) for phase in phases}
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
                if error.status in (400, 406) and isinstance(error.body, dict):
                    raise RejectedError(_sentences(error.body)) from None
                raise HostError(self._explained(error)) from None
        return str(answer.get("Success") or answer.get("success") or answer)

    def _explained(self, error: ApiError) -> str:
        return f"{self._settings.host} says: {error.message}\n{_MEANING.get(error.status, '')}".rstrip()


_MEANING = {
    401: f"Your token is wrong, has expired (renew it on your profile page, then set {TOKEN}), or is not of a member "
    f"of host team {TEAM}.",
    403: "Another challenge of somebody else's already has this repository, or your e-mail address is not verified. "
    "Push under your own OWNER/NAME with --repository.",
    404: f"There is no such host team: {TEAM} is the number in the address of its page.",
    413: "The bundle is too large; upload large annotation files with the evalai client.",
    429: "Too many requests: 60 a minute are allowed for each user, over everything. Wait a minute.",
}


class RejectedError(Exception):
    """The server did not take the bundle; its sentences."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences


def _sentences(body: dict[str, Any]) -> list[str]:
    told = body.get("error") or body.get("detail") or body
    words = told if isinstance(told, str) else "; ".join(f"{key}: {value}" for key, value in dict(told).items())
    if body.get("error_message"):
        words += f"\n{body['error_message']}"
    return [line for line in words.split("\n") if line.strip()]


def mapped(bundle: str, sentences: list[str]) -> Findings:
    """The server's sentences with the line of the YAML that each speaks of."""
    with Bundle(bundle) as opened:
        for sentence in sentences:
            where = _place(opened, sentence)
            yield Finding(where or "EvalAI", sentence.strip(), "Mend it and push again", at=opened.lines.place(where))


_BLOCKS = (
    (r"[Cc]hallenge phase split \(?(?:leaderboard_id: )?(\d+)|phase_split: (\d+)", "challenge_phase_splits", 1),
    (r"leaderboard with ID: (\d+)|Leaderboard (\d+)", "leaderboard", 0),
    (r"[Dd]ataset split (\d+)", "dataset_splits", 0),
    (r"[Cc]hallenge [Pp]hase (\d+)", "challenge_phases", 0),
)


def _place(bundle: Bundle, sentence: str) -> str:
    """The path of the key or item that a sentence names."""
    for pattern, block, counted in _BLOCKS:
        found = re.search(pattern, sentence)
        if not found:
            continue
        number = int(next(group for group in found.groups() if group))
        items = bundle.config.get(block)
        listed = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        places = [number - 1] if counted else [k for k, item in enumerate(listed) if item.get("id") == number]
        field = re.search(r"\{'(\w+)'", sentence)
        return f"{block}[{places[0]}]" + (f".{field.group(1)}" if field else "") if places else block
    words = re.findall(r"'(\w+)'|\b([a-z]+_[a-z_]+)\b|\b(title|description|tags|image|domain)\b", sentence)
    return next((word for group in words for word in group if word in bundle.config), "")


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
