"""Small synthetic datasets, made from a seed, for `segjudge demo`, `new` and `interactive`.

Videos show ellipses that move, hide each other and have a rim of void; images show instances of four categories.
"""

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segjudge.evaluation_script.files.packed import replace_file
from segjudge.evaluation_script.masks.png import davis_palette
from segjudge.masks import DEMO_SEED
from segjudge.masks.run_lengths import encode_labels

# ── scenes ──────────────────────────────────────────────────────────────────

#: An image of object ids.
Labels = NDArray[np.uint8]

VOID = 255


@dataclass(frozen=True)
class _Shape:
    """An ellipse on its way through the frame; later shapes hide earlier ones."""

    centre: tuple[float, float]
    speed: tuple[float, float]
    radii: tuple[float, float]
    turn: float
    enters: int = 0

    def mask(self, frame: int, size: tuple[int, int], grow: float = 0.0) -> NDArray[np.bool_]:
        """Return its pixels in a frame; `grow` makes it larger or smaller."""
        rows, columns = np.mgrid[: size[0], : size[1]]
        across, along = self.place(rows, columns, frame, grow)
        inside: NDArray[np.bool_] = along**2 + across**2 <= 1
        return inside & (frame >= self.enters)

    def place(
        self, rows: NDArray[Any], columns: NDArray[Any], frame: int, grow: float = 0.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the coordinates of a frame's pixels across and along the shape, in units of its radii."""
        y = rows - self.centre[0] - self.speed[0] * frame
        x = columns - self.centre[1] - self.speed[1] * frame
        angle = self.turn * frame
        along: NDArray[np.float64] = x * np.cos(angle) + y * np.sin(angle)
        across: NDArray[np.float64] = y * np.cos(angle) - x * np.sin(angle)
        return across / max(self.radii[0] + grow, 1), along / max(self.radii[1] + grow, 1)


@dataclass(frozen=True)
class Scene:
    """One sequence."""

    name: str
    size: tuple[int, int]
    frames: int
    shapes: tuple[_Shape, ...]
    #: Width of the rim of void around the first object.
    rim: int = 0

    def labels(self, frame: int, grow: float = 0.0) -> Labels:
        """Return the truth, or with `grow` a prediction that is too large or too small."""
        labels = np.zeros(self.size, np.uint8)
        for number, shape in enumerate(self.shapes, 1):
            labels[shape.mask(frame, self.size, grow)] = number
        return labels

    def truth(self, frame: int) -> Labels:
        """Return the labels with the rim of void."""
        labels = self.labels(frame)
        if self.rim:
            rim = self.shapes[0].mask(frame, self.size, self.rim) & (labels == 0)
            labels[rim] = VOID
        return labels

    def picture(self, frame: int) -> NDArray[np.uint8]:
        """Return a synthetic picture: coloured shapes with a moving grain on a speckled ground."""
        generator = np.random.default_rng(len(self.name) + 7 * len(self.shapes))
        ground = _grain(generator, self.size, (96, 108, 92))
        labels = self.labels(frame)
        for number, shape in enumerate(self.shapes, 1):
            coat = _grain(generator, self.size, _COATS[number % len(_COATS)])
            shift = (round(shape.speed[0] * frame), round(shape.speed[1] * frame))
            ground[labels == number] = np.roll(coat, shift, axis=(0, 1))[labels == number]
        return ground


#: Colours of the shapes.
_COATS = ((70, 130, 180), (200, 80, 60), (230, 190, 90), (120, 70, 150), (60, 150, 90))


def _grain(generator: np.random.Generator, size: tuple[int, int], colour: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Return an image of one colour with speckles four pixels wide."""
    speckles = generator.normal(0, 16, (-(-size[0] // 4), -(-size[1] // 4), 1))
    wide = np.kron(speckles, np.ones((4, 4, 1)))[: size[0], : size[1]]
    grain: NDArray[np.uint8] = np.clip(np.array(colour) + wide, 0, 255).astype(np.uint8)
    return grain


def make_scene(name: str, seed: int, *, objects: int, frames: int, hard: bool = False) -> Scene:
    """Return a random scene: the same seed gives the same scene everywhere."""
    generator = np.random.default_rng(seed)
    height, width = 120, 160
    shapes = []
    for number in range(objects):
        small = hard and number == objects - 1
        radii = generator.uniform(5, 8, 2) if small else generator.uniform(14, 26, 2)
        centre = generator.uniform(0.25, 0.75, 2) * (height, width)
        towards = ((height, width) - 2 * centre) / (1.5 * frames) + generator.uniform(-1.5, 1.5, 2)
        enters = frames // 3 if number == 1 and objects > 2 else 0
        start, speed, size = ((float(y), float(x)) for y, x in (centre, towards, radii))
        shapes.append(_Shape(start, speed, size, float(generator.uniform(-0.08, 0.08)), enters))
    return Scene(name, (height, width), frames, tuple(shapes), rim=3 if objects == 2 else 0)


#: The categories of the images of instances, and their size.
CATEGORIES = ("disk", "bar", "ring", "wedge")
IMAGE_SIZE = (240, 320)


@dataclass(frozen=True)
class SyntheticInstance:
    """One instance: the index of its category, its position and its size."""

    category: int
    centre: tuple[float, float]
    radius: float
    turn: float

    def mask(self, dy: float = 0.0, dx: float = 0.0, grow: float = 0.0) -> NDArray[np.bool_]:
        """Return its pixels, or the pixels of a slightly shifted detection."""
        y, x = np.mgrid[: IMAGE_SIZE[0], : IMAGE_SIZE[1]]
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
    return [
        SyntheticInstance(
            int(generator.integers(len(CATEGORIES))),
            (float(generator.uniform(10, IMAGE_SIZE[0] - 10)), float(generator.uniform(10, IMAGE_SIZE[1] - 10))),
            float(generator.choice([8.0, 16.0, 32.0, 66.0]) * generator.uniform(0.8, 1.2)),
            float(generator.uniform(0, np.pi)),
        )
        for _ in range(int(generator.integers(3, 8)))
    ]


def instance_images(seed: int = DEMO_SEED) -> list[list[SyntheticInstance]]:
    """Return the instances of each image of the phase of instances; later ones hide earlier ones."""
    generator = np.random.default_rng(seed)
    return [instance_image(generator) for _ in range(PICTURES)]


def image_name(number: int) -> str:
    """Return the name of an image without its ending; numbers start at 0."""
    return f"image_{number:03d}"


def places_png(instances: list[SyntheticInstance]) -> NDArray[np.uint8]:
    """Return truth as Places publishes it: red holds the category (from 1), green the instance."""
    image = np.zeros((*IMAGE_SIZE, 3), np.uint8)
    for number, instance in enumerate(instances, 1):
        image[instance.mask()] = (instance.category + 1, number, 0)
    return image


#: The names of a scene's objects, by number.
NAMES = {1: "disk", 2: "oval", 3: "guest"}
#: The number of frames between two images.
STEP = 4


def label_frames(video: Scene) -> list[tuple[str, Labels]]:
    return [(f"{frame:05d}", video.labels(frame)) for frame in range(video.frames)]


def object_numbers(video: Scene) -> range:
    return range(1, len(video.shapes) + 1)


def mask_records(video: Scene) -> dict[int, list[dict[str, Any] | None]]:
    """Return the run lengths of each object, frame by frame."""
    texts = [encode_labels(labels) for _, labels in label_frames(video)]
    return {
        number: [{"size": video.size, "counts": text[number]} if number in text else None for text in texts]
        for number in object_numbers(video)
    }


def still_images(videos: list[Scene]) -> list[tuple[int, Labels]]:
    """Return some frames as images, numbered from 1."""
    return list(enumerate((labels for video in videos for _, labels in label_frames(video)[::STEP]), 1))


# ── files ───────────────────────────────────────────────────────────────────

#: Phase → split → scenes as (name, objects, frames, hard).
_SPLITS: dict[str, dict[str, list[tuple[str, int, int, bool]]]] = {
    "sequences-dev": {"dev": [("crossing", 2, 16, False), ("late-guest", 3, 20, False), ("solo", 1, 12, False)]},
    "sequences-test": {
        "test": [("carousel", 3, 18, False), ("duet", 2, 14, False)],
        "test-hard": [("needle", 3, 18, True), ("swarm", 5, 20, True)],
    },
}

INSTANCE_PHASE = "instances-dev"
PICTURES = 12

_Predict = Callable[[Scene, int], Labels]


def first_scenes() -> list[Scene]:
    """Return the videos of the first phase."""
    return demo_videos(DEMO_SEED)["sequences-dev"]["dev"]


def write_frames(root: str, seed: int = DEMO_SEED) -> None:
    """Write the pictures of the sequences below a folder, for agents."""
    for video in [video for splits in demo_videos(seed).values() for members in splits.values() for video in members]:
        folder = os.path.join(root, video.name)
        os.makedirs(folder, exist_ok=True)
        for frame in range(video.frames):
            write_picture(os.path.join(folder, f"{frame:05d}.jpg"), video, frame)
        with replace_file(os.path.join(folder, "first.png")) as partial:
            Image.fromarray(video.labels(0)).save(partial, "PNG")


def write_picture(path: str | os.PathLike[str], video: Scene, frame: int) -> None:
    """Write the picture of a frame atomically."""
    with replace_file(os.fspath(path)) as partial:
        Image.fromarray(video.picture(frame)).save(partial, "JPEG", quality=92)


def demo_videos(seed: int) -> dict[str, dict[str, list[Scene]]]:
    return {
        phase: {split: make_scenes(rows, f"{phase}/{split}", seed) for split, rows in splits.items()}
        for phase, splits in _SPLITS.items()
    }


def make_scenes(rows: list[tuple[str, int, int, bool]], salt: str, seed: int) -> list[Scene]:
    """Return the videos of rows as in `_SPLITS`."""
    start = seed + sum(map(ord, salt))
    return [
        make_scene(name, start + number, objects=objects, frames=frames, hard=hard)
        for number, (name, objects, frames, hard) in enumerate(rows)
    ]


def davis_files(scenes: list[Scene]) -> Iterator[tuple[str, bytes]]:
    """Yield the truth as DAVIS publishes it."""
    return ((f"Annotations/480p/{name}", data) for name, data in images(scenes, Scene.truth))


def images(scenes: list[Scene], labels: _Predict) -> Iterator[tuple[str, bytes]]:
    """Yield a PNG for each frame, by the names of video and frame."""
    for video in scenes:
        for frame in range(video.frames):
            yield f"{video.name}/{frame:05d}.png", png_of(labels(video, frame))


def png_of(labels: NDArray[np.uint8]) -> bytes:
    """Return a label image as DAVIS publishes it, with its palette."""
    image = Image.fromarray(labels)
    image.putpalette(davis_palette().tobytes())
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()
