"""The DAVIS dataset in its folders: masks, scribbles, images, and lists of sequences."""

from __future__ import annotations

import copy
import json
import os
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import ClassVar, Generic, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike
from PIL import Image

from segjudge.evaluation_script.masks.stack import Array
from segjudge.interactive.utils.scribbles import Scribbles
from segjudge.masks.comparison import VOID

from .dataset_protocol import LookupMapping, MissingFiles, SequenceRecord, WrongFile, shape_of
from .davis_catalogue import RECORDS, SETS, YEARS

ROOT_VARIABLE = "DATASET_DAVIS"
ValueT = TypeVar("ValueT")


class Catalogue(dict[str, ValueT], Generic[ValueT]):
    """What was published; programs may change it.  Other names are looked up in the root that was opened last."""

    def __init__(self, published_values: dict[str, ValueT], look_up: Callable[[Davis, str], ValueT]) -> None:
        super().__init__(copy.deepcopy(published_values))
        self._look_up = look_up

    def __missing__(self, name: str) -> ValueT:
        if Davis.opened is None:
            raise KeyError(name)
        return self._look_up(Davis.opened, name)


class Davis:
    """A root with `Annotations/480p`, `Scribbles` and, for `load_images`, `JPEGImages/480p`.

    `Davis.sets` and `Davis.dataset` hold the published subsets and sequences and may be changed: a changed entry takes
    precedence over the root.  Otherwise the lists of a root (`ImageSets/2017`) and the masks of the sequences they name
    describe it; a root without lists is taken for the published dataset.  `sets` and `dataset` of a root are the
    result.  A root that does not exist is created, empty; nothing is downloaded.
    """

    VERSION = "2017"
    IMAGES_SUBDIR, ANNOTATIONS_SUBDIR, SCRIBBLES_SUBDIR = "JPEGImages", "Annotations", "Scribbles"
    RESOLUTION = "480p"
    sets: Mapping[str, list[str]] = Catalogue(SETS, lambda davis, subset: davis.sets[subset])
    dataset: Mapping[str, SequenceRecord] = Catalogue(RECORDS, lambda davis, name: davis.dataset[name])
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
        self._record_of_files = lru_cache(None)(self._read_record)
        self.sets = LookupMapping(self._subsets, self._subset)
        self.dataset = LookupMapping(self._names, self._record)
        Davis.opened = self

    @classmethod
    def existing(cls, root: str | os.PathLike[str] | None) -> Davis:
        """Open a root that must exist, so that a mistyped path creates no folder."""
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

    def _is_set_as_catalogued(self, subset: str) -> bool:
        """Return whether the catalogue takes precedence: a program changed it, or the root has no lists."""
        return subset in Davis.sets and (Davis.sets[subset] != SETS.get(subset) or not self._lists)

    def _subsets(self) -> list[str]:
        return list(dict.fromkeys([*self._lists, *filter(self._is_set_as_catalogued, Davis.sets)]))

    def _subset(self, subset: str) -> list[str]:
        return Davis.sets[subset] if self._is_set_as_catalogued(subset) else self._lists[subset]

    def _names(self) -> list[str]:
        return list(dict.fromkeys([*(name for names in self.sets.values() for name in names), *Davis.dataset]))

    def _record(self, sequence: str) -> SequenceRecord:
        """Return what a program wrote into the catalogue, else what the files say, else what was published."""
        known = Davis.dataset.get(sequence)
        if known is not None and (self._is_as_catalogued(sequence) or not self._mask_files(sequence)):
            return known
        return self._record_of_files(sequence)

    def _is_as_catalogued(self, sequence: str) -> bool:
        """Return whether the catalogue takes precedence: a program changed it, or no list names the sequence."""
        known = Davis.dataset.get(sequence)
        listed = any(sequence in names for names in self._lists.values())
        return known is not None and (known != RECORDS.get(sequence) or not listed)

    def _read_record(self, sequence: str) -> SequenceRecord:
        masks = self._masks(sequence)
        largest = max(_largest_id(mask) for mask in masks)
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
        """Return the path of a PNG for each frame."""
        return self._of_catalogued_frames(sequence, self._mask_files(sequence))

    def image_paths(self, sequence: str) -> list[str]:
        """Return the path of a JPEG for each frame, where there are any."""
        folder = os.path.join(self.davis_root, self.IMAGES_SUBDIR, self.RESOLUTION, sequence)
        return self._of_catalogued_frames(sequence, files(folder, ".jpg"))

    def _of_catalogued_frames(self, sequence: str, paths: list[str]) -> list[str]:
        return paths[: Davis.dataset[sequence]["num_frames"]] if self._is_as_catalogued(sequence) else paths

    def _mask_files(self, sequence: str) -> list[str]:
        return files(os.path.join(self.davis_root, self.ANNOTATIONS_SUBDIR, self.RESOLUTION, sequence), ".png")

    def scribble_paths(self, sequence: str) -> list[str]:
        """Return the path of a JSON for each set of scribbles."""
        return files(os.path.join(self.davis_root, self.SCRIBBLES_SUBDIR, sequence), ".json")

    def num_scribbles(self, sequence: str) -> int:
        """Return the number of sets of first scribbles."""
        if self._is_as_catalogued(sequence):
            return int(Davis.dataset[sequence]["num_scribbles"])
        return len(self.scribble_paths(sequence))

    def check_files(self, sequences: list[str]) -> None:
        """Raise MissingFiles if a sequence lacks masks or scribbles."""
        for sequence in sequences:
            known = Davis.dataset[sequence] if self._is_as_catalogued(sequence) else None
            for kind, paths, expected in (
                ("masks", self.annotation_paths(sequence), known.get("num_frames", 1) if known else 1),
                ("scribbles", self.scribble_paths(sequence), known.get("num_scribbles", 1) if known else 1),
            ):
                if not paths:
                    raise MissingFiles(f"{sequence}: has no {kind} below {self.davis_root}")
                if len(paths) < expected:
                    raise MissingFiles(
                        f"{sequence}: has {len(paths)} of {expected} {kind} below {self.davis_root}; download what is "
                        "missing, or list the sequence in ImageSets/2017"
                    )

    def load_scribble(self, sequence: str, scribble_idx: int) -> Scribbles:
        """Return the scribbles that a person drew first; sets are counted from 1."""
        path = os.path.join(self.davis_root, self.SCRIBBLES_SUBDIR, sequence, f"{scribble_idx:03d}.json")
        try:
            with open(path, encoding="utf-8") as file:
                scribbles = json.load(file)
        except FileNotFoundError:
            raise MissingFiles(f"{path}: there is no such file") from None
        except ValueError as error:
            raise WrongFile(f"{path}: is not JSON ({error})") from None
        if not isinstance(scribbles, dict) or not isinstance(scribbles.get("scribbles"), list):
            raise WrongFile(f'{path}: is not {{"scribbles": [[…], …], "sequence": …}}')
        if scribbles.get("sequence") != sequence:
            raise WrongFile(f"{path}: is of the sequence {scribbles.get('sequence')!r}")
        return cast("Scribbles", scribbles)

    def load_annotations(self, sequence: str, dtype: DTypeLike = int) -> Array:
        """Return all masks (frames, height, width) as an array that the caller may change."""
        return self._masks(sequence).astype(dtype)

    def _masks(self, sequence: str) -> Array:
        paths = self.annotation_paths(sequence)
        if not paths:
            raise MissingFiles(f"{sequence}: has no masks below {self.davis_root}")
        masks = _read_masks(tuple(paths))
        self._check_shape(sequence, masks)
        return masks

    def load_images(self, sequence: str, dtype: DTypeLike = np.uint8) -> Array:
        """Return all images (frames, height, width, 3)."""
        paths = self.image_paths(sequence)
        if not paths:
            raise MissingFiles(f"{sequence}: has no images below {self.davis_root}")
        images = np.stack([np.asarray(Image.open(path).convert("RGB")) for path in paths]).astype(dtype)
        self._check_shape(sequence, images)
        return images

    def _check_shape(self, sequence: str, masks: Array) -> None:
        """Raise WrongFile if the catalogue describes the sequence and has other frames or another size."""
        if self._is_as_catalogued(sequence):
            expected = shape_of(Davis.dataset[sequence])
            if masks.shape[:3] != expected:
                raise WrongFile(
                    f"{sequence}: its frames, height and width are {masks.shape[:3]}, and the catalogue says {expected}"
                )


