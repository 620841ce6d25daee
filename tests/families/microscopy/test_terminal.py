"""A terminal shows few of many rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import segjudge
from tests.builders import png, zipped


def test_of_many_images_the_lowest_are_shown_and_by_which_metric(tmp_path: Path) -> None:
    labels = np.zeros((8, 8), np.uint8)
    labels[:2], labels[4:6] = 1, 2
    halves, names = np.where(labels == 1, labels, 0), [f"{number:03d}" for number in range(44)]
    (tmp_path / "truth").mkdir()
    for name in names:
        (tmp_path / f"truth/{name}_masks.png").write_bytes(png(labels))
    worst = names[7::9]
    results = tmp_path / "results.zip"
    results.write_bytes(zipped({f"{name}_masks.png": png(halves if name in worst else labels) for name in names}))
    text = repr(segjudge.score(results, tmp_path / "truth", "cellpose-ap"))
    assert "(the 40 lowest of 44 images by AP50; --json holds all)" in text
    rows = [line.split()[0] for line in text.splitlines() if line[:3].isdigit()]
    assert (rows[: len(worst)], len(rows)) == (worst, 40)
