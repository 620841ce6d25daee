"""The masks of one sequence, from any kind of file, as stacks of frames.

Truth and predictions are read by the same code: label images (one PNG per frame), object folders (one PNG per object
and frame), or run lengths in JSON.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Callable, Collection, Dict, FrozenSet, Iterable, List, Mapping, Optional, Set

import numpy as np

from ..files import Files, Flaw, Problem, Problems, name_list, printable, quantity
from . import png
from . import run_lengths as rle
from .backend import MergingRule, backend, too_many_objects
from .stack import Array, Size, Stack, Stacks, crop, empty_labels, labels_in, overlaps, pack, words_across

#: The required frames of each object.
RequiredFrames = Dict[str, List[str]]

_ADD_FRAMES = "Add a PNG for each frame, black if no object is visible"

#: The maximum number of 16-bit labels.
_MOST_LABELS = 65_535


#: The number of files examined for a note, and the number of pixels above which an image is not decoded for it.
_MOST_NOTED, _MOST_PIXELS = 8, 1 << 24


def note_channels(files: Files, names: Iterable[str], is_merged: Callable[[Files, str], bool]) -> List[str]:
    """Return a note if pictures hold the label in each of several channels; `is_merged` examines a few of them."""
    members = sorted(names)
    chosen = [members[index * len(members) // _MOST_NOTED] for index in range(_MOST_NOTED)] if members else []
    for name in dict.fromkeys(chosen):
        with suppress(Flaw):  # reported where the picture is read
            if is_merged(files, name):
                picture = f"{name} is a colour picture with equal channels, which were read as one channel"
                return [f"{picture}. Save labels in grey: OpenCV's imwrite of (height, width), or PIL's mode L"]
    return []


def is_coloured(files: Files, name: str) -> bool:
    """Return whether a PNG has colour channels."""
    return png.is_coloured(next(iter(files.read_chunks(name)), b""))


def holds_equal_channels(files: Files, name: str) -> bool:
    """Return whether a PNG has colour channels that all hold the label, instead of the DAVIS palette."""
    head = next(iter(files.read_chunks(name)), b"")
    size = png.size_of(head) if png.is_coloured(head) else (0, 0)
    if not 0 < size[0] * size[1] <= _MOST_PIXELS:
        return False
    png.check_length(files.sizes[name], size)
    return png.holds_equal_channels(files.read(name), size)


class MaskFiles:
    """The masks of one sequence."""

    def missing_frames(self, required: RequiredFrames) -> List[Problem]:
        """Return a problem for each folder that lacks required frames."""
        del required
        return []

    def frames(self) -> Set[str]:
        """Return the names of all frames that were sent."""
        raise NotImplementedError

    def read_stacks(self, frames: List[str], size: Size, problems: Problems) -> Optional[Stacks]:
        """Return every object in these frames; None if any has problems, which are added."""
        raise NotImplementedError


class LabelImages(MaskFiles):
    """`sequence/00000.png`: each pixel holds the number of its object."""

    def __init__(self, files: Files, members: Dict[str, str], limit: int = _MOST_LABELS) -> None:
        self._files, self.members, self._limit = files, members, limit

    def missing_frames(self, required: RequiredFrames) -> List[Problem]:
        return _list_missing(self.members, sorted({frame for frames in required.values() for frame in frames}))

    def frames(self) -> Set[str]:
        return set(self.members)

    def read_stacks(self, frames: List[str], size: Size, problems: Problems) -> Optional[Stacks]:
        names = [self.members[frame] for frame in frames]
        stacks, faults = backend().read_objects(self._files, names, size, self._limit)
        _report(faults, problems)
        return None if faults else stacks


class ObjectMasks(MaskFiles):
    """Masks that are submitted object by object."""

    #: The sequence, if each of its pixels may belong to only one object; "" if objects may overlap.
    _disjoint_in: str
    _unread: FrozenSet[str] = frozenset()
    #: The objects that score 0 because some of their masks cannot be compared.
    faulty: FrozenSet[str] = frozenset()

    def leave_out(self, labels: Iterable[str]) -> None:
        """Skip the masks of these objects."""
        self._unread = frozenset(labels)

    def labels(self) -> Iterable[str]:
        """Return the labels of all objects."""
        raise NotImplementedError

    def read_stack(self, label: str, frames: List[str], size: Size, problems: Problems) -> Optional[Stack]:
        """Return one object in these frames; None if a mask has problems, which are added."""
        raise NotImplementedError

    def read_stacks(self, frames: List[str], size: Size, problems: Problems) -> Optional[Stacks]:
        stacks: Stacks = {}
        complete = True
        for label in self.labels():
            if label in self._unread:
                continue
            stack = self.read_stack(label, frames, size, problems)
            if stack is None:
                complete = False
            elif stack.words.size:
                stacks[label] = stack
        if complete and self._disjoint_in:
            complete = _are_disjoint(stacks, self._disjoint_in, frames, size, problems)
        return stacks if complete else None


class ObjectFolders(ObjectMasks):
    """`sequence/object/00000.png`: one folder per object; every non-zero pixel belongs to it."""

    def __init__(
        self,
        files: Files,
        members: Dict[str, Dict[str, str]],
        problems: Problems,
        limit: int = _MOST_LABELS,
        disjoint_in: str = "",
        *,
        many_values: bool = False,
    ) -> None:
        self._files, self.members, self._disjoint_in = files, members, disjoint_in
        self._rule = _ANY_VALUES if many_values else _ONE_OBJECT
        if len(members) > limit:
            problems.add(too_many_objects(next(iter(next(iter(members.values())).values())), len(members), limit))

    def missing_frames(self, required: RequiredFrames) -> List[Problem]:
        return [
            problem
            for label, frames in required.items()
            if label in self.members
            for problem in _list_missing(self.members[label], frames)
        ]

    def frames(self) -> Set[str]:
        return {frame for members in self.members.values() for frame in members}

    def labels(self) -> Iterable[str]:
        return self.members

    def read_stack(self, label: str, frames: List[str], size: Size, problems: Problems) -> Optional[Stack]:
        names = [self.members[label].get(frame) for frame in frames]
        stack, faults = backend().read_object(self._files, names, size, self._rule)
        _report(faults, problems)
        return None if faults else stack

    def read_values(self, label: str, frame: str, size: Size) -> Array:
        """Return the values of an object's mask that `read_stack` could read."""
        return backend().read_labels(self._files.read(self.members[label][frame]), size)