def files(folder: str, ending: str) -> list[str]:
    """Return the sorted paths of a folder's files with an ending; none if there is no folder."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(ending)]


@lru_cache(maxsize=1)
def _read_masks(paths: tuple[str, ...]) -> Array:
    frames = [_read_mask(path) for path in paths]
    other = next((path for path, mask in zip(paths, frames, strict=True) if mask.shape != frames[0].shape), None)
    if other is not None:
        raise ValueError(f"{other}: has another size than the frames before it; all frames of a session have one")
    masks = np.stack(frames)
    masks.flags.writeable = False  # all callers share it
    return masks


def _read_mask(path: str) -> Array:
    try:
        with Image.open(path) as image:
            mask = np.asarray(image)
    except (OSError, SyntaxError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
    if mask.ndim != 2:
        raise ValueError(f"{path}: is a picture in colour, not a mask of ids")
    return mask


def _largest_id(mask: Array) -> int:
    """Return the largest id of a frame but void, which is seldom there."""
    top = int(mask.max(initial=0))
    return top if top < VOID else int(mask[mask < VOID].max(initial=0))


def root_of(davis_root: str | os.PathLike[str] | None) -> str:
    """Return the root that was named, else that of the environment, else nothing."""
    return os.path.expanduser(davis_root or os.environ.get(ROOT_VARIABLE) or "")


def lists_of(root: str) -> dict[str, list[str]]:
    """Return a root's own lists; `trainval` is made of both of its parts if there is no list of it."""
    lists: dict[str, list[str]] = {}
    if not root:
        return lists
    for path in files(os.path.join(root, "ImageSets", Davis.VERSION), ".txt"):
        with open(path, encoding="utf-8") as file:
            lists[os.path.basename(path).removesuffix(".txt")] = [line.strip() for line in file if line.strip()]
    if {"train", "val"} <= lists.keys() and "trainval" not in lists:
        lists["trainval"] = lists["train"] + lists["val"]
    return lists
