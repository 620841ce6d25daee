"""Scorer processes: without the worker's token, within limits, ended with all descendants."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.hosted_worker.process import (
    DiedError,
    HungError,
    ProcessTerms,
    ScoringOrder,
    ScoringProcess,
    UnloadableError,
    UnwantedError,
)
from segjudge.platforms.evalai.rows import SubmissionRow
from segjudge.system import IMPORT_ROOT
from segjudge.system.processes import Child, Streams, Tail, clean_environment

from .settings import HostScript, ScoredPhase, ScorerChoice, StartError

if TYPE_CHECKING:
    from segjudge.system.network import Watch

#: The bytes kept of a stream's beginning and of its end, and the maximum bytes of a challenge's description.
_LOG_BYTES, _DESCRIPTION_BYTES = 64 << 10, 64 << 20
#: The maximum seconds for loading a host's script.
_SECONDS_TO_LOAD = 300.0
#: Option of `prctl`: whether other processes may read our memory.
_SET_DUMPABLE = 4


@dataclass(frozen=True)
class ScoringRequest:
    """A submission to score."""

    submission: str
    codename: str
    annotation: str
    metadata: SubmissionRow
    #: The maximum bytes of memory for the process.
    memory: int
    #: The bundle with the phases; empty for the installed ones.
    bundle: str = ""
    #: For a host's own `evaluate()`: its location, and the splits that only hosts see.
    script: HostScript | None = None
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScoringOutcome:
    """The outcome of scoring: a result, a sentence for the participant, or an internal fault, with output."""

    accuracies: object = None
    #: The metadata of `evaluate()`'s result, which hosts read.
    metadata: object = None
    refused: str = ""
    incident: str = ""
    stdout: str = ""
    stderr: str = ""
    log: str = ""
    #: Whether it exceeded the time limit.
    is_late: bool = False
    #: Whether it was stopped because this worker stops, so that another worker scores the submission.
    is_handed_back: bool = False


def forbid_inspection() -> None:
    """Prevent other processes from reading this one's memory and environment."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0)


# ── scorable phases ─────────────────────────────────────────────────────────


def read_phases(folder: str, choice: ScorerChoice, watch: Watch = lambda: None) -> dict[str, ScoredPhase]:
    """Return the phases that this machine can score; raises StartError if scorers cannot load."""
    return cast("dict[str, ScoredPhase]", _describe("describe", folder, choice, watch))


def read_annotations(folder: str, choice: ScorerChoice, watch: Watch = lambda: None) -> list[str]:
    """Return a line per phase's annotation file; raises StartError for an unusable one."""
    report = cast("dict[str, list[str]]", _describe("annotations", folder, choice, watch))
    if report["problems"]:
        raise StartError("\n".join(report["problems"]))
    return report["facts"]


def _describe(subject: str, folder: str, choice: ScorerChoice, watch: Watch) -> dict[str, object]:
    """Return the output of `challenge.py`."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "segjudge.remote_challenge_evaluation.challenge",
        subject,
        json.dumps(choice),
    ]
    streams = Streams(output=subprocess.PIPE, errors=subprocess.PIPE)
    child = Child(command, streams, environment=_environment(folder), folder=folder)
    output, errors = Tail(child.output, _DESCRIPTION_BYTES), Tail(child.errors, _LOG_BYTES, beginning=True)
    try:
        code = child.watch(watch)
    finally:
        child.end()
    if code == 0:
        with suppress(ValueError, RecursionError):
            answer = json.loads(output.text())
            if isinstance(answer, dict):
                return answer
    raise StartError(f"the scorers cannot be loaded (the process {code.sentence}):\n{errors.text().strip()}")


def read_form(script: HostScript) -> str:
    """Return the form of a host's `evaluate()`, `hosted` or `remote`; raises `HostError` if unloadable."""
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        try:
            process = _open_scorer(script, 0, ProcessTerms(dict(os.environ), folder))
            try:
                return str(process.ask({}, _SECONDS_TO_LOAD)["form"])
            finally:
                process.close()
        except UnloadableError:
            raise HostError(f"{script['file']}: cannot be loaded:\n{process.log().strip()[-3000:]}") from None
        except (OSError, DiedError) as error:
            raise HostError(f"{script['file']}: cannot be loaded ({error})") from None


# ── one submission ──────────────────────────────────────────────────────────


def run_scorer(
    request: ScoringRequest, folder: str, seconds: float, lock: int, is_over: Callable[[], bool]
) -> ScoringOutcome:
    """Score a submission within a time limit; hand it back once `is_over` returns True.

    The process holds the lock, so no other worker takes this submission while a process of the evaluation lives.
    """
    environment = _environment(folder) if request.script else _environment(folder, BUNDLE=request.bundle)
    process = _open_scorer(request.script, request.memory, ProcessTerms(environment, folder, passed=(lock,)))
    fields = {
        "submission": request.submission,
        "annotation": request.annotation,
        "phase": request.codename,
        "metadata": request.metadata,
        "hidden": request.hidden,
    }
    try:
        answer = process.ask(fields, seconds, is_over)
        refused, incident = (str(answer.get(name) or "") for name in ("refused", "incident"))
        outcome = ScoringOutcome(answer.get("accuracies"), answer.get("metadata"), refused, incident)
    except HungError:
        outcome = ScoringOutcome(is_late=True)
    except UnwantedError:
        outcome = ScoringOutcome(is_handed_back=True)
    except UnloadableError as error:
        outcome = ScoringOutcome(incident=f"the scorer cannot be loaded ({error.reason})")
    except DiedError as death:
        outcome = ScoringOutcome(incident=f"the scorer gave no answer: {death}")
    finally:
        process.close()
    stdout, stderr = process.streams()
    return replace(outcome, stdout=stdout, stderr=stderr, log=process.log())


def _open_scorer(script: HostScript | None, memory: int, terms: ProcessTerms) -> ScoringProcess:
    order: ScoringOrder = {"worker": "remote", "memory": memory}
    if script is None:
        order |= {"folder": IMPORT_ROOT, "module": "segjudge.remote_challenge_evaluation.evaluate"}
        return ScoringProcess([sys.executable, "-P"], order, terms)
    order |= {"file": script["file"], "root": script["root"]}
    return ScoringProcess([script["python"], "-I"], order, terms)


def _environment(folder: str, **values: str) -> dict[str, str]:
    """Return the scorer's environment, without tokens and keys, with this package first."""
    names = ("HOME", "TZ", "SEGJUDGE_SLACK", "SEGJUDGE_WEBHOOK")
    temporary = os.environ.get("TMPDIR", folder)
    return clean_environment(*names, TMPDIR=temporary, PYTHONPATH=IMPORT_ROOT, PYTHONDONTWRITEBYTECODE="1", **values)