class GreyFolders(ObjectFolders):
    """`sequence/object/00000.png`: one folder per object, whose pixel values matter."""

    def fits(self, label: str, sizes: Mapping[str, Size]) -> bool:
        """Return whether an object has a mask of the right size in each of these frames."""
        members = self.members.get(label, {})
        return all(frame in members and self._has_size(members[frame], size) for frame, size in sizes.items())

    def _has_size(self, name: str, size: Size) -> bool:
        try:
            return png.size_of(next(iter(self._files.read_chunks(name)), b"")) == size
        except Flaw:  # reported where the mask is read
            return True

    def read_stack(self, label: str, frames: List[str], size: Size, problems: Problems) -> Optional[Stack]:
        block, complete = empty_labels(len(frames), size, bool), True
        for flags, frame in zip(block, frames):
            name = self.members[label][frame]
            try:
                flags[:, : size[1]] = self._read_greys(name, size) != 0
            except Flaw as flaw:
                problems.add(flaw.as_problem(name))
                complete = False
        return crop(pack(block), size) if complete else None

    def read_greys(self, label: str, frame: str, size: Size) -> Array:
        """Return the grey values of a mask that `read_stack` could read."""
        return self._read_greys(self.members[label][frame], size)

    def _read_greys(self, name: str, size: Size) -> Array:
        png.check_length(self._files.sizes[name], size)
        data = self._files.read(name)
        is_grey_of_8_bits = png.sample_kind_of(data) == (8, png.GREY)
        return backend().read_labels(data, size) if is_grey_of_8_bits else png.read_greys(data, size)


def _report(faults: List[Problem], problems: Problems) -> None:
    for fault in faults:
        problems.add(fault)


def _is_one_object(values: Collection[int]) -> bool:
    """Return True; raises a Flaw if a one-object mask holds more than two values."""
    if len(values) > 2:
        raise Flaw("holds more than two values", "Save the mask of one object as 0 and 255")
    return True


def _one_object(labels: Array) -> Array:
    values = [labels.min(), labels.max()] if labels.size else []
    if values and not np.logical_or(labels == values[0], labels == values[1]).all():
        values = np.unique(labels).tolist()  # sorting all pixels takes most of the time
    _is_one_object(values)
    return np.not_equal(labels, 0)


_ONE_OBJECT = MergingRule(_one_object, _is_one_object)
_ANY_VALUES = MergingRule(lambda labels: labels != 0, lambda _: True)


def _are_disjoint(stacks: Stacks, sequence: str, frames: List[str], size: Size, problems: Problems) -> bool:
    """Return whether the objects are disjoint; report the first frame where they are not."""
    occupied = np.zeros((len(frames), size[0], words_across(size[1])), np.uint64)
    for label, stack in stacks.items():
        _, rows, across = stack.words.shape
        window = occupied[:, stack.top : stack.top + rows, stack.column : stack.column + across]
        shared = (window & stack.words).any(axis=(1, 2))
        if shared.any():
            other_label = next(name for name in stacks if name != label and overlaps(stacks[name], stack))
            fault = f"objects {printable(other_label)} and {printable(label)} share pixels"
            frame_name = f"{sequence}, frame {frames[int(shared.argmax())]}"
            problems.add(Problem(frame_name, fault, "Give each pixel to one object"))
            return False
        window |= stack.words
    return True


