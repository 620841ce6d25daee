"""The wire format of sessions, and the untrusted masks of clients.

`docs/interactive-protocol.md` describes it. A submission is read within limits, and decoded within the limits of its
sequence.
"""

import json
import tempfile
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from segjudge.evaluation_script.files.problems import Flaw, quantity
from segjudge.evaluation_script.masks.stack import Array
from segjudge.system.python310 import NotRequired, Self

from .masks import EncodedMasks, decode_frames
from .reports import Summary
from .scribbles import Scribbles

HEALTH = "api/healthcheck"
SESSION = "api/session"
NEXT = "api/session/next"
SCRIBBLES = "api/session/scribbles"
INTERACTION = "api/evaluation/interaction"
REPORT = "api/evaluation/report"
FINISH = "api/evaluation/finish"

USER_KEY, SESSION_KEY = "User-Key", "Session-Key"
#: A header with a key that the client draws, so that a repeated request after a lost answer does not open a second
#: session.
REQUEST_KEY = "Request-Key"
#: A header of the answer to masks that were too late and do not count.
LATE = "Too-Late"

#: The decimals of every J and F that the server sends: with more, fewer queries would reveal the truth pixel by pixel.
DECIMALS = 4

#: The errors that are transmitted, with their statuses. Any other error is a defect of the server, including subclasses
#: (a KeyError) and errors of the operating system.
_ERRORS: dict[type[Exception], int] = {
    ValueError: 400,
    TypeError: 422,
    PermissionError: 401,
    LookupError: 404,
    RuntimeError: 409,
    OverflowError: 413,
    BlockingIOError: 429,
}
_KINDS = {kind.__name__: kind for kind in _ERRORS}


class NextAnswer(TypedDict):
    """The next interaction, or only `finished` once the session has finished."""

    sequence: str
    scribble_idx: int
    interaction: int
    new_sequence: bool
    finished: bool


class ScribblesAnswer(TypedDict):
    """The scribbles of an interaction."""

    sequence: str
    scribbles: Scribbles
    new_sequence: bool


class InteractionBody(TypedDict):
    """The masks of an interaction, as a client sends them."""

    sequence: str
    scribble_idx: int
    interaction: int
    pred_masks: EncodedMasks
    next_scribble_frame_candidates: NotRequired[list[int]]


def describe_error(error: Exception) -> tuple[dict[str, str], int]:
    """Return an error as sent: class name, message and status."""
    kind = type(error)
    if kind in _ERRORS and getattr(error, "errno", None) is None:
        return {"error": kind.__name__, "message": str(error)}, _ERRORS[kind]
    return {"error": "RuntimeError", "message": "This is a defect of the server; its log has details."}, 500


def error_of(body: object, status: int) -> Exception:
    """Return the sent error; unknown names do not become classes."""
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return _KINDS.get(str(body.get("error")), RuntimeError)(body["message"])
    return RuntimeError(f"The server answered with status {status} and an unknown error.")


def round_report(report: pd.DataFrame) -> pd.DataFrame:
    """Round a report for the client; J&F is computed from the rounded J and F, so it reveals nothing more."""
    j, f = (report[name].round(DECIMALS) for name in ("jaccard", "contour"))
    return report.assign(jaccard=j, contour=f, j_and_f=(0.5 * j + 0.5 * f).round(DECIMALS))


def round_summary(summary: Summary) -> Summary:
    """Round a summary as it leaves the server: seconds are exact."""
    curve = {
        name: values if name == "time" else [round(value, DECIMALS) for value in values]
        for name, values in summary["curve"].items()
    }
    at_threshold = {
        name: value if name == "threshold" else round(value, DECIMALS)
        for name, value in summary["metric_at_threshold"].items()
    }
    return {**summary, "auc": round(summary["auc"], DECIMALS), "metric_at_threshold": at_threshold, "curve": curve}


#: The bytes of a request, in memory or in a temporary file.
Body = tempfile.SpooledTemporaryFile[bytes]


