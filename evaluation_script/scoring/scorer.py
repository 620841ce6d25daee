"""The Scorer, with which every entry point counts and scores.

It also opens truths: packed ones, or published datasets.
"""

from __future__ import annotations

import functools
import os
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Tuple, Union

from ..families import FAMILIES, PROTOCOLS, describe_unknown, engine_of
from ..families.base.accumulator import Accumulator
from ..families.base.engine import OpenedSubmission
from ..families.base.family import FamilyProtocol, Progress, ScoringRules, ignore_progress
from ..families.base.reports import Report
from ..families.base.truth import AnnotationFile, SplitTruth
from ..files import HostError, name_hint
from ..files.packed import family_of
from ..runner.parallel import WHOLE, Part, cores, results_of_processes
from .phase import Phase, PhaseSplit
from .provenance import digest_of

#: The first value of a protocol's first metric from which results are not examined.
_GOOD = 0.8


@dataclass(frozen=True)
class Scorer:
    """A scorer of results on one split; raises HostError if the truth does not fit the protocol."""

    split: str
    truth: SplitTruth
    rules: ScoringRules

    def __post_init__(self) -> None:
        truth, protocol = self.truth, self.rules.protocol
        content = truth.family if truth.family != protocol.family else truth.form if truth.form != protocol.form else ""
        if content:
            fault = f"holds {content}, which the protocol {protocol.name} does not score"
            raise HostError(f"the truth of {self.split} {fault}")
        fault = truth.find_fault(protocol)
        if fault:
            raise HostError(f"the truth of {self.split} {fault}")

    def open(self, results: str) -> OpenedSubmission:
        """Open results with the truth, to count any number of parts; raises SubmissionError if unreadable."""
        return engine_of(self.truth.family).open_submission(results, self.truth, self.rules.protocol, self.rules)

    def count(
        self, results: Union[str, OpenedSubmission], share: Part = WHOLE, progress: Progress = ignore_progress
    ) -> Accumulator[Any, Any]:
        """Count a part of results, with the processes that the rules allow."""
        with closing(self.open(results)) if isinstance(results, str) else nullcontext(results) as opened:
            job = opened.plan(share, progress)
            done, total = 0, len(job.names) or 1

            def begin(number: int) -> None:
                nonlocal done
                if job.names:
                    progress(job.names[number], done, total)
                done += 1

            rules = self.rules
            for counts in results_of_processes(job.count, job.costs, rules.jobs, begin, rules.most_jobs):
                job.accumulator.add(counts)
            progress("", total, total)
            return job.accumulator

    def score(self, results: str, progress: Progress = ignore_progress, *, examines: bool = True) -> Report:
        """Count all results and return their scores; raises SubmissionError with every problem.

        Unless it is told not to, the doctor examines results that score low.
        """
        with closing(self.open(results)) as opened:
            report = engine_of(self.truth.family).report(self.split, self.count(opened, WHOLE, progress))
            if examines:
                report.suspect(self._examine(opened, report))
        return report

    def _examine(self, opened: OpenedSubmission, report: Report) -> List[str]:
        """Return what the doctor says of scored results; it never costs a score."""
        examine, score = engine_of(self.truth.family).examine, report.values[self.rules.protocol.metrics[0]]
        if examine is None or (score is not None and score >= _GOOD):
            return []
        try:
            from ..doctor.diagnosis import diagnose  # few results need it

            return diagnose(examine(opened))
        except Exception:  # noqa: BLE001 - whatever cannot be sampled is scored all the same
            return []


def phase_scorers(phase: Phase, truths: Mapping[str, SplitTruth], codename: str = "") -> List[Scorer]:
    """Return the scorer of each split of a phase, or of the one with this codename.

    If phase and annotation file have one split each, the truth's name does not matter.
    """
    scorers, limits = [], replace(phase.limits, socket=phase.socket)
    for split in [split for split in phase.splits if codename in ("", split.codename)]:
        if split.codename in truths:
            truth = truths[split.codename]
        elif len(truths) == len(phase.splits) == 1:
            (truth,) = truths.values()
        else:
            fault = f"the annotation file of {phase.codename} has no split {split.codename!r}"
            raise HostError(f"{fault}{name_hint(split.codename, truths)}")
        rules = ScoringRules(_protocol_of(phase, split), limits, strict=phase.strict, jobs=phase.jobs or cores())
        scorers.append(Scorer(split.codename, truth, rules))
    return scorers


def _protocol_of(phase: Phase, split: PhaseSplit) -> FamilyProtocol:
    if split.protocol not in PROTOCOLS:
        raise HostError(f"phases.py: {phase.codename}: {describe_unknown(split.protocol)}")
    return PROTOCOLS[split.protocol]


def read_truth(path: str, protocol: str) -> AnnotationFile[SplitTruth]:
    """Open an annotation file: packed, or else as the protocol's truth is published; raises HostError."""
    packed_family = family_of(path)
    if packed_family:
        return AnnotationFile(engine_of(packed_family).read_packed(path))
    if protocol not in PROTOCOLS:
        raise HostError(f"{path}: {describe_unknown(protocol)}")
    family = FAMILIES[PROTOCOLS[protocol].family]
    dataset = engine_of(family.name).read_published(path, "", protocol)
    if not family.gains_by_packing:
        return dataset
    slow = "was not made by `segjudge pack`; a packed annotation file scores faster"
    return AnnotationFile(dataset.splits, [*dataset.notes, slow])


def is_packed(path: str) -> bool:
    """Return whether `segjudge pack` made this file."""
    return os.path.isfile(path) and bool(family_of(path))


class TruthCache:
    """A cache of annotation files, opened once per path, size and time; deleted files stay usable."""

    def __init__(self, log: Callable[[str], None]) -> None:
        """Open files on request; `log` gets the remarks for the host."""
        self._log = log
        #: The versions of files when they were last opened.
        self._versions: Dict[str, Tuple[str, int, int]] = {}
        self._open_version = functools.lru_cache(maxsize=8)(self._read)
        self._digest_version = functools.lru_cache(maxsize=8)(lambda path, *_version: digest_of(path))

    def open(self, path: str, protocol: str) -> Mapping[str, SplitTruth]:
        """Return the splits of an annotation file."""
        return self._open_version(protocol, *self._version_of(path))

    def digest(self, path: str) -> str:
        """Return the digest of an annotation file."""
        return self._digest_version(*self._version_of(path))

    def _version_of(self, path: str) -> Tuple[str, int, int]:
        """Return a value that changes with the file."""
        try:
            status = os.stat(path)
        except OSError as error:
            if path in self._versions:
                return self._versions[path]
            raise HostError(f"{path}: cannot be opened ({error.strerror})") from None
        return path, status.st_size, status.st_mtime_ns

    def _read(self, protocol: str, path: str, size: int, modification_time: int) -> Mapping[str, SplitTruth]:
        truth = read_truth(path, protocol)
        self._versions[path] = path, size, modification_time
        for note in truth.notes:
            self._log(f"{path}: {note}")
        return truth.splits
