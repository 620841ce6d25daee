"""The process that scores: no token in its environment, limits on what it may use, and an end with its parent.

usage: child.py describe | child.py score, with a request as JSON on descriptor 3 and the answer on 4.
Descriptors 1 and 2 are the participant's log, 5 is the operator's.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from typing import Any

_PDEATHSIG = 1
_FILE_BYTES = 4 << 30


def main() -> None:
    """One answer."""
    _die_with(os.getppid())
    if sys.argv[1] == "describe":
        print(json.dumps(_described()))
        return
    with os.fdopen(3, encoding="utf-8") as file:
        request = json.load(file)
    _limit(request["memory"])
    # What the scorers tell the operator must not reach the participant's log: it can show ground truth.
    sys.__stderr__ = os.fdopen(5, "w", encoding="utf-8")  # type: ignore[misc]
    with os.fdopen(4, "w", encoding="utf-8") as file:
        json.dump(_scored(request), file)


def _described() -> dict[str, Any]:
    """The phases, for a parent that is too slim to import them."""
    from evaluation_script.phases import PHASES

    return {
        phase.codename: {
            "annotation": os.path.basename(phase.annotations),
            "labels": {shown.codename: list(shown.metrics) for shown in phase.splits},
            "seconds": phase.seconds,
        }
        for phase in PHASES
    }


def _scored(request: dict[str, Any]) -> dict[str, Any]:
    from evaluation_script.errors import HostError, SubmissionError
    from linejudge.evalai.shapes import for_rest
    from remote_challenge_evaluation.evaluate import answer

    try:
        told = answer(
            request["submission"],
            request["codename"],
            request["annotation"],
            submission_metadata=request["submission_metadata"],
        )
    except SubmissionError as error:
        return {"refused": str(error)}
    except HostError as error:
        return {"incident": str(error)}
    return {"accuracies": for_rest(told["result"]), "submission_result": told.get("submission_result")}


def _die_with(parent: int) -> None:
    """A scorer whose worker was killed has nobody to tell."""
    try:
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return  # not Linux
    if os.getppid() != parent:
        os._exit(1)  # it died before we asked


def _limit(memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each thread reserves address space that it never uses
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


if __name__ == "__main__":
    main()
