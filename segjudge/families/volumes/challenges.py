"""New challenges of volumes: samples, and phantoms with organs and lesions."""

from __future__ import annotations

import struct
import zlib
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


def encode_nifti(labels: Array, geometry: Geometry) -> bytes:
    """Return labels (z, y, x) as a NIfTI-1 file in gzip; the same labels give the same bytes."""
    header = bytearray(352)
    code, bits = (2, 8) if labels.dtype == np.uint8 else (512, 16)
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
    stored = np.ascontiguousarray(labels, "<u1" if code == 2 else "<u2")
    return _compress(bytes(header) + stored.tobytes())


def _compress(data: bytes) -> bytes:
    """Return gzip data with a header that no version of Python changes."""
    stream = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    deflated = stream.compress(data) + stream.flush()
    return (
        b"\x1f\x8b\x08" + bytes(6) + b"\xff" + deflated + struct.pack("<2I", zlib.crc32(data), len(data) & 0xFFFFFFFF)
    )


def make_sample(truths: list[Any], _protocol: Any, share: float) -> Members:
    """Yield sample predictions: the volumes of the truth, shifted along x by a share of their width.

    If the shift is no whole number of voxels, some slices are shifted by one voxel more than others.
    """
    for unit in [unit for truth in truths for unit in truth.units]:
        (frame,) = unit.load()
        geometry = decode_geometry(frame.rows)
        labels = read_labels(frame).reshape(geometry.shape[::-1])
        step = shift_of(labels.shape[2], share)
        further = round(max(0.0, labels.shape[2] * share - step) * len(labels))
        moved = np.zeros(labels.shape, np.uint8 if labels.max() < 256 else np.uint16)
        moved[further:, :, step:] = labels[further:, :, : labels.shape[2] - step]
        moved[:further, :, step + 1 :] = labels[:further, :, : max(0, labels.shape[2] - step - 1)]
        yield f"{unit.name}.nii.gz", encode_nifti(moved, geometry)


def make_demo(protocol: Any) -> Content:
    """Yield phantoms: each label of the protocol is an ellipsoid."""
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
        yield f"labelsTr/case_{number:03d}.nii.gz", encode_nifti(volume, Geometry(_SHAPE, _SPACING, affine))
