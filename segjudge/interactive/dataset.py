"""The DAVIS dataset in its folders (masks, scribbles, images, lists), and the interface of a session's datasets."""

from __future__ import annotations

import copy
import csv
import json
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike
from PIL import Image

from segjudge.evaluation_script.files.problems import HostError, quantity
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.sequences.comparison import VOID
from segjudge.system.python310 import NotRequired

from .scribbles import Scribbles

_ROOT_VARIABLE = "DATASET_DAVIS"
ValueT = TypeVar("ValueT")


class _MissingFiles(FileNotFoundError, AssertionError):
    """Raised if files of a sequence are missing; a subclass of both errors that programs catch."""


class SessionInputError(HostError, ValueError):
    """Raised for files and settings that make a session impossible; a subclass of ValueError."""


class _WrongFile(SessionInputError, AssertionError):
    """Raised for wrong file content; a subclass of both errors that programs catch."""


class SequenceRecord(TypedDict):
    """The record of a sequence; its image size is [width, height]."""

    name: str
    num_frames: int
    num_objects: int
    image_size: list[int]
    num_scribbles: NotRequired[int]
    set: NotRequired[str]
    year: NotRequired[int]
    attributes: NotRequired[list[str]]
    eval_t: NotRequired[bool]


class InteractiveDataset(Protocol):
    """Sequences with masks, first scribbles and, where there are any, images."""

    def __hash__(self) -> int: ...

    @property
    def dataset(self) -> Mapping[str, SequenceRecord]:
        """Return the records by sequence, reading masks if necessary."""

    def sequences(self, subset: str) -> list[str]:
        """Return the names of a subset in their order; raises ValueError for an unknown subset."""

    def check_files(self, sequences: list[str]) -> None:
        """Raise FileNotFoundError, naming the files that are missing."""

    def num_scribbles(self, sequence: str) -> int:
        """Return the number of sets of first scribbles."""

    def load_scribble(self, sequence: str, scribble_idx: int) -> Scribbles:
        """Load a set of first scribbles; sets are counted from 1."""

    def load_annotations(self, sequence: str, dtype: DTypeLike = int) -> Array:
        """Load masks (frames, height, width) of ids from 1 on; 255 is void."""

    def image_paths(self, sequence: str) -> list[str]:
        """Return the path of each frame's image; empty without images."""


