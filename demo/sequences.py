"""The phase of videos: pictures, truth and results in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from segjudge.masks.demo import png_of
from segjudge.masks.run_lengths import encode_labels

from .drawing import SIZE
from .files import compressed, encode_picture, pack_truth, replace
from .films import FILMS, Film
from .methods import METHODS, Masks

PHASE = "photo-videos"


def write(root: Path) -> list[Path]:
    """Write the pictures, the annotation file and the results; return their paths."""
    drawn = {film: [film.draw(frame) for frame in range(film.frames)] for film in FILMS}
    paths = []
    for film, frames in drawn.items():
        for frame, (picture, _) in enumerate(frames):
            paths.append(root / "pictures" / PHASE / film.name / f"{frame:05d}.jpg")
            replace(paths[-1], encode_picture(picture))
    truths = {film: [labels for _, labels in frames] for film, frames in drawn.items()}
    published = {
        f"Annotations/480p/{film.name}/{frame:05d}.png": png_of(labels)
        for film, masks in truths.items()
        for frame, labels in enumerate(masks)
    }
    paths.append(root / "annotations" / f"{PHASE}.zip")
    pack_truth(paths[-1], "davis2017", published)
    for name, method in METHODS.items():
        paths.append(root / "examples" / PHASE / f"{name}.json.gz")
        replace(
            paths[-1], compressed({film.name: run_lengths(film, method(film, masks)) for film, masks in truths.items()})
        )
    return paths


def run_lengths(film: Film, masks: Masks) -> dict[str, list[dict[str, Any] | None]]:
    """Return the masks of each object, frame by frame, as in JSON results."""
    texts = [encode_labels(labels) for labels in masks]
    return {
        str(number): [{"size": SIZE, "counts": text[number]} if number in text else None for text in texts]
        for number in film.object_numbers()
    }
