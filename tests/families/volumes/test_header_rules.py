"""The oddities that headers of volumes have, and what data they announce."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.volumes.headers import (
    CONVERTED,
    PLACED_TWICE,
    UNPLACED,
    VolumeHeader,
    read_metaimage,
    read_nifti,
    read_nrrd,
)
from segjudge.evaluation_script.files.problems import Flaw

META = {
    "ObjectType": "Image", "NDims": "3", "BinaryData": "True", "DimSize": "4 5 6", "ElementType": "MET_UCHAR",
    "ElementSpacing": "1 2 3", "Offset": "7 8 9", "TransformMatrix": "1 0 0 0 1 0 0 0 1",
}  # fmt: skip
NRRD = {
    "type": "uint8", "dimension": "3", "sizes": "4 5 6", "encoding": "raw", "space": "left-posterior-superior",
    "space directions": "(1,0,0) (0,2,0) (0,0,3)", "space origin": "(7,8,9)",
}  # fmt: skip


def read_meta(**changes: str | None) -> VolumeHeader:
    fields = {**META, **changes, "ElementDataFile": changes.get("ElementDataFile", "LOCAL")}
    text = "".join(f"{key} = {value}\n" for key, value in fields.items() if value is not None)
    return read_metaimage(io.BytesIO(text.encode()).read)


def read_changed_nrrd(**changes: str | None) -> VolumeHeader:
    fields = {**NRRD, **{key.replace("_", " "): value for key, value in changes.items()}}
    text = "".join(f"{key}: {value}\n" for key, value in fields.items() if value is not None)
    return read_nrrd(io.BytesIO(f"NRRD0005\n{text}\n".encode()).read)


def nifti(*changes: tuple[str, int, Any]) -> bytes:
    """Return a header of 4 x 5 x 6 bytes, placed by an sform, with numbers of a form written at offsets."""
    header = bytearray(352)
    fields: list[tuple[str, int, Any]] = [
        ("i", 0, 348), ("8h", 40, (3, 4, 5, 6, 1, 1, 1, 1)), ("h", 70, 2), ("8f", 76, (1, 1, 2, 3, 1, 1, 1, 1)),
        ("f", 108, 352.0), ("b", 123, 2), ("h", 254, 1), ("12f", 280, (-1, 0, 0, 7, 0, -2, 0, 8, 0, 0, 3, 9)),
        ("4s", 344, b"n+1\0"), *changes,
    ]  # fmt: skip
    for form, offset, value in fields:
        struct.pack_into(f"<{form}", header, offset, *(value if isinstance(value, tuple) else (value,)))
    return bytes(header)


def read_changed_nifti(*changes: tuple[str, int, Any]) -> VolumeHeader:
    return read_nifti(io.BytesIO(nifti(*changes)).read)


def affine_of(header: VolumeHeader) -> list[list[float]]:
    assert header.geometry.affine is not None
    rows: list[list[float]] = header.geometry.affine.tolist()
    return rows


PLACED = [[-1, 0, 0, -7], [0, -2, 0, -8], [0, 0, 3, 9]]


def test_headers_without_a_change_are_read_alike() -> None:
    for header in (read_meta(), read_changed_nrrd()):
        assert (header.geometry.shape, tuple(header.geometry.spacing)) == ((4, 5, 6), (1, 2, 3))
        assert affine_of(header) == PLACED
        assert (header.kind, header.skip, header.packing, header.scale, header.oddities) == ("u1", 0, "", (1, 0), ())
    header = read_changed_nifti()
    assert (header.geometry.shape, tuple(header.geometry.spacing), header.kind) == ((4, 5, 6), (1, 2, 3), "u1")
    assert affine_of(header) == [[-1, 0, 0, 7], [0, -2, 0, 8], [0, 0, 3, 9]]
    assert (header.skip, header.scale, header.oddities) == (4, (1, 0), ())


@pytest.mark.parametrize("read", [read_nifti, read_metaimage, read_nrrd])
def test_a_header_that_is_empty_or_cut_off_is_refused(read: Any) -> None:
    whole = {read_nifti: nifti()[:348], read_metaimage: b"NDims = 3\n", read_nrrd: b"NRRD0005\ntype: uint8\n"}[read]
    with pytest.raises(Flaw, match="is empty"):
        read(io.BytesIO(b"").read)
    with pytest.raises(Flaw, match="is cut off: 8 bytes of its header are missing|the end of its header is missing"):
        read(io.BytesIO(whole[:340]).read)
    with pytest.raises(Flaw, match="is not a"):
        read(io.BytesIO(b"text\n" * 80 + b"ElementDataFile = LOCAL\n").read)


def test_oddities_of_headers_are_noted() -> None:
    converted = read_changed_nifti(("b", 123, 3), ("3f", 80, (1000, 2000, 3000)), ("h", 254, 0))
    assert (tuple(converted.geometry.spacing), converted.oddities) == ((1, 2, 3), (CONVERTED, UNPLACED))
    assert read_changed_nifti(("h", 252, 1)).oddities == (PLACED_TWICE,)
    assert read_changed_nifti(("2f", 112, (2.0, 1.0))).scale == (2, 1)
    assert read_changed_nifti(("2f", 112, (np.nan, 1.0))).scale == (1, 0)
    assert read_changed_nrrd(space=None).oddities == (UNPLACED,)
    assert read_changed_nrrd(space_origin=None).oddities == (UNPLACED,)
    assert read_changed_nrrd(space_directions=None, spacings="1 2 3").oddities == (UNPLACED,)
    assert affine_of(read_changed_nrrd(space="RAS")) == [[1, 0, 0, 7], [0, 2, 0, 8], [0, 0, 3, 9]]


def test_data_are_read_as_headers_say() -> None:
    assert read_meta(ElementType="MET_SHORT", BinaryDataByteOrderMSB="True").kind == np.dtype(">i2")
    assert read_meta(ElementType="MET_SHORT", ElementByteOrderMSB="1").kind == np.dtype(">i2")
    assert (read_meta(CompressedData="True").packing, read_meta(CompressedData="False").packing) == ("zlib", "")
    assert read_changed_nrrd(type="short", endian="big").kind == np.dtype(">i2")
    assert read_changed_nrrd(type="short", endian="little").kind == np.dtype("<i2")
    assert read_changed_nrrd(encoding="GZ").packing == "gzip"
    assert (read_changed_nrrd(byte_skip="-1").skip, read_changed_nrrd(byte_skip="16777216").skip) == (-1, 1 << 24)
    assert read_changed_nifti(("f", 108, 400.0)).skip == 52
