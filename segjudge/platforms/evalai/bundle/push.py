"""`segjudge push`: validate and create or update a challenge through EvalAI's API."""

from __future__ import annotations

import json
import os
import re
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from segjudge.evaluation_script.files.packed import add_member
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.client import TEAM, TOKEN, ApiError, Client, EvalAISettings
from segjudge.platforms.rules.problems import BundleProblem, BundleProblems, mappings_in

from .opened_bundle import Bundle
from .phase_splits import is_seen_by_all
from .server_state import REFERENCES, SPLIT_SETTINGS, ServerState

#: Seconds to connect, and to upload 200 MB, which the server unpacks and saves.
_UPLOAD_TIMEOUT = (10.0, 900.0)
#: The maximum number of phase splits to read; more would approach the server's limit of 60 calls a minute.
_PHASE_SPLITS = 20
#: The beginning of the server's message about a missing host team.
_NO_TEAM = "ChallengeHostTeam"
_EXPLANATIONS = {
    0: "Check your network and EVALAI_HOST (default: https://eval.ai), then push again.",
    401: f"Your token is wrong, has expired (renew it on your profile page, then set {TOKEN}), "
    f"or does not belong to a member of host team {TEAM}.",
    403: "Somebody else's challenge already has this repository, or your e-mail address is not verified. "
    "Push under your own OWNER/NAME with --repository.",
    404: f"The server does not know it: {TEAM} is the number in the address of your host team's page.",
    413: "The bundle is too large; upload large annotation files with the evalai client.",
    429: "Too many requests: each user may send 60 a minute in total. Wait a minute.",
}
#: The block whose items the server counts.
_ROWS = "challenge_phase_splits"
_UNEXPLAINED = "Error in creating challenge: None"
#: The reason why a first push may fail without a fault of the bundle.
_TEAM_DRAWN = "EvalAI draws a team name for each new challenge, and fails if the name is taken."
#: Keys that the server's messages name differently from the YAML.
_KEYS = {
    "slug": "codename",
    "non_field_errors": "codename",
    "config_id": "id",
    "test_annotation": "test_annotation_file",
}
#: The name of an item in sentences, the item's block, and the keys that identify it; without keys, its position.
_NAMED_ITEMS = (
    (
        r"leaderboard_id:? (\d+), challenge_phase_id:? (\d+)(?:,| and) dataset_split_id:? (\d+)",
        _ROWS,
        tuple(REFERENCES),
    ),
    (r"[Cc]hallenge phase split (\d+)|phase_split: (\d+)", _ROWS, ()),
    (r"leaderboard with ID: (\d+)|[Ll]eaderboard (?:with )?(?:id |update )?(\d+)", "leaderboard", ("id",)),
    (r"[Dd]ataset split (?:with )?(?:id |update )?(\d+)", "dataset_splits", ("id",)),
    (r"[Cc]hallenge [Pp]hase (?:with phase id |update )?'?(\d+)", "challenge_phases", ("id",)),
    (r"for dataset split (.+?)\.? Please", "dataset_splits", ("name",)),
    (r"(?:challenge phase|for phase|in phase) '?(.+?)'?(?: with |\. |\.?$)", "challenge_phases", ("name",)),
)


@dataclass(frozen=True)
class PushedChallenge:
    """A challenge on the server after a push."""

    #: The server's answer to the push.
    message: str
    number: int
    queue: str
    #: codename → id on the server
    phases: dict[str, int] = field(default_factory=dict)
    approved: bool = False


def find_repository(name: str, root: str) -> str:
    """Return OWNER/NAME, by which the server recognises a challenge."""
    name = name or os.environ.get("GITHUB_REPOSITORY", "") or _remote_repository(root)
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        fault = f"{name!r} is not OWNER/NAME" if name else "no repository is known"
        remedy = "set GITHUB_REPOSITORY to OWNER/NAME, or give the checkout a git remote named origin"
        raise HostError(f"{fault}: EvalAI recognises a challenge by its repository; {remedy}")
    return name


