"""Slips of whole sequences are named next to the score and in the verdict, and only if they are certain."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.cli import main
from segjudge.masks.compression import label_png
from segjudge.masks.demo import make_scene
from tests.builders import ROOT, written, zipped
from tests.families.codings import TRUTH, list_warnings
from tests.report.test_known_faults import read_verdict

Videos = dict[str, list[np.ndarray[Any, Any]]]
FRAMES = 16


@pytest.fixture(scope="module")
def videos() -> Videos:
    """Return videos whose objects move, at different places in each."""
    made = (make_scene(name, seed, objects=2, frames=FRAMES) for seed, name in enumerate(("bird", "dog", "goat"), 112))
    return {video.name: [np.roll(video.labels(k), (k, 2 * k), (0, 1)) for k in range(FRAMES)] for video in made}


def score(truth: Videos, prediction: Videos, folder: Path, protocol: str = "davis2017") -> segjudge.Scores:
    sides = [
        {f"{name}/{k:05d}.png": label_png(frame) for name, frames in side.items() for k, frame in enumerate(frames)}
        for side in (truth, prediction)
    ]
    root = written(folder / "root", {f"Annotations/480p/{name}": data for name, data in sides[0].items()})
    (folder / "results.zip").write_bytes(zipped(sides[1]))
    return segjudge.score(folder / "results.zip", root, protocol)


def exchange(videos: Videos) -> Videos:
    return {**videos, "bird": videos["dog"], "dog": videos["bird"]}


def mirror(videos: Videos) -> Videos:
    return {name: [frame[:, ::-1] for frame in frames] for name, frames in videos.items()}


def fade(videos: Videos) -> Videos:
    """Return the probability of any object as grey levels, that of a method which is unsure near borders."""
    y, x = np.mgrid[-1:1:120j, -1:1:160j]
    return {
        name: [np.uint8(np.clip(255 * np.exp(-((x - k / 99) ** 2 + y**2)), 0, 255)) for k in range(len(frames))]
        for name, frames in videos.items()
    }


def test_grey_maps_are_named_instead_of_object_numbers(videos: Videos, tmp_path: Path) -> None:
    (line,) = [line for line in score(videos, fade(videos), tmp_path).warnings if "grey" in line]
    grey = "val: masks look like grey maps, such as probabilities: apply a threshold, and write each object's own label"
    assert line.startswith(grey)


def test_many_object_numbers_are_no_grey_levels(videos: Videos, tmp_path: Path) -> None:
    """A method that numbers all regions of a frame begins with 1."""
    regions = np.add.outer(16 * (np.arange(120) // 8), np.arange(160) // 10 + 1).astype(np.uint8)
    warnings = score(videos, {name: [regions] * len(frames) for name, frames in videos.items()}, tmp_path).warnings
    assert not any("grey" in line for line in warnings)


def reverse(videos: Videos) -> Videos:
    return {name: frames[::-1] for name, frames in videos.items()}


SLIPS_OF_SCORES = {
    mirror: "masks look mirrored, with left and right exchanged",
    reverse: "the order of frames looks reversed",
    exchange: "masks: some look exchanged, those of bird fit dog, those of dog fit bird",
}


@pytest.mark.parametrize("protocol", ["davis2017", "davis2016", "davis2017-unsupervised"])
@pytest.mark.parametrize("slip", SLIPS_OF_SCORES)
def test_a_slip_is_named_next_to_the_score(
    slip: Callable[[Videos], Videos], protocol: str, videos: Videos, tmp_path: Path
) -> None:
    lines = score(videos, slip(videos), tmp_path, protocol).warnings
    start = f"val: {SLIPS_OF_SCORES[slip]}: corrected, the IoU over all pixels would be "
    assert [line.startswith(start) for line in lines if "corrected" in line] == [True]


def test_the_verdict_begins_with_the_slip(videos: Videos, tmp_path: Path) -> None:
    _, slip, cause, *_ = read_verdict(score(videos, mirror(videos), tmp_path))
    assert slip.startswith("Masks look mirrored, with left and right exchanged: corrected, ")
    assert slip.endswith(" before you save.")
    assert "missed" in cause or "inexact" in cause


def test_objects_of_which_none_is_where_it_should_be_are_named() -> None:
    truth = np.where(TRUTH == 255, 0, TRUTH)
    line = "video: no mask overlaps the object with its number"
    assert list_warnings(np.where(truth > 1, truth - 1, 0), truth, "davis2017") == [line]
    assert list_warnings(np.where(truth > 0, truth % 5 + 1, 0), truth, "davis2016") == []


def test_where_a_number_is_no_mean_over_frames_the_page_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, page = str(ROOT / "examples/sequences-dev/lagging.zip"), tmp_path / "out.html"
    on = ["--truth", str(ROOT / "annotations/sequences-dev.zip"), "--protocol", "mosev2"]
    assert main(["report", results, *on, "--out", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "the kinds sum to 1 − J&amp;F as a plain mean over frames" in text
    assert len(re.findall(r"<b>([\d.]+)</b></dt>", text)) == 9
    assert main(["compare", f"a={results}", f"b={results}", *on, "--kinds"]) == 2
    assert "failures of mosev2 have no kinds" in capsys.readouterr().err
