"""A reader of the streams of masks that the players of pages draw."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np


def read_stream(stream: bytes) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """Return the header of a stream, and the group of each pixel, image by image."""
    line, _, body = zlib.decompress(stream).partition(b"\n")
    header = json.loads(line)
    numbers, value, shift = [], 0, 0
    for byte in body:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    assert not shift
    assert len(numbers) == 2 * header["runs"]
    labels, lengths = numbers[: header["runs"]], numbers[header["runs"] :]
    return header, np.repeat(np.array(labels, int), np.array(lengths, int)).reshape(-1, *header["size"])
