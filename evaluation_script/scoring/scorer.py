"""The Scorer: what every door counts and scores with, be it a worker, a command, a part, a cluster or an episode."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any, Mapping, Union

from ..families import PROTOCOLS, engine_of, report_of
from ..families.base.accumulator import Accumulator
from ..families.base.engine import OpenedSubmission, Progress, ignore_progress
from ..families.base.family import ScoringRules
from ..families.base.reports import Report
from ..families.base.truth import SplitTruth
from ..files.problems import HostError, name_hint
from ..runner.parallel import WHOLE, Part, cores
from .phase import Phase, PhaseSplit


@dataclass(frozen=True)
class Scorer:
    """Scores results on one split; raises HostError unless its truth is what the rules' protocol scores."""

    split: str
    truth: SplitTruth
    rules: ScoringRules

    def __post_init__(self) -> None:
        truth, protocol = self.truth, self.rules.protocol
        held = truth.track if truth.track != protocol.track else truth.form if truth.form != protocol.form else ""
        if held:
            found = f"holds {held}, which the protocol {protocol.name} does not score"
            raise HostError(f"the truth of {self.split} {found}")

    def open(self, results: str) -> OpenedSubmission:
        """Open results beside the truth, to count any number of parts; raises SubmissionError for unreadable ones."""
        return engine_of(self.truth.track).open_submission(results, self.truth, self.rules.protocol, self.rules)

    def count(
        self, results: Union[str, OpenedSubmission], part: Part = WHOLE, progress: Progress = ignore_progress
    ) -> Accumulator[Any, Any]:
        """Count a part of results, by the processes that the rules allow."""
        if not isinstance(results, str):
            return results.count(part, progress)
        with closing(self.open(results)) as opened:
            return opened.count(part, progress)

    def report(self, counts: Accumulator[Any, Any]) -> Report:
        """Return the scores of a split of which all was counted; raises SubmissionError with every problem."""
        return report_of(self.split, counts)

    def score(self, results: str, progress: Progress = ignore_progress) -> Report:
        """Count all of the results, and return their scores."""
        return self.report(self.count(results, progress=progress))


def phase_scorer(phase: Phase, split: PhaseSplit, truths: Mapping[str, SplitTruth]) -> Scorer:
    """Return what scores a split of a phase.

    Where phase and annotation file have one split each, the truth's name does not matter.
    """
    if split.codename in truths:
        truth = truths[split.codename]
    elif len(truths) == len(phase.splits) == 1:
        (truth,) = truths.values()
    else:
        found = f"the annotation file of {phase.codename} has no split {split.codename!r}"
        raise HostError(f"{found}{name_hint(split.codename, truths)}")
    rules = ScoringRules(PROTOCOLS[split.protocol], phase.limits, strict=phase.strict, jobs=phase.jobs or cores())
    return Scorer(split.codename, truth, rules)
