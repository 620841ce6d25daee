"""Datasets beyond DAVIS: whatever can be packed or scored, and first scribbles where nobody drew any."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from segjudge.datasets.frame_images import frame_images_of
from segjudge.datasets.opening import LAYOUTS, TruthSource, is_packed, open_sequences
from segjudge.evaluation_script.sequence_truth import Sequence
from segjudge.interactive.utils.scribbles import Scribbles
from segjudge.masks.comparison import VOID, ids_of, labels_of

from .dataset import SequenceRecords, Sequences
from .robot import InteractiveScribblesRobot

#: A region that gives no line is opened by ever smaller disks, and at last by none.
KERNELS = (0.2, 0.1, 0.05, 0.0)
#: Beside the size of the frame: how long the stroke on an object is that gives no line at all.
STROKE = 0.01


class MaskDataset:
    """Sequences of a packed annotation file, or of a dataset in the layout it was published in.

    `images` is the folder that holds a folder of pictures for each sequence, where there are any.
    """

    def __init__(self, path: str, layout: str = "generic", images: str | None = None) -> None:
        if layout not in LAYOUTS:
            raise ValueError(f"There is no layout {layout!r}, only {list(LAYOUTS)}")
        self._path, self._layout = os.path.abspath(os.path.expanduser(path)), layout
        self._images = images or self._path
        self._packed = open_sequences(TruthSource(self._path)).splits if is_packed(self._path) else None
        self._known: dict[str, Sequence] = {}
        self._subsets: dict[str, list[str]] = {}
        self.dataset: Mapping[str, dict[str, Any]] = SequenceRecords(lambda: self._known, lru_cache(None)(self._record))
        self.load_masks = lru_cache(maxsize=2)(self._read)

    def sequences(self, subset: str) -> list[str]:
        """A split of the packed file, or a list of the dataset."""
        if self._packed is not None and subset not in self._packed:
            raise ValueError(f"{self._path}: has no split {subset!r}, only {sorted(self._packed)}")
        if subset not in self._subsets:  # every session asks, and a published layout is read whole
            source = TruthSource(self._path, self._layout, subset)
            splits = self._packed or open_sequences(source).splits
            found = {one.name: one for one in splits[subset].sequences}
            self._known.update(found)
            self._subsets[subset] = list(found)
        return self._subsets[subset]

    def check_files(self, sequences: list[str]) -> None:
        """No dataset but DAVIS comes with scribbles."""
        for name in sequences:
            raise FileNotFoundError(f"{name}: has no scribbles; let the robot draw the first ones")

    def num_scribbles(self, sequence: str) -> int:
        """None, in any of them."""
        del sequence
        return 0

    def load_scribble(self, sequence: str, scribble_idx: int) -> Scribbles:
        """There are none."""
        raise ValueError(f"Invalid scribble index: {scribble_idx} of {sequence}")

    def load_annotations(self, sequence: str, dtype: Any = int) -> Any:
        """All masks, (frames, height, width)."""
        return self.load_masks(sequence).astype(dtype, copy=False)

    def image_paths(self, sequence: str) -> list[str]:
        """One picture for each frame; none where any is missing."""
        return frame_images_of(self._images, self._known[sequence])

    def _record(self, name: str) -> dict[str, Any]:
        one = self._known[name]
        if len({block.size for block in one.blocks}) != 1:
            raise ValueError(f"{name}: the size of its frames changes, which a session has no words for")
        if not ids_of(one):
            raise ValueError(f"{name}: its masks in {self._path} show no object")
        height, width = one.blocks[0].size
        return {
            "name": name,
            "num_frames": len(one.frames),
            "num_objects": max(ids_of(one).values()),
            "image_size": [width, height],
        }

    def _read(self, name: str) -> Any:
        one, ids = self._known[name], ids_of(self._known[name])
        masks = np.concatenate([labels_of(one.read_block(place), block, ids) for place, block in enumerate(one.blocks)])
        masks.flags.writeable = False
        return masks


class DrawnScribbles:
    """A dataset whose first scribbles the robot draws: `sets` for each sequence, each in a part of its own."""

    def __init__(self, dataset: Sequences, sets: int = 1) -> None:
        self._dataset, self._sets = dataset, sets

    @property
    def dataset(self) -> Mapping[str, dict[str, Any]]:
        """As it is."""
        return self._dataset.dataset

    def num_scribbles(self, sequence: str) -> int:
        """As many as were asked for."""
        del sequence
        return self._sets

    def image_paths(self, sequence: str) -> list[str]:
        """As they are."""
        return self._dataset.image_paths(sequence)

    def sequences(self, subset: str) -> list[str]:
        """As they are."""
        return self._dataset.sequences(subset)

    def check_files(self, sequences: list[str]) -> None:
        """Scribbles are drawn, and masks are read when their turn comes: those of a whole dataset take minutes."""
        del sequences

    def load_annotations(self, sequence: str, dtype: Any = int) -> Any:
        """As they are."""
        return self._dataset.load_annotations(sequence, dtype)

    def load_scribble(self, sequence: str, scribble_idx: int) -> Scribbles:
        """Lines on every object of the frame that shows most of them, and of those the smallest largest."""
        masks = self.load_annotations(sequence, np.uint8)
        count = min(self._sets, len(masks))
        part = np.array_split(np.arange(len(masks)), count)[(scribble_idx - 1) % count]
        frame = max((int(one) for one in part), key=lambda one: _clear(masks[one]))
        lines: list[list[dict[str, Any]]] = [[] for _ in masks]
        for one in range(1, self.dataset[sequence]["num_objects"] + 1):
            lines[frame] += _lines(masks[frame] == one, one)
        return {"scribbles": lines, "sequence": sequence, "annotated_frame": frame}


def _clear(mask: Any) -> tuple[int, int]:
    """How many objects a frame shows, and how large the smallest of them is."""
    areas = np.bincount(mask.ravel(), minlength=VOID + 1)[1:VOID]
    shown = areas[areas > 0]
    return len(shown), int(shown.min(initial=0))


def _lines(region: Any, number: int) -> list[dict[str, Any]]:
    """What a person would draw on a region: never nothing, as the robot may of a disk."""
    if not region.any():
        return []
    for kernel in KERNELS:
        robot = InteractiveScribblesRobot(kernel, clock=float)  # nobody drew, so no time passed
        drawn = robot.interact("", np.zeros((1, *region.shape), np.uint8), region[None].astype(np.uint8), 1, 0)
        lines: list[dict[str, Any]] = drawn["scribbles"][0]
        if lines:
            return [{**line, "object_id": number} for line in lines]
    return [_stroke(region, number)]


def _stroke(region: Any, number: int) -> dict[str, Any]:
    """A short line through the middle of the region's thickest place."""
    from scipy.ndimage import distance_transform_edt

    depth = distance_transform_edt(np.pad(region, 1))[1:-1, 1:-1]
    row, column = np.unravel_index(int(depth.argmax()), region.shape)
    height, width = region.shape
    half = min(float(depth[row, column]) / 2, STROKE * width)
    # The middle of a pixel, so that it comes back as this pixel when it is scaled and cut off.
    y = _fraction(float(row), height)
    ends = [[_fraction(column + by, width), y] for by in (-half, half)]
    return {"path": ends, "object_id": number, "start_time": 0.0, "end_time": 0.0}


def _fraction(place: float, size: int) -> float:
    return min(max((place + 0.5) / max(size - 1, 1), 0.0), 1.0)
