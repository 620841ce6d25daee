"""Serve an environment until the session has an outcome, then report it.

Settings come from EvalAI's variables and the image's command line.
"""

import argparse
import itertools
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from segjudge.code_upload import LOCAL_VARIABLE, PORT
from segjudge.code_upload.environments.tasks import make_task
from segjudge.code_upload.messages import SERVICE
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.client import DEFAULT_HOST, ApiError, Client, Jobs, is_safe_for_token
from segjudge.platforms.evalai.rows import FINISHED, for_rest
from segjudge.system.files import replace
from segjudge.system.network import LONGEST, pauses

from .service import EvaluationOutcome, Service, TimeLimits, count_connections

log = logging.getLogger("environment")

#: The maximum number of concurrent calls, and of further calls that may wait.
_THREADS, _WAITING = 4, 4
#: Seconds between checks of the clocks, for sending a refusal, and for the last reply.
_LOOK, _LAST_WORDS, _FAREWELL = 0.25, 0.5, 5.0
#: EvalAI's variable with the agent's time limit in seconds, and the variable with the address to listen on. Compose
#: sets the latter, since its containers do not share a loopback.
_SECONDS, _BIND = "SUBMISSION_TIME_LIMIT", "SEGJUDGE_BIND"
#: The default time limit. Kubernetes kills the pod this long after its start, so the report must be sent earlier.
_DEFAULT_SECONDS = 86_400.0
#: The maximum size of a message: a mask has some kilobytes, an interactive answer some megabytes.
_MESSAGE_BYTES = 16 << 20


#: The number of attempts after which the pauses between them no longer grow.
_TRIES = 10
#: EvalAI's variables.
_TOKEN, _SERVER, _BODY = "AUTH_TOKEN", "EVALAI_API_SERVER", "BODY"


@dataclass(frozen=True)
class _Target:
    """The evaluated submission and its server."""

    server: str
    challenge: int
    phase: int
    submission: int
    token: str = field(repr=False)


def _read_target(environment: Mapping[str, str]) -> _Target:
    """Return the submission in EvalAI's variables; raises HostError."""
    missing = [name for name in (_TOKEN, _BODY) if not environment.get(name)]
    if missing:
        raise HostError(
            f"{' and '.join(missing)} not set. EvalAI sets these variables; "
            f"to evaluate without EvalAI, set {LOCAL_VARIABLE}=1"
        )
    try:
        body = json.loads(environment[_BODY])
        numbers = [int(body[name]) for name in ("challenge_pk", "phase_pk", "submission_pk")]
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(f"{_BODY} is not a message of EvalAI's queue ({type(error).__name__}: {error})") from None
    server = (environment.get(_SERVER) or DEFAULT_HOST).rstrip("/")
    if not is_safe_for_token(server):
        raise HostError(f"{_SERVER} is {server}: tokens are sent only over https or to this machine")
    return _Target(server, numbers[0], numbers[1], numbers[2], environment[_TOKEN])


@dataclass(frozen=True)
class _EnvironmentSettings:
    """The settings of an environment's process."""

    environment: str
    options: dict[str, Any]
    episodes: int
    seed: int
    #: None if the result is only printed and saved.
    target: _Target | None
    result: str
    bind: str
    port: int
    message: int
    limits: TimeLimits


def read_settings(arguments: list[str], environment: Mapping[str, str]) -> _EnvironmentSettings:
    """Return the settings from command line and EvalAI's variables; raises HostError if any is missing."""
    args = _parser().parse_args(arguments)
    local = bool(environment.get(LOCAL_VARIABLE))
    limit = _seconds(environment)
    return _EnvironmentSettings(
        environment=args.env,
        options=_options(args.option),
        episodes=args.episodes,
        seed=args.seed,
        target=None if local else _read_target(environment),
        result=args.result,
        bind=environment.get(_BIND) or "127.0.0.1",
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
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the environment; may be repeated",
    )
    parser.add_argument("--episodes", type=int, default=1, help="episodes to play, if the environment has only rewards")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first episode")
    parser.add_argument(
        "--port", type=int, default=PORT, help=f"port to serve at, default {PORT}; 0 chooses a free one"
    )
    parser.add_argument("--result", default="result.json", help=f"file for the result, with {LOCAL_VARIABLE}")
    parser.add_argument(
        "--max-message", type=int, default=_MESSAGE_BYTES >> 20, metavar="MB", help="largest message of a call"
    )
    parser.add_argument("--step-seconds", type=float, default=TimeLimits.step, help="time for one action")
    parser.add_argument("--begin-seconds", type=float, default=TimeLimits.begin, help="time until the first reset")
    parser.add_argument(
        "--idle-seconds", type=float, default=TimeLimits.idle, help="time without a call until a reset may take over"
    )
    parser.add_argument(
        "--gone-seconds",
        type=float,
        default=TimeLimits.gone,
        help="time without a connection until the agent counts as ended",
    )
    return parser


