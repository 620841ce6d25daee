"""The kernel and numpy give the same for volumes, bit by bit: boxes, surfaces and distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from segjudge.evaluation_script.families.volumes import boxes, components, distances, surfaces
from segjudge.evaluation_script.families.volumes.boxes import find_boxes, select_labels
from segjudge.evaluation_script.families.volumes.components import (
    Components,
    Runs,
    find_components,
    find_runs,
    group_by_touch,
    name_components,
    share_components,
)
from segjudge.evaluation_script.families.volumes.distances import find_distances
from segjudge.evaluation_script.families.volumes.overlaps import count_overlap, count_pairs, find_overlap
from segjudge.evaluation_script.families.volumes.places import Places, list_places
from segjudge.evaluation_script.families.volumes.surfaces import (
    Sides,
    Surface,
    distance_by_weight,
    find_surface,
    list_border,
    measure_borders,
)
from segjudge.evaluation_script.files.problems import Flaw
from segjudge.evaluation_script.masks.backend import NumpyBackend
from tests.backends import compiled, skip_file_without_kernel, use
from tests.families.volumes.volumes import measure_elements

skip_file_without_kernel()
BACKENDS = (compiled(), NumpyBackend())
SPACINGS = [0.1, 0.3, 0.75, 1.0, 1.0, 2.5, 4.0]


def are_same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(are_same, one, other))
    return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())


def unpack(places: Places) -> tuple[np.ndarray, np.ndarray]:
    return places.positions, places.values


def compare(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> Any:
    """Return the result of both backends, which must be equal."""
    answers = []
    for each in BACKENDS:
        use(monkeypatch, each)
        answers.append(work())
    assert are_same(*answers)
    return answers[0]


@pytest.mark.parametrize("seed", range(12))
def test_volumes_are_measured_as_numpy_measures_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(seed)
    shape, spacing = tuple(draw.integers(1, 30, 3)), tuple(draw.choice(SPACINGS, 3).tolist())
    truth, prediction = (draw.random(shape) < draw.choice([0.001, 0.1, 0.5, 0.9]) for _ in range(2))
    for room in (boxes, distances):
        monkeypatch.setattr(room, "_SLAB", int(draw.choice([1, 500, 1 << 21])))
    monkeypatch.setattr(distances, "_CALL", int(draw.choice([0, 1000])))
    compare(monkeypatch, lambda: measure_elements(truth, prediction, spacing))
    compare(monkeypatch, lambda: measure_borders([truth, prediction], spacing))
    for choice in ({"open_ends": True}, {"corners": True}):
        compare(monkeypatch, lambda choice=choice: measure_borders([truth, prediction], spacing, **choice))
    for kind in (np.uint8, np.uint16, np.uint32):
        labels = draw.integers(0, 250, shape).astype(kind) * (draw.random(shape) < draw.choice([0.02, 0.5, 1])).astype(
            kind
        )
        compare(monkeypatch, lambda labels=labels: find_boxes(labels, 256))


@pytest.mark.parametrize("seed", range(10))
def test_many_queries_far_from_few_places_are_transformed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every voxel is so far from the nearest place that a search one by one would be slow."""
    draw = np.random.default_rng(seed)
    shape, spacing = tuple(draw.integers(20, 60, 3)), tuple(draw.choice(SPACINGS, 3).tolist())
    places = np.zeros(shape, np.uint8)
    for _ in range(draw.integers(1, 5)):
        places[tuple(draw.integers(0, shape))] = 1
    places[0] = places[0] | (draw.random(shape[1:]) < draw.choice([0, 0.01])).astype(np.uint8)
    queries = np.ones(shape, np.uint8)
    for room in (boxes, distances):
        monkeypatch.setattr(room, "_SLAB", int(draw.choice([1, 5000, 1 << 21])))
    monkeypatch.setattr(distances, "_LOOKUPS", int(draw.choice([0, 3, 1000])))
    monkeypatch.setattr(distances, "_CALL", int(draw.choice([0, 1000])))
    monkeypatch.setattr(distances, "_FEW", int(draw.choice([0, 16, 1000])))
    monkeypatch.setattr(distances, "_SPAN", int(draw.choice([1, 3, 16])))
    monkeypatch.setattr(distances, "_PRECISE", draw.choice([2.0**-48, 1.0]))
    listed = list_places(queries), list_places(places)
    measured = compare(monkeypatch, lambda: find_distances(*listed, spacing))
    assert np.count_nonzero(measured == 0) == np.count_nonzero(places)


