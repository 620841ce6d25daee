"""An agent that lets masks travel along the optical flow from each frame to the next."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from segjudge.code_upload_challenge_evaluation.agent.agent import run

#: Flow is found at this width.
WIDTH = 427
#: How much rims are smoothed on the way, in pixels.
SMOOTHED = 1.0


class OpticalFlow:
    """Keeps a layer of belief for each object."""

    def __init__(self, frame: Any, mask: Any) -> None:
        self._size = mask.shape
        self._small = (WIDTH, max(2, round(mask.shape[0] * WIDTH / mask.shape[1])))
        self._flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_FAST)
        rows, columns = np.mgrid[: self._small[1], : self._small[0]].astype(np.float32)
        self._places = columns, rows
        self._before = self._grey(frame)
        self.layers: dict[int, Any] = {}

    def segment(self, frame: Any, new_objects: Any) -> Any:
        """What was believed, moved to this frame, with what is given on top."""
        layers = self.travelled(frame)
        for one in np.unique(new_objects[new_objects > 0]).tolist():
            layers[one] = self.layer(new_objects == one)
        self.layers = layers
        return self.mask()

    def layer(self, flags: Any) -> Any:
        """A mask as a layer."""
        return cv2.resize(flags.astype(np.float32), self._small, interpolation=cv2.INTER_AREA)

    def travelled(self, frame: Any) -> dict[int, Any]:
        """Each object's layer as it lies in a new frame."""
        now = self._grey(frame)
        if not self.layers:
            self._before = now
            return {}
        # To fetch a pixel of the frame before one needs the flow from this frame to that.
        flow: Any = self._flow.calc(now, self._before, None)  # type: ignore[call-overload]
        self._before = now
        x, y = self._places[0] + flow[..., 0], self._places[1] + flow[..., 1]
        return {
            one: cv2.GaussianBlur(
                cv2.remap(layer, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), (0, 0), SMOOTHED
            )
            for one, layer in self.layers.items()
        }

    def mask(self) -> Any:
        """The likeliest object of each pixel, where it is likelier than none."""
        if not self.layers:
            return np.zeros(self._size, np.uint8)
        ids = np.array([0, *self.layers], np.uint8)
        full = [np.full(self._size, 0.5, np.float32)]
        full += [cv2.resize(layer, self._size[::-1]) for layer in self.layers.values()]
        return ids[np.argmax(full, axis=0)]

    def _grey(self, frame: Any) -> Any:
        return cv2.cvtColor(cv2.resize(frame, self._small, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)


if __name__ == "__main__":
    run(OpticalFlow)
