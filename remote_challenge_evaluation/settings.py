"""The settings of a worker, and the description of a challenge that it can score.

Settings come from the environment, under the names of EvalAI's documentation and some of Segjudge's own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypedDict, cast

from segjudge.platforms.evalai.bundle.bundle_source import CONFIG_NAMES
from segjudge.system.python310 import NotRequired, Self


class ScorerChoice(TypedDict):
    """The settings that select whose `evaluate()` scores."""

    #: The bundle's folder; empty for the installed phases.
    bundle: str
    #: The file with a host's own `evaluate()`, and the interpreter for it.
    evaluate: str
    scorer_python: str
    #: The folder of annotations.
    annotations: str
    #: The time limit of a host's own `evaluate()`, in seconds.
    scoring_seconds: float


class HostScript(TypedDict):
    """A host's own `evaluate()`: its file or package, its repository or built bundle, and its interpreter."""

    python: str
    file: str
    root: str


class ScoredPhase(TypedDict):
    """A phase that this machine can score."""

    #: The file's name in the folder of annotations; empty if a host's `evaluate()` finds its own.
    annotation: str
    #: Split → labels of its leaderboard.
    labels: dict[str, list[str]]
    #: The time limit of a submission, in seconds.
    seconds: float
    #: For a host's own `evaluate()`: its location, the splits that only hosts see, and whether it is given the file.
    script: NotRequired[HostScript]
    hidden: NotRequired[list[str]]
    needs_annotation: NotRequired[bool]


class SettingsError(Exception):
    """Raised if the worker cannot start with its settings; the text says what to fix."""


@dataclass(frozen=True)
class WorkerSettings:
    """A worker's settings; names in capitals are the environment's."""

    #: AUTH_TOKEN: the token of a host of the challenge, from the profile page.
    auth_token: str = field(repr=False)
    #: API_SERVER: the address of EvalAI's API.
    api_server: str
    #: QUEUE_NAME: the challenge's queue.
    queue_name: str
    #: CHALLENGE_PK: the challenge's number.
    challenge_pk: int
    #: SAVE_DIR: the folder for journal, downloads and locks.
    save_dir: str = ".segjudge/worker"
    #: ANNOTATIONS: a folder or s3://bucket/prefix; by default in the bundle, else in the current folder.
    annotations: str = "annotations/"
    #: REQUESTS_PER_MINUTE: the limit of this machine. EvalAI allows each user 60 in total.
    requests_per_minute: int = 50
    #: POLL_SECONDS: seconds between polls of an empty queue, for the whole machine.
    poll_seconds: float = 6.0
    #: SWEEP_SECONDS: seconds between searches for lost submissions.
    sweep_seconds: float = 300.0
    #: MEMORY_BYTES: the maximum memory of one evaluation.
    memory_bytes: int = 4 << 30
    #: MAX_SUBMISSION_BYTES: the maximum size of a download.
    max_submission_bytes: int = 8 << 30
    #: BUNDLE: the bundle's folder; by default the current folder's, else the installed phases.
    bundle: str = ""
    #: EVALUATE: a file with the host's own `evaluate()`, and SCORER_PYTHON: its interpreter.
    evaluate: str = ""
    scorer_python: str = ""
    #: SCORING_SECONDS: the time limit of a host's own `evaluate()`.
    scoring_seconds: float = 3600.0
    #: GRACE_SECONDS: the time to finish scoring or reporting after SIGTERM.
    grace_seconds: float = 3.0
    #: HEALTH_PORT: a port on loopback; 0 for none.
    health_port: int = 0
    #: LOG_FORMAT: `pretty` or `json`.
    log_format: str = "pretty"
    #: SQS_QUEUE_URL: your own queue, used instead of the API's.
    sqs_queue_url: str = ""
    #: ARTIFACTS: s3://bucket/prefix for the output of each submission.
    artifacts: str = ""
    #: WEBHOOK: the address that receives incidents.
    webhook: str = field(default="", repr=False)

    def with_absolute_paths(self) -> Self:
        """Return the settings with absolute paths, since scorers run in other folders."""
        is_bundle = any(os.path.isfile(name) for name in CONFIG_NAMES) and not self.evaluate
        bundle = os.path.abspath(self.bundle) if self.bundle or is_bundle else ""
        annotations, python = self.annotations, self.scorer_python
        beside = os.path.join(bundle if os.path.isdir(bundle) else os.path.dirname(bundle), annotations)
        if annotations == WorkerSettings.annotations and os.path.isdir(beside):
            annotations = beside
        is_bucket = annotations.startswith("s3://")
        return replace(
            self,
            save_dir=os.path.abspath(self.save_dir),
            bundle=bundle,
            evaluate=os.path.abspath(self.evaluate) if self.evaluate else "",
            scorer_python=os.path.abspath(python) if os.sep in python else python,
            annotations=annotations if is_bucket else os.path.abspath(annotations),
        )

    @property
    def scorer_choice(self) -> ScorerChoice:
        """Return the settings that select whose `evaluate()` scores."""
        return cast("ScorerChoice", {name: getattr(self, name) for name in ScorerChoice.__annotations__})

    def annotation_path(self, phase: ScoredPhase) -> str:
        """Return the path of an annotation file; "" if the scorer finds its own."""
        return os.path.join(self.annotations, phase["annotation"]) if phase["annotation"] else ""

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> WorkerSettings:
        """Read the settings; raises SettingsError with every missing or wrong one."""
        values: dict[str, str | int | float] = {}
        problems = []
        for setting in fields(WorkerSettings):
            name = setting.name.upper()
            text = environment.get(name, "").strip()
            if not text:
                if setting.name in _REQUIRED:
                    problems.append(f"{name} is not set: {_REQUIRED[setting.name]}")
                continue
            try:
                values[setting.name] = _value(str(setting.type), text)
            except (ValueError, OverflowError):
                problems.append(f"{name} is {text[:40]!r}, which is not a number")
        problems += _value_problems(values)
        if problems:
            raise SettingsError("\n".join(problems))
        values["api_server"] = str(values["api_server"]).rstrip("/")
        return cls(**values)  # type: ignore[arg-type]


