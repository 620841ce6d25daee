"""`evaluate()`: find the phase, score under limits, answer in EvalAI's shape."""

from __future__ import annotations

import functools
import os
import secrets
import sys
import time
import traceback
import zipfile
from dataclasses import replace
from typing import Any, Dict, Mapping, Tuple, Union

from . import dataset_reader, instance_truth, instances, notify, packed_file, sequence_truth, sequences
from .answer import InstanceReport, Report, SequenceReport, build_answer
from .archive_limits import ArchiveLimits
from .errors import HostError, SubmissionError
from .guard import CrashError, Say, run_guarded
from .instance_protocols import INSTANCE_PROTOCOLS
from .phase import Phase, PhaseSplit
from .phases import PHASES
from .progress import Progress
from .sequence_protocols import SEQUENCE_PROTOCOLS, SequenceProtocol

#: Progress is told this often at the most.
PROGRESS_LINES = 20

#: An annotation file: its splits, of one track.
Opened = Mapping[str, Union[sequence_truth.Split, instance_truth.InstanceTruth]]


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
        answer: Dict[str, Any] = run_guarded(
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


def open_truth(path: str) -> Opened:
    """The annotation file, opened once for each path, size and time."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise HostError(f"{path}: cannot be opened ({error.strerror})") from None
    return _opened(path, found.st_size, found.st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _opened(path: str, *_facts: int) -> Opened:
    track = packed_file.track_of(path)
    if track == instance_truth.TRACK or (not track and not _holds_masks(path)):
        return instance_truth.read(path)
    if track:
        return sequence_truth.read(path).splits
    opened = dataset_reader.read(path)
    for note in (*opened.notes, "was not made by `segjudge pack`; a packed annotation file scores faster"):
        _log(f"{path}: {note}")
    return opened.splits


def _holds_masks(path: str) -> bool:
    """Is a plain annotation file a dataset of PNGs, and not a document of instances?"""
    if os.path.isdir(path):
        return True
    with open(path, "rb") as file:
        start = file.read(1 << 16).lstrip()
    if not start.startswith(b"PK"):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.lower().endswith(".png") for name in archive.namelist())
    except zipfile.BadZipFile as error:
        raise HostError(f"{path}: cannot be read ({error})") from None


def score_phase(phase: Phase, opened: Opened, submission: str, say: Say, started: float) -> Dict[str, Any]:
    """Score every split of a phase."""
    timings = {"open": time.monotonic() - started}
    reports = []
    for shown in phase.splits:
        begun = time.monotonic()
        reports.append(score_split(phase, opened, shown, submission, _progress(shown, say)))
        timings[shown.codename] = time.monotonic() - begun
    return build_answer(phase, reports, timings)


def score_split(phase: Phase, opened: Opened, shown: PhaseSplit, submission: str, progress: Progress) -> Report:
    """Score one split of a phase, by the rules of its track."""
    split = _split(phase, opened, shown.codename)
    if isinstance(split, instance_truth.InstanceTruth):
        protocol = INSTANCE_PROTOCOLS[shown.protocol]
        progress("detections", 0, 1)
        score = instances.score(submission, split, protocol, phase.limits, strict=phase.strict)
        progress("", 1, 1)
        return InstanceReport(shown.codename, protocol, score)
    return score_sequences(
        submission,
        (shown.codename, split),
        {name: other for name, other in opened.items() if isinstance(other, sequence_truth.Split)},
        SEQUENCE_PROTOCOLS[shown.protocol],
        phase.limits,
        strict=phase.strict,
        progress=progress,
    )


def score_sequences(  # noqa: PLR0913 - what a split's score depends on
    submission: str,
    named: Tuple[str, sequence_truth.Split],
    splits: Dict[str, sequence_truth.Split],
    protocol: SequenceProtocol,
    limits: ArchiveLimits,
    *,
    strict: bool,
    progress: Progress,
) -> SequenceReport:
    """Score one split; sequences of the other splits may be in a submission too."""
    name, split = named
    elsewhere = frozenset(one.name for other in splits.values() for one in other.sequences)
    scores, warnings = sequences.score(
        submission,
        replace(split, elsewhere=elsewhere - {one.name for one in split.sequences}),
        protocol,
        limits,
        strict=strict,
        progress=progress,
    )
    return SequenceReport(name, protocol, scores, warnings)


def _split(phase: Phase, opened: Opened, codename: str) -> Union[sequence_truth.Split, instance_truth.InstanceTruth]:
    if codename in opened:
        return opened[codename]
    if len(opened) == len(phase.splits) == 1:
        return next(iter(opened.values()))
    raise HostError(f"the annotation file of {phase.codename} has no split {codename!r}, only {list(opened)}")


def _progress(shown: PhaseSplit, say: Say) -> Progress:
    def tell(name: str, done: int, total: int) -> None:
        split = shown.codename
        if shown.hidden:
            if done == total:
                say(f"{split}: scored")
        elif done == total:
            say(f"{split}: {total} of {total} scored")
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
    if isinstance(error, (CrashError, HostError)):
        details = str(error)
    else:
        details = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    _log(f"incident {number}: {details}")
    return f"Scoring failed, and it is not your fault. Tell the organisers the incident number {number}."
