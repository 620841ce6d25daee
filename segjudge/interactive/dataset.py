"""DAVIS' folders as the interactive session reads them: masks, scribbles, and lists of sequences."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np
from PIL import Image

from segjudge.masks.comparison import VOID

from .davis_catalogue import YEARS, published, published_record, published_set

ROOT_VARIABLE = "DATASET_DAVIS"


class MissingFiles(FileNotFoundError, AssertionError):
    """Raised when files of a sequence are missing; programs expect either class."""


class WrongFile(ValueError, AssertionError):
    """Raised when a file does not hold what it should; programs expect either class."""


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


class Catalogue(dict[str, Any]):
    """What was published, for programs to read and to change; other names are asked of the root opened last."""

    #: The attribute of a root that knows other names.
    of_root = ""

    def __missing__(self, name: str) -> Any:
        opened = Davis.opened
        if opened is None:
            raise KeyError(name)
        return getattr(opened, self.of_root)[name]


class _KnownSets(Catalogue):
    of_root = "sets"


class _KnownRecords(Catalogue):
    of_root = "dataset"


class Davis:
    """A root with `Annotations/480p`, `Scribbles` and, for `load_images`, `JPEGImages/480p`.

    `Davis.sets` and `Davis.dataset` hold the published subsets and sequences and may be changed: what was changed
    goes before what a root says.  Else the lists of a root (`ImageSets/2017`) and the masks of the sequences they name
    describe it, and without lists it is taken for the published dataset.  A root's `sets` and `dataset` say what came
    of that.  A root that is not there is made, empty; nothing is downloaded.
    """

    VERSION = "2017"
    IMAGES_SUBDIR, ANNOTATIONS_SUBDIR, SCRIBBLES_SUBDIR = "JPEGImages", "Annotations", "Scribbles"
    RESOLUTION = "480p"
    sets: Mapping[str, list[str]] = _KnownSets(published()[0])
    dataset: Mapping[str, dict[str, Any]] = _KnownRecords(published()[1])
    years = YEARS
    #: The root that was opened last.
    opened: ClassVar[Davis | None] = None

    def __init__(self, davis_root: str | os.PathLike[str] | None = None) -> None:
        root = root_of(davis_root)
        if not root:
            raise ValueError(f"There is no davis_root: give it, or set the variable {ROOT_VARIABLE}")
        self.davis_root = os.path.abspath(root)
        if not os.path.isdir(self.davis_root):
            warnings.warn(f"{self.davis_root}: there is no such folder; an empty one is made", stacklevel=2)
            os.makedirs(self.davis_root)
        self._lists = lists_of(self.davis_root)
        self._found: dict[str, dict[str, Any]] = {}
        self.sets = _Sets(self._lists)
        self.dataset = SequenceRecords(self._names, self._record)
        Davis.opened = self

    @classmethod
    def existing(cls, root: str | os.PathLike[str] | None) -> Davis:
        """Open a root that must be there; a mistyped path makes no folder."""
        if root and not os.path.isdir(os.path.expanduser(root)):
            raise FileNotFoundError(f"{root}: there is no such folder")
        return cls(root)

    def sequences(self, subset: str) -> list[str]:
        """Return a subset's sequences, in the order of its list."""
        if subset not in self.sets:
            raise ValueError(f"Subset must be a valid subset: {list(self.sets)}")
        names = self.sets[subset]
        twice = sorted({name for name in names if names.count(name) > 1})
        if not names or twice:
            path = os.path.join(self.davis_root, "ImageSets", self.VERSION, f"{subset}.txt")
            raise ValueError(f"{path}: names {twice[0]} twice" if twice else f"{path}: names no sequence")
        return names

    def _names(self) -> list[str]:
        return list(dict.fromkeys([*(name for names in self.sets.values() for name in names), *Davis.dataset]))

    def _record(self, sequence: str) -> dict[str, Any]:
        """What a program wrote into the catalogue, else what is on the disk, else what was published."""
        known: dict[str, Any] | None = Davis.dataset.get(sequence)
        if known is not None and (self._is_as_catalogued(sequence) or not self._mask_files(sequence)):
            return known
        if sequence not in self._found:
            self._found[sequence] = self._read_record(sequence)
        return self._found[sequence]

    def _is_as_catalogued(self, sequence: str) -> bool:
        """Whether the catalogue goes before the disk: a program changed it, or no list of the root has the sequence."""
        known = Davis.dataset.get(sequence)
        if known is None:
            return False
        listed = any(sequence in names for names in self._lists.values())
        return known != published_record(sequence) or not listed

    def _read_record(self, sequence: str) -> dict[str, Any]:
        masks = self._masks(sequence)
        largest = max(_largest(mask) for mask in masks)
        if not largest:
            raise ValueError(f"{sequence}: its masks below {self.davis_root} show no object")
        return {
            "name": sequence,
            "set": next(name for name, names in self.sets.items() if sequence in names),
            "num_frames": len(masks),
            "num_objects": largest,
            "num_scribbles": len(self.scribble_paths(sequence)),
            "image_size": [masks.shape[2], masks.shape[1]],
        }

    def annotation_paths(self, sequence: str) -> list[str]:
        """One PNG for each frame."""
        paths = self._mask_files(sequence)
        return paths[: Davis.dataset[sequence]["num_frames"]] if self._is_as_catalogued(sequence) else paths

    def _mask_files(self, sequence: str) -> list[str]:
        return files(os.path.join(self.davis_root, self.ANNOTATIONS_SUBDIR, self.RESOLUTION, sequence), ".png")

    def scribble_paths(self, sequence: str) -> list[str]:
        """One JSON for each set of scribbles."""
        return files(os.path.join(self.davis_root, self.SCRIBBLES_SUBDIR, sequence), ".json")

    def num_scribbles(self, sequence: str) -> int:
        """How many sets of first scribbles there are."""
        if self._is_as_catalogued(sequence):
            return int(Davis.dataset[sequence]["num_scribbles"])
        return len(self.scribble_paths(sequence))

    def check_files(self, sequences: list[str]) -> None:
        """Each sequence has its masks and scribbles; raises MissingFiles with what is missing."""
        for sequence in sequences:
            wanted = Davis.dataset[sequence] if self._is_as_catalogued(sequence) else {}
            for what, paths, number in (
                ("masks", self.annotation_paths(sequence), "num_frames"),
                ("scribbles", self.scribble_paths(sequence), "num_scribbles"),
            ):
                if not paths:
                    raise MissingFiles(f"{sequence}: has no {what} below {self.davis_root}")
                if len(paths) < wanted.get(number, 1):
                    found = f"{sequence}: has {len(paths)} of {wanted[number]} {what} below {self.davis_root}"
                    raise MissingFiles(f"{found}; download what is missing, or list the sequence in ImageSets/2017")

    def load_scribble(self, sequence: str, scribble_idx: int) -> dict[str, Any]:
        """The scribbles that somebody drew first; sets are counted from 1."""
        path = os.path.join(self.davis_root, self.SCRIBBLES_SUBDIR, sequence, f"{scribble_idx:03d}.json")
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            raise MissingFiles(f"{path}: there is no such file") from None
        except ValueError as error:
            raise WrongFile(f"{path}: is not JSON ({error})") from None
        if not isinstance(found, dict) or not isinstance(found.get("scribbles"), list):
            raise WrongFile(f'{path}: is not {{"scribbles": [[…], …], "sequence": …}}')
        if found.get("sequence") != sequence:
            raise WrongFile(f"{path}: is of the sequence {found.get('sequence')!r}")
        return found

    def load_annotations(self, sequence: str, dtype: Any = int) -> Any:
        """All masks, (frames, height, width), as an array of the caller's own."""
        return self._masks(sequence).astype(dtype)

    def _masks(self, sequence: str) -> Any:
        paths = self.annotation_paths(sequence)
        if not paths:
            raise MissingFiles(f"{sequence}: has no masks below {self.davis_root}")
        masks = _annotations(tuple(paths))
        self._check_shape(sequence, masks)
        return masks

    def load_images(self, sequence: str, dtype: Any = np.uint8) -> Any:
        """All images, (frames, height, width, 3)."""
        paths = self.image_paths(sequence)
        if not paths:
            raise MissingFiles(f"{sequence}: has no images below {self.davis_root}")
        images = np.stack([np.asarray(Image.open(path).convert("RGB")) for path in paths]).astype(dtype)
        self._check_shape(sequence, images)
        return images

    def _check_shape(self, sequence: str, found: Any) -> None:
        """Frames and size are those of the catalogue, where that describes the sequence."""
        if self._is_as_catalogued(sequence):
            record = Davis.dataset[sequence]
            wanted = (record["num_frames"], *record["image_size"][::-1])
            if found.shape[:3] != wanted:
                told = f"its frames, height and width are {found.shape[:3]}, and the catalogue says {wanted}"
                raise WrongFile(f"{sequence}: {told}")

    def image_paths(self, sequence: str) -> list[str]:
        """One JPEG for each frame, where there are any."""
        paths = files(os.path.join(self.davis_root, self.IMAGES_SUBDIR, self.RESOLUTION, sequence), ".jpg")
        return paths[: Davis.dataset[sequence]["num_frames"]] if self._is_as_catalogued(sequence) else paths


