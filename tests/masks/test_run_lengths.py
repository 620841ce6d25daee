"""Run lengths and polygons: by definition, and each rule at its limit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.families.instances.records import check_record
from segjudge.evaluation_script.families.instances.submission import InstanceRecords, read_records
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS
from segjudge.evaluation_script.files.problems import Flaw, SubmissionError
from segjudge.evaluation_script.masks import polygons, rings
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.backend import NumpyBackend, backend
from segjudge.evaluation_script.masks.polygons import outlines, polygon_mask
from tests.builders import zipped
from tests.families.choices import BOXES
from tests.masks.test_masks_in_files import encoded

coco = pytest.importorskip("pycocotools.mask")


def decoded(text: str) -> list[int] | None:
    """Return the run lengths of a text, by definition; None for an invalid one."""
    runs: list[int] = []
    value = count = 0
    for character in text:
        code = ord(character) - 48
        value |= (code & 31) << 5 * count
        count += 1
        if code & 32:
            continue
        if count > 6:
            return None
        if code & 16:
            value -= 1 << 5 * count
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = count = 0
    return None if count else runs


#: What checks the texts: the kernel where there is one, and numpy.
BACKENDS = [backend(), NumpyBackend("in a test")]


@pytest.mark.parametrize("characters", [7, 1 << 16])
@pytest.mark.parametrize("beside", [0, 1, 3])
@pytest.mark.parametrize("checks", BACKENDS)
def test_each_fault_is_told_of_the_mask_that_has_it(
    checks: NumpyBackend, characters: int, beside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rle, "_CHARACTERS", characters)
    good = rle.compress([1, 2, 3, 1, 2, 3])
    cases = {
        good: 0, rle.compress([12]): 0, "": 4, "1é": 1, good + "/": 1, good + "p": 1, good[:-1] + "P": 2,
        "X" + "P" * 5 + "0" + "4": 2, "X" + "P" * 4 + "0" + "4": 0, rle.compress([5, 8, -1]): 3,
        rle.compress([13, 0, 0, -1]): 3, rle.compress([12, 1]): 4, "0" * 88: 4, "0" * 89: 5,
    }  # fmt: skip
    many = [item for text in cases for item in [*[good] * beside, text]]
    checked = checks.check_masks(many, np.full(len(many), 12))
    assert checked.fault.tolist() == [number for fault in cases.values() for number in [*[0] * beside, fault]]
    assert checked.area[0] == (6 if many[0] == good else 0)
    assert checks.check_masks(["", "0"], np.zeros(2, int)).fault.tolist() == [0, 0]
    assert checks.check_masks([], np.zeros(0, int)).fault.tolist() == []


def test_runs_are_compressed_as_they_are_defined() -> None:
    lists = [[0], [31], [32], [15, 16, 17], [1, 2, 3, 1000, 5, 6, 7], [1 << 28, 0, 5, 1 << 27, 2], [], [9, 9, 9, 9]]
    assert rle.compress_many(lists) == [encoded(item) for item in lists]
    assert rle.compress_many([]) == []
    assert [rle.compress(item) for item in lists] == rle.compress_many(lists)
    assert rle.compress(np.array([1, 2, 3, 200], np.uint8)) == rle.compress([1, 2, 3, 200])
    assert [decoded(encoded(item)) for item in lists] == lists


@pytest.mark.parametrize(
    ("runs", "error"),
    [
        ([11], ValueError),
        ([6, 7], ValueError),
        ([13, -1], ValueError),
        ([12, *[1 << 62] * 4], ValueError),  # whose sum in 64 bits is 12
        ([], TypeError),
        ([6, 6.0], TypeError),
        ([11, True], TypeError),
        ([*[0] * 99, 12], TypeError),
    ],
)
def test_runs_that_do_not_fill_their_image_are_not_compressed(runs: list[Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        rle.compress_many([[12], runs], np.array([12, 12]))


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ([5, 7], None),
        ([0, 12], None),
        ([12], None),
        ([], "has counts that add up to 0, not to the 12 pixels of the frame"),
        ([5, 6], "has counts that add up to 11, not to the 12 pixels of the frame"),
        ([13, -1], "has counts below zero or beyond the frame"),
        ([13], "has counts below zero or beyond the frame"),
        ([10**30], "has counts below zero or beyond the frame"),
        ([-(10**30), 1], "has counts below zero or beyond the frame"),
        ([-1, 13], "has counts below zero or beyond the frame"),
        ([0] * 87 + [12], None),
        ([0] * 88 + [12], "has counts of length 89, more than 12 pixels can need"),
        ("0" * 87 + "<", None),
        ("0" * 88 + "<", "has counts of length 89, more than 12 pixels can need"),
        (rle.compress([13]), "has counts below zero or beyond the frame"),
        ([12.0], "has counts that are not all whole numbers"),
        ([True, 11], "has counts that are not all whole numbers"),
        (None, "has counts that are neither text nor a list"),
        ("1\x2f", "has counts with invalid characters"),
        ("1\u00fc", "has counts with invalid characters"),
        ("1p", "has counts with invalid characters"),
        ("1o", "has counts that end too early or do not end"),
    ],
)
def test_runs_fill_their_frame(counts: Any, sentence: str | None) -> None:
    if sentence is None:
        assert rle.runs_of(counts, 12).sum() == 12
        return
    with pytest.raises(Flaw) as caught:
        rle.runs_of(counts, 12)
    assert caught.value.fault == sentence


def test_runs_go_down_the_columns_and_begin_with_background() -> None:
    flags = rle.flags({"size": [3, 4], "counts": [1, 3, 2, 2, 3, 1]}, (3, 4))
    assert flags.shape == (1, 3, 64)
    assert flags[0, :, :4].T.reshape(-1).tolist() == [bool(int(bit)) for bit in "011100110001"]
    assert not flags[0, :, 4:].any()


# ── polygons ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("corner", "near"), [(40, True), (-40, True), (40.1, False), (-40.1, False)])
def test_a_corner_lies_within_four_image_sizes(corner: float, near: bool) -> None:
    ring = [0, 0, 5, 5, corner, 1]
    if near:
        outlines([[[0, 0, 1, 1, 30, 30]], [ring]], np.array([50, 10]))
        return
    with pytest.raises(Flaw, match="with corners that are not numbers or lie far outside"):
        outlines([[[0, 0, 1, 1, 30, 30]], [ring]], np.array([50, 10]))


def test_an_outline_has_a_longest_length(monkeypatch: pytest.MonkeyPatch) -> None:
    assert polygons.LONGEST_OUTLINE == 250_000
    monkeypatch.setattr(polygons, "LONGEST_OUTLINE", 23)
    outlines([[0, 0, 10, 4, 3, 2.5]], np.array([20]))
    with pytest.raises(Flaw, match="whose outline is 25 pixels long; the limit is 23"):
        outlines([[0, 0, 11, 4, 3, 2.5]], np.array([20]))


@pytest.mark.parametrize("ring", [[], [0, 0, 5, 5], [0, 0, 5, 5, 9], [0, 0, 5, 5, 9, 9, 1], "012345", {"a": 1}])
def test_a_ring_has_three_whole_corners(ring: Any) -> None:
    with pytest.raises(Flaw, match="without three corners"):
        outlines([[[0, 0, 5, 5, 9, 0], ring]], np.array([20]))
    outlines([[[0, 0, 5, 5, 9, 0]]], np.array([20]))


@pytest.mark.parametrize("side", [None, "1", True, 10**400, float("nan"), float("inf")])
def test_a_corner_is_a_number(side: Any) -> None:
    with pytest.raises(Flaw, match="not numbers or lie far outside"):
        outlines([[[0, 0, 5, 5, 9, side]]], np.array([20]))


def test_polygons_are_drawn_as_pycocotools_draws_them() -> None:
    ring = [1, 1, 8, 1, 8, 4, 1, 4]
    text = polygon_mask([ring], 6, 10)
    assert text == coco.merge(coco.frPyObjects([ring], 6, 10))["counts"].decode()
    assert rle.runs_of(text, 60)[1::2].sum() == 21
    assert polygon_mask(ring, 6, 10) == text
    assert rings.mask_of([[0.0] * 6], 0, 5) == rings.mask_of([[0.0] * 6], 5, 0) == ""


# ── records ─────────────────────────────────────────────────────────────────

IMAGES = instance_truth.read_document(
    json.dumps(
        {
            "images": [{"id": 30, "height": 3, "width": 4}, {"id": 10, "height": 6, "width": 2}],
            "categories": [{"id": 7, "name": "a"}, {"id": 5, "name": "b"}],
            "annotations": [],
        }
    ).encode(),
    "truth",
).images


def one(image: int = 10, category: int = 5, score: Any = 0.5, **others: Any) -> dict[str, Any]:
    size = [3, 4] if image == 30 else [6, 2]
    mask = {"size": size, "counts": [2, 10]}
    return {"image_id": image, "category_id": category, "score": score, "segmentation": mask, **others}


def read(data: Any, folder: Path, name: str = "places2017", **limits: Any) -> InstanceRecords:
    path = folder / "upload"
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return read_records(str(path), IMAGES, INSTANCE_PROTOCOLS[name], replace(INSTANCE_LIMITS, **limits))


def test_records_are_columns_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Records name images and categories by their position among the sorted ids; an unknown category is -1."""
    sent = [
        one(30, 7, 1),
        one(10, 6, -2.5),
        one(10, 9, segmentation=[[0, 0, 2, 0, 2, 6, 0, 6]]),
        one(30, 4, segmentation={"size": [3, 4], "counts": rle.compress([12])}),
        one(10, 5, segmentation={"size": [6, 2], "counts": [11, 1]}),
    ]
    records = read(sent, tmp_path)
    assert records.image.tolist() == [1, 0, 0, 1, 0]
    assert records.category.tolist() == [1, -1, -1, -1, 0]
    assert records.score.tolist() == [1.0, -2.5, 0.5, 0.5, 0.5]
    assert records.area.tolist() == [10, 10, 12, 0, 1]
    assert list(records.masks) == [rle.compress(runs) for runs in ([2, 10], [2, 10], [0, 12], [12], [11, 1])]
    assert records.warnings == ["3 of 5 records have a category that the truth lacks and were ignored"]


