"""Every rule of the headers of volumes: a changed field is refused with its own sentence, or read otherwise."""

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

AGAIN = "Write the file again and repeat the upload"
ONE_FILE = "Save header and data as one file, such as .nii.gz, .mha or .nrrd"
WHOLE = "Save labels as whole numbers of 8 or 16 bits"
THREE_AXES = "Save one label map with three axes"
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


@pytest.mark.parametrize(
    ("changes", "fault", "remedy"),
    [
        ({"ObjectType": "Mesh"}, "has the ObjectType Mesh", "Save it as an image"),
        ({"NDims": "4"}, "has 4 axes", THREE_AXES),
        ({"NDims": None}, "has no axes", THREE_AXES),
        ({"BinaryData": "False"}, "stores its data as text", "Save it as binary data"),
        ({"ElementNumberOfChannels": "3"}, "has 3 channels", "Save one label for each voxel"),
        ({"HeaderSize": "-1"}, "has a HeaderSize", ONE_FILE),
        ({"DimSize": "4 0 6"}, "is damaged: DimSize along y is 0", AGAIN),
        ({"DimSize": "4 5"}, "has a header whose DimSize is '4 5', not 3 numbers", AGAIN),
        ({"DimSize": "4 5 6.5"}, "has a header whose DimSize is '4 5 6.5'", AGAIN),
        ({"DimSize": "2048 1024 1025"}, "declares 2.1e+09 voxels; the limit is 2,147,483,648", AGAIN),
        ({"ElementType": "MET_BIT"}, "has the ElementType MET_BIT, which is not a type of labels", WHOLE),
        ({"ElementType": None}, "has the ElementType , which is not a type of labels", WHOLE),
        ({"Offset": "7 8"}, "has a header whose Offset is '7 8', not 3 numbers", AGAIN),
        ({"Origin": "7 8 10"}, "has a header whose Offset and Origin disagree", "Write one of them"),
        ({"TransformMatrix": "2 0 0 0 1 0 0 0 1"}, "has a TransformMatrix whose axes are not of length 1", AGAIN),
        ({"ElementDataFile": "a.raw"}, "has its data in another file (a.raw)", ONE_FILE),
        ({"Offset ": "7 8 9"}, "has Offset twice in its header", AGAIN),
    ],
)  # fmt: skip
def test_a_field_of_a_metaimage_is_refused(changes: dict[str, str | None], fault: str, remedy: str) -> None:
    with pytest.raises(Flaw) as caught:
        read_meta(**changes)
    assert (caught.value.fault, caught.value.remedy) == (fault, remedy)


@pytest.mark.parametrize(
    ("changes", "fault", "remedy"),
    [
        ({"dimension": "4"}, "has 4 axes", THREE_AXES),
        ({"dimension": None}, "has no axes", THREE_AXES),
        ({"sizes": "4 5 0"}, "is damaged: the size along z is 0", AGAIN),
        ({"type": "block"}, "has the type block, which is not a type of labels", WHOLE),
        ({"encoding": "hex"}, "has the encoding hex", "Save it with the encoding gzip"),
        ({"type": "uint16"}, "does not state its byte order", AGAIN),
        ({"line_skip": "1"}, "has a line skip", AGAIN),
        ({"byte_skip": "-2"}, "has a byte skip of -2", AGAIN),
        ({"byte_skip": "1", "encoding": "gzip"}, "has a byte skip of 1", AGAIN),
        ({"byte_skip": str((1 << 24) + 1)}, "has a byte skip of 16777217", AGAIN),
        ({"kinds": "domain domain list"}, "has an axis of the kind list", THREE_AXES),
        ({"space_units": '"mm" "cm" "mm"'}, 'has the space units "mm" "cm" "mm"', "Write the spacing in millimetres"),
        ({"data_file": "a.raw"}, "has its data in another file (a.raw)", ONE_FILE),
        ({"space_directions": None}, "states neither space directions nor spacings", "Write the space directions of the image"),
        ({"spacings": "1 2 4"}, "has spacings and space directions that disagree along z (4 and 3 mm)", "Write only the space directions"),
        ({"Type": "uint8"}, "has Type twice in its header", AGAIN),
    ],
)  # fmt: skip
def test_a_field_of_a_nrrd_is_refused(changes: dict[str, str | None], fault: str, remedy: str) -> None:
    with pytest.raises(Flaw) as caught:
        read_changed_nrrd(**changes)
    assert (caught.value.fault, caught.value.remedy) == (fault, remedy)


@pytest.mark.parametrize(
    ("change", "fault", "remedy"),
    [
        (("i", 0, 349), "is not a NIfTI file", "Send label maps as .nii.gz"),
        (("4s", 344, b"ni1\0"), "is the header of a volume in two files", ONE_FILE),
        (("4s", 344, b"n+2\0"), "has no NIfTI magic", "Send label maps as .nii.gz"),
        (("h", 40, 0), "is damaged: dim[0] is 0", AGAIN),
        (("h", 40, 8), "is damaged: dim[0] is 8", AGAIN),
        (("5h", 40, (4, 4, 5, 6, 2)), "has a fourth axis of length 2", THREE_AXES),
        (("8h", 40, (7, 4, 5, 6, 1, 1, 1, 2)), "has a seventh axis of length 2", THREE_AXES),
        (("h", 44, 0), "is damaged: dim[2] is 0", AGAIN),
        (("h", 70, 1), "has the datatype 1, which is not a type of labels", WHOLE),
        (("f", 108, 351.0), "is damaged: vox_offset is 351", AGAIN),
        (("f", 108, 352.5), "is damaged: vox_offset is 352.5", AGAIN),
        (("f", 108, 16_777_568.0), "has data that begin beyond the end of the file, at byte 16,777,568", AGAIN),
        (("2f", 112, (2.0, np.nan)), "is damaged: scl_inter is not a number", AGAIN),
        (("f", 80, -1.0), "is damaged: pixdim[1] is negative", "Write the spacing of the image in millimetres"),
        (("f", 88, 0.0), "is damaged: pixdim[3] is 0", "Write the spacing of the image in millimetres"),
        (("f", 88, 4.0), "has a pixdim and an sform that disagree about the spacing along z (4 and 3 mm)", "Write one spacing in both"),
        (("2h", 252, (1, 0)), None, ""),
        (("2h3f", 252, (1, 0, 1.0, 1.0, 1.0)), "is damaged: its quaternion is not a rotation", AGAIN),
    ],
)  # fmt: skip
def test_a_field_of_a_nifti_is_refused(change: tuple[str, int, Any], fault: str | None, remedy: str) -> None:
    if fault is None:
        assert affine_of(read_changed_nifti(change)) == [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 3, 0]]
        return
    with pytest.raises(Flaw) as caught:
        read_changed_nifti(change)
    assert (caught.value.fault, caught.value.remedy) == (fault, remedy)


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
