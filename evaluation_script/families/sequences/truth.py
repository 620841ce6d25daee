"""The annotation file: one self-describing zip, in the format that scores fastest.

`manifest.json` lists splits, sequences, frames and objects. `masks/<split>/<sequence>/<block>` holds the packed masks
of some frames: a table (object, top, left, rows, words), then the words, object by object. The file is independent of
protocols: any protocol can read any truth.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, field, replace
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Set,
    Tuple,
)

import numpy as np

from ...files.inflate import Inflated
from ...files.packed import (
    MANIFEST,
    PackedFile,
    Source,
    add_member,
    annotations_error,
    list_damages,
    make_manifest,
    open_packed,
    replace_file,
)
from ...files.problems import HostError, quantity
from ...masks.files import MaskFiles
from ...masks.stack import Array, Size, Stack, Stacks
from ..base.truth import AnnotationFile, SplitTruth, TruthNames
from .protocols import SequenceProtocol

_FAMILY_NAME = "sequences"

#: The label of pixels that most datasets ignore.
VOID = "255"

#: The pixels of a block of 1 to 16 frames, which takes a few megabytes while it is scored.
_BLOCK_PIXELS = 8 << 20
_BLOCK_FRAMES = 16

#: Intervals of frames as (start, stop).
Ranges = List[Tuple[int, int]]


class Block(NamedTuple):
    """A block: consecutive frames of one size, from `start` up to `stop`."""

    start: int
    stop: int
    size: Size


class ObjectFacts(NamedTuple):
    """The facts about an object in the truth, besides its masks."""

    #: The frames in which it is visible.
    visible: Ranges
    #: Its interval or files, if the dataset has any.
    lifespan: Optional[Ranges] = None
    category: Optional[str] = None


class Sequence(NamedTuple):
    """One sequence of the truth; its masks are read block by block."""

    name: str
    frames: List[str]
    blocks: List[Block]
    objects: Dict[str, ObjectFacts]
    read_block: Callable[[int], Stacks]
    #: The object's class is not in the training data, and the object suits a single salient mask (LVOS).
    unseen: bool = False
    salient: bool = True
    #: The dataset lists its objects: the objects with a lifespan, in its order.
    lists_objects: bool = False
    #: Masks in addition to the objects', which are read separately: layers of overlapping ones (`name_layer`).
    aside: Tuple[str, ...] = ()
    read_aside: Callable[[int], Stacks] = lambda _: {}

    @property
    def has_foreground(self) -> bool:
        """Return whether the truth has a foreground beside the targets of expressions."""
        return name_layer(FOREGROUND, 1) in self.aside

    @property
    def cost(self) -> int:
        """Return the relative cost of counting: the pixels of all frames, per object and once more."""
        pixels = sum((block.stop - block.start) * block.size[0] * block.size[1] for block in self.blocks)
        return pixels * (1 + len(self.objects))


#: A sequence of the truth, and its submitted masks; None if missing.
SequencePair = Tuple[Sequence, Optional[MaskFiles]]


@dataclass(frozen=True)
class Split(SplitTruth):
    """The sequences of one dataset."""

    sequences: List[Sequence]
    layout: str = ""
    #: The dataset states which sequences or categories are unseen.
    tells_unseen: bool = False
    unseen_categories: List[str] = field(default_factory=list)
    #: Sequences of other splits, and unscored sequences, which a submission may also contain.
    elsewhere: FrozenSet[str] = frozenset()
    #: For a protocol with rounds, the sequences of scored rounds; all if it is empty.
    of_rounds: FrozenSet[str] = frozenset()
    notes: List[str] = field(default_factory=list)
    family: str = _FAMILY_NAME

    @property
    def item_names(self) -> List[str]:
        return [sequence.name for sequence in self.sequences]

    def select(self, names: List[str], protocol: SequenceProtocol) -> Split:
        """Return the truth of some sequences; raises KeyError for unknown ones.

        If a protocol has rounds, a name may denote a sequence in one of them, as in its tables.
        """
        sequences = {sequence.name: sequence for sequence in self.sequences}
        respell, unknown = TruthNames(sequences).respell, []
        #: The rounds of each named sequence.
        rounds: Dict[str, Set[str]] = {}
        for name in names:
            folder, _, inner = name.partition("/")
            truth_name = respell(inner if folder in protocol.rounds else name)
            rounds.setdefault(truth_name, set()).update([folder] if folder in protocol.rounds else protocol.rounds)
            if truth_name not in sequences:
                unknown.append(name)
        if unknown:
            raise KeyError(*unknown)
        return replace(
            self,
            sequences=[sequences[name] for name in rounds],
            elsewhere=(self.elsewhere | sequences.keys()) - rounds.keys(),
            of_rounds=frozenset(f"{folder}/{name}" for name, folders in rounds.items() for folder in folders),
        )

    def list_oddities(self, protocol: SequenceProtocol) -> List[str]:
        if protocol.by_class and not self.tells_unseen:
            return ["the unseen classes are unknown (--unseen FILE names them), so all count as seen"]
        if protocol.accuracy and not all(sequence.has_foreground for sequence in self.sequences):
            remark = "expressions have no types and count equally, and R is divided by the objects to which they refer"
            return [f"it was not packed with --layout revos: {remark}"]
        return []

    def read_through(self) -> str:
        """Read all masks and return their number in words."""
        for sequence in self.sequences:
            for number in range(len(sequence.blocks)):
                sequence.read_block(number)
        frames = sum(len(sequence.frames) for sequence in self.sequences)
        return f"{quantity(len(self.sequences), 'sequence')} of {quantity(frames, 'frame')}"


#: The object with the masks of all candidates of expressions.
FOREGROUND = ""


def name_layer(label: str, number: int) -> str:
    """Return the name of the layer of pixels that at least this many of an object's masks share."""
    return f"{label}+{number}"


