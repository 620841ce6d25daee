"""The masks of one sequence, wherever they come from, as stacks of frames.

Truth and predictions are read by the same code: label images (one PNG a frame),
object folders (one PNG for each object and frame), or run lengths in JSON.
"""

from __future__ import annotations

import threading
from typing import Callable, Collection, Dict, FrozenSet, Iterable, List, Optional, Set, Tuple

import numpy as np

from ..files.limits import Files
from ..files.problems import Flaw, Problem, Problems, name_list, printable
from . import kernel, png
from . import run_lengths as rle
from .kernel import LABELS, PackedFrames
from .stack import (
    Array,
    Size,
    Stack,
    Stacks,
    crop,
    empty_labels,
    empty_stack,
    labels_in,
    overlaps,
    pack,
    stacks_of,
    words_across,
)

#: Whether a file may become one object, given which of 256 values it holds; otherwise numpy reads the block.
_MayMerge = Callable[[List[int]], bool]

#: Memory for more objects than this is not kept for the next block.
_MOST_KEPT = 32


class _Spare(threading.local):
    """Empty memory of the block before, which the next one of the same size uses again."""

    frames: Optional[PackedFrames] = None


_SPARE = _Spare()


def packed_masks(
    files: Files, names: List[Optional[str]], size: Size, most: int = LABELS, may_merge: Optional[_MayMerge] = None
) -> Optional[Tuple[Dict[str, Stack], List[Problem]]]:
    """Return the masks of each label in a block of files, and what is wrong with any of them.

    None where numpy has to read them: there is no kernel, a label takes two bytes, or there are more than `most`.
    Where labels may be merged, all but 0 become label 1.
    """
    library = kernel.library()
    if library is None:
        return None
    frames, _SPARE.frames = _SPARE.frames, None  # not kept where something is raised below
    if frames is None or frames.size != size or frames.most_frames < len(names):
        frames = PackedFrames(size, len(names), library)
    problems: List[Problem] = []
    complete = True
    for index, name in enumerate(names):
        try:
            complete = name is None or _add(frames, index, files, name, most, may_merge)
        except Flaw as flaw:
            problems.append(flaw.at(str(name)))
        if not complete:
            break
    stacks = frames.take(len(names))
    _SPARE.frames = frames if frames.objects <= _MOST_KEPT else None
    return (stacks, problems) if complete else None


def _add(frames: PackedFrames, index: int, files: Files, name: str, most: int, may_merge: Optional[_MayMerge]) -> bool:
    png.check_length(files.sizes[name], frames.size)
    data = files.read(name)
    rows, merged = png.filtered_rows(data, frames.size), may_merge is not None
    if rows is None or not frames.add(index, *rows, most, merged=merged):
        labels = png.read_labels(data, frames.size)
        if labels.dtype != np.uint8 or not frames.add(index, labels.tobytes(), 0, most, merged=merged):
            return False
    return may_merge is None or may_merge(np.flatnonzero(frames.seen).tolist())


#: The frames that are required of each object.
RequiredFrames = Dict[str, List[str]]

_ADD_FRAMES = "Add a PNG for each frame, black where no object is visible"

#: Labels that 16 bits can hold.
_MOST_LABELS = 65_535


class MaskFiles:
    """The masks of one sequence; what is wrong with them is added to `problems`."""

    problems: Problems

    def _sound(self, packed: Tuple[Stacks, List[Problem]]) -> Optional[Stacks]:
        """Return masks, or None where there are problems, which are added."""
        stacks, problems = packed
        for problem in problems:
            self.problems.add(problem)
        return None if problems else stacks

    def missing_frames(self, required: RequiredFrames) -> List[Problem]:
        """Return a problem for each folder that lacks required frames."""
        del required
        return []

    def frames(self) -> Set[str]:
        """Return the names of all frames that were sent."""
        raise NotImplementedError

    def stacks(self, frames: List[str], size: Size) -> Optional[Stacks]:
        """Return every object that occurs in these frames; None when one of them cannot be read."""
        raise NotImplementedError