class SalientImages(LabelImages):
    """One unnumbered mask, written as 0 and 1, 0 and 255, or grey levels cut at one half."""

    NAME = "salient"
    #: The lowest foreground grey level.
    GREY = 127

    def read_stacks(self, frames: List[str], size: Size, problems: Problems) -> Optional[Stacks]:
        names: List[Optional[str]] = [self.members[frame] for frame in frames]
        stack, faults = backend().read_object(self._files, names, size, _SALIENT)
        _report(faults, problems)
        return None if faults else {self.NAME: stack}


def _is_salient(values: Collection[int]) -> bool:
    """Return whether a mask holds only 0 and 1, or only 0 and 255."""
    return {*values} <= {0, 1} or {*values} <= {0, 255}


def _foreground(labels: Array) -> Array:
    present = [value for value in (0, *labels_in(labels)) if (labels == value).any()]
    if len(present) <= 2 and not _is_salient(present):
        raise Flaw(f"holds the values {present}", "Save one salient mask as 0 and 255, or as 0 and 1")
    return labels >= (SalientImages.GREY if len(present) > 2 else 1)


_SALIENT = MergingRule(_foreground, _is_salient)


def _list_missing(members: Dict[str, str], frames: List[str]) -> List[Problem]:
    """Return one problem for all missing frames, if any."""
    missing = [frame for frame in frames if frame not in members]
    folder = next(iter(members.values()), "").rpartition("/")[0]
    if not missing:
        return []
    remedy = _rename_frame(members, frames, missing) or _ADD_FRAMES
    if len(missing) == 1:
        return [Problem(f"{folder}/{missing[0]}.png", "is missing", remedy)]
    names = name_list([f"{frame}.png" for frame in missing])
    return [Problem(folder, f"{len(missing)} frames are missing: {names}", remedy)]


def _rename_frame(members: Dict[str, str], frames: List[str], missing: List[str]) -> str:
    """Return the remedy if a file has the number of a missing frame, as in 1.png for 00001.png; "" if none has."""
    unused = {_number_of(frame): frame for frame in sorted(members.keys() - set(frames))}
    unused.pop("", None)
    for frame in missing:
        surplus = unused.get(_number_of(frame))
        if surplus is not None:
            return f"Name frames as the truth does: {printable(frame)}.png, not {printable(surplus)}.png"
    return ""


def _number_of(frame: str) -> str:
    """Return the last number in a frame's name, without leading zeros; "" if there is none."""
    digits = re.findall("[0-9]+", frame)
    return digits[-1].lstrip("0") or "0" if digits else ""


class RunLengths(ObjectMasks):
    """One sequence of a JSON submission: `{"object": [rle or null for each frame]}`."""

    def __init__(
        self, sequence: str, objects: object, frames: List[str], problems: Problems, *, overlapping: bool, limit: int
    ) -> None:
        self._sequence = sequence
        self._disjoint_in = "" if overlapping else sequence
        self._index = {frame: index for index, frame in enumerate(frames)}
        self._objects: Dict[str, List[object]] = {}
        if not isinstance(objects, dict):
            remedy = 'Write {"sequence": {"object": [rle or null, ...]}}'
            problems.add(Problem(sequence, "is not an object of objects", remedy))
        elif len(objects) > limit:
            problems.add(too_many_objects(sequence, len(objects), limit))
        else:
            for label, masks in objects.items():
                self._add(label, masks, problems)

    def _add(self, label: str, masks: object, problems: Problems) -> None:
        count = len(self._index)
        if not isinstance(masks, list) or len(masks) != count:
            fault = f"has {quantity(len(masks), 'mask')}" if isinstance(masks, list) else "is not a list of masks"
            remedy = f"Give one mask or null for each of the {count} frames, the first and last included"
            problems.add(Problem(f"{self._sequence}, object {label}", fault, remedy))
            self._objects[label] = [None] * count
        else:
            self._objects[label] = masks

    def frames(self) -> Set[str]:
        return set(self._index)

    def labels(self) -> Iterable[str]:
        return self._objects

    def read_stack(self, label: str, frames: List[str], size: Size, problems: Problems) -> Optional[Stack]:
        block, complete = empty_labels(len(frames), size, bool), True
        for flags, frame in zip(block, frames):
            index = self._index[frame]
            mask = self._objects[label][index]
            try:
                if mask is not None:
                    flags[:] = rle.flags(mask, size)[0]
            except Flaw as flaw:
                problems.add(flaw.as_problem(f"{self._sequence}, object {label}, mask {index}"))
                complete = False
        return crop(pack(block), size) if complete else None
