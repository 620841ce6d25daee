"""The reader of volume files: it inflates only as many bytes as the header declares, and returns the labels.

The header is read first, and compared with the truth.  Then the labels are read slab by slab; whole numbers stay as
they are stored.
"""

from __future__ import annotations

import math
import zlib
from typing import Callable, Iterable, Iterator, NamedTuple, Tuple

import numpy as np

from ...files.inflate import MAGIC, STEP
from ...files.problems import Flaw
from ...masks.stack import Array
from .geometry import Geometry, Order
from .headers import NO_SCALE, REORDERED, ROUNDED, Read, VolumeHeader, read_metaimage, read_nifti, read_nrrd

#: The endings of volumes, longer ones first.
ENDINGS = (".nii.gz", ".seg.nrrd", ".nii", ".mha", ".nrrd")
#: The endings of files whose data are in another file.
DETACHED = (".mhd", ".nhdr", ".hdr", ".img", ".hdr.gz", ".img.gz")
#: The exclusive maximum of labels.
LABELS_END = 1 << 16
#: zlib's constants for data with the header of gzip or of zlib.
_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "zlib": zlib.MAX_WBITS}
#: A gzip file may have several members; real files have a few.
_MOST_MEMBERS = 64
#: The number of stored voxels read at once, and of zero bytes that may follow.
_SLAB, _PADDING = 1 << 20, 1 << 20
#: The maximum difference of a scaled label from a whole number.
_ROUNDED = 1e-3
#: The number above which labels are shown with six digits.
_LONG_LABEL = 1e20
_WRITE_AGAIN = "Write the file again and repeat the upload"
WHOLE = "Save labels as whole numbers from 0 to 65,535"


class Volume(NamedTuple):
    """A label map."""

    geometry: Geometry
    #: The labels (z, y, x), in 8 or 16 bits.
    labels: Array
    #: Its resolved oddities, as indices of `ODDITIES`.
    oddities: Tuple[int, ...]


class _Source:
    """The bytes of a file in their order."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._chunk, self._start = b"", 0
        #: The number of bytes read.
        self.position = 0

    def read(self, count: int) -> bytes:
        """Return this many bytes, fewer at the end."""
        parts, missing = [], count
        while missing > 0:
            if self._start == len(self._chunk):
                self._chunk, self._start = next(self._chunks, b""), 0
                if not self._chunk:
                    break
            step_bytes = self._chunk[self._start : self._start + missing]
            self._start += len(step_bytes)
            missing -= len(step_bytes)
            parts.append(step_bytes)
        self.position += count - missing
        return b"".join(parts)

    def chunks(self) -> Iterator[bytes]:
        """Yield the remaining bytes."""
        unread = self._chunk[self._start :]
        self._chunk, self._start = b"", 0
        if unread:
            yield unread
        yield from self._chunks


def _inflate(chunks: Iterable[bytes], packing: str) -> Iterator[bytes]:
    """Yield the inflated bytes step by step; raises a Flaw if they end early, or their checksum is wrong."""
    stream, source, members = zlib.decompressobj(_WINDOWS[packing]), iter(chunks), 1
    waiting = b""
    while True:
        waiting = waiting or next(source, b"")
        if not waiting:
            raise Flaw(f"is cut off: its {packing} data end early", _WRITE_AGAIN)
        try:
            data = stream.decompress(waiting, STEP)
        except zlib.error as error:
            why = f"its {packing} checksum is wrong" if "check" in str(error) else f"it is not {packing} data"
            raise Flaw(f"is damaged: {why}", _WRITE_AGAIN) from None
        waiting = stream.unconsumed_tail
        if data:
            yield data
        if stream.eof:
            waiting = _find_member(stream.unused_data, source)
            if not waiting:
                return
            members += 1
            if packing != "gzip" or members > _MOST_MEMBERS or not waiting.startswith(MAGIC[: len(waiting)]):
                raise Flaw(f"has bytes after its {packing} data", _WRITE_AGAIN)
            stream = zlib.decompressobj(_WINDOWS[packing])


def _find_member(following: bytes, source: Iterator[bytes]) -> bytes:
    """Return the data after a compressed member, after skipping a limited number of zero bytes."""
    zeros = 0
    while zeros <= _PADDING:
        stripped = following.lstrip(b"\0")
        zeros += len(following) - len(stripped)
        if stripped:
            return stripped
        following = next(source, b"")
        if not following:
            return b""
    raise Flaw("has too many bytes after its data", _WRITE_AGAIN)


def ending_of(name: str) -> str:
    """Return the ending of a volume's file; "" for other files."""
    return next((ending for ending in ENDINGS if name.lower().endswith(ending)), "")


