"""Datasets beyond DAVIS, with first scribbles drawn by the robot; and a demo."""

import itertools
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from segjudge.evaluation_script.families.sequences.truth import Sequence
from segjudge.evaluation_script.masks.stack import Array
from segjudge.evaluation_script.scoring.scorer import is_packed
from segjudge.families import OPTIONAL_LAYOUTS
from segjudge.families.sequences.comparison import VOID, ids_of, labels_of
from segjudge.families.sequences.published import frame_images_of, open_sequences
from segjudge.families.truths import TruthSource
from segjudge.masks import DEMO_SEED
from segjudge.masks.demo import Scene, davis_files, make_scenes, write_picture
from segjudge.system.files import make_folder, replace

from .dataset import Davis, InteractiveDataset, LookupMapping, SequenceRecord, SessionInputError
from .robot import InteractiveScribblesRobot
from .scribbles import ScribbleLine, Scribbles

#: The robot's kernel sizes, tried until one gives a line.
_KERNEL_SIZES = (0.2, 0.1, 0.05, 0.0)
#: Half the length of a stroke, as a share of the frame's width, if no stroke fits.
_STROKE = 0.01


class MaskDataset:
    """Sequences of a packed annotation file, or of a dataset in the layout it was published in.

    `images` is a folder with one folder of images per sequence, if there are images.
    """

    def __init__(self, path: str, layout: str = "generic", images: str | None = None) -> None:
        if layout not in OPTIONAL_LAYOUTS:
            raise SessionInputError(f"There is no layout {layout!r}, only {sorted(OPTIONAL_LAYOUTS)}")
        self._path, self._layout = os.path.abspath(os.path.expanduser(path)), layout
        self._images = images or self._path
        self._packed = open_sequences(TruthSource(self._path)).splits if is_packed(self._path) else None
        self._sequences: dict[str, Sequence] = {}
        self._subsets: dict[str, list[str]] = {}
        self.dataset: Mapping[str, SequenceRecord] = LookupMapping(
            lambda: self._sequences, lru_cache(None)(self._make_record)
        )
        self._masks = lru_cache(maxsize=2)(self._read_masks)

    def sequences(self, subset: str) -> list[str]:
        """Return the sequences of a split of the packed file, or of a list of the dataset."""
        if self._packed is not None and subset not in self._packed:
            raise SessionInputError(f"{self._path}: has no split {subset!r}, only {sorted(self._packed)}")
        if subset not in self._subsets:  # every session calls this, and a published layout is read completely
            if self._packed is not None:
                truth = self._packed[subset]
            else:
                published = open_sequences(TruthSource(self._path, self._layout, subset))
                truth = next(iter(published.splits.values()))
            by_name = {sequence.name: sequence for sequence in truth.sequences}
            self._sequences.update(by_name)
            self._subsets[subset] = list(by_name)
        return self._subsets[subset]

    def check_files(self, sequences: list[str]) -> None:
        """Raise FileNotFoundError: only DAVIS has scribbles."""
        for name in sequences:
            raise FileNotFoundError(f"{name}: has no scribbles; let the robot draw the first ones")

    def num_scribbles(self, sequence: str) -> int:
        del sequence
        return 0

    def load_scribble(self, sequence: str, scribble_idx: int) -> Scribbles:
        raise ValueError(f"Invalid scribble index: {scribble_idx} of {sequence}")

    def load_annotations(self, sequence: str, dtype: DTypeLike = int) -> Array:
        return self._masks(sequence).astype(dtype, copy=False)

    def image_paths(self, sequence: str) -> list[str]:
        return frame_images_of(self._images, sequence, self._sequences[sequence].frames)

    def _make_record(self, name: str) -> SequenceRecord:
        sequence = self._sequences[name]
        if len({block.size for block in sequence.blocks}) != 1:
            raise SessionInputError(f"{name}: the size of its frames changes, which sessions do not support")
        ids = ids_of(sequence)
        if not ids:
            raise SessionInputError(f"{name}: its masks in {self._path} show no object")
        height, width = sequence.blocks[0].size
        return {
            "name": name,
            "num_frames": len(sequence.frames),
            "num_objects": max(ids.values()),
            "image_size": [width, height],
        }

    def _read_masks(self, name: str) -> Array:
        sequence = self._sequences[name]
        ids = ids_of(sequence)
        blocks = enumerate(sequence.blocks)
        masks = np.concatenate([labels_of(sequence.read_block(index), block, ids) for index, block in blocks])
        masks.flags.writeable = False
        return masks


