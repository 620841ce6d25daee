"""The masks of one sequence, wherever they come from, as stacks of frames.

Truth and predictions are read by the same code: label images (one PNG a frame),
object folders (one PNG for each object and frame), or run lengths in JSON.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set

import numpy as np

from . import png, rle
from .archive_limits import Files
from .errors import Flaw, Problem, Problems, listed, printable
from .masks import Array, Size, Stack, cropped, empty_labels, overlaps, pack, words_across

Stacks = Dict[str, Stack]

#: Which frames are wanted of which objects.
Wanted = Dict[str, List[str]]

ADD_FRAMES = "Add a PNG for each frame, black where no object is visible"

#: Label images with more labels than this are searched for those that occur.
FEW = 24


class MaskFiles:
    """The masks of one sequence; what is wrong with them is added to `problems`."""

    problems: Problems

    def lacks(self, wanted: Wanted) -> List[Problem]:
        """What is missing of the frames that are to be scored."""
        raise NotImplementedError

    def frames(self) -> Set[str]:
        """The names of all frames that were sent."""
        raise NotImplementedError

    def stacks(self, frames: List[str], size: Size) -> Optional[Stacks]:
        """Every object that occurs in these frames; None when one of them cannot be read."""
        raise NotImplementedError


class LabelImages(MaskFiles):
    """`sequence/00000.png`: each pixel holds the number of its object."""

    def __init__(self, files: Files, members: Dict[str, str], problems: Problems, most: int = 65_535) -> None:
        self._files, self.members, self.problems, self._most = files, members, problems, most

    def lacks(self, wanted: Wanted) -> List[Problem]:
        frames = sorted({frame for frames in wanted.values() for frame in frames})
        return _missing(self.members, frames)

    def frames(self) -> Set[str]:
        return set(self.members)

    def labels(self, frame: str, size: Size) -> Optional[Array]:
        """The labels of one frame, or None when it cannot be read."""
        name = self.members[frame]
        try:
            return _labels(self._files, name, size)
        except Flaw as flaw:
            self.problems.add(flaw.at(name))
            return None

    def stacks(self, frames: List[str], size: Size) -> Optional[Stacks]:
        read = [self.labels(frame, size) for frame in frames]
        if any(labels is None for labels in read):
            return None
        images = [labels for labels in read if labels is not None]
        block = empty_labels(len(frames), size, np.result_type(*images))
        for place, labels in enumerate(images):
            block[place, :, : size[1]] = labels
        numbers = labels_in(block)
        if len(numbers) > self._most:
            self.problems.add(_too_many(self.members[frames[0]], len(numbers), self._most))
            return None
        stacks = {str(number): cropped(pack(block == number), size) for number in numbers}
        return {name: stack for name, stack in stacks.items() if stack.words.size}


class ObjectFolders(MaskFiles):
    """`sequence/object/00000.png`: each folder holds one object, and every pixel that is not 0 belongs to it."""

    def __init__(
        self, files: Files, members: Dict[str, Dict[str, str]], problems: Problems, most: int = 65_535, owner: str = ""
    ) -> None:
        self._files, self.members, self.problems = files, members, problems
        #: The sequence whose pixels belong to one object each; "" where objects may overlap.
        self._owner = owner
        if len(members) > most:
            problems.add(_too_many(next(iter(next(iter(members.values())).values())), len(members), most))

    def lacks(self, wanted: Wanted) -> List[Problem]:
        return [
            problem
            for label, frames in wanted.items()
            if label in self.members
            for problem in _missing(self.members[label], frames)
        ]

    def frames(self) -> Set[str]:
        return {frame for members in self.members.values() for frame in members}

    def stacks(self, frames: List[str], size: Size) -> Optional[Stacks]:
        stacks: Stacks = {}
        complete = True
        for label, members in self.members.items():
            block = empty_labels(len(frames), size, bool)
            for place, frame in enumerate(frames):
                if frame in members and not self._fill(block[place], members[frame], size):
                    complete = False
            if block.any():
                stacks[label] = cropped(pack(block), size)
        if complete and self._owner:
            complete = _are_apart(stacks, self._owner, frames, size, self.problems)
        return stacks if complete else None

    def _fill(self, flags: Array, name: str, size: Size) -> bool:
        try:
            labels = _labels(self._files, name, size)
            if len(np.unique(labels)) > 2:
                raise Flaw("holds more than two values", "Save the mask of one object as 0 and 255")
        except Flaw as flaw:
            self.problems.add(flaw.at(name))
            return False
        np.not_equal(labels, 0, out=flags[:, : size[1]])
        return True


class RunLengths(MaskFiles):
    """One sequence of a JSON submission: `{"object": [rle or null for each frame]}`."""

    def __init__(
        self, sequence: str, objects: Any, frames: List[str], problems: Problems, *, overlapping: bool, most: int
    ) -> None:
        self._sequence, self.problems, self._overlapping = sequence, problems, overlapping
        self._index = {frame: place for place, frame in enumerate(frames)}
        self._objects: Dict[str, List[Any]] = {}
        if not isinstance(objects, dict):
            remedy = 'Write {"sequence": {"object": [rle or null, …]}}'
            problems.add(Problem(sequence, "is not an object of objects", remedy))
        elif len(objects) > most:
            problems.add(_too_many(sequence, len(objects), most))
        else:
            for name, masks in objects.items():
                self._take(name, masks)

    def _take(self, name: str, masks: Any) -> None:
        count = len(self._index)
        if not isinstance(masks, list) or len(masks) != count:
            found = f"has {len(masks)} masks" if isinstance(masks, list) else "is not a list of masks"
            remedy = f"Give one mask or null for each of the {count} frames, the first and last included"
            self.problems.add(Problem(f"{self._sequence}, object {name}", found, remedy))
        elif name != "0":
            self._objects[name] = masks

    def lacks(self, wanted: Wanted) -> List[Problem]:
        del wanted  # every list was as long as the truth
        return []

    def frames(self) -> Set[str]:
        return set(self._index)

    def stacks(self, frames: List[str], size: Size) -> Optional[Stacks]:
        stacks: Stacks = {}
        complete = True
        for name, masks in self._objects.items():
            block = empty_labels(len(frames), size, bool)
            for row, frame in enumerate(frames):
                place = self._index[frame]
                if masks[place] is not None and not self._fill(block[row], masks[place], size, name, place):
                    complete = False
            if block.any():
                stacks[name] = cropped(pack(block), size)
        if complete and not self._overlapping:
            complete = _are_apart(stacks, self._sequence, frames, size, self.problems)
        return stacks if complete else None

    def _fill(self, flags: Array, mask: Any, size: Size, name: str, place: int) -> bool:
        try:
            flags[:] = rle.flags(mask, size)[0]
        except Flaw as flaw:
            self.problems.add(flaw.at(f"{self._sequence}, object {name}, mask {place}"))
            return False
        return True


def _are_apart(stacks: Stacks, sequence: str, frames: List[str], size: Size, problems: Problems) -> bool:
    """Does each pixel belong to one object?"""
    taken = np.zeros((len(frames), size[0], words_across(size[1])), np.uint64)
    for name, stack in stacks.items():
        _, rows, across = stack.words.shape
        here = taken[:, stack.top : stack.top + rows, stack.left : stack.left + across]
        shared = (here & stack.words).any(axis=(1, 2))
        if shared.any():
            other = next(first for first in stacks if first != name and overlaps(stacks[first], stack))
            found = f"objects {printable(other)} and {printable(name)} share pixels"
            where = f"{sequence}, frame {frames[int(shared.argmax())]}"
            problems.add(Problem(where, found, "Give each pixel to one object"))
            return False
        here |= stack.words
    return True


class SalientImages(LabelImages):
    """One mask without numbers, written as 0 and 1, as 0 and 255, or as grey levels cut at one half."""

    NAME = "salient"
    #: Grey levels from here on are foreground.
    GREY = 127

    def stacks(self, frames: List[str], size: Size) -> Optional[Stacks]:
        block = empty_labels(len(frames), size, bool)
        complete = True
        for place, frame in enumerate(frames):
            labels = self.labels(frame, size)
            if labels is None or not self._fill(block[place, :, : size[1]], labels, self.members[frame]):
                complete = False
        return {self.NAME: cropped(pack(block), size)} if complete else None

    def _fill(self, flags: Array, labels: Array, name: str) -> bool:
        present = {value for value in (0, *labels_in(labels)) if (labels == value).any()}
        if len(present) <= 2 and not present <= {0, 1} and not present <= {0, 255}:
            found = f"holds the values {sorted(present)}"
            self.problems.add(Problem(name, found, "Save one salient mask as 0 and 255, or as 0 and 1"))
            return False
        np.greater_equal(labels, self.GREY if len(present) > 2 else 1, out=flags)
        return True


def _labels(files: Files, name: str, size: Size) -> Array:
    png.check_length(files.sizes[name], size)
    return png.read_labels(files.read(name), size)


def labels_in(block: Array) -> List[int]:
    """The labels that may occur in these images, without 0: few candidates, or exactly those that do."""
    highest = int(block.max(initial=0))
    if highest <= FEW:
        return list(range(1, highest + 1))
    flat = block.reshape(-1)
    changes = flat[np.flatnonzero(flat[1:] != flat[:-1])]
    return [int(label) for label in np.unique(np.append(changes, flat[-1])) if label]


def _missing(members: Dict[str, str], frames: List[str]) -> List[Problem]:
    """One problem for one missing frame, one for many."""
    missing = [frame for frame in frames if frame not in members]
    folder = next(iter(members.values()), "").rpartition("/")[0]
    if not missing:
        return []
    if len(missing) == 1:
        return [Problem(f"{folder}/{missing[0]}.png", "is missing", ADD_FRAMES)]
    names = listed([f"{frame}.png" for frame in missing])
    return [Problem(folder, f"{len(missing)} frames are missing: {names}", ADD_FRAMES)]


def _too_many(where: str, count: int, most: int) -> Problem:
    return Problem(where, f"has {count} objects; this phase allows {most} in a sequence", "Send fewer objects")
