"""PNGs → the packed masks of a block, by the kernel."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import numpy as np

from . import kernel, kernel_frames, png
from .archive_limits import Files
from .errors import Flaw, Problem
from .masks import Size, Stack


def more_than_two_values() -> Flaw:
    """Return the flaw of a mask of one object that has several labels."""
    return Flaw("holds more than two values", "Save the mask of one object as 0 and 255")


class MaskPacker:
    """Packs the masks of one block after the other; one memory serves them all."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._frames: Optional[kernel_frames.PackedFrames] = None

    def stacks(
        self, names: List[Optional[str]], size: Size, most: int = kernel_frames.LABELS, *, merged: bool = False
    ) -> Optional[Tuple[Dict[str, Stack], List[Problem]]]:
        """Return the masks of each label, and what is wrong with any of the files.

        None where numpy has to read them: there is no kernel, a label takes two bytes, or there are more than `most`.
        Where labels are `merged`, all but 0 become label 1, and a file holds two values at the most.
        """
        frames = self._empty_frames(size, len(names))
        if frames is None:
            return None
        problems: List[Problem] = []
        for index, name in enumerate(names):
            try:
                if name is not None and not self._add(frames, index, name, most, merged=merged):
                    frames.take(0)
                    return None
            except Flaw as flaw:  # noqa: PERF203 - each frame's is reported
                problems.append(flaw.at(str(name)))
        return frames.take(len(names)), problems

    def _empty_frames(self, size: Size, count: int) -> Optional[kernel_frames.PackedFrames]:
        library = kernel.library()
        if library is None:
            return None
        if self._frames is None or self._frames.size != size or self._frames.most_frames < count:
            self._frames = kernel_frames.PackedFrames(size, count, library)
        return self._frames

    def _add(self, frames: kernel_frames.PackedFrames, index: int, name: str, most: int, *, merged: bool) -> bool:
        png.check_length(self._files.sizes[name], frames.size)
        data = self._files.read(name)
        rows = png.filtered_rows(data, frames.size)
        if rows is None or not frames.add(index, *rows, most, merged=merged):
            labels = png.read_labels(data, frames.size)
            if labels.dtype != np.uint8 or not frames.add(index, labels.tobytes(), 0, most, merged=merged):
                return False
        if merged and np.count_nonzero(frames.seen) > 2:
            raise more_than_two_values()
        return True