class DrawnScribbles:
    """A dataset whose first scribbles the robot draws, several per sequence, each in a separate part."""

    def __init__(self, dataset: InteractiveDataset, sets: int = 1) -> None:
        self._dataset, self._sets = dataset, sets
        self.image_paths, self.sequences = dataset.image_paths, dataset.sequences
        self.load_annotations = dataset.load_annotations

    @property
    def dataset(self) -> Mapping[str, SequenceRecord]:
        return self._dataset.dataset

    def num_scribbles(self, sequence: str) -> int:
        del sequence
        return self._sets

    def check_files(self, sequences: list[str]) -> None:
        """Do nothing: masks are read when a session needs them, since reading a whole dataset takes minutes."""
        del sequences

    def load_scribble(self, sequence: str, scribble_idx: int) -> Scribbles:
        """Return lines on every object of the frame with the most objects; ties prefer the largest smallest object."""
        masks = self.load_annotations(sequence, np.uint8)
        count = min(self._sets, len(masks))
        stretch = np.array_split(np.arange(len(masks)), count)[(scribble_idx - 1) % count]
        frame = max((int(index) for index in stretch), key=lambda index: _objects_and_smallest_area(masks[index]))
        lines: list[list[ScribbleLine]] = [[] for _ in masks]
        for object_id in range(1, self.dataset[sequence]["num_objects"] + 1):
            lines[frame] += _draw_lines(masks[frame] == object_id, object_id)
        return {"scribbles": lines, "sequence": sequence, "annotated_frame": frame}


def open_dataset(root: str, layout: str | None, images: str | None, set_count: int) -> InteractiveDataset:
    """Open any dataset in a layout, or a DAVIS root; the robot draws `set_count` first scribbles per sequence."""
    dataset = MaskDataset(root, layout, images) if layout else Davis.existing(root)
    return DrawnScribbles(dataset, set_count) if set_count else dataset


def _objects_and_smallest_area(mask: Array) -> tuple[int, int]:
    areas = np.bincount(mask.ravel(), minlength=VOID + 1)[1:VOID]
    visible = areas[areas > 0]
    return len(visible), int(visible.min()) if len(visible) else 0


def _draw_lines(region: Array, object_id: int) -> list[ScribbleLine]:
    """Return a person-like line on a region, even if the robot may draw none."""
    if not region.any():
        return []
    for kernel_size in _KERNEL_SIZES:
        robot = InteractiveScribblesRobot(kernel_size, clock=float)  # all times are 0
        scribbles = robot.interact("", np.zeros((1, *region.shape), np.uint8), region[None].astype(np.uint8), 1, 0)
        lines = scribbles["scribbles"][0]
        if lines:
            return [{**line, "object_id": object_id} for line in lines]
    return [_draw_stroke(region, object_id)]


def _draw_stroke(region: Array, object_id: int) -> ScribbleLine:
    """Draw a short line through the middle of the region's thickest place."""
    from scipy.ndimage import distance_transform_edt

    depth = distance_transform_edt(np.pad(region, 1))[1:-1, 1:-1]
    row, column = np.unravel_index(int(depth.argmax()), region.shape)
    height, width = region.shape
    half_length = min(float(depth[row, column]) / 2, _STROKE * width)
    y = _scale_pixel(float(row), height)
    endpoints = [[_scale_pixel(column + by, width), y] for by in (-half_length, half_length)]
    return {"path": endpoints, "object_id": object_id, "start_time": 0.0, "end_time": 0.0}


def _scale_pixel(pixel: float, size: int) -> float:
    """Return the coordinate of a pixel's centre, which maps back to the pixel."""
    return min(max((pixel + 0.5) / max(size - 1, 1), 0.0), 1.0)


def make_demo_scenes(seed: int = DEMO_SEED) -> list[Scene]:
    return make_scenes([("drift", 1, 24, False), ("pair", 2, 24, False)], "", seed)


def write_demo_root(folder: Path, videos: list[Scene], sets: int = 1) -> None:
    """Write a DAVIS root of synthetic videos, with `sets` sets of scribbles for each sequence."""
    listing = "".join(f"{video.name}\n" for video in videos)
    for name, data in [("ImageSets/2017/val.txt", listing.encode()), *davis_files(videos)]:
        make_folder((folder / name).parent)
        replace(folder / name, data)
    for video in videos:
        make_folder(folder / "JPEGImages/480p" / video.name)
        for frame in range(video.frames):
            write_picture(folder / "JPEGImages/480p" / video.name / f"{frame:05d}.jpg", video, frame)
    if not sets:
        return
    drawn = DrawnScribbles(Davis(str(folder)), sets)
    for video, number in itertools.product(videos, range(1, sets + 1)):
        make_folder(folder / "Scribbles" / video.name)
        scribbles = drawn.load_scribble(video.name, number)
        replace(folder / "Scribbles" / video.name / f"{number:03d}.json", json.dumps(scribbles))
