"""The process that scores: no token in its environment, limits on what it may use, and an end with its parent.

usage: child.py describe | child.py annotations FOLDER | child.py score
A request for `score` comes as JSON on descriptor 3 and its answer goes to 4; the others print theirs.  For `score`,
descriptors 1 and 2 are the participant's log, 5 is the operator's.
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
    if sys.argv[1] == "annotations":
        print(json.dumps(_annotations(sys.argv[2])))
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
    from segjudge.evaluation_script.phases import PHASES

    return {
        phase.codename: {
            "annotation": os.path.basename(phase.annotations),
            "labels": {shown.codename: list(shown.metrics) for shown in phase.splits},
            "seconds": phase.seconds,
        }
        for phase in PHASES
    }


def _annotations(folder: str) -> dict[str, Any]:
    """For each phase what its annotation file holds, or what is wrong with it: every mask of it is read."""
    from segjudge.evaluation_script.errors import HostError
    from segjudge.evaluation_script.phases import PHASES

    found: dict[str, Any] = {}
    for phase in PHASES:
        path = os.path.join(folder, os.path.basename(phase.annotations))
        try:
            found[phase.codename] = {"facts": _facts(phase, path)}
        except HostError as error:
            text = str(error)
            found[phase.codename] = {"wrong": text if path in text else f"{path}: {text}"}
        except Exception as error:  # noqa: BLE001 - whatever a damaged file does to its reader
            found[phase.codename] = {"wrong": f"{path}: cannot be read ({type(error).__name__}: {error})"}
    return found


def _facts(phase: Any, path: str) -> str:
    """What is in an annotation file, in words; raises where a phase cannot be scored with it."""
    from segjudge.evaluation_script.errors import HostError
    from segjudge.evaluation_script.instance_protocols import INSTANCE_PROTOCOLS
    from segjudge.evaluation_script.main import open_truth
    from segjudge.evaluation_script.sequence_protocols import SEQUENCE_PROTOCOLS
    from segjudge.evaluation_script.sequence_truth import Split

    opened, words = open_truth(path), []
    for shown in phase.splits:
        split = opened.get(shown.codename) or (next(iter(opened.values())) if len(opened) == 1 else None)
        if split is None or (len(opened) == 1 < len(phase.splits) and shown.codename not in opened):
            raise HostError(f"{path}: has no split {shown.codename!r}, only {', '.join(opened)}")
        is_video = isinstance(split, Split)
        if shown.protocol not in (SEQUENCE_PROTOCOLS if is_video else INSTANCE_PROTOCOLS):
            held = "mask sequences" if is_video else "instances"
            raise HostError(f"{path}: holds {held}, which {shown.protocol} does not score")
        words.append(f"{shown.codename} {_read_through(split)}")
    return ", ".join(words)


def _read_through(split: Any) -> str:
    """Read all that a split holds."""
    if not hasattr(split, "sequences"):
        return f"{len(split.images.ids)} images"
    for sequence in split.sequences:
        for number in range(len(sequence.blocks)):
            sequence.read_block(number)
    return f"{len(split.sequences)} sequences of {sum(len(one.frames) for one in split.sequences)} frames"


def _scored(request: dict[str, Any]) -> dict[str, Any]:
    from segjudge.evalai.result_shapes import for_rest
    from segjudge.evaluation_script.errors import HostError, SubmissionError
    from segjudge.evaluation_script.main import phase_named
    from segjudge.remote_challenge_evaluation.evaluate import answer

    named = {"submission_metadata": request["submission_metadata"]}
    try:
        told = answer(request["submission"], request["codename"], request["annotation"], **named)
    except SubmissionError as error:
        return {"refused": str(error)}
    except HostError as error:
        return {"incident": str(error)}
    accuracies = for_rest(told["result"], phase_named(request["codename"]).hidden)
    return {"accuracies": accuracies, "submission_result": told.get("submission_result")}


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
