"""The golden pairs as zips of truth and prediction, made once per session from the real masks."""

from __future__ import annotations

import importlib.util
import io
import zipfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.data import SEQUENCES
from tests.made_once import make_once


def _maker() -> Any:
    spec = importlib.util.spec_from_file_location("make_pairs", SEQUENCES / "make_pairs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def png_bytes(labels: Any) -> bytes:
    """Return a PNG of the mode that fits the type and shape of labels."""
    return _png_of(Image.fromarray(np.asarray(labels)))


def _png_with_palette(labels: Any) -> bytes:
    """Return a PNG with a palette, as DAVIS' are: without filters it is written in half the time."""
    image = Image.fromarray(labels)
    image.putpalette([*range(256)] * 3)
    return _png_of(image)


def _png_of(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def frames_of(pair: str, only: tuple[str, ...] = ()) -> Iterator[tuple[str, int, Any, Any]]:
    """Yield sequence, frame number, truth and prediction, of all sequences or only these."""
    maker = _maker()
    osvos, rvos, davis = (
        maker.load(f"{SEQUENCES}/open_{name}.zip", inner)
        for name, inner in (("osvos", ""), ("rvos", ""), ("gt2016", "Annotations/480p/"))
    )

    def reader(source: Any, sequence: str) -> Any:
        archive, names = source
        if sequence not in names:
            return None
        return lambda k: np.array(Image.open(io.BytesIO(archive.read(names[sequence][k]))))

    for sequence in sorted(only or osvos[1]):
        readers = [reader(source, sequence) for source in (osvos, rvos, davis)]
        for k, truth, prediction in maker.frames(pair, sequence, *readers, len(osvos[1][sequence])):
            yield sequence, k, truth.astype(np.uint8), prediction.astype(np.uint8)


def write_pair(pair: str, folder: Path, *, by_object: bool = False) -> tuple[Path, Path]:
    """Return `truth.zip` and `prediction.zip` of a pair, if by object, in SA-V's layout; other tests may read them."""
    name = f"pair-{pair}-by-object" if by_object else f"pair-{pair}"
    folder = make_once(name, folder, partial(_write_zips, pair, by_object))
    return folder / "truth.zip", folder / "prediction.zip"


def _write_zips(pair: str, by_object: bool, folder: Path) -> None:
    paths = folder / "truth.zip", folder / "prediction.zip"
    rows = list(frames_of(pair))
    labels: dict[str, set[int]] = {}
    empty = cache(lambda shape: _png_with_palette(np.zeros(shape, np.uint8)))  # half of all masks by object
    for sequence, _, truth, _ in rows if by_object else ():
        labels.setdefault(sequence, set()).update(np.flatnonzero(np.bincount(truth.ravel())).tolist())
    with zipfile.ZipFile(paths[0], "w") as first, zipfile.ZipFile(paths[1], "w") as second:
        for sequence, k, *sides in rows:
            for out, side in zip((first, second), sides):
                if not by_object:
                    out.writestr(f"{sequence}/{k:05d}.png", _png_with_palette(side))
                    continue
                for label in sorted(labels[sequence] - {0}):
                    mask = side == label
                    data = _png_with_palette(mask * np.uint8(255)) if mask.any() else empty(side.shape)
                    out.writestr(f"{sequence}/{label - 1:03d}/{k:05d}.png", data)
