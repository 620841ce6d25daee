"""PNGs → the packed masks of a block, by the kernel."""

from __future__ import annotations

import threading
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np

from ..files.limits import Files
from ..files.problems import Flaw, Problem
from . import kernel, png
from .kernel_frames import LABELS, PackedFrames
from .stack import Size, Stack

#: Whether a file may become one object, given which of 256 values it holds; otherwise numpy reads the block.
MayMerge = Callable[[List[int]], bool]

#: Memory for more objects than this is not kept for the next block.
MOST_KEPT = 32


class _Spare(threading.local):
    """Empty memory of the block before, which the next one of the same size uses again."""

    frames: Optional[PackedFrames] = None


_SPARE = _Spare()


def packed_masks(
    files: Files, names: List[Optional[str]], size: Size, most: int = LABELS, may_merge: Optional[MayMerge] = None
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
    _SPARE.frames = frames if frames.objects <= MOST_KEPT else None
    return (stacks, problems) if complete else None


def _add(frames: PackedFrames, index: int, files: Files, name: str, most: int, may_merge: Optional[MayMerge]) -> bool:
    png.check_length(files.sizes[name], frames.size)
    data = files.read(name)
    rows, merged = png.filtered_rows(data, frames.size), may_merge is not None
    if rows is None or not frames.add(index, *rows, most, merged=merged):
        labels = png.read_labels(data, frames.size)
        if labels.dtype != np.uint8 or not frames.add(index, labels.tobytes(), 0, most, merged=merged):
            return False
    return may_merge is None or may_merge(np.flatnonzero(frames.seen).tolist())
