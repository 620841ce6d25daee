"""Masks of a frame in memory, from any array library, as packed masks."""

from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np

from segjudge.evaluation_script.files.problems import Flaw, SubmissionError, printable
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.stack import (
    Array,
    Stack,
    Stacks,
    crop,
    empty_labels,
    pack,
)
from segjudge.families.base.memory import named, refused
from segjudge.masks.run_lengths import runs_of_mask

#: The masks of a frame: labels (height, width), or of each object a boolean array, run lengths, or None.
FrameMasks = object


class FrameReader:
    """Packs masks in memory, from any array library."""

    def __init__(self, *, many_values: bool = False) -> None:
        """Pack masks of one object that hold a few values, where `many_values` says that the benchmark has such."""
        self._many_values = many_values

    def stacks(self, masks: FrameMasks, where: str) -> Stacks:
        """Return the objects of a frame; raises SubmissionError where these are no masks."""
        if isinstance(masks, Mapping):
            objects = named(masks.items(), where).items()
            stacks = {label: self._object(mask, f"{where}, object {printable(label)}") for label, mask in objects}
            return {label: stack for label, stack in stacks.items() if stack is not None and label != "0"}
        return backend().pack_labels(label_map(masks, where))

    def _object(self, mask: object, where: str) -> Stack | None:
        """Return one object, which is a boolean array or run lengths; None where it is not in the frame."""
        if mask is None:
            return None
        if isinstance(mask, Mapping):
            return _from_run_lengths(mask, where)
        flags = _array(mask, where)
        if not self._many_values:
            check_one_object(flags, where)
        block = empty_labels(1, flags.shape, bool)
        np.not_equal(flags, 0, out=block[0, :, : flags.shape[1]])
        return crop(pack(block), flags.shape)


def label_map(masks: object, where: str) -> Array:
    """Return labels (height, width), none below zero."""
    labels = _array(masks, where)
    if labels.dtype == bool:
        labels = labels.view(np.uint8)
    if labels.dtype == np.uint64 and labels.max() >= 1 << 63:
        raise refused(where, f"has the label {labels.max()}", "Number the objects from 1")
    if labels.dtype.kind == "i" and labels.min() < 0:
        raise refused(where, f"has the label {labels.min()}", "Number the objects from 1, with 0 as background")
    return labels


def run_lengths(mask: object, where: str) -> dict[str, Any]:
    """Return one mask, booleans or run lengths, as run lengths with their text."""
    if isinstance(mask, Mapping):
        counts = mask.get("counts")
        return {**mask, "counts": counts.decode("ascii", "replace") if isinstance(counts, bytes) else counts}
    flags = plain_array(mask, where)
    flags = _array(flags[0] if flags.ndim == 3 and len(flags) == 1 else flags, where)
    check_one_object(flags, where)
    return {"size": list(flags.shape), "counts": rle.compress(runs_of_mask(flags != 0))}


def _from_run_lengths(mask: Mapping[str, object], where: str) -> Stack:
    text = run_lengths(mask, where)["counts"]
    try:
        height, width = map(index, mask.get("size", ()))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        found = f"has the size {printable(mask.get('size'))}"
        raise refused(where, found, "Give run lengths as {'size': [height, width], 'counts': …}") from None
    if min(height, width) < 1 or height * width >= 1 << 31:
        raise refused(where, f"has the size {[height, width]}", "Give the height and width of the frame")
    block = empty_labels(1, (height, width), bool)
    try:
        block[0] = rle.flags({"size": [height, width], "counts": text}, (height, width))[0]
    except Flaw as flaw:
        raise SubmissionError.of(flaw.at(where)) from None
    return crop(pack(block), (height, width))


def check_one_object(values: Array, where: str) -> None:
    """Refuse a mask of one object that holds more than two values, as files of it are."""
    if values.dtype != bool and ((values != values.min()) & (values != values.max())).any():
        raise refused(where, "holds more than two values", "Give the mask of one object as booleans")


def plain_array(values: object, where: str) -> Array:
    """Return an array; tensors give one by the array protocol.  Refuse what none can be made of, and masked ones."""
    try:
        if np.ma.is_masked(values):
            found, remedy = "is a masked array, and no protocol knows such masks", "Fill it, with 255 where none counts"
            raise refused(where, found, remedy)
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise refused(
            where, f"cannot be read as an array ({error})", "Give it as an array in the CPU's memory"
        ) from None


def _array(values: object, where: str) -> Array:
    """Return an array of two dimensions of whole numbers or booleans."""
    array = plain_array(values, where)
    if array.dtype.kind not in "bui":
        raise refused(where, f"is of {array.dtype}", "Give labels as whole numbers, or masks as booleans")
    if array.ndim != 2 or not array.size:
        raise refused(where, f"has the shape {array.shape}", "Give each frame as (height, width)")
    return array
