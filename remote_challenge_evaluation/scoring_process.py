"""The process that scores: without a token in its environment, and with limits on what it may use.

usage: scoring_process.py describe CHOICE | annotations CHOICE | score ANSWER LOG
CHOICE is JSON, and so is what `describe` and `annotations` print.
`score` reads its request from its standard input and writes the answer to the
descriptor ANSWER; its standard output and error are the participant's log, the descriptor LOG is the operator's.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from .host_program import limit
from .scoring_messages import AnnotationReport, ScoredPhase, ScorerChoice, ScoringAnswer, ScoringRequest

if TYPE_CHECKING:
    from segjudge.evaluation_script.scoring.phase import Phase


def main() -> None:
    """Answer one request."""
    if sys.argv[1] != "score":
        describe = _describe_phases if sys.argv[1] == "describe" else _read_annotations
        print(json.dumps(describe(json.loads(sys.argv[2]))))
        return
    answer_descriptor, log_descriptor = (int(word) for word in sys.argv[2:4])
    request = cast("ScoringRequest", json.load(sys.stdin.buffer))
    limit(request["memory"])
    # What the scorers tell the operator must not reach the participant's log: it can show ground truth.
    sys.__stderr__ = os.fdopen(log_descriptor, "w", encoding="utf-8")  # type: ignore[misc]
    with os.fdopen(answer_descriptor, "w", encoding="utf-8") as file:
        json.dump(_score(request), file)


def _describe_phases(choice: ScorerChoice) -> dict[str, ScoredPhase]:
    """Return the phases for a parent that does not import the scorers."""
    from segjudge.evaluation_script.files.problems import HostError
    from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
    from segjudge.system.errors import UsageError

    try:
        if choice["evaluate"] or (choice["bundle"] and find_bundle(choice["bundle"]).is_foreign):
            from .host_scorer import describe_phases

            return describe_phases(choice)
        phases = _phases_of(choice["bundle"])
    except (HostError, UsageError) as error:
        raise SystemExit(str(error)) from None
    return {
        phase.codename: {
            "annotation": os.path.basename(phase.annotations),
            "labels": {split.codename: list(split.metrics) for split in phase.splits},
            "seconds": phase.seconds,
        }
        for phase in phases
    }


def _phases_of(bundle: str) -> tuple[Phase, ...]:
    """Return the phases that our scorers score: the bundle's, or without a bundle the installed ones."""
    if bundle:
        from segjudge.platforms.evalai.bundle.bundle_source import find_bundle

        return find_bundle(bundle).phases()
    from segjudge.evaluation_script.phases import PHASES

    return PHASES


def _read_annotations(choice: ScorerChoice) -> AnnotationReport:
    """Return what the annotation file of each phase holds, or its problem; every mask is read."""
    from segjudge.evaluation_script.files.problems import HostError

    facts, problems = list[str](), list[str]()
    for phase in sorted(_phases_of(choice["bundle"]), key=lambda phase: phase.codename):
        path = os.path.join(choice["annotations"], os.path.basename(phase.annotations))
        try:
            facts.append(f"annotations of {phase.codename}: {_facts(phase, path)}")
        except HostError as error:
            problems.append(str(error) if path in str(error) else f"{path}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever a damaged file does to its reader
            problems.append(f"{path}: cannot be read ({type(error).__name__}: {error})")
    return {"facts": facts, "problems": problems}


def _facts(phase: Phase, path: str) -> str:
    """Return what an annotation file holds, in words; raise if it cannot be used to score the phase."""
    from segjudge.evaluation_script.main import open_truth
    from segjudge.evaluation_script.scoring.scorer import phase_scorer

    truths = open_truth(path, phase)
    scorers = [phase_scorer(phase, split, truths) for split in phase.splits]
    return ", ".join(f"{scorer.split} {scorer.truth.read_through()}" for scorer in scorers)


def _score(request: ScoringRequest) -> ScoringAnswer:
    from segjudge.evaluation_script.files.problems import HostError, SubmissionError
    from segjudge.evaluation_script.main import evaluate_phase
    from segjudge.platforms.evalai.rows import for_rest

    phase = next(phase for phase in _phases_of(request["bundle"]) if phase.codename == request["codename"])
    phase = replace(
        phase, report=False
    )  # its page would be in the result file, which EvalAI takes from no remote worker
    try:
        scored = evaluate_phase(phase, request["annotation"], request["submission"], request["submission_metadata"])
    except SubmissionError as error:
        return {"refused": str(error)}
    except HostError as error:
        return {"incident": str(error)}
    left = {name: scored[name] for name in ("submission_result", "submission_metadata")}
    return {"accuracies": for_rest(scored["result"], phase.hidden), "metadata": left}


if __name__ == "__main__":
    main()
