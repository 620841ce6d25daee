"""Whose submission is evaluated, and the report of its outcome: to EvalAI until it is accepted, or to a file."""

import itertools
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from segjudge.code_upload import LOCAL_VARIABLE
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.client import DEFAULT_HOST, LONGEST, ApiError, Client, Jobs, is_safe_for_token, waits
from segjudge.platforms.evalai.rows import FINISHED, for_rest
from segjudge.system.files import replace

from .service import EvaluationOutcome

log = logging.getLogger("environment")

#: Tries before the waits between them stay the same.
_TRIES = 10

#: EvalAI's variables.
_TOKEN, _SERVER, _BODY = "AUTH_TOKEN", "EVALAI_API_SERVER", "BODY"


@dataclass(frozen=True)
class Target:
    """The submission that is evaluated, on a server."""

    server: str
    challenge: int
    phase: int
    submission: int
    token: str = field(repr=False)


def read_target(environment: Mapping[str, str]) -> Target:
    """The submission that EvalAI's variables name; raises HostError."""
    missing = [name for name in (_TOKEN, _BODY) if not environment.get(name)]
    if missing:
        raise HostError(f"{' and '.join(missing)} not set: EvalAI sets them; {LOCAL_VARIABLE}=1 evaluates without it")
    try:
        body = json.loads(environment[_BODY])
        numbers = [int(body[name]) for name in ("challenge_pk", "phase_pk", "submission_pk")]
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(f"{_BODY} is not a message of EvalAI's queue ({type(error).__name__}: {error})") from None
    server = (environment.get(_SERVER) or DEFAULT_HOST).rstrip("/")
    if not is_safe_for_token(server):
        raise HostError(f"{_SERVER} is {server}: a token goes over https only, or to this machine")
    return Target(server, numbers[0], numbers[1], numbers[2], environment[_TOKEN])


def report_to_evalai(
    target: Target, outcome: Callable[[], EvaluationOutcome], sleep: Callable[[float], object]
) -> EvaluationOutcome:
    """Report until the server has accepted it, and return the outcome that was reported.

    The outcome is asked for again before each try: an agent that ends meanwhile loses its result.
    """
    client = Client(target.server, target.token)
    jobs = Jobs(client, target.challenge, "", sleep)
    refused = ""
    for wait in itertools.chain(waits(_TRIES), itertools.repeat(LONGEST)):
        report = outcome()
        if refused:
            report = EvaluationOutcome(failure=refused, timings=report.timings)
        try:
            _put(jobs, target, report)
        except ApiError as error:
            log.warning("EvalAI did not take the report: %s", error.message)
            if report.result is not None and error.status in (400, 422) and error.body is not None:
                refused = f"The result was not accepted by EvalAI ({error.message}). Tell the organisers."
                continue
            if report.result is not None and error.transient and _is_finished(client, target):
                return report  # the answer was lost, not the result
            sleep(max(wait, error.wait or 0.0))
            continue
        except (TypeError, ValueError) as error:  # what JSON does not have
            refused = f"The result cannot be sent ({error}). Tell the organisers."
            continue
        return report
    raise AssertionError  # the waits never end


def _is_finished(client: Client, target: Target) -> bool:
    """Ask, once, whether the server already has the result."""
    try:
        row = client.call("GET", routes.SUBMISSION, {"submission": target.submission})
    except ApiError:
        return False
    return isinstance(row, dict) and row.get("status") == FINISHED


def _put(jobs: Jobs, target: Target, outcome: EvaluationOutcome) -> None:
    facts = outcome.metadata()
    metadata = json.dumps(facts)
    if outcome.result is None:
        jobs.fail(target.submission, target.phase, stderr=outcome.failure, metadata=metadata)
        return
    stdout = f"{facts['steps']} steps; seconds for each: {json.dumps(facts['seconds_per_step'])}\n"
    accuracies = for_rest(outcome.result, outcome.hidden)
    jobs.finish(target.submission, target.phase, accuracies, stdout=stdout, metadata=metadata)


def write_report(path: str, outcome: EvaluationOutcome) -> str:
    """Write the outcome to a file in one step, and return its text."""
    status = "finished" if outcome.result is not None else "failed"
    document = {"status": status, "result": outcome.result, "message": outcome.failure, "metadata": outcome.metadata()}
    text = json.dumps(document, indent=2)
    replace(Path(path), text + "\n")
    return text
