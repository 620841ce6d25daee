"""The interface of datasets that a session uses."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NotRequired, Protocol, TypedDict, TypeVar

from numpy.typing import DTypeLike

from segjudge.evaluation_script.masks.stack import Array
from segjudge.interactive.utils.scribbles import Scribbles

ValueT = TypeVar("ValueT")


class MissingFiles(FileNotFoundError, AssertionError):
    """Raised when files of a sequence are missing; a subclass of both errors that programs catch."""


class WrongFile(ValueError, AssertionError):
    """Raised when a file's content is wrong; a subclass of both errors that programs catch."""


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
        """Sequence → record; it may have to read the masks."""

    def sequences(self, subset: str) -> list[str]:
        """Return the names of a subset in their order; raises ValueError for an unknown subset."""

    def check_files(self, sequences: list[str]) -> None:
        """Raise FileNotFoundError, naming the files that are missing."""

    def num_scribbles(self, sequence: str) -> int:
        """Return the number of sets of first scribbles."""

    def load_scribble(self, sequence: str, scribble_idx: int) -> Scribbles:
        """Return a set of first scribbles; sets are counted from 1."""

    def load_annotations(self, sequence: str, dtype: DTypeLike = int) -> Array:
        """Return masks (frames, height, width) of ids from 1 on; 255 is void."""

    def image_paths(self, sequence: str) -> list[str]:
        """Return the path of an image for each frame, or none."""


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


def first_scribbles(dataset: InteractiveDataset, sequence: str, scribble_idx: int) -> Scribbles:
    """Return first scribbles that have a list for each frame of the sequence; raises WrongFile."""
    scribbles = dataset.load_scribble(sequence, scribble_idx)
    frames = dataset.dataset[sequence]["num_frames"]
    if len(scribbles["scribbles"]) != frames:
        raise WrongFile(
            f"{sequence}, scribbles {scribble_idx}: has scribbles for {len(scribbles['scribbles'])} frames, and "
            f"{sequence} has {frames}"
        )
    return scribbles