class LookupMapping(Mapping[str, ValueT]):
    """A mapping whose values are looked up when they are read."""

    def __init__(self, names: Callable[[], Collection[str]], look_up: Callable[[str], ValueT]) -> None:
        self._names, self._look_up = names, look_up

    def __getitem__(self, name: str) -> ValueT:
        if name not in self._names():
            raise KeyError(name)
        return self._look_up(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


def shape_of(record: SequenceRecord) -> tuple[int, int, int]:
    """Return the shape (frames, height, width) of a sequence's masks."""
    width, height = record["image_size"]
    return record["num_frames"], height, width


def load_first_scribbles(dataset: InteractiveDataset, sequence: str, scribble_idx: int) -> Scribbles:
    """Load first scribbles that have a list for each frame of the sequence; raises _WrongFile."""
    scribbles = dataset.load_scribble(sequence, scribble_idx)
    frames = dataset.dataset[sequence]["num_frames"]
    if len(scribbles["scribbles"]) != frames:
        raise _WrongFile(
            f"{sequence}, scribbles {scribble_idx}: has scribbles for {quantity(len(scribbles['scribbles']), 'frame')},"
            f" and {sequence} has {frames}"
        )
    return scribbles


def _read_catalogue() -> tuple[dict[str, list[str]], dict[str, SequenceRecord]]:
    table = resources.files(__package__) / "davis_sequences.csv"
    with table.open(encoding="utf-8") as file:
        records = {row["sequence"]: _record_of(row) for row in csv.DictReader(file)}
    sets: dict[str, list[str]] = {}
    for name, record in records.items():
        sets.setdefault(record["set"], []).append(name)
    sets["trainval"] = sets["train"] + sets["val"]
    return sets, records


def _record_of(row: dict[str, str]) -> SequenceRecord:
    return {
        "name": row["sequence"],
        "attributes": row["attributes"].split(),
        "eval_t": row["eval_t"] == "True",
        "image_size": [int(row["width"]), int(row["height"])],
        "num_frames": int(row["frames"]),
        "num_objects": int(row["objects"]),
        "num_scribbles": int(row["scribbles"]),
        "set": row["set"],
        "year": int(row["year"]),
    }


#: Subset → sequences, and sequence → record.
SETS, RECORDS = _read_catalogue()


class _Catalogue(dict[str, ValueT], Generic[ValueT]):
    """The published catalogue, which programs may change.  Other names come from the last opened root."""

    def __init__(self, published_values: dict[str, ValueT], look_up: Callable[[Davis, str], ValueT]) -> None:
        super().__init__(copy.deepcopy(published_values))
        self._look_up = look_up

    def __missing__(self, name: str) -> ValueT:
        if Davis.opened is None:
            raise KeyError(name)
        return self._look_up(Davis.opened, name)


class Davis:
    """A root with `Annotations/480p`, `Scribbles` and, for `load_images`, `JPEGImages/480p`.

    `Davis.sets` and `Davis.dataset` hold the published subsets and sequences, and may be changed; changed entries take
    precedence over the root. Otherwise the root's lists (`ImageSets/2017`) and masks define both; a root without lists
    counts as the published dataset. An instance's `sets` and `dataset` are the result. A missing root is created empty;
    nothing is downloaded.
    """

    VERSION = "2017"
    IMAGES_SUBDIR, ANNOTATIONS_SUBDIR, SCRIBBLES_SUBDIR = "JPEGImages", "Annotations", "Scribbles"
    RESOLUTION = "480p"
    sets: Mapping[str, list[str]] = _Catalogue(SETS, lambda davis, subset: davis.sets[subset])
    dataset: Mapping[str, SequenceRecord] = _Catalogue(RECORDS, lambda davis, name: davis.dataset[name])
    #: Years in which sequences were published.
    years: ClassVar[list[int]] = [2016, 2017]
    #: The last opened root.
    opened: ClassVar[Davis | None] = None

    def __init__(self, davis_root: str | os.PathLike[str] | None = None) -> None:
        root = root_of(davis_root)
        if not root:
            raise SessionInputError(f"davis_root is missing: pass it, or set the variable {_ROOT_VARIABLE}")
        self.davis_root = os.path.abspath(root)
        if not os.path.isdir(self.davis_root):
            warnings.warn(f"{self.davis_root}: there is no such folder; an empty one is created", stacklevel=2)
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
        if subset not in self.sets:
            raise SessionInputError(f"Subset must be a valid subset: {list(self.sets)}")
        names = self.sets[subset]
        twice = sorted({name for name in names if names.count(name) > 1})
        if not names or twice:
            path = os.path.join(self.davis_root, "ImageSets", self.VERSION, f"{subset}.txt")
            raise SessionInputError(f"{path}: names {twice[0]} twice" if twice else f"{path}: names no sequence")
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
        """Return a record: from a program's change, else from the files, else from the catalogue."""
        record = Davis.dataset.get(sequence)
        if record is not None and (self._is_as_catalogued(sequence) or not self._list_masks(sequence)):
            return record
        return self._record_of_files(sequence)

    def _is_as_catalogued(self, sequence: str) -> bool:
        """Return whether the catalogue takes precedence: a program changed it, or no list names the sequence."""
        record = Davis.dataset.get(sequence)
        is_listed = any(sequence in names for names in self._lists.values())
        return record is not None and (record != RECORDS.get(sequence) or not is_listed)

    def _read_record(self, sequence: str) -> SequenceRecord:
        masks = self._load_masks(sequence)
        largest = max(_find_largest_id(mask) for mask in masks)
        if not largest:
            raise SessionInputError(f"{sequence}: its masks in {self.davis_root} show no object")
        return {
            "name": sequence,
            "set": next(name for name, names in self.sets.items() if sequence in names),
            "num_frames": len(masks),
            "num_objects": largest,
            "num_scribbles": len(self.scribble_paths(sequence)),
            "image_size": [masks.shape[2], masks.shape[1]],
        }

    def annotation_paths(self, sequence: str) -> list[str]:
        return self._of_catalogued_frames(sequence, self._list_masks(sequence))

    def image_paths(self, sequence: str) -> list[str]:
        folder = os.path.join(self.davis_root, self.IMAGES_SUBDIR, self.RESOLUTION, sequence)
        return self._of_catalogued_frames(sequence, list_files(folder, ".jpg"))

    def _of_catalogued_frames(self, sequence: str, paths: list[str]) -> list[str]:
        return paths[: Davis.dataset[sequence]["num_frames"]] if self._is_as_catalogued(sequence) else paths

    def _list_masks(self, sequence: str) -> list[str]:
        return list_files(os.path.join(self.davis_root, self.ANNOTATIONS_SUBDIR, self.RESOLUTION, sequence), ".png")

    def scribble_paths(self, sequence: str) -> list[str]:
        return list_files(os.path.join(self.davis_root, self.SCRIBBLES_SUBDIR, sequence), ".json")

    def num_scribbles(self, sequence: str) -> int:
        if self._is_as_catalogued(sequence):
            return int(Davis.dataset[sequence]["num_scribbles"])
        return len(self.scribble_paths(sequence))

    def check_files(self, sequences: list[str]) -> None:
        """Raise _MissingFiles if the root is not DAVIS', or a sequence lacks masks or scribbles."""
        if not os.path.isdir(os.path.join(self.davis_root, self.ANNOTATIONS_SUBDIR)):
            raise _MissingFiles(
                f"{self.davis_root}: is not DAVIS' root: it has no folder {self.ANNOTATIONS_SUBDIR}; name the folder "
                "that holds Annotations, ImageSets and Scribbles, or the layout of another dataset"
            )
        for sequence in sequences:
            record = Davis.dataset[sequence] if self._is_as_catalogued(sequence) else None
            for kind, paths, expected in (
                ("masks", self.annotation_paths(sequence), record["num_frames"] if record else 1),
                ("scribbles", self.scribble_paths(sequence), record.get("num_scribbles", 1) if record else 1),
            ):
                if not paths:
                    raise _MissingFiles(f"{sequence}: has no {kind} below {self.davis_root}")
                if len(paths) < expected:
                    raise _MissingFiles(
                        f"{sequence}: has {len(paths)} of {expected} {kind} in {self.davis_root}; "
                        "download the missing ones, or list the sequence in ImageSets/2017"
                    )

    def load_scribble(self, sequence: str, scribble_idx: int) -> Scribbles:
        path = os.path.join(self.davis_root, self.SCRIBBLES_SUBDIR, sequence, f"{scribble_idx:03d}.json")
        try:
            with open(path, encoding="utf-8") as file:
                scribbles = json.load(file)
        except FileNotFoundError:
            raise _MissingFiles(f"{path}: there is no such file") from None
        except ValueError as error:
            raise _WrongFile(f"{path}: is not JSON ({error})") from None
        if not isinstance(scribbles, dict) or not isinstance(scribbles.get("scribbles"), list):
            raise _WrongFile(f'{path}: is not {{"scribbles": [[…], …], "sequence": …}}')
        if scribbles.get("sequence") != sequence:
            raise _WrongFile(f"{path}: belongs to the sequence {scribbles.get('sequence')!r}")
        return cast("Scribbles", scribbles)

    def load_annotations(self, sequence: str, dtype: DTypeLike = int) -> Array:
        """Load all masks (frames, height, width) as an array that the caller may change."""
        return self._load_masks(sequence).astype(dtype)

    def _load_masks(self, sequence: str) -> Array:
        paths = self.annotation_paths(sequence)
        if not paths:
            raise _MissingFiles(f"{sequence}: has no masks in {self.davis_root}")
        masks = _read_masks(tuple(paths))
        self._check_shape(sequence, masks)
        return masks

    def load_images(self, sequence: str, dtype: DTypeLike = np.uint8) -> Array:
        """Load all images (frames, height, width, 3)."""
        paths = self.image_paths(sequence)
        if not paths:
            raise _MissingFiles(f"{sequence}: has no images in {self.davis_root}")
        images = np.stack([np.asarray(Image.open(path).convert("RGB")) for path in paths]).astype(dtype)
        self._check_shape(sequence, images)
        return images

    def _check_shape(self, sequence: str, masks: Array) -> None:
        """Raise _WrongFile if the catalogue describes the sequence and has other frames or another size."""
        if self._is_as_catalogued(sequence):
            expected = shape_of(Davis.dataset[sequence])
            if masks.shape[:3] != expected:
                raise _WrongFile(
                    f"{sequence}: its frames, height and width are {masks.shape[:3]}, but the catalogue says {expected}"
                )


def list_files(folder: str, ending: str) -> list[str]:
    """Return the sorted paths of a folder's files with an ending; empty if the folder does not exist."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(ending)]


@lru_cache(maxsize=1)
def _read_masks(paths: tuple[str, ...]) -> Array:
    frames = [_read_mask(path) for path in paths]
    odd_path = next((path for path, mask in zip(paths, frames, strict=True) if mask.shape != frames[0].shape), None)
    if odd_path is not None:
        raise SessionInputError(
            f"{odd_path}: differs in size from earlier frames; all frames of a session need the same size"
        )
    masks = np.stack(frames)
    masks.flags.writeable = False  # all callers share it
    return masks


def _read_mask(path: str) -> Array:
    try:
        with Image.open(path) as image:
            mask = np.asarray(image)
    except (OSError, SyntaxError) as error:
        raise SessionInputError(f"{path}: cannot be read ({error})") from None
    if mask.ndim != 2:
        raise SessionInputError(f"{path}: is a colour picture, not a mask of ids")
    return mask


def _find_largest_id(mask: Array) -> int:
    """Return the largest id of a frame except void."""
    top = int(mask.max(initial=0))
    return top if top < VOID else int(mask[mask < VOID].max(initial=0))


def root_of(davis_root: str | os.PathLike[str] | None) -> str:
    """Return the named root, else the environment's, else ""."""
    return os.path.expanduser(davis_root or os.environ.get(_ROOT_VARIABLE) or "")


def lists_of(root: str) -> dict[str, list[str]]:
    """Read a root's own lists; without a list, `trainval` combines both of its parts."""
    lists: dict[str, list[str]] = {}
    if not root:
        return lists
    for path in list_files(os.path.join(root, "ImageSets", Davis.VERSION), ".txt"):
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise SessionInputError(f"{path}: is not UTF-8 ({error})") from None
        lists[os.path.basename(path).removesuffix(".txt")] = [line.strip() for line in lines if line.strip()]
    if {"train", "val"} <= lists.keys() and "trainval" not in lists:
        lists["trainval"] = lists["train"] + lists["val"]
    return lists
