"""`evaluate()` in the form of EvalAI's starter for remote challenges; this worker calls it too.

To use it with the starter's worker, install this package and replace the worker's `evaluate.py` with this file.
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.main import evaluate_phase, phase_named
from segjudge.platforms.evalai.rows import for_rest

if TYPE_CHECKING:
    from segjudge.evaluation_script.scoring.phase import Phase


def evaluate(
    user_submission_file: str, phase_codename: str, test_annotation_file: str | None = None, **kwargs: object
) -> dict[str, Any]:
    """Score a submission; `result` is the list that the REST API takes, `[{split, show_to_participant, accuracies}]`.

    The phases are those of the bundle BUNDLE, or else the installed ones.  Without a path, the truth is looked up
    in the folder ANNOTATIONS.  `submission_metadata` is the submission as the API shows it.  Any failure is an
    exception whose text may be shown to the participant: a SubmissionError for their mistakes, a HostError for ours,
    which gives only a number or names the missing file.
    """
    phase = _phase_named(phase_codename, os.environ.get("BUNDLE", ""))
    truth = test_annotation_file or _annotation(phase, os.environ.get("ANNOTATIONS", "annotations/"))
    # Its page would be in the result file, which EvalAI accepts from no remote worker.
    phase = replace(phase, report=False)
    with warnings.catch_warnings():
        warnings.showwarning = _show_to_operator
        answer = evaluate_phase(phase, truth, user_submission_file, kwargs.get("submission_metadata"))
    return {**answer, "result": for_rest(answer["result"], phase.hidden)}


def _show_to_operator(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,
) -> None:
    """Redirect libraries' warnings from stderr, which participants read."""
    (sys.__stderr__ or sys.stderr).write(warnings.formatwarning(message, category, filename, lineno, line))


def _phase_named(codename: str, bundle: str) -> Phase:
    if bundle:
        from segjudge.platforms.evalai.bundle.bundle_source import find_bundle

        for phase in find_bundle(bundle).phases():
            if phase.codename == codename:
                return phase
    return phase_named(codename)


def _annotation(phase: Phase, folder: str) -> str:
    """Return the path of a phase's truth, by its name in `phases.py`."""
    path = os.path.join(folder, os.path.basename(phase.annotations))
    if not os.path.exists(path):
        # Starter workers send an exception's text to the participant, who must not see our paths.
        (sys.__stderr__ or sys.stderr).write(f"{path}: does not exist\n")
        raise HostError(f"There is no annotation file for {phase.codename}. The organisers must set ANNOTATIONS.")
    return path