def _options(pairs: list[str]) -> dict[str, Any]:
    """Return the options, with values read as JSON if possible, else as text."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise HostError(f"--option {pair}: is not NAME=VALUE")
        try:
            options[name] = json.loads(text)
        except ValueError:
            options[name] = text
    return options


def _seconds(environment: Mapping[str, str]) -> float:
    text = environment.get(_SECONDS) or str(_DEFAULT_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        raise HostError(f"{_SECONDS} is {text!r}, which is not a number of seconds") from None
    if not 0 < seconds < 1 << 31:
        raise HostError(f"{_SECONDS} is {text}, which is not between 0 and 2^31 seconds")
    return seconds


def main(arguments: list[str]) -> int:
    """Serve and report; return 0 for a reported result, 1 for a failure, 3 if serving is impossible."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    try:
        settings = read_settings(arguments, os.environ)
        task = make_task(settings.environment, settings.options, settings.episodes, settings.seed)
        service = Service(task, settings.limits)
        server, port = _start_server(service, settings)
    except Exception as error:  # noqa: BLE001 - whatever it is, the submission must not stay `running`
        is_clear = isinstance(error, (HostError, SubmissionError, ValueError, OSError))
        log.error("%s", error) if is_clear else log.exception("the environment cannot be created")  # noqa: TRY400
        _cannot_serve(os.environ, _reason_of(error) if is_clear else type(error).__name__)
        return 3
    signal.signal(signal.SIGTERM, lambda *_: service.fail("The environment was stopped before the agent had finished."))
    signal.signal(signal.SIGUSR1, lambda *_: service.agent_ended())
    address = settings.bind if settings.bind.startswith("unix:") else f"{settings.bind}:{port}"
    log.info("serving %s at %s", settings.environment, address)
    if settings.port == 0:
        sys.stdout.write(f"{settings.bind if address == settings.bind else port}\n")
        sys.stdout.flush()
    while not service.ended.wait(_LOOK):
        # A socket in a folder is the arena's, which notices by itself when the agent has stopped.
        service.watch(None if address == settings.bind else count_connections(port))
    if service.outcome.result is None:
        # Wait a moment for pending answers, then release everything that an agent holds.
        server.stop(_LAST_WORDS).wait(_FAREWELL)
    outcome = _report(service, settings)
    service.settle(outcome)
    server.stop(_FAREWELL).wait(_FAREWELL)
    task.close()
    log.info("%s", "finished" if outcome.result is not None else f"failed: {outcome.failure}")
    return 0 if outcome.result is not None else 1


def _reason_of(error: Exception) -> str:
    """Return a reason for participants, without paths of the host's machine."""
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)


def _report(service: Service, settings: _EnvironmentSettings) -> EvaluationOutcome:
    """Report the outcome until it is accepted, before the agent may end."""
    if settings.target is None:
        outcome = service.current()
        sys.stdout.write(_write_report(settings.result, outcome) + "\n")
        sys.stdout.flush()
        return outcome
    return _report_to_evalai(settings.target, service.current, time.sleep)


def _cannot_serve(environment: Mapping[str, str], reason: str) -> None:
    """Report an environment's failure to start, if EvalAI's variables name its submission."""
    try:
        target = _read_target(environment)
    except HostError:
        return
    failure = f"The environment cannot start; your agent is not the cause. Tell the organisers: {reason}"
    _report_to_evalai(target, lambda: EvaluationOutcome(failure=failure), time.sleep)


