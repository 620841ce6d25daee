"""Maps of units that are exchanged in any way are named, those of poor methods are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families.base import readings
from segjudge.evaluation_script.families.base.exchanged_units import UnitSamples, judge_exchanged_units
from segjudge.evaluation_script.families.base.unit_truth import Unit, UnitTruth
from tests.families.base.test_other_readings import CELLS, draw, save

MESSAGE = "maps: some look exchanged"


def list_lines(
    protocol: str, truth: list[np.ndarray], predicted: list[np.ndarray], folder: Path, jobs: int = 1
) -> list[str]:
    (folder / "truth").mkdir(parents=True, exist_ok=True)
    for name, data in save(protocol, truth).items():
        (folder / "truth" / name).write_bytes(data)
    (folder / "sent").mkdir(exist_ok=True)
    for name, data in save(protocol, predicted).items():
        (folder / "sent" / name).write_bytes(data)
    return [line for line in score(folder / "sent", folder / "truth", protocol, jobs=jobs).warnings if "look" in line]


@pytest.mark.parametrize("protocol", [CELLS])
@pytest.mark.parametrize(
    ("sources", "example"),
    [([1, 0, 2, 3, 4, 5], ", those of 000 fit 001, those of 001 fit 000: corrected, the mean IoU of true cells would be 1.00 instead of"),
     ([2, 4, 0, 5, 1, 3], ", those of 000 fit 002, those of 001 fit 004, those of 002 fit 000 and 3 more: corrected, ")],
    ids=["two", "all"],
)  # fmt: skip
def test_exchanged_maps_are_named(sources: list[int], example: str, protocol: str, tmp_path: Path) -> None:
    images = [draw(number) for number in range(6)]
    (line,) = list_lines(protocol, images, [images[source] for source in sources], tmp_path)
    assert MESSAGE + example in line
    assert list_lines(protocol, images, [images[source] for source in sources], tmp_path, jobs=2) == [line]


def test_maps_of_a_poor_method_are_not_named(tmp_path: Path) -> None:
    for seed in range(12):
        random = np.random.default_rng(seed)
        images = [draw(int(random.integers(1000))) for _ in range(int(random.integers(2, 9)))]
        share, reach = random.uniform(0, 0.7), int(random.integers(0, 30))
        predicted = [
            np.where(
                random.random(image.shape) < share,
                random.integers(0, 4, image.shape),
                np.roll(image, random.integers(-reach, reach + 1, 2), (0, 1)),
            )
            for image in images
        ]
        lines = list_lines(CELLS, images, predicted, tmp_path / str(seed))
        assert not [line for line in lines if MESSAGE in line], seed


def test_of_many_units_some_are_compared() -> None:
    def choose(count: int) -> list[int]:
        truth = UnitTruth("", "", {}, [Unit(str(number), 1, list) for number in range(count)])
        return [number for number in range(count) if number in UnitSamples(truth)]

    assert [choose(1), choose(2), len(choose(readings._MOST_COMPARED)), len(choose(400))] == [[], [0, 1], 96, 16]


def test_one_unit_or_two_with_the_same_source_are_no_exchange() -> None:
    assert judge_exchanged_units({"a": {"maps of b": (0.0, 0.7)}}, "image") == []
    assert judge_exchanged_units({name: {"maps of c": (0.0, 0.9)} for name in "ab"}, "image") == []
    assert len(judge_exchanged_units({"a": {"maps of b": (0.0, 0.9)}, "b": {"maps of a": (0.0, 0.9)}}, "image")) == 1
