"""`evaluate()` as EvalAI documents it for remote challenges, for hosts who copy only that; the worker calls it too."""

from __future__ import annotations

import os
from typing import Any

from evaluation_script import evaluate as score
from evaluation_script.errors import HostError
from evaluation_script.main import phase_named
from linejudge.evalai.shapes import for_rest


def evaluate(
    user_submission_file: str, phase_codename: str, test_annotation_file: str | None = None, **kwargs: Any
) -> list[dict[str, Any]]:
    """Score a submission; `[{split, show_to_participant, accuracies}]`, which the REST API takes.

    Without a truth it is looked for in the folder ANNOTATIONS.  `submission_metadata` is the submission as the API
    shows it.  Any failure is an exception with a sentence: a SubmissionError is the participant's, a HostError ours.
    """
    return for_rest(answer(user_submission_file, phase_codename, test_annotation_file, **kwargs)["result"])


def answer(
    user_submission_file: str, phase_codename: str, test_annotation_file: str | None = None, **kwargs: Any
) -> dict[str, Any]:
    """The same with everything else that scoring tells."""
    truth = test_annotation_file or annotation(phase_codename, os.environ.get("ANNOTATIONS", "annotations/"))
    return score(truth, user_submission_file, phase_codename, submission_metadata=kwargs.get("submission_metadata"))


def annotation(phase_codename: str, folder: str) -> str:
    """The truth of a phase in a folder, by the name that `phases.py` gives it."""
    name = os.path.basename(phase_named(phase_codename).annotations)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        raise HostError(f"{path}: there is no annotation file for {phase_codename}; set ANNOTATIONS")
    return path
