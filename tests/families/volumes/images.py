"""Images in the forms of libraries: nibabel and SimpleITK if installed, and objects with their methods."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.volumes.geometry import Geometry

#: The libraries of `make_image`; the last two need nothing installed.
LIBRARIES = ("nibabel", "SimpleITK", "methods of nibabel", "methods of SimpleITK")


def import_library(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name.upper()} ABSENT: pip install {name} to test its images")


class ItkImage:
    """The methods of an image of SimpleITK."""

    def __init__(self, labels: Any, spacing: Any, directions: Any, origin: Any) -> None:
        self.labels = labels
        self.GetDimension = lambda: labels.ndim
        self.GetNumberOfComponentsPerPixel = lambda: 1
        self.GetSize = lambda: labels.shape[::-1]
        self.GetSpacing, self.GetDirection, self.GetOrigin = (
            lambda numbers=numbers: tuple(np.ravel(numbers).tolist()) for numbers in (spacing, directions, origin)
        )


def write_nifti_header(geometry: Geometry) -> dict[str, Any]:
    """Return the fields of a NIfTI header with an sform, or with no position."""
    pixdim = np.array([1, *geometry.spacing, 1, 1, 1, 1], np.float32)
    zeros = {f"quatern_{axis}": 0.0 for axis in "bcd"} | {f"qoffset_{axis}": 0.0 for axis in "xyz"}
    rows = np.zeros((3, 4), np.float32) if geometry.affine is None else geometry.affine.astype(np.float32)
    return {
        "pixdim": pixdim, "xyzt_units": 2, "qform_code": 0, "sform_code": int(geometry.affine is not None), **zeros,
        **{f"srow_{axis}": row for axis, row in zip("xyz", rows)},
    }  # fmt: skip


def make_image(library: str, labels: Any, geometry: Geometry) -> Any:
    """Return labels (z, y, x) as an image of a library."""
    affine = geometry.affine
    if library == "nibabel":
        nibabel = import_library(library)
        return nibabel.Nifti1Image(labels.T, None if affine is None else np.vstack([affine, [0, 0, 0, 1]]))
    if library == "methods of nibabel":
        return SimpleNamespace(
            dataobj=labels.T, shape=labels.T.shape, affine=affine, header=write_nifti_header(geometry)
        )
    assert affine is not None
    steps, origin = ([-1, -1, 1] * part.T for part in (affine[:, :3] / geometry.spacing, affine[:, 3:]))
    if library == "methods of SimpleITK":
        return ItkImage(labels, geometry.spacing, steps.T, origin)
    image = import_library(library).GetImageFromArray(labels)
    image.SetSpacing(geometry.spacing)
    image.SetDirection(np.ravel(steps.T).tolist())
    image.SetOrigin(np.ravel(origin).tolist())
    return image


def give_itk_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a package of the tests return voxels, as SimpleITK does for its own images."""
    package = sys.modules[ItkImage.__module__.partition(".")[0]]
    monkeypatch.setattr(package, "GetArrayViewFromImage", lambda image: image.labels, raising=False)
