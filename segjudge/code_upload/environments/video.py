"""Video object segmentation online: an agent sees a frame only after it has segmented the frames before."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from segjudge.code_upload.messages import Labels, Picture
from segjudge.evaluation_script import main
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.families.sequences.truth import Sequence
from segjudge.evaluation_script.files.problems import Flaw, HostError
from segjudge.evaluation_script.scoring.answer import build_answer
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.evaluation_script.scoring.scorer import phase_scorers
from segjudge.families.sequences.comparison import FrameComparison, ids_of, labels_of
from segjudge.families.sequences.published import frame_images_of, open_sequences
from segjudge.families.truths import TruthSource
from segjudge.masks.run_lengths import decode_labels, encode_labels
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.static import SequenceRuns

from .tasks import ActionError, Image, Observation, Result, StepResult, TaskEnvironment, read_picture


@dataclass(frozen=True)
class _Footage:
    """The sequences of a truth with the pictures of their frames."""

    sequences: list[Sequence]
    pictures: Mapping[str, list[str]]
    splits: Mapping[str, sequence_truth.Split]

    @property
    def largest_size(self) -> tuple[int, int]:
        """Return the height and width that hold every frame."""
        sizes = [block.size for sequence in self.sequences for block in sequence.blocks]
        return max(size[0] for size in sizes), max(size[1] for size in sizes)


def _open_footage(
    path: str, frames: str | None = None, sequence: str | None = None, layout: str = "generic"
) -> _Footage:
    """Return a packed or published truth with its pictures, from `frames` or beside the masks."""
    if not os.path.exists(path):
        raise HostError(f"{path}: there is no such truth")
    splits = open_sequences(TruthSource(path, layout)).splits
    sequences = [entry for split in splits.values() for entry in split.sequences if sequence in (None, entry.name)]
    if not sequences:
        raise HostError(f"{path}: has no sequence" + (f" {sequence!r}" if sequence else ""))
    pictures = {entry.name: frame_images_of(frames or path, entry.name, entry.frames) for entry in sequences}
    for entry in sequences:
        if not pictures[entry.name]:
            raise HostError(
                f"{frames or path}: lacks pictures of {entry.name}, "
                f"which needs one per frame (such as {entry.frames[0]}.jpg)"
            )
    return _Footage(sequences, pictures, splits)


def _choose_phase(footage: _Footage, protocol: str, phase: str | None = None, bundle: str = "") -> Phase:
    """Return the phase that scores: one of a bundle, or a protocol over all splits."""
    if phase is not None:
        return find_bundle(bundle).phase(phase) if bundle else main.phase_named(phase)
    if protocol not in SEQUENCE_PROTOCOLS:
        raise HostError(f"there is no protocol {protocol!r}, only {', '.join(SEQUENCE_PROTOCOLS)}")
    metrics = SEQUENCE_PROTOCOLS[protocol].metrics
    return Phase("environment", "", tuple(PhaseSplit(name, protocol, metrics) for name in footage.splits))


class _VideoTask:
    """All sequences, frame by frame; the answers are scored as a submission of the same masks."""

    def __init__(self, footage: _Footage, phase: Phase) -> None:
        self._footage, self._phase = footage, phase
        #: The splits that participants do not see.
        self.hidden = phase.hidden
        self._answers: dict[str, SequenceRuns] = {}
        self._views: Iterator[_View] = iter(())
        self._view: _View | None = None

    def space(self) -> dict[str, Any]:
        return {"type": "labels", "of": "the frame that was shown", "dtype": "uint8"}

    def begin(self) -> Observation:
        self._answers, self._views = {}, self._list_views()
        self._view = next(self._views)
        return self._view.observation()

    def act(self, action: object) -> Observation:
        """Take the mask of this frame, `Labels` or an array of ids, and return the next frame."""
        view = self._view
        if view is None:
            raise ActionError("the episode is over; call reset to begin another")
        self._note(view, _mask_of(action, view.size))
        self._view = next(self._views, None)
        return Observation({}, done=True) if self._view is None else self._view.observation()

    def result(self) -> Result:
        """Return the scores of all masks, by the function that scores submissions."""
        with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
            path = os.path.join(folder, "submission.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(self._answers, file)
            truths = self._choose_truths()
            scorers = phase_scorers(self._phase, truths)
            result: Result = build_answer(self._phase, [scorer.score(path, examines=False) for scorer in scorers], {})[
                "result"
            ]
        return result

    def close(self) -> None:
        """Do nothing: no file is held open."""

    def truth(self) -> Image | None:
        """Return the truth of this frame; None after the last."""
        return self._view.mask if self._view is not None else None

    def _choose_truths(self) -> dict[str, sequence_truth.Split]:
        names = {sequence.name for sequence in self._footage.sequences}
        return {
            name: replace(split, sequences=[sequence for sequence in split.sequences if sequence.name in names])
            for name, split in self._footage.splits.items()
        }

    def _note(self, view: _View, mask: Image) -> None:
        """Store a mask as canonical run lengths, from any form that agents send."""
        runs = self._answers.setdefault(view.sequence.name, {})
        numbers = {number: label for label, number in ids_of(view.sequence).items()}
        for number, counts in encode_labels(mask).items():
            label = numbers.get(number, str(number))
            if label not in runs:
                runs[label] = [None] * len(view.sequence.frames)
            runs[label][view.index] = {"size": list(view.size), "counts": counts}
        if not runs:  # no object was ever visible, but the sequence exists
            runs[next(iter(numbers.values()), "1")] = [None] * len(view.sequence.frames)

    def _list_views(self) -> Iterator[_View]:
        """Yield the frames of all sequences in order, with the objects that each shows first."""
        for sequence in self._footage.sequences:
            seen: set[int] = set()
            ids = ids_of(sequence)
            for number, block in enumerate(sequence.blocks):
                masks = labels_of(sequence.read_block(number), block, ids)
                for index in range(block.start, block.stop):
                    mask = masks[index - block.start]
                    new_objects = sorted({*np.unique(mask).tolist()} & {*ids.values()} - seen)
                    seen.update(new_objects)
                    picture = self._footage.pictures[sequence.name][index]
                    yield _View(sequence, index, block.size, picture, mask, new_objects)


@dataclass(frozen=True)
class _View:
    """A frame of a sequence, with its truth."""

    sequence: Sequence
    index: int
    size: tuple[int, int]
    picture: str
    mask: Image = field(repr=False)
    #: The objects that first appear in this frame; their masks are given.
    new_objects: list[int]

    @property
    def position(self) -> str:
        return f"{self.sequence.name}/{self.sequence.frames[self.index]}"

    def observation(self) -> Observation:
        first_mask = np.where(np.isin(self.mask, self.new_objects), self.mask, 0)
        values = {
            "frame": Picture(Path(self.picture).read_bytes()),
            "size": list(self.size),
            "first_mask": Labels(self.size, encode_labels(first_mask)),
            "new_sequence": int(self.index == 0),
        }
        return Observation(values, position=self.position, sizes=[self.size])


def _mask_of(action: object, size: tuple[int, int]) -> Image:
    """Return the ids of a frame from run lengths or a (padded) array; raises ActionError."""
    if isinstance(action, Labels):
        if action.size != size:
            raise ActionError(f"the mask is {action.size}, and the frame {size} (height, width)")
        try:
            labels: Image = decode_labels(action.objects.items(), size)
        except Flaw as flaw:
            raise ActionError(f"the mask {flaw.fault}. {flaw.remedy}") from None
        return labels
    # Only arrays: from a list of strings, NumPy makes a table as wide as the longest.
    if not isinstance(action, np.ndarray) or action.ndim != 2 or action.dtype.kind not in "iub":
        kind = f"{action.dtype} {action.shape}" if isinstance(action, np.ndarray) else type(action).__name__
        raise ActionError(f"the mask is not a two-dimensional array of whole numbers but {kind}")
    if action.shape[0] < size[0] or action.shape[1] < size[1]:
        raise ActionError(f"the mask is {action.shape}, smaller than the frame {size} (height, width)")
    mask = action[: size[0], : size[1]]
    if mask.size and (mask.min() < 0 or mask.max() > 255):
        raise ActionError("the mask has ids outside 0 to 255")
    return mask.astype(np.uint8)


class VideoObjectSegmentation(TaskEnvironment):
    """An environment that shows a padded frame, its size, the masks of new objects, and whether a sequence begins.

    Per-frame scores would reveal the truth; with `reward=True`, each step's reward is its frame's J&F.
    """

    task: _VideoTask

    def __init__(  # noqa: PLR0913 - options by name
        self,
        truth: str,
        frames: str | None = None,
        sequence: str | None = None,
        *,
        layout: str = "generic",
        protocol: str = "davis2017",
        phase: str | None = None,
        bundle: str = "",
        reward: bool = False,
        render_mode: str | None = None,
    ) -> None:
        del render_mode
        footage = _open_footage(truth, frames, sequence, layout)
        task = _VideoTask(footage, _choose_phase(footage, protocol, phase, bundle))
        self.action_space = spaces.Box(0, 255, footage.largest_size, np.uint8)
        picture = spaces.Box(0, 255, (*footage.largest_size, 3), np.uint8)
        super().__init__(task, footage.largest_size, {"frame": picture, "first_mask": self.action_space}, reward=reward)

    def step(self, action: Image) -> StepResult:
        truth_mask = self.task.truth() if self._reward else None
        observation = self.task.act(action)
        return self._step_to(observation, 0.0 if truth_mask is None else _similarity(truth_mask, np.asarray(action)))

    def _pad(self, values: dict[str, Any]) -> dict[str, Any]:
        padded = super()._pad(values)
        (height, width), first_mask = values["size"], values["first_mask"]
        padded["frame"][:height, :width] = read_picture(values["frame"])
        padded["first_mask"][:height, :width] = decode_labels(first_mask.objects.items(), first_mask.size)
        return padded


def _similarity(mask: Image, action: Image) -> float:
    """Return the J&F of one frame, averaged over objects; 1 if both masks are empty."""
    ids = [int(number) for number in np.unique(mask) if 0 < number < 255]
    prediction = action[: mask.shape[0], : mask.shape[1]].astype(np.uint8)
    if not ids:
        return float(not prediction.any())
    region, boundary = FrameComparison(mask[None], ids).similarities(prediction[None])
    return float((region.mean() + boundary.mean()) / 2)
