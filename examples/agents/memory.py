"""An agent with a bank of a few earlier frames, as in RMem (arXiv 2406.08476), and hand-made features.

Each cell of a frame takes the objects of the most similar cells in the bank.  The bank keeps the first frame, the
latest, and the most useful or recent others; `--frames 0` keeps all.

On four sequences of DAVIS (199 frames), which say little about learned features, J&F-Mean is 0.329 without a bank
(2 seconds), 0.390 with the first and the latest frame (8), 0.368 with 3 frames (12), 0.355 with 6 (15), 0.356 with 10
(21), and 0.376 with all (58).
"""

import argparse
import functools
import math
from dataclasses import dataclass

import cv2
import numpy as np
from agent import Image, run
from optical_flow import WIDTH, Layer, OpticalFlow

#: The side of a cell in pixels, at the width of the flow.
_CELL = 8
#: The number of similar cells that answer, and how fast their weight falls with dissimilarity.
_ASKED, _SHARPNESS = 16, 12.0
#: The weight of position; low, because objects move.
_POSITION_WEIGHT = 0.6
#: Frames in the bank, including the first and the latest.
_FRAMES = 6
#: The weight of recency against use, as in an upper confidence bound.
_FRESH = 0.15
#: The weight of the bank against the moved masks.
_BANK = 0.5


@dataclass(eq=False)  # arrays cannot be compared as a whole
class _BankFrame:
    """A frame of the bank."""

    keys: Layer
    values: dict[int, Layer]
    #: The summed shares of answers from this frame, and the number of queries.
    use: float = 0.0
    asked: int = 0

    def note_answers(self, share: float) -> None:
        """Count a query, and the share of its answers from this frame."""
        self.use, self.asked = self.use + share, self.asked + 1

    def worth(self, frames: int) -> float:
        """Return its mean use plus a bound that shrinks with the number of queries."""
        return self.use / max(self.asked, 1) + _FRESH * math.sqrt(math.log(frames + 1) / max(self.asked, 1))


class Memory:
    """A method with optical flow for contours, and a bank of frames for objects that flow loses."""

    def __init__(self, frame: Image, mask: Image, frames: int = _FRAMES) -> None:
        self._flow = OpticalFlow(frame, mask)
        self._frames = frames
        self._bank: list[_BankFrame] = []
        self._frame_count = 0

    def segment(self, frame: Image, new_objects: Image) -> Image:
        """Return the masks moved by flow and corrected by the bank, with the given masks on top."""
        keys, grid = _features(frame)
        layers = self._flow.move(frame)
        if self._bank and layers:
            answers = self._answers(keys, [*layers])
            for index, label in enumerate(layers):
                size = layers[label].shape[::-1]
                belief = cv2.resize(answers[:, index].reshape(grid), size, interpolation=cv2.INTER_LINEAR)
                layers[label] = (1 - _BANK) * layers[label] + _BANK * belief
        for label in np.unique(new_objects[new_objects > 0]).tolist():
            layers[label] = self._flow.layer(new_objects == label)
        self._flow.layers = layers
        self._keep(
            keys,
            {label: cv2.resize(layer, grid[::-1], interpolation=cv2.INTER_AREA) for label, layer in layers.items()},
        )
        return self._flow.mask()

    def _answers(self, keys: Layer, objects: list[int]) -> Layer:
        """Return for each cell the share of each object in the most similar cells."""
        bank = np.concatenate([bank_frame.keys for bank_frame in self._bank])
        nothing = np.zeros(len(keys), np.float32)
        values = np.concatenate(
            [
                np.stack([bank_frame.values.get(label, nothing) for label in objects], axis=1)
                for bank_frame in self._bank
            ]
        )
        far = (keys**2).sum(1)[:, None] + (bank**2).sum(1)[None] - 2 * keys @ bank.T
        asked = min(_ASKED, far.shape[1])
        near = np.argpartition(far, asked - 1, axis=1)[:, :asked]
        weights = np.exp(-_SHARPNESS * np.take_along_axis(far, near, axis=1))
        weights /= weights.sum(axis=1, keepdims=True) + 1e-9
        frame_of = near // len(keys)
        shares = np.bincount(frame_of.ravel(), weights=weights.ravel(), minlength=len(self._bank)) / len(keys)
        for bank_frame, share in zip(self._bank, shares.tolist(), strict=True):
            bank_frame.note_answers(share)
        answers: Layer = (weights[:, :, None] * values[near]).sum(axis=1).astype(np.float32)
        return answers

    def _keep(self, keys: Layer, values: dict[int, Layer]) -> None:
        """Add the newest frame, and remove the least worthy between the first and the latest."""
        self._bank.append(_BankFrame(keys, {label: layer.ravel() for label, layer in values.items()}))
        self._frame_count += 1
        if self._frames and len(self._bank) > self._frames:
            self._bank.remove(min(self._bank[1:-1], key=lambda bank_frame: bank_frame.worth(self._frame_count)))


def _features(frame: Image) -> tuple[Layer, tuple[int, int]]:
    """Return a row per cell (colour, surrounding colour, texture, position), and the grid's size."""
    height = max(_CELL, round(frame.shape[0] * WIDTH / frame.shape[1]))
    grid = (max(1, height // _CELL), WIDTH // _CELL)
    lab = cv2.cvtColor(cv2.resize(frame, (WIDTH, height), interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2LAB)
    lab = lab.astype(np.float32) / 64
    grey = lab[..., 0]
    edges = np.hypot(cv2.Sobel(grey, cv2.CV_32F, 1, 0), cv2.Sobel(grey, cv2.CV_32F, 0, 1))
    planes = [lab, cv2.GaussianBlur(lab, (0, 0), 2 * _CELL), edges[..., None] / 2]
    cells = [
        cv2.resize(plane, grid[::-1], interpolation=cv2.INTER_AREA).reshape(grid[0] * grid[1], -1) for plane in planes
    ]
    rows, columns = np.mgrid[: grid[0], : grid[1]].astype(np.float32)
    position = np.stack([rows.ravel() / grid[0], columns.ravel() / grid[1]], axis=1) * _POSITION_WEIGHT
    return np.concatenate([*cells, position], axis=1).astype(np.float32), grid


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=_FRAMES, help=f"in the bank; 0: all ({_FRAMES})")
    run(functools.partial(Memory, frames=parser.parse_args().frames))
