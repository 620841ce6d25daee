"""The masks of a dataset's sequences, read once and kept folded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, Iterable, Iterator, List

import numpy as np

from ...files.limits import Files
from ...files.problems import HostError
from ...masks import png
from ...masks.files import MaskFiles
from ...masks.stack import Array, FoldedStack, Size, Stacks
from .truth import Block, blocks_of


@dataclass(frozen=True)
class DatasetMasks:
    """The masks of one sequence."""

    blocks: List[Block]
    #: In which frames each object is visible, and its most pixels in any.
    visible: Dict[str, Array]
    areas: Dict[str, int]
    read_block: Callable[[int], Stacks]


def read_masks(images: MaskFiles, frames: List[str], sizes: Iterable[Size], root: str) -> DatasetMasks:
    """Read the masks of a sequence whose frames have these sizes; raises HostError where one cannot be read."""
    blocks: List[Block] = []
    visible: Dict[str, Array] = {}
    areas: Dict[str, int] = {}
    folded: List[Dict[str, FoldedStack]] = []
    for block in blocks_of(sizes):
        stacks = images.stacks(frames[block.start : block.stop], block.size)
        if stacks is None:
            raise HostError(f"{root}: {images.problems.text('the truth')}")
        for label, stack in stacks.items():
            area = stack.area
            visible.setdefault(label, np.zeros(len(frames), bool))[block.start : block.stop] = area > 0
            areas[label] = max(areas.get(label, 0), int(area.max()))
        folded.append({label: FoldedStack(stack) for label, stack in stacks.items()})
        blocks.append(block)

    def read_block(index: int) -> Stacks:
        return {label: stack.unfolded() for label, stack in folded[index].items()}

    return DatasetMasks(blocks, visible, areas, read_block)


class SizedFiles(Files):
    """Files whose sizes as images are read first; the bytes are kept until they are read, once."""

    def __init__(self, files: Files) -> None:
        super().__init__()
        self.sizes, self._files = files.sizes, files
        self._kept: Dict[str, bytes] = {}

    def size_of(self, name: str) -> Size:
        """Return the (height, width) of a PNG."""
        self._kept[name] = self._files.read(name)
        return png.size_of(self._kept[name])

    def read(self, name: str) -> bytes:
        return self._kept.pop(name, b"") or self._files.read(name)

    def parts(self, name: str) -> Iterator[bytes]:
        yield self.read(name)
