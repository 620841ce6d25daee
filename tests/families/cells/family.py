"""The data of cells for the tests of all families; `tests/families/contract.py` defines each name."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any, Callable

from segjudge.evaluation_script.families.cells.protocols import CELL_PROTOCOLS
from segjudge.evaluation_script.masks import tiff
from segjudge.masks.tiff import encode_tiff
from tests import published
from tests.builders import written, zipped
from tests.families.slips import Slip
from tests.published import FRAMES, frames


def cell_files(folder: str, marker: str, text: str) -> dict[str, Any]:
    """Return both videos as sequences of cells."""
    masks = {
        f"{name}_{folder}/{marker}{k:03d}.tif": encode_tiff(published.labels(name, k)[None]) for name, k in frames()
    }
    tracks = {f"{name}_{folder}/{text}": f"1 0 {FRAMES - 1} 0\n2 0 {FRAMES - 1} 0\n" for name in published.VIDEOS}
    return {**masks, **tracks}


def cells(folder: Path) -> Path:
    outlines = {
        f"{name}_GT/SEG/man_seg003.tif": encode_tiff(published.labels(name, 3)[None]) for name in published.VIDEOS
    }
    return written(folder / "dataset", {**cell_files("GT", "TRA/man_track", "TRA/man_track.txt"), **outlines})


def send_cells(_truth: Path) -> bytes:
    files = cell_files("RES", "mask", "res_track.txt")
    return zipped({name: data.encode() if isinstance(data, str) else data for name, data in files.items()})


PUBLISHED = dict.fromkeys(CELL_PROTOCOLS, cells)
UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    "ctc": (send_cells, {"OP_CTB": 1, "LNK": 1, "CHOTA": 1}),
    "ctc-official": (send_cells, {"OP_CTB": 1, "BC(0)": 0, "HOTA": 1}),
}
UPLOAD_OF_OTHERS = ""
REFUSALS = dict.fromkeys(
    UPLOADS, "Send one zip with 01_RES/mask000.tif and so on, and 01_RES/res_track.txt, for each sequence"
)


def change_masks(change: Callable[[Any], Any]) -> Slip:
    """Change the labels of each TIFF of a zip."""

    def slip(data: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        size = tiff.size_of(next(member for name, member in members.items() if name.endswith(".tif")))[1:]
        return zipped({
            name: encode_tiff(change(tiff.read_labels(member, size))[None]) if name.endswith(".tif") else member
            for name, member in members.items()
        })  # fmt: skip

    return slip


SLIPS: dict[str, tuple[str, Slip, str]] = {
    "mirrored frames": ("ctc", change_masks(lambda cells: cells[:, ::-1].copy()), "cells look mirrored, with left and right exchanged"),
    "turned frames": ("ctc-official", change_masks(lambda cells: cells[::-1, ::-1].copy()), "cells look rotated by 180 degrees"),
}  # fmt: skip
OTHER_UNITS: dict[str, list[str]] = {"ctc": ["02_GT", "03_GT"]}
BOARD_LABELS: dict[str, tuple[str, ...]] = {"ctc": ("OP_CTB", "OP_CSB", "SEG", "DET", "TRA", "LNK")}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "pages": ("ctc",),
    "mounts": ("ctc",),
    "surplus": ("ctc",),
    "machines": ("ctc",),
    "wrong roots": ("ctc",),
}
SAMPLE_SCORES = {
    "ctc": (0.9299979718940937, 0.5485215513847438),
    "ctc-official": (0.9299979718940937, 0.5485215513847438),
}
