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

from .finding import Finding, Findings, items
from .opened import Bundle
from .rules.mappings import POINTERS
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
    found = re.fullmatch(r"(?:\w+://[^/]+/|[\w.-]+@[\w.-]+:)([\w.-]+/[\w.-]+?)(\.git)?/?", done.stdout.strip())
    return found.group(1) if done.returncode == 0 and found else ""


#: The block whose rows the server counts.
_ROWS = "challenge_phase_splits"


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
        ours = [one for one in challenges if one.get("github_repository") == self._name]
        return next((one for one in ours if isinstance(one.get("id"), int)), None)

    def state(self, known: State | None) -> State | None:
        """What the server holds, as far as its API tells, completed by what the last push from here left."""
        challenge = self.held()
        if challenge is None:
            return None
        try:
            phases = self._client.all_of(routes.PHASES_OF_HOST, {"challenge": challenge["id"]})
        except ApiError as error:
            raise HostError(self._explained(error)) from None
        numbered = {
            row["config_id"]: str(row.get("codename")) for row in phases if isinstance(row.get("config_id"), int)
        }
        source, approved = self.source(challenge["id"]), bool(challenge.get("approved_by_admin"))
        if known is None or known.source != source:
            return State(source, approved, phases=numbered)
        return State(source, approved, known.leaderboards, numbered, known.splits, known.rows)

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
        names = {str(phase.get("codename")): phase["id"] for phase in phases if isinstance(phase.get("id"), int)}
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
        return (
            str(answer.get("Success") or answer.get("success") or answer) if isinstance(answer, dict) else str(answer)
        )

    def _explained(self, error: ApiError) -> str:
        return f"{self._settings.host} says: {error.message}\n{_MEANING.get(error.status, '')}".rstrip()


_MEANING = {
    401: f"Your token is wrong, has expired (renew it on your profile page, then set {TOKEN}), or is not of a member "
    f"of host team {TEAM}.",
    403: "Another challenge of somebody else's already has this repository, or your e-mail address is not verified. "
    "Push under your own OWNER/NAME with --repository.",
    404: f"There is no such thing there: {TEAM} is the number in the address of your host team's page.",
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
    if isinstance(told, dict):
        told = "; ".join(f"{key}: {value}" for key, value in told.items())
    words = str(told)
    if body.get("error_message"):
        words += f"\n{body['error_message']}"
    # A serializer's errors stand on a line of their own, and belong to the sentence before.
    lines = [line for line in re.split(r"\n(?! ?\{)", words) if line.strip()]
    return lines or ["EvalAI refused it and gave no reason"]


def mapped(bundle: str, sentences: list[str]) -> Findings:
    """The server's sentences with the line of the YAML that each speaks of."""
    with Bundle(bundle) as opened:
        for sentence in sentences:
            where = _place(opened.config, sentence)
            told = " ".join(sentence.split())
            yield Finding(where or "EvalAI", told, "Mend it and push again", at=opened.lines.place(where))


#: How a sentence names an item, the item's block, and by which key it is found; rows are counted.
_NAMED = (
    (r"leaderboard_id:? (\d+), challenge_phase_id:? (\d+)(?:,| and) dataset_split_id:? (\d+)", _ROWS, tuple(POINTERS)),
    (r"[Cc]hallenge phase split (\d+)|phase_split: (\d+)", _ROWS, ()),
    (r"leaderboard with ID: (\d+)|Leaderboard (?:id )?(\d+)", "leaderboard", ("id",)),
    (r"[Dd]ataset split (?:id )?(\d+)", "dataset_splits", ("id",)),
    (r"[Cc]hallenge [Pp]hase '?(\d+)", "challenge_phases", ("id",)),
    (r"for dataset split (.+?)\.? Please", "dataset_splits", ("name",)),
    (r"(?:challenge phase|for phase|in phase) '?(.+?)'?(?: with |\. |\.?$)", "challenge_phases", ("name",)),
)


def _place(config: dict[str, Any], sentence: str) -> str:
    """The path of the key or item that a sentence names."""
    for pattern, block, keys in _NAMED:
        found = re.search(pattern, sentence.strip())
        if not found:
            continue
        told = tuple(group for group in found.groups() if group)
        listed = items(config, block)
        places = [k for k, item in enumerate(listed) if keys and tuple(str(item.get(key)) for key in keys) == told]
        if not keys and 0 < int(told[0]) <= len(listed):
            places = [int(told[0]) - 1]
        if places:
            field = re.search(r"\{'(\w+)'", sentence)
            return f"{block}[{places[0]}]" + (f".{field.group(1)}" if field else "")
    return _key(config, sentence)


def _key(config: dict[str, Any], sentence: str) -> str:
    """The key of the challenge that a sentence names, in its own words or in a host's."""
    for said, key in (
        ("terms and conditions", "terms_and_conditions"),
        ("submission guidelines", "submission_guidelines"),
    ):
        if said in sentence:
            return key
    words = re.findall(r"'(\w+)'|\b([a-z]+_[a-z_]+)\b|\b(title|description|tags|image|domain)\b", sentence)
    return next((word for group in words for word in group if word in config), "")


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
