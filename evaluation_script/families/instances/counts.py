"""What is known of images once their detections were matched: all that their scores come from, as bytes too.

The bytes are what processes send each other and what a part holds (`docs/scale.md`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Dict, Sequence, Tuple

import numpy as np

from ...masks.stack import Array, places_of

#: Index of an image, and how many of its records the cap dropped.
IMAGE = np.dtype([("image", "<u4"), ("dropped", "<u4")])
#: Indices of image and category, and how many instances count there in each range of areas.
TRUTH = np.dtype([("image", "<u4"), ("category", "<u4"), ("counted", "<u4", (4,))])
#: Indices of image and category, the place among the detections there, the score, and a bit for each range of areas
#: and threshold (ten for each range): whether it was matched, and whether it counts neither for nor against.
DETECTION = np.dtype(
    [
        ("image", "<u4"), ("category", "<u4"), ("rank", "<u4"), ("score", "<f8"), ("matched", "<u8"),
        ("ignored", "<u8"),
    ]
)  # fmt: skip
_TABLES = (IMAGE, TRUTH, DETECTION)
#: What tells the rows of each table apart; they rise by it.
_KEYS: Tuple[Tuple[str, ...], ...] = (("image",), ("image", "category"), ("image", "category", "rank"))


@dataclass(frozen=True)
class InstanceCounts:
    """What matching found in some images, as tables that rise by image, category and rank."""

    images: Array
    truth: Array
    detections: Array

    @property
    def tables(self) -> Tuple[Array, Array, Array]:
        """The three tables."""
        return self.images, self.truth, self.detections

    def of(self, images: Array) -> InstanceCounts:
        """Return what is known of some images, given by rising indices."""
        return InstanceCounts(*(table[places_of(images, table["image"]) >= 0] for table in self.tables))

    def blocks(self, images: int) -> Dict[str, InstanceCounts]:
        """Return the same in blocks: by each block's number, what is known of so many images next to each other."""
        numbers = np.unique(self.images["image"] // images).tolist()
        parts = {}
        for number in numbers:
            bounds = [
                np.searchsorted(table["image"], [number * images, (number + 1) * images]).tolist()
                for table in self.tables
            ]
            cut = (table[start:stop] for table, (start, stop) in zip(self.tables, bounds))
            parts[str(number)] = InstanceCounts(*cut)
        return parts

    def encoded(self) -> bytes:
        """Return the bytes that `decoded` reads."""
        lengths = struct.pack("<III", *map(len, self.tables))
        return lengths + b"".join(table.tobytes() for table in self.tables)


def joined(parts: Sequence[InstanceCounts]) -> InstanceCounts:
    """Return what is known of different images as one."""
    tables = []
    for number, kind in enumerate(_TABLES):
        table = np.concatenate([np.zeros(0, kind), *(part.tables[number] for part in parts)])
        image = table["image"]
        rising = bool((image[1:] >= image[:-1]).all())
        tables.append(table if rising else table[np.argsort(image, kind="stable")])
    return InstanceCounts(*tables)


def decoded(data: bytes) -> InstanceCounts:
    """Return the counts that `encoded` wrote; raises ValueError where they cannot be such."""
    head = struct.calcsize("<III")
    if len(data) < head:
        raise ValueError("has no header")
    lengths = struct.unpack_from("<III", data)
    sizes = [count * kind.itemsize for count, kind in zip(lengths, _TABLES)]
    if sum(sizes) != len(data) - head:
        raise ValueError(f"has {len(data) - head} bytes of tables, not {sum(sizes)}")
    starts = [head + sum(sizes[:number]) for number in range(len(sizes))]
    tables = [np.frombuffer(data, kind, count, start) for kind, count, start in zip(_TABLES, lengths, starts)]
    for table, keys in zip(tables, _KEYS):
        if not _rises(table, keys):
            raise ValueError("has rows that are not in order")
        if (places_of(tables[0]["image"], table["image"]) < 0).any():
            raise ValueError("has rows of images that it does not hold")
    if not np.isfinite(tables[2]["score"]).all():
        raise ValueError("has scores that are not finite")
    return InstanceCounts(*tables)


def _rises(table: Array, keys: Sequence[str]) -> bool:
    """Return whether each row's keys are beyond those of the row before."""
    undecided = np.ones(max(len(table) - 1, 0), bool)
    for key in keys:
        before, after = table[key][:-1], table[key][1:]
        if (undecided & (before > after)).any():
            return False
        undecided &= before == after
    return not undecided.any()


def truth_rows(image: Array, category: Array, ignored: Array) -> Array:
    """Return how many instances count in each image and category, by which they rise, in each range of areas."""
    changes = np.append(True, (image[1:] != image[:-1]) | (category[1:] != category[:-1]))
    starts = np.flatnonzero(changes[: len(image)])
    rows = np.zeros(len(starts), TRUTH)
    rows["image"], rows["category"] = image[starts], category[starts]
    rows["counted"] = np.add.reduceat((~ignored).T.astype(np.int64), starts, axis=0)
    return rows


def by_falling_score(score: Array, *keys: Array) -> Array:
    """Return the order by keys, the last one first, then by falling score, then as it was."""
    order: Array = np.argsort(-score, kind="stable")
    for key in keys:
        column = key[order]
        if len(column) and column.min() >= 0 and column.max() - column.min() < 1 << 16:
            column = (column - column.min()).astype(np.uint16)  # sorted by counting
        order = order[np.argsort(column, kind="stable")]
    return order