def _remote_repository(root: str) -> str:
    git = ["git", "-C", root, "remote", "get-url", "origin"]
    try:
        remote = subprocess.run(git, capture_output=True, text=True, check=False)
    except OSError:
        return ""  # a machine without git
    match = re.fullmatch(r"(?:\w+://[^/]+/|[\w.-]+@[\w.-]+:)([\w.-]+/[\w.-]+?)(\.git)?/?", remote.stdout.strip())
    return match.group(1) if remote.returncode == 0 and match else ""


class ChallengePush:
    """A push of a repository's bundle: its state on the server, and the calls that change it."""

    def __init__(self, settings: EvalAISettings, repository: str) -> None:
        if not settings.team:
            raise HostError(f"{TEAM} is not set: it is the number of your host team, in the address of its page")
        self._settings, self._repository = settings, repository
        self._client = Client(settings.host, settings.token)

    def fetch_challenge(self) -> dict[str, Any] | None:
        """Return this repository's challenge; None before its first push."""
        with self._explain_api_errors():
            challenges = self._client.fetch_rows(routes.CHALLENGES_OF_HOST, {"team": self._settings.team})
        own_challenges = [
            challenge for challenge in challenges if challenge.get("github_repository") == self._repository
        ]
        return next((challenge for challenge in own_challenges if isinstance(challenge.get("id"), int)), None)

    def fetch_state(self, last_push: ServerState | None, challenge: dict[str, Any] | None = None) -> ServerState | None:
        """Return the server's state, completed from the last push."""
        challenge = challenge or self.fetch_challenge()
        if challenge is None:
            return None
        number = int(challenge["id"])
        source, approved = self.describe_challenge(number), bool(challenge.get("approved_by_admin"))
        fifo = challenge.get("use_fifo_sqs")
        with self._explain_api_errors():
            phases = self._client.fetch_rows(routes.PHASES_OF_HOST, {"challenge": number})
            numbered = [row for row in phases if type(row.get("config_id")) is int]
            codenames = {row["config_id"]: str(row.get("codename")) for row in numbered}
            slugs = [str(row["slug"]).rpartition("-")[0] for row in phases if row.get("slug")]
            mappings = self._phase_splits(number, {row["id"]: row["config_id"] for row in numbered})
        known_fifo = fifo if isinstance(fifo, bool) else None
        scoring = last_push.scoring if last_push is not None and last_push.source == source else {}
        state = ServerState(
            source,
            approved,
            phases=codenames,
            fifo=known_fifo,
            slugs=slugs,
            kept_truths=[row["config_id"] for row in numbered if row.get("annotations_uploaded_using_cli") is True],
            published=[row["config_id"] for row in numbered if is_seen_by_all(row)],
            scoring=scoring,
        )
        if mappings is not None:
            return replace(state, **mappings)
        if last_push is None or last_push.source != source:
            return state
        return replace(state, leaderboards=last_push.leaderboards, splits=last_push.splits, rows=last_push.rows)

    def _phase_splits(self, challenge: int, phases: dict[int, int]) -> dict[str, Any] | None:
        """Return leaderboards, splits and phase splits by YAML id; None if unreadable."""
        phase_splits = self._client.fetch_rows(routes.PHASE_SPLITS, {"challenge": challenge})
        if len(phase_splits) > _PHASE_SPLITS:
            return None
        try:
            rows = [self._client.call("GET", routes.PHASE_SPLIT, {"split": split["id"]}) for split in phase_splits]
            boards = self._fetch_by_number(
                routes.LEADERBOARD_SCHEMA, "leaderboard", {row["leaderboard"] for row in rows}
            )
            splits = self._fetch_by_number(routes.DATASET_SPLIT, "split", {row["dataset_split"] for row in rows})
            return {
                "leaderboards": {int(board["config_id"]): board["schema"] for board in boards.values()},
                "splits": {int(split["config_id"]): [split["name"], split["codename"]] for split in splits.values()},
                "rows": [
                    [
                        int(boards[row["leaderboard"]]["config_id"]),
                        phases[row["challenge_phase"]],
                        int(splits[row["dataset_split"]]["config_id"]),
                        *(row[key] for key in SPLIT_SETTINGS),
                    ]
                    for row in rows
                ],
            }
        except (KeyError, TypeError, ValueError):
            return None  # an EvalAI whose answer has less
        except ApiError as error:
            if error.status in (403, 404):
                return None
            raise

    def _fetch_by_number(self, route: str, key: str, numbers: set[Any]) -> dict[Any, Any]:
        return {number: self._client.call("GET", route, {key: number}) for number in sorted(numbers)}

    def describe_challenge(self, challenge: int) -> str:
        """Describe a challenge, its repository and its server."""
        return f"challenge {challenge} of {self._repository} on {self._settings.host}"

    def validate(self, bundle: str) -> str:
        """Ask the server to validate a bundle; return its answer, or raise `RejectedError`."""
        return self._upload(routes.VALIDATE, bundle)

    def create_or_update(self, bundle: str) -> PushedChallenge:
        """Create or update the challenge, and look up the numbers that the server's answer lacks."""
        message = self._upload(routes.CREATE_OR_UPDATE, bundle)
        challenge = self.fetch_challenge()
        if challenge is None:
            fault = f"no challenge of host team {self._settings.team} names {self._repository}"
            raise HostError(f"{message}\nBut {fault}.")
        number = int(challenge["id"])
        with self._explain_api_errors(f"{message}\nIts phases could not be looked up: "):
            phases = self._client.fetch_rows(routes.PHASES_OF_HOST, {"challenge": number})
        sorted_phases = sorted(phases, key=lambda phase: phase.get("config_id") or 0)
        ids = {str(phase.get("codename")): phase["id"] for phase in sorted_phases if isinstance(phase.get("id"), int)}
        approved = bool(challenge.get("approved_by_admin"))
        return PushedChallenge(message, number, str(challenge.get("queue") or ""), ids, approved)

    def _upload(self, route: str, bundle: str) -> str:
        with open(bundle, "rb") as file, self._explain_api_errors():
            try:
                answer = self._client.call(
                    "POST",
                    route,
                    {"team": self._settings.team},
                    data={"GITHUB_REPOSITORY": self._repository},
                    files={"zip_configuration": ("challenge_config.zip", file, "application/zip")},
                    timeout=_UPLOAD_TIMEOUT,
                )
            except ApiError as error:
                if error.status in (400, 406) and isinstance(error.body, dict) and _NO_TEAM not in error.message:
                    raise RejectedError(error.body) from None
                raise
        success = answer.get("Success") or answer.get("success") if isinstance(answer, dict) else None
        return str(success or answer)

    @contextmanager
    def _explain_api_errors(self, before: str = "") -> Iterator[None]:
        """Raise `HostError` with the server's message and the remedy."""
        try:
            yield
        except ApiError as error:
            explanation = _EXPLANATIONS.get(error.status, "")
            if _NO_TEAM in error.message:
                subject = "it is in the address of your host team's page"
                explanation = f"{TEAM} is not the number of a host team there: {subject}."
            fault = f"{before}{self._settings.host} says: {error.message}\n{explanation}"
            raise HostError(fault.rstrip()) from None


