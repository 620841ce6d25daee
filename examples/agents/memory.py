"""An agent with a bank of earlier frames, restricted to a few as RMem does (arXiv 2406.08476), on hand-made features.

Each cell of a frame looks for the cells most like it in the bank and takes their objects.  The bank keeps the first
frame, the latest, and of the others those that were of use and those that are fresh; `--frames 0` keeps all.
"""

import argparse
import functools
import math
from dataclasses import dataclass

import cv2
import numpy as np
from agent import Image, run
from optical_flow import WIDTH, Layer, OpticalFlow

#: Pixels of a cell's side, at the width at which flow is found.
_CELL = 8
#: How many cells of the bank a cell asks, and how much less it believes those that are less like it.
_ASKED, _SHARPNESS = 16, 12.0
#: Position counts little beside colour and texture: objects move.
_POSITION_WEIGHT = 0.6
#: Frames in a restricted bank, the first and the latest included.
_FRAMES = 6
#: How much freshness counts beside use, as the width of a confidence bound does.
_FRESH = 0.15
#: How much the bank counts beside what travelled.
_BANK = 0.5


@dataclass(eq=False)  # each is itself: arrays have no one truth
class _BankFrame:
    """A frame of the bank."""

    keys: Layer
    values: dict[int, Layer]
    #: The share of all answers that came from it, summed, and how often it was asked.
    use: float = 0.0
    asked: int = 0

    def note_answers(self, share: float) -> None:
        """Count a frame that asked, and the share of its answers that came from here."""
        self.use, self.asked = self.use + share, self.asked + 1

    def worth(self, frames: int) -> float:
        """Its mean use plus a bound that is wider the fewer times it was asked."""
        return self.use / max(self.asked, 1) + _FRESH * math.sqrt(math.log(frames + 1) / max(self.asked, 1))


class Memory:
    """Optical flow for contours, a bank of frames for what flow loses."""

    def __init__(self, frame: Image, mask: Image, frames: int = _FRAMES) -> None:
        self._flow = OpticalFlow(frame, mask)
        self._frames = frames
        self._bank: list[_BankFrame] = []
        self._frame_count = 0

    def segment(self, frame: Image, new_objects: Image) -> Image:
        """Move the masks by flow and correct them by the bank, with the given masks on top."""
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
        """For each cell the share of each object in the cells most like it."""
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
    """A row for each cell, colour, colour around it, texture and position, and the grid's size."""
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
