"""The position of a volume's voxels in the body, and the differences between two volumes.

Positions are in millimetres, towards right, anterior and superior (RAS+); axes are x, y and z as files store them, x
fastest.
"""

from __future__ import annotations

from itertools import permutations, product
from typing import List, NamedTuple, Optional, Tuple

import numpy as np

from ...files.problems import Flaw
from ...masks.stack import Array

#: Numbers of voxels along x, y and z.
Shape = Tuple[int, int, int]

AXES = "xyz"
#: The maximum relative difference of two equal spacings.
_SPACING = 1e-3
#: The maximum distance of two equal corners, in voxels of the truth.
_CORNER = 0.5
#: The maximum cosine between two axes of a volume.
_SHEAR = 1e-3
#: Two axes are parallel if their cosine differs from 1 by less than this.
_PARALLEL = 1e-4
#: The maximum distance of a voxel in millimetres; its inverse is the minimum spacing.
_FARTHEST = 1e9
#: The ends of the body's axes.
_ENDS = ("left and right", "front and back", "top and bottom")
#: Signs that convert positions towards left, posterior and superior into those of `Geometry`.
_LPS = np.array([[-1.0], [-1.0], [1.0]])
_EXPORT = "Write the prediction with the header of the image, in the grid of the truth"


class Geometry(NamedTuple):
    """The grid of a volume."""

    shape: Shape
    #: Millimetres between voxels along x, y and z.
    spacing: Tuple[float, float, float]
    #: The position (3) of voxel 0 and the steps (3, 3) along x, y and z, as columns 3 and 0 to 2; None if the file has
    #: no position.
    affine: Optional[Array]


class Order(NamedTuple):
    """The mapping of one volume's axes to another's: for each axis, its source and whether it is reversed."""

    sources: Tuple[int, int, int]
    reversed: Tuple[bool, bool, bool]

    @property
    def is_same(self) -> bool:
        return self.sources == (0, 1, 2) and not any(self.reversed)


SAME = Order((0, 1, 2), (False, False, False))


def make_geometry(shape: Shape, affine: Array) -> Geometry:
    """Return the geometry of an affine (3, 4); raises a Flaw if its axes are not orthogonal."""
    if not (np.abs(affine) < _FARTHEST).all():
        raise Flaw("has a position that is not a number, or lies outside any body", _EXPORT)
    steps = affine[:, :3]
    lengths = np.sqrt((steps * steps).sum(axis=0))
    if not (lengths > 1 / _FARTHEST).all():
        raise Flaw("has singular directions: an axis has no length", _EXPORT)
    cosines = _multiply((steps / lengths).T, steps / lengths)
    if np.abs(cosines - np.eye(3)).max() > _SHEAR:
        pairs = [f"{AXES[a]} and {AXES[b]}" for a in range(3) for b in range(a) if abs(cosines[a, b]) > _SHEAR]
        raise Flaw(f"has a header with shear: axes {pairs[0]} are not orthogonal", _EXPORT)
    spacing = lengths.tolist()
    return Geometry(shape, (spacing[0], spacing[1], spacing[2]), affine)


def place_by_directions(shape: Shape, spacing: List[float], directions: Array, origin: List[float]) -> Geometry:
    """Return the geometry of an origin towards left, posterior and superior, and directions (3, 3) as columns."""
    sides = check_spacing(spacing)
    return make_geometry(shape, _LPS * np.column_stack([directions * np.array(sides), origin]))._replace(spacing=sides)


def check_spacing(numbers: List[float]) -> Tuple[float, float, float]:
    """Return three spacings; raises a Flaw unless each is a positive number."""
    for axis, number in zip(AXES, numbers):
        if not 1 / _FARTHEST < number < _FARTHEST:
            raise Flaw(f"has a spacing of {number:g} along {axis}", "Write the spacing of the image in millimetres")
    return numbers[0], numbers[1], numbers[2]


def fits(truth: Geometry, volume: Geometry) -> bool:
    """Return whether two volumes have one grid; without a position only shape and spacing are compared."""
    if truth.shape != volume.shape or _find_worst_spacing(truth, volume) is not None:
        return False
    return truth.affine is None or volume.affine is None or _corner_distance(truth, volume) <= _CORNER


def _find_worst_spacing(truth: Geometry, volume: Geometry) -> Optional[int]:
    """Return the axis whose spacings differ most; None if all are equal."""
    differences = [abs(b / a - 1) for a, b in zip(truth.spacing, volume.spacing)]
    worst = max(range(3), key=differences.__getitem__)
    return worst if not differences[worst] <= _SPACING else None


def _corner_distance(truth: Geometry, volume: Geometry) -> float:
    """Return the largest distance between corresponding corners along an axis, in voxels of the truth."""
    if truth.affine is None or volume.affine is None:
        return 0.0
    corners = np.array(list(product(*((-0.5, side - 0.5) for side in truth.shape)))).T
    differences = _multiply(volume.affine[:, :3] - truth.affine[:, :3], corners) + (volume.affine - truth.affine)[:, 3:]
    # The axes are orthogonal, so that their lengths are the spacing.
    steps = (truth.affine[:, :3] / np.square(truth.spacing)).T
    distance: float = np.abs(_multiply(steps, differences)).max()
    return distance


