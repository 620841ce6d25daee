"""TIFF: labels of other programs, and messages about other files."""

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

AGAIN = "Write the file again and repeat the upload"
STRIPS = "Save labels as unsigned 8-bit or 16-bit numbers in strips, uncompressed or compressed with LZW or deflate"
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
    ("data", "message"),
    [
        (b"", "is empty. Save masks as TIFF"),
        (b"\x89PNG\r\n\x1a\n", "is not a TIFF. Save masks as TIFF"),
        (b"GIF89a", "is a GIF image, not a TIFF. Save masks as TIFF"),
        (b"II+\0\x08\0\0\0", "is a BigTIFF. Save it as a classic TIFF"),
        (b"II*\0\x08\0\0\0", f"is cut off: the file ends inside its tags. {AGAIN}"),
        (b"II*\0" + bytes(9), f"is damaged: it holds no picture. {AGAIN}"),
        (b"II*\0\x08\0\0\0\0\0", f"is damaged: one of its pictures has 0 tags. {AGAIN}"),
        (b"II*\0\x08\0\0\0\xff\xff", f"is damaged: one of its pictures has 65,535 tags. {AGAIN}"),
        (_tiff(5, 3, PLAIN), "is 5x3 pixels but the frame is 4x3. Save masks at the size of the frames, without resizing"),
        (_tiff(0, 3, PLAIN), f"is damaged: it does not state its size. {AGAIN}"),
        (_tiff(4, 3, PLAIN, {258: 32}), f"holds numbers of 32 bits. {STRIPS}"),
        (_tiff(4, 3, PLAIN, {339: 2}), f"holds signed numbers of 16 bits. {STRIPS}"),
        (_tiff(4, 3, PLAIN, {254: 1, 300: 1, 339: 2, 340: 1}), f"holds signed numbers of 16 bits. {STRIPS}"),
        (_tiff(4, 3, PLAIN, {339: 3, 258: 32}), f"holds floating numbers of 32 bits. {STRIPS}"),
        (_tiff(4, 3, PLAIN, {277: 3}), f"has 3 channels. {STRIPS}"),
        (_tiff(4, 3, PLAIN, {322: 16}), f"is written in tiles. {STRIPS}"),
        (_tiff(4, 3, PLAIN, {259: 32773}), f"is compressed by PackBits. {STRIPS}"),
        (_tiff(4, 3, PLAIN, {259: 9}), f"is compressed by way 9. {STRIPS}"),
        (_tiff(4, 3, PLAIN, {317: 3}), f"is written with the predictor 3. {STRIPS}"),
        (_tiff(4, 3, PLAIN, {278: 1}), f"is damaged: its strips do not match its size. {AGAIN}"),
        (_tiff(4, 3, PLAIN, {279: 23}), f"is cut off: it has fewer pixels than its size. {AGAIN}"),
        (_tiff(4, 3, PLAIN, {279: 1 << 31}), f"is damaged: its strips overlap. {AGAIN}"),
        (_tiff(4, 3, PLAIN, {273: 1 << 31}), f"is cut off: the file ends inside its pixels. {AGAIN}"),
        (_tiff(4, 3, b"\xff" * 9, {259: 8}), f"is damaged: its pixels cannot be inflated. {AGAIN}"),
        (_tiff(4, 3, _lzw([256, 7, 257]), {259: 5}), f"is cut off: it has fewer pixels than its size. {AGAIN}"),
        (_tiff(4, 3, _lzw([256, 7, 300]), {259: 5}), f"is damaged: its LZW data has an undefined code. {AGAIN}"),
        (_tiff(4, 3, _lzw([256] * 99), {259: 5}), f"is damaged: its LZW data restarts far too often. {AGAIN}"),
        (encode_tiff(np.zeros((2, 3, 4))), "has more than 1 slice. Send the frame with all its slices, and nothing else"),
    ],
)  # fmt: skip
def test_what_is_no_label_map_is_a_sentence(data: bytes, message: str) -> None:
    with pytest.raises(Flaw) as caught:
        tiff.read_labels(data, (3, 4))
    assert f"{caught.value.fault}. {caught.value.remedy}" == message


