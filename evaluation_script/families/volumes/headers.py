"""The headers of NIfTI-1 and -2, MetaImage and NRRD: the data's type, offset, and position in the body.

A header never leads to another file: volumes with detached data are rejected.
"""

from __future__ import annotations

import math
import struct
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from ...files.problems import Flaw, printable
from ...masks.stack import Array
from .geometry import AXES, Geometry, Shape, check_spacing, fits, make_geometry, place_by_directions

#: The maximum number of voxels of a volume.
MOST_VOXELS = 1 << 31
#: The bytes after a NIfTI header that announce extensions.
_EXTENDER = 4
#: The maximum bytes of a header's text, and of the extensions after a NIfTI header.
_LONGEST_TEXT, _LONGEST_EXTENSION = 1 << 16, 1 << 24
#: The relative difference up to which two spacings in a header are the same.
_SAME = 1e-3
_WRITE_AGAIN = "Write the file again and repeat the upload"
_ONE_FILE = "Save header and data as one file, such as .nii.gz, .mha or .nrrd"
#: Oddities of volumes that were resolved, as texts after a number of cases; volumes store their indices.
ODDITIES = (
    "with exchanged or reversed axes, brought into the truth's order",
    "with a spacing in another unit, converted to millimetres",
    "with an sform and a qform that disagree, placed by the sform",
    "without a position in the header, compared by shape and spacing only",
    "with labels that a slope turned into fractions, rounded",
)
REORDERED, CONVERTED, PLACED_TWICE, UNPLACED, ROUNDED = range(len(ODDITIES))
#: The slope and intercept of numbers that are labels as stored.
NO_SCALE = (1.0, 0.0)
_WHOLE = "Save labels as whole numbers of 8 or 16 bits"


class VolumeHeader(NamedTuple):
    """The header of a volume."""

    geometry: Geometry
    #: The type of stored numbers.
    kind: np.dtype[np.generic]
    #: The start of the data, counted from the end of the header; negative if the data are the end of the file.
    skip: int = 0
    #: The compression of the data: "", "gzip" or "zlib".
    packing: str = ""
    #: The slope and intercept that turn stored numbers into labels.
    scale: Tuple[float, float] = NO_SCALE
    #: Its resolved oddities, as indices of `ODDITIES`.
    oddities: Tuple[int, ...] = ()


#: Returns the next bytes of a file, fewer at its end.
Read = Callable[[int], bytes]


def _check_shape(sides: List[int], names: List[str]) -> Shape:
    """Return the sides of a volume; raises a Flaw if a side is 0 or the volume is too large."""
    for side, name in zip(sides, names):
        if side < 1:
            raise Flaw(f"is damaged: {name} is {side}", _WRITE_AGAIN)
    voxels = math.prod(sides)
    if voxels > MOST_VOXELS:
        raise Flaw(f"declares {voxels:.2g} voxels; the limit is {MOST_VOXELS:,}", _WRITE_AGAIN)
    return sides[0], sides[1], sides[2]


# ── NIfTI ───────────────────────────────────────────────────────────────────

_NIFTI_KINDS = {
    2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4", 1024: "i8", 1280: "u8",
}  # fmt: skip
_MAGICS = {348: b"n+1\0", 540: b"n+2\0\r\n\x1a\n"}
_PAIR_MAGICS = (b"ni1\0", b"ni2\0")
#: The millimetres of a unit, by its code.
_UNITS = {1: 1000.0, 3: 0.001}


class NiftiPosition(NamedTuple):
    """The fields of a header of either version that place its voxels."""

    pixdim: Tuple[float, ...]
    qform_code: int
    sform_code: int
    quaternion: Tuple[float, ...]
    rows: Tuple[float, ...]
    units: int


class _NiftiFields(NamedTuple):
    """The fields of a header of either version."""

    dim: Tuple[int, ...]
    datatype: int
    data_offset: float
    slope: float
    intercept: float
    position: NiftiPosition


def read_nifti(read: Read) -> VolumeHeader:
    """Read the header of a NIfTI file, version 1 or 2, in either byte order."""
    data = read(348)
    if not data:
        raise Flaw("is empty", _WRITE_AGAIN)
    order = next((order for order in "<>" if data[:4] in _sizes(order)), "")
    if not order:
        raise Flaw("is not a NIfTI file", "Send label maps as .nii.gz")
    size = struct.unpack(f"{order}i", data[:4])[0]
    data += read(size - 348)
    if len(data) < size:
        raise Flaw(f"is cut off: {size - len(data)} bytes of its header are missing", _WRITE_AGAIN)
    start, length = (344, 4) if size == 348 else (4, 8)
    magic = data[start : start + length]
    if magic[:4] in _PAIR_MAGICS:
        raise Flaw("is the header of a volume in two files", _ONE_FILE)
    if magic != _MAGICS[size]:
        raise Flaw("has no NIfTI magic", "Send label maps as .nii.gz")
    return _interpret_nifti(_unpack_nifti(data, order), order, size)