class VolumeFile:
    """An open volume file, whose header is read and whose labels are not."""

    def __init__(self, name: str, size: int, chunks: Iterable[bytes]) -> None:
        """Read the header; raises a Flaw if there is none."""
        ending = ending_of(name)
        if not ending:
            is_detached = name.lower().endswith(DETACHED)
            fault = "has its data in another file" if is_detached else "is no volume"
            raise Flaw(fault, f"Send one file for each case, {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
        self._source = _Source(chunks)
        if ending == ".nii.gz":
            self._source = _open_gzip(self._source)
        elif ending == ".nii":
            start = self._source.read(2)
            if start == MAGIC:
                raise Flaw("is gzip data without the ending .gz", "Name it .nii.gz")
            self._source = _Source(_chain(start, self._source))
        readers = {".nii.gz": read_nifti, ".nii": read_nifti, ".mha": read_metaimage}
        read_header: Callable[[Read], VolumeHeader] = readers.get(ending, read_nrrd)
        self.header = read_header(self._source.read)
        if self.header.skip < 0:
            self.header = self.header._replace(skip=size - self._source.position - self._length)
        if self.header.skip < 0:
            raise _cut_off(-self.header.skip)

    @property
    def geometry(self) -> Geometry:
        return self.header.geometry

    @property
    def _length(self) -> int:
        """The bytes of all voxels."""
        return math.prod(self.geometry.shape) * self.header.kind.itemsize

    def read_labels(self) -> Volume:
        """Read the labels; raises a Flaw if bytes are missing or surplus, or a value cannot be a label."""
        header, (x, y, z) = self.header, self.geometry.shape
        labels, is_rounded = gather_labels(self.read_stored(), x * y * z, header.scale)
        return Volume(header.geometry, labels.reshape(z, y, x), (*header.oddities, *([ROUNDED] if is_rounded else [])))

    def read_stored(self) -> Iterator[Array]:
        """Yield the stored numbers slab by slab; raises a Flaw if bytes are missing or surplus.

        Memory grows only with the bytes read.
        """
        source, kind = self._source, self.header.kind
        _skip(source, self.header.skip)
        if self.header.packing:
            source = _Source(_inflate(source.chunks(), self.header.packing))
        for start in range(0, self._length, _SLAB * kind.itemsize):
            count = min(_SLAB * kind.itemsize, self._length - start)
            data = source.read(count)
            if len(data) < count:
                raise _cut_off(self._length - start - len(data))
            yield np.frombuffer(data, kind)
        if _find_member(b"", source.chunks()):
            raise Flaw("has surplus bytes after its voxels", _WRITE_AGAIN)


def _chain(start: bytes, source: _Source) -> Iterator[bytes]:
    yield start
    yield from source.chunks()


def _open_gzip(source: _Source) -> _Source:
    start = source.read(2)
    if start != MAGIC:
        if not start:
            raise Flaw("is empty", _WRITE_AGAIN)
        raise Flaw("is not gzip data", "Compress it with gzip, or name it .nii")
    inflated = _Source(_inflate(_chain(start, source), "gzip"))
    start = inflated.read(2)
    if start == MAGIC:
        raise Flaw("is compressed twice", "Compress it once")
    return _Source(_chain(start, inflated))


def _skip(source: _Source, count: int) -> None:
    while count > 0:
        passed = len(source.read(min(count, STEP)))
        if not passed:
            raise Flaw("has data that begin beyond the end of the file", _WRITE_AGAIN)
        count -= passed


def _cut_off(count: int) -> Flaw:
    return Flaw(f"is cut off: {count:,} bytes are missing", _WRITE_AGAIN)


def gather_labels(slabs: Iterable[Array], voxels: int, scale: Tuple[float, float] = NO_SCALE) -> Tuple[Array, bool]:
    """Return the labels of all slabs of stored numbers in 8 or 16 bits, and whether any was rounded."""
    labels: Array = np.empty(voxels, np.uint8)
    start, any_rounded = 0, False
    for slab in slabs:
        values, is_rounded = _take_labels(slab, scale)
        any_rounded |= is_rounded
        if values.itemsize > labels.itemsize:
            narrow, labels = labels, np.empty(voxels, values.dtype)
            labels[:start] = narrow[:start]
            del narrow
        labels[start : start + len(values)] = values
        start += len(values)
    if any_rounded and not labels.any():
        raise Flaw(f"has a scl_slope of {scale[0]:.6g}, with which every label is 0", WHOLE)
    return labels, any_rounded


def _take_labels(stored: Array, scale: Tuple[float, float]) -> Tuple[Array, bool]:
    """Return labels in 8 or 16 bits, and whether they were rounded."""
    values, is_rounded = stored, False
    if scale != NO_SCALE:
        with np.errstate(over="ignore", invalid="ignore"):
            values = stored.astype(np.float64) * scale[0] + scale[1]
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise Flaw("holds values that are not numbers", WHOLE)
        whole = np.rint(values)
        limit = _ROUNDED if scale != NO_SCALE else 0.0
        odd = np.abs(values - whole) > limit
        if odd.any():
            raise Flaw(f"holds {values[odd][0]:.10g}, which is not a whole number", WHOLE)
        is_rounded = bool((values != whole).any())
        values = whole
    least, greatest = values.min(), values.max()
    if least < 0:
        label = f"{int(least)}" if least > -_LONG_LABEL else f"{float(least):.6g}"
        raise Flaw(f"holds the negative label {label}", WHOLE)
    if greatest >= LABELS_END:
        label = f"{int(greatest)}" if greatest < _LONG_LABEL else f"{float(greatest):.6g}"
        raise Flaw(f"holds the label {label}, above {LABELS_END - 1:,}", WHOLE)
    return values.astype(np.uint8 if greatest < 256 else np.uint16), is_rounded


def reorder_volume(volume: Volume, truth: Geometry, order: Order) -> Volume:
    """Return a volume in the truth's grid; exchanged or reversed axes are corrected."""
    if order.is_same:
        return volume
    moved = volume.labels.T.transpose(order.sources)
    steps = tuple(slice(None, None, -1 if is_reversed else 1) for is_reversed in order.reversed)
    return Volume(truth, np.ascontiguousarray(moved[steps].T), (*volume.oddities, REORDERED))
