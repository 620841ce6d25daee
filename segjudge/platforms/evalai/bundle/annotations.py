"""The check that scorers can read each phase's annotation file.

A file is read as EvalAI's worker reads it: alone in a folder, by the family of its phase's protocols. A child process
does so within limits of time and memory, because a truth may be huge or damaged.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from typing import NamedTuple

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files import packed as packed_file
from segjudge.evaluation_script.files.problems import HostError, name_list
from segjudge.evaluation_script.runner.guard import CrashError, UnfinishedError, run_guarded
from segjudge.evaluation_script.scoring.phase import Phase
from segjudge.evaluation_script.scoring.scorer import phase_scorers, read_truth
from segjudge.platforms.rules.problems import ERROR, BundleProblem, BundleProblems, breaks_later, warning

from .bundle_source import PHASES_FILE, SCRIPT_FOLDER, read_phases
from .opened_bundle import Bundle

#: The maximum seconds for opening a truth, and for reading all of its masks.
_OPENING_SECONDS, _READING_SECONDS = 60.0, 300.0
#: The memory of EvalAI's worker, and of a host's machine.
_WORKER_BYTES, _OWN_BYTES = 1 << 30, 8 << 30
_CHUNK_BYTES = 1 << 20
_PACK_ANEW = "Every submission would fail. Write the file with `segjudge pack`"
#: The remedies of readers, for people who name a truth or send a submission.
_REMEDIES = re.compile(
    r"\. (Pack it again|Name the folder or the \w+ of a dataset|Create the archive again and upload it)\.?(?=\)?$)"
)


class _Reading(NamedTuple):
    """The result of reading an annotation file."""

    #: For a packed file, its family and its splits.
    family: str = ""
    splits: tuple[str, ...] = ()
    #: The reason why it cannot score; "" if it can.
    fault: str = ""
    #: The reason why it was not read completely; "" if it was.
    cause: str = ""


#: Completed readings of this process, so that `push` and a server read a truth once per content.
_readings: dict[tuple[bytes, str, tuple[tuple[str, str], ...], int, bool], _Reading] = {}


def check_annotations(bundle: Bundle, phase: Phase) -> BundleProblems:
    """Yield why the scorers cannot open the annotation file of a phase, or read its first item."""
    if not _can_be_read(bundle, phase):
        return
    name, reading = phase.annotations, _read(bundle, phase, thorough=False)
    if reading.cause:
        fault = f"cannot be opened within the limits of a worker: {reading.cause}"
        yield warning(name, fault, "Pack it with `segjudge pack`, or score a submission with it before you publish it")
    elif reading.fault:
        yield _make_problem(phase, reading)


def read_annotations(path: str) -> tuple[list[BundleProblem], list[str]]:
    """Read all masks of a bundle's truths; return the problems, and the truths not read completely."""
    problems, not_checked = list[BundleProblem](), list[str]()
    with Bundle(path, for_evalai=False) as bundle:
        if bundle.is_foreign:
            return problems, not_checked
        for phase in read_phases(bundle.script[PHASES_FILE], f"{SCRIPT_FOLDER}/{PHASES_FILE}"):
            if not _can_be_read(bundle, phase):
                continue
            reading = _read(bundle, phase, thorough=True)
            if reading.cause:
                not_checked.append(f"whether all masks of {phase.annotations} can be read ({reading.cause})")
            elif reading.fault:
                problems.append(_make_problem(phase, reading))
    return problems, not_checked


def refuse_annotations(bundle: Bundle, phases: Iterable[Phase]) -> None:
    """Raise `HostError` if a phase's truth cannot be opened, so that it is not sent to another platform.

    Missing splits are left to `check`.
    """
    problems = [(phase, problem) for phase in phases for problem in check_annotations(bundle, phase)]
    unreadable = [problem for phase, problem in problems if problem.subject == phase.annotations]
    if errors := [str(problem) for problem in unreadable if problem.severity == ERROR]:
        raise HostError("\n".join(dict.fromkeys(errors)))


def _can_be_read(bundle: Bundle, phase: Phase) -> bool:
    """Return whether there is a file that known protocols read."""
    is_there = bundle.has(phase.annotations) and bundle.size(phase.annotations) > 0
    return is_there and all(split.protocol in PROTOCOLS for split in phase.splits)


def _make_problem(phase: Phase, reading: _Reading) -> BundleProblem:
    name, subject = phase.annotations, f"phases.py, {phase.codename}"
    scored_families = {PROTOCOLS[split.protocol].family for split in phase.splits}
    if reading.splits and scored_families - {reading.family}:
        fault = f"{name} holds {reading.family}, not {', '.join(sorted(scored_families - {reading.family}))}"
        return breaks_later(subject, fault, "Name another file or protocol")
    if reading.splits and not {split.codename for split in phase.splits} <= set(reading.splits):
        return breaks_later(
            subject, f"{name} has only the splits {', '.join(reading.splits)}", "Pack the missing splits"
        )
    return breaks_later(name, reading.fault, _PACK_ANEW)


def _read(bundle: Bundle, phase: Phase, *, thorough: bool) -> _Reading:
    memory = _OWN_BYTES if bundle.is_evaluated_elsewhere else _WORKER_BYTES
    seconds = _READING_SECONDS if thorough else _OPENING_SECONDS
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        path, digest = os.path.join(folder, os.path.basename(phase.annotations)), hashlib.sha256()
        with bundle.open(phase.annotations) as member, open(path, "wb") as file:
            while chunk := member.read(_CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
        splits_read = tuple((split.codename, split.protocol) for split in phase.splits)
        key = (digest.digest(), phase.annotations, splits_read, memory, thorough)
        if key in _readings:
            return _readings[key]
        try:
            fields = run_guarded(
                lambda _say: _read_packed(path, phase, thorough=thorough), memory=memory, seconds=seconds, say=_ignore
            )
        except UnfinishedError as error:
            return _Reading(cause=error.cause.removeprefix("it "))
        except CrashError as error:
            return _Reading(fault=_shorten(str(error), path, phase.annotations))
    family, splits, fault = fields
    _readings[key] = _Reading(family, tuple(splits), _shorten(fault, path, phase.annotations))
    return _readings[key]


def _ignore(_line: str) -> None:
    """Ignore a line that a reader prints."""


def _read_packed(path: str, phase: Phase, *, thorough: bool) -> tuple[str, list[str], str]:
    """Return the family and the splits of a packed file, and why the phase cannot be scored with it."""
    family, splits = "", list[str]()
    try:
        family, splits = packed_file.family_of(path), packed_file.splits_of(path)
        if splits and not {split.codename for split in phase.splits} <= set(splits):
            return family, splits, f"has only the splits {name_list(splits)}"
        for scorer in phase_scorers(phase, read_truth(path, phase.splits[0].protocol).splits):
            truth = scorer.truth
            sample = truth.item_names[:1]
            if thorough:
                truth.read_through()
            elif sample:
                truth.select(sample, scorer.rules.protocol).read_through()
    except HostError as error:
        return family, splits, str(error)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a damaged file does to its reader
        return family, splits, f"cannot be read ({type(error).__name__}: {error})"
    return family, splits, ""


def _shorten(fault: str, path: str, name: str) -> str:
    """Return a fault in one line, with the host's file name."""
    line = " ".join(fault.split()).removeprefix(f"{path}: ").replace(path, name)
    return _REMEDIES.sub("", line.replace(os.path.dirname(path) + os.sep, "")).removesuffix(".")
