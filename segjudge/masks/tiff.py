"""The TIFF writer for label maps, in the form that the tools of microscopes write and read."""

from __future__ import annotations

import struct
import zlib

from segjudge.evaluation_script.masks.stack import Array

#: A fast level of deflate.
_QUICK = 3
#: Types of the tags' numbers.
_SHORT, _LONG = 3, 4


def encode_tiff(slices: Array) -> bytes:
    """Write labels (slices, height, width) as a TIFF of 16 bits, a page for each slice, deflated."""
    data = bytearray(b"II*\0" + bytes(4))
    link = 4
    for labels in slices:
        height, width = labels.shape
        strip = zlib.compress(labels.astype("<u2").tobytes(), _QUICK)
        struct.pack_into("<I", data, link, len(data))
        entries = [
            (256, _LONG, width), (257, _LONG, height), (258, _SHORT, 16), (259, _SHORT, 8), (262, _SHORT, 1),
            (273, _LONG, len(data) + 6 + 12 * 9), (277, _SHORT, 1), (278, _LONG, height), (279, _LONG, len(strip)),
        ]  # fmt: skip
        data += struct.pack("<H", len(entries)) + b"".join(
            struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries
        )
        link = len(data)
        data += bytes(4) + strip + bytes(len(strip) % 2)
    return bytes(data)
