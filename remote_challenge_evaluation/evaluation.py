"""One evaluation in a process of its own, watched from outside until nothing of it is left."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import IO, cast

from segjudge.platforms.evalai.client import StoppedError, Watch
from segjudge.system import IMPORT_ROOT
from segjudge.system.processes import Child, ExitCode, Streams, Tail, clean_environment

from .scoring_messages import AnnotationReport, ScoredPhase, ScorerChoice, ScoringRequest
from .settings import StartError

#: Bytes of each stream that are kept of its beginning and of its end.
_KEPT_BYTES = 64 << 10
#: The most bytes of a scorer's answer.
_ANSWER_BYTES = 64 << 20
#: Option of `prctl`: whether other processes may read our memory.
_SET_DUMPABLE = 4
_TOO_LONG = "Scoring took longer than this challenge allows and was ended. Send a smaller submission."


@dataclass(frozen=True)
class ScoringOutcome:
    """A result, or a sentence for the participant, or a fault of ours, with what the scorer wrote."""

    accuracies: object = None
    metadata: object = None
    refused: str = ""
    incident: str = ""
    stdout: str = ""
    stderr: str = ""
    log: str = ""
    handed_back: bool = False


def forbid_inspection() -> None:
    """Keep other processes from reading our memory and environment."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0)


def has_process_limit() -> bool:
    """Return whether a cgroup bounds how many processes we may have."""
    with suppress(OSError), open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file.read().splitlines():
            _, kind, path = line.split(":", 2)
            for root in ("/sys/fs/cgroup", f"/sys/fs/cgroup/{kind}"):
                with suppress(OSError), open(f"{root}{path}/pids.max", encoding="ascii") as limit:
                    if limit.read().strip() != "max":
                        return True
    return False


def read_phases(folder: str, choice: ScorerChoice, watch: Watch = lambda: None) -> dict[str, ScoredPhase]:
    """Return the phases that this machine can score; raise StartError if the scorers cannot be loaded."""
    return cast("dict[str, ScoredPhase]", _scorer_output(["describe", json.dumps(choice)], folder, watch))


def read_annotations(folder: str, choice: ScorerChoice, watch: Watch = lambda: None) -> list[str]:
    """Return a line for the annotation file of each phase; raise StartError if one cannot be used."""
    report = cast("AnnotationReport", _scorer_output(["annotations", json.dumps(choice)], folder, watch))
    if report["problems"]:
        raise StartError("\n".join(report["problems"]))
    return report["facts"]


def _scorer_output(arguments: list[str], folder: str, watch: Watch) -> dict[str, object]:
    """Return the JSON that a scorer prints."""
    streams = Streams(output=subprocess.PIPE, errors=subprocess.PIPE)
    child = _start(arguments, streams, folder)
    output, errors = Tail(child.output, _ANSWER_BYTES), Tail(child.errors, _KEPT_BYTES, beginning=True)
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


def run_scorer(request: ScoringRequest, folder: str, seconds: float, lock: int, watch: Watch) -> ScoringOutcome:
    """Score a submission within so many seconds; it is handed back if `watch` raises StoppedError meanwhile."""
    with ExitStack() as writers:
        answer, answer_descriptor = _tail_of_pipe(writers, _ANSWER_BYTES)
        log, log_descriptor = _tail_of_pipe(writers, _KEPT_BYTES)
        # With the lock: as long as any process of the evaluation lives, no other worker takes this submission.
        passed = (answer_descriptor, log_descriptor, lock)
        streams = Streams(subprocess.PIPE, subprocess.PIPE, subprocess.PIPE, passed)
        words = ["score", str(answer_descriptor), str(log_descriptor)]
        child = _start(words, streams, folder, request.get("command"))
    output, errors = (Tail(stream, _KEPT_BYTES, beginning=True) for stream in (child.output, child.errors))
    # In a thread: a scorer that does not read would keep us, and has as long as it has for its answer.
    threading.Thread(target=_send, args=(child.input, request), daemon=True).start()
    outcome = None
    try:
        child.watch(watch, seconds)
    except TimeoutError:
        outcome = ScoringOutcome(refused=_TOO_LONG)
    except StoppedError:
        outcome = ScoringOutcome(handed_back=True)
    finally:
        code = child.end()
    outcome = outcome or _outcome(code, answer.text())
    return replace(outcome, stdout=output.text(), stderr=errors.text(), log=log.text())


def _tail_of_pipe(writers: ExitStack, kept: int) -> tuple[Tail, int]:
    """Open a pipe; return what is read from it, and its other end, which `writers` closes."""
    reader, writer = os.pipe()
    writers.callback(os.close, writer)
    return Tail(os.fdopen(reader, "rb", buffering=0), kept, beginning=True), writer


def _send(stream: IO[bytes], request: ScoringRequest) -> None:
    with suppress(OSError), stream:
        stream.write(json.dumps(request).encode())


def _start(arguments: list[str], streams: Streams, folder: str, program: list[str] | None = None) -> Child:
    """Start a scorer without our token and keys; it imports our own code first."""
    names = ("HOME", "TZ", "SEGJUDGE_SLACK", "SEGJUDGE_WEBHOOK")
    values = {"TMPDIR": os.environ.get("TMPDIR", folder), "PYTHONPATH": IMPORT_ROOT, "PYTHONDONTWRITEBYTECODE": "1"}
    ours = [sys.executable, "-P", "-m", "segjudge.remote_challenge_evaluation.scoring_process"]
    environment = clean_environment(*names, **values)
    return Child([*(program or ours), *arguments], streams, environment=environment, folder=folder)


def _outcome(code: ExitCode, answer: str) -> ScoringOutcome:
    with suppress(ValueError, RecursionError):
        fields = json.loads(answer)
        if isinstance(fields, dict) and fields.keys() & {"accuracies", "refused", "incident"}:
            refused, incident = (str(fields.get(name) or "") for name in ("refused", "incident"))
            return ScoringOutcome(fields.get("accuracies"), fields.get("metadata"), refused, incident)
    return ScoringOutcome(incident=f"the scorer {code.sentence} without an answer")
