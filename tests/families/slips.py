"""The commonest slips of participants, as functions that change an upload: families combine them in their `SLIPS`."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from segjudge.evaluation_script.masks import run_lengths as rle
from tests import published
from tests.builders import png, zipped

#: Changes an upload.
Slip = Callable[[bytes], bytes]


def pictures(change: Callable[[Any], Any]) -> Slip:
    """Change each PNG of a zip."""

    def slip(data: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        return zipped({
            name: png(change(np.array(Image.open(io.BytesIO(member))))) if name.endswith(".png") else member
            for name, member in members.items()
        })  # fmt: skip

    return slip


def documents(change: Callable[[Any], object]) -> Slip:
    """Change each JSON of a zip in place."""

    def slip(data: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        for name in [name for name in members if name.endswith(".json")]:
            document = json.loads(members[name])
            change(document)
            members[name] = json.dumps(document).encode()
        return zipped(members)

    return slip


def points(change: Callable[[Any], Any]) -> Slip:
    """Change the 32 bits of each point of all scans."""

    def slip(data: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        return zipped({
            name: change(np.frombuffer(member, "<u4")).astype("<u4").tobytes() for name, member in members.items()
        })  # fmt: skip

    return slip


def turn_runs(data: bytes) -> bytes:
    """Write the run lengths of each record along the rows."""
    documents = json.loads(data)
    for record in documents:
        mask = record["segmentation"]
        mask["counts"] = turned(mask["counts"], tuple(mask["size"]))
    return json.dumps(documents).encode()


def records(change: Callable[[dict[str, Any]], object]) -> Slip:
    """Change each record of a JSON list, with each of them repeated four times."""

    def slip(data: bytes) -> bytes:
        listed = [{**record} for record in json.loads(data) for _ in range(4)]
        for record in listed:
            change(record)
        return json.dumps(listed).encode()

    return slip


def texts(change: Callable[[list[str]], list[str]]) -> Slip:
    """Change the fields of each line of all texts."""

    def slip(data: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            lines = {name: archive.read(name).decode().splitlines() for name in archive.namelist()}
        return zipped({
            name: "".join(" ".join(change(line.split(" "))) + "\n" for line in own) for name, own in lines.items()
        })  # fmt: skip

    return slip


def answers(change: Callable[[str, tuple[int, int]], str]) -> Slip:
    """Change the run lengths of each line."""

    def slip(data: bytes) -> bytes:
        lines = [json.loads(line) for line in data.splitlines()]
        for line in lines:
            mask = line["segmentation"]
            mask["counts"] = change(mask["counts"], tuple(mask["size"]))
        return "".join(json.dumps(line) + "\n" for line in lines).encode()

    return slip


def lines(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Slip:
    """Change the lines of a file."""
    return lambda data: "".join(
        f"{json.dumps(line)}\n" for line in change(list(map(json.loads, data.splitlines())))
    ).encode()


def rearranged(text: str, size: tuple[int, int], change: Callable[[Any], Any]) -> str:
    """Return the run lengths of a mask whose pixels (height, width) are changed."""
    pixels = rle.flags_of(rle.runs_of(text, size[0] * size[1])).reshape(size[::-1]).T
    return rle.encode_flags(change(pixels).T.reshape(-1))


def mirrored(text: str, size: tuple[int, int] = published.SIZE) -> str:
    """Return the run lengths of a mask whose left and right are exchanged."""
    return rearranged(text, size, np.fliplr)


def moved(text: str, size: tuple[int, int] = published.SIZE, step: int = 20) -> str:
    """Return the run lengths of a mask that is moved to the right, and enters again at the left."""
    return rearranged(text, size, lambda pixels: np.roll(pixels, step, 1))


def turned(text: str, size: tuple[int, int] = published.SIZE) -> str:
    """Return the run lengths of a mask along its rows."""
    height, width = size
    runs = rle.runs_of(text, height * width)
    mask = np.repeat(np.arange(len(runs)) % 2, runs).reshape(width, height).T.reshape(-1)
    changes = np.flatnonzero(np.diff(mask, prepend=0))
    return rle.compress(np.diff([0, *changes.tolist(), mask.size]).tolist())


def cornered(text: str, size: tuple[int, int] = published.SIZE) -> str:
    """Return the run lengths of a mask that shrank to the corner of a square image."""

    def shrink(pixels: Any) -> Any:
        longest = max(size)
        square = np.pad(pixels, [(0, longest - side) for side in size])
        return square[np.ix_(*(np.arange(side) * longest // side for side in size))]

    return rearranged(text, size, shrink)


BGR, INVERTED, MIRRORED, NO_CLASS = (
    pictures(lambda image: image[..., ::-1].copy()),
    pictures(lambda image: (255 - image).astype(np.uint8)),
    pictures(lambda image: image[:, ::-1].copy()),
    pictures(lambda image: image * 0 + np.uint8(200)),
)
