"""The phase of videos: pictures, truth and results in files."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from segjudge.datasets.demo import png_of
from segjudge.families.truths import TruthSource, pack
from segjudge.masks.run_lengths import encode_labels

from .drawing import SIZE
from .films import FILMS, Film
from .methods import METHODS, Masks

PHASE = "photo-videos"
_QUALITY = 66


def write(root: Path) -> list[Path]:
    """Write the pictures, the annotation file and the results; return their paths."""
    drawn = {film: [film.draw(frame) for frame in range(film.frames)] for film in FILMS}
    paths = []
    for film, frames in drawn.items():
        for frame, (picture, _) in enumerate(frames):
            paths.append(root / "pictures" / PHASE / film.name / f"{frame:05d}.jpg")
            replace(paths[-1], encode_picture(picture))
    truths = {film: [labels for _, labels in frames] for film, frames in drawn.items()}
    annotations = root / "annotations" / f"{PHASE}.zip"
    annotations.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        for film, masks in truths.items():
            for frame, labels in enumerate(masks):
                replace(Path(folder, "Annotations/480p", film.name, f"{frame:05d}.png"), png_of(labels))
        pack(TruthSource(folder, "davis2017"), str(annotations), "dev")
    paths.append(annotations)
    for name, method in METHODS.items():
        paths.append(root / "examples" / PHASE / f"{name}.json.gz")
        replace(
            paths[-1], compressed({film.name: run_lengths(film, method(film, masks)) for film, masks in truths.items()})
        )
    return paths


def run_lengths(film: Film, masks: Masks) -> dict[str, list[dict[str, Any] | None]]:
    """The masks of each object, frame by frame, as results in JSON have them."""
    texts = [encode_labels(labels) for labels in masks]
    return {
        str(number): [{"size": SIZE, "counts": text[number]} if number in text else None for text in texts]
        for number in film.object_numbers()
    }


def compressed(document: object) -> bytes:
    """JSON in the same bytes every time."""
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), 9, mtime=0)


def encode_picture(picture: Any) -> bytes:
    """A frame as a camera stores it."""
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "JPEG", quality=_QUALITY, optimize=True, progressive=True)
    return out.getvalue()


def replace(path: Path, data: bytes) -> None:
    """Write a file, in folders that are made where they lack."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
