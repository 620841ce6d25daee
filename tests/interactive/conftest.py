"""A small root of our own, for every test of sessions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from .scene import Clock, write_root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return one sequence of four frames with one object, and one set of scribbles."""
    made = tmp_path / "davis"
    for name in ("ImageSets/2017", "Annotations/480p/box", "Scribbles/box"):
        (made / name).mkdir(parents=True)
    for name, lines in (("val", "box\n"), ("train", ""), ("mine", "box\n")):
        (made / f"ImageSets/2017/{name}.txt").write_text(lines)
    for frame in range(4):
        mask = np.zeros((40, 60), np.uint8)
        mask[8:32, 5 + 4 * frame : 35 + 4 * frame] = 1
        Image.fromarray(mask).save(made / f"Annotations/480p/box/{frame:05d}.png")
    line = {"path": [[0.2, 0.5], [0.4, 0.5]], "object_id": 1, "start_time": 0, "end_time": 1}
    scribbles = {"scribbles": [[line], [], [], []], "sequence": "box", "annotated_frame": 0}
    (made / "Scribbles/box/001.json").write_text(json.dumps(scribbles))
    return made


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def davis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the two small sequences, the only dataset."""
    from segjudge.interactive import dataset  # this file is read by the worker's Python too

    monkeypatch.delenv("DATASET_DAVIS", raising=False)
    monkeypatch.setattr(dataset.Davis, "opened", dataset.Davis.opened)
    write_root(tmp_path / "davis")
    return tmp_path / "davis"
