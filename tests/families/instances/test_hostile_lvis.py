"""Faults in a list of instances are reported quickly and in little memory under LVIS's and boundaries' rules too."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS
from tests.builders import score_instances, zipped
from tests.families.instances.test_lvis import HEIGHT, WIDTH, mask, truth
from tests.hostile_units import sentence_of

LONG = 2_000_000
MASK = mask(0, 10)


def record(segmentation: Any = MASK, **others: Any) -> dict[str, Any]:
    return {"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": segmentation, **others}


def text(*records: Any) -> bytes:
    return json.dumps(records).encode()


def counts(value: Any) -> bytes:
    return text(record({**MASK, "counts": value}))


def size(value: Any) -> bytes:
    return text(record({**MASK, "size": value}))


def without(key: str) -> bytes:
    item = record()
    del item[key]
    return text(item)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "good": (text(record()), "scored"),
    "none": (b"[]", "scored"),
    "many": (text(*[record()] * 20_000), "scored"),
    "of other categories": (text(*[record(category_id=9)] * 20_000), "scored"),
    "of categories nobody looked for": (text(*[record(category_id=3)] * 20_000), "scored"),
    "empty file": (b"", "is empty"),
    "an object": (b"{}", "not a list of records"),
    "cut off": (text(record())[:-9], "closing (bracket|quote) is missing"),
    "broken": (b"[{]", "is not valid JSON"),
    "utf-16": (b"\xff\xfe\x00[", "is UTF-16 text"),
    "deep": (b"[" * LONG, "nested too deeply|valid JSON|is missing"),
    "braces": (b"[" + b"}" * LONG, "is not valid JSON"),
    "blanks": (b"[" + b" " * LONG + b"]", "scored"),
    "zeros": (b"[" + b"0," * (LONG // 2) + b"0]", "is not an object"),
    "lists": (b"[" + b"[]," * (LONG // 3) + b"[]]", "is not an object"),
    "two files": (zipped({"a.json": b"[]", "b.json": b"[]"}), "holds 2 JSON files"),
    "no file": (zipped({"a.txt": b"[]"}), "JSON"),
    "bomb": (zipped({"a.json": b"[" + b" " * (60 << 20) + b"]"}), "zip bomb|larger|bytes"),
    "a key twice": (b'[{"score":1,' + text(record())[2:], "twice"),
    "a number": (text(5), "is not an object"),
    "null": (text(None), "is not an object"),
    "no image": (without("image_id"), "lacks image_id"),
    "no category": (without("category_id"), "lacks category_id"),
    "no score": (without("score"), "lacks score"),
    "no mask": (without("segmentation"), "lacks segmentation"),
    "unknown image": (text(record(image_id=2)), "has an image_id that the truth lacks"),
    "image as text": (text(record(image_id="1")), "which is not a whole number"),
    "image as float": (text(record(image_id=1.0)), "which is not a whole number"),
    "huge image": (text(record(image_id=1 << 70)), "too large for an id"),
    "category as truth": (text(record(category_id=True)), "which is not a whole number"),
    "score as text": (text(record(score="high")), "not a finite number"),
    "score NaN": (text(record(score=float("nan"))), "not a finite number"),
    "score huge": (text(record(score=10**400)), "not a finite number"),
    "mask as number": (text(record(5)), "neither run lengths nor polygons"),
    "mask as text": (text(record("abc")), "neither run lengths nor polygons"),
    "empty polygons": (text(record([])), "without three corners"),
    "short polygon": (text(record([[1, 2, 3, 4]])), "without three corners"),
    "odd polygon": (text(record([[1, 2, 3, 4, 5, 6, 7]])), "without three corners"),
    "far polygon": (text(record([[0, 0, 10**9, 0, 10**9, 10**9]])), "far outside"),
    "size turned": (size([WIDTH, HEIGHT]), "but the image is"),
    "size as text": (size("20x30"), "which is not .height, width"),
    "huge size": (size([1 << 40, 1 << 40]), "but the image is"),
    "counts as null": (counts(None), "neither text nor a list"),
    "counts empty": (counts(""), "add up"),
    "counts endless": (counts("o" * 60), "end too early or do not end"),
    "counts too long": (counts("0" * 100_000), "more counts than its image can need"),
    "counts below zero": (counts("O0"), "below zero"),
    "counts not ASCII": (counts("\u00e9"), "invalid characters"),
    "counts short": (counts([5, 5]), "add up to 10"),
    "list negative": (counts([-1, HEIGHT * WIDTH + 1]), "below zero"),
    "list of floats": (counts([3.0, 597.0]), "not all whole numbers"),
    "list huge": (counts([1 << 80]), "beyond the frame"),
    "bad masks": (text(*[record({**MASK, "counts": "oooo"})] * 20_000), "and at least 997 more: each has"),
    "borders in texts": (text(*[record(note='}, {"image_id": 1}, {' * 300)] * 300), "scored"),
    "long text": (text(record(note="a" * LONG)), "scored"),
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("protocol", ["lvis", "lvis-boundary"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_submission_is_a_sentence(name: str, protocol: str, tmp_path: Path) -> None:
    data, expected = HOSTILE[name]
    document = truth(neg_category_ids=[2], not_exhaustive_category_ids=[])
    known = instance_truth.read_document(json.dumps(document).encode(), "truth")

    def score(path: Path) -> Any:
        return score_instances(str(path), known, INSTANCE_PROTOCOLS[protocol], INSTANCE_LIMITS)

    sentence = sentence_of(data, tmp_path, score)
    assert re.search(expected, sentence), sentence
