"""The settings of an environment's container, from EvalAI's variables and the image's command line."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from segjudge.code_upload.addresses import LOCAL, PORT
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.client import is_safe_for_token
from segjudge.platforms.evalai.settings import DEFAULT_HOST

from .service import TimeLimits

TOKEN, SERVER, BODY, SECONDS = "AUTH_TOKEN", "EVALAI_API_SERVER", "BODY", "SUBMISSION_TIME_LIMIT"
#: Where to listen; compose sets it, since its containers do not share a loopback.
BIND = "SEGJUDGE_BIND"
#: Kubernetes kills the pod so long after the limit; the report must be there before.
DEFAULT_SECONDS = 86_400.0
#: One message; a mask has some kilobytes, an interactive answer some megabytes.
MESSAGE_BYTES = 16 << 20


@dataclass(frozen=True)
class Target:
    """The submission that is evaluated, on a server."""

    server: str
    challenge: int
    phase: int
    submission: int
    token: str = field(repr=False)


@dataclass(frozen=True)
class EnvironmentSettings:
    """The settings of an environment's process."""

    environment: str
    options: dict[str, Any]
    episodes: int
    seed: int
    #: None: the result is printed and saved.
    target: Target | None
    result: str
    bind: str
    port: int
    message: int
    limits: TimeLimits


def settings(words: list[str], environment: Mapping[str, str]) -> EnvironmentSettings:
    """Return the settings of a command line and of EvalAI's variables; raises HostError with what is missing."""
    args = _parser().parse_args(words)
    local = bool(environment.get(LOCAL))
    limit = _seconds(environment)
    return EnvironmentSettings(
        environment=args.env,
        options=_options(args.option),
        episodes=args.episodes,
        seed=args.seed,
        target=None if local else target_of(environment),
        result=args.result,
        bind=environment.get(BIND) or "127.0.0.1",
        port=args.port,
        message=args.max_message << 20,
        limits=TimeLimits(
            episode=limit,
            step=min(args.step_seconds, limit),
            begin=min(args.begin_seconds, limit),
            idle=args.idle_seconds,
            gone=args.gone_seconds,
        ),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="environment", description="Serve an environment to one agent over gRPC.")
    parser.add_argument("--env", required=True, help="a registered Gymnasium environment")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="of the environment")
    parser.add_argument("--episodes", type=int, default=1, help="of an environment that only knows rewards")
    parser.add_argument("--seed", type=int, default=0, help="of the first episode")
    parser.add_argument("--port", type=int, default=PORT, help=f"default {PORT}; 0 takes any")
    parser.add_argument("--result", default="result.json", help=f"file for the result, with {LOCAL}")
    parser.add_argument("--max-message", type=int, default=MESSAGE_BYTES >> 20, metavar="MB", help="of one call")
    parser.add_argument("--step-seconds", type=float, default=TimeLimits.step, help="for one action")
    parser.add_argument("--begin-seconds", type=float, default=TimeLimits.begin, help="until the first reset")
    parser.add_argument("--idle-seconds", type=float, default=TimeLimits.idle, help="until a reset may take over")
    parser.add_argument("--gone-seconds", type=float, default=TimeLimits.gone, help="without a connection")
    return parser


def _options(pairs: list[str]) -> dict[str, Any]:
    """Return options, their values read as JSON where they are, otherwise as text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise HostError(f"--option {pair}: is not NAME=VALUE")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def _seconds(environment: Mapping[str, str]) -> float:
    text = environment.get(SECONDS) or str(DEFAULT_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        raise HostError(f"{SECONDS} is {text!r}, which is not a number of seconds") from None
    if not 0 < seconds < 1 << 31:
        raise HostError(f"{SECONDS} is {text}, which is not a time")
    return seconds


def target_of(environment: Mapping[str, str]) -> Target:
    """Return the submission that EvalAI's variables name; raises HostError."""
    missing = [name for name in (TOKEN, BODY) if not environment.get(name)]
    if missing:
        raise HostError(f"{' and '.join(missing)} not set: EvalAI sets them; {LOCAL}=1 evaluates without it")
    try:
        body = json.loads(environment[BODY])
        numbers = [int(body[name]) for name in ("challenge_pk", "phase_pk", "submission_pk")]
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(f"{BODY} is not a message of EvalAI's queue ({type(error).__name__}: {error})") from None
    server = (environment.get(SERVER) or DEFAULT_HOST).rstrip("/")
    if not is_safe_for_token(server):
        raise HostError(f"{SERVER} is {server}: a token goes over https only, or to this machine")
    return Target(server, numbers[0], numbers[1], numbers[2], environment[TOKEN])