class LabelImages(MaskFiles):
    """`sequence/00000.png`: each pixel holds the number of its object."""

    def __init__(self, files: Files, members: Dict[str, str], problems: Problems, most: int = _MOST_LABELS) -> None:
        self._files, self.members, self.problems, self._most = files, members, problems, most

    def missing_frames(self, required: RequiredFrames) -> List[Problem]:
        return _missing(self.members, sorted({frame for frames in required.values() for frame in frames}))

    def frames(self) -> Set[str]:
        return set(self.members)

    def _read(self, frame: str, size: Size) -> Optional[Array]:
        """Return the labels of one frame, or None when it cannot be read."""
        name = self.members[frame]
        try:
            return _labels(self._files, name, size)
        except Flaw as flaw:
            self.problems.add(flaw.at(name))
            return None

    def stacks(self, frames: List[str], size: Size) -> Optional[Stacks]:
        packed = packed_masks(self._files, [self.members[frame] for frame in frames], size, self._most)
        if packed is not None:
            return self._sound(packed)
        read = [self._read(frame, size) for frame in frames]
        images = [labels for labels in read if labels is not None]
        if len(images) < len(read):
            return None
        block = empty_labels(len(frames), size, np.result_type(*images))
        for index, labels in enumerate(images):
            block[index, :, : size[1]] = labels
        numbers = labels_in(block)
        if len(numbers) > self._most:
            numbers = [number for number in numbers if (block == number).any()]
        if len(numbers) > self._most:
            self.problems.add(too_many(self.members[frames[0]], len(numbers), self._most))
            return None
        return stacks_of(block, numbers, size)


class ObjectMasks(MaskFiles):
    """Masks that are sent object by object."""

    #: The sequence, where each of its pixels may belong to one object alone; "" where objects may overlap.
    _disjoint_in: str
    #: Objects that are not read.
    left_out: FrozenSet[str] = frozenset()

    def labels(self) -> Iterable[str]:
        """Return the labels of all objects."""
        raise NotImplementedError

    def read(self, label: str, frame: str, flags: Array, size: Size) -> bool:
        """Set an object's pixels in an empty frame; return False when its mask cannot be read."""
        raise NotImplementedError

    def stack(self, label: str, frames: List[str], size: Size) -> Optional[Stack]:
        """Return one object in these frames; None when a mask cannot be read."""
        return _stack_of(frames, size, lambda frame, flags: self.read(label, frame, flags, size))

    def stacks(self, frames: List[str], size: Size) -> Optional[Stacks]:
        stacks: Stacks = {}
        complete = True
        for label in self.labels():
            if label in self.left_out:
                continue
            stack = self.stack(label, frames, size)
            if stack is None:
                complete = False
            elif stack.words.size:
                stacks[label] = stack
        if complete and self._disjoint_in:
            complete = _are_disjoint(stacks, self._disjoint_in, frames, size, self.problems)
        return stacks if complete else None


class ObjectFolders(ObjectMasks):
    """`sequence/object/00000.png`: each folder holds one object, and every pixel that is not 0 belongs to it."""

    def __init__(
        self,
        files: Files,
        members: Dict[str, Dict[str, str]],
        problems: Problems,
        most: int = _MOST_LABELS,
        disjoint_in: str = "",
        *,
        many_values: bool = False,
    ) -> None:
        self._files, self.members, self.problems, self._disjoint_in = files, members, problems, disjoint_in
        self._many_values = many_values
        if len(members) > most:
            problems.add(too_many(next(iter(next(iter(members.values())).values())), len(members), most))

    def missing_frames(self, required: RequiredFrames) -> List[Problem]:
        return [
            problem
            for label, frames in required.items()
            if label in self.members
            for problem in _missing(self.members[label], frames)
        ]

    def frames(self) -> Set[str]:
        return {frame for members in self.members.values() for frame in members}

    def labels(self) -> Iterable[str]:
        return self.members

    def stack(self, label: str, frames: List[str], size: Size) -> Optional[Stack]:
        names = [self.members[label].get(frame) for frame in frames]
        may_merge = (lambda _: True) if self._many_values else _is_one_object
        packed = packed_masks(self._files, names, size, may_merge=may_merge)
        if packed is None:
            return super().stack(label, frames, size)
        stacks = self._sound(packed)
        return None if stacks is None else stacks.get("1", empty_stack(len(frames), size))

    def read(self, label: str, frame: str, flags: Array, size: Size) -> bool:
        name = self.members[label].get(frame)
        if name is None:
            return True
        try:
            labels = _labels(self._files, name, size)
            if not self._many_values:
                _is_one_object(np.unique(labels))
        except Flaw as flaw:
            self.problems.add(flaw.at(name))
            return False
        np.not_equal(labels, 0, out=flags[:, : size[1]])
        return True


def _stack_of(frames: List[str], size: Size, read: Callable[[str, Array], bool]) -> Optional[Stack]:
    """Return one object, whose pixels `read` sets in an empty frame; None where it returns False for any."""
    block, complete = empty_labels(len(frames), size, bool), True
    for flags, frame in zip(block, frames):
        complete = read(frame, flags) and complete
    return crop(pack(block), size) if complete else None


def _is_one_object(values: Collection[int]) -> bool:
    """Return True; raises Flaw where a mask of one object holds more than two values."""
    if len(values) > 2:
        raise Flaw("holds more than two values", "Save the mask of one object as 0 and 255")
    return True


