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
EXAMPLE = '[{"image_id": 1, "category_id": 1, "segmentation": {"size": [h, w], "counts": "..."}, "score": 0.9}, ...]'
FILE, RECORD = "your file: ", "record 0 (image 1): "
SEND = f". Send one JSON file, plain, gzipped or zipped, with a list of records: {EXAMPLE}."
WRITE, ENCODE = f". Write {EXAMPLE}.", ". Encode it with pycocotools or as it does."
ID, NUMBER, CORNERS = ". Write the id as a number.", ". Write a number.", ". Write [[x1, y1, x2, y2, x3, y3, ...]]."


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


#: Uploads with their sentences; a sentence with the words of Python is a pattern.
HOSTILE: dict[str, tuple[bytes, str | re.Pattern[str]]] = {
    "good": (text(record()), "scored"),
    "none": (b"[]", "scored"),
    "many": (text(*[record()] * 20_000), "scored"),
    "of other categories": (text(*[record(category_id=9)] * 20_000), "scored"),
    "of categories nobody looked for": (text(*[record(category_id=3)] * 20_000), "scored"),
    "empty file": (b"", f"{FILE}is empty{SEND}"),
    "an object": (b"{}", f"{FILE}is not a list of records{WRITE}"),
    "cut off": (text(record())[:-9], f"{FILE}is not valid JSON: a closing quote is missing for the text that begins at character 94. Write it with a JSON library."),
    "broken": (b"[{]", re.compile("^your file: is not valid JSON: .*character [0-9]+. Write it with a JSON library.$")),
    "utf-16": (b"\xff\xfe\x00[", f"{FILE}is UTF-16 text{SEND}"),
    "deep": (b"[" * LONG, re.compile("nested too deeply|valid JSON|is missing")),
    "braces": (b"[" + b"}" * LONG, re.compile("^your file: is not valid JSON: .*character [0-9]+. Write it with a JSON library.$")),
    "blanks": (b"[" + b" " * LONG + b"]", "scored"),
    "zeros": (b"[" + b"0," * (LONG // 2) + b"0]", f"records 0 (image ?), 1 (image ?), 2 (image ?) and at least 997 more: each is not an object{WRITE}"),
    "lists": (b"[" + b"[]," * (LONG // 3) + b"[]]", f"records 0 (image ?), 1 (image ?), 2 (image ?) and at least 997 more: each is not an object{WRITE}"),
    "two files": (zipped({"a.json": b"[]", "b.json": b"[]"}), f"{FILE}holds 2 JSON files{SEND}"),
    "no file": (zipped({"a.txt": b"[]"}), f"{FILE}holds no JSON file, only a.txt{SEND}"),
    "bomb": (zipped({"a.json": b"[" + b" " * (60 << 20) + b"]"}), "a.json: unpacks to more than 200 times its size, like a zip bomb. Create the archive again and upload it."),
    "a key twice": (b'[{"score":1,' + text(record())[2:], f"{FILE}has the key score twice in one object. Write each key once."),
    "a number": (text(5), f"record 0 (image ?): is not an object{WRITE}"),
    "null": (text(None), f"record 0 (image ?): is not an object{WRITE}"),
    "no image": (without("image_id"), f"record 0 (image ?): lacks image_id{WRITE}"),
    "no category": (without("category_id"), f"{RECORD}lacks category_id{WRITE}"),
    "no score": (without("score"), f"{RECORD}lacks score{WRITE}"),
    "no mask": (without("segmentation"), f"{RECORD}lacks segmentation{WRITE}"),
    "unknown image": (text(record(image_id=2)), "record 0 (image 2): has an image_id that the truth lacks. Use the ids of the truth's images."),
    "score in quotes": (text(record(score="0.5")), f"{RECORD}has a score in quotes, which is not a number. Write the score without quotes."),
    "image as text": (text(record(image_id="1")), f"{RECORD}has an image_id in quotes, which is not a whole number. Write the id without quotes."),
    "image as float": (text(record(image_id=1.0)), f"record 0 (image 1.0): has the image_id 1.0, which is not a whole number{ID}"),
    "huge image": (text(record(image_id=1 << 70)), "record 0 (image 1180591620717411303424): has the image_id 1180591620717411303424, which is too large for an id. Use the ids of the truth."),
    "category as truth": (text(record(category_id=True)), f"{RECORD}has the category_id True, which is not a whole number{ID}"),
    "score as text": (text(record(score="high")), f"{RECORD}has the score 'high', which is not a finite number{NUMBER}"),
    "score NaN": (text(record(score=float("nan"))), f"{RECORD}has the score nan, which is not a finite number{NUMBER}"),
    "score huge": (text(record(score=10**400)), f"{RECORD}has the score {10**119}..., which is not a finite number{NUMBER}"),
    "mask as number": (text(record(5)), f"{RECORD}has a segmentation that is neither run lengths nor polygons{WRITE}"),
    "mask as text": (text(record("abc")), f"{RECORD}has a segmentation that is neither run lengths nor polygons{WRITE}"),
    "empty polygons": (text(record([])), f"{RECORD}has a polygon without three corners (x, y){CORNERS}"),
    "short polygon": (text(record([[1, 2, 3, 4]])), f"{RECORD}has a polygon without three corners (x, y){CORNERS}"),
    "odd polygon": (text(record([[1, 2, 3, 4, 5, 6, 7]])), f"{RECORD}has a polygon without three corners (x, y){CORNERS}"),
    "far polygon": (text(record([[0, 0, 10**9, 0, 10**9, 10**9]])), f"{RECORD}has a polygon with corners that are not numbers or lie far outside the image. Write corners as numbers within the image."),
    "size turned": (size([WIDTH, HEIGHT]), f"{RECORD}has a mask of size [30, 20] but the image is [20, 30] (height, width). Encode the mask at the size of the image."),
    "size as text": (size("20x30"), f"{RECORD}has a mask of size 20x30, which is not [height, width]{ENCODE}"),
    "huge size": (size([1 << 40, 1 << 40]), f"{RECORD}has a mask of size [1099511627776, 1099511627776] but the image is [20, 30] (height, width). Encode the mask at the size of the image."),
    "counts as null": (counts(None), f"{RECORD}has counts that are neither text nor a list{ENCODE}"),
    "counts empty": (counts(""), f"{RECORD}has counts that do not add up to the pixels of its image{ENCODE}"),
    "counts endless": (counts("o" * 60), f"{RECORD}has counts that end too early or do not end{ENCODE}"),
    "counts too long": (counts("0" * 100_000), f"{RECORD}has more counts than its image can need{ENCODE}"),
    "counts below zero": (counts("O0"), f"{RECORD}has counts below zero{ENCODE}"),
    "counts not ASCII": (counts("\u00e9"), f"{RECORD}has counts with invalid characters{ENCODE}"),
    "counts short": (counts([5, 5]), f"{RECORD}has counts that add up to 10, not to the 600 pixels of the frame{ENCODE}"),
    "list negative": (counts([-1, HEIGHT * WIDTH + 1]), f"{RECORD}has counts below zero or beyond the frame{ENCODE}"),
    "list of floats": (counts([3.0, 597.0]), f"{RECORD}has counts that are not all whole numbers{ENCODE}"),
    "list huge": (counts([1 << 80]), f"{RECORD}has counts below zero or beyond the frame{ENCODE}"),
    "bad masks": (text(*[record({**MASK, "counts": "oooo"})] * 20_000), f"records 0 (image 1), 1 (image 1), 2 (image 1) and at least 997 more: each has counts that end too early or do not end{ENCODE}"),
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
    assert sentence == expected if isinstance(expected, str) else expected.search(sentence), sentence
