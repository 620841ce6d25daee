"""Labels of another coding are scored unchanged, with a line that names the likely coding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from segjudge import SubmissionError, score
from tests import published
from tests.builders import png, zipped


def test_files_say_it_too_and_strict_refuses_nobody_for_a_guess(tmp_path: Path) -> None:
    truth = published.published("vspw", tmp_path)
    files = {f"{name}/{k:08d}.png": png(published.labels(name, k) + np.uint8(6)) for name, k in published.frames()}
    (tmp_path / "results.zip").write_bytes(zipped(files))
    scores = score(tmp_path / "results.zip", truth, "vspw", strict=True)
    assert any(
        line.startswith("val: labels look 1 too high: corrected, mIoU would be 1.00") for line in scores.warnings
    )


def test_a_colour_picture_is_no_map_of_classes(tmp_path: Path) -> None:
    truth = published.published("vspw", tmp_path)
    picture = published.labels("swan", 0)[:, :, None] + np.array([99, 98, 97], np.uint8)
    files = {f"{name}/{k:08d}.png": png(picture) for name, k in published.frames()}
    (tmp_path / "results.zip").write_bytes(zipped(files))
    with pytest.raises(SubmissionError, match="(?s)2 problems.*swan: each of 8 files .* is a colour image whose pixel"):
        score(tmp_path / "results.zip", truth, "vspw")
