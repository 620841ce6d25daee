"""The repository's small demo data equal the output of `segjudge demo`, its photographs that of `python -m demo`."""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.masks import DEMO_SEED
from segjudge.masks.demo import make_scene
from segjudge.starting.demo import make
from tests.builders import ROOT
from tests.demo_challenge import CODENAMES, SAMPLES


def content(path: Path) -> Any:
    """Return the content of a file, regardless of the library that deflated it."""
    if path.suffix == ".json":
        return json.loads(path.read_text())
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return {
        name: np.array(Image.open(io.BytesIO(data))).tolist() if name.endswith(".png") else data
        for name, data in members.items()
    }


@pytest.mark.long
def test_the_samples_are_what_the_seed_makes(tmp_path: Path) -> None:
    made = [Path(path) for path in make(str(tmp_path), DEMO_SEED)]

    kept = {
        path.relative_to(ROOT)
        for folder in ("annotations", "examples")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not re.match("photo-|agents$|interactive$", path.relative_to(ROOT).parts[1])
    }
    assert {path.relative_to(tmp_path) for path in made} == kept
    for path in made:
        assert content(path) == content(ROOT / path.relative_to(tmp_path)), path.name
    assert sum(path.stat().st_size for path in made) < 2_000_000


def test_every_phase_has_samples() -> None:
    assert all(len(paths) >= 3 for paths in SAMPLES.values())
    assert {path.name for path in (ROOT / "examples").iterdir()} == {*CODENAMES, "agents", "interactive"}


@pytest.mark.long
def test_another_seed_makes_other_data(tmp_path: Path) -> None:
    make(str(tmp_path), DEMO_SEED + 1)
    name = "examples/sequences-dev/strong.zip"
    assert content(tmp_path / name) != content(ROOT / name)


def test_pictures_of_a_scene_are_the_same_everywhere() -> None:
    video = make_scene("sheet", DEMO_SEED, objects=3, frames=6, hard=True)

    assert [zlib.crc32(video.picture(frame).tobytes()) for frame in (0, 5)] == [115630377, 128770512]
