"""Volumes in memory: arrays with spacing, and images of nibabel, SimpleITK and MONAI, recognised by their methods."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from segjudge.evaluation_script.families.volumes.engine import count_pair
from segjudge.evaluation_script.families.volumes.geometry import (
    Geometry,
    Shape,
    check_spacing,
    make_geometry,
    place_by_directions,
    require_order,
)
from segjudge.evaluation_script.families.volumes.headers import (
    NO_SCALE,
    ROUNDED,
    UNPLACED,
    NiftiPosition,
    check_axes,
    place_nifti,
)
from segjudge.evaluation_script.families.volumes.protocols import COMPONENTS, DISTANCES, VolumeProtocol
from segjudge.evaluation_script.families.volumes.voxels import WHOLE, Volume, gather_labels, reorder_volume
from segjudge.evaluation_script.files.problems import Flaw, Problems, inflect, name_list
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.memory import SamplesInMemory, read_array, refusal, refuse_flaws
from segjudge.system.errors import UsageError

#: Measures that count voxels regardless of their size.
_OF_VOXELS = COMPONENTS | {"Dice", "IoU", "Recall", "Precision", "VolumeSimilarity", "RAVD", "DSCagg"}
_ARRAY = "labels (slices, height, width)"
_FORM = f"Give {_ARRAY}, {{'labels': labels, 'spacing': [mm, mm, mm]}}, or an image of nibabel, SimpleITK or MONAI"
_WITH_SPACING = f"Give {{'labels': {_ARRAY}, 'spacing': [mm, mm, mm]}}"
_SAME_FORM = (
    "Give both as arrays with axes in one order, or as images: {'labels': labels, 'affine': the truth's affine}"
)


class _Side(NamedTuple):
    """The truth or the prediction of a case."""

    shape: Shape
    #: Returns the stored numbers (z, y, x), and the slope and intercept that turn them into labels.
    read: Callable[[], tuple[Array, tuple[float, float]]]
    #: The grid of an image; None for arrays, whose axes have no direction.
    geometry: Geometry | None = None
    #: The spacing of an array along x, y and z, if it states one.
    spacing: tuple[float, float, float] | None = None
    #: The oddities of the geometry, as for files.
    oddities: tuple[int, ...] = ()

    def read_volume(self, geometry: Geometry) -> Volume:
        stored, scale = self.read()
        if stored.dtype.kind not in "buif":
            raise Flaw(f"is of {stored.dtype}", WHOLE)
        slabs = (plane.reshape(-1) for plane in (stored.view(np.uint8) if stored.dtype == bool else stored))
        labels, is_rounded = gather_labels(slabs, stored.size, scale)
        return Volume(geometry, labels.reshape(stored.shape), (*self.oddities, *([ROUNDED] if is_rounded else [])))


class VolumesInMemory(SamplesInMemory):
    """A counter of volumes, a case each."""

    may_be_listed = False
    protocol: VolumeProtocol

    def sequences_of(self, masks: object, side: str) -> dict[str, object]:
        """Return volumes by case; a single one is named case."""
        is_volume = _is_image(masks) or (isinstance(masks, Mapping) and "labels" in masks)
        return {"case": masks} if is_volume or getattr(masks, "ndim", 0) == 3 else super().sequences_of(masks, side)

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        if frame:
            raise UsageError(
                f"{self.protocol.name} compares whole volumes: update it with a case and None as the frame"
            )
        locations = f"truth of {sequence}", f"prediction of {sequence}"
        true_side, side = _open_side(truth, locations[0]), _open_side(prediction, locations[1])
        true_grid, grid = self._place_sides(true_side, side, locations)
        with refuse_flaws(locations[1]):
            order = require_order(true_grid, grid, reorders=self.protocol.reorders)
            volume = reorder_volume(side.read_volume(grid), true_grid, order)
        with refuse_flaws(locations[0]):
            true_volume = true_side.read_volume(true_grid)
        counts = count_pair(sequence, true_volume, volume, self.protocol)
        problems = Problems()
        problems.extend(counts.problems, counts.problem_count)
        problems.raise_if_any()
        return replace(counts, name="").encode()

    def _place_sides(self, truth: _Side, prediction: _Side, locations: Sequence[str]) -> tuple[Geometry, Geometry]:
        """Return the grids of both sides; a predicted array without spacing takes the truth's."""
        if truth.geometry and prediction.geometry:
            return truth.geometry, prediction.geometry
        if truth.geometry or prediction.geometry:
            kinds = ("an array", "an image") if truth.geometry else ("an image", "an array")
            fault = f"is {kinds[0]}, and the truth is {kinds[1]}, whose axes may have another order"
            raise refusal(locations[1], fault, _SAME_FORM)
        spacing = truth.spacing or self._assume_spacing(prediction, locations[0])
        return Geometry(truth.shape, spacing, None), Geometry(prediction.shape, prediction.spacing or spacing, None)

    def _assume_spacing(self, prediction: _Side, location: str) -> tuple[float, float, float]:
        """Return a default spacing for a truth without one; raises SubmissionError if a measure depends on it."""
        needing = [measure for measure in self.protocol.measures if _needs_spacing(measure, self.protocol)]
        if needing or prediction.spacing:
            verb = inflect(len(needing), "needs", "need")
            why = f"which {name_list(needing)} {verb}" if needing else "and the prediction has one"
            raise refusal(location, f"has no spacing, {why}", _WITH_SPACING)
        return 1.0, 1.0, 1.0