def test_packbits_that_end_early_are_a_sentence() -> None:
    with pytest.raises(Flaw, match="is cut off: it has fewer pixels than its size"):
        tiff.read_labels(_tiff(4, 3, b"\x01\0\x07", {259: 32773, 279: 3}), (3, 4), wide=True)


def test_a_volume_with_too_few_slices_is_said() -> None:
    with pytest.raises(Flaw, match="has 2 slices; the frame has 3"):
        tiff.read_labels(encode_tiff(np.zeros((2, 3, 4))), (3, 4), 3)
    beside = 1 << 20
    for pages, limit in (((), beside + beside // 16 + 36), ((3,), beside + 3 * (beside // 16 + 36))):
        tiff.check_length(limit, (3, 4), *pages)
        text = f"^has {limit + 1:,} bytes; labels of this size take at most {limit:,}$"
        with pytest.raises(Flaw, match=text):
            tiff.check_length(limit + 1, (3, 4), *pages)


def test_lzw_that_grows_without_end_is_bounded() -> None:
    """Each code repeats all before it, the maximum of a block, or clears the table at each step."""
    strip = np.packbits(np.array(list("".join(
        f"{code:0{width}b}" for code, width in zip([256, 0, *range(258, 4000)], [9, *tiff._CODE_WIDTHS.tolist()], strict=False)
    ))) == "1").tobytes()  # fmt: skip
    start = time.process_time()
    assert tiff.inflate_lzw(strip, 1 << 22) == bytes(1 << 22)
    with pytest.raises(Flaw, match="restarts far too often"):
        tiff.inflate_lzw(_lzw([256, 0] * 50_000), 1 << 21)
    assert time.process_time() - start < 2


# ── wide maps ───────────────────────────────────────────────────────────────

KINDS = ["uint8", "uint16", "uint32", "uint64", "int16", "int32", "int64", "float32", "float64"]


def written_by_tifffile(labels: Any, **options: Any) -> bytes:
    tifffile = pytest.importorskip("tifffile")
    out = io.BytesIO()
    tifffile.imwrite(out, labels, **options)
    return out.getvalue()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [{}, {"byteorder": ">"}, {"tile": (64, 32)}, {"tile": (512, 512)}, {"bigtiff": True}, {"rowsperstrip": 7}],
    ids=str,
)
def test_what_tifffile_writes_is_read(kind: str, options: dict[str, Any]) -> None:
    labels = CELLS % 251 if kind == "uint8" else CELLS
    data = written_by_tifffile(labels.astype(kind), **options)
    tiff.check_length(len(data), labels.shape, wide=True)
    assert tiff.size_of(data, wide=True) == (1, *labels.shape)
    numbers = tiff.read_labels(data, labels.shape, wide=True)
    assert numbers.dtype == (np.uint8 if kind == "uint8" else np.uint16)
    assert np.array_equal(numbers, labels)


def test_imagej_and_ome_files_are_read() -> None:
    for data in (
        written_by_tifffile(CELLS.astype(np.uint16), imagej=True),
        written_by_tifffile(CELLS.astype(np.float32), imagej=True),
        written_by_tifffile(CELLS.astype(np.uint16), ome=True, tile=(256, 256)),
    ):
        assert np.array_equal(tiff.read_labels(data, CELLS.shape, wide=True), CELLS)


@pytest.mark.parametrize("length", [4, 8])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("order", ["<", ">"])
def test_floats_whose_bytes_are_differences_are_read(length: int, channels: int, order: str) -> None:
    picture = np.array([[0, 1, 2, 300], [70_000, 5, 5, 0], [16_777_215, 9, 0, 1]])
    stored = np.stack([picture] * channels, axis=-1).astype(f">f{length}")  # whatever the order of the file
    planes = stored.reshape(3, -1, 1).view(np.uint8).transpose(0, 2, 1).reshape(3, -1, channels)  # first bytes first
    differences = np.diff(planes, axis=1, prepend=np.zeros((3, 1, channels), np.uint8))
    tags = {339: 3, 258: 8 * length, 317: 3, 277: channels}
    assert np.array_equal(
        tiff.read_labels(_tiff(4, 3, differences.tobytes(), tags, order=order), (3, 4), wide=True), picture
    )


def test_zstandard_is_read_where_a_package_for_it_is_installed() -> None:
    pixels = np.arange(12, dtype="<u2").tobytes()
    module = tiff._find_zstandard()
    if module is None:
        with pytest.raises(Flaw, match="which needs the package zstandard here"):
            tiff.read_labels(_tiff(4, 3, pixels, {259: 50000}), (3, 4), wide=True)
        return
    pack = getattr(module, "compress", None) or module.ZstdCompressor().compress
    assert np.array_equal(
        tiff.read_labels(_tiff(4, 3, pack(pixels), {259: 50000}), (3, 4), wide=True), np.arange(12).reshape(3, 4)
    )
    with pytest.raises(Flaw, match="damaged"):
        tiff.read_labels(_tiff(4, 3, b"no frame", {259: 50000}), (3, 4), wide=True)


WIDE = {339: 2, 258: 32}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (_tiff(4, 3, np.full(12, -1, "<i4").tobytes(), WIDE), "holds the label -1. Number objects from 1 to 16,777,215; 0 is background"),
        (_tiff(4, 3, np.full(12, 1 << 24, "<i4").tobytes(), WIDE), "holds the label 16777216. Number objects from 1 to 16,777,215; 0 is background"),
        (_tiff(4, 3, np.full(12, 0.5, "<f4").tobytes(), {339: 3, 258: 32}), "holds 0.5, which is not a whole number. Save labels as whole numbers"),
        (
            _tiff(4, 3, np.full(12, np.nan, "<f4").tobytes(), {339: 3, 258: 32}),
            "holds nan, which is not a whole number. Save labels as whole numbers",
        ),
        (
            _tiff(4, 3, np.full(12, np.inf, "<f4").tobytes(), {339: 3, 258: 32}),
            "holds the label inf. Number objects from 1 to 16,777,215; 0 is background",
        ),
        (_tiff(4, 3, bytes(48), {339: 3, 258: 32, 317: 2}), f"is written with the predictor 2. {STRIPS}"),
        (_tiff(4, 3, bytes(48), {339: 2, 258: 32, 317: 3}), f"is written with the predictor 3. {STRIPS}"),
        (_tiff(4, 3, bytes(24), {339: 3, 258: 16}), f"holds floating numbers of 16 bits. {STRIPS}"),
        (_tiff(4, 3, b"\x7f" + bytes(3), {259: 32773}), f"is cut off: it has fewer pixels than its size. {AGAIN}"),
        (_tiff(4, 3, bytes(24), {322: 0, 323: 16}), f"is damaged: its strips do not match its size. {AGAIN}"),
        (_tiff(4, 3, bytes(24), {322: 8192, 323: 16}), "has tiles of 8192x16 pixels. Write tiles of at most 4096 pixels"),
        (b"II+\0" + bytes(12), f"is damaged: it holds no picture. {AGAIN}"),
        (b"II+\0\x08\0\0\0", f"is cut off: the file ends inside its tags. {AGAIN}"),
    ],
)  # fmt: skip
def test_what_is_no_wide_map_is_a_sentence(data: bytes, message: str) -> None:
    with pytest.raises(Flaw) as caught:
        tiff.read_labels(data, (3, 4), wide=True)
    assert f"{caught.value.fault}. {caught.value.remedy}" == message


@pytest.mark.parametrize("form", [{"tile": (64, 32)}, {"bigtiff": True}])
def test_other_benchmarks_take_strips_and_usual_files_alone(form: dict[str, Any]) -> None:
    with pytest.raises(Flaw, match="is written in tiles|is a BigTIFF"):
        tiff.read_labels(written_by_tifffile(CELLS.astype(np.uint16), **form), CELLS.shape)
