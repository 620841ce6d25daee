"""Masks of another sequence and numbers of their own are named next to the score; poor masks are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.families.sequences import exchanged
from segjudge.masks.compression import label_png
from segjudge.masks.run_lengths import encode_labels
from tests.builders import written, zipped

Videos = dict[str, list[np.ndarray[Any, Any]]]
FRAMES, HEIGHT, WIDTH = 6, 60, 80


def draw_videos(random: np.random.Generator, count: int = 4, objects: int = 3) -> Videos:
    """Return videos of disks that move."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    videos: Videos = {}
    for name in ("bird", "cat", "dog", "goat", "hen", "ibis")[:count]:
        frames = [np.zeros((HEIGHT, WIDTH), np.uint8) for _ in range(FRAMES)]
        for number in range(1, objects + 1):
            (y, x), speed, radius = random.uniform(8, (52, 72)), random.uniform(-2, 2, 2), random.uniform(5, 12)
            for k, frame in enumerate(frames):
                frame[(rows - y - speed[0] * k) ** 2 + (columns - x - speed[1] * k) ** 2 < radius**2] = number
        videos[name] = frames
    return videos


def list_lines(
    truth: Videos, prediction: Videos, folder: Path, protocol: str = "davis2017", jobs: int = 1
) -> list[str]:
    sides = [
        {f"{name}/{k:05d}.png": label_png(frame) for name, frames in side.items() for k, frame in enumerate(frames)}
        for side in (truth, prediction)
    ]
    root = written(folder / "root", {f"Annotations/480p/{name}": data for name, data in sides[0].items()})
    folder.mkdir(exist_ok=True)
    (folder / "results.zip").write_bytes(zipped(sides[1]))
    lines = segjudge.score(folder / "results.zip", root, protocol, jobs=jobs).warnings
    return [line for line in lines if "not in the truth and w" not in line and "more like this" not in line]


def relabel(numbers: list[int]) -> Callable[[Videos], Videos]:
    table = np.array([*numbers, *range(100, 250)], np.uint8)
    return lambda videos: {name: [table[frame] for frame in frames] for name, frames in videos.items()}


def move(*sources: str) -> Callable[[Videos], Videos]:
    return lambda videos: {name: videos[source] for name, source in zip(videos, sources, strict=True)}


