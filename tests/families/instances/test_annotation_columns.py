"""Annotations read as a table: the same truth as from the JSON parser, and no table for unusual annotations."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.instances import annotation_columns as reader
from segjudge.evaluation_script.families.instances import truth as truths
from segjudge.evaluation_script.families.instances.annotation_columns import read_annotations
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.masks.run_lengths import compress
from tests.backends import compiled, skip_file_without_kernel, use

skip_file_without_kernel()


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read by the kernel, also in a run by numpy."""
    use(monkeypatch, compiled())


def annotation(draw: random.Random, number: int, size: tuple[int, int]) -> dict[str, Any]:
    """Return an annotation of the usual form, with its keys in any order."""
    height, width = size
    kind, cut = draw.randrange(4), draw.randrange(height * width)
    corners = [round(draw.uniform(-2, 14), draw.choice([0, 2, 15])) for _ in range(2 * draw.randrange(3, 9))]
    shapes = [
        [corners],
        [corners, corners[::-1]],
        {"size": [height, width], "counts": compress([cut, height * width - cut])},
        {"counts": [cut, height * width - cut], "size": [height, width]},
    ]
    row = {
        "segmentation": shapes[kind], "area": draw.choice([draw.uniform(0, 99), 7, 0.1, 1e-9, 123456.75]),
        "iscrowd": draw.choice([0, 0, 1]), "image_id": draw.randrange(1, 4),
        "bbox": [draw.uniform(0, 9) for _ in range(4)], "category_id": draw.choice([2, 5, 77]), "id": 10 * number,
        "note": draw.choice(["é\n", None, {"a": [1]}]),
    }  # fmt: skip
    for key in ("area", "iscrowd", "bbox", "note"):
        if draw.random() < 0.1:
            del row[key]
    keys = list(row)
    draw.shuffle(keys)
    return {key: row[key] for key in keys}


def document(draw: random.Random, count: int = 12) -> dict[str, Any]:
    sizes = {1: (9, 11), 2: (12, 7), 3: (1, 30)}
    rows = [annotation(draw, number, (9, 11)) for number in range(count)]
    for row in rows:
        if isinstance(row["segmentation"], dict):
            row["image_id"] = 1
    return {
        "info": {"year": 2017},
        "images": [{"id": key, "height": h, "width": w, "file_name": f"{key}.jpg"} for key, (h, w) in sizes.items()],
        "annotations": rows,
        "categories": [{"id": 5, "name": "five"}, {"id": 2, "name": "two", "frequency": "r"}],
    }


def assert_equal(ours: Any, theirs: Any) -> None:
    for field in dataclasses.fields(theirs):
        mine, other = getattr(ours, field.name), getattr(theirs, field.name)
        if field.name == "masks":
            assert (mine.text, mine.starts.tolist()) == (other.text, other.starts.tolist())
        elif dataclasses.is_dataclass(other):
            assert_equal(mine, other)
        elif isinstance(other, np.ndarray):
            assert (mine.dtype, mine.shape) == (other.dtype, other.shape), field.name
            assert mine.tobytes() == other.tobytes(), field.name
        else:
            assert mine == other, field.name