def write_without_sponsors(bundle: str, out: str) -> bool:
    """Write a bundle without sponsors, on which the server fails in updates; return whether it had any."""
    with Bundle(bundle) as opened:
        if not opened.config.get("sponsors"):
            return False
        text = _without_key(opened.text.decode("utf-8"), "sponsors")
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
            for name in sorted(opened.names):
                data = text.encode("utf-8") if name == opened.config_name else opened.read(name)
                add_member(target, name, data)
    return True


def _without_key(text: str, removed: str) -> str:
    """Remove a key of the YAML's top mapping; everything else stays on its line."""
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    starts = [key.start_mark for key, _ in root.value]
    ends = [*starts[1:], root.end_mark]
    for (key, _), start, end in zip(root.value, starts, ends, strict=True):
        if key.value != removed:
            continue
        if root.flow_style:
            stop = end.index - (end is root.end_mark)  # the closing brace stays
            blank = re.sub(r"[^\r\n\x85\u2028\u2029]", " ", text[start.index : stop])
            text = text[: start.index] + blank + text[stop:]
        else:
            # Commented out, since a line of spaces would become part of a preceding block text.
            lines = text.splitlines(keepends=True)
            stop = end.line + (end is root.end_mark and end.column > 0)
            lines[start.line : stop] = [f"# {line}" for line in lines[start.line : stop]]
            text = "".join(lines)
    return text


