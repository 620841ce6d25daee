"""Rules of the instance track, one by one, on masks whose scores are known by hand or from pycocotools."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pycocotools.mask as coco
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segjudge.cli import main
from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.reports import standard_errors
from segjudge.evaluation_script.families.instances import engine as instances
from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.metrics import averages
from segjudge.evaluation_script.families.instances.protocols import AREAS, INSTANCE_PROTOCOLS, THRESHOLDS
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.scoring import scorer
from tests.backends import use_numpy
from tests.builders import count_results, score_instances, zipped
from tests.drawing import examples
from tests.families.instances.test_instances import EVERY_PAIR, box, encoded, official, ours

EXACT = 1e-9
RIGHT = pytest.approx(1.0, abs=EXACT)
HALF = pytest.approx(51 / 101, abs=EXACT)  # precision 1 up to the recall of one half, 0 above
#: All masks lie in images of this size.
SIZE = (120, 130)
PLACES = INSTANCE_PROTOCOLS["places2017-official"]


def mask(height: int, width: int, top: int = 0, left: int = 0) -> Any:
    return encoded(box(top, left, height, width, SIZE))


def document(*annotations: Any, images: int = 1, categories: int = 1, first: int = 1) -> Any:
    """Return a document of annotations (image, category, area, mask) with ids from `first`."""
    return {
        "images": [{"id": k, "height": SIZE[0], "width": SIZE[1]} for k in range(images)],
        "categories": [{"id": k, "name": f"c{k}"} for k in range(categories)],
        "annotations": [
            {
                "id": first + k,
                "image_id": image,
                "category_id": category,
                "area": area,
                "iscrowd": 0,
                "segmentation": item,
            }
            for k, (image, category, area, item) in enumerate(annotations)
        ],
    }


def detection(score: float, segmentation: Any, image: int = 0, category: int = 0) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "score": score, "segmentation": segmentation}


def scored(truth: Any, prediction: Any, folder: Path, protocol: Any = PLACES) -> instances.InstanceScore:
    path = folder / "found.json"
    path.write_text(json.dumps(prediction))
    read = instance_truth.read_document(json.dumps(truth).encode(), "truth")
    return score_instances(str(path), read, protocol, INSTANCE_LIMITS)


# ── areas ───────────────────────────────────────────────────────────────────


def test_the_thresholds_and_ranges_are_those_of_coco() -> None:
    assert np.linspace(0.5, 0.95, 10).tolist() == list(THRESHOLDS)
    assert AREAS == {"": (0, 10**10), "s": (0, 1024), "m": (1024, 9216), "l": (9216, 10**10)}


@pytest.mark.parametrize(
    ("area", "ranges"),
    [(1023, "s"), (1024, "sm"), (1025, "m"), (9215, "m"), (9216, "ml"), (9217, "l"), (0, "s"), (10**10, "l")],
)
def test_an_annotated_area_counts_in_each_range_that_includes_it(area: int, ranges: str, tmp_path: Path) -> None:
    item = mask(30, 30)
    values = scored(document((0, 0, area, item)), [detection(0.9, item)], tmp_path).values
    for name in "sml":
        expected = RIGHT if name in ranges else None
        assert values[f"AP{name}"] == expected, name
        assert values[f"AR{name}"] == expected, name
    assert values["AP"] == RIGHT


@pytest.mark.parametrize(
    ("height", "width", "ranges"),
    [(31, 33, "s"), (32, 32, "sm"), (25, 41, "m"), (95, 97, "m"), (96, 96, "ml"), (89, 104, "l")],
)
def test_a_wrong_detection_counts_in_each_range_that_includes_its_area(
    height: int, width: int, ranges: str, tmp_path: Path
) -> None:
    """The wrong detection has the highest score, which halves the precision in each of these ranges."""
    right = mask(2, 2, 118, 120)
    for area, name in ((500, "s"), (5000, "m"), (50_000, "l")):
        results = [detection(0.9, mask(height, width)), detection(0.5, right)]
        values = scored(document((0, 0, area, right)), results, tmp_path).values
        assert values[f"AP{name}"] == (pytest.approx(0.5) if name in ranges else RIGHT), name


# ── matching ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("truth_is_larger", [True, False])
@pytest.mark.parametrize("others", [0, 1])
def test_a_mask_of_half_or_twice_the_size_still_overlaps_by_half(
    truth_is_larger: bool, others: int, tmp_path: Path
) -> None:
    """A mask of half or twice the size matches, also between images and categories with masks of other sizes."""
    small, large = mask(10, 10), mask(10, 20)
    annotated, sent = (large, small) if truth_is_larger else (small, large)
    beside = [(image, category, 1, mask(1, 1)) for image in (0, 2) for category in (0, 1, 2)] * others
    truth = document((1, 1, 150, annotated), *beside, images=3, categories=3)
    score = scored(truth, [detection(0.9, sent, 1, 1)], tmp_path)
    row = score.categories[1]
    missed = RIGHT if not others else pytest.approx(34 / 101, abs=EXACT)
    assert (row["AP50"], row["AP75"]) == (missed, 0.0)
    assert row["AR"] == pytest.approx(0.1 / (1 + 2 * others)), "at one threshold of ten"


@pytest.mark.parametrize(("height", "matched"), [(11, 1), (10, 1), (9, 0)])
def test_an_overlap_of_exactly_a_threshold_is_a_match(height: int, matched: int, tmp_path: Path) -> None:
    score = scored(document((0, 0, 9, mask(20, 10))), [detection(0.9, mask(height, 10))], tmp_path)
    assert score.values["AP50"] == (RIGHT if matched else 0.0)


def test_a_perfect_mask_is_right_at_every_threshold_and_the_rest_is_recall(tmp_path: Path) -> None:
    """One of two instances is detected: precision 1 up to a recall of one half."""
    first, second = mask(10, 10), mask(10, 10, 50, 50)
    truth = document((0, 0, 100, first), (0, 0, 100, second))
    values = scored(truth, [detection(0.9, first)], tmp_path).values
    assert [values[name] for name in ("AP", "AP50", "AP75", "APs")] == [HALF] * 4
    assert [values[name] for name in ("AR@1", "AR@50", "AR@255", "ARs")] == [0.5] * 4
    both = [detection(0.9, first), detection(0.8, second)]
    values = scored(truth, both, tmp_path).values
    assert (values["AR@1"], values["AR@50"], values["AP"]) == (0.5, 1.0, RIGHT)


@st.composite
def crowded_images(draw: Any) -> tuple[Any, Any]:
    """Return a few rectangles of one corner: the first annotation has the id 0, and areas lie in any range."""
    sides = st.sampled_from([10, 20, 31, 32, 33, 60, 95, 96, 97, 110])
    areas = st.sampled_from([0, 500, 1024, 5000, 9216, 9999])
    truth = document(
        *(
            (0, draw(st.integers(0, 1)), draw(areas), mask(draw(sides), draw(sides)))
            for _ in range(draw(st.integers(1, 4)))
        ),
        categories=2,
        first=0,
    )
    for annotation in truth["annotations"]:
        annotation["iscrowd"] = int(draw(st.integers(0, 4)) == 0)
    results = [
        detection(
            draw(st.sampled_from([0.2, 0.5, 0.9])), mask(draw(sides), draw(sides)), category=draw(st.integers(0, 1))
        )
        for _ in range(draw(st.integers(1, 5)))
    ]
    return truth, results


@pytest.mark.long
@examples(100)
@given(images=crowded_images())
def test_an_annotation_of_id_zero_is_lost_as_in_pycocotools(
    images: tuple[Any, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A detection matched with the annotation 0 counts as wrong if its area is in the range."""
    truth, results = images
    curves, _ = ours(truth, results, PLACES, tmp_path_factory.getbasetemp())
    theirs = official(truth, results, PLACES.detections)
    assert np.array_equal(curves.precision, theirs["precision"])
    assert np.array_equal(curves.recall, theirs["recall"])


