"""DAVIS' folders as the interactive session reads them: masks, scribbles, and lists of sequences."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from PIL import Image

from linejudge.objects import VOID

ROOT_VARIABLE = "DATASET_DAVIS"


class Sequences(Protocol):
    """What a session asks of a dataset."""

    def __hash__(self) -> int: ...

    @property
    def dataset(self) -> Mapping[str, dict[str, Any]]:
        """Sequence → `num_frames`, `num_objects` and `image_size` [width, height], for which masks are read."""

    def sequences(self, subset: str) -> list[str]:
        """Names in their order; ValueError for a subset that is not there."""

    def check_files(self, sequences: list[str]) -> None:
        """Raises FileNotFoundError, naming what is missing."""

    def num_scribbles(self, sequence: str) -> int:
        """How many sets of first scribbles there are."""

    def load_scribble(self, sequence: str, scribble_idx: int) -> dict[str, Any]:
        """The first scribbles of a set, counted from 1."""

    def load_annotations(self, sequence: str, dtype: Any = int) -> Any:
        """Masks (frames, height, width) of ids from 1 on; 255 is void."""

    def image_paths(self, sequence: str) -> list[str]:
        """A picture for each frame, or none."""


class Davis:
    """A root with `Annotations/480p`, `Scribbles`, `ImageSets/2017` and, for `load_images`, `JPEGImages/480p`.

    `sets` and `dataset` tell the subsets and the sequences of the root that was opened last; nothing is downloaded.
    """

    VERSION = "2017"
    IMAGES_SUBDIR, ANNOTATIONS_SUBDIR, SCRIBBLES_SUBDIR = "JPEGImages", "Annotations", "Scribbles"
    RESOLUTION = "480p"
    sets: Mapping[str, list[str]] = {}
    dataset: Mapping[str, dict[str, Any]] = {}

    def __init__(self, davis_root: str | os.PathLike[str] | None = None) -> None:
        root = davis_root or os.environ.get(ROOT_VARIABLE)
        if not root:
            raise ValueError(f"There is no davis_root: give it, or set the variable {ROOT_VARIABLE}")
        self.davis_root = os.path.abspath(os.path.expanduser(root))
        if not os.path.isdir(self.davis_root):
            raise FileNotFoundError(f"{self.davis_root}: there is no such folder")
        self.sets = Davis.sets = _Sets(self.davis_root)
        names = list(dict.fromkeys(name for names in self.sets.values() for name in names))
        self.dataset = Davis.dataset = Records(names, self._record)

    def sequences(self, subset: str) -> list[str]:
        """A subset's sequences, in the order of its list."""
        if subset not in self.sets:
            raise ValueError(f"For local connector, `subset` must be a valid subset: {sorted(self.sets)}")
        names = self.sets[subset]
        twice = sorted({name for name in names if names.count(name) > 1})
        if not names or twice:
            path = os.path.join(self.davis_root, "ImageSets", self.VERSION, f"{subset}.txt")
            raise ValueError(f"{path}: names {twice[0]} twice" if twice else f"{path}: names no sequence")
        return names

    def _record(self, sequence: str) -> dict[str, Any]:
        masks = self.load_annotations(sequence, np.uint8)
        largest = max(_largest(mask) for mask in masks)
        if not largest:
            raise ValueError(f"{sequence}: its masks below {self.davis_root} show no object")
        return {
            "name": sequence,
            "set": next(name for name, names in self.sets.items() if sequence in names),
            "num_frames": len(masks),
            "num_objects": largest,
            "num_scribbles": self.num_scribbles(sequence),
            "image_size": [masks.shape[2], masks.shape[1]],
        }

    def annotation_paths(self, sequence: str) -> list[str]:
        """One PNG for each frame."""
        return files(os.path.join(self.davis_root, self.ANNOTATIONS_SUBDIR, self.RESOLUTION, sequence), ".png")

    def scribble_paths(self, sequence: str) -> list[str]:
        """One JSON for each set of scribbles."""
        return files(os.path.join(self.davis_root, self.SCRIBBLES_SUBDIR, sequence), ".json")

    def num_scribbles(self, sequence: str) -> int:
        """How many sets of first scribbles there are."""
        return len(self.scribble_paths(sequence))

    def check_files(self, sequences: list[str]) -> None:
        """Each sequence has masks and scribbles; says which has not."""
        for sequence in sequences:
            for name, paths in (
                ("masks", self.annotation_paths(sequence)),
                ("scribbles", self.scribble_paths(sequence)),
            ):
                if not paths:
                    raise FileNotFoundError(f"{sequence}: has no {name} below {self.davis_root}")

    def load_scribble(self, sequence: str, scribble_idx: int) -> dict[str, Any]:
        """The scribbles that somebody drew first; sets are counted from 1."""
        path = os.path.join(self.davis_root, self.SCRIBBLES_SUBDIR, sequence, f"{scribble_idx:03d}.json")
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path}: is no JSON ({error})") from None
        if not isinstance(found, dict) or not isinstance(found.get("scribbles"), list):
            raise ValueError(f'{path}: is no {{"scribbles": [[…], …], "sequence": …}}')
        if found.get("sequence") != sequence:
            raise ValueError(f"{path}: is of the sequence {found.get('sequence')!r}")
        frames = len(self.annotation_paths(sequence))
        if len(found["scribbles"]) != frames:
            raise ValueError(f"{path}: has scribbles for {len(found['scribbles'])} frames, and {sequence} has {frames}")
        return found

    def load_annotations(self, sequence: str, dtype: Any = int) -> Any:
        """All masks, (frames, height, width)."""
        paths = self.annotation_paths(sequence)
        if not paths:
            raise FileNotFoundError(f"{sequence}: has no masks below {self.davis_root}")
        return _annotations(tuple(paths)).astype(dtype, copy=False)

    def load_images(self, sequence: str, dtype: Any = np.uint8) -> Any:
        """All images, (frames, height, width, 3)."""
        return np.stack([np.asarray(Image.open(path).convert("RGB")) for path in self.image_paths(sequence)]).astype(
            dtype
        )

    def image_paths(self, sequence: str) -> list[str]:
        """One JPEG for each frame, where there are any."""
        return files(os.path.join(self.davis_root, self.IMAGES_SUBDIR, self.RESOLUTION, sequence), ".jpg")


