"""`evaluate()`: find the phase, score under limits, answer in EvalAI's shape."""

from __future__ import annotations

import functools
import os
import secrets
import sys
import time
import traceback
from typing import Any, Callable, Dict, List, Union

from . import notify, published, sequences, truth
from .answer import Report, answered
from .errors import HostError, SubmissionError
from .guard import Crash, Say, guarded
from .phase import Phase
from .phases import PHASES
from .sequence_protocols import PROTOCOLS

#: Progress is told this often at the most.
PROGRESS_LINES = 20

Progress = Callable[[str, int, int], None]


def evaluate(
    test_annotation_file: str, user_annotation_file: str, phase_codename: str, **kwargs: Any
) -> Dict[str, Any]:
    """Score a submission; called by EvalAI's worker, which reads what this returns or raises.

    A SubmissionError's text is for the participant.  Everything else becomes a
    HostError with an incident number, and the worker's own log holds the rest:
    a traceback could show ground truth.
    """
    answer = _answer(test_annotation_file, user_annotation_file, phase_codename, kwargs.get("submission_metadata"))
    if isinstance(answer, Exception):
        raise answer
    return answer


def _answer(
    annotations: str, submission: str, codename: str, metadata: Any
) -> Union[Dict[str, Any], SubmissionError, HostError]:
    """The answer, or what to raise: made here, so that it is raised without a cause."""
    try:
        phase = phase_named(codename)
        started = time.monotonic()
        opened = open_truth(annotations)
        answer: Dict[str, Any] = guarded(
            lambda say: score_phase(phase, opened, submission, say, started),
            memory=phase.memory,
            seconds=phase.seconds,
            say=_say,
        )
    except SubmissionError as error:
        return SubmissionError(str(error))
    except Exception as error:  # noqa: BLE001 - nothing else may reach a participant
        return HostError(_incident(error))
    for line in answer["submission_result"]["warnings"]:
        _say(f"warning: {line}")
    _log(notify.notify(phase, answer, metadata))
    return answer


def phase_named(codename: str) -> Phase:
    """The phase with this codename."""
    for phase in PHASES:
        if phase.codename == codename:
            return phase
    known = ", ".join(phase.codename for phase in PHASES)
    raise SubmissionError(f"There is no phase {codename!r} in this challenge; its phases are: {known}.")


def open_truth(path: str) -> truth.Truth:
    """The annotation file, opened once for each path, size and time."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise HostError(f"{path}: cannot be opened ({error.strerror})") from None
    return _opened(path, found.st_size, found.st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _opened(path: str, *_facts: int) -> truth.Truth:
    if truth.is_packed(path):
        return truth.read(path)
    opened = published.read(path)
    for note in (*opened.notes, "was not made by `linejudge pack`; a packed annotation file scores faster"):
        _log(f"{path}: {note}")
    return opened


def score_phase(phase: Phase, opened: truth.Truth, submission: str, say: Say, started: float) -> Dict[str, Any]:
    """Score every split of a phase."""
    reports: List[Report] = []
    timings = {"open": time.monotonic() - started}
    for shown in phase.splits:
        begun = time.monotonic()
        split = _split(phase, opened, shown.codename)
        scores, warnings = sequences.score(
            submission,
            split,
            PROTOCOLS[shown.protocol],
            phase.limits,
            strict=phase.strict,
            elsewhere={one.name for other in opened.splits.values() if other is not split for one in other.sequences},
            progress=_progress(shown.codename, say),
        )
        reports.append(Report(shown.codename, shown.protocol, scores, warnings))
        timings[shown.codename] = time.monotonic() - begun
    return answered(phase, reports, timings)


def _split(phase: Phase, opened: truth.Truth, codename: str) -> truth.Split:
    if codename in opened.splits:
        return opened.splits[codename]
    if len(opened.splits) == len(phase.splits) == 1:
        return next(iter(opened.splits.values()))
    raise HostError(f"the annotation file of {phase.codename} has no split {codename!r}, only {list(opened.splits)}")


def _progress(split: str, say: Say) -> Progress:
    def tell(name: str, done: int, total: int) -> None:
        if done == total:
            say(f"{split}: {total} of {total} sequences scored")
        elif done * PROGRESS_LINES // total != (done - 1) * PROGRESS_LINES // total:
            say(f"{split}: {name} ({done + 1} of {total})")

    return tell


def _say(text: str) -> None:
    """To the participant's log: EvalAI's stream has `write` and `flush` and nothing else."""
    try:
        print(text, flush=True)
    except UnicodeEncodeError:
        print(text.encode("ascii", "replace").decode(), flush=True)
    except (OSError, ValueError):
        return  # a closed or broken stream is no reason to lose a score


def _log(text: str) -> None:
    """To the worker's own log, which no participant sees."""
    if text and sys.__stderr__ is not None:
        print(text, file=sys.__stderr__, flush=True)


def _incident(error: Exception) -> str:
    number = secrets.token_hex(4)
    if isinstance(error, (Crash, HostError)):
        details = str(error)
    else:
        details = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    _log(f"incident {number}: {details}")
    return f"Scoring failed, and it is not your fault. Tell the organisers the incident number {number}."