SLIPS: dict[str, tuple[Callable[[Videos], Videos], str]] = {
    "two": (move("cat", "bird", "dog", "goat"), "masks look exchanged among sequences, those of bird fit cat, those of cat fit bird: "),
    "all": (move("cat", "dog", "goat", "bird"), "those of bird fit cat, those of cat fit dog, those of dog fit goat and 1 more: "),
    "a copy": (move("bird", "cat", "dog", "bird"), "masks look exchanged among sequences, those of goat fit bird: "),
    "times 40": (relabel([0, 40, 80, 120]), "object numbers look like others, 40 for 1, 80 for 2, 120 for 3: corrected, "),
    "grey": (relabel([0, 38, 75, 113]), "object numbers look like others, 38 for 1, 75 for 2, 113 for 3: corrected, "),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_named_alone(slip: str, tmp_path: Path) -> None:
    """No other line guesses at numbers."""
    change, message = SLIPS[slip]
    videos = draw_videos(np.random.default_rng(2))
    (line,) = list_lines(videos, change(videos), tmp_path)
    assert message in line
    assert " would be 1.00 instead of 0." in line
    assert list_lines(videos, change(videos), tmp_path, jobs=2) == [line]


@pytest.mark.parametrize("protocol", ["davis2016", "davis2017-unsupervised", "vost", "mosev2"])
def test_exchanged_sequences_are_named_in_other_protocols(protocol: str, tmp_path: Path) -> None:
    change, message = SLIPS["two"]
    videos = draw_videos(np.random.default_rng(2))
    assert sum(message in line for line in list_lines(videos, change(videos), tmp_path, protocol)) == 1


def spoil(videos: Videos, random: np.random.Generator) -> Videos:
    """Return masks that are shifted, frayed, confused or lost, as those of a poor method."""
    reach, share = int(random.integers(0, 25)), random.uniform(0, 0.6)
    changed: Videos = {}
    for name, frames in videos.items():
        step, lost = random.integers(-reach, reach + 1, 2), int(random.integers(0, 5))
        order = np.append(0, random.permutation(3) + 1) if random.random() < 0.3 else np.arange(4)
        changed[name] = [
            order[np.where((random.random(frame.shape) < share) | (frame == lost), 0, np.roll(frame, step, (0, 1)))]
            for frame in frames
        ]
    return changed


def test_poor_masks_are_not_suspected(tmp_path: Path) -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        videos = draw_videos(random, int(random.integers(2, 7)))
        poor = {name: [frame.astype(np.uint8) for frame in frames] for name, frames in spoil(videos, random).items()}
        lines = list_lines(videos, poor, tmp_path / str(seed))
        assert not [line for line in lines if "exchanged among" in line or "like others" in line], seed


def test_of_many_sequences_some_are_compared_with_those_around_them() -> None:
    few, many = (exchanged.SequenceSamples([None] * count, None) for count in (32, 33))  # type: ignore[list-item,arg-type]
    assert few._chosen == frozenset(range(32))
    assert len(many._chosen) == 11


def test_numbers_that_mean_different_objects_are_no_other_numbering() -> None:
    scores = [{"numbers 38>1 75>2": (0.0, 0.9)}, {"numbers 38>2 75>1": (0.0, 0.9)}]
    assert exchanged.judge_exchanged(["a", "b"], scores) == []
    assert exchanged.judge_exchanged(["a", "b"], [*scores[:1], {}]) == []


def test_one_sequence_whose_masks_two_others_hold_is_no_exchange() -> None:
    scores = [{"masks of c": (0.0, 0.9)}, {"masks of c": (0.0, 0.9)}, {}]
    assert exchanged.judge_exchanged(["a", "b", "c"], scores) == []


def test_a_single_sequence_needs_more_evidence_than_two() -> None:
    near, sure = {"masks of b": (0.1, 0.6)}, {"masks of b": (0.1, 0.8)}
    assert exchanged.judge_exchanged(["a", "b"], [near, {}]) == []
    assert len(exchanged.judge_exchanged(["a", "b"], [sure, {}])) == 1
    assert len(exchanged.judge_exchanged(["a", "b"], [near, {"masks of a": (0.1, 0.6)}])) == 1


def write_expressions(videos: Videos, folder: Path) -> tuple[Path, bytes]:
    """Write a truth with an expression for one object, 0, and return its masks as an upload."""
    listing: dict[str, Any] = {}
    masks: dict[str, list[Any]] = {}
    files: dict[str, bytes] = {}
    for number, (name, frames) in enumerate(videos.items()):
        flags = [(frame == 1).astype(np.uint8) for frame in frames]
        files |= {f"{name}/0/{k:05d}.png": label_png(255 * mask) for k, mask in enumerate(flags)}
        masks[str(number)] = [_encode(mask) if mask.any() else None for mask in flags]
        expressions = {"0": {"exp": "", "obj_id": [number], "anno_id": [number]}}
        listing[name] = {"expressions": expressions, "frames": [f"{k:05d}" for k in range(FRAMES)]}
    documents = {"meta_expressions.json": {"videos": listing}, "mask_dict.json": masks}
    return written(folder / "valid_u", documents), zipped(files)


def _encode(mask: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {"size": [HEIGHT, WIDTH], "counts": encode_labels(mask)[1]}


@pytest.mark.parametrize("slip", ["two", ""])
@pytest.mark.parametrize("protocol", ["mevis", "mevis-official"])
def test_exchanged_videos_of_expressions_are_named(slip: str, protocol: str, tmp_path: Path) -> None:
    """The first expression, 0, has masks of its own, unlike the background 0 of maps."""
    videos = draw_videos(np.random.default_rng(2))
    truth, _ = write_expressions(videos, tmp_path)
    _, sent = write_expressions(SLIPS[slip][0](videos) if slip else videos, tmp_path / "other")
    (tmp_path / "results.zip").write_bytes(sent)
    lines = segjudge.score(tmp_path / "results.zip", truth, protocol).warnings
    assert [SLIPS["two"][1] in line for line in lines] == [True] * bool(slip)


@pytest.mark.parametrize(("change", "named"), [(lambda frame: frame > 0, True), (lambda frame: frame == 1, False)])
def test_one_number_for_all_objects_is_named_but_not_a_displaced_object_alone(
    change: Callable[[Any], Any], named: bool, tmp_path: Path
) -> None:
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    frame = ((rows - 20) ** 2 + (columns - 20) ** 2 < 100) + 2 * ((rows - 20) ** 2 + (columns - 60) ** 2 < 49)
    truth = {name: [frame.astype(np.uint8)] * FRAMES for name in ("bird", "cat", "dog")}
    sent = {name: [np.roll(change(frame), 5, 0).astype(np.uint8)] * FRAMES for name in truth}
    lines = list_lines(truth, sent, tmp_path)
    assert any("with several objects, only one object has a mask" in line for line in lines) == named
    assert list_lines(truth, sent, tmp_path, jobs=2) == lines
