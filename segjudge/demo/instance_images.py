"""Synthetic images of instances: disks, bars, rings and wedges that lie over each other."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CATEGORIES = ("disk", "bar", "ring", "wedge")
SIZE = (240, 320)


@dataclass(frozen=True)
class SyntheticInstance:
    """One instance: the index of its category, where it lies and how large it is."""

    category: int
    centre: tuple[float, float]
    radius: float
    turn: float

    def mask(self, dy: float = 0.0, dx: float = 0.0, grow: float = 0.0) -> NDArray[np.bool_]:
        """Return its pixels, or those of a detection that is a little off."""
        y, x = np.mgrid[: SIZE[0], : SIZE[1]]
        y, x = y - self.centre[0] - dy, x - self.centre[1] - dx
        radius = max(self.radius + grow, 1.5)
        distance = np.hypot(y, x)
        along = x * np.cos(self.turn) + y * np.sin(self.turn)
        across = y * np.cos(self.turn) - x * np.sin(self.turn)
        shapes = (
            distance <= radius,
            (abs(along) <= 1.6 * radius) & (abs(across) <= 0.5 * radius),
            (distance <= radius) & (distance >= 0.55 * radius),
            (distance <= 1.3 * radius) & (along >= abs(across)),
        )
        mask: NDArray[np.bool_] = shapes[self.category]
        return mask


def instance_image(generator: np.random.Generator) -> list[SyntheticInstance]:
    """Return the instances of one random image."""
    return [
        SyntheticInstance(
            int(generator.integers(len(CATEGORIES))),
            (float(generator.uniform(10, SIZE[0] - 10)), float(generator.uniform(10, SIZE[1] - 10))),
            float(generator.choice([8.0, 16.0, 32.0, 66.0]) * generator.uniform(0.8, 1.2)),
            float(generator.uniform(0, np.pi)),
        )
        for _ in range(int(generator.integers(3, 8)))
    ]


def places_png(instances: list[SyntheticInstance]) -> NDArray[np.uint8]:
    """Return truth as Places publishes it: red holds the category (from 1), green the instance."""
    image = np.zeros((*SIZE, 3), np.uint8)
    for number, instance in enumerate(instances, 1):
        image[instance.mask()] = (instance.category + 1, number, 0)
    return image
