"""Video object segmentation online: a frame comes, a mask goes, and there is no way to see a later frame first."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from PIL import Image

from segjudge.datasets.frame_images import frame_images_of
from segjudge.evaluation_script import dataset_reader, main, sequence_truth
from segjudge.evaluation_script.errors import Flaw, HostError
from segjudge.evaluation_script.phase import Phase
from segjudge.evaluation_script.phase import PhaseSplit as ShownSplit
from segjudge.evaluation_script.sequence_protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.sequence_truth import Sequence
from segjudge.masks.comparison import FrameComparison, ids_of, labels_of
from segjudge.masks.run_lengths import decoded, encoded

from .tasks import ActionError, Labels, Observation, Picture, Result

#: The split that a result is told for where no phase says which.
SPLIT = "test"


@dataclass(frozen=True)
class Footage:
    """The sequences of a truth with the pictures of their frames."""

    sequences: list[Sequence]
    pictures: Mapping[str, list[str]]
    splits: dict[str, sequence_truth.Split]

    @property
    def largest(self) -> tuple[int, int]:
        """Height and width that hold every frame."""
        sizes = [block.size for one in self.sequences for block in one.blocks]
        return max(size[0] for size in sizes), max(size[1] for size in sizes)


def footage(path: str, frames: str | None = None, sequence: str | None = None, layout: str = "generic") -> Footage:
    """Truth of a packed file or a dataset, and its pictures: from `frames`, or beside the masks."""
    if not os.path.exists(path):
        raise HostError(f"{path}: this truth is not there")
    if os.path.isfile(path) and sequence_truth.is_packed(path):
        splits = sequence_truth.read(path).splits
    else:
        splits = dataset_reader.read(path, dataset_reader.LAYOUTS[layout]).splits
    found = [one for split in splits.values() for one in split.sequences if sequence in (None, one.name)]
    if not found:
        raise HostError(f"{path}: has no sequence" + (f" {sequence!r}" if sequence else ""))
    pictures = {one.name: frame_images_of(frames or path, one) for one in found}
    for one in found:
        if not pictures[one.name]:
            raise HostError(
                f"{frames or path}: has no picture for every frame of {one.name} (e.g. {one.frames[0]}.jpg)"
            )
    return Footage(found, pictures, splits)


def phase_of(footage: Footage, protocol: str, phase: str | None = None) -> Phase:
    """By what a submission is scored: a phase of the challenge, or a protocol over everything there is."""
    if phase is not None:
        return main.phase_named(phase)
    if protocol not in SEQUENCE_PROTOCOLS:
        raise HostError(f"there is no protocol {protocol!r}, only {', '.join(SEQUENCE_PROTOCOLS)}")
    metrics = SEQUENCE_PROTOCOLS[protocol].metrics
    return Phase("environment", "", tuple(ShownSplit(name, protocol, metrics) for name in footage.splits))


class VideoTask:
    """Frame by frame through all sequences; what was answered is scored as a submission of the same masks."""

    def __init__(self, footage: Footage, phase: Phase) -> None:
        self._footage, self._phase = footage, phase
        #: Splits of the result that participants are not shown.
        self.hidden = phase.hidden
        self._answers: dict[str, dict[str, list[Any]]] = {}
        self._views: Iterator[_View] = iter(())
        self._now: _View | None = None

    def space(self) -> dict[str, Any]:
        """A mask of the frame's size."""
        return {"type": "labels", "of": "the frame that was shown", "dtype": "uint8"}

    def begin(self) -> Observation:
        """The first frame of the first sequence."""
        self._answers, self._views = {}, self._walk()
        self._now = next(self._views)
        return self._now.shown()

    def act(self, action: Any) -> Observation:
        """The next frame, for the mask of this one: `Labels`, or an array of ids."""
        view = self._now
        if view is None:
            raise ActionError("the episode is over; reset begins another")
        self._note(view, _mask_of(action, view.size))
        self._now = next(self._views, None)
        return Observation({}, done=True) if self._now is None else self._now.shown()

    def result(self) -> Result:
        """The score of all masks, by the very function that scores a submission."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "submission.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(self._answers, file)
            answer = main.score_phase(self._phase, self._scored(), path, lambda _text: None, time.monotonic())
        result: Result = answer["result"]
        return result

    def close(self) -> None:
        """Nothing is held."""

    def labels(self) -> Any:
        """The truth of this frame, for whoever may see it."""
        return self._now.truth() if self._now is not None else None

    def _scored(self) -> dict[str, sequence_truth.Split]:
        """The splits, of the sequences that were shown alone."""
        shown = {one.name for one in self._footage.sequences}
        return {
            name: sequence_truth.Split(
                [one for one in split.sequences if one.name in shown],
                split.layout,
                split.tells_unseen,
                split.unseen_categories,
            )
            for name, split in self._footage.splits.items()
        }

    def _note(self, view: _View, mask: Any) -> None:
        """Keep the shortest way to write it, whatever way an agent took."""
        kept = self._answers.setdefault(view.one.name, {})
        numbers = {number: label for label, number in ids_of(view.one).items()}
        for number, counts in encoded(mask).items():
            label = numbers.get(number, str(number))
            if label not in kept:
                kept[label] = [None] * len(view.one.frames)
            kept[label][view.place] = {"size": list(view.size), "counts": counts}
        if not kept:  # nothing was ever seen: the sequence is there all the same
            kept[next(iter(numbers.values()), "1")] = [None] * len(view.one.frames)

    def _walk(self) -> Iterator[_View]:
        for one in self._footage.sequences:
            known: set[int] = set()
            ids = ids_of(one)
            for number, block in enumerate(one.blocks):
                masks = labels_of(one.read_block(number), block, ids)
                for place in range(block.start, block.stop):
                    mask = masks[place - block.start]
                    new = sorted({*np.unique(mask).tolist()} & {*ids.values()} - known)
                    known.update(new)
                    yield _View(one, place, block.size, self._footage.pictures[one.name][place], mask, new)


@dataclass(frozen=True)
class _View:
    """A frame whose turn it is."""

    one: Sequence
    place: int
    size: tuple[int, int]
    picture: str
    mask: Any = field(repr=False)
    #: Objects that are seen for the first time; their masks are given.
    new: list[int]

    @property
    def where(self) -> str:
        return f"{self.one.name}/{self.one.frames[self.place]}"

    def first(self) -> Any:
        """The masks of objects that are new; elsewhere 0."""
        return np.where(np.isin(self.mask, self.new), self.mask, 0).astype(np.uint8)

    def truth(self) -> Any:
        return self.mask

    def shown(self) -> Observation:
        with open(self.picture, "rb") as file:
            picture = Picture(file.read())
        values = {
            "frame": picture,
            "size": list(self.size),
            "first_mask": Labels(self.size, encoded(self.first())),
            "new_sequence": int(self.place == 0),
        }
        return Observation(values, where=self.where, sizes=[self.size])


def _mask_of(action: Any, size: tuple[int, int]) -> Any:
    """The ids of a frame: run lengths, or an array, alone or in the corner of a padded one."""
    if isinstance(action, Labels):
        if action.size != size:
            raise ActionError(f"the mask is {action.size}, and the frame {size} (height, width)")
        try:
            return decoded(action.objects.items(), size)
        except Flaw as flaw:
            raise ActionError(f"the mask {flaw.found}. {flaw.remedy}") from None
    # Arrays alone: of a list of texts NumPy makes a table as wide as the longest.
    if not isinstance(action, np.ndarray) or action.ndim != 2 or action.dtype.kind not in "iub":
        raise ActionError(f"the mask is not an array of whole numbers in two dimensions but {_kind(action)}")
    if action.shape[0] < size[0] or action.shape[1] < size[1]:
        raise ActionError(f"the mask is {action.shape}, smaller than the frame {size} (height, width)")
    part = action[: size[0], : size[1]]
    if part.size and (part.min() < 0 or part.max() > 255):
        raise ActionError("the mask has ids that are not from 0 to 255")
    return part.astype(np.uint8)


def _kind(action: Any) -> str:
    return f"{action.dtype} {action.shape}" if isinstance(action, np.ndarray) else type(action).__name__


class VideoObjectSegmentation(gymnasium.Env[dict[str, Any], Any]):
    """A padded frame, its size, the masks of objects that are new, and whether a sequence begins.

    The reward is 0 until the episode ends, and then the first number of the result: a score for each frame would tell
    an agent the truth.  With `reward=True`, in a notebook, each step is worth its frame's J&F.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it

    def __init__(  # noqa: PLR0913 - options by name
        self,
        truth: str,
        frames: str | None = None,
        sequence: str | None = None,
        *,
        layout: str = "generic",
        protocol: str = "davis2017",
        phase: str | None = None,
        reward: bool = False,
        render_mode: str | None = None,
    ) -> None:
        del render_mode
        shown = footage(truth, frames, sequence, layout)
        self.task = VideoTask(shown, phase_of(shown, protocol, phase))
        self._reward = reward
        height, width = self._padded = shown.largest
        self.observation_space = spaces.Dict(
            {
                "frame": spaces.Box(0, 255, (height, width, 3), np.uint8),
                "size": spaces.Box(np.array([1, 1]), np.array([height, width]), dtype=np.int64),
                "first_mask": spaces.Box(0, 255, (height, width), np.uint8),
                "new_sequence": spaces.Discrete(2),
            }
        )
        self.action_space = spaces.Box(0, 255, (height, width), np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed, options=options)
        shown = self.task.begin()
        return self._observation(shown), {"where": shown.where}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        told = self.task.labels() if self._reward else None
        shown = self.task.act(action)
        reward = likeness(told, np.asarray(action)) if told is not None else 0.0
        if not shown.done:
            return self._observation(shown), reward, False, False, {"where": shown.where}
        result = self.task.result()
        first = float(next(iter(next(iter(result[0].values())).values())))
        return self._nothing(), reward if self._reward else first, True, False, {"result": result}

    def _observation(self, shown: Observation) -> dict[str, Any]:
        given = shown.values["first_mask"]
        found = self._nothing()
        height, width = shown.values["size"]
        found["frame"][:height, :width] = decoded_picture(shown.values["frame"])
        found["first_mask"][:height, :width] = decoded(given.objects.items(), given.size)
        found["size"][:] = (height, width)
        found["new_sequence"] = np.int64(shown.values["new_sequence"])
        return found

    def _nothing(self) -> dict[str, Any]:
        """What is left to see when all frames were shown."""
        height, width = self._padded
        return {
            "frame": np.zeros((height, width, 3), np.uint8),
            "size": np.ones(2, np.int64),
            "first_mask": np.zeros((height, width), np.uint8),
            "new_sequence": np.int64(0),
        }


def decoded_picture(picture: Picture) -> Any:
    """Its pixels, (height, width, 3)."""
    import io

    with Image.open(io.BytesIO(picture.data)) as opened:
        return np.asarray(opened.convert("RGB"))


def likeness(mask: Any, action: Any) -> float:
    """J&F of one frame, the mean over the objects that it shows; 1 where it shows none and none was seen."""
    ids = [int(one) for one in np.unique(mask) if 0 < one < 255]
    part = action[: mask.shape[0], : mask.shape[1]].astype(np.uint8)
    if not ids:
        return float(not part.any())
    region, boundary = FrameComparison(mask[None], ids).similarities(part[None])
    return float((region.mean() + boundary.mean()) / 2)
