"""The kernel and numpy give the same for volumes, bit by bit: boxes, surfaces and distances."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from segjudge.evaluation_script.families.volumes import (
    boxes,
    components,
    distances,
    label_areas,
    label_runs,
    lesions,
    measures,
    surfaces,
)
from segjudge.evaluation_script.families.volumes.boxes import count_by_planes, find_boxes, select_labels
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
from segjudge.evaluation_script.families.volumes.engine import count_case
from segjudge.evaluation_script.families.volumes.overlaps import count_overlap, count_pairs, find_overlap
from segjudge.evaluation_script.families.volumes.places import Places, list_places
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS
from segjudge.evaluation_script.families.volumes.surfaces import (
    Sides,
    Surface,
    distance_by_side,
    distance_by_side_of_places,
    distance_by_weight,
    distance_pooled,
    distance_pooled_of_places,
    find_surface,
    list_border,
    list_borders,
    measure_borders,
)
from segjudge.evaluation_script.files.problems import Flaw
from segjudge.evaluation_script.masks.backend import NumpyBackend
from segjudge.evaluation_script.masks.distances import WeightedSurface
from segjudge.evaluation_script.values.arithmetic import add
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


@pytest.mark.parametrize("seed", range(40))
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


@pytest.mark.parametrize("seed", range(30))
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
    monkeypatch.setattr(distances, "_LISTED", int(draw.choice([3, 4096])))
    monkeypatch.setattr(distances, "_TRIED", int(draw.choice([0, 2, 8])))
    monkeypatch.setattr(distances, "_MANY_ROWS", int(draw.choice([0, 16, 1000])))
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
    monkeypatch.setattr("segjudge.evaluation_script.masks.volumes._FIRST_PLACES", int(draw.choice([1, 1 << 15])))
    compare(monkeypatch, lambda: tuple(find_runs(mask, steps=int(seed % 3))[:2]))
    if mask.any():
        chosen = np.arange(0, find_components(mask, 6).total, 2)
        box = find_components(mask, 6).box_around(chosen)
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


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 9), (5, 4, 17)])
@pytest.mark.parametrize("share", [0, 0.1, 0.9])
def test_corners_inside_a_mask_are_not_on_its_surface(
    shape: tuple[int, int, int], share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    mask = np.random.default_rng(3).random(shape) >= share
    positions, _ = compare(monkeypatch, lambda: unpack(find_surface(mask)))
    voxels = np.lib.stride_tricks.sliding_window_view(np.pad(mask, 1), (2, 2, 2)).sum(axis=(3, 4, 5))
    assert positions.tolist() == np.flatnonzero((voxels > 0) & (voxels < 8)).tolist()


@pytest.mark.parametrize("seed", range(12))
def test_surfaces_of_labels_are_listed_as_numpy_lists_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are longer than a word, labels lie in a box of a larger volume, and the list grows."""
    draw = np.random.default_rng(seed)
    monkeypatch.setattr("segjudge.evaluation_script.masks.volumes._FIRST_PLACES", 1)
    shape, kind = (*draw.integers(1, 9, 2), int(draw.choice([1, 63, 64, 65, 130]))), draw.choice(["u1", "u2", "u4"])
    volume = draw.choice([0, 1, 2, 250], [side + 4 for side in shape], p=[0.7, *[0.1] * 3]).astype(kind)
    volume[:, :, ::3] = draw.choice([0, 1, 2])
    labels = volume[tuple(slice(2, 2 + side) for side in shape)]
    for chosen in ((1,), (2, 250), (0, 1), (7,)):
        positions, codes = compare(monkeypatch, lambda chosen=chosen: unpack(find_surface(labels, chosen)))
        assert len(positions) == len(codes)
        noise = f"surface of {len(positions):,} places; the truth's has 0"
        for name in ("_MOST_PLACES", "_MOST_TRUE_PLACES"):
            monkeypatch.setattr(surfaces, name, len(positions))
        both = compare(
            monkeypatch, lambda chosen=chosen: unpack(surfaces.find_surfaces((labels[:0], labels), chosen)[1])
        )
        assert are_same(both, (positions, codes))
        monkeypatch.setattr(surfaces, "_MOST_PLACES", len(positions) - 1)
        for backend in BACKENDS if len(positions) else ():
            use(monkeypatch, backend)
            with pytest.raises(Flaw, match=noise):
                surfaces.find_surfaces((labels[:0], labels), chosen)


