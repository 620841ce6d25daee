"""Video object segmentation online: an agent sees a frame only after it has segmented the frames before."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.families.sequences.truth import Sequence
from segjudge.evaluation_script.files.problems import Flaw
from segjudge.evaluation_script.scoring.answer import build_answer
from segjudge.evaluation_script.scoring.phase import Phase
from segjudge.evaluation_script.scoring.scorer import phase_scorer
from segjudge.masks.comparison import FrameComparison, ids_of, labels_of
from segjudge.masks.run_lengths import decoded, encoded
from segjudge.static import SequenceRuns

from .footage import Footage, Image, decoded_picture, footage, phase_of
from .tasks import ActionError, Labels, Observation, Picture, Result, Stepped, TaskEnvironment

#: The split of a result where no phase names one.
SPLIT = "test"


class VideoTask:
    """All sequences, frame by frame; the answers are scored as a submission of the same masks."""

    def __init__(self, footage: Footage, phase: Phase) -> None:
        self._footage, self._phase = footage, phase
        #: Splits of the result that participants are not shown.
        self.hidden = phase.hidden
        self._answers: dict[str, SequenceRuns] = {}
        self._views: Iterator[_View] = iter(())
        self._now: _View | None = None

    def space(self) -> dict[str, Any]:
        """Return the space of masks."""
        return {"type": "labels", "of": "the frame that was shown", "dtype": "uint8"}

    def begin(self) -> Observation:
        """Return the first frame of the first sequence."""
        self._answers, self._views = {}, self._walk()
        self._now = next(self._views)
        return self._now.observation()

    def act(self, action: object) -> Observation:
        """Take the mask of this frame, `Labels` or an array of ids, and return the next frame."""
        view = self._now
        if view is None:
            raise ActionError("the episode is over; reset begins another")
        self._note(view, _mask_of(action, view.size))
        self._now = next(self._views, None)
        return Observation({}, done=True) if self._now is None else self._now.observation()

    def result(self) -> Result:
        """Return the scores of all masks, by the function that scores a submission."""
        with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
            path = os.path.join(folder, "submission.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(self._answers, file)
            truths = self._shown_truths()
            scorers = [phase_scorer(self._phase, split, truths) for split in self._phase.splits]
            result: Result = build_answer(self._phase, [scorer.score(path) for scorer in scorers], {})["result"]
        return result

    def close(self) -> None:
        """Do nothing: no file is held open."""

    def labels(self) -> Image | None:
        """Return the truth of this frame, None after the last."""
        return self._now.mask if self._now is not None else None

    def _shown_truths(self) -> dict[str, sequence_truth.Split]:
        """Return the splits, reduced to the sequences that were shown."""
        shown = {one.name for one in self._footage.sequences}
        return {
            name: replace(split, sequences=[one for one in split.sequences if one.name in shown])
            for name, split in self._footage.splits.items()
        }

    def _note(self, view: _View, mask: Image) -> None:
        """Keep a mask as canonical run lengths, in whichever form the agent sent it."""
        kept = self._answers.setdefault(view.one.name, {})
        numbers = {number: label for label, number in ids_of(view.one).items()}
        for number, counts in encoded(mask).items():
            label = numbers.get(number, str(number))
            if label not in kept:
                kept[label] = [None] * len(view.one.frames)
            kept[label][view.index] = {"size": list(view.size), "counts": counts}
        if not kept:  # nothing was ever seen: the sequence is there all the same
            kept[next(iter(numbers.values()), "1")] = [None] * len(view.one.frames)

    def _walk(self) -> Iterator[_View]:
        for one in self._footage.sequences:
            known: set[int] = set()
            ids = ids_of(one)
            for number, block in enumerate(one.blocks):
                masks = labels_of(one.read_block(number), block, ids)
                for index in range(block.start, block.stop):
                    mask = masks[index - block.start]
                    new = sorted({*np.unique(mask).tolist()} & {*ids.values()} - known)
                    known.update(new)
                    yield _View(one, index, block.size, self._footage.pictures[one.name][index], mask, new)


@dataclass(frozen=True)
class _View:
    """A frame of a sequence, with its truth."""

    one: Sequence
    index: int
    size: tuple[int, int]
    picture: str
    mask: Image = field(repr=False)
    #: The objects that appear here for the first time; their masks are given.
    new: list[int]

    @property
    def where(self) -> str:
        return f"{self.one.name}/{self.one.frames[self.index]}"

    def observation(self) -> Observation:
        given = np.where(np.isin(self.mask, self.new), self.mask, 0)
        values = {
            "frame": Picture(Path(self.picture).read_bytes()),
            "size": list(self.size),
            "first_mask": Labels(self.size, encoded(given)),
            "new_sequence": int(self.index == 0),
        }
        return Observation(values, where=self.where, sizes=[self.size])


def _mask_of(action: object, size: tuple[int, int]) -> Image:
    """Return the ids of a frame from run lengths, or from an array, padded or not; raises ActionError."""
    if isinstance(action, Labels):
        if action.size != size:
            raise ActionError(f"the mask is {action.size}, and the frame {size} (height, width)")
        try:
            labels: Image = decoded(action.objects.items(), size)
        except Flaw as flaw:
            raise ActionError(f"the mask {flaw.found}. {flaw.remedy}") from None
        return labels
    # Arrays alone: of a list of texts NumPy makes a table as wide as the longest.
    if not isinstance(action, np.ndarray) or action.ndim != 2 or action.dtype.kind not in "iub":
        kind = f"{action.dtype} {action.shape}" if isinstance(action, np.ndarray) else type(action).__name__
        raise ActionError(f"the mask is not an array of whole numbers in two dimensions but {kind}")
    if action.shape[0] < size[0] or action.shape[1] < size[1]:
        raise ActionError(f"the mask is {action.shape}, smaller than the frame {size} (height, width)")
    part = action[: size[0], : size[1]]
    if part.size and (part.min() < 0 or part.max() > 255):
        raise ActionError("the mask has ids that are not from 0 to 255")
    return part.astype(np.uint8)


class VideoObjectSegmentation(TaskEnvironment):
    """An environment that shows a padded frame, its size, the masks of new objects, and whether a sequence begins.

    A score for each frame would give the truth away; with `reward=True` the reward of each step is its frame's J&F.
    """

    task: VideoTask

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
        shown = footage(truth, frames, sequence, layout)
        task = VideoTask(shown, phase_of(shown, protocol, phase, bundle))
        self.action_space = spaces.Box(0, 255, shown.largest, np.uint8)
        picture = spaces.Box(0, 255, (*shown.largest, 3), np.uint8)
        super().__init__(task, shown.largest, {"frame": picture, "first_mask": self.action_space}, reward=reward)

    def step(self, action: Image) -> Stepped:
        truth_labels = self.task.labels() if self._reward else None
        shown = self.task.act(action)
        return self._stepped(shown, 0.0 if truth_labels is None else similarity(truth_labels, np.asarray(action)))

    def _padded(self, values: dict[str, Any]) -> dict[str, Any]:
        padded = super()._padded(values)
        (height, width), given = values["size"], values["first_mask"]
        padded["frame"][:height, :width] = decoded_picture(values["frame"])
        padded["first_mask"][:height, :width] = decoded(given.objects.items(), given.size)
        return padded


def similarity(mask: Image, action: Image) -> float:
    """Return J&F of one frame, the mean over its objects; 1 where neither mask has one."""
    ids = [int(one) for one in np.unique(mask) if 0 < one < 255]
    part = action[: mask.shape[0], : mask.shape[1]].astype(np.uint8)
    if not ids:
        return float(not part.any())
    region, boundary = FrameComparison(mask[None], ids).similarities(part[None])
    return float((region.mean() + boundary.mean()) / 2)
