"""Several submissions on one truth, opened once; each is scored as if alone, or has a fault."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from segjudge.evaluation_script.families.base.family import Progress, ignore_progress
from segjudge.evaluation_script.files import SubmissionError
from segjudge.system.addresses import digest_of, resolve_address
from segjudge.system.files import name_of

from .scores import PreparedScoring, ScoreRequest, Scores, count_processes, prepare, refuse_packed


class NamedScores(NamedTuple):
    """A submission and its scores, or the reason why it has none."""

    name: str
    scores: Scores | None
    fault: str = ""


def name_submissions(paths: Sequence[str]) -> list[str]:
    """Return the names of submissions: their file names, or their paths if names repeat."""
    names = [name_of(path) for path in paths]
    return names if len({*names}) == len(names) else list(map(os.fspath, paths))


def open_truth_once(request: ScoreRequest, progress: Progress = ignore_progress) -> PreparedScoring:
    """Open the truth of a request without its results."""
    prepared = prepare(replace(request, results=""), progress)
    return replace(prepared, digests=(digest_of(prepared.truth), "")) if request.is_identified else prepared


def score_each(
    prepared: PreparedScoring, request: ScoreRequest, paths: Sequence[str], progress: Progress = ignore_progress
) -> Iterator[NamedScores]:
    """Yield each submission as soon as it is scored, or found to be faulty."""
    for name, path in zip(name_submissions(paths), paths, strict=True):
        try:
            scores = _prepare_submission(prepared, request, path).score(progress)
        except SubmissionError as error:
            yield NamedScores(name, None, str(error))
        else:
            yield NamedScores(name, scores)


def _prepare_submission(prepared: PreparedScoring, request: ScoreRequest, path: str) -> PreparedScoring:
    results = resolve_address(path, SubmissionError)
    refuse_packed(results)
    scorers = prepared.scorers
    if request.jobs == "auto" and request.phase is None:
        jobs = count_processes("auto", results, prepared.truth)
        scorers = {split: replace(scorer, rules=replace(scorer.rules, jobs=jobs)) for split, scorer in scorers.items()}
    return replace(prepared, results=results, scorers=scorers, request=replace(request, results=path))
