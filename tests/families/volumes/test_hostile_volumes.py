"""The cost of hostile volumes: each is scored, or rejected with a sentence, in little time and memory."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from functools import partial
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

import segjudge
from tests.builders import written, zipped
from tests.hostile_units import Make, hostile, sentence_of

TRUTH = np.zeros((5, 6, 7), np.uint8)
TRUTH[1:4, 1:4, 1:4] = 1
TRUTH[2:4, 2:5, 2:6] = 2
TRUTH[1, 1, 1] = 3
NAN, INF = float("nan"), float("inf")
_CODES = {"u1": 2, "i2": 4, "i4": 8, "f4": 16, "f8": 64, "i1": 256, "u2": 512, "u4": 768, "i8": 1024, "u8": 1280}


def make_nifti(labels: Any = TRUTH, **fields: Any) -> bytes:
    """Return a NIfTI-1 file with any header: fields by their names in the standard."""
    labels = np.asarray(labels)
    z, y, x = labels.shape
    order = fields.get("order", "<")
    spacing = fields.get("pixdim", (1.0, 1.0, 2.0))
    header = bytearray(348)
    places: dict[str, tuple[str, int, Any]] = {
        "sizeof_hdr": ("i", 0, 348), "dim": ("8h", 40, (3, x, y, z, 1, 1, 1, 1)),
        "datatype": ("h", 70, _CODES[labels.dtype.str[1:]]), "qfac": ("f", 76, 1.0), "pixdim": ("3f", 80, spacing),
        "vox_offset": ("f", 108, 352.0), "scl_slope": ("f", 112, 1.0), "scl_inter": ("f", 116, 0.0),
        "xyzt_units": ("B", 123, 2), "qform_code": ("h", 252, 0), "sform_code": ("h", 254, 1),
        "quatern": ("6f", 256, (0.0,) * 6),
        "srow": ("12f", 280, (spacing[0], 0, 0, 0, 0, spacing[1], 0, 0, 0, 0, spacing[2], 0)),
        "magic": ("4s", 344, b"n+1\0"),
    }  # fmt: skip
    for name, (form, place, value) in places.items():
        stated = fields.get(name, value)
        struct.pack_into(order + form, header, place, *(stated if isinstance(stated, tuple) else (stated,)))
    return bytes(header) + bytes(4) + labels.astype(labels.dtype.newbyteorder(order)).tobytes()


def make_nifti2(**fields: Any) -> bytes:
    """Return a NIfTI-2 file of the truth with other sides or another offset."""
    header = bytearray(540)
    struct.pack_into("<i8sh", header, 0, 540, b"n+2\0\r\n\x1a\n", 2)
    struct.pack_into("<8q", header, 16, *fields.get("dim", (3, 7, 6, 5, 1, 1, 1, 1)))
    struct.pack_into("<4d", header, 104, 1, 1, 1, 2)
    struct.pack_into("<q", header, 168, fields.get("vox_offset", 544))
    struct.pack_into("<i", header, 500, 2)
    return bytes(header) + bytes(4) + TRUTH.tobytes()


def _make_text(fields: dict[str, str], changes: dict[str, str], equals: str) -> bytes:
    fields = {key: value for key, value in {**fields, **changes}.items() if value}
    return "".join(f"{key}{equals}{value}\n" for key, value in fields.items()).encode("utf-8", "surrogateescape")


def make_metaimage(data: bytes = TRUTH.tobytes(), **changes: str) -> bytes:
    """Return a MetaImage of the truth; a field that is changed to "" is omitted."""
    fields = {
        "ObjectType": "Image", "NDims": "3", "BinaryData": "True", "CompressedData": "False",
        "TransformMatrix": "-1 0 0 0 -1 0 0 0 1", "Offset": "0 0 0", "ElementSpacing": "1 1 2", "DimSize": "7 6 5",
        "ElementType": "MET_UCHAR",
    }  # fmt: skip
    last = {"ElementDataFile": changes.pop("ElementDataFile", "LOCAL")}
    return _make_text(fields, changes, " = ") + _make_text(last, {}, " = ") + data


def make_nrrd(data: bytes = TRUTH.tobytes(), magic: bytes = b"NRRD0004\n", more: str = "", **changes: str) -> bytes:
    """Return a NRRD of the truth; a field that is changed to "" is omitted."""
    fields = {
        "type": "uint8", "dimension": "3", "sizes": "7 6 5", "space": "RAS",
        "space directions": "(1,0,0) (0,1,0) (0,0,2)", "space origin": "(0,0,0)", "encoding": "raw",
    }  # fmt: skip
    text = _make_text(fields, {key.replace("_", " "): value for key, value in changes.items()}, ": ")
    return magic + text + more.encode() + b"\n" + data


def pack(data: bytes) -> bytes:
    """Return gzip data without a time."""
    return gzip.compress(data, 6, mtime=0)


def nifti(labels: Any = TRUTH, **fields: Any) -> Make:
    return lambda: zipped({"a.nii.gz": pack(make_nifti(labels, **fields))})


def nifti2(**fields: Any) -> Make:
    return lambda: zipped({"a.nii.gz": pack(make_nifti2(**fields))})


def metaimage(data: bytes = TRUTH.tobytes(), **changes: str) -> Make:
    return lambda: zipped({"a.mha": make_metaimage(data, **changes)})


def nrrd(data: bytes = TRUTH.tobytes(), **changes: Any) -> Make:
    return lambda: zipped({"a.nrrd": make_nrrd(data, **changes)})


def files(**members: Any) -> Make:
    """Return a function that submits files by name; `__` is a dot and `_of_` a folder in these names."""
    return lambda: zipped({name.replace("__", ".").replace("_of_", "/"): data for name, data in members.items()})


def named(*names: str) -> Make:
    """Return a function that submits the truth under these names."""
    return lambda: zipped(dict.fromkeys(names, GOOD))


def jobs(document: Any) -> Make:
    """Return a function that submits an image of grand-challenge with a list of jobs."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return lambda: zipped({"predictions.json": data, "J/output/images/seg/U.mha": make_metaimage()})