@pytest.mark.parametrize("seed", range(16))
def test_runs_of_labels_have_the_surfaces_and_borders_of_their_masks(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels are listed one by one or all at once, and runs fill rows, cross words, or lie in a box."""
    draw = np.random.default_rng(seed)
    monkeypatch.setattr("segjudge.evaluation_script.masks.volumes._FIRST_PLACES", 1)
    monkeypatch.setattr(label_runs, "_MOST_AT_ONCE", int(draw.choice([1, 40, 1 << 21])))
    monkeypatch.setattr(label_runs, "_TIMES", 0)
    shape, kind = (*draw.integers(1, 9, 2), int(draw.choice([1, 63, 64, 65, 130]))), draw.choice(["u1", "u2", "u4"])
    labels = draw.choice([0, 1, 2, 250], shape, p=[0.7, *[0.1] * 3]).astype(kind)
    labels[:, ::2, :: int(draw.choice([1, 2, 5]))] = draw.choice([0, 1, 2])
    found = find_boxes(labels, 251)
    use(monkeypatch, BACKENDS[0])
    lists = label_runs.find_label_runs([labels], {label: found.box_of(label) for label in (1, 2, 250)})
    assert lists is not None
    for label in sorted(found.labels):
        runs, box = lists[0].find(label), found.box_of(label)
        assert are_same((runs.starts, runs.ends), tuple(find_runs(labels == label))[:2])
        region = label_runs.RegionRuns(runs, box)
        assert (region.draw() == (labels[box] == label)).all()
        listed, corners = region.list_surface(1 << 40), find_surface(labels[box], (label,))
        assert listed[0] == len(corners)
        assert listed[1].shape == corners.shape
        assert are_same(unpack(listed[1]), unpack(corners))
        assert region.list_surface(len(corners) - 1)[0] == len(corners)
        for choice in ({}, {"open_ends": True}, {"corners": True}):
            border = list_border(labels[box] == label, **choice)
            assert are_same(unpack(list_border(region, **choice)), unpack(border))
    assert lists[0].find(9) is None


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_borders_of_labels_are_those_of_their_masks(seed: int, corners: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels are voxels or blocks, listed one by one or all at once."""
    draw, step = np.random.default_rng(seed), [1, 2, 3][seed % 3]
    monkeypatch.setattr(label_runs, "_MOST_AT_ONCE", int(draw.choice([1, 40, 1 << 21])))
    monkeypatch.setattr(label_runs, "_TIMES", 0)
    shape = draw.integers(1, 9, 3).tolist()
    labels = np.kron(draw.choice([0, 1, 2, 250], shape, p=[0.4, *[0.2] * 3]), np.ones([step] * 3)).astype(np.uint8)
    found = find_boxes(labels, 251)
    use(monkeypatch, BACKENDS[0])
    boxes = {label: found.box_of(label) for label in (1, 2, 250) if label in found.labels}
    lists = label_runs.find_label_borders([labels], boxes, [found.voxels], corners=corners)
    assert (lists is None) == (not boxes)
    for label, box in boxes.items():
        border, wanted = list_border(lists[0].find(label)), list_border(labels[box] == label, corners=corners)
        assert border.shape == wanted.shape
        assert are_same(unpack(border), unpack(wanted))
    assert lists is None or lists[0].find(9) is None
    assert label_runs.find_label_borders([labels.astype(np.uint16)], boxes, [found.voxels], corners=corners) is None


@pytest.mark.parametrize("name", ["totalsegmentator", "toothfairy", "topcow", "volumes", "components"])
def test_scattered_labels_are_measured_as_by_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel lists the runs of all labels, one of which only one side has."""
    draw, listed = np.random.default_rng(5), []
    sides = [draw.choice(12, (9, 8, 70), p=[0.45, *[0.05] * 11]).astype(np.uint8) for _ in range(2)]
    sides[0][sides[0] == 3] = 0
    monkeypatch.setattr(label_runs, "_MOST_AT_ONCE", 500)
    monkeypatch.setattr(label_areas, "_TIMES", 0)
    monkeypatch.setattr(label_areas, "_TIMES_NEAR", 1 << 20)
    kind = label_runs.LabelBorders if name == "toothfairy" else label_runs.LabelRuns
    find = kind.find
    monkeypatch.setattr(kind, "find", lambda runs, label: listed.append(label) or find(runs, label))

    def measure() -> tuple[np.ndarray, ...]:
        tables = count_case(*sides, (1.0, 0.7, 2.0), VOLUME_PROTOCOLS[name])
        return tables["voxels"], tables["values"], tables["known"]

    compare(monkeypatch, measure)
    assert listed.count(4) == (0 if name == "totalsegmentator" else 2)


@pytest.mark.parametrize("seed", range(24))
def test_areas_of_labels_are_those_of_their_surfaces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels are single voxels or blocks, have one side or both, and rows have from one corner to many blocks of sums."""
    draw, step = np.random.default_rng(seed), int([1, 1, 3][seed % 3])
    shape = (*draw.integers(1, 30, 2).tolist(), int(draw.choice([1, 15, 16, 17, 64, 9000 // step])))
    sides = [
        np.kron(draw.integers(0, 1 + draw.integers(1, 9), shape), np.ones((1, 1, step))).astype(np.uint8) for _ in "ab"
    ]
    spacing = tuple(draw.choice([0.7, 1.0, 2.5], 3).tolist())
    use(monkeypatch, BACKENDS[0])
    monkeypatch.setattr(label_areas, "_TIMES", 0)
    monkeypatch.setattr(label_areas, "_TIMES_NEAR", int(draw.choice([0, 1 << 20])))
    monkeypatch.setattr(surfaces, "_MOST_SPECKS", 1 << 40)
    boxes = [find_boxes(side, 256) for side in sides]
    both = sorted(boxes[0].labels & boxes[1].labels)
    tolerance = float(draw.choice([0.0, 1.0, 3.0]))
    areas = label_areas.find_label_areas(
        tuple(sides), {label: tuple(side.box_of(label) for side in boxes) for label in both}, spacing, tolerance
    )
    assert areas is not None or not both or label_areas._TIMES_NEAR == 0
    for label in both if areas else ():
        wanted = surfaces.share_near(surfaces.find_surfaces(tuple(sides), (label,)), spacing, tolerance)
        assert areas.share_near(label, tolerance) == wanted
    assert areas is None or areas.share_near(77, tolerance) is None


@pytest.mark.parametrize("seed", range(16))
def test_masks_have_the_borders_and_grow_as_in_numpy(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are longer than a word, masks touch all faces, and the list grows."""
    draw = np.random.default_rng(seed)
    monkeypatch.setattr("segjudge.evaluation_script.masks.volumes._FIRST_PLACES", 1)
    shape = (*draw.integers(1, 9, 2), int(draw.choice([1, 7, 63, 64, 65, 127, 128, 130])))
    mask = draw.random(shape) < draw.choice([0.01, 0.5, 0.9, 0.99, 1])
    for choice in ({}, {"open_ends": True}, {"corners": True}):
        border = surfaces.find_border(mask, **choice)
        assert BACKENDS[0].kernel.find_border(mask, **choice) is not None
        listed = compare(monkeypatch, lambda choice=choice: unpack(list_border(mask, **choice)))
        assert listed[0].tolist() == np.flatnonzero(border).tolist()
    eighteen = ndimage.generate_binary_structure(3, 2)
    for steps in (1, 2, 5):
        grown = compare(monkeypatch, lambda steps=steps: components.grow(mask, steps))
        assert (grown == ndimage.binary_dilation(mask, eighteen, iterations=steps)).all()


@pytest.mark.parametrize("seed", range(20))
def test_nsd_needs_no_places_farther_than_its_tolerance(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(seed)
    shape, spacing = tuple(draw.integers(3, 30, 3)), tuple(draw.choice(SPACINGS, 3).tolist())
    masks = [np.zeros(shape, bool) for _ in range(2)]
    for mask in masks:
        start = draw.integers(0, shape)
        mask[tuple(slice(first, first + 1 + int(draw.integers(0, 8))) for first in start.tolist())] = True
    listed, tolerance = (find_surface(masks[0]), find_surface(masks[1])), float(draw.choice([0, 0.3, 1, 3, 50]))
    wanted = surfaces.share_within(surfaces.measure_surfaces(listed, spacing), tolerance)
    assert compare(monkeypatch, lambda: np.float64(surfaces.share_near(listed, spacing, tolerance))) == wanted


@pytest.mark.parametrize("seed", range(12))
def test_scattered_queries_are_as_far_from_few_places_as_all_pairs_say(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(seed)
    shape, spacing = tuple(draw.integers(20, 60, 3)), tuple(draw.choice(SPACINGS, 3).tolist())
    queries, places = (draw.random(shape) < 0.003).astype(np.uint8), np.zeros(shape, np.uint8)
    places[tuple(slice(start, start + 4) for start in draw.integers(0, 15, 3))] = draw.integers(0, 9, (4, 4, 4))
    places[-1, -1, -1] = 2
    lengths = (np.abs(np.subtract.outer(*sides)) * step for sides, step in zip(
        zip(*(np.nonzero(side)[::-1] for side in (queries, places))), spacing
    ))  # fmt: skip
    x, y, z = (length * length for length in lengths)
    wanted = np.sqrt((x + y + z).min(axis=1))
    listed = list_places(queries), list_places(places)
    assert compare(monkeypatch, lambda: find_distances(*listed, spacing)).tolist() == wanted.tolist()
    farthest = float(np.median(wanted))
    near = compare(monkeypatch, lambda: find_distances(*listed, spacing, farthest))
    is_near = wanted < farthest * (1 + 1e-10)  # rounding decides nothing
    assert near.tolist() == np.where(is_near, wanted, np.inf).tolist()


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 4, 9), (9, 17, 6)])
def test_blocks_have_the_bounds_that_numpy_finds(shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(5)
    places, targets = (list_places(draw.integers(1, 9, shape, np.uint8) * (draw.random(shape) < 0.9)) for _ in range(2))
    bounds = compare(
        monkeypatch, lambda: np.array(distances.BlockDistances(places, targets, (1, 1, 2)).find_bounds(np.ones(9), 0.5))
    )
    assert bounds[0] < bounds[1]


def split_surface(surface: WeightedSurface, targets: Places, spacing: tuple[float, ...]) -> WeightedSurface:
    """Return a surface whose last third of places are extras, with an index."""
    count, kernel = len(surface.places) * 2 // 3 + 1, BACKENDS[0].kernel
    squares = kernel.find_squares(surface.places[count:], targets.positions, targets.shape, spacing)
    extras = np.stack([squares, surface.areas[surface.codes[count:]]], axis=1)
    few = WeightedSurface(surface.places[:count], surface.codes[:count], surface.areas, extras)
    return few._replace(blocks=kernel.index_surface(few, targets.shape))


@pytest.mark.parametrize("seed", range(40))
def test_percentiles_of_borders_are_those_of_all_distances(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either side is larger, far or near, and has one voxel or thousands."""
    draw = np.random.default_rng(seed)
    monkeypatch.setattr(surfaces, "_MOST_RANKED", int(draw.choice([0, 40])))
    shape, spacing = tuple(draw.integers(1, 50, 3)), tuple(draw.choice(SPACINGS, 3).tolist())
    grid, masks = np.moveaxis(np.indices(shape), 0, -1), []
    for _ in range(2):
        ball = np.square(grid - draw.integers(0, shape)).sum(axis=3) < draw.choice([1, 3, 60, 200])
        masks.append(ball | (draw.random(shape) < draw.choice([0, 0, 0.003, 0.05])))
    borders, sides = list_borders(masks), measure_borders(masks, spacing)
    for percent in (0, 37, 95, 100):
        by_side = compare(monkeypatch, lambda p=percent: np.float64(distance_by_side_of_places(borders, spacing, p)))
        pooled = compare(monkeypatch, lambda p=percent: np.float64(distance_pooled_of_places(borders, spacing, p)))
        assert (by_side, pooled) == (distance_by_side(sides, percent), distance_pooled(sides, percent))


@pytest.mark.parametrize("seed", range(40))
def test_a_share_of_a_surface_lies_within_the_distance_of_all_its_places(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Surfaces are balls and specks; bounds exclude most places of some, and none of others."""
    use(monkeypatch, BACKENDS[0])
    kernel, draw = BACKENDS[0].kernel, np.random.default_rng(seed)
    spacing, masks = tuple(draw.choice([*SPACINGS, 7e-6, 3e5], 3).tolist()), []
    grid = np.moveaxis(np.indices(tuple(draw.integers(1, 70, 3))), 0, -1)
    for speck in draw.permutation([0, draw.choice([0.0001, 0.003, 0.05])]):
        ball = np.square(grid - draw.integers(0, grid.shape[:3])).sum(axis=3) < draw.choice([3, 60, 200])
        masks.append(ball | (draw.random(grid.shape[:3]) < speck))
    listed, areas = tuple(map(find_surface, masks)), surfaces.list_areas(spacing)
    for places, targets in (listed, listed[::-1]):
        distances_of_all = find_distances(places, targets, spacing)
        for percent in (1, 50, 60, 95, 100):
            wanted = surfaces._distance_at(Surface(distances_of_all, places.values, areas), percent)
            volume = targets.positions, places.shape, spacing, percent / 100
            surface = WeightedSurface(places.positions, places.values, areas)
            share = kernel.find_share(surface, *volume)
            assert share in (wanted, None)
            indexed = surface._replace(blocks=kernel.index_surface(surface, places.shape))
            assert kernel.find_share(indexed, *volume) in (wanted, None)
            split = kernel.find_share(split_surface(indexed, targets, spacing), *volume)
            assert split in (wanted, None)
            if share is not None:
                assert kernel.find_share(indexed, *volume) == share
            is_precise = percent == 95 and len(places) > 2000 and min(spacing) > 1e-3 and max(spacing) < 1e3
            assert share is not None or not is_precise


@pytest.mark.parametrize("misleads", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_sample_of_noise_shows_where_a_share_lies_or_an_index_does(
    seed: int, misleads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Places that a sample misses have most of the area, or all have the same."""
    use(monkeypatch, BACKENDS[0])
    draw, spacing = (
        np.random.default_rng(seed),
        [(1.0, 1.0, 1.0), (0.8, 0.8, 2.5), (3.0, 1.0, 0.5), (1.0, 1.5, 1.0)][seed],
    )
    noise, target = np.zeros((2, 50, 60, 70), np.uint8)
    noise[draw.random(noise.shape) < 0.4] = 1
    target[tuple(slice(start, start + 5) for start in draw.integers(0, 45, 3))] = 1
    places, targets = list_places(noise), list_places(target)
    assert len(places) > 2 * 32768
    codes = np.zeros(len(places), np.uint8)
    if misleads:
        is_near = find_distances(places, targets, spacing) < 20
        codes[is_near & (np.arange(len(places)) % 3 > 0)] = 1
    surface = WeightedSurface(places.positions, codes, np.array([1.0, 99.0] + [0.0] * 254))
    distances_of_all = find_distances(places, targets, spacing)
    for percent in (3, 50, 95, 99.9):
        wanted = surfaces._distance_at(Surface(distances_of_all, codes, surface.areas), percent)
        assert BACKENDS[0].kernel.find_share(surface, targets.positions, places.shape, spacing, percent / 100) == wanted


@pytest.mark.parametrize("seed", range(24))
def test_thousands_of_scattered_places_are_as_far_as_numpy_measures(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest places are a few steps away; where places are few, some are farther away than bits show."""
    draw = np.random.default_rng(seed)
    shape, spacing = tuple(draw.integers(20, 80, 3)), tuple(draw.choice([0.3, 0.75, 1.0, 1.0, 4.0], 3).tolist())
    masks = [draw.random(shape) < draw.choice([0.0003, 0.001, 0.01, 0.1]) for _ in range(2)]
    masks[0] |= draw.random(shape) < 0.02
    masks[seed % 2][:, : shape[1] // 2] &= seed % 3 > 0
    masks[1][0, 0, 0] = True
    listed, tolerance = (find_surface(masks[0]), find_surface(masks[1])), float(draw.choice([0, 0.5, 1, 3, 8]))
    assert len(listed[0]) > 2048
    compare(monkeypatch, lambda: tuple(surfaces.measure_distances(listed, spacing)))
    compare(monkeypatch, lambda: tuple(surfaces.measure_distances(listed, spacing, tolerance)))
    compare(monkeypatch, lambda: np.float64(surfaces.share_near(listed, spacing, tolerance)))
    monkeypatch.setattr(surfaces, "MOST_MEASURED", 100)
    compare(monkeypatch, lambda: np.float64(surfaces.distance_by_places(listed, spacing, 95)))


@pytest.mark.parametrize("seed", [0, 1, 3, 7, 8, 9, 10])  # each has lesions of both kinds
def test_lesions_in_specks_that_touch_one_another_are_measured_as_by_numpy(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The surface of the largest component is measured apart from those beside it."""
    draw, parts = np.random.default_rng(seed), []
    grid, sides = np.moveaxis(np.indices((30, 40, 50)), 0, -1), np.zeros((2, 30, 40, 50), np.uint8)
    for label in (1, 2, 3, 3, 2, 1) * 4:
        ball = np.square(grid - draw.integers(4, (26, 36, 46))).sum(axis=3) < draw.choice([3, 8, 20])
        sides[:, ball] = label
    noise = draw.random(sides.shape[1:]) < draw.choice([0.12, 0.18])
    sides[1][noise] = draw.integers(0, 4, int(noise.sum()))
    for room, name, number in ((lesions, "_LARGE", 100), (lesions, "_SMALL", 30), (surfaces, "MOST_MEASURED", 200)):
        monkeypatch.setattr(room, name, number)
    measure = lesions.distance_by_parts
    monkeypatch.setattr(
        lesions,
        "distance_by_parts",
        lambda truth, split, *rest: parts.append(len(split)) or measure(truth, split, *rest),
    )
    protocol = VOLUME_PROTOCOLS[["brats-2024-men", "brats-2023-met"][seed % 2]]
    compare(monkeypatch, lambda: count_case(*sides, (1.0, [1.0, 0.7][seed % 3 == 0], 1.0), protocol)["values"])
    assert set(parts) == {1, 2}


@pytest.mark.parametrize("is_true", [False, True])
def test_noise_of_either_side_is_measured_as_all_distances_say(is_true: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, protocol = np.random.default_rng(7), VOLUME_PROTOCOLS["volumes"]
    sides = np.zeros((2, 40, 50, 60), np.uint8)
    sides[0, 5:20, 10:30, 10:40], sides[1, 6:22, 10:29, 12:41] = 1, 1
    sides[1 - is_true][draw.random(sides.shape[1:]) < 0.05] = 1
    monkeypatch.setattr(measures, "MOST_MEASURED", 1 << 62)
    wanted = count_case(*sides, (0.8, 0.8, 1.5), protocol)["values"].tolist()
    for most in (0, 1 << 14):
        monkeypatch.setattr(measures, "MOST_MEASURED", most)
        monkeypatch.setattr(surfaces, "MOST_MEASURED", most)
        values = compare(monkeypatch, lambda: count_case(*sides, (0.8, 0.8, 1.5), protocol)["values"])
        assert values.tolist() == wanted


@pytest.mark.parametrize("seed", range(12))
def test_places_in_long_rows_are_as_far_as_numpy_measures(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps along a row are kept in 8 bits; the kernel counts more of them, and numpy looks places up in a list."""
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


def test_a_full_volume_with_one_place_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, BACKENDS[0])
    queries, places = np.ones((150, 200, 200), np.uint8), np.zeros((150, 200, 200), np.uint8)
    places[-1, -1, -1] = 1
    distances = find_distances(list_places(queries), list_places(places), (1.0, 1.0, 2.0))
    assert distances[0] == np.sqrt(199.0**2 + 199.0**2 + 298.0**2)
    assert distances.max() == distances[0]


def test_few_queries_far_from_a_place_make_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, BACKENDS[0])
    queries, places = np.zeros((2, 96, 96, 96), np.uint8)
    queries[:, 48, 0], places[48, 95, 95] = 1, 1
    calls, look_up = [], distances._look_up
    monkeypatch.setattr(distances, "_look_up", lambda *values: calls.append(1) or look_up(*values))
    measured = find_distances(list_places(queries), list_places(places), (1.0, 1.0, 1.0))
    planes = np.arange(96.0)
    assert (measured == np.sqrt((planes - 48) ** 2 + 47.0**2 + 95.0**2)).all()
    assert len(calls) < 4000, "each of the 9,216 rows takes up to four"


def test_spacings_that_differ_by_a_billion_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(1)
    queries, places = np.ones((9, 20, 8), np.uint8), (draw.random((9, 20, 8)) < 0.003).astype(np.uint8)
    listed = list_places(queries), list_places(places)
    for spacing in ((1e-6, 1e3, 1.0), (1e3, 1e-6, 1e-6), (1.0, 1e-9, 1e3)):
        compare(monkeypatch, lambda spacing=spacing: find_distances(*listed, spacing))


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
        for axis, counts in enumerate(count_by_planes(masks[0])):
            assert counts.tolist() == np.count_nonzero(masks[0], axis=tuple({0, 1, 2} - {axis})).tolist()
    sparse = np.zeros((300, 5, 9), np.uint16)
    sparse[0, 0, 0] = 60_000
    assert count_pairs(sparse, prediction, (find_boxes(sparse, 1 << 16), sides[1])) is None


@pytest.mark.parametrize("shape", [(0, 4, 5), (3, 0, 5), (3, 4, 0)])
def test_volumes_without_voxels_have_no_boxes(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    empty = np.zeros(shape, np.uint8)
    assert compare(monkeypatch, lambda: find_boxes(empty, 2)).labels == set()
    assert find_components(empty.view(bool), 26).total == 0


def test_borders_in_a_part_of_an_open_volume_take_no_copies_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two copies of both borders of a CT volume would exceed 500 MB."""
    use(monkeypatch, BACKENDS[0])
    truth, specks = np.zeros((2, 120, 160, 170), np.uint8)
    truth[40:60, 40:80, 40:80] = specks[::8, ::8, ::8] = 1
    assert measure_memory(truth, specks, "chaos") < 6.4 * truth.size


def measure_memory(truth: np.ndarray, prediction: np.ndarray, protocol: str) -> int:
    """Return the most bytes that numpy's arrays take while a case is counted."""
    row = VOLUME_PROTOCOLS[protocol]
    count_case(truth[:60], prediction[:60], (1.0, 1.0, 1.0), row)  # tables of areas and imports are made once
    tracemalloc.start()
    try:
        count_case(truth, prediction, (1.0, 1.0, 1.0), row)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.long
@pytest.mark.parametrize(("backend", "most"), [(BACKENDS[0], 5.0), (BACKENDS[1], 8.0)], ids=("kernel", "numpy"))
def test_scattered_dots_take_little_memory(backend: Any, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight for each element, and all that is known of each query, took half as much again."""
    use(monkeypatch, backend)
    truth, dots = np.zeros((2, 100, 240, 240), np.uint8)
    truth[30:60, 60:100, 60:100] = dots[2::5, 2::4, 2::4] = 2
    assert measure_memory(truth, dots, "kits23") < most * truth.size


@pytest.mark.long
def test_large_surfaces_are_weighted_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over parts of a surface have the bits of the sums of all weights; nor do bins change a distance."""
    draw = np.random.default_rng(4)
    sides = [
        Surface(draw.integers(0, 900, count) / 7, draw.integers(0, 9, count).astype(np.uint8), draw.random(9))
        for count in (600_001, 1 << 20)
    ]
    for side in sides:
        assert side.total == add(side.weights)
        assert side.moment == add(side.distances * side.weights)
    wanted = [distance_by_weight(Sides(*sides), percent) for percent in (50, 95, 100)]
    monkeypatch.setattr(surfaces, "_MOST_SORTED", 1000)
    assert [distance_by_weight(Sides(*sides), percent) for percent in (50, 95, 100)] == wanted


@pytest.mark.parametrize("steps", [900, 3, 1, 0], ids=["many distances", "few distances", "one distance", "crowded"])
def test_bins_change_no_distance(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(steps)
    sides = Sides(*(Surface(spread, draw.integers(0, 9, len(spread)).astype(np.uint8), draw.random(9)) for spread in (
        draw.integers(0, steps, count) / 7 if steps else draw.random(count) ** 99 for count in (2_000, 3_001)
    )))  # fmt: skip
    wanted = [distance_by_weight(sides, percent) for percent in (10, 50, 95, 100)]
    monkeypatch.setattr(surfaces, "_MOST_SORTED", 30)
    assert [distance_by_weight(sides, percent) for percent in (10, 50, 95, 100)] == wanted
