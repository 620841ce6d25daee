"""Many masks as COCO's compressed run lengths: one text, and where each mask's begins and ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Sequence

import numpy as np

from .stack import Array


@dataclass(frozen=True)
class MaskTexts:
    """Masks by index; a hundred thousand take no more than their characters and two numbers each."""

    text: bytes
    starts: Array
    stops: Array

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> str:
        return self.text[self.starts[index] : self.stops[index]].decode("ascii")

    def take(self, indices: Array) -> MaskTexts:
        """Return some of the masks, which share the text."""
        return MaskTexts(self.text, self.starts[indices], self.stops[indices])

    def compact(self) -> MaskTexts:
        """Return the same masks with a text that holds them alone."""
        return of_texts([self[index] for index in range(len(self))])


def of_texts(texts: Sequence[str]) -> MaskTexts:
    """Return masks of which each has its own text, ASCII as every sound one is."""
    stops = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    return MaskTexts("".join(texts).encode("ascii", "replace"), np.append(0, stops)[:-1], stops)


def joined_texts(parts: List[MaskTexts]) -> MaskTexts:
    """Return the masks of all parts, in order."""
    offsets = np.cumsum([0, *(len(part.text) for part in parts)])
    nothing = np.zeros(0, np.int64)
    return MaskTexts(
        b"".join(part.text for part in parts),
        np.concatenate([nothing, *(part.starts + offset for part, offset in zip(parts, offsets))]),
        np.concatenate([nothing, *(part.stops + offset for part, offset in zip(parts, offsets))]),
    )
