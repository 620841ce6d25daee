"""Another order of a video's frames is named beside the score; frames of weak methods are not suspected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families.base.frame_order import FrameSamples, compare_orders, read_orders
from segjudge.evaluation_script.families.base.readings import judge_readings
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.evaluation_script.masks.stack import Array
from segjudge.masks.run_lengths import runs_of_mask
from tests.report.known_scenes import make_world
from tests.report.test_known_faults import BENCHMARKS

FRAMES = 12
ORDERS: dict[str, Callable[[Array], Array]] = {
    "it belonged to the frame before its own: ": lambda frames: np.concatenate((frames[:1], frames[:-1])),
    "it belonged to the frame after its own: ": lambda frames: np.concatenate((frames[1:], frames[-1:])),
    "the order of frames looks reversed: ": lambda frames: frames[::-1].copy(),
}


def hold(length: int) -> Callable[[Array], Array]:
    return lambda frames: frames[np.arange(len(frames)) // length * length]


def drift(speed: float) -> Callable[[Array], Array]:
    return lambda frames: np.stack([np.roll(frame, round(k * speed), 1) for k, frame in enumerate(frames)])


def delay(count: int) -> Callable[[Array], Array]:
    return lambda frames: np.concatenate((frames[:1].repeat(count, 0), frames[:-count]))


WEAK: dict[str, Callable[[Array], Array]] = {
    "right": lambda frames: frames,
    "empty": np.zeros_like,
    "full": np.ones_like,
    "noise": lambda frames: np.random.default_rng(1).integers(0, 2, frames.shape),
    "permuted pixels": lambda frames: np.random.default_rng(1).permuted(frames.reshape(-1)).reshape(frames.shape),
    "permuted frames": lambda frames: frames[np.random.default_rng(2).permutation(len(frames))],
    "half of the pixels": lambda frames: frames * (np.random.default_rng(3).random(frames.shape) < 0.5),
    "moved": lambda frames: np.roll(frames, (2, 3), (1, 2)),
    "moved back": lambda frames: np.roll(frames, (-3, -4), (1, 2)),
    "grown": lambda frames: np.maximum(frames, np.roll(frames, 3, 2)),
    "shrunk": lambda frames: np.minimum(frames, np.roll(frames, 3, 2)),
    "mirrored": lambda frames: frames[:, :, ::-1],
    "upside down": lambda frames: frames[:, ::-1],
    "union": lambda frames: frames.max(axis=0, keepdims=True).repeat(len(frames), 0),
    "blinking": lambda frames: frames * (np.arange(len(frames)) % 2)[:, None, None],
    "forth and back": lambda frames: np.concatenate((frames[: len(frames) // 2], frames[: len(frames) // 2][::-1])),
    "pairs exchanged": lambda frames: frames[np.arange(len(frames)) ^ 1],
    "smooth": lambda frames: np.maximum(frames, np.maximum(np.roll(frames, 1, 0), np.roll(frames, -1, 0))),
    "first half": lambda frames: frames * (np.arange(len(frames)) < len(frames) // 2)[:, None, None],
    **{f"frame {k} alone": (lambda frames, k=k: frames[k : k + 1].repeat(len(frames), 0)) for k in (0, 3, 6, 11)},
    **{f"every {length} frames": hold(length) for length in (2, 3, 4, 5, 6)},
    **{f"drift of {speed}": drift(speed) for speed in (-1, -0.5, -0.2, 0.2, 0.5, 1)},
    **{f"late by {count}": delay(count) for count in (2, 3, 4, 5)},
}  # type: ignore[misc]


def draw_objects(seed: int) -> Array:
    """Return masks (frames, height, width) of three objects that move."""
    generator = np.random.default_rng(seed)
    frames = np.zeros((FRAMES, 40, 50), np.int64)
    for _ in range(3):
        place, sides = generator.integers(2, 25, 2), generator.integers(6, 14, 2)
        for k, frame in enumerate(frames):
            (y, x) = np.maximum(place + k * np.array([1, 2]), 0)
            frame[y : y + sides[0], x : x + sides[1]] = 1
    return frames


def list_orders(truth: Array, predicted: Array) -> list[str]:
    return list(compare_orders(truth.reshape(FRAMES, -1), predicted.reshape(FRAMES, -1)))


@pytest.mark.parametrize("seed", range(3))
def test_an_order_explains_its_own_frames_alone(seed: int) -> None:
    truth, generator = draw_objects(seed), np.random.default_rng(seed)
    for change, name in zip(ORDERS.values(), ("before", "after", "reversed"), strict=True):
        rough = np.where(generator.random(truth.shape) < 0.1, 1 - truth, truth)
        assert list_orders(truth, change(truth)) == [name]
        assert list_orders(truth, change(rough)) == [name]


@pytest.mark.parametrize("method", WEAK)
def test_no_order_explains_weak_methods(method: str) -> None:
    for seed in range(3):
        truth, generator = draw_objects(seed), np.random.default_rng(seed)
        predicted = WEAK[method](truth)
        rough = np.where(generator.random(truth.shape) < 0.1, 1 - predicted, predicted)
        assert list_orders(truth, predicted) == list_orders(truth, rough) == []


@pytest.mark.parametrize("protocol", ["burst"])
def test_another_order_is_named_beside_the_score(protocol: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS[protocol]
    world = make_world(np.random.default_rng(3), 2, FRAMES, benchmark.kinds)
    for video in world:
        for k in range(FRAMES):
            video.labels[k] = np.roll(video.labels[k], (k, 2 * k), (0, 1))
    (tmp_path / "truth").mkdir()
    truth = benchmark.publish(world, tmp_path / "truth")
    for name, change in {"": lambda frames: frames, **ORDERS}.items():
        predicted = [video.copy() for video in world]
        for video in predicted:
            video.labels = change(video.labels)
        data = benchmark.send(predicted)
        results = tmp_path / f"results.{'zip' if data[:2] == b'PK' else 'json'}"
        results.write_bytes(data)
        lines = [line for line in score(results, truth, protocol).warnings if " look" in line]
        assert len(lines) == bool(name)
        assert all(f"{name.rstrip(': ')}: corrected, " in line for line in lines)
        assert all(" would be 1.00 instead of 0." in line and "(tried on 2 of 2 " in line for line in lines)
        assert [line for line in score(results, truth, protocol, jobs=2).warnings if " look" in line] == lines


@pytest.mark.parametrize(("frames", "objects"), [(12, 40), (100, 1), (100, 9)])
@pytest.mark.parametrize("name", ["", *ORDERS])
def test_orders_are_compared_in_long_videos_and_those_of_many_masks(name: str, frames: int, objects: int) -> None:
    pixels = np.zeros((frames, 60, 300), bool)
    for k, frame in enumerate(pixels):
        frame[10:40, 2 * k : 2 * k + 30] = True
    masks = [[compress(runs_of_mask(frame))] * objects for frame in pixels]
    order = ORDERS.get(name, np.copy)(np.arange(frames))
    samples = FrameSamples()
    samples.add_masks(masks, [masks[k] for k in order], (60, 300))
    assert [order in name for order in samples.compare()] == [True] * bool(name)


def test_a_video_of_too_many_masks_is_not_compared() -> None:
    masks = [[compress([100, 20, 780])] * 500] * 3
    samples = FrameSamples()
    samples.add_masks(masks, masks, (30, 30))
    assert samples.compare() == {}


@pytest.mark.parametrize(("scores", "videos", "named"), [
    ([(0.06, 0.94)], 3, False), ([(0.0, 1.0)], 3, True), ([(0.06, 0.94)], 1, True), ([(0.06, 0.94)] * 2, 3, True), ([(0.06, 0.94)] * 2, 6, True),
])  # fmt: skip
def test_one_of_several_videos_must_be_sure(scores: list[tuple[float, float]], videos: int, named: bool) -> None:
    """Objects of one video may be displaced in the direction in which they move."""
    units = [{"after": pair} for pair in scores]
    assert bool(judge_readings(units, videos, read_orders("sequence"), "STQ")) is named