def _start_server(service: Service, settings: _EnvironmentSettings) -> tuple[grpc.Server, int]:
    """Start the server and return it with its port; raises HostError if the port is taken."""
    options = [
        ("grpc.max_receive_message_length", settings.message),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", 2),
        ("grpc.max_metadata_size", 16 << 10),
        ("grpc.so_reuseport", 0),
    ]
    pool = futures.ThreadPoolExecutor(max_workers=_THREADS)
    server = grpc.server(pool, options=options, maximum_concurrent_rpcs=_THREADS + _WAITING)
    calls: dict[str, Any] = {
        name: grpc.unary_unary_rpc_method_handler(
            getattr(service, name),
            # Take the time of arrival here, before a thread is free for the call.
            request_deserializer=lambda data: (time.monotonic(), data),
        )
        for name in ("get_action_space", "reset", "act_on_environment")
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, calls),))
    healthy = health.HealthServicer(experimental_thread_pool=futures.ThreadPoolExecutor(max_workers=1))
    for name in ("", SERVICE):
        healthy.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    try:
        address = settings.bind if settings.bind.startswith("unix:") else f"{settings.bind}:{settings.port}"
        port = server.add_insecure_port(address)
    except RuntimeError:
        raise HostError(
            f"port {settings.port} of {settings.bind} is in use or not available; choose another with --port"
        ) from None
    server.start()
    threading.current_thread().name = "environment"
    return server, port


# ── the report: to EvalAI until it is accepted, or to a file ─────────────────


def _report_to_evalai(
    target: _Target, outcome: Callable[[], EvaluationOutcome], sleep: Callable[[float], object]
) -> EvaluationOutcome:
    """Report until the server accepts, and return the reported outcome.

    The outcome is read again before each try: an agent that ends meanwhile loses its result.
    """
    client = Client(target.server, target.token)
    jobs = Jobs(client, target.challenge, "", sleep)
    refused = ""
    for wait in itertools.chain(pauses(_TRIES), itertools.repeat(LONGEST)):
        report = outcome()
        if refused:
            report = EvaluationOutcome(failure=refused, timings=report.timings)
        try:
            _put(jobs, target, report)
        except ApiError as error:
            log.warning("EvalAI rejected the report: %s", error.message)
            if report.result is not None and error.status in (400, 422) and error.body is not None:
                refused = f"EvalAI rejected the result ({error.message}). Tell the organisers."
                continue
            if report.result is not None and error.is_transient and _is_finished(client, target):
                return report  # the answer was lost, not the result
            sleep(max(wait, error.wait or 0.0))
            continue
        except (TypeError, ValueError) as error:  # JSON lacks them
            refused = f"The result cannot be sent ({error}). Tell the organisers."
            continue
        return report
    raise AssertionError  # the waits never end


def _is_finished(client: Client, target: _Target) -> bool:
    """Return whether the server already has the result, asking once."""
    try:
        row = client.call("GET", routes.SUBMISSION, {"submission": target.submission})
    except ApiError:
        return False
    return isinstance(row, dict) and row.get("status") == FINISHED


def _put(jobs: Jobs, target: _Target, outcome: EvaluationOutcome) -> None:
    facts = outcome.metadata()
    metadata = json.dumps(facts)
    if outcome.result is None:
        jobs.fail(target.submission, target.phase, stderr=outcome.failure, metadata=metadata)
        return
    stdout = f"{facts['steps']} steps; seconds for each: {json.dumps(facts['seconds_per_step'])}\n"
    accuracies = for_rest(outcome.result, outcome.hidden)
    jobs.finish(target.submission, target.phase, accuracies, stdout=stdout, metadata=metadata)


def _write_report(path: str, outcome: EvaluationOutcome) -> str:
    """Write the outcome to a file atomically, and return its text."""
    status = "finished" if outcome.result is not None else "failed"
    document = {"status": status, "result": outcome.result, "message": outcome.failure, "metadata": outcome.metadata()}
    text = json.dumps(document, indent=2)
    replace(Path(path), text + "\n")
    return text


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
