"""The golden volumes and numbers that the tests of volumes share."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.volumes.surfaces import Sides, find_surface, measure_surfaces
from segjudge.evaluation_script.families.volumes.voxels import Volume, VolumeFile
from tests.data import FAMILIES_DATA

DATA = FAMILIES_DATA / "volumes"


def read_golden(folder: str) -> dict[str, Any]:
    """Return the official numbers of a folder; none without the shared data."""
    path = DATA / folder / "golden.json"
    return dict(json.loads(path.read_text())) if path.exists() else {"cases": {}, "files": {}}


def open_volume(path: Path) -> VolumeFile:
    data = path.read_bytes()
    return VolumeFile(path.name, len(data), (data[start : start + 4096] for start in range(0, len(data), 4096)))


def read_pair(folder: str, case: str, ending: str = ".nii.gz") -> tuple[Volume, Volume]:
    truth, prediction = (
        open_volume(DATA / folder / f"{case}.{side}{ending}").read_labels() for side in ("truth", "prediction")
    )
    return truth, prediction


def measure_elements(truth: Any, prediction: Any, spacing: Any) -> Sides:
    """Return the surface elements of two masks and their distances."""
    return measure_surfaces([find_surface(mask) for mask in (truth, prediction)], spacing)


#: MetaImage's names of types.
_ELEMENTS = {"|u1": "MET_UCHAR", "<u2": "MET_USHORT", "<f4": "MET_FLOAT"}


def encode_metaimage(volume: Volume) -> bytes:
    """Return a volume as grand-challenge stores it: a MetaImage with compressed data."""
    geometry = volume.geometry
    if geometry.affine is None:
        raise ValueError("a MetaImage has a position")
    affine = geometry.affine * [[-1], [-1], [1]]
    fields = {
        "ObjectType": "Image", "NDims": 3, "BinaryData": True, "BinaryDataByteOrderMSB": False, "CompressedData": True,
        "TransformMatrix": join(affine[:, :3].T / np.reshape(geometry.spacing, (3, 1))), "Offset": join(affine[:, 3]),
        "ElementSpacing": join(geometry.spacing), "DimSize": join(geometry.shape),
        "ElementType": _ELEMENTS[volume.labels.dtype.str], "ElementDataFile": "LOCAL",
    }  # fmt: skip
    header = "".join(f"{key} = {value}\n" for key, value in fields.items())
    return header.encode() + zlib.compress(volume.labels.tobytes())


def join(numbers: Any) -> str:
    """Return numbers as a text header lists them."""
    return " ".join(repr(number) for number in np.ravel(numbers).tolist())
