"""What a phase leaves for the page of a submission: intervals, and of mask sequences what was lost, where all may see.

It is read from the submission once more, by a process of its own within the phase's limits: whatever happens there,
the scores stay.
"""

from __future__ import annotations

import base64
import json
import time
from contextlib import closing
from typing import Any, Dict, List, Tuple

from ..families.base.reports import Report
from ..families.sequences.engine import OpenedSequences, cost
from ..families.sequences.losses import (
    ScoredSequence,
    SequenceView,
    has_kinds,
    scored_sequences,
    shares_of,
    view_sequence,
)
from ..families.sequences.metrics import SequenceReport
from ..families.sequences.protocols import SequenceProtocol
from ..masks.stream import width_for
from ..runner.guard import run_guarded
from ..runner.parallel import results_of_processes
from .answer import DECIMALS, shown_intervals
from .phase import DETAILS, Phase, PhaseSplit
from .scorer import Scorer

#: A split of a phase, its scorer, and its scores.
Scored = Tuple[PhaseSplit, Scorer, Report]

#: Bytes that the page may have, about; those that it has without masks; and those of a row in its tables.
PAGE, FIXED, ROW = 3_000_000, 250_000, 2_000
#: Masks have at most so many runs for each pixel of width, as a mean over frames; noise has more, and is left out.
RUNS = 40
#: Which part of the time that is left may be taken.
TIME = 0.8


def add_report(answer: Dict[str, Any], phase: Phase, scored: List[Scored], submission: str, deadline: float) -> str:
    """Add to an answer what a page of the submission needs; return what went wrong, for the log."""
    shown = answer["submission_result"]
    visible = [one for one in scored if not one[0].hidden]
    shown["intervals"] = [{split.codename: shown_intervals(phase, split, report)} for split, _, report in visible]
    if phase.detail == DETAILS[0]:
        return ""
    whole = phase.detail == DETAILS[2]
    if whole:
        shown["errors"] = [{split.codename: report.errors(split.metrics)} for split, _, report in visible]
    sequences = [one for one in visible if isinstance(one[2], SequenceReport)]
    seconds = TIME * max(deadline - time.monotonic(), 1.0)
    try:
        shown["losses"] = run_guarded(
            lambda _: _losses(sequences, submission, whole=whole), memory=phase.memory, seconds=seconds, say=_silent
        )
    except Exception as error:  # noqa: BLE001 - the scores stay, whatever a page lacks
        return f"{phase.codename}: the page of a submission lacks what was lost ({type(error).__name__}: {error})"
    return ""


def _silent(_: object) -> None:
    """Say nothing."""


def _losses(scored: List[Scored], submission: str, *, whole: bool) -> Dict[str, Any]:
    """Return of each split of mask sequences what was lost; not whole, what each kind takes of all, rounded."""
    rows = sum(len(scores) for _, _, report in scored for scores in report.rows().values())
    room = (PAGE - FIXED - ROW * rows) // max(len(scored), 1) if whole else 0
    found = {
        split.codename: _split_losses(submission, scorer, report, room)
        for split, scorer, report in scored
        if isinstance(report, SequenceReport)
    }
    for losses in [] if whole else found.values():
        losses["shares"] = [round(share, DECIMALS) for share in losses["shares"]]
    return found


def _split_losses(submission: str, scorer: Scorer, report: SequenceReport, room: int) -> Dict[str, Any]:
    protocol, entries = report.protocol, _Entries(room)
    with closing(scorer.open(submission)) as opened:
        if not isinstance(opened, OpenedSequences):
            raise TypeError(f"{protocol.name} is no protocol of sequences")
        found = scored_sequences(opened, report)
        frames = sum(len(one.truth.frames) for one in found)
        width = width_for(frames, 1, room, pictures=False) if room > 0 else 0

        def work(number: int) -> bytes:
            return json.dumps(_entry(found[number], protocol, width), allow_nan=False).encode()

        for data in results_of_processes(work, [cost(one.truth) for one in found], scorer.rules.jobs, _silent):
            entries.add(json.loads(data))
    kept = entries.kept()
    objects = [(one["shares"], one["unseen"]) for entry in kept for one in entry["objects"] if one["frames"]]
    return {
        "metric": "J&F" if "J&F-Mean" in protocol.metrics else "J",
        "exact": has_kinds(protocol),
        "shares": shares_of(objects, protocol),
        "smaller": any(block.size[1] > width for one in found for block in one.truth.blocks),
        "sequences": kept if width and entries.fit else [],
    }


def _entry(scored: ScoredSequence, protocol: SequenceProtocol, width: int) -> Dict[str, Any]:
    """Return what a sequence lost, with its streams, and with those that have no masks."""
    across = sum(min(width, block.size[1]) * (block.stop - block.start) for block in scored.truth.blocks)
    view = view_sequence(scored, protocol, "", width, most=RUNS * across)
    objects = [
        {
            "name": one.score.name,
            "category": view.losses.categories.get(one.score.name, ""),
            "unseen": one.score.unseen,
            "frames": len(one.score.frames),
            "area": one.area,
            "absent": one.absent,
            "shares": one.shares,
        }
        for one in view.losses.objects
    ]
    return {
        "name": view.losses.name,
        "lost": view.losses.lost,
        "objects": objects,
        "noise": any(side is not None and side.is_full for side in (view.truth, view.predicted)),
        "streams": _streams(view, bare=False),
        "bare": _streams(view, bare=True),
    }


def _streams(view: SequenceView, *, bare: bool) -> List[str]:
    """Return the streams of the truth and of the prediction as text."""
    streams = view.truth_stream(bare=bare), view.predicted_stream(bare=bare)
    return [base64.b64encode(stream).decode("ascii") for stream in streams]


class _Entries:
    """The entries of all sequences, with the masks of as many of the worst ones as there is room for."""

    def __init__(self, room: int) -> None:
        self._room, self._used = room, 0
        #: With masks and without, in the order of a page; the last ones lose theirs first.
        self._whole: Dict[Tuple[float, str], Dict[str, Any]] = {}
        self._bare: Dict[Tuple[float, str], Dict[str, Any]] = {}

    @property
    def fit(self) -> bool:
        """Whether there is room for the numbers of all frames."""
        return self._used <= self._room

    def add(self, entry: Dict[str, Any]) -> None:
        """Take a sequence."""
        self._whole[-entry["lost"], entry["name"]] = entry
        self._used += _size(entry["streams"])
        while self._whole and (not self.fit or max(self._whole) > min(self._bare, default=(1.0, ""))):
            last = max(self._whole)
            bare = self._bare[last] = self._whole.pop(last)
            self._used += _size(bare["bare"]) - _size(bare["streams"])
            bare["streams"] = bare["bare"]

    def kept(self) -> List[Dict[str, Any]]:
        """Return all sequences, the worst ones first."""
        found = {**self._whole, **self._bare}
        return [
            {
                "name": found[key]["name"],
                "objects": found[key]["objects"],
                "masks": key in self._whole and not found[key]["noise"],
                "streams": found[key]["streams"],
            }
            for key in sorted(found)
        ]


def _size(streams: List[str]) -> int:
    return sum(map(len, streams))
