"""What the worker is told: by the environment, in the names of EvalAI's documentation and a few of ours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from linejudge.evalai.client import is_safe


class SettingsError(Exception):
    """The worker cannot start so; the text says what to mend."""


@dataclass(frozen=True)
class Settings:
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
    save_dir: str = "./"
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
    #: GRACE_SECONDS to finish what is in hand after SIGTERM.
    grace_seconds: float = 25.0
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


def settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """What is set; everything that is missing or wrong at once."""
    values: dict[str, Any] = {}
    wrong = []
    for one in fields(Settings):
        name, told = one.name.upper(), environment.get(one.name.upper(), "").strip()
        if not told:
            if one.name in _REQUIRED:
                wrong.append(f"{name} is not set: {_REQUIRED[one.name]}")
            continue
        kind = _KINDS.get(str(one.type), str)
        try:
            values[one.name] = kind(told)
        except ValueError:
            wrong.append(f"{name} is {told!r}, no number")
    wrong += _odd(values)
    if wrong:
        raise SettingsError("\n".join(wrong))
    values["api_server"] = values["api_server"].rstrip("/")
    return Settings(**values)


_KINDS: dict[str, Any] = {"int": int, "float": float}
_REQUIRED = {
    "auth_token": "copy it from your profile page on EvalAI",
    "api_server": "https://eval.ai, or http://127.0.0.1:8899 for a rehearsal",
    "queue_name": "`linejudge push` prints it, and so does the Manage tab",
    "challenge_pk": "the number in the address of the challenge",
}
_POSITIVE = ("requests_per_minute", "poll_seconds", "sweep_seconds", "memory_bytes", "max_submission_bytes")


def _odd(values: dict[str, Any]) -> list[str]:
    """Values that cannot be meant."""
    found = []
    server = values.get("api_server", "https://eval.ai")
    if not is_safe(server):
        found.append(f"API_SERVER is {server}: a token goes over https only, or to this machine")
    if any("<" in str(values.get(key, "")) for key in _REQUIRED):
        found.append("a setting is still a placeholder in angle brackets")
    found += [f"{key.upper()} must be above 0" for key in _POSITIVE if values.get(key, 1) <= 0]
    if values.get("log_format", "pretty") not in ("pretty", "json"):
        found.append("LOG_FORMAT is pretty or json")
    return found