@pytest.mark.parametrize("seed", range(12))
def test_usual_annotations_give_the_truth_of_the_json_parser(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(reader, "_WINDOW", draw.choice([1 << 24, 3000]))
    content = document(draw)
    text = json.dumps(content, indent=draw.choice([None, 1]), ensure_ascii=draw.random() < 0.5)
    columns = read_annotations(text.encode())
    assert columns is not None
    assert len(columns[1].ids) == 12
    assert_equal(truths._read_by_kernel(text.encode(), "t"), truths.truth_of(json.loads(text), "t"))


#: A coordinate that stands in place of numbers that `json` never writes.
PLACE = 16_777_215
ODD = (
    "0.020000000000000000000000000000000001", "0E5", "-0", "30000000000e-10", "1.0e-400", "9007199254740993e-9",
    "1E+0",
)  # fmt: skip


def number(draw: random.Random) -> float:
    """Return a coordinate in one of the forms of JSON's numbers."""
    whole = draw.choice([0, draw.randrange(700), draw.randrange(-9, 0), PLACE])
    fraction = draw.choice([draw.uniform(0, 640), round(draw.uniform(0, 640), 2), 0.1 + 0.2, 1e-7, 5e-324, -0.0, 3e2])
    return draw.choice([whole, fraction])


def posed(draw: random.Random, *, points: int = 17) -> dict[str, Any]:
    """Return a document whose annotations have keypoints, and masks where they need them."""
    content = document(draw)
    for row in content["annotations"]:
        flags = [draw.choice([0, 1, 2, 2.0]) for _ in range(points)]
        flags[0] = flags[0] if "bbox" in row else 2
        row["keypoints"] = [value for flag in flags for value in (number(draw), number(draw), flag)]
        if draw.random() < 0.9:
            row["num_keypoints"] = draw.choice([sum(flag > 0 for flag in flags), 0, -1])
        if {"area", "bbox"} <= row.keys() and draw.random() < 0.5:
            del row["segmentation"]
        rows = list(row.items())
        draw.shuffle(rows)
        row.clear()
        row.update(rows)
    for category in content["categories"]:
        category.update(keypoints=["nose"] * points, skeleton=[[1, 2]])
        if points != 17 or draw.random() < 0.5:
            category["sigmas"] = [0.05 + index for index in range(points)]
    return content


@pytest.mark.parametrize("seed", range(16))
def test_keypoints_have_the_bits_of_the_json_parser(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(reader, "_WINDOW", draw.choice([1 << 24, 9000]))
    content = posed(draw, points=draw.choice([17, 17, 4, 1]))
    text = json.dumps(content, indent=draw.choice([None, 1]))
    for odd in ODD:
        text = text.replace(str(PLACE), odd, 1)
    read = truths._read_by_kernel(text.encode(), "t")
    assert read is not None
    assert read.keypoints is not None
    assert_equal(read, truths.truth_of(json.loads(text), "t"))


def changed(**values: Any) -> Any:
    def change(content: dict[str, Any]) -> None:
        content["annotations"][5].update(values)

    return change


UNUSUAL: dict[str, Any] = {
    "an unlisted image": changed(image_id=9), "an id twice": changed(id=40), "a long id": changed(id=1 << 62),
    "no area": changed(area=None), "a short box": changed(bbox=[1, 2, 3]), "an empty box": changed(bbox=[]),
    "another size": changed(segmentation={"size": [9, 12], "counts": compress([108])}),
    "broken runs": changed(segmentation={"size": [9, 11], "counts": "2P"}),
    "two corners": changed(segmentation=[[1, 2, 3, 4]]),
    "a far corner": changed(segmentation=[[1, 2, 3, 4, 5, 1e6]]), "no polygon": changed(segmentation=[]),
    "keypoints": changed(keypoints=[1, 2, 2], num_keypoints=1), "a distance": changed(distance=3.5),
    "occlusion": changed(hidden=0.5), "no annotations": lambda content: content.update(annotations=[]),
    "no images": lambda content: content.pop("images"),
    "keypoints of a category": lambda content: content["categories"][0].update(keypoints=["nose"]),
}  # fmt: skip


POINTS = list(range(51))
UNUSUAL_POSES: dict[str, Any] = {
    "no keypoints": lambda content: content["annotations"][5].pop("keypoints"),
    "no keypoints first": lambda content: content["annotations"][0].pop("keypoints"),
    "a number less": changed(keypoints=POINTS[:50]),
    "a point less": changed(keypoints=POINTS[:48]),
    "no numbers": changed(keypoints=[]),
    "null": changed(keypoints=None),
    "text": changed(keypoints=[*POINTS[:50], "2"]),
    "a word": changed(keypoints=[*POINTS[:50], True]),
    "no number": changed(keypoints=[float("nan"), *POINTS[1:]]),
    "a far point": changed(keypoints=[1 << 25, *POINTS[1:]]),
    "a number beyond doubles": changed(keypoints=[10**400, *POINTS[1:]]),
    "a list of points": changed(keypoints=[[1, 2, 2]] * 17),
    "half a mark": changed(num_keypoints=0.5),
    "marks as text": changed(num_keypoints="3"),
    "no marks": changed(num_keypoints=None),
    "many marks": changed(num_keypoints=1 << 70),
    "own sigmas": changed(sigmas=[1]),
    "another count of sigmas": lambda content: content["categories"][0].update(sigmas=[1, 2]),
    "neither mask nor area": lambda content: [content["annotations"][5].pop(key, 0) for key in ("area", "segmentation")],
    "neither marks nor box": lambda content: (content["annotations"][5].update(keypoints=[0] * 51), content["annotations"][5].pop("bbox", 0)),
}  # fmt: skip


def _rewrite(content: dict[str, Any], **values: Any) -> str:
    """Return the document with values in all annotations but the first."""
    for row in content["annotations"][1:]:
        row.update({key: value(row) if callable(value) else value for key, value in values.items()})
    return json.dumps(content)


DEEP: list[Any] = []
for _ in range(12):
    DEEP = [DEEP]

REWRITTEN: dict[str, Any] = {
    "ids as text": lambda content: _rewrite(content, id=lambda row: str(row["id"])),
    "ids with points": lambda content: _rewrite(
        content, **{key: lambda row, key=key: float(row[key]) for key in ("id", "image_id", "category_id")}
    ),
    "crowds as words": lambda content: _rewrite(content, iscrowd=lambda row: row["id"] % 3 == 0),
    "crowds with points": lambda content: _rewrite(content, iscrowd=lambda row: float(row["id"] % 3 == 0)),
    "deep values": lambda content: _rewrite(content, note=DEEP),
    "many keys": lambda content: _rewrite(content, **{f"key {number}": number for number in range(300)}),
    "a key twice": lambda content: json.dumps(content).replace('"image_id"', '"image_id": 9, "image_id"', 3),
    "escaped keys": lambda content: json.dumps(content).replace('"image_id"', '"im\\u0061ge_id"', 3),
    "many escaped keys": lambda content: json.dumps(content).replace('"bbox"', '"b\\u0062ox"'),
    "annotations before": lambda content: json.dumps({"info": {"annotations": [{"id": 1}]}, **content}),
    "annotations of another document": lambda content: json.dumps(
        {"before": {"annotations": content["annotations"][:3]}, **content, "after": {"annotations": [1]}}
    ),
}


CASES: dict[str, Callable[[], bytes]] = {
    **{
        name: lambda rewrite=rewrite: rewrite(document(random.Random(3))).encode()
        for name, rewrite in REWRITTEN.items()
    },
    **{
        f"{name} ({make.__name__})": lambda change=change, make=make: changed_document(change, make)
        for make, changes in ((document, UNUSUAL), (posed, UNUSUAL_POSES))
        for name, change in changes.items()
    },
}


def changed_document(change: Callable[[Any], Any], make: Callable[[Any], Any]) -> bytes:
    content = make(random.Random(3))
    change(content)
    return json.dumps(content).encode()


@pytest.mark.parametrize("case", CASES)
def test_unusual_annotations_are_what_the_json_parser_reads(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = CASES[case]()
    monkeypatch.setattr(reader, "_WINDOW", 9000)
    try:
        expected: Any = truths.truth_of(json.loads(data), "t")
    except HostError as error:
        with pytest.raises(HostError) as caught:
            truths.read_document(data, "t")
        assert str(caught.value) == str(error)
    else:
        assert_equal(truths.read_document(data, "t"), expected)