def job(name: Any = "a.mha", **changes: Any) -> dict[str, Any]:
    output = {"image": {"pk": "U"}, "socket": {"relative_path": "images/seg"}}
    return {"pk": "J", "inputs": [{"image": {"name": name}}], "outputs": [output], **changes}


RAW = make_nifti()
GOOD = pack(RAW)
AGAIN = "Write the file again and repeat the upload"
OFF = "Write the prediction with the header of the image"
ELSEWHERE = "has its data in another file"
#: The upload, and words of the message; `scored` if it is a valid volume after all.
HOSTILE: dict[str, tuple[Make, str]] = {
    "slope-nan": (nifti(scl_slope=NAN), "scored"),
    "slope-infinite": (nifti(scl_slope=INF), "scored"),
    "slope-none": (nifti(scl_slope=0.0, scl_inter=5.0), "scored"),
    "slope-negative": (nifti(scl_slope=-1.0), "a.nii.gz: holds the negative label -3. Save labels as whole numbers"),
    "slope-huge": (nifti(scl_slope=1e30), "holds the label 3e+30, above 65,535"),
    "slope-tiny": (nifti(scl_slope=1e-30), "has a scl_slope of 1e-30, with which every label is 0"),
    "slope-half": (nifti(scl_slope=0.5), "holds 1.5, which is not a whole number"),
    "intercept-nan": (nifti(scl_inter=NAN), "scl_inter is not a number"),
    "spacing-0": (nifti(pixdim=(0.0, 1.0, 2.0)), "pixdim[1] is 0. Write the spacing"),
    "spacing-negative": (nifti(pixdim=(1.0, 1.0, -2.0)), "pixdim[3] is negative"),
    "spacing-nan": (nifti(pixdim=(NAN, 1.0, 2.0)), "pixdim[1] is nan"),
    "spacing-infinite": (nifti(pixdim=(INF, 1.0, 2.0)), "pixdim[1] is inf"),
    "spacing-tiny": (nifti(pixdim=(1e-30, 1.0, 2.0)), "has a spacing of 1e-30 along x"),
    "spacing-claimed": (nifti(pixdim=(0.1, 0.1, 0.1)), "a spacing of 0.1 mm along z; the truth has 2 mm. " + OFF),
    "metres": (nifti(xyzt_units=1), "a spacing of 1000 mm along x; the truth has 1 mm"),
    "sform-nan": (nifti(srow=(NAN,) * 12), "has a position that is not a number"),
    "sform-0": (nifti(srow=(0.0,) * 12), "has singular directions"),
    "sform-far": (nifti(srow=(1, 0, 0, 3e38, 0, 1, 0, 0, 0, 0, 2, 0)), "outside any body. " + OFF),
    "sform-moved": (nifti(srow=(1, 0, 0, 30, 0, 1, 0, 0, 0, 0, 2, 0)), "is offset by 30 mm along x"),
    "sform-sheared": (nifti(srow=(1, 0.5, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0)), "not orthogonal"),
    "qform-nan": (nifti(sform_code=0, qform_code=1, quatern=(NAN,) * 6), "quaternion is not a rotation"),
    "qform-no-rotation": (nifti(sform_code=0, qform_code=1, quatern=(9.0, 9.0, 9.0, 0.0, 0.0, 0.0)), "not a rotation"),
    "qform-beside-sform": (nifti(qform_code=1, quatern=(NAN,) * 6), "scored"),
    "axes-0": (nifti(dim=(0, 7, 6, 5, 1, 1, 1, 1)), "dim[0] is 0. " + AGAIN),
    "axes-8": (nifti(dim=(8, 7, 6, 5, 1, 1, 1, 1)), "dim[0] is 8"),
    "axes-2": (nifti(dim=(2, 7, 6, 5, 1, 1, 1, 1)), "has 7 x 6 x 1 voxels; the truth has 7 x 6 x 5"),
    "axes-4": (nifti(dim=(4, 7, 6, 5, 2, 1, 1, 1)), "a fourth axis of length 2. Save one label map"),
    "axes-4-of-1": (nifti(dim=(4, 7, 6, 5, 1, 1, 1, 1)), "scored"),
    "axes-5": (nifti(dim=(5, 7, 6, 5, 1, 3, 1, 1)), "a fifth axis of length 3"),
    "side-negative": (nifti(dim=(3, -7, 6, 5, 1, 1, 1, 1)), "dim[1] is -7"),
    "sides-huge": (nifti(dim=(3, 32767, 32767, 32767, 1, 1, 1, 1)), "declares 3.5e+13 voxels; the limit is 2,147,483,648"),
    "sides-2-62": (nifti2(dim=(3, 1 << 62, 1 << 62, 1, 1, 1, 1, 1)), "declares 2.1e+37 voxels"),
    "side-minus-2-63": (nifti2(dim=(3, -(1 << 63), 6, 5, 1, 1, 1, 1)), "dim[1] is -9223372036854775808"),
    "one-slice": (nifti(TRUTH[:1]), "has 7 x 6 x 1 voxels; the truth has 7 x 6 x 5. Resample it"),
    "turned-array": (nifti(TRUTH.T), "the truth has 7 x 6 x 5. Transpose the array into the image's order of axes"),
    "offset-nan": (nifti(vox_offset=NAN), "vox_offset is nan"),
    "offset-negative": (nifti(vox_offset=-5.0), "vox_offset is -5"),
    "offset-in-header": (nifti(vox_offset=349.0), "vox_offset is 349"),
    "offset-beyond": (nifti(vox_offset=1e6), "data that begin beyond the end"),
    "offset-far-beyond": (nifti2(vox_offset=1 << 62), "at byte 4,611,686,018,427,387,904"),
    "complex": (nifti(datatype=32), "has the datatype 32, which is not a type of labels"),
    "rgb": (nifti(datatype=128), "has the datatype 128"),
    "float128": (nifti(datatype=1536), "has the datatype 1536"),
    "type-unknown": (nifti(datatype=-7), "has the datatype -7"),
    "probabilities": (nifti(TRUTH.astype("f4") / 3), "holds 0.3333333433, which is not a whole number"),
    "nearly-1": (nifti(np.float32(0.99999994) * (TRUTH == 1)), "holds 0.9999999404, which is not a whole number"),
    "values-nan": (nifti(np.where(TRUTH, NAN, 0).astype("f4")), "holds values that are not numbers"),
    "values-infinite": (nifti(np.where(TRUTH, INF, 0)), "holds values that are not numbers"),
    "values-1e300": (nifti(np.where(TRUTH, 1e300, 0)), "holds the label 1e+300"),
    "label-2-63": (nifti((TRUTH == 1).astype("u8") << np.uint64(63)), "holds the label 9223372036854775808"),
    "label-minus-2-63": (nifti((TRUTH == 1).astype("i8") << 63), "holds the negative label -9223372036854775808"),
    "label-65536": (nifti(np.where(TRUTH, 65536, 0).astype("u4")), "holds the label 65536"),
    "magic-of-a-pair": (nifti(magic=b"ni1\0"), "is the header of a volume in two files"),
    "magic-unknown": (nifti(magic=b"abcd"), "has no NIfTI magic"),
    "magic-of-nifti-2": (nifti(magic=b"n+2\0"), "has no NIfTI magic"),
    "pixdim-beside-sform": (nifti(srow=(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 3, 0)), "has a pixdim and an sform that disagree about the spacing along z"),
    "header-of-0": (nifti(sizeof_hdr=0), "is not a NIfTI file"),
    "big-endian": (nifti(TRUTH.astype("u2"), order=">"), "scored"),
    "empty": (files(a__nii__gz=b""), "a.nii.gz: is empty. " + AGAIN),
    "empty-gzip": (files(a__nii__gz=pack(b"")), "is empty"),
    "half-a-header": (files(a__nii__gz=pack(RAW[:100])), "248 bytes of its header are missing"),
    "header-alone": (files(a__nii__gz=pack(RAW[:352])), "is cut off: 210 bytes are missing"),
    "surplus": (files(a__nii__gz=pack(RAW + b"x")), "has surplus bytes after its voxels"),
    "gzip-cut": (files(a__nii__gz=GOOD[:-5]), "its gzip data end early"),
    "gzip-checksum": (files(a__nii__gz=GOOD[:-8] + bytes(4) + GOOD[-4:]), "its gzip checksum is wrong"),
    "gzip-surplus": (files(a__nii__gz=GOOD + b"garbage"), "has bytes after its gzip data"),
    "gzip-in-gzip": (files(a__nii__gz=pack(GOOD)), "is compressed twice"),
    "gzip-of-two": (files(a__nii__gz=pack(RAW[:200]) + pack(RAW[200:])), "scored"),
    "gzip-of-thousands": (files(a__nii__gz=pack(b"") * 50_000 + GOOD), "has bytes after its gzip data"),
    "gzip-long-name": (files(a__nii__gz=GOOD[:3] + b"\x08" + GOOD[4:10] + b"A" * 2_000_000 + b"\0" + GOOD[10:]), "scored"),
    "gzip-bomb": (lambda: zipped({"a.nii.gz": pack(RAW + bytes(256 << 20))}), "too many bytes after its data"),
    "not-gzip": (files(a__nii__gz=RAW), "is not gzip data. Compress it"),
    "gzip-unsaid": (files(a__nii=GOOD), "a.nii: is gzip data without the ending .gz"),
    "html": (files(a__nii__gz=pack(b"<html>" * 100)), "is not a NIfTI file"),
    "meta-nan-side": (metaimage(DimSize="nan 6 5"), "a.mha: has a header whose DimSize is 'nan 6 5'"),
    "meta-infinite-side": (metaimage(DimSize="inf 6 5"), "has a header whose DimSize is 'inf 6 5'"),
    "meta-sides-huge": (metaimage(DimSize="99999 99999 99999"), "declares 1e+15 voxels"),
    "meta-side-underscore": (metaimage(DimSize="0_7 6 5"), "not 3 numbers"),
    "meta-no-sides": (metaimage(DimSize=""), "has a header whose DimSize is ''"),
    "meta-4-axes": (metaimage(NDims="4", DimSize="7 6 5 1"), "has 4 axes"),
    "meta-spacing-nan": (metaimage(ElementSpacing="nan 1 2"), "has a spacing of nan along x"),
    "meta-matrix-0": (metaimage(TransformMatrix="0 0 0 0 0 0 0 0 0"), "has singular directions"),
    "meta-matrix-of-2": (metaimage(TransformMatrix="-2 0 0 0 -1 0 0 0 1"), "axes are not of length 1"),
    "meta-two-offsets": (metaimage(Position="50 0 0"), "whose Offset and Position disagree"),
    "meta-two-orders": (metaimage(BinaryDataByteOrderMSB="True", ElementByteOrderMSB="False"), "disagree. Write one"),
    "meta-elsewhere": (metaimage(ElementDataFile="../truth/a.raw"), ELSEWHERE + " (../truth/a.raw)"),
    "meta-list": (metaimage(ElementDataFile="LIST"), ELSEWHERE + " (LIST)"),
    "meta-channels": (metaimage(ElementNumberOfChannels="3"), "has 3 channels"),
    "meta-tube": (metaimage(ObjectType="Tube"), "has the ObjectType Tube"),
    "meta-no-zlib": (metaimage(CompressedData="True"), "it is not zlib data"),
    "meta-zlib-bomb": (
        lambda: zipped({"a.mha": make_metaimage(zlib.compress(TRUTH.tobytes() + bytes(1 << 28)), CompressedData="True")}),
        "too many bytes after its data",
    ),
    "meta-odd-bytes": (metaimage(Comment="\udcff\udcfe\0\x07"), "scored"),
    "meta-no-axes": (metaimage(NDims=""), "has no axes"),
    "meta-text": (metaimage(BinaryData="False"), "stores its data as text. Save it as binary data"),
    "meta-header-size": (metaimage(HeaderSize="-1"), "has a HeaderSize"),
    "meta-side-0": (metaimage(DimSize="7 0 5"), "is damaged: DimSize along y is 0"),
    "meta-bits": (metaimage(ElementType="MET_BIT"), "has the ElementType MET_BIT, which is not a type of labels"),
    "meta-twice": (metaimage(**{"Offset ": "7 8 9"}), "has Offset twice in its header"),
    "meta-no-end": (files(a__mha=b"A" * 1_000_000), "the end of its header is missing"),
    "detached": (files(a__mhd=make_metaimage(b"", ElementDataFile="a.raw"), a__raw=TRUTH.tobytes()), "a.mhd: " + ELSEWHERE),
    "detached-pair": (files(a__hdr=RAW[:348], a__img=TRUTH.tobytes()), "a.hdr: " + ELSEWHERE),
    "nrrd-elsewhere": (nrrd(data_file="../truth/a.raw"), ELSEWHERE + " (../truth/a.raw)"),
    "nrrd-elsewhere-in-capitals": (nrrd(more="DATAFILE: x.raw\n"), ELSEWHERE + " (x.raw)"),
    "nrrd-bzip2": (nrrd(encoding="bzip2"), "has the encoding bzip2. Save it with the encoding gzip"),
    "nrrd-4-axes": (nrrd(dimension="4", sizes="1 7 6 5"), "has 4 axes"),
    "nrrd-channels": (nrrd(kinds="3-color domain domain"), "has an axis of the kind 3-color"),
    "nrrd-nan-side": (nrrd(sizes="nan 6 5"), "has a header whose sizes is 'nan 6 5'"),
    "nrrd-type": (nrrd(type="block"), "has the type block, which is not a type of labels"),
    "nrrd-no-order": (nrrd(type="short"), "does not state its byte order"),
    "nrrd-skip": (nrrd(byte_skip="1000000000"), "has a byte skip of 1000000000"),
    "nrrd-directions-nan": (nrrd(space_directions="(nan,0,0) (0,1,0) (0,0,2)"), "a position that is not a number"),
    "nrrd-two-spacings": (nrrd(spacings="3 3 3"), "disagree along x (3 and 1 mm)"),
    "nrrd-metres": (nrrd(space_units='"m" "m" "m"'), "has the space units"),
    "nrrd-twice": (nrrd(more="type: uint8\n"), "has type twice"),
    "nrrd-no-axes": (nrrd(dimension=""), "has no axes"),
    "nrrd-side-0": (nrrd(sizes="7 6 0"), "is damaged: the size along z is 0"),
    "nrrd-line-skip": (nrrd(line_skip="1"), "has a line skip"),
    "nrrd-no-directions": (nrrd(space_directions=""), "states neither space directions nor spacings"),
    "nrrd-version": (nrrd(magic=b"NRRD9999\n"), "is a NRRD of an unknown version, '9999'"),
    "nrrd-no-end": (files(a__nrrd=b"NRRD0004\n" + b"a: b\n" * 100_000), "the end of its header is missing"),
    "two-formats": (files(a__nii__gz=GOOD, a__mha=make_metaimage()), "a.mha: is also sent as a.nii.gz"),
    "emoji": (named("a\U0001f600.nii.gz"), "1 of 1 case is missing: a"),
    "turned-letters": (named("a\u202egz.nii.gz"), "1 is not in the truth: a\\u202egz"),
    "channel": (named("a_0000.nii.gz"), "1 is not in the truth: a_0000. Send predictions, not images of channels"),
    "other-name": (named("b.nii.gz"), "1 is not in the truth: b. Name each volume after its case, such as a.nii.gz"),
    "no-volume": (files(dataset__json=b"{}"), "has no volume such as CASE.nii.gz"),
    "nothing": (files(), "has no volume such as CASE.nii.gz"),
    "2000-cases": (lambda: zipped({f"{case}/a{case}.nii.gz": GOOD for case in range(2000)}), "1 of 1 case is missing: a"),
    "jobs-null": (jobs([None]), "predictions.json: has another form. Write"),
    "jobs-of-numbers": (jobs([job(5)]), "predictions.json: has another form"),
    "jobs-twice": (jobs([job(), job()]), "names J/output/images/seg/U.mha twice"),
    "jobs-in-two-lists": (files(predictions__json=b"[]", x_of_predictions__json=b"[]"), "has several predictions.json: predictions.json, x/"),
    "jobs-elsewhere": (jobs([job(pk="../../truth", outputs=[])]), "names no volume that was sent"),
    "jobs-100000-outputs": (jobs([job(outputs=job()["outputs"] * 100_000)]), "twice. List each job"),
    "jobs-long-name": (jobs([job("a-" * 500_000)]), "1 of 1 case is missing: a"),
}  # fmt: skip


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("truth"), {"a.nii.gz": GOOD})


