"""Predictions with the noise of networks: speckle and ragged edges, drawn into files of each benchmark's format.

Labels are drawn again at five in a hundred pixels, as networks leave them that look at each pixel by itself, and edges are
off by up to three pixels.  Formats stay as they are: PNGs of labels, of colours or with a palette, and run lengths.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from segjudge.evaluation_script.masks.run_lengths import compress, runs_of
from segjudge.evaluation_script.masks.stack import Array
from segjudge.masks.run_lengths import encode_labels

#: The share of pixels that have any label, and how far edges are off.
_SPECKLE, _RAGGED = 0.05, 3


def spoil(generator: np.random.Generator, image: Array, labels: Array) -> Array:
    """Return a map with noise: at single pixels any of these labels."""
    sides = image.shape
    off = generator.integers(-_RAGGED, _RAGGED + 1, (2, *sides), np.int16)
    rows, columns = (np.arange(side, dtype=np.int16) for side in sides)
    answer = image[np.clip(rows[:, None] + off[0], 0, sides[0] - 1), np.clip(columns + off[1], 0, sides[1] - 1)]
    noisy = generator.random(sides) < _SPECKLE
    answer[noisy] = generator.choice(labels, np.count_nonzero(noisy))
    return answer


def spoil_folder(source: Path, target: Path) -> None:
    """Copy results, with noise in all PNGs, texts of MOTS and records of COCO-Stuff."""
    generator = np.random.default_rng(2)
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        out = target / path.relative_to(source)
        out.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".png":
            _spoil_picture(generator, path, out)
        elif path.suffix == ".txt":
            out.write_text(_spoil_lines(generator, path.read_text()))
        else:
            shutil.copyfile(path, out)


def spoil_records(source: Path, target: Path) -> None:
    """Write the records of a JSON of COCO-Stuff with noise."""
    generator, images = np.random.default_rng(2), dict[int, list[dict[str, Any]]]()
    for record in json.loads(source.read_text()):
        images.setdefault(record["image_id"], []).append(record)
    spoiled = []
    for image, records in images.items():
        size = tuple(records[0]["segmentation"]["size"])
        labels = np.array([0, *(record["category_id"] for record in records)], np.uint8)
        drawn = labels[_draw([record["segmentation"]["counts"] for record in records], size)]
        spoiled += [
            {"image_id": image, "category_id": label, "segmentation": {"size": size, "counts": counts}}
            for label, counts in encode_labels(spoil(generator, drawn, labels)).items()
        ]
    target.write_text(json.dumps(spoiled))


def _spoil_picture(generator: np.random.Generator, path: Path, out: Path) -> None:
    with Image.open(path) as picture:
        pixels, palette = np.array(picture), picture.getpalette()
    is_coloured = pixels.ndim == 3
    codes = pixels @ np.array([1, 1 << 8, 1 << 16]) if is_coloured else pixels
    answer = spoil(generator, codes, np.unique(codes))
    colours = np.stack([answer & 255, answer >> 8 & 255, answer >> 16], axis=-1) if is_coloured else answer
    spoiled = Image.fromarray(colours.astype(pixels.dtype))
    if palette:
        spoiled.putpalette(palette)
    spoiled.save(out, compress_level=3)


def _spoil_lines(generator: np.random.Generator, text: str) -> str:
    frames: dict[str, list[list[str]]] = {}
    for line in text.splitlines():
        frames.setdefault(line.partition(" ")[0], []).append(line.split(" "))
    lines = []
    for records in frames.values():
        height, width = map(int, records[0][3:5])
        drawn = _draw([record[5] for record in records], (height, width))
        down = spoil(generator, drawn, np.arange(len(records) + 1)).T.reshape(-1)
        for number, record in enumerate(records, 1):
            borders = np.flatnonzero(np.diff(down == number, prepend=False))
            runs = compress(np.diff(borders, prepend=0, append=height * width).tolist())
            lines.append(" ".join([*record[:5], runs]) + "\n")
    return "".join(lines)


def _draw(texts: list[str], size: tuple[int, ...]) -> Array:
    """Return a map in which the pixels of each mask have its number, from 1."""
    down = np.zeros(size[0] * size[1], np.int64)
    for number, text in enumerate(texts, 1):
        runs = runs_of(text, down.size)
        down[np.repeat(np.arange(len(runs)) % 2 == 1, runs)] = number
    return down.reshape(size[::-1]).T