@dataclass
class MaskSubmission:
    """A submission whose JSON was read; of its candidates, only the types are checked."""

    #: The interaction that the client names: a sequence, a set of scribbles, and the interaction's number.
    due: list[object]
    encoded_masks: object = None
    candidates: list[int] | None = None

    @classmethod
    def read(cls, body: Body, most_marks: int) -> Self:
        """Read a submission's JSON; its bytes and its text are freed before its masks are decoded."""
        body.seek(0)
        # The parser blocks all threads while it makes objects: a mask is an object with two entries, in a list.
        marks = 0
        while text := body.read(1 << 20):
            marks += sum(text.count(mark) for mark in (b"[", b"{", b","))
        if marks > most_marks:
            raise OverflowError("The body holds too many lists and objects for the masks of a sequence.")
        body.seek(0)
        try:
            values = json.loads(str(body.read(), "utf-8"))
        except (ValueError, RecursionError):
            raise ValueError("The body is not JSON in UTF-8.") from None
        if not isinstance(values, dict):
            raise ValueError("The body is not a JSON object.")
        candidates = values.get("next_scribble_frame_candidates")
        if candidates is not None and (
            not isinstance(candidates, list) or any(type(frame) is not int for frame in candidates)
        ):
            raise TypeError("next_scribble_frame_candidates is not a list of whole numbers.")
        due = [values.get(name) for name in ("sequence", "scribble_idx", "interaction")]
        return cls(due, values.get("pred_masks"), candidates)

    @property
    def due_text(self) -> str:
        """Return the interaction that the client names, for a sentence."""
        return ", ".join(map(_quote, self.due))

    def decode(self, shape: tuple[int, int, int], most_runs: int) -> Array:
        """Decode masks of a shape (frames, height, width), and free the encoded ones; raises ValueError."""
        masks_sent, self.encoded_masks = self.encoded_masks, None
        if not isinstance(masks_sent, dict) or not isinstance(masks_sent.get("frames"), list):
            raise ValueError('pred_masks is not {"size": [frames, height, width], "frames": […]}')
        size = masks_sent.get("size")
        if not are_equal(size, list(shape)):
            size_sent = f"({', '.join(map(_quote, size[:4]))})" if isinstance(size, list) else _quote(size)
            raise ValueError(f"y_true and y_pred must have the same shape. {shape} != {size_sent}")
        frames = masks_sent["frames"]
        if len(frames) != shape[0]:
            raise ValueError(f"pred_masks has {quantity(len(frames), 'frame')}, but its size says {shape[0]}")
        masks, runs = np.empty(shape, np.uint8), 0
        for frame, objects in enumerate(frames):
            _check_objects(frame, objects)
            runs += sum(len(encoded["counts"]) for encoded in objects)
            if runs > most_runs:
                raise OverflowError(f"pred_masks has more than {most_runs:,} characters of run lengths")
            try:
                masks[frame] = decode_frames([objects], (shape[1], shape[2]), overlapping=False)[0]
            except Flaw as flaw:
                raise ValueError(f"pred_masks, frame {frame}: {flaw.fault}. {flaw.remedy}.") from None
        return masks


def are_equal(values: object, expected: list[Any]) -> bool:
    """Return whether an untrusted value is the expected list; `true` is not 1."""
    return isinstance(values, list) and values == expected and bool not in map(type, values)


def _check_objects(frame: int, objects: object) -> None:
    subject = f"pred_masks, frame {frame}"
    if not isinstance(objects, list) or any(
        not isinstance(encoded, dict)
        or type(encoded.get("object_id")) is not int
        or not 1 <= encoded["object_id"] <= 255
        or not isinstance(encoded.get("counts"), str)
        for encoded in objects
    ):
        raise ValueError(f'{subject}: is not a list of {{"object_id": 1 to 255, "counts": "…"}}')
    ids = [encoded["object_id"] for encoded in objects]
    if len(ids) != len(set(ids)):
        raise ValueError(f"{subject}: names an object twice")


def _quote(value: object) -> str:
    """Return an untrusted value for a sentence: short and plain, without traversing it."""
    if isinstance(value, str):
        return ascii(value[:40])
    small = value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 10**18)
    return str(value) if small else f"a value of the type {type(value).__name__}"
