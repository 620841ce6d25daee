"""PNG and run lengths are read exactly."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.png import davis_palette
from tests.builders import png, raw_png

LABELS = np.random.default_rng(5).integers(0, 2, (13, 21)).astype(np.uint8)


def packed_rows(labels: Any, depth: int) -> bytes:
    """Return unfiltered rows of less than 8 bits a pixel."""
    out = b""
    for row in labels:
        bits = "".join(f"{value:0{depth}b}" for value in row)
        bits += "0" * (-len(bits) % 8)
        out += b"\0" + bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
    return out


@pytest.mark.parametrize("colour", [0, 3], ids=["grey", "palette"])
@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_every_depth_gives_the_raw_value(depth: int, colour: int) -> None:
    labels = np.random.default_rng(depth).integers(0, 1 << depth, (13, 21))
    palette = (
        []
        if colour == 0
        else [struct.pack(">I", 3) + b"PLTE" + bytes(3) + struct.pack(">I", zlib.crc32(b"PLTE" + bytes(3)))]
    )
    data = raw_png(21, 13, depth, colour, packed_rows(labels, depth), *palette)
    assert (backend().read_labels(data, (13, 21)) == labels).all()


@pytest.mark.parametrize("kind", range(5), ids=["none", "sub", "up", "average", "paeth"])
def test_every_row_filter_is_undone(kind: int) -> None:
    labels = np.random.default_rng(kind).integers(0, 256, (13, 21)).astype(int)
    rows = b""
    for y, row in enumerate(labels):
        left, up = np.append([0], row[:-1]), labels[y - 1] if y else np.zeros(21, int)
        corner = np.append([0], up[:-1])
        guess = left + up - corner
        distances = [abs(guess - left), abs(guess - up), abs(guess - corner)]
        paeth = np.where(
            (distances[0] <= distances[1]) & (distances[0] <= distances[2]),
            left,
            np.where(distances[1] <= distances[2], up, corner),
        )
        predicted = [0, left, up, (left + up) // 2, paeth][kind]
        rows += bytes([kind]) + ((row - predicted) % 256).astype(np.uint8).tobytes()
    assert (backend().read_labels(raw_png(21, 13, 8, 0, rows), (13, 21)) == labels).all()


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_interlaced_files_are_read(depth: int) -> None:
    labels = np.random.default_rng(depth).integers(0, 1 << depth, (13, 21))
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    pixels = b"".join(packed_rows(labels[y::dy, x::dx], depth) for y, x, dy, dx in passes)
    assert (backend().read_labels(raw_png(21, 13, depth, 3, pixels, interlaced=1), (13, 21)) == labels).all()


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_colours_of_the_davis_palette_are_mapped_back(mode: str) -> None:
    labels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    image = Image.fromarray(labels)
    image.putpalette(davis_palette().tobytes())
    out = io.BytesIO()
    image.convert(mode).save(out, "PNG")
    assert (backend().read_labels(out.getvalue(), (16, 16)) == labels).all()


def test_the_other_tools_colours_and_white_are_known() -> None:
    colours = np.array([[[0, 0, 0], [191, 0, 0], [192, 0, 0], [255, 255, 255]]], np.uint8)
    assert backend().read_labels(png(colours), (1, 4)).tolist() == [[0, 9, 9, 255]]


def test_the_palette_of_a_file_means_nothing() -> None:
    image = Image.fromarray(LABELS)
    image.putpalette([255 - i // 3 for i in range(768)])
    out = io.BytesIO()
    image.save(out, "PNG")
    assert (backend().read_labels(out.getvalue(), LABELS.shape) == LABELS).all()


def test_text_and_transparency_chunks_are_left_out() -> None:
    bomb = zlib.compress(bytes(50_000_000), 9)
    chunk = b"zTXtname\0\0" + bomb
    extra = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    data = raw_png(21, 13, 8, 0, b"".join(b"\0" + row.tobytes() for row in LABELS), extra)
    assert (backend().read_labels(data, LABELS.shape) == LABELS).all()


def encoded(runs: list[int]) -> str:
    """Return COCO's text form, written from its definition."""
    text = ""
    for place, run in enumerate(runs):
        value = run - (runs[place - 2] if place > 2 else 0)
        more = True
        while more:
            bits = value & 31
            value >>= 5
            more = value != (-1 if bits & 16 else 0)
            text += chr((bits | 32 if more else bits) + 48)
    return text
