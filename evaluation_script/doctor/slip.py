"""A slip: a row of the table of mistakes, with the change that undoes it."""

from __future__ import annotations

from typing import Any, Callable, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from .samples import Examination, Sample

#: Changes a frame: a map, boxes or points.
Change = Callable[[Any], Any]


class Cure(NamedTuple):
    """The predictions of samples without a slip: by sample the frames, where None cannot be compared."""

    predictions: List[List[Any]]
    #: Words for the slip's sentence.
    detail: str = ""
    #: What it counts more than another cure that fits about as well.
    lead: float = 0.0


#: Returns samples' predictions without a slip; None if the slip is impossible or cannot be seen.
FindCure = Callable[[Examination, Sequence[Sample]], Optional[Cure]]


class Slip(NamedTuple):
    """A common mistake and its signs."""

    #: The sentence, in which {content}, {noun} and {labels} are the family's words, and {detail} is the cure's.
    sentence: str
    remedy: str
    #: The traits that the data must have.
    traits: FrozenSet[str]
    cure: FindCure
    #: The signs: the minimum fit without the slip; and unless most of the misfit is gone, its minimum ratio to the fit
    #: as sent, and the maximum share of the misfit that remains.
    least: float = 0.5
    times: float = 1.5
    remains: float = 0.67
    #: Whether the change needs every pixel of a frame; then one frame of each sample is tried.
    whole: bool = False


def change_frames(changes: Mapping[type, Change]) -> FindCure:
    """Return the cure that changes each frame by itself, given the changes of each form of frame."""

    def cure(_examination: Examination, samples: Sequence[Sample]) -> Optional[Cure]:
        predictions = []
        for sample in samples:
            change = next((changes[kind] for kind in changes if isinstance(sample.prediction[0], kind)), None)
            frames = [change(frame) for frame in sample.prediction] if change else []
            if any(
                getattr(new, "shape", None) != getattr(old, "shape", None) for new, old in zip(frames, sample.truth)
            ):
                frames = []
            predictions.append(frames or [None] * len(sample.prediction))
        return Cure(predictions)

    return cure


def shape_of(frame: Any) -> Any:
    """Return the size of a frame, which differs among maps, boxes and points."""
    return frame.shape if isinstance(frame, np.ndarray) else frame.size
