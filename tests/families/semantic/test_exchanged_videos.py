"""Two videos whose maps are exchanged are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import segjudge
from tests.report.known_scenes import make_world
from tests.report.test_known_faults import BENCHMARKS


def test_two_exchanged_videos_are_named(tmp_path: Path) -> None:
    benchmark = BENCHMARKS["vspw"]
    world = make_world(np.random.default_rng(3), 4, benchmark.frames, benchmark.kinds)
    for number, video in enumerate(world):  # otherwise they are too similar
        video.labels[:] = np.roll(video.labels, 31 * number, axis=2)
    (tmp_path / "truth").mkdir()
    truth = benchmark.publish(world, tmp_path / "truth")
    first, second = world[0].labels.copy(), world[2].labels.copy()
    world[0].labels[:], world[2].labels[:] = second, first
    world[0].classes, world[2].classes = world[2].classes, world[0].classes
    results = tmp_path / "results.zip"
    results.write_bytes(benchmark.send(world))
    named = f"some look exchanged, those of {world[0].name} fit {world[2].name}, "
    assert any(named in line for line in segjudge.score(results, truth, "vspw").warnings)
