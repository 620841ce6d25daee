"""The settings of a worker: by the environment, in the names of EvalAI's documentation and a few of ours."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from segjudge.evalai.client import is_plain_token, is_safe_for_token

from .journal_file import NAME, open_jobs_in


class SettingsError(Exception):
    """The worker cannot start so; the text says what to fix."""


@dataclass(frozen=True)
class WorkerSettings:
    """Names in capitals are the environment's."""

    #: AUTH_TOKEN: of a host of the challenge, from the profile page.
    auth_token: str = field(repr=False)
    #: API_SERVER
    api_server: str
    #: QUEUE_NAME
    queue_name: str
    #: CHALLENGE_PK
    challenge_pk: int
    #: SAVE_DIR: journal, downloads, locks.
    save_dir: str = ".segjudge/worker"
    #: ANNOTATIONS: a folder, or s3://bucket/prefix.
    annotations: str = "annotations/"
    #: REQUESTS_PER_MINUTE of this machine; EvalAI allows 60 to each user, over everything.
    requests_per_minute: int = 50
    #: POLL_SECONDS between two looks into an empty queue, for the whole machine.
    poll_seconds: float = 6.0
    #: SWEEP_SECONDS between two looks for lost submissions.
    sweep_seconds: float = 300.0
    #: MEMORY_BYTES that one evaluation may use.
    memory_bytes: int = 4 << 30
    #: MAX_SUBMISSION_BYTES of a download.
    max_submission_bytes: int = 8 << 30
    #: GRACE_SECONDS to finish a scoring or a report after SIGTERM.
    grace_seconds: float = 3.0
    #: HEALTH_PORT on loopback; 0 for none.
    health_port: int = 0
    #: LOG_FORMAT: pretty or json.
    log_format: str = "pretty"
    #: SQS_QUEUE_URL of a queue of your own, instead of the API's.
    sqs_queue_url: str = ""
    #: ARTIFACTS: s3://bucket/prefix for what each submission left.
    artifacts: str = ""
    #: WEBHOOK that hears of incidents.
    webhook: str = field(default="", repr=False)


def settings(environment: Mapping[str, str] = os.environ) -> WorkerSettings:
    """What is set; everything that is missing or wrong at once."""
    values: dict[str, Any] = {}
    wrong = []
    for one in fields(WorkerSettings):
        name, told = one.name.upper(), environment.get(one.name.upper(), "").strip()
        if not told:
            if one.name in _REQUIRED:
                wrong.append(f"{name} is not set: {_REQUIRED[one.name]}")
            continue
        kind = _KINDS.get(str(one.type), str)
        try:
            values[one.name] = kind(told)
            if kind is not str and not math.isfinite(values[one.name]):
                raise ValueError
        except (ValueError, OverflowError):
            wrong.append(f"{name} is {told[:40]!r}, which is not a number")
    wrong += _odd(values)
    if wrong:
        raise SettingsError("\n".join(wrong))
    values["api_server"] = values["api_server"].rstrip("/")
    return WorkerSettings(**values)


def forgotten(told: WorkerSettings, folder: str = ".") -> None:
    """Raise where an earlier version, whose state lay in the working folder, left results that wait there."""
    place = os.path.abspath(told.save_dir)
    if told.save_dir != WorkerSettings.save_dir or os.path.exists(os.path.join(place, NAME)):
        return
    count = open_jobs_in(folder)
    if count:
        raise SettingsError(
            f"{os.path.join(os.path.abspath(folder), NAME)} is a journal of an earlier version and holds {count} "
            f"submissions that are not at their end. Move it to {place}, or set SAVE_DIR to its folder"
        )


_KINDS: dict[str, Any] = {"int": int, "float": float}
_REQUIRED = {
    "auth_token": "copy it from your profile page on EvalAI",
    "api_server": "https://eval.ai, or http://127.0.0.1:8899 for a rehearsal",
    "queue_name": "`segjudge push` prints it, and so does the Manage tab",
    "challenge_pk": "the number in the address of the challenge",
}
_POSITIVE = ("requests_per_minute", "poll_seconds", "sweep_seconds", "memory_bytes", "max_submission_bytes")


def _odd(values: dict[str, Any]) -> list[str]:
    """Values that cannot be meant."""
    found = []
    server = values.get("api_server", "https://eval.ai")
    if not is_safe_for_token(server):
        found.append(f"API_SERVER is {server}: a token goes over https only, or to this machine")
    if any("<" in str(values.get(key, "")) for key in _REQUIRED):
        found.append("a setting is still a placeholder in angle brackets")
    found += [f"{key.upper()} must be above 0" for key in _POSITIVE if values.get(key, 1) <= 0]
    found += [f"{key.upper()} cannot be below 0" for key in ("grace_seconds", "health_port") if values.get(key, 0) < 0]
    if values.get("health_port", 0) > 65535:
        found.append("HEALTH_PORT is a port, up to 65535")
    if not is_plain_token(values.get("auth_token", "")):
        found.append("AUTH_TOKEN is not a token: it holds spaces or other characters; copy it again")
    if values.get("log_format", "pretty") not in ("pretty", "json"):
        found.append("LOG_FORMAT is pretty or json")
    return found