@pytest.mark.parametrize("beside", [False, True], ids=["without a choice", "with one"])
def test_what_matches_id_zero_is_wrong_where_its_own_area_lies(beside: bool, tmp_path: Path) -> None:
    """A detection of 900 pixels for an annotation of 5,000 is wrong among all and small ones, ignored among medium."""
    first, second = mask(30, 30), mask(2, 2, 100, 100)
    annotations = [(0, 0, 5000, first), (0, 0, 5000, second)]
    if beside:  # overlaps the detection too, by half
        annotations.append((0, 0, 5000, mask(30, 16)))
    truth = document(*annotations, first=0)
    results = [detection(0.9, first), detection(0.8, second)]
    if beside:
        results.append(detection(0.7, mask(30, 16)))
    values = scored(truth, results, tmp_path).values
    assert values["APs"] is None
    recalled = 2 / 3 if beside else 1 / 2
    assert values["ARm"] == pytest.approx(recalled)
    reached = (67 if beside else 51) / 101
    assert values["APm"] == pytest.approx(reached, abs=EXACT), "its match is left out"
    assert values["AP"] < reached - 0.1, "its match is wrong"


# ── standard errors ─────────────────────────────────────────────────────────


def some_images(count: int) -> tuple[Any, Any]:
    """Return images with two instances of two categories; some are detected, with scores without ties."""
    annotations = [(k, c, 400, mask(20, 20, 40 * c)) for k in range(count) for c in (0, 1)]
    results = [
        detection(0.99 - 0.01 * (7 * k % 11) - 0.001 * c, mask(20, 20 - 3 * (k % 4), 40 * c + 30 * (k % 3 == 2)), k, c)
        for k in range(count)
        for c in (0, 1)
        if (k + c) % 5
    ]
    return document(*annotations, images=count, categories=2), results


