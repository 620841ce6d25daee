"""PNGs → the packed masks of a block, by the kernel."""

from __future__ import annotations

import threading
from typing import Dict, List, Optional, Tuple

import numpy as np

from . import kernel, kernel_frames, png
from .archive_limits import Files
from .errors import Flaw, Problem
from .masks import Size, Stack


def more_than_two_values() -> Flaw:
    """Return the flaw of a mask of one object that has several labels."""
    return Flaw("holds more than two values", "Save the mask of one object as 0 and 255")


#: Memory for more objects than this is not kept for the next block.
MOST_KEPT = 32


class _Spare(threading.local):
    """Empty memory of the block before, which the next one of the same size uses again."""

    frames: Optional[kernel_frames.PackedFrames] = None


_SPARE = _Spare()


class MaskPacker:
    """Packs the masks of one block after the other."""

    def __init__(self, files: Files, *, many_values: bool = False) -> None:
        self._files, self._many_values = files, many_values

    def stacks(
        self, names: List[Optional[str]], size: Size, most: int = kernel_frames.LABELS, *, merged: bool = False
    ) -> Optional[Tuple[Dict[str, Stack], List[Problem]]]:
        """Return the masks of each label, and what is wrong with any of the files.

        None where numpy has to read them: there is no kernel, a label takes two bytes, or there are more than `most`.
        Where labels are `merged`, all but 0 become label 1, and without `many_values` a file holds two at the most.
        """
        library = kernel.library()
        if library is None:
            return None
        frames, _SPARE.frames = _SPARE.frames, None  # not kept where something is raised below
        if frames is None or frames.size != size or frames.most_frames < len(names):
            frames = kernel_frames.PackedFrames(size, len(names), library)
        problems: List[Problem] = []
        complete = True
        for index, name in enumerate(names):
            try:
                complete = name is None or self._add(frames, index, name, most, merged=merged)
            except Flaw as flaw:
                problems.append(flaw.at(str(name)))
            if not complete:
                break
        stacks = frames.take(len(names))
        _SPARE.frames = frames if frames.objects <= MOST_KEPT else None
        return (stacks, problems) if complete else None

    def _add(self, frames: kernel_frames.PackedFrames, index: int, name: str, most: int, *, merged: bool) -> bool:
        png.check_length(self._files.sizes[name], frames.size)
        data = self._files.read(name)
        rows = png.filtered_rows(data, frames.size)
        if rows is None or not frames.add(index, *rows, most, merged=merged):
            labels = png.read_labels(data, frames.size)
            if labels.dtype != np.uint8 or not frames.add(index, labels.tobytes(), 0, most, merged=merged):
                return False
        if merged and not self._many_values and np.count_nonzero(frames.seen) > 2:
            raise more_than_two_values()
        return True