class RejectedError(Exception):
    """Raised with the server's answer when it rejects a bundle."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._sentences = _read_sentences(body)
        super().__init__("\n".join(self._sentences))

    def locate(self, bundle: str, *, is_new: bool = False) -> BundleProblems:
        """Yield the server's sentences as problems, each with the line of the YAML; `is_new` before a first push."""
        with Bundle(bundle) as opened:
            for sentence in self._sentences:
                subject = _path_in(opened.config, sentence)
                fault = " ".join(sentence.split())
                remedy = "Correct it and push again"
                if fault.startswith(_UNEXPLAINED):
                    remedy = "EvalAI gives no reason: find the last addition, and push again without it"
                    if is_new:
                        fault += f" {_TEAM_DRAWN}"
                        remedy = "Push once more without changes; if that also fails, remove parts of the YAML"
                yield BundleProblem(subject or "EvalAI", fault, remedy, location=opened.lines.location(subject))


def _read_sentences(body: dict[str, Any]) -> list[str]:
    error = body.get("error") or body.get("detail") or body
    if isinstance(error, dict):
        error = "; ".join(f"{key}: {value}" for key, value in error.items())
    text = str(error)
    reason = str(body.get("error_message") or "")
    if reason and _decode(reason) not in text:
        text += f"\n{reason}"
    # A serializer's errors have a line of their own and belong to the previous sentence.
    lines = [line for line in re.split(r"\n(?! ?\{)", text) if line.strip()]
    return lines or ["EvalAI rejected it without a reason"]


def _decode(reason: str) -> str:
    """Return the text of a reason that the server repeats as JSON."""
    try:
        text = json.loads(reason)
    except ValueError:
        return reason
    return text if isinstance(text, str) else reason


def _path_in(config: dict[str, Any], sentence: str) -> str:
    """Return the YAML path that a sentence names; "" for none."""
    for pattern, block, keys in _NAMED_ITEMS:
        match = re.search(pattern, sentence.strip())
        if not match:
            continue
        names = tuple(group for group in match.groups() if group)
        items = mappings_in(config, block)
        if keys:
            indices = [k for k, item in enumerate(items) if tuple(str(item.get(key)) for key in keys) == names]
        else:
            indices = [int(names[0]) - 1] if 0 < int(names[0]) <= len(items) else []
        if indices:
            return _path_in_item(config, sentence, f"{block}[{indices[0]}]", items[indices[0]])
    return _challenge_key(config, sentence)


def _path_in_item(config: dict[str, Any], sentence: str, path: str, item: dict[str, Any]) -> str:
    """Return the key that a serializer's error names, or the item."""
    field = re.search(r"\{'(\w+)'", sentence)
    if not field:
        return path
    word = str(config.get("title")).strip().split(" ")[0]
    if field.group(1) == "slug" and not re.fullmatch(r"[-\w]+", word, re.ASCII):
        return "title"  # EvalAI makes the slug of its first word
    key = field.group(1) if field.group(1) in item else _KEYS.get(field.group(1), field.group(1))
    return f"{path}.{key}"


def _challenge_key(config: dict[str, Any], sentence: str) -> str:
    """Return the challenge key that a sentence names."""
    for key in ("terms_and_conditions", "submission_guidelines"):
        if key.replace("_", " ") in sentence:
            return key
    groups = re.findall(r"'(\w+)'|\b([a-z]+_[a-z_]+)\b|\b(title|description|tags|image|domain)\b", sentence)
    return next((word for group in groups for word in group if word in config), "")
