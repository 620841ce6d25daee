"""Which PNGs are masks: every combination of the header, every limit of the file, every colour."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.files.problems import Flaw
from segjudge.evaluation_script.masks import png as png_module
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.png import check_length, davis_palette, size_of
from tests.builders import chunk, png, raw_png

SIZE = (3, 5)
ROWS = b"\0\1\2\3\4\5" * 3


def header(*values: int, length: int = 13) -> bytes:
    """Return a PNG whose header has these values."""
    body = struct.pack(">IIBBBBB", *values)[:length].ljust(length, b"\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", body) + chunk(b"IDAT", zlib.compress(ROWS)) + chunk(b"IEND", b"")


def flaw(data: bytes, size: Any = SIZE) -> str:
    with pytest.raises(Flaw) as caught:
        backend().read_labels(data, size)
    return caught.value.fault


GOOD = header(5, 3, 8, 0, 0, 0, 0)


def test_a_mask_is_read() -> None:
    assert backend().read_labels(GOOD, SIZE).tolist() == [[1, 2, 3, 4, 5]] * 3
    assert size_of(GOOD) == SIZE

    assert flaw(GOOD[1:]) == "is not a PNG"


DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}


@pytest.mark.parametrize("colour", range(8))
def test_a_header_holds_what_the_format_allows(colour: int) -> None:
    for depth in range(18):
        data = header(5, 3, depth, colour, 0, 0, 0)
        if depth in DEPTHS.get(colour, ()):
            assert size_of(data) == SIZE
        else:
            assert "its header holds invalid values" in flaw(data)


@pytest.mark.parametrize(
    "values",
    [(0, 3, 8, 0, 0, 0, 0), (5, 0, 8, 0, 0, 0, 0), (5, 3, 8, 0, 1, 0, 0), (5, 3, 8, 0, 0, 1, 0), (5, 3, 8, 0, 0, 0, 2)],
)
def test_no_other_header_is_read(values: tuple[int, ...]) -> None:
    assert "its header holds invalid values" in flaw(header(*values))
    assert size_of(header(5, 3, 8, 0, 0, 0, 1)) == SIZE


def test_kinds_that_are_no_masks_are_named() -> None:
    assert flaw(header(5, 3, 16, 2, 0, 0, 0)) == flaw(header(5, 3, 16, 6, 0, 0, 0)) == "is a 16-bit colour image"
    assert flaw(header(5, 3, 8, 4, 0, 0, 0)) == flaw(header(5, 3, 16, 4, 0, 0, 0)) == "is grey with an alpha channel"
    assert flaw(header(3, 5, 8, 0, 0, 0, 0)) == "is 3x5 pixels but the frame is 5x3"


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b"", "is empty"),
        (b"\xff\xd8\xff", "is a JPEG image, not a PNG"),
        (b"GIF89a", "is a GIF image, not a PNG"),
        (b"BMx", "is a BMP image, not a PNG"),
        (b"II*\0", "is a TIFF image, not a PNG"),
        (b"MM\0*", "is a TIFF image, not a PNG"),
        (b"RIFF", "is a WebP image, not a PNG"),
        (b"PK\x03\x04", "is a zip archive, not a PNG"),
        (b"\x1f\x8b", "is gzipped, not a PNG"),
        (b"\x89PNG\r\n\x1a\r", "is not a PNG"),
    ],
)
def test_other_kinds_of_files_are_named(start: bytes, message: str) -> None:
    assert flaw(start) == message


def test_a_file_that_ends_anywhere_is_cut_off() -> None:
    for length in range(8, len(GOOD)):
        assert flaw(GOOD[:length]).startswith("is cut off: the file ends "), length
    inside = {8: "before its last chunk", 19: "before its last chunk", 20: "inside a chunk", 32: "inside a chunk"}
    inside |= {33: "before its last chunk", 44: "before its last chunk", 45: "inside a chunk"}
    for length, where in inside.items():
        assert flaw(GOOD[:length]) == f"is cut off: the file ends {where}", length
    assert backend().read_labels(GOOD + b"anything", SIZE).tolist() == [[1, 2, 3, 4, 5]] * 3


def test_every_bit_of_header_and_pixels_is_held_against_its_checksum() -> None:
    for place in (16, 28, 29, 32, 41, len(GOOD) - 17, len(GOOD) - 13):
        data = bytearray(GOOD)
        data[place] ^= 1
        name = "IHDR" if place < 33 else "IDAT"
        assert flaw(bytes(data)) == f"is damaged: the checksum of its {name} chunk is wrong", place
    second = bytearray(raw_png(5, 3, 8, 0, ROWS, chunk(b"teXt", b"abc")))
    second[41] ^= 1
    assert backend().read_labels(bytes(second), SIZE).max() == 5, "of what is left out nobody minds"


@pytest.mark.parametrize(("count", "fits"), [(4093, True), (4094, False)])
def test_a_file_has_at_most_4096_chunks(count: int, fits: bool) -> None:
    """Header, pixels and end are three of the 4096 chunks."""
    data = raw_png(5, 3, 8, 0, ROWS, chunk(b"teXt", b"") * count)
    if fits:
        assert backend().read_labels(data, SIZE).max() == 5
    else:
        assert flaw(data) == "has more than 4096 chunks"


def test_pixels_may_come_in_several_chunks() -> None:
    packed = zlib.compress(ROWS)
    parts = b"".join(chunk(b"IDAT", packed[start : start + 3]) for start in range(0, len(packed), 3))
    start = GOOD[:33]
    assert backend().read_labels(start + parts + chunk(b"IEND", b""), SIZE).tolist() == [[1, 2, 3, 4, 5]] * 3
    assert flaw(start + chunk(b"IEND", b"")) == "is damaged: it has no pixels"
    assert flaw(start + start[8:] + parts) == "is damaged: it has two headers"
    assert flaw(start[:8] + parts) == "is damaged: it does not begin with its header"


def test_a_mask_has_at_most_eight_bytes_a_pixel_and_a_megabyte() -> None:
    check_length((1 << 20) + 8 * 15, SIZE)
    with pytest.raises(Flaw, match="has 1,048,697 bytes; a mask of this size takes at most 1,048,696"):
        check_length((1 << 20) + 8 * 15 + 1, SIZE)


@pytest.mark.parametrize(
    ("depth", "colour", "stride"), [(1, 0, 2), (2, 0, 3), (4, 3, 4), (8, 3, 6), (16, 0, 11), (8, 2, 16), (8, 6, 21)]
)
def test_where_pixels_end_is_told_by_rows(depth: int, colour: int, stride: int) -> None:
    for length in (0, 1, stride - 1, stride, stride + 1, 2 * stride, 3 * stride - 1):
        message = flaw(raw_png(5, 3, depth, colour, bytes(length)))
        assert message == f"is cut off: its pixels end in row {length // stride} of 3", length
    assert flaw(raw_png(5, 3, depth, colour, b"\x09" * 3 * stride)) == "is damaged: its pixels cannot be decoded"
    assert flaw(raw_png(5, 3, depth, colour, b"", interlaced=1)) == "is damaged: its pixels cannot be decoded"
    whole = (b"\0" + b"\xff" * (stride - 1)) * 3
    assert len(set(backend().read_labels(raw_png(5, 3, depth, colour, whole), SIZE).reshape(-1).tolist())) == 1
    broken = GOOD[:33] + chunk(b"IDAT", b"nothing") + chunk(b"IEND", b"")
    assert flaw(broken) == "is damaged: its pixels cannot be inflated"


@pytest.mark.parametrize("size", [(3, 5), (8, 8), (9, 17), (1, 1), (2, 1)])
@pytest.mark.parametrize(("depth", "colour"), [(1, 0), (8, 3), (16, 0), (8, 2), (8, 6)])
def test_interlaced_pixels_are_complete(depth: int, colour: int, size: tuple[int, int]) -> None:
    """Each row of the seven passes must be present."""
    height, width = size
    bits = depth * {2: 3, 6: 4}.get(colour, 1)
    rows = []
    for x, y, dx, dy in png_module._ADAM7:
        count = len(range(x, width, dx))
        rows += [b"\0" + b"\xff" * ((count * bits + 7) // 8) for _ in range(y, height, dy) if count]
    whole = raw_png(width, height, depth, colour, b"".join(rows), interlaced=1)
    assert len(set(backend().read_labels(whole, size).reshape(-1).tolist())) == 1
    for count in range(len(rows)):
        cut = raw_png(width, height, depth, colour, b"".join(rows[:count]), interlaced=1)
        assert flaw(cut, size) == "is damaged: its pixels cannot be decoded", count


@pytest.mark.parametrize("interlaced", [0, 1])
def test_a_label_that_stands_for_undecoded_pixels_is_read_too(interlaced: int) -> None:
    value = png_module._UNDECODED
    data = raw_png(1, 2, 8, 0, bytes([0, value] * 2), interlaced=interlaced)
    assert backend().read_labels(data, (2, 1)).tolist() == [[value]] * 2
    packed = bytearray(zlib.compress(bytes([0, value] * 2)))
    packed[-1] ^= 1  # the checksum of the pixels, which follows the last row
    damaged = data[:33] + chunk(b"IDAT", bytes(packed)) + chunk(b"IEND", b"")
    assert flaw(damaged, (2, 1)) == "is damaged: its pixels cannot be inflated"


# ── colours ─────────────────────────────────────────────────────────────────


def test_the_palette_is_that_of_davis() -> None:
    palette = davis_palette()
    assert palette[:9].tolist() == [
        *([0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [0, 0, 128], [128, 0, 128], [0, 128, 128]),
        *([128, 128, 128], [64, 0, 0]),
    ]
    assert palette[[9, 16, 22, 64, 255]].tolist() == [
        [192, 0, 0], [0, 64, 0], [0, 192, 128], [32, 0, 0], [224, 224, 192],
    ]  # fmt: skip
    assert davis_palette(bright=191)[9].tolist() == [191, 0, 0]
    assert len({tuple(colour) for colour in palette.tolist()}) == 256


def test_each_colour_of_either_palette_is_its_label() -> None:
    for bright in (192, 191):
        image = davis_palette(bright=bright).reshape(16, 16, 3)
        assert backend().read_labels(png(image), (16, 16)).reshape(-1).tolist() == list(range(256))


def test_a_colour_that_is_in_no_palette_is_named_with_its_pixel() -> None:
    for colour in ((1, 0, 0), (255, 255, 254), (0, 0, 1), (128, 1, 0)):
        image = np.zeros((*SIZE, 3), np.uint8)
        image[1, 2] = image[2, 1] = colour
        text = f"is a colour image whose pixel (2, 1) has the colour {colour}, which is not the colour of a label"
        assert flaw(png(image)) == text
        assert flaw(png(np.dstack([image, np.full(SIZE, 255, np.uint8)]))) == text


def test_a_transparent_pixel_is_named() -> None:
    image = np.full((*SIZE, 4), 255, np.uint8)
    assert backend().read_labels(png(image), SIZE).tolist() == [[255] * 5] * 3
    image[1, 3, 3] = 254
    assert flaw(png(image)) == "is transparent at pixel (3, 1)"


def test_sixteen_bits_are_read_in_their_order() -> None:
    labels = np.arange(15, dtype=np.uint16).reshape(SIZE) * 300
    assert backend().read_labels(png(labels), SIZE).tolist() == labels.tolist()


AGAIN, SAVE = "Write the file again and repeat the upload.", "Save the mask again as a palette or grey PNG."
SENTENCES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty. Save masks as PNG."),
    "another kind": (b"GIF89a", "is a GIF image, not a PNG. Save masks as PNG."),
    "a short header": (header(5, 3, 8, 0, 0, 0, 0, length=12), f"is damaged: its header has the wrong length. {AGAIN}"),
    "a long header": (header(5, 3, 8, 0, 0, 0, 0, length=14), f"is damaged: its header has the wrong length. {AGAIN}"),
    "an odd header": (header(5, 3, 9, 0, 0, 0, 0), f"is damaged: its header holds invalid values. {AGAIN}"),
    "no end": (GOOD[:8], f"is cut off: the file ends before its last chunk. {AGAIN}"),
    "half a chunk": (GOOD[:20], f"is cut off: the file ends inside a chunk. {AGAIN}"),
    "two headers": (GOOD[:33] + GOOD[8:], f"is damaged: it has two headers. {AGAIN}"),
    "no header": (GOOD[:8] + GOOD[33:], f"is damaged: it does not begin with its header. {AGAIN}"),
    "no pixels": (GOOD[:33] + chunk(b"IEND", b""), f"is damaged: it has no pixels. {AGAIN}"),
    "many chunks": (raw_png(5, 3, 8, 0, ROWS, chunk(b"teXt", b"") * 4094), f"has more than 4096 chunks. {SAVE}"),
    "wide colours": (header(5, 3, 16, 2, 0, 0, 0), f"is a 16-bit colour image. {SAVE}"),
    "grey with alpha": (header(5, 3, 8, 4, 0, 0, 0), f"is grey with an alpha channel. {SAVE}"),
    "another size": (header(3, 5, 8, 0, 0, 0, 0), "is 3x5 pixels but the frame is 5x3. Save masks at the size of the frames, without resizing."),
}  # fmt: skip


@pytest.mark.parametrize("name", SENTENCES)
def test_each_fault_says_how_to_repair_it(name: str) -> None:
    data, sentence = SENTENCES[name]
    with pytest.raises(Flaw) as caught:
        backend().read_labels(data, SIZE)
    assert str(caught.value.as_problem("a.png")) == f"a.png: {sentence}"
