"""The demo's files equal those of this repository."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from segjudge.starting.demo import make
from tests.builders import ROOT


@pytest.mark.long
def test_the_demo_is_made_as_it_is_kept_here(tmp_path: Path) -> None:
    for path in (
        "annotations/sequences-dev.zip",
        "annotations/instances-dev.zip",
        "examples/sequences-dev/strong.zip",
        "examples/instances-dev/sharp.json",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"what an earlier version left")
    paths = [Path(path) for path in make(str(tmp_path))]
    assert sorted(paths) == sorted(path for path in tmp_path.rglob("*") if path.is_file())
    for path in paths:
        assert _read(path) == _read(ROOT / path.relative_to(tmp_path)), path


def _read(path: Path) -> dict[str, bytes]:
    """Return the content of a file, regardless of the zlib that packed it."""
    if path.suffix != ".zip":
        return {"": path.read_bytes()}
    with zipfile.ZipFile(path) as archive:
        return {name: _read_member(name, archive.read(name)) for name in archive.namelist()}


def _read_member(name: str, data: bytes) -> bytes:
    if not name.endswith(".png"):
        return data
    with Image.open(io.BytesIO(data)) as image:
        return image.mode.encode() + bytes(image.getpalette() or ()) + np.asarray(image).tobytes()
