"""`segjudge compress`: results in the smallest form that scores the same, compared pixel by pixel before it is kept.

Run lengths in gzipped JSON are the smallest; PNGs of few bits in a zip are what other evaluators read too.
"""

import json
import os
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from itertools import chain
from typing import TypedDict

import numpy as np

from segjudge.evaluation_script.families.base.family import FamilyProtocol, Progress
from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences.engine import SequenceSubmission
from segjudge.evaluation_script.families.sequences.layouts import GENERIC, LAYOUTS
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS, SequenceProtocol
from segjudge.evaluation_script.families.sequences.truth import Sequence
from segjudge.evaluation_script.files.archive import open_files
from segjudge.evaluation_script.files.inflate import LIBDEFLATE, crc32
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS, ArchiveLimits, Files, size_text
from segjudge.evaluation_script.files.packed import EPOCH, add_member, replace_file
from segjudge.evaluation_script.files.problems import Flaw, HostError, Problem, SubmissionError, quantity
from segjudge.evaluation_script.masks import png
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.stack import Array, Stack, Stacks
from segjudge.masks.run_lengths import runs_of_mask

RUN_LENGTHS, PNGS = ".json.gz", ".zip"
_LIBDEFLATE_EFFORT = 12
#: zlib's numbers for its own form and for gzip's.
_ZLIB, _GZIP = zlib.MAX_WBITS, 31
#: What folders of objects are called; any other folder is a sequence.
_OBJECT = re.compile(r"\d{1,3}")
#: One salient mask may be written in grey levels, which are no objects.
_GREY = range(127, 256)
#: Up to so many bits a sample takes no more than a byte.
_BYTE = 8
_TRY_PNGS = f"Write PNGs, with a name that ends in {PNGS}"


@dataclass(frozen=True)
class _Saving:
    """How many bytes results had, and have; folders by the sum of their files."""

    before: int
    after: int
    #: What was compared: frames or bytes.
    compared: str
    #: Whether they are run lengths of objects, which one family alone reads.
    of_objects: bool


def compress(results: str, out: str, progress: Progress, protocol: FamilyProtocol | None) -> _Saving:
    """Write results in a smaller form; raise SubmissionError where there is none, or a protocol does not read it."""
    files = open_files(results, LOCAL_LIMITS)
    try:
        pngs = [name for name in files.sizes if name.lower().endswith(".png")]
        documents = [name for name in files.sizes if name.lower().endswith(".json")]
        # Segments: the colours of their PNGs are ids, which the JSON beside them describes.
        described = documents if pngs and documents and png.is_coloured(files.read(pngs[0])) else []
        of_objects = bool(pngs) and not out.endswith(PNGS)
        if of_objects and protocol and protocol.family != SequenceProtocol.family:
            raise _refusal(out, f"would hold run lengths of objects, which {protocol.name} does not read", _TRY_PNGS)
        with replace_file(out) as partial:
            if out.endswith(PNGS):
                compared = _write_pngs(files, pngs, partial, progress)
            elif described:
                raise _refusal(described[0], "describes segments, which run lengths do not hold", _TRY_PNGS)
            elif pngs:
                compared = _write_run_lengths(results, pngs, partial, progress)
            else:
                compared = _write_document(files, documents, partial)
            before, after = _size_of(results, files), os.path.getsize(partial)
            if after >= before:
                fault = f"has {size_text(before)} and would have {size_text(after)}, so nothing was written"
                raise _refusal(results, fault, "Send it as it is, or try the other form")
    except HostError as error:
        raise SubmissionError(str(error)) from None
    finally:
        files.close()
    return _Saving(before, after, compared, of_objects)


def _refusal(file: str, fault: str, remedy: str) -> SubmissionError:
    return SubmissionError.of(Problem(file, fault, remedy))


def _size_of(results: str, files: Files) -> int:
    return sum(files.sizes.values()) if os.path.isdir(results) else os.path.getsize(results)


def _write_document(files: Files, documents: list[str], out: str) -> str:
    """Write JSON, gzipped as well as can be."""
    if len(documents) != 1:
        raise _refusal("the results", f"hold no PNGs and {len(documents)} JSON files", "Name a folder or zip of masks")
    _write_gzipped(files.read(documents[0]), out)
    return f"{size_text(len(files.read(documents[0])))} of JSON"


def _write_gzipped(data: bytes, out: str) -> None:
    packed = _deflate(data, _GZIP)
    if zlib.decompress(packed, _GZIP) != data:
        raise AssertionError("what was gzipped is not what is read")
    with open(out, "wb") as file:
        file.write(packed)


