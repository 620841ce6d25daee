"""An agent that moves masks along the optical flow from each frame to the next."""

import cv2
import numpy as np
from agent import Image, run
from cv2.typing import MatLike
from numpy.typing import NDArray

#: The soft mask of an object.
Layer = MatLike

#: The width at which flow is computed.
WIDTH = 427
#: The smoothing of a moved mask, in pixels.
_SMOOTHING = 1.0


class OpticalFlow:
    """A method that keeps a soft mask, a layer, for each object."""

    def __init__(self, frame: Image, mask: Image) -> None:
        self._size = mask.shape
        self._small = (WIDTH, max(2, round(mask.shape[0] * WIDTH / mask.shape[1])))
        self._flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_FAST)
        rows, columns = np.mgrid[: self._small[1], : self._small[0]].astype(np.float32)
        self._pixels = columns, rows
        self._before = self._grey(frame)
        self.layers: dict[int, Layer] = {}

    def segment(self, frame: Image, new_objects: Image) -> Image:
        """Return the masks moved to this frame, with the given masks on top."""
        layers = self.move(frame)
        for label in np.unique(new_objects[new_objects > 0]).tolist():
            layers[label] = self.layer(new_objects == label)
        self.layers = layers
        return self.mask()

    def layer(self, flags: NDArray[np.bool_]) -> Layer:
        return cv2.resize(flags.astype(np.float32), self._small, interpolation=cv2.INTER_AREA)

    def move(self, frame: Image) -> dict[int, Layer]:
        """Return each object's layer moved to a new frame."""
        grey = self._grey(frame)
        if not self.layers:
            self._before = grey
            return {}
        # `remap` reads from the previous frame, so the flow goes from this frame to that one.
        flow: Layer = self._flow.calc(grey, self._before, None)  # type: ignore[call-overload]
        self._before = grey
        x, y = self._pixels[0] + flow[..., 0], self._pixels[1] + flow[..., 1]
        return {
            label: cv2.GaussianBlur(
                cv2.remap(layer, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), (0, 0), _SMOOTHING
            )
            for label, layer in self.layers.items()
        }

    def mask(self) -> Image:
        """Return the likeliest object of each pixel; 0 where none is likelier than the background."""
        if not self.layers:
            return np.zeros(self._size, np.uint8)
        ids = np.array([0, *self.layers], np.uint8)
        full: list[Layer] = [np.full(self._size, 0.5, np.float32)]
        full += [cv2.resize(layer, self._size[::-1]) for layer in self.layers.values()]
        mask: Image = ids[np.argmax(full, axis=0)]
        return mask

    def _grey(self, frame: Image) -> MatLike:
        return cv2.cvtColor(cv2.resize(frame, self._small, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)


if __name__ == "__main__":
    run(OpticalFlow)
