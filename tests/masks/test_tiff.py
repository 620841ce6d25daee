"""TIFF: labels as other programs write them, and what is said of those that are none."""

from __future__ import annotations

import io
import time
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.evaluation_script.files import Flaw
from segjudge.evaluation_script.masks import tiff
from segjudge.masks.tiff import encode_tiff
from segjudge.testing.hostile import _lzw, _tiff

DRAW = np.random.default_rng(5)
CELLS = np.kron(DRAW.integers(0, 4, (30, 21)) * DRAW.integers(0, 300, (30, 21)), np.ones((9, 11), int))
#: Flat areas, noise that fills LZW's table again and again, and a picture with strings that repeat.
PICTURES = {
    "cells": CELLS.astype(np.uint16),
    "noise": DRAW.integers(0, 1 << 16, (120, 131)).astype(np.uint16),
    "bytes": DRAW.integers(0, 256, (97, 203)).astype(np.uint8),
    "zeros": np.zeros((400, 500), np.uint16),
    "waves": (np.arange(90 * 77) % 251).astype(np.uint8).reshape(90, 77),
}


def written_by_pillow(labels: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(labels).save(out, "TIFF", **options)
    return out.getvalue()


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("way", [None, "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate"])
def test_what_libtiff_writes_is_read(name: str, way: str | None) -> None:
    labels = PICTURES[name]
    for tags in ({}, {278: 7}, {317: 2}) if way else ({},):
        if tags == {317: 2} and labels.dtype != np.uint8:
            continue
        data = written_by_pillow(labels, **({"compression": way, "tiffinfo": tags} if way else {}))
        assert tiff.size_of(data) == (1, *labels.shape)
        numbers = tiff.read_labels(data, labels.shape)
        assert numbers.dtype == labels.dtype
        assert np.array_equal(numbers, labels), tags


def test_pages_stand_below_each_other_and_bytes_may_be_swapped() -> None:
    volume = np.stack(
        [CELLS, CELLS.T[: len(CELLS), : CELLS.shape[1]] if CELLS.shape[0] == CELLS.shape[1] else CELLS + 1]
    )
    data = encode_tiff(volume)
    assert tiff.size_of(data) == (2, *CELLS.shape)
    assert np.array_equal(tiff.read_labels(data, CELLS.shape, 2), volume.reshape(-1, CELLS.shape[1]))
    swapped = _tiff(4, 3, np.arange(12).astype(">u2").tobytes(), order=">")
    assert np.array_equal(tiff.read_labels(swapped, (3, 4)), np.arange(12).reshape(3, 4))
    steps = _tiff(4, 3, np.ones(12, "<u2").tobytes(), {317: 2})
    assert np.array_equal(tiff.read_labels(steps, (3, 4)), [[1, 2, 3, 4]] * 3)


PLAIN = bytes(24)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\x89PNG\r\n\x1a\n", "is not a TIFF"),
        (b"GIF89a", "is a GIF image, not a TIFF"),
        (b"II+\0\x08\0\0\0", "is a BigTIFF"),
        (b"II*\0\x08\0\0\0", "is cut off: the file ends inside its tags"),
        (b"II*\0" + bytes(9), "is damaged: it holds no picture"),
        (_tiff(5, 3, PLAIN), "is 5×3 pixels but the frame is 4×3"),
        (_tiff(0, 3, PLAIN), "is damaged: it says no size"),
        (_tiff(4, 3, PLAIN, {258: 32}), "holds numbers of 32 bits"),
        (_tiff(4, 3, PLAIN, {339: 2}), "holds signed numbers of 16 bits"),
        (_tiff(4, 3, PLAIN, {254: 1, 300: 1, 339: 2, 340: 1}), "holds signed numbers of 16 bits"),
        (_tiff(4, 3, PLAIN, {339: 3, 258: 32}), "holds floating numbers of 32 bits"),
        (_tiff(4, 3, PLAIN, {277: 3}), "has 3 channels"),
        (_tiff(4, 3, PLAIN, {322: 16}), "is written in tiles"),
        (_tiff(4, 3, PLAIN, {259: 32773}), "is compressed by PackBits"),
        (_tiff(4, 3, PLAIN, {259: 9}), "is compressed by way 9"),
        (_tiff(4, 3, PLAIN, {317: 3}), "is written with the predictor 3"),
        (_tiff(4, 3, PLAIN, {278: 1}), "its strips are not those of its size"),
        (_tiff(4, 3, PLAIN, {279: 23}), "is cut off: it has fewer pixels than its size"),
        (_tiff(4, 3, PLAIN, {279: 1 << 31}), "is damaged: its strips overlap"),
        (_tiff(4, 3, PLAIN, {273: 1 << 31}), "is cut off: the file ends inside its pixels"),
        (_tiff(4, 3, b"\xff" * 9, {259: 8}), "is damaged: its pixels cannot be inflated"),
        (_tiff(4, 3, _lzw([256, 7, 257]), {259: 5}), "is cut off: it has fewer pixels"),
        (_tiff(4, 3, _lzw([256, 7, 300]), {259: 5}), "its LZW has a code that nothing stands for"),
        (_tiff(4, 3, _lzw([256] * 99), {259: 5}), "its LZW begins anew far too often"),
        (encode_tiff(np.zeros((2, 3, 4))), "has more than 1 slice"),
    ],
)
def test_what_is_no_label_map_is_a_sentence(data: bytes, words: str) -> None:
    with pytest.raises(Flaw) as caught:
        tiff.read_labels(data, (3, 4))
    assert words in str(caught.value)


def test_a_volume_with_too_few_slices_is_said() -> None:
    with pytest.raises(Flaw, match="has 2 slices; the frame has 3"):
        tiff.read_labels(encode_tiff(np.zeros((2, 3, 4))), (3, 4), 3)
    beside = 1 << 20
    for pages, limit in (((), beside + beside // 16 + 36), ((3,), beside + 3 * (beside // 16 + 36))):
        tiff.check_length(limit, (3, 4), *pages)
        words = f"^has {limit + 1:,} bytes, and labels of this size never take more than {limit:,}$"
        with pytest.raises(Flaw, match=words):
            tiff.check_length(limit + 1, (3, 4), *pages)


def test_lzw_that_grows_without_end_is_bounded() -> None:
    """Each code stands for all before it: the most that a block can give; and a table that is cleared at each step."""
    strip = np.packbits(np.array(list("".join(
        f"{code:0{width}b}" for code, width in zip([256, 0, *range(258, 4000)], [9, *tiff._CODE_WIDTHS.tolist()], strict=False)
    ))) == "1").tobytes()  # fmt: skip
    start = time.process_time()
    assert tiff.inflate_lzw(strip, 1 << 22) == bytes(1 << 22)
    with pytest.raises(Flaw, match="begins anew"):
        tiff.inflate_lzw(_lzw([256, 0] * 50_000), 1 << 21)
    assert time.process_time() - start < 2