def _deflate(data: bytes, form: int, effort: int = _LIBDEFLATE_EFFORT) -> bytes:
    """Return bytes in one of zlib's forms, by default as small as can be."""
    if LIBDEFLATE:
        import deflate

        pack = deflate.gzip_compress if form == _GZIP else deflate.zlib_compress
        return bytes(pack(data, effort))
    packer = zlib.compressobj(min(effort, zlib.Z_BEST_COMPRESSION), wbits=form)
    return packer.compress(data) + packer.flush()


# ── run lengths ─────────────────────────────────────────────────────────────


def _write_run_lengths(results: str, pngs: list[str], out: str, progress: Progress) -> str:
    sequences = _sequences(results, pngs)
    document = {}
    for number, sequence in enumerate(sequences):
        progress(sequence.name, number, len(sequences))
        document[sequence.name] = run_lengths_of(sequence)
    _write_gzipped(json.dumps(document, separators=(",", ":")).encode(), out)
    _compare(sequences, out)
    return quantity(sum(len(sequence.frames) for sequence in sequences), "frame")


def _sequences(results: str, pngs: list[str]) -> list[Sequence]:
    """Return the sequences of results, read as a dataset is; raise where its files could be read in another way."""
    by_object = all(name.count("/") > 1 and _OBJECT.fullmatch(name.split("/")[-2]) for name in pngs)
    layout = LAYOUTS["sav"] if by_object else GENERIC
    (split,) = dataset_reader.read(results, layout).splits.values()
    read = 0
    for sequence in split.sequences:
        labels, frames = sequence.objects, sequence.frames
        if not sequence.name or (sequence.lists_objects and not by_object):
            raise _refusal(results, "does not show which folders are sequences", "Make one folder for each sequence")
        if not by_object and len(labels) > 1 and any(int(label) in _GREY for label in labels):
            raise _refusal(sequence.name, "holds numbers of objects from 127 on, which may be grey levels", _TRY_PNGS)
        if all(map(str.isdecimal, frames)) and sorted(frames, key=int) != frames:
            raise _refusal(sequence.name, "has frames whose numbers and names are in different order", _TRY_PNGS)
        ranges = chain.from_iterable(facts.lifespan or [] for facts in labels.values())
        read += sum(stop - start for start, stop in ranges) if by_object else len(frames)
    if read != len(pngs):
        raise _refusal(results, f"holds {len(pngs)} PNGs, of which {read} belong to its sequences", _TRY_PNGS)
    return split.sequences


class CompressedMask(TypedDict):
    """A mask as COCO's compressed run lengths."""

    size: tuple[int, int]
    counts: str


def run_lengths_of(sequence: Sequence) -> dict[str, list[CompressedMask | None]]:
    """Return the masks of each object, frame by frame; None where it is not to be seen."""
    objects: dict[str, list[CompressedMask | None]] = {
        label: [None] * len(sequence.frames) for label in sequence.objects
    }
    for index, block in enumerate(sequence.blocks):
        for label, stack in sequence.read_block(index).items():
            masks = {frame: _runs_of(stack, frame) for frame in np.flatnonzero(stack.area).tolist()}
            for frame, counts in zip(masks, rle.compress_many(list(masks.values())), strict=True):
                objects[label][block.start + frame] = {"size": block.size, "counts": counts}
    return objects


def _runs_of(stack: Stack, frame: int) -> list[int]:
    return runs_of_mask(stack.draw(frame))


def _compare(sequences: list[Sequence], out: str) -> None:
    """Read a submission as a phase reads it; raise unless each object has the pixels that it had."""
    submission = SequenceSubmission(out, sequences, SEQUENCE_PROTOCOLS["sav"], ArchiveLimits(), frozenset())
    for sequence in sequences:
        masks = submission.sequence(sequence.name)
        for index, block in enumerate(sequence.blocks):
            problems = submission.problems
            read = masks.stacks(sequence.frames[block.start : block.stop], block.size, problems) if masks else None
            problems.raise_if_any()
            if read is None or not _are_equal(read, sequence.read_block(index)):
                raise AssertionError(f"{sequence.name}: what was written is not what is read")
    submission.close()


def _are_equal(before: Stacks, after: Stacks) -> bool:
    return before.keys() == after.keys() and all(
        (stack.top, stack.column) == (after[label].top, after[label].column)
        and np.array_equal(stack.words, after[label].words)
        for label, stack in before.items()
    )


# ── PNGs ────────────────────────────────────────────────────────────────────


