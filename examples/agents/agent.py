"""An example agent that repeats the first mask: put your method into `Method`, and keep the rest."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from segjudge.agent import Environment

#: Pixels of a frame, (height, width, 3), or ids of a mask, (height, width).
Image = NDArray[np.uint8]


class _Segmenter(Protocol):
    """The interface that `run` requires of a method."""

    def segment(self, frame: Image, new_objects: Image) -> Image: ...


class Method:
    """A method that returns a mask for each frame: 0 is the background, 1 and up are the objects."""

    def __init__(self, frame: Image, mask: Image) -> None:
        self.frame, self.mask = frame, mask

    def segment(self, frame: Image, new_objects: Image) -> Image:
        """Return the mask of a frame (height, width, 3), in which `new_objects` (a mask) appear first."""
        self.frame = frame
        self.mask[new_objects > 0] = new_objects[new_objects > 0]
        return self.mask


def run(method: Callable[[Image, Image], _Segmenter]) -> None:
    """Play an episode: every frame of every sequence."""
    with Environment() as environment:
        observation = environment.reset()
        while not environment.done:
            if observation["new_sequence"]:
                current = method(observation["frame"], observation["first_mask"])
            observation = environment.act(current.segment(observation["frame"], observation["first_mask"]))


if __name__ == "__main__":
    run(Method)
