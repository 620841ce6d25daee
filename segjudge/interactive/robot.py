"""The robot that draws a user's next scribbles: lines through the middle of what the masks miss."""

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from segjudge.evaluation_script.masks.stack import Array
from segjudge.interactive.utils.operations import MOST_POINTS, bezier_curve
from segjudge.interactive.utils.scribbles import ScribbleLine, Scribbles

from .metrics import as_ids, batched_jaccard, object_ids
from .skeleton import longest_paths, opened, skeleton


class InteractiveScribblesRobot:
    """Draws in one frame, on every object (and the background) of which something is missing there."""

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
        self,
        sequence: str,
        pred_masks: ArrayLike,
        gt_masks: ArrayLike,
        nb_objects: int | None = None,
        frame: int | None = None,
    ) -> Scribbles:
        """Return scribbles for masks (frames, height, width), in `frame` or in the frame with the lowest J."""
        prediction, truth = as_ids(pred_masks), as_ids(gt_masks)
        if nb_objects is None:
            nb_objects = len(object_ids(truth, prediction))
        if frame is None:
            frame = int(np.argmin(batched_jaccard(truth, prediction, nb_objects=nb_objects)))
        lines: list[list[ScribbleLine]] = [[] for _ in truth]
        for object_id in range(nb_objects + 1):
            lines[frame] += self._lines(object_id, (truth[frame] == object_id) & (prediction[frame] != object_id))
        return {"scribbles": lines, "sequence": sequence}

    def _lines(self, object_id: int, missing: Array) -> list[ScribbleLine]:
        start = self._clock()
        curves = [bezier_curve(path, self.nb_points) for path in self.paths(missing)]
        end = self._clock()
        size = np.array(missing.shape[::-1])
        return [
            {"path": (curve / size).tolist(), "object_id": object_id, "start_time": start, "end_time": end}
            for curve in curves
        ]

    def paths(self, missing: Array) -> list[Array]:
        """Return the pixels (x, y) of the lines through a region (height, width), before they are smoothed."""
        rows, columns = np.flatnonzero(missing.any(axis=1)), np.flatnonzero(missing.any(axis=0))
        if not len(rows):
            return []
        radius = min(self.kernel_size * math.sqrt(np.count_nonzero(missing)) / 2, self.max_kernel_radius)
        # Only what the disk can reach; at the image's border the box ends there too.
        margin = math.ceil(radius) + 2
        top, left = max(0, rows[0] - margin), max(0, columns[0] - margin)
        box = missing[top : rows[-1] + margin + 1, left : columns[-1] + margin + 1]
        paths = longest_paths(skeleton(opened(box, radius)), self.min_nb_nodes)
        return [path + np.array([left, top]) for path in paths]