def _write_pngs(files: Files, names: list[str], out: str, progress: Progress) -> str:
    """Write PNGs of the kinds that they are, since what a grey or a colour means is for a protocol to say; whatever is
    beside them is copied.
    """
    if not names:
        raise _refusal("the results", "hold no PNGs", f"Name the output with the ending {RUN_LENGTHS}")
    with zipfile.ZipFile(out, "w") as archive:
        for number, name in enumerate(names):
            progress(name, number, len(names))
            data = files.read(name)
            try:
                smallest = _encode_smallest(data, _read_pixels(data))
            except Flaw as flaw:
                raise SubmissionError.of(flaw.at(name)) from None
            archive.writestr(zipfile.ZipInfo(name, EPOCH), min(data, smallest, key=len))
        for name in sorted(files.sizes.keys() - set(names)):
            add_member(archive, name, files.read(name))
    with zipfile.ZipFile(out) as archive:
        for name in names:
            before, after = files.read(name), archive.read(name)
            if not np.array_equal(_read_pixels(before), _read_pixels(after)):
                raise AssertionError(f"{name}: what was written is not what is read")
    return f"{len(names):,} PNGs"


def _read_pixels(data: bytes) -> Array:
    """Return the number of each pixel, or its colour as one."""
    read = backend().read_codes if png.is_coloured(data) else backend().read_labels
    return read(data, png.size_of(data))


def _encode_smallest(data: bytes, pixels: Array) -> bytes:
    if png.is_coloured(data):
        return code_png(pixels)
    depth, kind = png.sample_kind_of(data)
    if kind == png.PALETTE:
        depth, colours = _least_depth(pixels), png.palette_of(data).tobytes()
        palette = ((b"PLTE", colours[: 3 << depth]),)
        return _png(pixels.shape, (depth, kind), _pack_bits(pixels, depth), palette)
    rows = pixels.astype(">u2").view(np.uint8) if depth > _BYTE else _pack_bits(pixels, depth)
    return _png(pixels.shape, (depth, kind), rows)


def code_png(codes: Array, effort: int = _LIBDEFLATE_EFFORT) -> bytes:
    """Return an image whose colours are numbers of 24 bits."""
    channels = codes.astype("<u4")[..., None].view(np.uint8)[..., :3]
    return _png(codes.shape, (8, png.RGB), channels.reshape(len(codes), -1), effort=effort)


def grey_png(labels: Array, effort: int = _LIBDEFLATE_EFFORT) -> bytes:
    """Return a grey image: of bytes one of 8 bits, else one of 16."""
    depth, kind = (8, "u1") if labels.dtype == np.uint8 else (16, ">u2")
    return _png(labels.shape, (depth, png.GREY), labels.astype(kind, order="C").view(np.uint8), effort=effort)


def label_png(labels: Array, effort: int = _LIBDEFLATE_EFFORT) -> bytes:
    """Return a label image in DAVIS's palette, with as few bits a pixel as its labels need."""
    depth, palette = _least_depth(labels), png.davis_palette()[: int(labels.max(initial=0)) + 1].tobytes()
    return _png(labels.shape, (depth, png.PALETTE), _pack_bits(labels, depth), ((b"PLTE", palette),), effort)


def _least_depth(labels: Array) -> int:
    """Return how many bits the labels of a palette need."""
    return next(bits for bits in (1, 2, 4, _BYTE) if labels.max(initial=0) < 1 << bits)


def _pack_bits(labels: Array, depth: int) -> Array:
    """Return rows of bytes with so many bits for each pixel."""
    in_byte = _BYTE // depth
    columns = np.pad(labels, ((0, 0), (0, -labels.shape[1] % in_byte))).reshape(len(labels), -1, in_byte)
    rows = np.zeros(columns.shape[:2], np.uint8)
    for column in range(in_byte):
        rows |= columns[:, :, column] << (_BYTE - depth * (column + 1))
    return rows


def _png(
    size: tuple[int, ...],
    kind: tuple[int, int],
    rows: Array,
    palette: tuple[tuple[bytes, bytes], ...] = (),
    effort: int = _LIBDEFLATE_EFFORT,
) -> bytes:
    """Return a PNG of a (height, width), a (depth, colour type) and rows of bytes."""
    raw = np.pad(rows, ((0, 0), (1, 0))).tobytes()  # no filter: the others make masks larger
    header = struct.pack(">IIBBBBB", size[1], size[0], *kind, 0, 0, 0)
    chunks = ((b"IHDR", header), *palette, (b"IDAT", _deflate(raw, _ZLIB, effort)), (b"IEND", b""))
    return png.SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc32(kind + body)) for kind, body in chunks
    )
