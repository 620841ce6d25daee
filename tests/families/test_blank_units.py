"""Units without a prediction are named if they are many, but not all; single ones are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families import PROTOCOLS
from tests.report.known_scenes import make_world
from tests.report.test_known_faults import BENCHMARKS

#: What is said of four of nine units.
SENTENCES = (
    "4 of 9 images with several classes have the same class in all scored places: ",
    "4 of 9 videos with several classes have the same class in all scored places: ",
    "4 of 9 scans with several classes have the same class in all scored places: ",
    "4 of 9 sequences with objects have no mask: ",
    "4 of 9 cases with a region have no predicted voxel: ",
    "4 of 9 images with cells have no predicted cell: ",
    "4 of 9 images with an object have no value above 128: ",
    "24 of 54 samples with a target have an empty mask: ",
)
#: Families that say nothing of such units, or something else.
WITHOUT = {"instances", "tracks", "phrases", "cells"}
PROTOCOLS_HERE = [name for name in BENCHMARKS if PROTOCOLS[name].family not in WITHOUT]


@pytest.mark.parametrize("count", [0, 1, 4, 9])
@pytest.mark.parametrize("protocol", PROTOCOLS_HERE)
def test_many_units_without_a_prediction_are_named(protocol: str, count: int, tmp_path: Path) -> None:
    benchmark = BENCHMARKS[protocol]
    world = make_world(np.random.default_rng(2), 9, benchmark.frames, benchmark.kinds)
    predicted = [video.copy() for video in world]
    for video in predicted[:count]:
        video.labels[:] = 0
    (tmp_path / "truth").mkdir()
    truth, data = benchmark.publish(world, tmp_path / "truth"), benchmark.send(predicted)
    results = tmp_path / ("results.zip" if data[:2] == b"PK" else "results.jsonl" if b"\n" in data else "results.json")
    results.write_bytes(data)
    lines = score(results, truth, protocol).warnings
    said = [line.partition(": ")[2] for line in lines if "the results of the whole split" in line]
    assert len(said) == (count == 4)
    assert all(line.startswith(SENTENCES) for line in said)
    assert all(line.endswith(" more. Check that the results of the whole split were written") for line in said)
    assert score(results, truth, protocol, jobs=2).warnings == lines