def _multiply(matrix: Array, factor: Array) -> Array:
    """Return the product of two matrices, added in a fixed order."""
    product_of_both: Array = (matrix[:, :, None] * factor[None]).sum(axis=1)
    return product_of_both


def reorder(geometry: Geometry, order: Order) -> Geometry:
    """Return the geometry of a volume after reordering its axes."""
    shape = [geometry.shape[source] for source in order.sources]
    spacing = [geometry.spacing[source] for source in order.sources]
    affine = geometry.affine
    if affine is not None:
        steps, origin = affine[:, list(order.sources)], affine[:, 3]
        for axis, is_reversed in enumerate(order.reversed):
            if is_reversed:
                origin = origin + steps[:, axis] * (shape[axis] - 1)
                steps[:, axis] *= -1
        affine = np.column_stack([steps, origin])
    return Geometry((shape[0], shape[1], shape[2]), (spacing[0], spacing[1], spacing[2]), affine)


def find_order(truth: Geometry, volume: Geometry) -> Optional[Order]:
    """Return the order that brings a volume into the grid of the truth; None if there is none."""
    if fits(truth, volume):
        return SAME
    if truth.affine is None or volume.affine is None or sorted(truth.shape) != sorted(volume.shape):
        return None
    for a, b, c in permutations(range(3)):
        for flips in product((False, True), repeat=3):
            order = Order((a, b, c), (flips[0], flips[1], flips[2]))
            if fits(truth, reorder(volume, order)):
                return order
    return None


def require_order(truth: Geometry, volume: Geometry, *, reorders: bool) -> Order:
    """Return the order that brings a volume into the grid of the truth; raises a Flaw if there is none."""
    order = find_order(truth, volume)
    if order is None or not (order.is_same or reorders):
        raise describe_difference(truth, volume)
    return order


def describe_difference(truth: Geometry, volume: Geometry) -> Flaw:
    """Return the flaw of a volume that is not in the truth's grid."""
    order = find_order(truth, volume)
    if order is not None:
        return Flaw(
            f"has different axes from the truth: {_name_order(truth, order)}",
            "Save it in the order of the truth's axes",
        )
    if truth.shape != volume.shape:
        return Flaw(
            f"has {_name_shape(volume.shape)} voxels; the truth has {_name_shape(truth.shape)}",
            "Transpose the array into the image's order of axes"
            if volume.shape == truth.shape[::-1]
            else "Resample it to the grid of the image",
        )
    axis = _find_worst_spacing(truth, volume)
    if axis is not None:
        theirs, ours = volume.spacing[axis], truth.spacing[axis]
        return Flaw(f"has a spacing of {theirs:.6g} mm along {AXES[axis]}; the truth has {ours:.6g} mm", _EXPORT)
    return Flaw(_name_move(truth, volume), _EXPORT)


def _name_order(geometry: Geometry, order: Order) -> str:
    """Return in words how the axes of a volume must be changed."""
    moved = [AXES[axis] for axis in range(3) if order.sources[axis] != axis]
    parts = [f"{' and '.join(moved)} are exchanged"] if moved else []
    for axis, is_reversed in enumerate(order.reversed):
        if is_reversed and geometry.affine is not None:
            ends = _ENDS[int(np.abs(geometry.affine[:, axis]).argmax())]
            parts.append(f"{AXES[axis]} is reversed ({ends} are exchanged)")
    return ", and ".join(parts)


def _name_move(truth: Geometry, volume: Geometry) -> str:
    """Return a description of the offset of a volume with equal shape and spacing."""
    if truth.affine is None or volume.affine is None:
        raise ValueError("volumes without a position have no offset")
    frames = [geometry.affine[:, :3] / geometry.spacing for geometry in (truth, volume) if geometry.affine is not None]
    turn = _multiply(frames[0].T, frames[1])
    opposite = [AXES[axis] for axis in range(3) if turn[axis, axis] < _PARALLEL - 1]
    if opposite and (np.abs(np.diagonal(turn)) > 1 - _PARALLEL).all():
        axes = " and ".join(opposite)
        return f"runs in the opposite direction along {axes}"
    if (np.diagonal(turn) > 1 - _PARALLEL).all():
        distances = _multiply(frames[0].T, (volume.affine - truth.affine)[:, 3:])[:, 0]
        axis = int(np.abs(distances).argmax())
        return f"is offset by {abs(distances[axis]):.3g} mm along {AXES[axis]}"
    return "is rotated relative to the truth"


def _name_shape(shape: Shape) -> str:
    """Return a shape as text for messages."""
    return " x ".join(map(str, shape))
