"""The annotation file: one zip that describes itself, in the form that scores fastest.

`manifest.json` says which splits, sequences, frames and objects there are;
`masks/<split>/<sequence>/<block>` holds the packed masks of some frames: a
table (object, top, left, rows, words) and then the words, object by object.
Nothing in it depends on a protocol: any of them can read any truth.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Tuple, Union

import numpy as np

from .errors import HostError
from .mask_files import Stacks
from .masks import Array, Size, Stack

FORMAT = "segjudge truth 1"
MANIFEST = "manifest.json"
TRACK = "sequences"

#: The label that marks pixels nobody is judged by, in most datasets.
VOID = "255"

#: A block holds this many pixels, in 1 to 16 frames: a few megabytes while it is scored.
BLOCK_PIXELS = 8 << 20
BLOCK_FRAMES = 16

#: What a disk says that takes no more.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

#: Zip has no time zone and no earlier day; equal input gives equal bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)

Ranges = List[Tuple[int, int]]

#: A path, or an open file.
Source = Union[str, BinaryIO]


@dataclass(frozen=True)
class Block:
    """Consecutive frames of one size, from `start` up to `stop`."""

    start: int
    stop: int
    size: Size


@dataclass(frozen=True)
class ObjectFacts:
    """What the truth says of an object, beside its masks."""

    #: Where it is visible.
    visible: Ranges
    #: Its own interval or files, where the dataset gives any.
    frames: Optional[Ranges] = None
    category: Optional[str] = None


@dataclass(frozen=True)
class Sequence:
    """One sequence of the truth; its masks are read block by block."""

    name: str
    frames: List[str]
    blocks: List[Block]
    objects: Dict[str, ObjectFacts]
    read_block: Callable[[int], Stacks] = field(repr=False)
    #: Of a class that training data lacks, and suited to one salient mask (LVOS).
    unseen: bool = False
    salient: bool = True
    #: A meta file names its objects: those with frames of their own, in its order.
    told: bool = False


@dataclass(frozen=True)
class Split:
    """The sequences of one dataset."""

    sequences: List[Sequence]
    layout: str = ""
    #: Is it known which sequences or categories are unseen?
    tells_unseen: bool = False
    unseen_categories: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class Truth:
    """Everything in an annotation file."""

    splits: Dict[str, Split]
    #: What the host should know, e.g. that a packed file would score faster.
    notes: List[str] = field(default_factory=list)


def ranges_of(flags: Array) -> Ranges:
    """Runs of True as (start, stop)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return [(int(start), int(stop)) for start, stop in zip(edges[::2], edges[1::2])]


def flags_of(ranges: Ranges, count: int) -> Array:
    """Runs (start, stop) as booleans."""
    flags = np.zeros(count, bool)
    for start, stop in ranges:
        flags[start:stop] = True
    return flags


