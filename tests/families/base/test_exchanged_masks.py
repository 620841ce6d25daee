"""Masks of units are compared with others at a grid of cells, however many overlap, in bounded memory."""

from __future__ import annotations

import tracemalloc
from typing import Any, cast

import numpy as np
import pycocotools.mask as coco
import pytest

from segjudge.evaluation_script.families.base.exchanged_masks import Frames, MaskSamples, MaskSources, judge_scattered
from segjudge.evaluation_script.families.base.readings import FirstMaps
from tests import backends
from tests.backends import use_numpy

SIZE = (1500, 2000)


def write(top: int, left: int, height: int, width: int) -> str:
    pixels = np.zeros(SIZE, np.uint8, order="F")
    pixels[top : top + height, left : left + width] = 1
    return cast("bytes", coco.encode(pixels)["counts"]).decode()


#: Two units of one frame; masks of the first cover what the second's truth has, three times over.
TRUTH = [[write(0, 0, 400, 400)], [write(800, 900, 600, 600)]]
PARTS = [write(800, 900, 600, 400), write(800, 1100, 600, 400), write(800, 900, 300, 600)]


def open_units(units: list[list[str]]) -> Any:
    def open_unit(number: int, _loaded: object) -> Frames:
        return [(SIZE, units[number])]

    return open_unit


def look(masks: list[str]) -> dict[str, tuple[float, float]]:
    sources = MaskSources(["a", "b"], open_units(TRUTH), open_units([masks, TRUTH[1]]), *[lambda _counts: False] * 2)
    return dict(MaskSamples(sources).look(0, cast("Any", None), FirstMaps()))


@pytest.mark.parametrize("kernel", [False, pytest.param(True, marks=backends.needs_kernel)], ids=["numpy", "kernel"])
@pytest.mark.parametrize("masks", [TRUTH[1], PARTS, [*PARTS, ""], PARTS * 20], ids=["one", "three", "empty", "many"])
def test_overlapping_masks_are_joined_in_bounded_memory(
    masks: list[str], kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        use_numpy(monkeypatch)
    tracemalloc.start()
    try:
        scores = look(masks)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert scores == {"masks of b": (0.0, 1.0)}
    assert peak < 5 * SIZE[0] * SIZE[1]


def test_masks_that_fit_no_other_unit_are_not_exchanged() -> None:
    assert [name for name in look([write(0, 900, 600, 600)]) if name.startswith("masks of")] == []
    assert look([""]) == {}


@pytest.mark.parametrize(("fit", "by_chance", "named"), [(0.03, 0.02, True), (0.03, 0.005, False), (0.2, 0.1, False)])
def test_small_masks_that_fit_better_than_by_chance_are_not_scattered(
    fit: float, by_chance: float, *, named: bool
) -> None:
    scores = {str(number): {"other units": (fit, by_chance)} for number in range(8)}
    assert bool(judge_scattered(scores, "pair", "Check the ids")) is named