def reader_of(read_block: Callable[[int], Stacks], labels: Collection[str]) -> Callable[[int], Stacks]:
    """Return a reader of only these masks of each block."""
    return lambda index: {label: stack for label, stack in read_block(index).items() if label in labels}


def ranges_of(flags: Array) -> Ranges:
    """Return the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return [(int(start), int(stop)) for start, stop in zip(edges[::2], edges[1::2])]


def flags_of(ranges: Ranges, count: int) -> Array:
    """Return booleans for `count` frames, True inside the ranges."""
    flags = np.zeros(count, bool)
    for start, stop in ranges:
        flags[start:stop] = True
    return flags


def blocks_of(sizes: Iterable[Size]) -> Iterator[Block]:
    """Yield the blocks of frames of these sizes, each as soon as its end is known."""
    start = stop = 0
    block_size: Size = (0, 0)
    for size in sizes:
        longest = max(1, min(_BLOCK_FRAMES, _BLOCK_PIXELS // max(1, block_size[0] * block_size[1])))
        if stop > start and (size != block_size or stop - start == longest):
            yield Block(start, stop, block_size)
            start = stop
        block_size, stop = size, stop + 1
    if stop > start:
        yield Block(start, stop, block_size)


def _pack_block(stacks: Stacks, labels: List[str]) -> bytes:
    """Return the masks of a block as bytes."""
    visible = [(labels.index(label), stack) for label, stack in sorted(stacks.items()) if stack.words.size]
    rows = [(index, stack.top, stack.column, *stack.words.shape[1:]) for index, stack in visible]
    table = np.array([(len(rows), 0, 0, 0, 0), *rows], "<i4").tobytes()
    return table + b"".join(stack.words.astype("<u8").tobytes() for _, stack in visible)


def _unpack_block(data: Inflated, block: Block, labels: List[str]) -> Stacks:
    """Return the masks that `_pack_block` packed."""
    table = np.frombuffer(data, "<i4", count=5 * (1 + int.from_bytes(data[:4], "little"))).reshape(-1, 5)
    stacks, position, frames = {}, table.nbytes, block.stop - block.start
    for index, top, column, rows, words in table[1:].tolist():
        count = frames * rows * words
        bits = np.frombuffer(data, "<u8", count=count, offset=position).reshape(frames, rows, words)
        stacks[labels[index]] = Stack(bits, top, column, block.size)
        position += bits.nbytes
    return stacks


def write(path: str, splits: Dict[str, Split]) -> None:
    """Write an annotation file; the same splits give the same bytes."""
    manifest = make_manifest(_FAMILY_NAME, {})
    with replace_file(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for split_name, split in splits.items():
            entries = [_write_sequence(archive, split_name, sequence) for sequence in split.sequences]
            manifest["splits"][split_name] = {
                "layout": split.layout,
                "tells_unseen": split.tells_unseen,
                "unseen_categories": split.unseen_categories,
                "sequences": entries,
            }
        add_member(archive, MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False).encode())


def _write_sequence(archive: zipfile.ZipFile, split: str, sequence: Sequence) -> Dict[str, Any]:
    import hashlib  # which loads OpenSSL

    digest, labels = hashlib.sha256(), [*sequence.objects, *sequence.aside]
    for index in range(len(sequence.blocks)):
        data = _pack_block({**sequence.read_block(index), **sequence.read_aside(index)}, labels)
        digest.update(data)
        add_member(archive, _name_member(split, sequence.name, index), data)
    return {
        "name": sequence.name,
        "frames": sequence.frames,
        "blocks": [[block.start, block.stop, *block.size] for block in sequence.blocks],
        "objects": {label: _facts_entry(facts) for label, facts in sequence.objects.items()},
        "unseen": sequence.unseen,
        "salient": sequence.salient,
        "told": sequence.lists_objects,
        "sha256": digest.hexdigest(),
        **({"aside": sequence.aside} if sequence.aside else {}),
    }


def _facts_entry(facts: ObjectFacts) -> Dict[str, Any]:
    entry: Dict[str, Any] = {"visible": facts.visible}
    if facts.lifespan is not None:
        entry["frames"] = facts.lifespan
    if facts.category is not None:
        entry["category"] = facts.category
    return entry


def _name_member(split: str, sequence: str, index: int) -> str:
    return f"masks/{split}/{sequence}/{index:05d}"


def read(source: Source) -> AnnotationFile[Split]:
    """Open a packed annotation file: its manifest at once, its masks block by block."""
    archive, manifest = open_packed(source, _FAMILY_NAME)
    try:
        names = frozenset(sequence["name"] for entry in manifest["splits"].values() for sequence in entry["sequences"])
        return AnnotationFile(
            {name: _open_split(archive, name, entry, names) for name, entry in manifest["splits"].items()}
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise annotations_error(source, error) from None


def _open_split(archive: PackedFile, name: str, entry: Dict[str, Any], names: FrozenSet[str]) -> Split:
    return Split(
        [_open_sequence(archive, name, sequence) for sequence in entry["sequences"]],
        entry["layout"],
        entry["tells_unseen"],
        entry["unseen_categories"],
        names - {sequence["name"] for sequence in entry["sequences"]},
    )


def _open_sequence(archive: PackedFile, split: str, entry: Dict[str, Any]) -> Sequence:
    blocks = [Block(start, stop, (height, width)) for start, stop, height, width in entry["blocks"]]
    aside = tuple(entry.get("aside", ()))
    labels = [*entry["objects"], *aside]

    def read_block(index: int) -> Stacks:
        try:
            data = archive.read(_name_member(split, entry["name"], index))
            return _unpack_block(data, blocks[index], labels)
        except list_damages() as error:
            raise HostError(f"annotation file: {split}/{entry['name']} cannot be read ({error!r})") from None

    return Sequence(
        entry["name"],
        entry["frames"],
        blocks,
        {label: _read_facts(facts) for label, facts in entry["objects"].items()},
        reader_of(read_block, entry["objects"]) if aside else read_block,
        entry["unseen"],
        entry["salient"],
        entry["told"],
        aside,
        reader_of(read_block, aside),
    )


def _read_facts(entry: Dict[str, Any]) -> ObjectFacts:
    lifespan = entry.get("frames")
    return ObjectFacts(
        [(start, stop) for start, stop in entry["visible"]],
        None if lifespan is None else [(start, stop) for start, stop in lifespan],
        entry.get("category"),
    )


def label_order(label: str) -> Tuple[int, str]:
    """Return a sort key: numbers by value, other labels after them."""
    return (int(label), label) if is_number(label) else (1 << 62, label)


def is_number(label: str) -> bool:
    """Return whether a label is a number that an image can hold, without leading zeros."""
    return label.isascii() and label.isdecimal() and len(label) <= 5 and not label.startswith("0")
