"""`evaluate()`: find the phase, score under limits, answer in EvalAI's shape."""

from __future__ import annotations

import os
import sys
import time
import traceback
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Dict, List, Mapping, Tuple, Union

from .families import FOLDERS, PROTOCOLS, engine_of, folder_of
from .families.base.family import Progress
from .families.base.reports import Report
from .families.base.truth import SplitTruth
from .files import HostError, SubmissionError, ascii_text
from .masks.backend import backend
from .phases import PHASES
from .runner.guard import CrashError, Say, run_guarded
from .runner.tuning import reuse_memory
from .scoring import Phase, PhaseSplit
from .scoring.answer import add_page_data, build_answer
from .scoring.notify import notify
from .scoring.provenance import digest_of, numbers_of, provenance
from .scoring.scorer import TruthCache, phase_scorers

#: The maximum number of progress lines of a split.
_PROGRESS_LINES = 20


def evaluate(
    test_annotation_file: str, user_annotation_file: str, phase_codename: str, **kwargs: Any
) -> Dict[str, Any]:
    """Score a submission for EvalAI's worker, which reads the return value or the exception.

    A SubmissionError's text is for the participant. Every other error becomes a HostError with an incident number; only
    the worker's own log has its details, because a traceback could reveal the truth.
    """
    phase = phase_named(phase_codename)
    return evaluate_phase(phase, test_annotation_file, user_annotation_file, kwargs.get("submission_metadata"))


def load_scorers() -> None:
    """Import all that this challenge's phases may need at once, because EvalAI's worker may lose its folder.

    Another worker that starts in the same temporary folder removes it (`../docs/operators.md`). Modules of plug-ins
    that are imported late are not imported here, because a plug-in's folder may hold anything.
    """
    folders = ["doctor", "families.base", "files", "masks", "runner", "scoring", "values"]
    protocols = [split.protocol for phase in PHASES for split in phase.splits]
    for family in {PROTOCOLS[name].family for name in protocols if name in PROTOCOLS}:  # or the first submission tells
        engine_of(family)
        if folder_of(family) in FOLDERS:
            folders.append(f"families.{folder_of(family)}")
    for folder in folders:
        package = import_module(f"{__package__}.{folder}")
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    backend()


def evaluate_phase(phase: Phase, annotations: str, submission: str, metadata: object = None) -> Dict[str, Any]:
    """Score a submission by the rules of a phase."""
    outcome = _outcome(phase, annotations, submission, metadata)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _outcome(
    phase: Phase, annotations: str, submission: str, metadata: object
) -> Union[Dict[str, Any], SubmissionError, HostError]:
    """Return the answer or the exception to raise; it has no cause, whose text could reveal the truth."""
    try:
        started = time.monotonic()
        splits, digest = open_truth(annotations, phase), _TRUTHS.digest(annotations)
        answer: Dict[str, Any] = run_guarded(
            lambda say: _score_in_child(phase, splits, submission, say, (started, digest)),
            memory=phase.memory,
            seconds=phase.seconds,
            say=_say,
        )
    except SubmissionError as error:
        return SubmissionError(ascii_text(str(error)))
    except Exception as error:  # noqa: BLE001 - nothing else may reach a participant
        return HostError(_log_incident(error))
    for line in answer["submission_result"]["warnings"]:
        _say(f"warning: {line}")
    _log(notify(phase, answer, metadata))
    return answer


def _score_in_child(
    phase: Phase, truths: Mapping[str, SplitTruth], submission: str, say: Say, opened: Tuple[float, str]
) -> Dict[str, Any]:
    """Score in the child process, and log the provenance; `opened` is the truth's opening time and digest."""
    reuse_memory()
    started, truth = opened
    answer = score_phase(phase, truths, submission, say, started)
    protocols = {split.codename: PROTOCOLS[split.protocol] for split in phase.splits}
    limits = {**numbers_of(phase.limits), "seconds": phase.seconds, "memory": phase.memory}
    origin = provenance(protocols, truth, digest_of(submission), backend().name, limits)
    answer["submission_metadata"]["provenance"] = origin
    visible = {name: value for name, value in origin["protocols"].items() if name not in phase.hidden}
    # A participant could recognise a hidden truth by its digest.
    shown = {name: value for name, value in origin.items() if name != "truth" or not phase.hidden}
    answer["submission_result"]["provenance"] = {**shown, "protocols": visible}
    return answer


def phase_named(codename: str) -> Phase:
    for phase in PHASES:
        if phase.codename == codename:
            return phase
    codenames = ", ".join(phase.codename for phase in PHASES)
    raise SubmissionError(f"There is no phase {codename!a} in this challenge; its phases are: {codenames}.")


def open_truth(path: str, phase: Phase) -> Mapping[str, SplitTruth]:
    """Return the splits of a phase's annotation file, opened once for each path, size and time."""
    return _TRUTHS.open(path, phase.splits[0].protocol)


def score_phase(
    phase: Phase, truths: Mapping[str, SplitTruth], submission: str, say: Say, started: float
) -> Dict[str, Any]:
    """Score every split of a phase; `started` is the time when opening the annotation file began."""
    timings = {"open": time.monotonic() - started}
    scorers = phase_scorers(phase, truths)
    reports: List[Report] = []
    totals: Dict[str, int] = {}
    for split, scorer in zip(phase.splits, scorers):
        begun = time.monotonic()
        reports.append(scorer.score(submission, _progress(split, say, totals), examines=not split.hidden))
        timings[split.codename] = time.monotonic() - begun
    answer = build_answer(phase, reports, timings)
    for split in phase.splits:  # not earlier: a rejection in one split means no score in any
        total = "" if split.hidden or split.codename not in totals else "{0} of {0} ".format(totals[split.codename])
        say(f"{split.codename}: {total}scored")
    if phase.report:
        splits = list(zip(phase.splits, scorers, reports))
        _log(add_page_data(answer, phase, splits, submission, started + phase.seconds))
    return answer


def _progress(split: PhaseSplit, say: Say, totals: Dict[str, int]) -> Progress:
    """Return the progress callback of a split, silent if hidden, which also counts its items."""

    def report(name: str, done: int, total: int) -> None:
        totals[split.codename] = total
        new = done < total and done * _PROGRESS_LINES // total != (done - 1) * _PROGRESS_LINES // total
        if new and not split.hidden:
            say(f"{split.codename}: {name} ({done + 1} of {total})")

    return report


def _say(text: str) -> None:
    """Print a line for the participant; EvalAI's stream has only `write` and `flush`."""
    try:
        print(ascii_text(text), flush=True)
    except (OSError, ValueError):
        return  # a closed or broken stream must not cost a score


def _log(text: str) -> None:
    """Print a line to the worker's own log, which participants never see."""
    if text and sys.__stderr__ is not None:
        print(text, file=sys.__stderr__, flush=True)


#: The annotation files of all phases.
_TRUTHS = TruthCache(_log)


def _log_incident(error: Exception) -> str:
    """Log an error with a new incident number; return the sentence for the participant."""
    number = os.urandom(4).hex()
    if isinstance(error, (CrashError, HostError)):
        details = str(error)
    else:
        details = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    _log(f"incident {number}: {details}")
    return f"Scoring failed; your submission is not the cause. Tell the organisers the incident number {number}."