def test_boxes_beside_masks_are_counted(tmp_path: Path) -> None:
    output = "a bbox beside the mask, which was ignored; the official script would compute areas from it"
    assert read([one(bbox=[0, 0, 1, 1]), one()], tmp_path).warnings == [f"1 record has {output}"]
    assert read([one(bbox=5)] * 2, tmp_path).warnings == [f"2 records have {output}"]
    boxes = read([{**one(), "bbox": [1, 2, 3, 4.5]}], tmp_path, BOXES)
    assert (boxes.warnings, boxes.boxes.tolist(), boxes.area.tolist()) == ([], [[1, 2, 3, 4.5]], [13.5])


@pytest.mark.parametrize(("count", "fits"), [(4, True), (5, False)])
def test_there_are_as_many_records_as_are_allowed(count: int, fits: bool, tmp_path: Path) -> None:
    if fits:
        assert len(read([one()] * count, tmp_path, records=4).image) == count
        return
    with pytest.raises(SubmissionError, match="your file: holds more than 4 records. Send fewer"):
        read([one()] * count, tmp_path, records=4)


def test_a_problem_names_the_record_its_image_and_the_file(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match=r"(?s)record 1 \(image 30\): lacks score\..*record 3 \(image 11\)"):
        read([one(), {k: v for k, v in one(30).items() if k != "score"}, one(), one(11)], tmp_path)
    with pytest.raises(SubmissionError, match=r"^a/r\.json: is not valid JSON"):
        read(zipped({"a/r.json": b"[{]", "notes.txt": b"x"}), tmp_path)
    with pytest.raises(SubmissionError, match=r"^your file: holds no JSON file, only a\.txt"):
        read(zipped({"a.txt": b"x"}), tmp_path)
    with pytest.raises(SubmissionError, match="^your file: holds no files"):
        read(zipped({}), tmp_path)