@pytest.mark.parametrize("seed", range(12))
def test_runs_are_joined_as_numpy_joins_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(seed)
    monkeypatch.setattr(components, "_CHUNK", int(draw.choice([7, 1 << 18])))
    mask = draw.random(tuple(draw.integers(1, 24, 3))) < draw.choice([0.02, 0.2, 0.6, 1])
    compare(monkeypatch, lambda: tuple(find_runs(mask, steps=int(seed % 3))[:2]))
    if mask.any():
        chosen = np.arange(0, find_components(mask, 6).total, 2)
        box = tuple(slice(0, side) for side in mask.shape)
        compare(monkeypatch, lambda: find_components(mask, 6).ends)
        compare(monkeypatch, lambda: find_components(mask, 6).draw(chosen, box))
    for kind in (np.int32, np.int64):
        runs = find_runs(mask)
        runs = Runs(runs.starts.astype(kind), runs.ends.astype(kind), runs.shape)
        for neighbours in (6, 18, 26):
            compare(monkeypatch, lambda runs=runs, neighbours=neighbours: name_components(runs, neighbours).names)


@pytest.mark.parametrize("seed", range(12))
def test_components_touch_and_share_voxels_as_in_numpy(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(seed)
    monkeypatch.setattr(components, "_CHUNK", int(draw.choice([7, 1 << 18])))
    shape, kind = tuple(draw.integers(1, 24, 3)), [np.int32, np.int64][seed % 2]
    masks = [draw.random(shape) < draw.choice([0.02, 0.2, 0.6, 1]) for _ in range(2)]

    def find(mask: np.ndarray, steps: int = 0) -> Components:
        starts, ends, volume = find_runs(mask, steps=steps)
        return name_components(Runs(starts.astype(kind), ends.astype(kind), volume), 18)

    use(monkeypatch, NumpyBackend())
    one, two = map(find, masks)
    compare(monkeypatch, lambda: group_by_touch(one, two))
    compare(monkeypatch, lambda: tuple(share_components(one, two)))
    compare(monkeypatch, lambda: find(masks[0], 2).name_within(one.runs).names)


@pytest.mark.parametrize("seed", range(12))
def test_surfaces_are_listed_as_numpy_lists_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(seed)
    shape = (*draw.integers(1, 9, 2), int(draw.choice([1, 7, 8, 9, 65, 130])))
    mask = draw.random(shape) < draw.choice([0.02, 0.5, 0.98])
    mask[:, :, ::3] = draw.random() < 0.5
    count = len(compare(monkeypatch, lambda: unpack(find_surface(mask)))[0])
    noise = f"surface of {count:,} places; the truth's has 0"
    for name in ("_MOST_PLACES", "_MOST_TRUE_PLACES"):
        monkeypatch.setattr(surfaces, name, count)
    assert len(surfaces.find_surfaces((mask[:0], mask))[1]) == count
    monkeypatch.setattr(surfaces, "_MOST_PLACES", count - 1)
    for backend in BACKENDS if count else ():
        use(monkeypatch, backend)
        with pytest.raises(Flaw, match=noise):
            surfaces.find_surfaces((mask[:0], mask))


@pytest.mark.parametrize("seed", range(8))
def test_masks_have_the_borders_and_grow_as_in_numpy(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are longer than a word, and masks touch all faces."""
    draw = np.random.default_rng(seed)
    shape = (*draw.integers(1, 9, 2), int(draw.choice([1, 7, 63, 64, 65, 127, 128, 130])))
    mask = draw.random(shape) < draw.choice([0.01, 0.5, 0.9, 0.99, 1])
    for choice in ({}, {"open_ends": True}, {"corners": True}):
        border = surfaces.find_border(mask, **choice)
        assert BACKENDS[0].kernel.find_border(mask, **choice) is not None
        listed = compare(monkeypatch, lambda choice=choice: unpack(list_border(mask, **choice)))
        assert listed[0].tolist() == np.flatnonzero(border).tolist()
    eighteen = ndimage.generate_binary_structure(3, 2)
    for steps in (1, 2, 5):
        assert (components.grow(mask, steps) == ndimage.binary_dilation(mask, eighteen, iterations=steps)).all()


@pytest.mark.parametrize("seed", range(12))
def test_places_in_long_rows_are_as_far_as_numpy_measures(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps along a row are kept in 8 or 16 bits."""
    draw = np.random.default_rng(seed)
    monkeypatch.setattr(distances, "_LOOKUPS", 3 * (seed % 3))
    shape, spacing = (*draw.integers(1, 6, 2).tolist(), int(draw.integers(250, 1600))), (1.0, *draw.choice(SPACINGS, 2))
    places, queries = np.zeros(shape, np.uint8), np.ones(shape, np.uint8)
    for _ in range(draw.integers(1, 5)):
        places[tuple(draw.integers(0, shape))] = 1
    if seed % 2:
        queries = (draw.random(shape) < 0.01).astype(np.uint8)
    listed = list_places(queries), list_places(places)
    measured = compare(monkeypatch, lambda: find_distances(*listed, spacing))
    wanted = ndimage.distance_transform_edt(1 - places, sampling=spacing[::-1])[queries > 0]
    np.testing.assert_allclose(measured, wanted, rtol=1e-14)


@pytest.mark.parametrize("kinds", [("u1", "u1"), ("u1", "u2"), ("u2", "u1")])
def test_overlaps_of_regions_are_those_of_their_masks(kinds: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    truth, prediction = (draw.choice([0, 1, 2, 50], (300, 5, 9)).astype(kind) for kind in kinds)
    prediction[prediction == 2] = 60
    sides = find_boxes(truth, 256), find_boxes(prediction, 256)
    use(monkeypatch, BACKENDS[0])
    pairs = count_pairs(truth, prediction, sides)
    assert pairs is not None
    assert pairs.shape == (51, 61)
    for chosen in ((1,), (2,), (60,), (99,), (1, 50, 60), (2, 60, 255)):
        masks = select_labels(truth, chosen), select_labels(prediction, chosen)
        assert find_overlap(pairs, sides, chosen) == count_overlap(*masks)
    sparse = np.zeros((300, 5, 9), np.uint16)
    sparse[0, 0, 0] = 60_000
    assert count_pairs(sparse, prediction, (find_boxes(sparse, 1 << 16), sides[1])) is None


@pytest.mark.parametrize("steps", [900, 3, 1, 0], ids=["many distances", "few distances", "one distance", "crowded"])
def test_bins_change_no_distance(steps: int) -> None:
    draw = np.random.default_rng(steps)
    areas = draw.random(9) if steps > 1 else np.ones(9)  # whose shares lie between two distances
    for count in (1, 20, 3_001):
        spread = draw.integers(0, steps, count) / 7 if steps else draw.random(count) ** 99
        side = Surface(spread, draw.integers(0, 9, count).astype(np.uint8), areas)
        order = np.lexsort((side.weights, spread))
        shares = np.cumsum(side.weights[order]) / side.total
        for percent in (10, 50, 95, 100):
            wanted = spread[order[min(int(np.searchsorted(shares, percent / 100)), count - 1)]]
            assert distance_by_weight(Sides(side, side), percent) == wanted
