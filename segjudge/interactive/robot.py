"""The robot that looks at masks and draws a person's next scribbles: lines through the middle of what is missing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from segjudge.interactive.utils.operations import MOST_POINTS, bezier_curve

from .metrics import as_ids, batched_jaccard, object_ids
from .skeleton import longest_paths, opened, skeleton


class InteractiveScribblesRobot:
    """Draws in one frame, for every object (and the background) of which something is missing there."""

    def __init__(
        self,
        kernel_size: float = 0.15,
        max_kernel_radius: float = 16,
        min_nb_nodes: int = 4,
        nb_points: int = MOST_POINTS,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not 0 <= kernel_size < 1:
            raise ValueError("kernel_size must be a value between [0, 1).")
        self.kernel_size, self.max_kernel_radius = kernel_size, max_kernel_radius
        self.min_nb_nodes, self.nb_points = min_nb_nodes, nb_points
        self._clock = clock

    def interact(
        self, sequence: str, pred_masks: Any, gt_masks: Any, nb_objects: int | None = None, frame: int | None = None
    ) -> dict[str, Any]:
        """The scribbles for masks (frames, height, width); without a frame the one with the lowest J is taken."""
        prediction, truth = as_ids(pred_masks), as_ids(gt_masks)
        if nb_objects is None:
            nb_objects = len(object_ids(truth, prediction))
        if frame is None:
            frame = int(np.argmin(batched_jaccard(truth, prediction, nb_objects=nb_objects)))
        lines: list[list[dict[str, Any]]] = [[] for _ in truth]
        for number in range(nb_objects + 1):
            lines[frame] += self._drawn(number, truth[frame], prediction[frame])
        return {"scribbles": lines, "sequence": sequence}

    def _drawn(self, number: int, truth: Any, prediction: Any) -> list[dict[str, Any]]:
        """The lines of one object in one frame."""
        start = self._clock()
        paths = [bezier_curve(path, self.nb_points) for path in self.paths((truth == number) & (prediction != number))]
        end = self._clock()
        size = np.array(truth.shape[::-1])
        return [
            {"path": (path / size).tolist(), "object_id": number, "start_time": start, "end_time": end}
            for path in paths
        ]

    def paths(self, missing: Any) -> list[Any]:
        """Pixels of the lines through a region, before they are smoothed."""
        rows, columns = np.flatnonzero(missing.any(axis=1)), np.flatnonzero(missing.any(axis=0))
        if not len(rows):
            return []
        radius = min(self.kernel_size * math.sqrt(np.count_nonzero(missing)) / 2, self.max_kernel_radius)
        # Only what the disk can reach; at the image's border the box ends there too.
        room = math.ceil(radius) + 2
        top, left = max(0, rows[0] - room), max(0, columns[0] - room)
        part = missing[top : rows[-1] + room + 1, left : columns[-1] + room + 1]
        return [
            path + np.array([left, top]) for path in longest_paths(skeleton(opened(part, radius)), self.min_nb_nodes)
        ]