@pytest.mark.parametrize(
    ("box", "sentence"),
    [
        ([0, 0, 0, 0], None),
        ([-5, -1.5, 3, 4], None),
        ([1 << 24, -(1 << 24), 1 << 24, 1 << 24], None),
        ([(1 << 24) + 1, 0, 1, 1], "far outside its image"),
        ([0, 0, 1, (1 << 24) + 1], "far outside its image"),
        ([0, -(1 << 24) - 1, 1, 1], "far outside its image"),
        ([0, 0, -1, 1], "negative or not finite"),
        ([0, 0, 1, -0.5], "negative or not finite"),
        ([0, 0, 1, float("inf")], "negative or not finite"),
        ([0, 10**400, 1, 1], "negative or not finite"),
        ([0, 0, 1], r"not \[x, y, width, height\]"),
        ([0, 0, 1, 1, 1], r"not \[x, y, width, height\]"),
        ([0, 0, 1, "1"], r"not \[x, y, width, height\]"),
        ([0, 0, True, 1], r"not \[x, y, width, height\]"),
        (5, r"not \[x, y, width, height\]"),
    ],
)
def test_a_box_is_four_numbers_near_its_image(box: Any, sentence: str | None, tmp_path: Path) -> None:
    record = {**one(), "bbox": box}
    if sentence is None:
        check_record(record, (6, 2), boxes=True)
        assert read([record], tmp_path, BOXES).boxes.tolist() == [box]
        return
    with pytest.raises(Flaw, match=sentence):
        check_record(record, (6, 2), boxes=True)
    with pytest.raises(SubmissionError, match="record 0"):
        read([record], tmp_path, BOXES)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"image_id": (1 << 63) - 1}, None),
        ({"image_id": -(1 << 63)}, None),
        ({"image_id": 1 << 63}, "has the image_id 9223372036854775808, which is too large for an id"),
        ({"category_id": -(1 << 63) - 1}, "has the category_id .*, which is too large for an id"),
        ({"category_id": 5.0}, "has the category_id 5.0, which is not a whole number"),
        ({"score": 10**400}, "has the score .*, which is not a finite number"),
        ({"score": "1"}, "has a score in quotes, which is not a number"),
        ({"score": -3}, None),
        ({"segmentation": {"size": [6, 2]}}, "neither run lengths nor polygons"),
        ({"segmentation": {"size": [6, 2.0], "counts": [12]}}, r"of size \[6, 2.0\], which is not \[height, width\]"),
        ({"segmentation": {"size": [2, 6], "counts": [12]}}, r"of size \[2, 6\] but the image is \[6, 2\]"),
        ({"segmentation": {"size": [6, 2], "counts": [11]}}, "add up to 11"),
        ({"segmentation": {"size": [6, 2], "counts": "what it holds is looked at elsewhere"}}, None),
        ({"segmentation": [0, 0, 5, 5, 9, 24]}, None),
        ({"segmentation": [0, 0, 5, 5, 9, 24.5]}, "far outside"),
    ],
)
def test_the_first_thing_that_is_wrong_with_a_record_is_said(change: Any, sentence: str | None) -> None:
    if sentence is None:
        check_record(one(**change) if "image_id" not in change else {**one(), **change}, (6, 2), boxes=False)
        return
    with pytest.raises(Flaw, match=sentence):
        check_record({**one(), **change}, (6, 2), boxes=False)


def test_a_record_lacks_what_its_protocol_needs() -> None:
    for boxes, names in ((False, "segmentation"), (True, "bbox")):
        with pytest.raises(Flaw, match=f"^.*lacks category_id and {names} and score"):
            check_record({"image_id": 1}, (6, 2), boxes=boxes)
    with pytest.raises(Flaw, match="has an image_id that the truth lacks"):
        check_record(one(), None, boxes=False)
    with pytest.raises(Flaw, match="is not an object"):
        check_record([], (6, 2), boxes=False)