def _needs_spacing(measure: str, protocol: VolumeProtocol) -> bool:
    """Return whether the size of voxels changes a measure; some protocols fix a voxel size."""
    is_distance = measure in DISTANCES or measure.startswith("NSD")
    return measure not in _OF_VOXELS and not (protocol.voxel and is_distance)


# ── forms ───────────────────────────────────────────────────────────────────


def _is_itk(side: object) -> bool:
    return all(hasattr(side, name) for name in ("GetSpacing", "GetOrigin", "GetDirection"))


def _is_nibabel(side: object) -> bool:
    return all(hasattr(side, name) for name in ("dataobj", "affine", "header"))


def _is_image(side: object) -> bool:
    """Return whether an object has voxels and their place in the body."""
    return _is_itk(side) or (hasattr(side, "affine") and hasattr(side, "shape"))


def _open_side(side: Any, location: str) -> _Side:
    """Return one side of a case: an array, a mapping with labels and their spacing or affine, or an image."""
    with refuse_flaws(location):
        if _is_itk(side):
            return _open_itk(side, location)
        if _is_nibabel(side):
            return _open_nibabel(side, location)
        if _is_image(side):
            return _open_placed(side, side.affine, location)
        if not isinstance(side, Mapping):
            return _open_array(side, location)
        keys = set(side)
        if keys == {"labels", "affine"}:
            return _open_placed(side["labels"], side["affine"], location)
        if "labels" not in keys or keys - {"labels", "spacing"}:
            names = name_list(sorted(map(str, keys)), 5)
            raise refusal(location, f"has the keys {names}" if keys else "has no labels", _FORM)
        return _open_array(side["labels"], location, side.get("spacing"))


def _open_array(labels: object, location: str, spacing: object = None) -> _Side:
    """Return an array (z, y, x); its spacing is in the order of its axes."""
    array = _read_axes(labels, location)
    z, y, x = array.shape
    stated = None if spacing is None else check_spacing(_read_numbers(spacing, (3,), f"{location}, spacing")[::-1])
    return _Side((x, y, z), lambda: (array, NO_SCALE), spacing=stated)


def _open_placed(labels: object, affine: object, location: str) -> _Side:
    """Return an array (x, y, z) whose affine maps to millimetres towards right, anterior and superior."""
    array = _read_axes(labels, location)
    steps = read_array(affine, f"{location}, affine")
    rows = _read_numbers(affine, (3, 4) if steps.shape == (3, 4) else (4, 4), f"{location}, affine")
    x, y, z = array.shape
    return _Side((x, y, z), lambda: (array.T, NO_SCALE), make_geometry((x, y, z), np.reshape(rows[:12], (3, 4))))