def files(folder: str, ending: str) -> list[str]:
    """Paths of the files of a folder, sorted; none where there is no folder."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(ending)]


@lru_cache(maxsize=4)
def _annotations(paths: tuple[str, ...]) -> Any:
    frames = [_mask(path) for path in paths]
    other = next((path for path, mask in zip(paths, frames, strict=True) if mask.shape != frames[0].shape), None)
    if other is not None:
        raise ValueError(f"{other}: has another size than the frames before it, which a session has no words for")
    masks = np.stack(frames)
    masks.flags.writeable = False  # it is handed to many
    return masks


def _mask(path: str) -> Any:
    try:
        with Image.open(path) as image:
            mask = np.asarray(image)
    except (OSError, SyntaxError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
    if mask.ndim != 2:
        raise ValueError(f"{path}: is a picture in colour, not a mask of ids")
    return mask


def _largest(mask: Any) -> int:
    """The largest id of a frame; void is none, and seldom there."""
    top = int(mask.max(initial=0))
    return top if top < VOID else int(mask[mask < VOID].max(initial=0))


class _Sets(Mapping[str, list[str]]):
    """Subset → sequences, from the root's lists; `trainval` is both of its parts where there is no list of it."""

    def __init__(self, root: str) -> None:
        self._lists: dict[str, list[str]] = {}
        for path in files(os.path.join(root, "ImageSets", Davis.VERSION), ".txt"):
            with open(path, encoding="utf-8") as file:
                name = os.path.basename(path).removesuffix(".txt")
                self._lists[name] = [line.strip() for line in file if line.strip()]
        if {"train", "val"} <= self._lists.keys():
            self._lists["trainval"] = self._lists["train"] + self._lists["val"]

    def __getitem__(self, subset: str) -> list[str]:
        return self._lists[subset]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lists)

    def __len__(self) -> int:
        return len(self._lists)


class Records(Mapping[str, dict[str, Any]]):
    """Sequence → what is known of it, found when it is asked for and once."""

    def __init__(self, names: Collection[str], find: Callable[[str], dict[str, Any]]) -> None:
        self._names, self._find = names, find
        self._known: dict[str, dict[str, Any]] = {}

    def __getitem__(self, sequence: str) -> dict[str, Any]:
        if sequence not in self._names:
            raise KeyError(sequence)
        if sequence not in self._known:
            self._known[sequence] = self._find(sequence)
        return self._known[sequence]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
