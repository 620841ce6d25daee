"""The scoring of one file by a challenge's rules, in a process without this one's keys."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from segjudge.ledger.rows import Scores
from segjudge.platforms.evalai.bundle.bundle_source import BundleSource
from segjudge.platforms.evalai.hosted_worker.process import (
    DiedError,
    HungError,
    ProcessTerms,
    ScoringOrder,
    ScoringProcess,
)
from segjudge.platforms.evalai.rows import ShapeError, check_accuracies
from segjudge.system import IMPORT_ROOT
from segjudge.system.processes import clean_environment

#: The module whose `evaluate()` scores, as in the remote worker; only its process imports it.
_MODULE = "segjudge.remote_challenge_evaluation.evaluate"
#: The maximum bytes of memory of the process, and the seconds that it has beyond the phase's limit.
_MEMORY, _MARGIN = 4 << 30, 60.0
_TOO_LONG = "Scoring took longer than this challenge allows and was stopped. Send a smaller submission."


@dataclass(frozen=True)
class Answer:
    """The answer about one file: scores, the sentence that rejects it, or a fault of ours for the organisers."""

    scores: Scores | None = None
    refused: str = ""
    fault: str = ""
    version: str = ""


def score_file(source: BundleSource, codename: str, path: str, folder: str) -> Answer:
    """Score a file in a phase, with a folder for temporary files."""
    phase = source.phase(codename)
    order: ScoringOrder = {"worker": "remote", "memory": _MEMORY, "folder": IMPORT_ROOT, "module": _MODULE}
    environment = clean_environment(
        TMPDIR=folder, BUNDLE=source.root, PYTHONPATH=IMPORT_ROOT, PYTHONDONTWRITEBYTECODE="1"
    )
    request = {
        "submission": path,
        "annotation": os.path.join(source.root, phase.annotations),
        "phase": codename,
        "metadata": {},
        "hidden": sorted(phase.hidden),
    }
    process = ScoringProcess([sys.executable, "-P"], order, ProcessTerms(environment, folder))
    try:
        answer = process.ask(request, phase.seconds + _MARGIN)
    except HungError:
        return Answer(refused=_TOO_LONG)
    except DiedError as death:
        return Answer(fault=f"the scorer gave no answer: {death}\n{process.log()}")
    finally:
        process.close()
    if refused := str(answer.get("refused") or ""):
        return Answer(refused=refused)
    try:
        if incident := answer.get("incident"):
            raise ShapeError(str(incident))
        labels = {split.codename: list(split.metrics) for split in phase.splits}
        rows = check_accuracies(answer.get("accuracies"), labels)
    except ShapeError as error:
        return Answer(fault=f"{error}\n{process.log()}")
    scores = {row["split"]: {label: float(value) for label, value in row["accuracies"].items()} for row in rows}
    return Answer(scores, version=_version_of(answer))


def _version_of(answer: Mapping[str, Any]) -> str:
    metadata = answer.get("metadata") or {}
    versions = (metadata.get("submission_metadata") or {}).get("versions") or {}
    return str(versions.get("segjudge", ""))
