"""New challenges of volumes: samples, and phantoms with organs and lesions."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.volumes.files import decode_geometry, read_labels
from segjudge.evaluation_script.families.volumes.geometry import Geometry
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.challenges import shift_of
from segjudge.families.base.tools import Content, Members

#: The size of phantoms: voxels along x, y and z, and millimetres between them.
_SHAPE, _SPACING = (48, 40, 24), (1.0, 1.0, 2.0)
_CASES = 3
#: The radius of a phantom's largest organ, which lies in the middle of the others.
_RADIUS = 0.3
#: Hounsfield units of a phantom: air, fat, soft tissue and bone, and how much labels differ from soft tissue.
_AIR, _FAT, _TISSUE, _BONE = -1000.0, -90.0, 40.0, 600.0
_CONTRASTS = (70, -45, 110, 35, -70, 150)
#: The standard deviations of texture and noise in Hounsfield units.
_TEXTURE, _NOISE = 8.0, 12.0


def encode_nifti(volume: Array, geometry: Geometry) -> bytes:
    """Return a volume (z, y, x) of 8 or 16 bits as NIfTI-1 in gzip; equal volumes give equal bytes."""
    header = bytearray(352)
    code, bits, kind = {"uint8": (2, 8, "<u1"), "int16": (4, 16, "<i2")}.get(volume.dtype.name, (512, 16, "<u2"))
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, *geometry.shape, 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, code, bits)
    struct.pack_into("<8f", header, 76, 1, *geometry.spacing, 1, 1, 1, 1)
    struct.pack_into("<3f", header, 108, 352, 1, 0)
    header[123] = 2
    if geometry.affine is not None:
        struct.pack_into("<2h", header, 252, 0, 1)
        struct.pack_into("<12f", header, 280, *geometry.affine.reshape(-1).tolist())
    header[344:348] = b"n+1\0"
    stored = np.ascontiguousarray(volume, kind)
    return _compress(bytes(header) + stored.tobytes())


def _compress(data: bytes) -> bytes:
    """Return gzip data whose header is the same in every version of Python."""
    stream = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    deflated = stream.compress(data) + stream.flush()
    return (
        b"\x1f\x8b\x08" + bytes(6) + b"\xff" + deflated + struct.pack("<2I", zlib.crc32(data), len(data) & 0xFFFFFFFF)
    )


def make_sample(truths: list[Any], _protocol: Any, share: float) -> Members:
    """Yield sample predictions: the volumes of the truth, each slice shifted along x by a share of their width.

    Slices are shifted to the right and left in turn, so that the volume does not look displaced. If the shift is not a
    whole number of voxels, some slices are shifted by one voxel more than others.
    """
    for unit in [unit for truth in truths for unit in truth.units]:
        (frame,) = unit.load()
        geometry = decode_geometry(frame.rows)
        labels = read_labels(frame).reshape(geometry.shape[::-1])
        width = labels.shape[2]
        step = shift_of(width, share)
        further = round(max(0.0, width * share - step) * len(labels))
        moved = np.zeros(labels.shape, np.uint8 if labels.max() < 256 else np.uint16)
        for number, image in enumerate(labels):
            distance = min(width, step + (number < further))
            start = 0 if number % 2 else 2 * distance
            moved[number] = np.pad(image, ((0, 0), (distance, distance)))[:, start : start + width]
        yield f"{unit.name}.nii.gz", encode_nifti(moved, geometry)


def make_demo(protocol: Any) -> Content:
    """Yield the labels of phantoms."""
    for case, labels, geometry in _draw_phantoms(protocol):
        yield f"labelsTr/{case}.nii.gz", encode_nifti(labels, geometry)


def make_demo_pictures(protocol: Any) -> Members:
    """Yield a CT of each phantom: a body in air, with texture and noise, whose labels differ by their density."""
    for number, (case, labels, geometry) in enumerate(_draw_phantoms(protocol)):
        draw = np.random.default_rng(100 + number)
        y, x = np.meshgrid(*(np.linspace(-1, 1, side) for side in labels.shape), indexing="ij")[1:]
        edge = (x / 0.95) ** 2 + (y / 0.9) ** 2
        units = np.where(edge < 0.85, _TISSUE, _FAT)
        units[(x / 0.12) ** 2 + ((y + 0.72) / 0.12) ** 2 < 1] = _BONE
        for label, contrast in zip(np.unique(labels[labels > 0]).tolist(), cycle(_CONTRASTS), strict=False):
            units[labels == label] = _TISSUE + contrast
        texture: Array = np.asarray(draw.normal(0, 1, labels.shape))
        for axis in range(3):
            texture += np.roll(texture, 1, axis) + np.roll(texture, -1, axis)
        units = np.where((edge < 1) | (labels > 0), units + _TEXTURE * texture / texture.std(), _AIR)
        units += draw.normal(0, _NOISE, labels.shape)
        yield f"{case}_0000.nii.gz", encode_nifti(np.clip(np.rint(units), -1024, 3000).astype(np.int16), geometry)


def _draw_phantoms(protocol: Any) -> Iterator[tuple[str, Array, Geometry]]:
    """Yield the name, the labels (z, y, x) and the geometry of phantoms: each label of a protocol is an ellipsoid."""
    labels = sorted({label for region in protocol.regions for label in region.labels}) or [1, 2, 3]
    affine = np.column_stack([np.diag(_SPACING), [0.0, 0.0, 0.0]])
    draw = np.random.default_rng(1)
    for number in range(1, _CASES + 1):
        volume = np.zeros(_SHAPE[::-1], np.uint8)
        places = np.stack(np.meshgrid(*(np.linspace(-1, 1, side) for side in _SHAPE[::-1]), indexing="ij"))
        for index, label in enumerate(labels):
            angle = 2 * np.pi * index / len(labels) + 0.3 * number
            middle = np.array([0.1 * number, 0.5 * np.sin(angle), 0.5 * np.cos(angle)])
            radii = _RADIUS * draw.uniform(0.7, 1.3, 3) * np.array([1.5, 1.0, 1.0])
            inside = (((places - middle[:, None, None, None]) / radii[:, None, None, None]) ** 2).sum(axis=0) < 1
            volume[inside] = label
        yield f"case_{number:03d}", volume, Geometry(_SHAPE, _SPACING, affine)
