"""Instance masks: random data compared with pycocotools, and hostile submissions."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS, ArchiveLimits
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks import run_lengths as rle
from tests.builders import count_results, score_instances, zipped
from tests.drawing import examples

coco = pytest.importorskip("pycocotools.mask")
SIZE = (30, 40)

#: Ranges of areas and caps.
EVERY_PAIR = [(area, cap) for area in range(4) for cap in range(3)]

#: Every detection right: pycocotools adds an epsilon below the fraction.
ONE = pytest.approx(1.0, abs=1e-12)


def encoded(mask: Any) -> dict[str, Any]:
    run = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": [int(side) for side in run["size"]], "counts": run["counts"].decode()}


def box(top: int, left: int, height: int, width: int, size: Any = SIZE) -> Any:
    mask = np.zeros(size, bool)
    mask[top : top + height, left : left + width] = True
    return mask


def document(seed: int, *, images: int = 6, categories: int = 4, first_id: int = 1) -> tuple[dict[str, Any], list[Any]]:
    """Return a random truth with crowds and overlaps, and detections with ties."""
    lot = np.random.default_rng(seed)

    def blob() -> Any:
        return box(
            *(int(x) for x in (lot.integers(0, 24), lot.integers(0, 34), lot.integers(1, 25), lot.integers(1, 30)))
        )

    truth: dict[str, Any] = {
        "images": [{"id": 7 * k, "height": SIZE[0], "width": SIZE[1]} for k in range(images)],
        "categories": [{"id": 3 * k + 1, "name": f"c{k}"} for k in range(categories)],
        "annotations": [],
    }
    results = []
    for image in truth["images"]:
        for _ in range(int(lot.integers(0, 6))):
            mask, category = blob(), int(lot.integers(categories)) * 3 + 1
            truth["annotations"].append(
                {
                    "id": len(truth["annotations"]) + first_id, "image_id": image["id"], "category_id": category,
                    "area": float(mask.sum() * lot.choice([1, 1, 0.2, 40])), "iscrowd": int(lot.random() < 0.2),
                    "bbox": [0.0, 0.0, 1.0, 1.0], "segmentation": encoded(mask),
                }
            )  # fmt: skip
            for _ in range(int(lot.integers(0, 5))):
                moved = np.roll(mask, tuple(lot.integers(-3, 4, 2)), (0, 1)) if lot.random() < 0.7 else blob()
                results.append(
                    {
                        "image_id": image["id"],
                        "category_id": category
                        if lot.random() < 0.8
                        else int(lot.integers(-1, categories + 1)) * 3 + 1,
                        "score": float(np.round(lot.random(), 1)),
                        "segmentation": encoded(moved),
                    }
                )
    return truth, results


def official(truth: Any, prediction: Any, caps: tuple[int, int, int]) -> Any:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        api = COCO()
        api.dataset = json.loads(json.dumps(truth))
        api.createIndex()
        run = COCOeval(api, api.loadRes(json.loads(json.dumps(prediction))), "segm")
        run.params.maxDets = list(caps)
        run.evaluate()
        run.accumulate()
    return run.eval


def ours(truth: Any, prediction: Any, protocol: Any, folder: Path) -> tuple[Any, Any]:
    path = folder / "found.json"
    path.write_text(json.dumps(prediction))
    read = instance_truth.read_document(json.dumps(truth).encode(), "truth")
    counted = count_results(str(path), read, ScoringRules(protocol, INSTANCE_LIMITS))
    return counted.rank_detections().curves(EVERY_PAIR), counted.compute().warnings


@pytest.mark.long
@examples(150)
@given(
    seed=st.integers(0, 2**32 - 1),
    images=st.integers(1, 8),
    categories=st.integers(1, 5),
    first_id=st.integers(0, 1),
    name=st.sampled_from(["coco", "places2017-official"]),
)
def test_random_data_score_as_pycocotools_says_bit_for_bit(
    seed: int, images: int, categories: int, first_id: int, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    truth, results = document(seed, images=images, categories=categories, first_id=first_id)
    assume(results)  # pycocotools fails on no detections
    protocol = replace(INSTANCE_PROTOCOLS[name], id_zero_quirk=True)

    curves, _ = ours(truth, results, protocol, tmp_path_factory.getbasetemp())

    theirs = official(truth, results, protocol.detections)
    assert np.array_equal(curves.precision, theirs["precision"])
    assert np.array_equal(curves.recall, theirs["recall"])


@pytest.mark.parametrize("seed", range(8))
def test_boxes_beside_masks_give_areas_as_pycocotools_takes_them(seed: int, tmp_path: Path) -> None:
    truth, results = document(seed, images=6, categories=3, first_id=seed % 2)
    lot = np.random.default_rng(seed)
    boxed = [{"bbox": (lot.random(4) * 60).tolist(), "area": None, **one} for one in results]
    protocol = INSTANCE_PROTOCOLS["coco-official"]

    curves, warnings = ours(truth, boxed, protocol, tmp_path)
    theirs = official(truth, boxed, protocol.detections)
    assert np.array_equal(curves.precision, theirs["precision"])
    assert np.array_equal(curves.recall, theirs["recall"])
    assert not any("bbox" in warning for warning in warnings)

    first_without = [{**boxed[0], "bbox": []}, *boxed[1:]]
    assert np.array_equal(
        ours(truth, first_without, protocol, tmp_path)[0].precision,
        ours(truth, results, protocol, tmp_path)[0].precision,
    )


TRUTH = {
    "images": [{"id": 1, "height": 30, "width": 40}, {"id": 2, "height": 20, "width": 20}],
    "categories": [{"id": 1, "name": "bed"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "area": 100, "iscrowd": 0, "segmentation": encoded(box(2, 2, 10, 10))}],
}  # fmt: skip
GOOD = {"image_id": 1, "category_id": 1, "score": 0.9, "segmentation": encoded(box(2, 2, 10, 10))}


def score(data: Any, folder: Path, protocol: str = "places2017", limits: ArchiveLimits = INSTANCE_LIMITS) -> Any:
    path = folder / "upload"
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    truth = instance_truth.read_document(json.dumps(TRUTH).encode(), "truth")
    return score_instances(str(path), truth, INSTANCE_PROTOCOLS[protocol], limits)


def with_rle(**changes: Any) -> list[Any]:
    return [{**GOOD, "segmentation": {**GOOD["segmentation"], **changes}}]


def with_counts(counts: Any) -> list[Any]:
    return with_rle(counts=counts)


BAD: dict[str, tuple[Any, str]] = {
    "no-list": ({"a": 1}, "not a list of records"),
    "cut-off": (json.dumps([GOOD] * 9).encode()[:-20], "closing (bracket|quote) is missing"),
    "deep": (b"[" * 10_000 + b"]" * 10_000, "nested too deeply|is not an object|record"),
    "deep-record": (b'[{"a":' + b"[" * 300_000 + b"]" * 300_000 + b"}]", "nested too deeply"),
    "endless-record": (lambda: b'[{"a": "' + b"x" * (40 << 20) + b'"}]', "unterminated record"),
    "many-lists": (lambda: b"[" + b"[]," * 5_000_000 + b"[]]", "is missing|too many lists|is not an object"),
    "box-for-mask": (
        [{**{k: v for k, v in GOOD.items() if k != "segmentation"}, "bbox": [0, 0, 5, 5]}],
        "lacks segmentation; its bbox is not compared",
    ),
    "image-true": ([{**GOOD, "image_id": True}], "image_id True, which is not a whole number"),
    "image-huge": ([{**GOOD, "image_id": 10**30}], "too large for an id"),
    "category-text": ([{**GOOD, "category_id": "1"}], "a category_id in quotes, which is not a whole number"),
    "score-nan": (json.dumps([GOOD]).replace("0.9", "NaN").encode(), "score that is not finite|not a finite number"),
    "size-beyond": (with_rle(size=[1 << 70, 1]), "but the image|not \\[height, width\\]"),
    "counts-endless": (with_counts("5" * 100_000), "more counts than its image can need"),
    "counts-2^31": (with_counts(rle.compress([1 << 31, 5])), "too early or do not end|do not add up"),
    "list-2^40": (with_counts([1 << 40]), "below zero or beyond"),
    "gzip-bomb": (lambda: gzip.compress(b"[" + b" " * (300 << 20)), "unpacks to more than|is missing"),
}


#: The inputs that take seconds, and are made by their tests.
SLOW = ("gzip-bomb", "endless-record", "many-lists")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in BAD])
def test_a_bad_submission_is_refused_with_a_sentence(name: str, tmp_path: Path) -> None:
    data, message = BAD[name]
    with pytest.raises(SubmissionError, match=message):
        score(data() if name in SLOW else data, tmp_path)
    assert score([GOOD], tmp_path).values["AP"] == ONE


def test_the_first_twenty_problems_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="(?s)50 problems found.*20\\. record 19 .*and 30 more like these"):
        masks = [{**GOOD["segmentation"], "size": [7, 100 + number]} for number in range(50)]
        score([{**GOOD, "segmentation": mask} for mask in masks], tmp_path)


def test_the_same_mistake_in_many_records_is_one_sentence(tmp_path: Path) -> None:
    places = (
        r"records 0 \(image 9\), 1 \(image 9\), 2 \(image 9\) and 197 more: each has an image_id that the truth lacks"
    )
    with pytest.raises(SubmissionError, match=f"^{places}[^\n]*$"):
        score([{**GOOD, "image_id": 9}] * 200, tmp_path)


ACCEPTED: dict[str, Callable[[], Any]] = {
    "plain": lambda: [GOOD],
    "spaced": lambda: json.dumps([GOOD, {**GOOD, "score": 0.1}], indent=4).encode(),
    "gzip": lambda: gzip.compress(json.dumps([GOOD]).encode()),
    "zip": lambda: zipped({"folder/results.json": json.dumps([GOOD]).encode()}),
    "bom": lambda: b"\xef\xbb\xbf" + json.dumps([GOOD]).encode(),
    "list-counts": lambda: with_counts(rle.runs_of(GOOD["segmentation"]["counts"], 1200).tolist()),
    "polygon": lambda: [{**GOOD, "segmentation": [[2, 2, 12, 2, 12, 12, 2, 12]]}],
    "polygon-and-others": lambda: [{**GOOD, "segmentation": [[2, 2, 12, 2, 12, 12, 2, 12]]}, {**GOOD, "score": 0.1}],
    "whole-score": lambda: [{**GOOD, "score": 1}],
    "other-keys": lambda: [{**GOOD, "note": {"deep": [1, {"er": 2}]}, "area": "?"}],
    "unknown-category": lambda: [GOOD, {**GOOD, "category_id": 77, "score": 1.0}],
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_every_form_of_a_good_submission_scores_the_same(name: str, tmp_path: Path) -> None:
    result = score(ACCEPTED[name](), tmp_path)
    assert result.values["AP"] == ONE
    assert bool(result.warnings) == (name == "unknown-category")


def test_nothing_is_dropped_in_silence(tmp_path: Path) -> None:
    many = [{**GOOD, "score": k / 1000} for k in range(300)]
    assert "45 records beyond 255 in 1 image were dropped" in score(many, tmp_path).warnings
    assert any(
        "category that the truth lacks" in line or "truth lacks their category" in line
        for line in score([{**GOOD, "category_id": 5}], tmp_path).warnings
    )
    assert any("bbox beside the mask" in line for line in score([{**GOOD, "bbox": [0, 0, 5, 5]}], tmp_path).warnings)
    assert score([], tmp_path).values["AP"] == 0.0
    assert "the submission holds no records" in score([], tmp_path).warnings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["images"][0].pop("height"), "images without height and width: 1"),
        (lambda d: d["images"].append(d["images"][0]), "images with the same id: 1"),
        (lambda d: d["annotations"].append(d["annotations"][0]), "annotations with the same id: 1"),
        (lambda d: d["annotations"][0].update(image_id=9), "images that are not listed: 1"),
        (
            lambda d: d["annotations"][0]["segmentation"].update(counts="5"),
            "annotation 1 has counts that do not add up",
        ),
        (lambda d: d["annotations"][0]["segmentation"].update(size=[1, 1]), "mask of annotation 1 has the size"),
        (lambda d: d.pop("categories"), "not an annotation file in COCO's format"),
    ],
)
def test_a_broken_truth_is_the_hosts_mistake(change: Any, message: str) -> None:
    truth = json.loads(json.dumps(TRUTH))
    change(truth)
    with pytest.raises(HostError, match=message):
        instance_truth.read_document(json.dumps(truth).encode(), "truth")


def test_area_and_crowd_are_taken_from_the_mask_with_a_note() -> None:
    truth = json.loads(json.dumps(TRUTH))
    del truth["annotations"][0]["area"], truth["annotations"][0]["iscrowd"]
    read = instance_truth.read_document(json.dumps(truth).encode(), "truth")
    assert (read.area[0], read.crowd[0]) == (100, False)
    assert len(read.notes) == 2


def test_packed_documents_are_splits(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.zip", "b.zip")]
    for path in paths:
        instance_truth.write(str(path), {"easy": json.dumps(TRUTH).encode(), "hard": json.dumps(TRUTH).encode()})
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert set(instance_truth.read(str(paths[0]))) == {"easy", "hard"}


def test_malformed_records_do_not_hide_the_problems_of_others(tmp_path: Path) -> None:
    bad = [GOOD, {**GOOD, "score": True}, {**GOOD, "image_id": 9}, *with_counts(rle.compress([1205, -5]))]
    with pytest.raises(
        SubmissionError, match="(?s)3 problems.*record 1 .*score True.*record 2 .*lacks.*record 3 .*below zero"
    ):
        score(bad, tmp_path)