def _sizes(order: str) -> List[bytes]:
    return [struct.pack(f"{order}i", size) for size in _MAGICS]


def _unpack_nifti(data: bytes, order: str) -> _NiftiFields:
    def take(form: str, offset: int) -> Tuple[float, ...]:
        return struct.unpack_from(order + form, data, offset)

    if len(data) == 348:
        dim, (datatype,), pixdim = take("8h", 40), take("h", 70), take("8f", 76)
        offset, slope, intercept = take("3f", 108)
        codes, quaternion, rows, units = take("2h", 252), take("6f", 256), take("12f", 280), data[123]
    else:
        (datatype,), dim, pixdim, (offset,) = take("h", 12), take("8q", 16), take("8d", 104), take("q", 168)
        slope, intercept = take("2d", 176)
        codes, quaternion, rows = take("2i", 344), take("6d", 352), take("12d", 400)
        units = int(take("i", 500)[0])
    position = NiftiPosition(pixdim, int(codes[0]), int(codes[1]), quaternion, rows, units)
    return _NiftiFields(tuple(map(int, dim)), int(datatype), offset, slope, intercept, position)


def _interpret_nifti(fields: _NiftiFields, order: str, size: int) -> VolumeHeader:
    axes = fields.dim[0]
    if not 1 <= axes <= 7:
        raise Flaw(f"is damaged: dim[0] is {axes}", _WRITE_AGAIN)
    shape = check_axes(list(fields.dim[1 : axes + 1]))
    if fields.datatype not in _NIFTI_KINDS:
        raise Flaw(f"has the datatype {fields.datatype}, which is not a type of labels", _WHOLE)
    kind = np.dtype(f"{order}{_NIFTI_KINDS[fields.datatype]}")
    offset = fields.data_offset
    if not math.isfinite(offset) or offset != int(offset) or offset < size + _EXTENDER:
        raise Flaw(f"is damaged: vox_offset is {offset:g}", _WRITE_AGAIN)
    if offset - size > _LONGEST_EXTENSION:
        raise Flaw(f"has data that begin beyond the end of the file, at byte {offset:,.0f}", _WRITE_AGAIN)
    geometry, oddities = place_nifti(fields.position, shape)
    return VolumeHeader(geometry, kind, int(offset) - size, "", _scale_nifti(fields), oddities)


def check_axes(sides: List[int]) -> Shape:
    """Return the sides of the first three of up to seven axes; a Flaw unless all others are 1."""
    sides = [*sides, *[1] * (7 - len(sides))]
    shape = _check_shape(sides, [f"dim[{axis}]" for axis in range(1, 8)])
    for ordinal, side in zip(("fourth", "fifth", "sixth", "seventh"), sides[3:]):
        if side != 1:
            raise Flaw(f"has a {ordinal} axis of length {side}", "Save one label map with three axes")
    return shape


def _scale_nifti(fields: _NiftiFields) -> Tuple[float, float]:
    if not math.isfinite(fields.slope) or fields.slope == 0:
        return NO_SCALE
    if not math.isfinite(fields.intercept):
        raise Flaw("is damaged: scl_inter is not a number", _WRITE_AGAIN)
    return fields.slope, fields.intercept


def place_nifti(fields: NiftiPosition, shape: Shape) -> Tuple[Geometry, Tuple[int, ...]]:
    """Return the geometry by the sform, else by the qform, else by pixdim, which has no position."""
    for axis in range(1, 4):
        number = fields.pixdim[axis]
        if not math.isfinite(number) or number <= 0:
            state = "negative" if number < 0 else f"{number:g}"
            raise Flaw(f"is damaged: pixdim[{axis}] is {state}", "Write the spacing of the image in millimetres")
    unit = _UNITS.get(fields.units & 7, 1.0)
    oddities = [CONVERTED] if unit != 1.0 else []
    spacing = check_spacing([unit * number for number in fields.pixdim[1:4]])
    if fields.sform_code > 0:
        geometry = make_geometry(shape, unit * np.reshape(fields.rows, (3, 4)))
        if fields.qform_code > 0 and not _agree(geometry, fields, unit):
            oddities.append(PLACED_TWICE)
        for axis, (by_steps, stated) in enumerate(zip(geometry.spacing, tuple(spacing))):
            if abs(by_steps / stated - 1) <= _SAME:
                continue
            if fields.qform_code <= 0:
                fault = f"has a pixdim and an sform that disagree about the spacing along {AXES[axis]}"
                raise Flaw(f"{fault} ({stated:.6g} and {by_steps:.6g} mm)", "Write one spacing in both")
            spacing = geometry.spacing
        return geometry._replace(spacing=spacing), tuple(oddities)
    if fields.qform_code > 0:
        return make_geometry(shape, unit * _rotate_nifti(fields))._replace(spacing=spacing), tuple(oddities)
    return Geometry(shape, spacing, None), (*oddities, UNPLACED)


