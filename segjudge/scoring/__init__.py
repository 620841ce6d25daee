"""Scoring from Python: `segjudge.score`, here or on a cluster, of files or masks in memory.

`request` opens, checks and scores results; `parts` writes and merges counts, `sharing` has them counted elsewhere, and
`arrays` counts masks in memory, all through the upload's Scorer. `scores` is what they return, with its tables, files
and page; `notebook` makes its view below a cell, and `figures` draws with matplotlib. `report` makes the page of a
truth or of a stored result, and `results_names` puts the name of results into messages. `segjudge.analysis` compares
several methods. These modules are imported on demand, because few commands need all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from segjudge.evaluation_script.families.base.family import ignore_progress

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from segjudge.evaluation_script.families.base.family import FamilyProtocol, Progress
    from segjudge.scoring.scores import Scores
    from segjudge.scoring.sharing import DaskClient

__all__ = [
    "arrays", "figures", "notebook", "parts", "records", "report", "request", "results_names", "score", "scores",
    "sharing",
]  # fmt: skip


def score(  # noqa: PLR0913 - published: the published options of results and truth
    results: str | os.PathLike[str],
    truth: str | os.PathLike[str],
    protocol: str | FamilyProtocol = "davis2017",
    *,
    subset: str = "",
    split: str = "",
    sequences: Iterable[str] | None = None,
    layout: str = "",
    unseen: str | os.PathLike[str] = "",
    categories: str | os.PathLike[str] = "",
    strict: bool = False,
    jobs: int | Literal["auto"] | None = None,
    executor: Executor | DaskClient | None = None,
    progress: Progress = ignore_progress,
) -> Scores:
    """Score results on a truth, exactly as a challenge with this protocol would.

    Args:
        results: a folder, zip, tar(.gz) or JSON with the predicted masks. Paths, here and below, may be
            addresses such as s3://bucket/results.zip.
        truth: a packed annotation file, or a dataset's folder or zip as it was published; for instances, COCO's
            JSON or a folder of Places-style PNGs.
        protocol: the name of a protocol, or one of its rows with changes.
        subset: the list of sequences to score, e.g. val; for a packed file, a split.
        split: the split to score (default: all).
        sequences: the sequences to score (default: all).
        layout: how a published dataset is laid out (default: as the protocol's dataset).
        unseen: a file with the names of unseen sequences or categories.
        categories: the file with the categories of Places-style PNGs.
        strict: whether warnings reject the results.
        jobs: the number of processes that share the scoring; "auto": one per usable core, or one if results and truth
            have less than 32 MB.
        executor: scores with the workers of any executor of `concurrent.futures`, or of a Dask client. They read the
            files themselves, and share `jobs` parts (default: some for each worker).
        progress: called with a name, the number of finished items, and the number of all items.

    Raises:
        SubmissionError: the results cannot be scored.
        HostError: the truth cannot be read.
        UsageError: the arguments contradict each other.

    """
    from segjudge.families.truths import TruthSource
    from segjudge.scoring.request import ScoreRequest, find_protocol, prepare, read_names
    from segjudge.system.arguments import FLAG, FUNCTION, SOURCE, TEXT, check_arguments, check_options

    check_arguments(SOURCE, results=results, truth=truth)
    check_options(SOURCE, unseen=unseen, categories=categories)
    check_options(TEXT, subset=subset, split=split, layout=layout)
    check_arguments(FLAG, strict=strict)
    check_arguments(FUNCTION, progress=progress)
    lists = os.fspath(unseen or ""), os.fspath(categories or "")
    source = TruthSource(os.fspath(truth), layout or "", subset or "", *lists)
    rules, names = find_protocol(protocol), read_names(sequences)
    request = ScoreRequest(os.fspath(results), source, rules, split or "", names, strict, jobs)
    if executor is not None:
        from segjudge.scoring.sharing import score_by_workers

        return score_by_workers(executor, request, progress)
    return prepare(request, progress).score(progress)