@hostile(HOSTILE)
def test_a_hostile_volume_gets_a_sentence(make: Make, sentence: str, truth: Path, tmp_path: Path) -> None:
    assert sentence in sentence_of(make(), tmp_path, lambda path: segjudge.score(path, truth, "volumes"))


#: Labels of each voxel by its number, the row that scores them, and words of the answer.
LABELS: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "a-label-in-each-voxel": (lambda at: at % 65_536, "volumes", "case a: has 65,533 labels that its truth lacks: 3, 4"),
    "a-label-in-each-component": (lambda at: at % 65_536, "components", "the limit is 1,000. Write the labels 1, 2"),
    "a-label-of-no-region": (lambda at: at % 65_536, "brats-2023", "case a: has labels that are not in the table: 4 in"),
    "scattered": (lambda at: at % 997, "components", "scattered over the volume: 3, 4, 5 and"),
    "noise": (lambda at: at * at % 1_013 % 4, "brats-2023", "scored"),
    "noise-of-surfaces": (lambda at: at * at % 1_013 % 4, "volumes", "scored"),
    "noise-of-components": (lambda at: at * at % 1_013 % 4, "components", "scored"),
}  # fmt: skip


@hostile({name: (partial(zip, [name]), row[2]) for name, row in LABELS.items()})
def test_hostile_labels_get_a_sentence(make: Callable[[], Any], sentence: str, tmp_path: Path) -> None:
    ((name,),) = make()
    label, protocol, _ = LABELS[name]
    shape = (64, 256, 256) if name == "scattered" else (64, 64, 64)
    numbers = np.arange(np.prod(shape)).reshape(shape)
    spacing = {"pixdim": (1.0, 1.0, 1.0)}
    true = (numbers % 64 > 40).astype(np.uint8) + (numbers % 64 > 60)
    folder = written(tmp_path / "truth", {"a.nii.gz": pack(make_nifti(true.astype(np.uint8), **spacing))})
    sent = zipped({"a.nii.gz": pack(make_nifti(label(numbers).astype(np.uint16), **spacing))})
    assert sentence in sentence_of(sent, tmp_path, lambda path: segjudge.score(path, folder, protocol))