def _agree(by_sform: Geometry, fields: NiftiPosition, unit: float) -> bool:
    """Return whether the qform of a header places the volume as its sform does."""
    try:
        return fits(by_sform, make_geometry(by_sform.shape, unit * _rotate_nifti(fields)))
    except Flaw:
        return False


def _rotate_nifti(fields: NiftiPosition) -> Array:
    """Return the affine of a qform."""
    b, c, d = fields.quaternion[:3]
    square = b * b + c * c + d * d
    if not math.isfinite(square) or square > 1 + _SAME:
        raise Flaw("is damaged: its quaternion is not a rotation", _WRITE_AGAIN)
    a = math.sqrt(max(0.0, 1 - square))
    rotation = np.array(
        [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c],
        ]
    )
    steps = rotation * np.array(fields.pixdim[1:4]) * np.array([1, 1, -1 if fields.pixdim[0] < 0 else 1])
    return np.column_stack([steps, fields.quaternion[3:6]])


# ── texts ───────────────────────────────────────────────────────────────────


def _read_lines(read: Read, is_last: Callable[[str], bool]) -> List[str]:
    """Return the lines of a header up to its last one."""
    lines: List[str] = []
    line, length = bytearray(), 0
    while True:
        byte = read(1)
        length += 1
        if not byte or length > _LONGEST_TEXT:
            raise Flaw("is damaged: the end of its header is missing", _WRITE_AGAIN)
        if byte != b"\n":
            line += byte
            continue
        lines.append(line.decode("ascii", "backslashreplace").rstrip("\r"))
        line = bytearray()
        if is_last(lines[-1]):
            return lines


def _numbers(text: str, count: int, key: str) -> List[float]:
    """Return the numbers of a field; a Flaw unless there are this many."""
    try:
        words = text.replace(",", " ").replace("(", " ").replace(")", " ").replace("_", "?").split()
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != count:
        raise Flaw(f"has a header whose {key} is {printable(text)!r}, not {count} numbers", _WRITE_AGAIN)
    return numbers


def _sides(text: str, count: int, key: str) -> List[int]:
    numbers = _numbers(text, count, key)
    if not all(abs(number) < 1 << 53 and number == math.floor(number) for number in numbers):
        raise Flaw(f"has a header whose {key} is {printable(text)!r}", _WRITE_AGAIN)
    return [int(number) for number in numbers]


# ── MetaImage ───────────────────────────────────────────────────────────────