def copied(truth: Any, prediction: Any, chosen: Any) -> tuple[Any, Any]:
    """Return a truth and detections with these images, repeated as listed."""
    drawn = {**truth, "images": [{**truth["images"][item], "id": k} for k, item in enumerate(chosen)]}
    of_image = [[a for a in truth["annotations"] if a["image_id"] == item] for item in chosen]
    annotations = [{**a, "image_id": k} for k, some in enumerate(of_image) for a in some]
    drawn["annotations"] = [{**a, "id": k + 1} for k, a in enumerate(annotations)]
    return drawn, [
        {**item, "image_id": k} for k, place in enumerate(chosen) for item in prediction if item["image_id"] == place
    ]


def counted_of(truth: Any, prediction: Any, folder: Path) -> Any:
    path = folder / "found.json"
    path.write_text(json.dumps(prediction))
    read = instance_truth.read_document(json.dumps(truth).encode(), "truth")
    counts: Any = count_results(str(path), read, ScoringRules(PLACES, INSTANCE_LIMITS))
    return counts


def values_of(truth: Any, prediction: Any, folder: Path) -> Any:
    counted = counted_of(truth, prediction, folder)
    return averages(counted.rank_detections().curves(EVERY_PAIR), PLACES, [""] * len(counted.categories))


def errors_of(truth: Any, prediction: Any, folder: Path, metrics: Any = ()) -> Any:
    return standard_errors(counted_of(truth, prediction, folder).without_groups(metrics))


