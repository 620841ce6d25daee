"""Reports of an outcome: to EvalAI until it is accepted, or to a file."""

import itertools
import json
import logging
from collections.abc import Callable
from pathlib import Path

from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.client import LONGEST, ApiError, Client, Jobs, waits
from segjudge.platforms.evalai.rows import FINISHED, for_rest
from segjudge.system.files import replace

from .service import EvaluationOutcome
from .settings import Target

log = logging.getLogger("environment")

#: Tries before the waits between them stay the same.
TRIES = 10


def to_evalai(
    target: Target, outcome: Callable[[], EvaluationOutcome], sleep: Callable[[float], object]
) -> EvaluationOutcome:
    """Report until the server has accepted it, and return the outcome that was reported.

    The outcome is asked for again before each try: an agent that ends meanwhile loses its result.
    """
    client = Client(target.server, target.token)
    jobs = Jobs(client, target.challenge, "", sleep)
    refused = ""
    for wait in itertools.chain(waits(TRIES), itertools.repeat(LONGEST)):
        found = outcome()
        if refused:
            found = EvaluationOutcome(failure=refused, timings=found.timings)
        try:
            _put(jobs, target, found)
        except ApiError as error:
            log.warning("EvalAI did not take the report: %s", error.message)
            if found.result is not None and error.status in (400, 422) and error.body is not None:
                refused = f"The result was not accepted by EvalAI ({error.message}). Tell the organisers."
                continue
            if found.result is not None and error.transient and _is_finished(client, target):
                return found  # the answer was lost, not the result
            sleep(max(wait, error.wait or 0.0))
            continue
        except (TypeError, ValueError) as error:  # what JSON does not have
            refused = f"The result cannot be sent ({error}). Tell the organisers."
            continue
        return found
    raise AssertionError  # the waits never end


def _is_finished(client: Client, target: Target) -> bool:
    """Return whether the server already has the result; asked once."""
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


def to_file(path: str, outcome: EvaluationOutcome) -> str:
    """Write the outcome to a file in one step, and return its text."""
    status = "finished" if outcome.result is not None else "failed"
    document = {"status": status, "result": outcome.result, "message": outcome.failure, "metadata": outcome.metadata()}
    text = json.dumps(document, indent=2)
    replace(Path(path), text + "\n")
    return text
