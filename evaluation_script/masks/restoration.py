"""Label maps that were resized, compressed, padded or moved: how to recognise it, and how to undo it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, NamedTuple, Optional, Tuple

import numpy as np

from .stack import Array

if TYPE_CHECKING:
    from .stretches import Stretch

#: The maximum length of a blended run and of a speck, and the number of rows that are examined.
_SHORT, _SPECK, _ROWS = 8, 3, 64
#: The share of odd pixels in specks that shows that all of them come from borders.
_NEARLY_ALL = 0.9
#: The distance of the farthest pixels of a median.
_REACH = 2
#: The side of JPEG's blocks.
_BLOCK = 8
#: The minimum number of borders, the minimum share of blended runs among borders and among short runs between two
#: other labels, and the minimum ratio of the share to the truth's.
_FEWEST_BORDERS, _BLENDED, _ORDERED, _TIMES_BLENDED = 50, 0.1, 0.6, 4.0
#: The minimum share of specks among runs, and the minimum ratio of the blocks with several labels between JPEG's blocks
#: to those of JPEG.
_SPECKLED, _TIMES_UNEVEN = 0.25, 1.4


def _find_runs(pixels: Array) -> Tuple[Array, Array, Array]:
    """Return the starts, lengths and values of the runs of rows."""
    is_start = np.ones(pixels.shape, bool)
    np.not_equal(pixels[:, 1:], pixels[:, :-1], out=is_start[:, 1:])
    starts = np.flatnonzero(is_start)
    return starts, np.diff(starts, append=pixels.size), pixels.reshape(-1)[starts].astype(np.int64)


def _find_blended(pixels: Array) -> Tuple[Array, Array, Array]:
    """Return the starts of the runs of rows, and which are between two other labels and between them in value."""
    starts, lengths, values = _find_runs(pixels)
    rises, is_inner, width = np.sign(np.diff(values)), np.zeros((2, len(starts)), bool), pixels.shape[1]
    if len(starts) > 2:
        inside = (starts[1:-1] % width > 0) & (starts[2:] % width > 0) & (lengths[1:-1] <= _SHORT)
        is_inner[0, 1:-1] = inside & (values[2:] != values[:-2])
        is_inner[1, 1:-1] = is_inner[0, 1:-1] & (rises[1:] == rises[:-1])
    return starts, is_inner[0], is_inner[1]


def _choose_rows(pixels: Array) -> Array:
    return np.ascontiguousarray(pixels[:: max(1, len(pixels) // _ROWS)])


def share_blended(pixels: Array) -> Tuple[int, float, float]:
    """Return the number of borders in some rows, and the shares of blended runs among them and among inner runs."""
    rows = _choose_rows(pixels)
    starts, is_inner, is_blended = _find_blended(rows)
    borders, blended = len(starts) - len(rows), int(np.count_nonzero(is_blended))
    return borders, blended / max(1, borders), blended / max(1, int(np.count_nonzero(is_inner)))


def are_short(pixels: Array, is_odd: Array) -> bool:
    """Return whether nearly all of many odd runs of rows are short, as where colours blend."""
    starts, lengths, _ = _find_runs(pixels)
    odd_lengths = lengths[is_odd.reshape(-1)[starts]]
    short = odd_lengths[odd_lengths <= _SPECK]
    return len(short) >= _FEWEST_BORDERS and int(short.sum()) >= _NEARLY_ALL * int(odd_lengths.sum())


def is_blended(prediction: Array, truth: Array) -> bool:
    """Return whether labels blend along the prediction's borders, and not along the truth's."""
    borders, share, order = share_blended(prediction)
    if borders < _FEWEST_BORDERS or share < _BLENDED or order < _ORDERED:
        return False
    return share >= _TIMES_BLENDED * share_blended(truth)[1]


def is_speckled(pixels: Array) -> bool:
    """Return whether a map is full of specks."""
    borders, specks = share_specks(pixels)
    return borders >= _FEWEST_BORDERS and specks >= _SPECKLED


def is_compressed(prediction: Array) -> bool:
    """Return whether a map is full of specks that lie in the blocks of JPEG."""
    if not is_speckled(prediction):
        return False
    uneven, uneven_between = count_uneven_blocks(prediction)
    return uneven_between >= max(_FEWEST_BORDERS, _TIMES_UNEVEN * uneven)


def sharpen(pixels: Array) -> Array:
    """Return a map whose blended runs, along rows and then along columns, have the nearer label beside them."""
    for _ in range(2):
        starts, _, is_blended = _find_blended(pixels)
        runs = np.arange(len(starts))
        before = np.maximum.accumulate(np.where(is_blended, 0, runs))
        after = np.minimum.accumulate(np.where(is_blended, len(runs), runs)[::-1])[::-1]
        nearer = np.where(runs - before <= after - runs, before, after)
        values = pixels.reshape(-1)[starts][nearer]
        pixels = np.repeat(values, np.diff(starts, append=pixels.size)).reshape(pixels.shape)
        pixels = np.ascontiguousarray(pixels.T)
    return pixels


def share_specks(pixels: Array) -> Tuple[int, float]:
    """Return the number of borders in some rows, and the share of specks among runs."""
    rows = _choose_rows(pixels)
    starts, lengths, _ = _find_runs(rows)
    return len(starts) - len(rows), int(np.count_nonzero(lengths <= _SPECK)) / max(1, len(starts))


def count_uneven_blocks(pixels: Array) -> Tuple[int, int]:
    """Return the number of blocks with several labels: of JPEG's blocks, and of those half a block further."""
    counts = []
    for start in (0, _BLOCK // 2):
        down, across = ((side - _BLOCK // 2) // _BLOCK for side in pixels.shape)
        grid = pixels[start : start + down * _BLOCK, start : start + across * _BLOCK]
        rows = grid.reshape(down, _BLOCK, across * _BLOCK)
        differs = (rows[:, 1:] != rows[:, :1]).any(axis=1).reshape(down, across, _BLOCK)
        tops = rows[:, 0].reshape(down, across, _BLOCK)
        differs[..., 1:] |= tops[..., 1:] != tops[..., :-1]
        counts.append(int(np.count_nonzero(differs.view(np.uint64))))  # a word for each block
    return counts[0], counts[1]


def settle(pixels: Array) -> Array:
    """Return a map whose labels that mostly occur in short runs are replaced by the nearest other ones."""
    _, lengths, values = _find_runs(pixels)
    long_runs = np.bincount(values, lengths * (lengths > _SHORT))
    stable = np.flatnonzero((2 * long_runs >= np.bincount(values, lengths)) & (long_runs > 0))
    if not len(stable):
        return pixels
    labels = np.arange(len(long_runs))
    above = np.minimum(np.searchsorted(stable, labels), len(stable) - 1)
    below = np.maximum(above - 1, 0)
    nearest = np.where(labels - stable[below] <= np.abs(stable[above] - labels), stable[below], stable[above])
    return nearest.astype(pixels.dtype)[pixels]


def smooth(pixels: Array) -> Array:
    """Return a map whose labels are the medians of five pixels along rows, and then along columns."""
    for _ in range(2):
        padded = np.pad(pixels, ((0, 0), (_REACH, _REACH)), mode="edge")
        windows = [padded[:, start : start + pixels.shape[1]] for start in range(2 * _REACH + 1)]
        pixels = np.ascontiguousarray(np.sort(np.stack(windows), axis=0)[_REACH].T)
    return pixels


def cut_square(pixels: Array, *, centered: bool) -> Array:
    """Return the part of pixels that shows the image, if it was padded to a square and then had its own size again."""
    for axis, side in enumerate(pixels.shape):
        if side < max(pixels.shape):
            pixels = pixels.take(cut_side(np.arange(side), side, max(pixels.shape), centered=centered), axis)
    return pixels


def cut_side(places: Array, side: int, longest: int, *, centered: bool) -> Array:
    """Return where places along a side are shown in a padded image, whose longest side is given."""
    length = max(1, side * side // longest)
    return (side - length) // 2 * centered + places * length // side


#: The maximum number of rows or columns whose borders are counted, and of steps as a share of the side.
_MOST_LINES, _FARTHEST = 256, 8
#: The share of the rows above which a border is that of a bar.
_MOST_CROSSED = 0.75
#: Pixels along y and x.
Shift = Tuple[int, int]


def find_shift(truth: Array, predicted: Array) -> Shift:
    """Return by how many pixels along y and x a map is moved, so that its borders lie where the truth's do."""
    return _find_step(truth.T, predicted.T), _find_step(truth, predicted)


def _find_step(truth: Array, predicted: Array) -> int:
    true, borders = (_count_borders(side) for side in (truth, predicted))
    farthest = len(true) // _FARTHEST
    beyond = np.zeros(farthest, np.int64)
    padded = np.concatenate([beyond, borders, beyond])
    shared = [int((padded[start : start + len(true)] * true).sum()) for start in range(2 * farthest + 1)]
    best = max(range(len(shared)), key=lambda step: (shared[step], -abs(step - farthest)))
    return best - farthest


def _count_borders(labels: Array) -> Array:
    """Return how many rows have a border before each column, less the average, with half of those beside it."""
    lines = labels[:: max(1, len(labels) // _MOST_LINES)]
    counts = np.count_nonzero(lines[:, 1:] != lines[:, :-1], axis=0).astype(np.int64)
    counts[counts > _MOST_CROSSED * len(lines)] = 0  # the edge of a bar that replaces what was moved outside
    smooth = 2 * counts
    smooth[1:] += counts[:-1]
    smooth[:-1] += counts[1:]
    centered: Array = smooth - int(smooth.sum()) // max(1, len(smooth))
    return centered


def undo_shift(pixels: Array, shift: Shift) -> Array:
    """Return a map that is moved back; the pixels at its edge fill what was outside."""
    wider = np.pad(pixels, [(max(0, -step), max(0, step)) for step in shift], mode="edge")
    begins = (max(0, step) for step in shift)
    return np.ascontiguousarray(wider[tuple(slice(begin, begin + side) for begin, side in zip(begins, pixels.shape))])


class Displacement(NamedTuple):
    """By how many pixels maps are moved, or how they are stretched, along both axes of their arrays."""

    shift: Shift = (0, 0)
    stretch: Optional[Stretch] = None

    def __bool__(self) -> bool:
        return self.stretch is not None or any(self.shift)

    def undo(self, pixels: Array) -> Array:
        """Return pixels at their true places."""
        if self.stretch is None:
            return undo_shift(pixels, self.shift)
        from .stretches import undo_stretch  # few submissions need it

        return undo_stretch(pixels, self.stretch)

    def transpose(self) -> Displacement:
        """Return the displacement of transposed maps."""
        return Displacement(self.shift[::-1], self.stretch and self.stretch[::-1])


#: The agreement with the truth of moved maps from which they are not stretched, and the minimum gain of stretched ones.
_FITTING, _CLEARLY = 0.75, 1.1


def try_stretch(
    moved: Displacement,
    fit: float,
    sides: Tuple[Array, Array],
    measure: Callable[[Displacement], Optional[float]],
) -> Tuple[Displacement, float]:
    """Return a stretch by which a predicted map fits the true one clearly better than by a shift, or else the shift.

    How well it fits then comes second.
    """
    if fit >= _FITTING:
        return moved, fit
    from .stretches import Grids, find_stretch  # few submissions need it

    grids = Grids(*sides)
    stretch = find_stretch(grids.agree, grids.sift)
    if stretch is None:
        return moved, fit
    stretched = Displacement(stretch=stretch)
    otherwise = measure(stretched) or 0.0
    return (stretched, otherwise) if otherwise > _CLEARLY * fit else (moved, fit)