@pytest.mark.parametrize("path", ["kernel", "numpy"])
@pytest.mark.parametrize("count", [7, 45])
def test_standard_errors_are_of_scoring_without_each_of_twenty_groups(
    count: int, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there are fewer images than groups, each is a group; the random groups are the same in every run."""
    truth, results = some_images(count)
    groups = min(20, count)
    dealt = np.random.Generator(np.random.PCG64(0)).permutation(count) % groups
    without = [np.flatnonzero(dealt != group).tolist() for group in range(groups)]
    draws = [values_of(*copied(truth, results, kept), tmp_path) for kept in without]
    if path == "numpy":
        use_numpy(monkeypatch)
    errors = errors_of(truth, results, tmp_path)

    assert set(errors) == {name for name, value in draws[0].items() if value is not None}
    for name, error in errors.items():
        values = [draw[name] for draw in draws]
        assert error == pytest.approx(np.std(values) * np.sqrt(groups - 1), abs=EXACT), name
    assert errors["AP"] > 0.01
    for some in (["AP50"], ["AP", "AR@1"], ["AP", "APs"]):
        assert errors_of(truth, results, tmp_path, some) == {name: errors[name] for name in some}


@pytest.mark.parametrize("path", ["kernel", "numpy"])
def test_a_recall_of_one_detection_takes_the_first_of_each_image_alone(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "numpy":
        use_numpy(monkeypatch)
    sizes = [1, 2, 3, 1, 2, 11, 3]
    masks = [
        (k, mask(8, 8, 10 * (place % 10), 30 * (place // 10))) for k, size in enumerate(sizes) for place in range(size)
    ]
    truth = document(*[(k, 0, 64, item) for k, item in masks], images=len(sizes))
    results = [detection(0.9 - 0.01 * place, item, k) for place, (k, item) in enumerate(masks)]
    values, errors = values_of(truth, results, tmp_path), errors_of(truth, results, tmp_path)
    assert PLACES.detections[0] == 1
    for metric, cap in ((f"AR@{cap}", cap) for cap in PLACES.detections):
        recalls = [[min(cap, size) for k, size in enumerate(sizes) if k != without] for without in (-1, *range(7))]
        counts = [sum(size for k, size in enumerate(sizes) if k != without) for without in (-1, *range(7))]
        whole, *draws = [sum(recall) / count for recall, count in zip(recalls, counts)]
        assert values[metric] == pytest.approx(whole, abs=EXACT)
        assert errors[metric] == pytest.approx(np.std(draws) * np.sqrt(6), abs=EXACT)


def test_a_value_that_a_group_alone_has_has_no_standard_error(tmp_path: Path) -> None:
    truth, results = some_images(4)
    truth["annotations"][0]["area"] = 5000
    errors = errors_of(truth, results, tmp_path)
    assert scored(truth, results, tmp_path).values["APm"] is not None
    assert {"APm", "ARm", "APl"}.isdisjoint(errors)
    assert {"AP", "APs", "AR@1"} <= set(errors)


@pytest.mark.parametrize(("images", "categories", "there"), [(1, 1, False), (2, 34, True), (2, 400, True)])
def test_standard_errors_do_not_depend_on_how_many_categories_there_are(
    images: int, categories: int, there: bool, tmp_path: Path
) -> None:
    item = mask(9, 9)
    truth = document(*((k, 0, 81, item) for k in range(images)), images=images, categories=categories)
    assert bool(errors_of(truth, [detection(0.9, item)], tmp_path)) == there


# ── the cap, and what is counted ────────────────────────────────────────────


@pytest.mark.parametrize("cap", ["image", "category"])
def test_the_cap_keeps_the_highest_scores_of_each_image_or_category(cap: str, tmp_path: Path) -> None:
    """Three detections are allowed; an image has two of one category and two of the other."""
    protocol = replace(PLACES, detections=(1, 2, 3), cap=cap, id_zero_quirk=False)
    first, second = mask(10, 10), mask(10, 10, 50)
    truth = document(
        *((k, c, 100, item) for k in (0, 1) for c in (0, 1) for item in (first, second)), images=2, categories=2
    )
    results = [
        detection(0.9 - 0.1 * place, item, image, category)
        for image in (0, 1)
        for place, (category, item) in enumerate([(1, first), (0, first), (1, second), (0, second)])
    ]
    score = scored(truth, results, tmp_path, protocol)
    rows = {row["id"]: row["AR"] for row in score.categories}
    assert rows == {0: 0.5 if cap == "image" else 1.0, 1: 1.0}
    dropped = "2 records beyond 3 in 2 images were dropped"
    assert score.warnings == ([dropped] if cap == "image" else [])


def test_records_beyond_the_cap_are_counted_where_the_truth_has_their_category(tmp_path: Path) -> None:
    protocol = replace(PLACES, detections=(1, 2, 3))
    item = mask(10, 10)
    truth = document((0, 0, 100, item))
    results = [detection(0.9 - k / 100, item) for k in range(5)]
    unknown = [detection(0.9, item, category=7)] * 6
    for cap, dropped in (("image", 8), ("category", 2)):
        warnings = scored(truth, [*results, *unknown], tmp_path, replace(protocol, cap=cap)).warnings
        assert warnings[0].startswith("6 of 11 records have a category that the truth lacks and were ignored")
        assert warnings[1:] == [f"{dropped} records beyond 3 in 1 image were dropped"]
    assert scored(truth, results[:4], tmp_path, protocol).warnings == ["1 record beyond 3 in 1 image was dropped"]


@pytest.mark.parametrize("protocol", ["places2017-official", "coco", "lvis"])
def test_a_mask_of_one_pixel_counts(protocol: str, tmp_path: Path) -> None:
    truth = document((0, 0, 1, mask(1, 1)))
    for image in truth["images"]:
        image.update(neg_category_ids=[], not_exhaustive_category_ids=[])
    results = [detection(0.9, mask(1, 1))]
    assert scored(truth, results, tmp_path, INSTANCE_PROTOCOLS[protocol]).values["AP"] == RIGHT


def test_an_annotation_of_no_listed_category_is_left_out(tmp_path: Path) -> None:
    first, second = mask(10, 10), mask(10, 10, 50)
    truth = document((0, 7, 100, second), (0, 0, 100, first))
    assert scored(truth, [detection(0.9, first)], tmp_path).values["AP"] == RIGHT


def test_categories_without_truth_have_no_average(tmp_path: Path) -> None:
    item = mask(10, 10)
    score = scored(
        document((0, 1, 100, item), categories=3), [detection(0.9, item, category=c) for c in (0, 1)], tmp_path
    )
    assert [(row["id"], row["name"], row["AP"]) for row in score.categories] == [
        (0, "c0", None),
        (1, "c1", RIGHT),
        (2, "c2", None),
    ]
    assert score.values["AP"] == RIGHT


# ── the annotation file ─────────────────────────────────────────────────────


def test_boxes_are_compared_by_their_own_extent(tmp_path: Path) -> None:
    truth = document((0, 0, 100, mask(10, 10)))
    truth["annotations"][0]["bbox"] = [20.0, 30.0, 40.0, 10.0]
    coco_box = INSTANCE_PROTOCOLS["coco-box"]
    for sent, expected in (
        ([20, 30, 40, 10], 1.0),
        ([20, 30, 20, 10], 0.1),
        ([20, 30, 80, 10], 0.1),
        ([0, 0, 10, 10], 0),
    ):
        results = [{"image_id": 0, "category_id": 0, "score": 0.5, "bbox": sent}]
        assert scored(truth, results, tmp_path, coco_box).values["AP"] == pytest.approx(expected), sent


def test_images_and_categories_may_stand_in_any_order(tmp_path: Path) -> None:
    item, small = mask(10, 10), {"size": [4, 5], "counts": rle.compress([3, 4, 13])}
    truth = document((0, 0, 100, item), (2, 1, 4, small), images=2, categories=2)
    truth["images"].insert(0, {"id": 2, "height": 4, "width": 5})
    truth["categories"].reverse()
    results = [detection(0.9, item), detection(0.8, small, 2, 1)]
    score = scored(truth, results, tmp_path)
    assert score.values["AP"] == RIGHT
    assert [row["id"] for row in score.categories] == [0, 1]


@pytest.mark.parametrize("counts", [[3, 4, 13], rle.compress([3, 4, 13])])
def test_a_truth_may_hold_runs_of_either_form(counts: Any) -> None:
    truth = document((0, 0, 9, {"size": [4, 5], "counts": counts}))
    truth["images"][0].update(height=4, width=5, file_name="a.jpg")
    read = instance_truth.read_document(json.dumps(truth).encode(), "truth")
    assert (read.pixels.tolist(), read.area.tolist(), read.names) == ([4], [9.0], {0: "a.jpg"})
    assert read.notes == []
    assert read.boxes.tolist() == [[0, 0, 0, 0]]


def test_the_second_of_two_equal_ids_is_named() -> None:
    truth = document(*[(0, 0, 9, mask(3, 3))] * 3)
    truth["annotations"][2]["id"] = 2
    with pytest.raises(HostError, match=r"^truth: annotations with the same id: 2$"):
        instance_truth.read_document(json.dumps(truth).encode(), "truth")


def test_a_truth_is_read_plain_gzipped_zipped_or_packed(tmp_path: Path) -> None:
    data = json.dumps(document((0, 0, 9, mask(3, 3)))).encode()
    path = tmp_path / "truth"
    for upload in (data, gzip.compress(data), zipped({"a/truth.json": data, "readme.txt": b"x"})):
        path.write_bytes(upload)
        (name, read), *others = instance_truth.read(str(path), "x").items()
        assert (name, read.ids.tolist(), others) == ("x", [1], [])
        assert list(scorer.read_truth(str(path), "coco").splits) == ["val"]
    for upload in (zipped({"a.json": data, "b.json": data}), zipped({"a.txt": b"x"})):
        path.write_bytes(upload)
        with pytest.raises(HostError, match="holds (2 JSON files|no JSON file); an annotation file has one"):
            instance_truth.read(str(path))
    instance_truth.write(str(path), {"a": data, "b": data})
    assert list(instance_truth.read(str(path))) == list(scorer.read_truth(str(path), "coco").splits) == ["a", "b"]


def test_polygons_of_a_packed_truth_are_drawn_once_and_stay_what_they_were(tmp_path: Path) -> None:
    ring, hole = [10.5, 10, 60, 10, 60, 50.25, 10, 50], [70, 5, 90, 5, 90, 100]
    polygons = document((0, 0, 7.5, [ring]), (1, 0, 9, mask(3, 3)), (1, 0, 9, [ring, hole]), images=2)
    del polygons["annotations"][2]["area"]
    polygons["annotations"][0]["bbox"] = [10, 10, 50.1, 40]
    path, packed = tmp_path / "truth.json", tmp_path / "truth.zip"
    path.write_text(json.dumps(polygons))
    assert main(["pack", "--layout", "coco", "--root", str(path), "--out", str(packed)]) == 0
    (annotations,) = (json.loads(data)["annotations"] for data in instance_truth.documents(str(packed)).values())
    assert [item["segmentation"]["size"] for item in annotations] == [list(SIZE)] * 3
    before, after = (instance_truth.read(str(file))["val"] for file in (path, packed))
    assert before.masks[0] == coco.merge(coco.frPyObjects([ring], *SIZE))["counts"].decode()
    assert before.masks[2] == coco.merge(coco.frPyObjects([ring, hole], *SIZE))["counts"].decode()
    assert before.masks.text == after.masks.text
    assert before.notes == after.notes
    for name in ("pixels", "area", "boxes", "crowd", "image", "category", "ids"):
        assert np.array_equal(getattr(before, name), getattr(after, name)), name


def test_a_polygon_of_a_truth_lies_near_the_longer_side_of_its_image() -> None:
    for corner, near in ((4 * 130, True), (4 * 130 + 1, False)):
        truth = document((0, 0, 9, [[0, 0, corner, 0, 50, 50]]))
        if near:
            assert instance_truth.read_document(json.dumps(truth).encode(), "truth").pixels[0] > 0
            continue
        with pytest.raises(HostError, match="far outside"):
            instance_truth.read_document(json.dumps(truth).encode(), "truth")
