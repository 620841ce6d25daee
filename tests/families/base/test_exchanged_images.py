"""Maps of exchanged images are named beside the score."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from segjudge import score
from tests.families.choices import IMAGE_MAPS, IMAGE_SEGMENTS
from tests.report.known_scenes import make_world
from tests.report.test_known_faults import BENCHMARKS

#: How maps are exchanged, and what is said.
EXCHANGES = {
    "pairs": (lambda number: number ^ 1, "looks exchanged with the one beside it, in pairs: corrected, "),
    "backwards": (lambda number: 5 - number, "looks as if the order of images were reversed: corrected, "),
    "none": (lambda number: number, ""),
    "all the same": (lambda _: 0, ""),
    "the second next": (lambda number: (number + 2) % 6, ""),
}


@pytest.mark.parametrize("protocol", [IMAGE_SEGMENTS, IMAGE_MAPS])
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_exchanged_images_are_named(exchange: str, protocol: str, tmp_path: Path) -> None:
    benchmark, (source_of, message) = BENCHMARKS[protocol], EXCHANGES[exchange]
    world = make_world(np.random.default_rng(3), 6, 1, benchmark.kinds)
    for number, image in enumerate(world):
        image.labels[:] = np.roll(image.labels, (23 * number, 31 * number), (1, 2))
    (tmp_path / "truth").mkdir()
    truth = benchmark.publish(world, tmp_path / "truth")
    predicted = [image.copy() for image in world]
    for number, image in enumerate(predicted):
        image.labels[:] = world[source_of(number)].labels
    (tmp_path / "results.zip").write_bytes(benchmark.send(predicted))
    lines = [line for line in score(tmp_path / "results.zip", truth, protocol).warnings if "looks" in line]
    assert len(lines) == bool(message)
    assert all(message in line and "would be 1.00 instead of 0." in line for line in lines)
    assert [
        line for line in score(tmp_path / "results.zip", truth, protocol, jobs=2).warnings if "looks" in line
    ] == lines