def first_scribbles(dataset: Sequences, sequence: str, scribble_idx: int) -> dict[str, Any]:
    """A dataset's first scribbles, with a list for each frame of the sequence."""
    found = dataset.load_scribble(sequence, scribble_idx)
    frames = dataset.dataset[sequence]["num_frames"]
    if len(found["scribbles"]) != frames:
        told = f"has scribbles for {len(found['scribbles'])} frames, and {sequence} has {frames}"
        raise WrongFile(f"{sequence}, scribbles {scribble_idx}: {told}")
    return found


def files(folder: str, ending: str) -> list[str]:
    """Paths of the files of a folder, sorted; none where there is no folder."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(ending)]


@lru_cache(maxsize=1)
def _annotations(paths: tuple[str, ...]) -> Any:
    frames = [_mask(path) for path in paths]
    other = next((path for path, mask in zip(paths, frames, strict=True) if mask.shape != frames[0].shape), None)
    if other is not None:
        raise ValueError(f"{other}: has another size than the frames before it; all frames of a session have one")
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


def root_of(davis_root: str | os.PathLike[str] | None) -> str:
    """The root that was named, else that of the environment, else nothing."""
    return os.path.expanduser(davis_root or os.environ.get(ROOT_VARIABLE) or "")


def lists_of(root: str) -> dict[str, list[str]]:
    """A root's own lists; `trainval` is both of its parts where there is no list of it."""
    lists: dict[str, list[str]] = {}
    if not root:
        return lists
    for path in files(os.path.join(root, "ImageSets", Davis.VERSION), ".txt"):
        with open(path, encoding="utf-8") as file:
            lists[os.path.basename(path).removesuffix(".txt")] = [line.strip() for line in file if line.strip()]
    if {"train", "val"} <= lists.keys() and "trainval" not in lists:
        lists["trainval"] = lists["train"] + lists["val"]
    return lists


class _Sets(Mapping[str, list[str]]):
    """Subset → sequences: as a program changed the catalogue, else as the root lists them, else as published."""

    def __init__(self, lists: dict[str, list[str]]) -> None:
        self._lists = lists

    def __getitem__(self, subset: str) -> list[str]:
        known = Davis.sets.get(subset)
        if known is not None and (known != published_set(subset) or not self._lists):
            return known
        return self._lists[subset]

    def __iter__(self) -> Iterator[str]:
        changed = [name for name, names in Davis.sets.items() if names != published_set(name) or not self._lists]
        return iter(dict.fromkeys([*self._lists, *changed]))

    def __len__(self) -> int:
        return len(list(iter(self)))


class SequenceRecords(Mapping[str, dict[str, Any]]):
    """Sequence → what is known about it, found when it is asked for."""

    def __init__(self, names: Callable[[], Collection[str]], find: Callable[[str], dict[str, Any]]) -> None:
        self._names, self._find = names, find

    def __getitem__(self, sequence: str) -> dict[str, Any]:
        if sequence not in self._names():
            raise KeyError(sequence)
        return self._find(sequence)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())
