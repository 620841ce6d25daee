"""Several submissions on one truth, opened once; each is scored as if alone, or has a fault."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from segjudge.evaluation_script.families.base.family import FamilyProtocol, Progress, Values, ignore_progress
from segjudge.evaluation_script.files import SubmissionError
from segjudge.evaluation_script.scoring.answer import limit_warnings
from segjudge.system.addresses import digest_of, resolve_address
from segjudge.system.files import name_of

from .score_files import make_scores_document
from .scores import PreparedScoring, ScoreRequest, count_processes, prepare, refuse_packed


class ScoredSubmissions(NamedTuple):
    """Several submissions scored on one truth, without their counts."""

    #: The oddities of the truth.
    notes: list[str]
    #: The protocols by split.
    protocols: dict[str, FamilyProtocol]
    #: The name of each submission, and its metrics by split or the reason why it has none.
    rows: list[tuple[str, dict[str, Values] | str]]
    warnings: list[str]
    #: The documents of all submissions, if the request is identified.
    documents: list[dict[str, Any]]


def score_several(
    request: ScoreRequest, paths: Sequence[str], progress: Progress = ignore_progress
) -> ScoredSubmissions:
    """Score submissions one after the other on the truth of a request, which is opened once."""
    prepared = prepare(replace(request, results=""), progress)
    if request.is_identified:
        prepared = replace(prepared, digests=(digest_of(prepared.truth), ""))
    protocols = {split: scorer.rules.protocol for split, scorer in prepared.scorers.items()}
    submissions = ScoredSubmissions(prepared.notes, protocols, [], [], [])
    for name, path in zip(name_submissions(paths), paths, strict=True):
        document: dict[str, Any] = {"name": name}
        try:
            scores = _prepare_submission(prepared, request, path).score(progress)
        except SubmissionError as error:
            submissions.rows.append((name, str(error)))
            document["error"] = str(error)
        else:
            submissions.rows.append((name, scores.metrics))
            submissions.warnings.extend(f"{name}: {line}" for line in limit_warnings(scores.warnings))
            document |= make_scores_document(scores) if request.is_identified else {}
        submissions.documents.append(document)
    return submissions


def name_submissions(paths: Sequence[str]) -> list[str]:
    """Return the names of submissions: their file names, or their paths if names repeat."""
    names = [name_of(path) for path in paths]
    return names if len({*names}) == len(names) else list(map(os.fspath, paths))


def _prepare_submission(prepared: PreparedScoring, request: ScoreRequest, path: str) -> PreparedScoring:
    results = resolve_address(path, SubmissionError)
    refuse_packed(results)
    scorers = prepared.scorers
    if request.jobs == "auto" and request.phase is None:
        jobs = count_processes("auto", results, prepared.truth)
        scorers = {split: replace(scorer, rules=replace(scorer.rules, jobs=jobs)) for split, scorer in scorers.items()}
    return replace(prepared, results=results, scorers=scorers, request=replace(request, results=path))