def _value(kind: str, text: str) -> str | int | float:
    if kind == "str":
        return text
    number = int(text) if kind == "int" else float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


_REQUIRED = {
    "auth_token": "copy it from your profile page on EvalAI",
    "api_server": "set it to https://eval.ai, or to http://127.0.0.1:8899 for a rehearsal",
    "queue_name": "copy it from the output of `segjudge push`, or from the Manage tab",
    "challenge_pk": "copy the number from the challenge's URL",
}
_ABOVE_ZERO = (
    *("scoring_seconds", "requests_per_minute", "poll_seconds", "sweep_seconds"),
    *("memory_bytes", "max_submission_bytes"),
)
_NOT_BELOW_ZERO = ("grace_seconds", "health_port")


def _value_problems(values: dict[str, Any]) -> list[str]:
    # `requests` takes half of the start of a process that only describes a challenge.
    from segjudge.platforms.evalai.client import is_plain_token, is_safe_for_token

    problems = []
    server = values.get("api_server", "https://eval.ai")
    if not is_safe_for_token(server):
        problems.append(f"API_SERVER is {server}: tokens are sent only over https or to this machine")
    if any("<" in str(values.get(key, "")) for key in _REQUIRED):
        problems.append("a setting is still a placeholder in angle brackets")
    problems += [f"{key.upper()} must be above 0" for key in _ABOVE_ZERO if values.get(key, 1) <= 0]
    problems += [f"{key.upper()} cannot be below 0" for key in _NOT_BELOW_ZERO if values.get(key, 0) < 0]
    if values.get("health_port", 0) > 65535:
        problems.append("HEALTH_PORT must be a port, at most 65535")
    if not is_plain_token(values.get("auth_token", "")):
        problems.append("AUTH_TOKEN is not a token: it contains spaces or other invalid characters; copy it again")
    if values.get("log_format", "pretty") not in ("pretty", "json"):
        problems.append("LOG_FORMAT must be pretty or json")
    return problems


class StartError(Exception):
    """Raised if the challenge cannot be scored here; the text says what to fix."""
