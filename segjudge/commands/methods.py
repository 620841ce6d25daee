"""What the comparisons of several methods share: scoring each, and the table of places."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from segjudge.errors import UsageError
from segjudge.evaluation_script.phase import PROTOCOLS

from .shared import ProgressBar

if TYPE_CHECKING:
    from segjudge.evaluation_script.reports import Report
    from segjudge.prepared import PreparedScoring
    from segjudge.scoring import Scores
    from segjudge.statistics.rankings import Mean


@dataclass(frozen=True)
class ScoredMethod:
    """A method's scores, and what they come from."""

    name: str
    job: PreparedScoring
    scores: Scores

    def report(self, split: str) -> Report:
        """Return the scores of a split, or of the only one."""
        found = [report for report in self.scores.reports if split in ("", report.split)]
        if len(found) != 1:
            names = ", ".join(report.split for report in self.scores.reports)
            raise UsageError(f"{self.name} has the splits {names}; name one with --split")
        return found[0]


def scored_method(text: str, args: argparse.Namespace) -> ScoredMethod:
    """Score a method, given as RESULTS or as NAME=RESULTS."""
    from segjudge.datasets.opening import TruthSource
    from segjudge.prepared import ScoreRequest, prepared
    from segjudge.scoring import scored_here

    name, _, path = text.rpartition("=") if not os.path.exists(text) else ("", "", text)
    name = name or os.path.basename(path.rstrip(os.sep)).partition(".")[0]
    source = TruthSource(args.truth, subset=args.subset or "")
    with ProgressBar() as bar:
        request = ScoreRequest(path, source, PROTOCOLS[args.protocol], jobs=args.jobs)
        job = prepared(request, bar)
        return ScoredMethod(name, job, scored_here(job, request, bar))


def places(rows: list[Mean], metric: str) -> str:
    """Return the methods with the places that each may have."""
    from segjudge.report.comparison import place_row
    from segjudge.report.tables import number, table

    body = [[place, name, number(value), reach] for place, name, value, reach in map(place_row, rows)]
    return table(["place", "method", metric, "95 %"], body)