def _open_nibabel(image: Any, location: str) -> _Side:
    """Return a nibabel image as if read from its file: a NIfTI by its header, others by affine and zooms."""
    shape = check_axes(list(map(int, image.shape)))
    geometry, oddities = _place_nibabel(image, shape)

    def read() -> tuple[Array, tuple[float, float]]:
        data = image.dataobj
        if not hasattr(data, "get_unscaled"):
            return _read_data(data, shape, location), NO_SCALE
        return _read_data(data.get_unscaled(), shape, location), (float(data.slope), float(data.inter))

    return _Side(shape, read, geometry, oddities=oddities)


def _place_nibabel(image: Any, shape: Shape) -> tuple[Geometry, tuple[int, ...]]:
    try:
        position = _read_position(image.header)
    except (KeyError, TypeError, ValueError, IndexError):
        zooms = check_spacing([float(zoom) for zoom in image.header.get_zooms()[:3]])
        if image.affine is None:
            return Geometry(shape, zooms, None), (UNPLACED,)
        return make_geometry(shape, np.asarray(image.affine, float)[:3])._replace(spacing=zooms), ()
    return place_nifti(position, shape)


def _read_position(header: Any) -> NiftiPosition:
    """Return the fields of a NIfTI header that place its voxels."""
    numbers = [float(header[f"quatern_{name}"]) for name in "bcd"] + [
        float(header[f"qoffset_{name}"]) for name in "xyz"
    ]
    rows = [float(step) for name in "xyz" for step in header[f"srow_{name}"]]
    pixdim = [float(step) for step in header["pixdim"]]
    codes = int(header["qform_code"]), int(header["sform_code"])
    return NiftiPosition(tuple(pixdim), *codes, tuple(numbers), tuple(rows), int(header["xyzt_units"]))


def _read_data(data: object, shape: Shape, location: str) -> Array:
    """Return the numbers of an image (z, y, x)."""
    return read_array(data, location).reshape(shape).T


def _open_itk(image: Any, location: str) -> _Side:
    """Return a side from a SimpleITK image; its own module converts the voxels (z, y, x)."""
    if image.GetDimension() != 3:
        raise Flaw(f"has {image.GetDimension()} axes", "Save one label map with three axes")
    channels = image.GetNumberOfComponentsPerPixel()
    if channels != 1:
        raise Flaw(f"has {channels} channels", "Save one label for each voxel")
    shape = check_axes([int(side) for side in image.GetSize()])
    directions = np.reshape(image.GetDirection(), (3, 3))
    geometry = place_by_directions(shape, list(image.GetSpacing()), directions, list(image.GetOrigin()))
    views = (
        getattr(sys.modules.get(kind.__module__.partition(".")[0]), "GetArrayViewFromImage", None)
        for kind in type(image).__mro__
    )
    view = next(filter(None, views), None)
    if view is None:
        raise refusal(location, f"is of {type(image).__name__}, whose voxels cannot be read", _FORM)
    return _Side(shape, lambda: (read_array(view(image), location), NO_SCALE), geometry)


def _read_axes(labels: object, location: str) -> Array:
    """Return an array with three axes; a leading axis of length 1, such as channels, is dropped."""
    array = read_array(labels, location)
    array = array[0] if array.ndim == 4 and len(array) == 1 else array
    if array.ndim != 3 or not array.size:
        channels = "; of channels, give their argmax" if array.ndim > 3 else ""
        raise refusal(location, f"has the shape {array.shape}", f"{_FORM}{channels}")
    return array


def _read_numbers(values: object, shape: tuple[int, ...], location: str) -> list[float]:
    """Return the numbers of an array of a shape."""
    array = read_array(values, location)
    if array.shape != shape or array.dtype.kind not in "uif":
        wanted = " x ".join(map(str, shape))
        raise refusal(location, f"is of {array.dtype} and has the shape {array.shape}", f"Give {wanted} numbers")
    return array.astype(float).reshape(-1).tolist()
