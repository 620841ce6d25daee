"""`evaluate()` in the form that EvalAI's starter worker for remote challenges calls; ours uses the same scorer.

A host of that worker installs this package and puts this file in the place of the worker's own `evaluate.py`.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from segjudge.evaluation_script import evaluate as score
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.main import phase_named
from segjudge.platforms.evalai.rows import for_rest


def evaluate(
    user_submission_file: str, phase_codename: str, test_annotation_file: str | None = None, **kwargs: object
) -> dict[str, Any]:
    """Score a submission; `result` is the list that the REST API takes, `[{split, show_to_participant, accuracies}]`.

    Without a truth it is searched in the folder ANNOTATIONS.  `submission_metadata` is the submission as the API
    shows it.  Any failure is an exception whose text may be shown to the participant: a SubmissionError is theirs, a
    HostError is ours and says no more than a number or what is missing.
    """
    truth = test_annotation_file or _annotation(phase_codename, os.environ.get("ANNOTATIONS", "annotations/"))
    scored = score(truth, user_submission_file, phase_codename, submission_metadata=kwargs.get("submission_metadata"))
    return {**scored, "result": for_rest(scored["result"], phase_named(phase_codename).hidden)}


def _annotation(phase_codename: str, folder: str) -> str:
    """Return the truth of a phase in a folder, by the name that `phases.py` gives it."""
    path = os.path.join(folder, os.path.basename(phase_named(phase_codename).annotations))
    if not os.path.exists(path):
        # Starter workers send the text of an exception to the participant, who is not to see our paths.
        sys.stderr.write(f"{path}: does not exist\n")
        raise HostError(f"There is no annotation file for {phase_codename}. The organisers have to set ANNOTATIONS.")
    return path