_META_KINDS = {
    "MET_CHAR": "i1", "MET_UCHAR": "u1", "MET_SHORT": "i2", "MET_USHORT": "u2", "MET_INT": "i4", "MET_UINT": "u4",
    "MET_LONG": "i8", "MET_ULONG": "u8", "MET_LONG_LONG": "i8", "MET_ULONG_LONG": "u8", "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}  # fmt: skip


def read_metaimage(read: Read) -> VolumeHeader:
    """Read the header of a MetaImage whose data follow it."""
    start = read(1)
    if not start:
        raise Flaw("is empty", _WRITE_AGAIN)
    lines = _read_lines(_push_back(start, read), lambda line: line.partition("=")[0].strip() == "ElementDataFile")
    fields: Dict[str, str] = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if not equals:
            raise Flaw("is not a MetaImage", "Send label maps as .mha or .nii.gz")
        if key.strip() in fields:
            raise Flaw(f"has {printable(key.strip())} twice in its header", _WRITE_AGAIN)
        fields[key.strip()] = value.strip()
    if fields["ElementDataFile"] != "LOCAL":
        raise Flaw(f"has its data in another file ({printable(fields['ElementDataFile'])})", _ONE_FILE)
    return _interpret_metaimage(fields)


def _push_back(start: bytes, read: Read) -> Read:
    """Return a reader that yields the bytes already read once more, then the rest."""
    waiting = [start]
    return lambda count: waiting.pop() if waiting else read(count)


def _choose_key(fields: Dict[str, str], keys: Tuple[str, ...]) -> str:
    """Return the first of several names of a field that a header has, "" for none; a Flaw if their values differ."""
    present = [key for key in keys if key in fields]
    if len({" ".join(fields[key].lower().split()) for key in present}) > 1:
        raise Flaw(f"has a header whose {' and '.join(present)} disagree", "Write one of them")
    return present[0] if present else ""


def _interpret_metaimage(fields: Dict[str, str]) -> VolumeHeader:
    def flag(*keys: str) -> bool:
        return fields.get(_choose_key(fields, keys), "False").lower() in ("true", "1")

    if fields.get("ObjectType", "Image") != "Image":
        raise Flaw(f"has the ObjectType {printable(fields['ObjectType'])}", "Save it as an image")
    if fields.get("NDims") != "3":
        raise Flaw(f"has {printable(fields.get('NDims', 'no'))} axes", "Save one label map with three axes")
    if fields.get("BinaryData", "True").lower() not in ("true", "1"):
        raise Flaw("stores its data as text", "Save it as binary data")
    if fields.get("ElementNumberOfChannels", "1") != "1":
        raise Flaw(f"has {printable(fields['ElementNumberOfChannels'])} channels", "Save one label for each voxel")
    if fields.get("HeaderSize", "0") != "0":
        raise Flaw("has a HeaderSize", _ONE_FILE)
    shape = _check_shape(_sides(fields.get("DimSize", ""), 3, "DimSize"), [f"DimSize along {axis}" for axis in AXES])
    kind = _META_KINDS.get(fields.get("ElementType", ""))
    if kind is None:
        raise Flaw(
            f"has the ElementType {printable(fields.get('ElementType', ''))}, which is not a type of labels", _WHOLE
        )
    is_big = flag("BinaryDataByteOrderMSB", "ElementByteOrderMSB")
    spacing_key = "ElementSpacing" if "ElementSpacing" in fields else "ElementSize"
    spacing = check_spacing(_numbers(fields.get(spacing_key, "1 1 1"), 3, spacing_key))
    origin_key = _choose_key(fields, ("Offset", "Position", "Origin"))
    origin = _numbers(fields[origin_key], 3, origin_key) if origin_key else [0.0] * 3
    matrix_key = _choose_key(fields, ("TransformMatrix", "Rotation", "Orientation"))
    matrix = np.reshape(_numbers(fields[matrix_key], 9, matrix_key) if matrix_key else np.eye(3), (3, 3)).T
    geometry = place_by_directions(shape, [*spacing], matrix, origin)
    if np.abs(np.linalg.norm(matrix, axis=0) - 1).max() > _SAME:
        raise Flaw(f"has a {matrix_key} whose axes are not of length 1", _WRITE_AGAIN)
    packing = "zlib" if flag("CompressedData") else ""
    return VolumeHeader(geometry, np.dtype(f"{'>' if is_big else '<'}{kind}"), 0, packing)


# ── NRRD ────────────────────────────────────────────────────────────────────

_NRRD_KINDS = {
    "i1": ("signed char", "int8", "int8_t"), "u1": ("uchar", "unsigned char", "uint8", "uint8_t"),
    "i2": ("short", "short int", "signed short", "signed short int", "int16", "int16_t"),
    "u2": ("ushort", "unsigned short", "unsigned short int", "uint16", "uint16_t"),
    "i4": ("int", "signed int", "int32", "int32_t"), "u4": ("uint", "unsigned int", "uint32", "uint32_t"),
    "i8": ("longlong", "long long", "long long int", "signed long long", "signed long long int", "int64", "int64_t"),
    "u8": ("ulonglong", "unsigned long long", "unsigned long long int", "uint64", "uint64_t"),
    "f4": ("float",), "f8": ("double",),
}  # fmt: skip
#: The text after the magic in the first line of a NRRD.
_NRRD_VERSIONS = ("0001", "0002", "0003", "0004", "0005")
#: The kinds of axes along which voxels lie; other axes are channels, times or vectors.
_NRRD_AXES = frozenset({"domain", "space", "none", "???"})
#: Signs of right, anterior and superior.
_SPACES = {
    "right-anterior-superior": (1, 1, 1), "ras": (1, 1, 1), "left-anterior-superior": (-1, 1, 1), "las": (-1, 1, 1),
    "left-posterior-superior": (-1, -1, 1), "lps": (-1, -1, 1),
}  # fmt: skip


def read_nrrd(read: Read) -> VolumeHeader:
    """Read the header of a NRRD whose data follow it."""
    magic = read(4)
    if not magic:
        raise Flaw("is empty", _WRITE_AGAIN)
    if magic != b"NRRD":
        raise Flaw("is not a NRRD file", "Send label maps as .nrrd or .nii.gz")
    version, *lines = _read_lines(read, lambda line: not line)
    if version not in _NRRD_VERSIONS:
        raise Flaw(f"is a NRRD of an unknown version, {printable(version)!r}", _WRITE_AGAIN)
    fields: Dict[str, str] = {}
    for line in lines[:-1]:
        key, colon, value = line.partition(":")
        if line.startswith("#") or value.startswith("="):
            continue
        if not colon:
            raise Flaw(f"has the line {printable(line)!r} in its header", _WRITE_AGAIN)
        name = key.strip().lower().replace(" ", "")
        if name in fields:
            raise Flaw(f"has {printable(key)} twice in its header", _WRITE_AGAIN)
        fields[name] = value.strip()
    if "datafile" in fields:
        raise Flaw(f"has its data in another file ({printable(fields['datafile'])})", _ONE_FILE)
    return _interpret_nrrd(fields)


def _interpret_nrrd(fields: Dict[str, str]) -> VolumeHeader:
    if fields.get("dimension") != "3":
        raise Flaw(f"has {printable(fields.get('dimension', 'no'))} axes", "Save one label map with three axes")
    shape = _check_shape(_sides(fields.get("sizes", ""), 3, "sizes"), [f"the size along {axis}" for axis in AXES])
    kind = next((kind for kind, names in _NRRD_KINDS.items() if fields.get("type", "").lower() in names), "")
    if not kind:
        raise Flaw(f"has the type {printable(fields.get('type', ''))}, which is not a type of labels", _WHOLE)
    encoding = fields.get("encoding", "").lower()
    if encoding not in ("raw", "gzip", "gz"):
        raise Flaw(f"has the encoding {printable(encoding)}", "Save it with the encoding gzip")
    if kind[1] != "1" and fields.get("endian") not in ("little", "big"):
        raise Flaw("does not state its byte order", _WRITE_AGAIN)
    if fields.get("lineskip", "0") != "0":
        raise Flaw("has a line skip", _WRITE_AGAIN)
    (skip,) = _sides(fields.get("byteskip", "0"), 1, "byte skip")
    if skip < -1 or skip > _LONGEST_EXTENSION or (skip and encoding != "raw"):
        raise Flaw(f"has a byte skip of {skip}", _WRITE_AGAIN)
    odd = [kind for kind in fields.get("kinds", "").lower().split() if kind not in _NRRD_AXES]
    if odd:
        raise Flaw(f"has an axis of the kind {printable(odd[0])}", "Save one label map with three axes")
    units = {unit.lower() for unit in fields.get("spaceunits", "").replace('"', " ").split()}
    if units - {"mm", "millimeter", "millimeters", "millimetre", "millimetres"}:
        raise Flaw(f"has the space units {printable(fields['spaceunits'])}", "Write the spacing in millimetres")
    geometry, oddities = _place_nrrd(fields, shape)
    order = ">" if fields.get("endian") == "big" else "<"
    packing = "" if encoding == "raw" else "gzip"
    return VolumeHeader(geometry, np.dtype(f"{order}{kind}"), skip, packing, NO_SCALE, oddities)


def _place_nrrd(fields: Dict[str, str], shape: Shape) -> Tuple[Geometry, Tuple[int, ...]]:
    if "spacedirections" not in fields:
        if "spacings" not in fields:
            raise Flaw("states neither space directions nor spacings", "Write the space directions of the image")
        return Geometry(shape, check_spacing(_numbers(fields["spacings"], 3, "spacings")), None), (UNPLACED,)
    steps = np.reshape(_numbers(fields["spacedirections"], 9, "space directions"), (3, 3)).T
    origin: Optional[List[float]] = None
    if "spaceorigin" in fields:
        origin = _numbers(fields["spaceorigin"], 3, "space origin")
    geometry = make_geometry(shape, np.column_stack([steps, origin or [0.0] * 3]))
    if "spacings" in fields:
        for axis, by_steps, stated in zip(AXES, geometry.spacing, _numbers(fields["spacings"], 3, "spacings")):
            if math.isfinite(stated) and not abs(by_steps / stated - 1 if stated else math.inf) <= _SAME:
                fault = f"has spacings and space directions that disagree along {axis}"
                raise Flaw(f"{fault} ({stated:.6g} and {by_steps:.6g} mm)", "Write only the space directions")
    signs = _SPACES.get(fields.get("space", "").lower())
    if signs is None or origin is None or geometry.affine is None:
        return geometry._replace(affine=None), (UNPLACED,)
    return geometry._replace(affine=np.reshape(signs, (3, 1)) * geometry.affine), ()
