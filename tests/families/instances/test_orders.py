"""Masks of videos in another order of frames are named at every door; those of weak trackers are not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import FrameAccumulator, score
from segjudge.evaluation_script.families.instances import orders
from segjudge.evaluation_script.masks.run_lengths import MaskTexts, compress
from segjudge.masks.run_lengths import runs_of_mask
from tests.published import rle

HEIGHT, WIDTH, FRAMES, VIDEOS = 48, 64, 12, 6
Tube = list[Any]


def draw(generator: np.random.Generator) -> Tube:
    """Return the masks of an object that moves."""
    (y, x), (down, across) = generator.integers(4, 24, 2), generator.integers(6, 14, 2)
    speed = generator.choice([-2, -1, 1, 2], 2)
    masks = []
    for frame in range(FRAMES):
        mask = np.zeros((HEIGHT, WIDTH), np.uint8)
        top, left = y + frame * speed[0] // 2, x + frame * speed[1]
        mask[max(0, top) : max(0, top + down), max(0, left) : max(0, left + across)] = 1
        masks.append(mask)
    return masks


def make_videos() -> dict[int, list[Tube]]:
    generator = np.random.default_rng(3)
    return {video: [draw(generator) for _ in range(2)] for video in range(1, VIDEOS + 1)}


def roughen(tube: Tube, seed: int = 0) -> Tube:
    generator = np.random.default_rng(seed)
    return [np.where(generator.random(mask.shape) < 0.05, 0, mask).astype(np.uint8) for mask in tube]


def late(tube: Tube) -> Tube:
    return [tube[0], *tube[:-1]]


def early(tube: Tube) -> Tube:
    return [*tube[1:], tube[-1]]


SLIPS: dict[str, Callable[[Tube], Tube]] = {
    "each mask looks as if it belonged to the frame before its own: ": late,
    "each mask looks as if it belonged to the frame after its own: ": early,
    "the order of frames looks reversed: ": lambda tube: tube[::-1],
}


def test_long_masks_are_painted_as_their_runs_say() -> None:
    generator = np.random.default_rng(5)
    pixels = generator.random(200_003) < 0.4
    text, places = compress(runs_of_mask(pixels[None])), generator.integers(0, pixels.size, (3, 500))
    assert len(text) > orders._LONG_TEXT
    assert (orders.load_painter(text, pixels.size)(places) == pixels[places]).all()


def test_few_long_masks_are_compared() -> None:
    stops = np.arange(1, 5) << 20
    records = np.array([1, 0, 1, 1]), MaskTexts(b"", stops - (1 << 20), stops)
    scores = np.array([0.2, 1.0, 0.9, 0.8])
    assert orders.choose_records(records, scores, 1, orders._MOST_PAINTED).tolist() == [2, 3]
    assert not len(orders.choose_records(records, scores, 1, orders._MOST_PAINTED + 1))
    assert not len(orders.choose_records(records, scores, 2, 1))


def drift(tube: Tube) -> Tube:
    return [np.roll(mask, frame // 3, axis=1) for frame, mask in enumerate(tube)]


def blink(tube: Tube) -> Tube:
    return [mask if frame % 2 else np.zeros_like(mask) for frame, mask in enumerate(tube)]


WEAK: dict[str, Callable[[Tube], Tube]] = {
    "right": lambda tube: tube,
    "first frame": lambda tube: [tube[0]] * FRAMES,
    "last frame": lambda tube: [tube[-1]] * FRAMES,
    "middle frame": lambda tube: [tube[FRAMES // 2]] * FRAMES,
    "every second": lambda tube: [tube[frame // 2 * 2] for frame in range(FRAMES)],
    "every third": lambda tube: [tube[frame // 3 * 3] for frame in range(FRAMES)],
    "every fifth": lambda tube: [tube[frame // 5 * 5] for frame in range(FRAMES)],
    "three late": lambda tube: [*tube[:1] * 3, *tube[:-3]],
    "drift": drift,
    "drift back": lambda tube: [np.roll(mask, -(frame // 3), axis=1) for frame, mask in enumerate(tube)],
    "blink": blink,
    "shifted": lambda tube: [np.roll(mask, (2, 3), (0, 1)) for mask in tube],
    "grown": lambda tube: [np.maximum(mask, np.roll(mask, 3, 1)) for mask in tube],
    "shrunk": lambda tube: [np.minimum(mask, np.roll(mask, 3, 1)) for mask in tube],
    "union": lambda tube: [np.maximum.reduce(tube)] * FRAMES,
    "half": lambda tube: [*tube[: FRAMES // 2], *tube[FRAMES // 2 - 1 :: -1]],
    "everything": lambda tube: [np.ones_like(mask) for mask in tube],
}


def pack(tube: Tube) -> list[Any]:
    return [rle(mask) if mask.any() else None for mask in tube]


def write(folder: Path, change: Callable[[Tube], Tube]) -> tuple[Path, Path]:
    """Write a truth and records."""
    videos, shape = make_videos(), {"height": HEIGHT, "width": WIDTH, "length": FRAMES}
    document: dict[str, Any] = {"videos": [{"id": video, **shape} for video in videos], "annotations": []}
    document["categories"] = [{"id": number, "name": f"c{number}"} for number in (1, 2)]
    records = []
    for video, tubes in videos.items():
        for category, tube in enumerate(tubes, 1):
            fields = {"video_id": video, "category_id": category}
            areas = [int(mask.sum()) for mask in tube]
            number = len(document["annotations"]) + 1
            document["annotations"].append({
                "id": number, "iscrowd": 0, "segmentations": pack(tube), "areas": areas, **fields,
            })  # fmt: skip
            sent = roughen(change(tube), number)
            records.append({**fields, "score": 0.9 - number / 100, "segmentations": pack(sent)})
    folder.mkdir(exist_ok=True)
    (folder / "truth.json").write_text(json.dumps(document))
    (folder / "results.json").write_text(json.dumps(records))
    return folder / "truth.json", folder / "results.json"


def warn_in_memory(truth: Path, results: Path, protocol: str) -> list[str]:
    document, records = json.loads(truth.read_text()), json.loads(results.read_text())
    accumulator = FrameAccumulator(protocol, categories=document["categories"])
    for video in document["videos"]:
        own, true = (
            [row for row in rows if row["video_id"] == video["id"]] for rows in (records, document["annotations"])
        )
        accumulator.update(str(video["id"]), None, own, true)
    return accumulator.compute().warnings


@pytest.mark.parametrize("protocol", ["ovis", "youtube-vis-2019"])
@pytest.mark.parametrize("slip", SLIPS)
def test_another_order_is_named_at_every_door(slip: str, protocol: str, tmp_path: Path) -> None:
    truth, results = write(tmp_path, SLIPS[slip])
    lines = score(results, truth, protocol).warnings
    (line,) = [line for line in lines if "instances tried" in line]
    assert slip in line
    assert " of 12 instances tried fit the truth better in " in line
    assert score(results, truth, protocol, jobs=2).warnings == lines
    in_memory = warn_in_memory(truth, results, protocol)
    assert [warning.partition(": ")[2] for warning in in_memory if "tried" in warning] == [line.partition(": ")[2]]


def draw_slowly(generator: np.random.Generator) -> Tube:
    """Return the masks of a large object that moves by a pixel in three frames."""
    y, x = generator.integers(2, 10, 2)
    masks = np.zeros((FRAMES, HEIGHT, WIDTH), np.uint8)
    for frame, mask in enumerate(masks):
        mask[y : y + 30, x + frame // 3 : x + frame // 3 + 40] = 1
    return list(masks)


def test_slow_objects_in_short_videos_tell_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "draw", draw_slowly)
    truth, results = write(tmp_path, late)
    assert any(" belonged to the frame before its own: " in line for line in score(results, truth, "ovis").warnings)


PLACES: dict[str, Callable[[Tube], Tube]] = {
    "masks look encoded row by row: ": lambda tube: [
        np.ascontiguousarray(mask).reshape(WIDTH, HEIGHT).T.copy() for mask in tube
    ],
    "masks look mirrored, with left and right exchanged: ": lambda tube: [mask[:, ::-1] for mask in tube],
    "masks look upside down: ": lambda tube: [mask[::-1] for mask in tube],
    "masks look rotated by 180 degrees: ": lambda tube: [mask[::-1, ::-1] for mask in tube],
}


@pytest.mark.parametrize("slip", PLACES)
def test_another_order_of_pixels_is_named(slip: str, tmp_path: Path) -> None:
    truth, results = write(tmp_path, PLACES[slip])
    lines = score(results, truth, "youtube-vis-2019").warnings
    (line,) = [line for line in lines if "instances tried" in line]
    assert f"{slip}corrected, 12 of 12 instances tried would be found instead of {int('down' in slip)}. " in line


@pytest.mark.parametrize("method", WEAK)
def test_weak_trackers_are_not_suspected(method: str, tmp_path: Path) -> None:
    truth, results = write(tmp_path, WEAK[method])
    lines = [line for line in score(results, truth, "ovis").warnings if "tried" in line]
    assert [line for line in lines if method != "shifted" or " look moved by " not in line] == []


@pytest.mark.parametrize(
    ("order", "counts", "slip"),
    [
        (3, [(2, 2), (2, 1), (2, 2)], "the order of frames looks reversed: 5 of 6 instances tried fit"),
        (3, [(2, 2), (2, 1)], ""),
        (1, [(2, 2), (2, 1), (2, 2)], ""),  # as of a method that lags
        (1, [(2, 2), (2, 2)], "each mask looks as if it belonged to the frame before its own: 4 of 4 instances"),
    ],
)
def test_most_videos_tell_that_frames_are_reversed(order: int, counts: list[tuple[int, int]], slip: str) -> None:
    videos = np.zeros((len(counts), 4), np.int64)
    videos[:, [0, order]] = counts
    lines = orders.judge_orders(videos)
    assert len(lines) == bool(slip)
    assert all(line.startswith(slip) for line in lines)
