"""Masks that a client sent: read within bounds, and decoded within those of the sequence they are for."""

import json
import tempfile
from dataclasses import dataclass

import numpy as np

from segjudge.evaluation_script.files.problems import Flaw
from segjudge.evaluation_script.masks.stack import Array
from segjudge.interactive.utils.mask import decode_frames

#: The bytes of a request, in memory or in a temporary file.
Body = tempfile.SpooledTemporaryFile[bytes]


@dataclass
class MaskSubmission:
    """A submission whose JSON was read; only the types of its candidates are checked."""

    #: The interaction that the client names: a sequence, a set of scribbles, and the interaction's number.
    due: list[object]
    encoded_masks: object = None
    candidates: list[int] | None = None

    def decode(self, shape: tuple[int, int, int], most_runs: int) -> Array:
        """Return the masks of a shape (frames, height, width), and drop what was sent; raises ValueError."""
        encoded, self.encoded_masks = self.encoded_masks, None
        if not isinstance(encoded, dict) or not isinstance(encoded.get("frames"), list):
            raise ValueError('pred_masks is not {"size": [frames, height, width], "frames": […]}')
        if encoded.get("size") != list(shape):
            size = encoded.get("size")
            sent = f"({', '.join(map(short_text, size[:4]))})" if isinstance(size, list) else short_text(size)
            raise ValueError(f"y_true and y_pred must have the same shape. {shape} != {sent}")
        frames = encoded["frames"]
        if len(frames) != shape[0]:
            raise ValueError(f"pred_masks has {len(frames)} frames, and its size says {shape[0]}")
        masks, runs = np.empty(shape, np.uint8), 0
        for frame, objects in enumerate(frames):
            _check_objects(frame, objects)
            runs += sum(len(one["counts"]) for one in objects)
            if runs > most_runs:
                raise OverflowError(f"pred_masks has more than {most_runs:,} characters of run lengths")
            try:
                masks[frame] = decode_frames([objects], (shape[1], shape[2]), overlapping=False)[0]
            except Flaw as flaw:
                raise ValueError(f"pred_masks, frame {frame}: {flaw.found}. {flaw.remedy}.") from None
        return masks


def read_submission(body: Body, most_marks: int) -> MaskSubmission:
    """Read a submission's JSON; its bytes and its text are freed before its masks are decoded."""
    body.seek(0)
    # The parser blocks all threads while it makes objects: a mask is an object with two entries, in a list.
    marks = 0
    while part := body.read(1 << 20):
        marks += sum(part.count(mark) for mark in (b"[", b"{", b","))
    if marks > most_marks:
        raise OverflowError("The body holds more lists and objects than masks of a sequence can need.")
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
    return MaskSubmission(due, values.get("pred_masks"), candidates)


def _check_objects(frame: int, objects: object) -> None:
    where = f"pred_masks, frame {frame}"
    if not isinstance(objects, list) or any(
        not isinstance(one, dict)
        or type(one.get("object_id")) is not int
        or not 1 <= one["object_id"] <= 255
        or not isinstance(one.get("counts"), str)
        for one in objects
    ):
        raise ValueError(f'{where}: is not a list of {{"object_id": 1 to 255, "counts": "…"}}')
    ids = [one["object_id"] for one in objects]
    if len(ids) != len(set(ids)):
        raise ValueError(f"{where}: names an object twice")


def short_text(value: object) -> str:
    """Return an untrusted value for a sentence: short, plain, and without walking through it."""
    if isinstance(value, str):
        return ascii(value[:40])
    small = value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 10**18)
    return str(value) if small else f"a value of the type {type(value).__name__}"