def _are_disjoint(stacks: Stacks, sequence: str, frames: List[str], size: Size, problems: Problems) -> bool:
    """Return whether each pixel belongs to one object alone; report the first frame where one does not."""
    taken = np.zeros((len(frames), size[0], words_across(size[1])), np.uint64)
    for label, stack in stacks.items():
        _, rows, across = stack.words.shape
        window = taken[:, stack.top : stack.top + rows, stack.left : stack.left + across]
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
    """One mask without numbers, written as 0 and 1, as 0 and 255, or as grey levels cut at one half."""

    NAME = "salient"
    #: Grey levels from here on are foreground.
    GREY = 127

    def stacks(self, frames: List[str], size: Size) -> Optional[Stacks]:
        packed = packed_masks(self._files, [self.members[frame] for frame in frames], size, may_merge=_is_salient)
        if packed is not None:
            stacks = self._sound(packed)
            return None if stacks is None else {self.NAME: stacks.get("1", empty_stack(len(frames), size))}
        stack = _stack_of(frames, size, lambda frame, flags: self._set_foreground(frame, flags, size))
        return None if stack is None else {self.NAME: stack}

    def _set_foreground(self, frame: str, flags: Array, size: Size) -> bool:
        labels = self._read(frame, size)
        if labels is None:
            return False
        present = [value for value in (0, *labels_in(labels)) if (labels == value).any()]
        if len(present) <= 2 and not _is_salient(present):
            fault, remedy = f"holds the values {present}", "Save one salient mask as 0 and 255, or as 0 and 1"
            self.problems.add(Problem(self.members[frame], fault, remedy))
            return False
        np.greater_equal(labels, self.GREY if len(present) > 2 else 1, out=flags[:, : size[1]])
        return True


def _is_salient(values: Collection[int]) -> bool:
    """Return whether a mask holds no other values than 0 and 1, or 0 and 255."""
    return {*values} <= {0, 1} or {*values} <= {0, 255}


def _labels(files: Files, name: str, size: Size) -> Array:
    png.check_length(files.sizes[name], size)
    return png.read_labels(files.read(name), size)


def _missing(members: Dict[str, str], frames: List[str]) -> List[Problem]:
    """Return one problem for the frames that are missing, if any."""
    missing = [frame for frame in frames if frame not in members]
    folder = next(iter(members.values()), "").rpartition("/")[0]
    if not missing:
        return []
    if len(missing) == 1:
        return [Problem(f"{folder}/{missing[0]}.png", "is missing", _ADD_FRAMES)]
    names = name_list([f"{frame}.png" for frame in missing])
    return [Problem(folder, f"{len(missing)} frames are missing: {names}", _ADD_FRAMES)]


def too_many(where: str, count: int, most: int) -> Problem:
    """Return the problem of more objects than a phase allows."""
    return Problem(where, f"has {count} objects; this phase allows {most} in a sequence", "Send fewer objects")


class RunLengths(ObjectMasks):
    """One sequence of a JSON submission: `{"object": [rle or null for each frame]}`."""

    def __init__(
        self, sequence: str, objects: object, frames: List[str], problems: Problems, *, overlapping: bool, most: int
    ) -> None:
        self._sequence, self.problems = sequence, problems
        self._disjoint_in = "" if overlapping else sequence
        self._index = {frame: index for index, frame in enumerate(frames)}
        self._objects: Dict[str, List[object]] = {}
        if not isinstance(objects, dict):
            remedy = 'Write {"sequence": {"object": [rle or null, …]}}'
            problems.add(Problem(sequence, "is not an object of objects", remedy))
        elif len(objects) > most:
            problems.add(too_many(sequence, len(objects), most))
        else:
            for label, masks in objects.items():
                self._add(label, masks)

    def _add(self, label: str, masks: object) -> None:
        count = len(self._index)
        if not isinstance(masks, list) or len(masks) != count:
            fault = f"has {len(masks)} masks" if isinstance(masks, list) else "is not a list of masks"
            remedy = f"Give one mask or null for each of the {count} frames, the first and last included"
            self.problems.add(Problem(f"{self._sequence}, object {label}", fault, remedy))
            self._objects[label] = [None] * count
        else:
            self._objects[label] = masks

    def frames(self) -> Set[str]:
        return set(self._index)

    def labels(self) -> Iterable[str]:
        return self._objects

    def read(self, label: str, frame: str, flags: Array, size: Size) -> bool:
        index = self._index[frame]
        mask = self._objects[label][index]
        try:
            if mask is not None:
                flags[:] = rle.flags(mask, size)[0]
        except Flaw as flaw:
            self.problems.add(flaw.at(f"{self._sequence}, object {label}, mask {index}"))
            return False
        return True