def blocks_of(sizes: List[Size]) -> List[Block]:
    """Cut frames of these sizes into blocks."""
    blocks: List[Block] = []
    start = 0
    while start < len(sizes):
        size = sizes[start]
        most = max(1, min(BLOCK_FRAMES, BLOCK_PIXELS // max(1, size[0] * size[1])))
        stop = start + 1
        while stop < min(len(sizes), start + most) and sizes[stop] == size:
            stop += 1
        blocks.append(Block(start, stop, size))
        start = stop
    return blocks


def block_bytes(stacks: Stacks, labels: List[str]) -> bytes:
    """Pack the masks of a block."""
    held = [(labels.index(name), stack) for name, stack in sorted(stacks.items()) if stack.words.size]
    rows = [(place, stack.top, stack.left, *stack.words.shape[1:]) for place, stack in held]
    table = np.array([(len(rows), 0, 0, 0, 0), *rows], "<i4").tobytes()
    return table + b"".join(stack.words.astype("<u8").tobytes() for _, stack in held)


def block_stacks(data: bytes, block: Block, labels: List[str]) -> Stacks:
    """The masks that `block_bytes` packed."""
    row = 5 * 4
    table = np.frombuffer(data, "<i4", count=5 * (1 + int.from_bytes(data[:4], "little"))).reshape(-1, 5)[1:]
    stacks, position, frames = {}, row * (1 + len(table)), block.stop - block.start
    for place, top, left, rows, words in table.tolist():
        count = frames * rows * words
        bits = np.frombuffer(data, "<u8", count=count, offset=position).reshape(frames, rows, words)
        stacks[labels[place]] = Stack(bits, top, left, block.size)
        position += 8 * count
    return stacks


def write(path: str, splits: Dict[str, Split]) -> None:
    """Write an annotation file; the same splits give the same bytes."""
    manifest: Dict[str, Any] = {"format": FORMAT, "track": TRACK, "splits": {}}
    with replaced(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as out:
        for split_name, split in splits.items():
            entries = [_write_sequence(out, split_name, sequence) for sequence in split.sequences]
            manifest["splits"][split_name] = {
                "layout": split.layout,
                "tells_unseen": split.tells_unseen,
                "unseen_categories": split.unseen_categories,
                "sequences": entries,
            }
        add_member(out, MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False).encode())


class NotWritten(OSError):
    """Raised when a file could not be written whole; what was there before is still there."""


@contextmanager
def replaced(path: str) -> Iterator[str]:
    """The name to write a file under: it takes its place whole, and goes when anything keeps it from that."""
    real = os.path.realpath(path)
    if os.path.exists(real) and not os.path.isfile(real):
        yield path  # a device or a pipe
        return
    partial = f"{real}.{os.getpid()}.partial"
    try:
        yield partial
        with suppress(OSError):
            shutil.copymode(real, partial)
        os.replace(partial, real)
    except BaseException as error:
        with suppress(OSError):
            os.remove(partial)
        if isinstance(error, OSError) and (error.errno in FULL or error.filename == partial):
            raise NotWritten(error.errno, error.strerror, path) from None
        raise


def _write_sequence(out: zipfile.ZipFile, split: str, sequence: Sequence) -> Dict[str, Any]:
    digest, labels = hashlib.sha256(), list(sequence.objects)
    for index in range(len(sequence.blocks)):
        data = block_bytes(sequence.read_block(index), labels)
        digest.update(data)
        add_member(out, _member(split, sequence.name, index), data)
    return {
        "name": sequence.name,
        "frames": sequence.frames,
        "blocks": [[block.start, block.stop, *block.size] for block in sequence.blocks],
        "objects": {label: _facts_entry(facts) for label, facts in sequence.objects.items()},
        "unseen": sequence.unseen,
        "salient": sequence.salient,
        "told": sequence.told,
        "sha256": digest.hexdigest(),
    }


def _facts_entry(facts: ObjectFacts) -> Dict[str, Any]:
    entry: Dict[str, Any] = {"visible": facts.visible}
    if facts.frames is not None:
        entry["frames"] = facts.frames
    if facts.category is not None:
        entry["category"] = facts.category
    return entry


def add_member(out: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a file without anything that differs from run to run."""
    info = zipfile.ZipInfo(name, EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    info.create_system = 3
    out.writestr(info, data)


def _member(split: str, sequence: str, index: int) -> str:
    return f"masks/{split}/{sequence}/{index:05d}"


def manifest_of(path: Source) -> Dict[str, Any]:
    """What a file made by `segjudge pack` says of itself; nothing for other files."""
    if not zipfile.is_zipfile(path):
        return {}
    try:
        with zipfile.ZipFile(path) as file:
            return dict(json.loads(file.read(MANIFEST))) if MANIFEST in file.namelist() else {}
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        raise HostError(f"{path}: is not an annotation file that can be read ({error!r}). Pack it anew") from None


def track_of(path: Source) -> str:
    """The track of a packed file; nothing for other files."""
    return str(manifest_of(path).get("track", ""))


def splits_of(path: Source) -> List[str]:
    """The splits of a packed file; nothing for other files."""
    return list(manifest_of(path).get("splits", {}))


def is_packed(path: Source) -> bool:
    """Was this file made by `segjudge pack`, from mask sequences?"""
    return track_of(path) == TRACK


def read(path: Source) -> Truth:
    """Open a packed annotation file: the manifest now, the masks when they are asked for."""
    try:
        file = zipfile.ZipFile(path)
        manifest = json.loads(file.read(MANIFEST))
        if manifest["track"] != TRACK:
            raise HostError(f"{path}: holds {manifest['track']}, not mask sequences; choose another file or protocol")
        if manifest["format"] != FORMAT:
            raise HostError(
                f"{path}: has the format {manifest['format']!r}; this version reads {FORMAT!r}. Pack it anew"
            )
        splits = {name: _split(file, name, entry) for name, entry in manifest["splits"].items()}
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise HostError(f"{path}: is not an annotation file that can be read ({error!r}). Pack it anew") from None
    return Truth(splits)


def _split(file: zipfile.ZipFile, name: str, entry: Dict[str, Any]) -> Split:
    return Split(
        [_sequence(file, name, sequence) for sequence in entry["sequences"]],
        entry["layout"],
        entry["tells_unseen"],
        entry["unseen_categories"],
    )


def _sequence(file: zipfile.ZipFile, split: str, entry: Dict[str, Any]) -> Sequence:
    blocks = [Block(start, stop, (height, width)) for start, stop, height, width in entry["blocks"]]
    labels = list(entry["objects"])

    def read_block(index: int) -> Stacks:
        try:
            data = file.read(_member(split, entry["name"], index))
            return block_stacks(data, blocks[index], labels)
        except (OSError, zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
            raise HostError(f"annotation file: {split}/{entry['name']} cannot be read ({error!r})") from None

    return Sequence(
        entry["name"],
        entry["frames"],
        blocks,
        {label: _facts(facts) for label, facts in entry["objects"].items()},
        read_block,
        entry["unseen"],
        entry["salient"],
        entry["told"],
    )


def _facts(entry: Dict[str, Any]) -> ObjectFacts:
    frames = entry.get("frames")
    return ObjectFacts(
        [(start, stop) for start, stop in entry["visible"]],
        None if frames is None else [(start, stop) for start, stop in frames],
        entry.get("category"),
    )


def label_order(label: str) -> Tuple[int, str]:
    """Numbers by value, other names after them."""
    return (int(label), label) if is_number(label) else (1 << 62, label)


def is_number(label: str) -> bool:
    """Is it a label as images hold them, written plainly?"""
    return label.isascii() and label.isdecimal() and len(label) <= 5 and not label.startswith("0")
