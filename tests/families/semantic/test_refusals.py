"""Refused truths and results of label maps, by the whole sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders import png
from tests.families.refusals import Refusal, refuse

MAP = png(np.array([[0, 1], [0, 1]], np.uint8))
CATEGORIES = [{"id": number, "name": str(number)} for number in range(92, 184)]


def records(*labels: int) -> list[dict[str, Any]]:
    """Return records of one image, each of which covers all pixels."""
    whole = {"size": [2, 2], "counts": [0, 4]}
    return [{"image_id": 1, "category_id": label, "segmentation": whole} for label in labels]


def stuff(*images: dict[str, int], label: int = 92, name: str = "stuff_val2017.json") -> dict[str, bytes]:
    document = {"images": images, "categories": CATEGORIES, "annotations": records(label) if images else []}
    return {name: json.dumps(document).encode()}


STREET = {
    f"a_000000_000001_gtFine_{kind}Ids.png": png(np.full((2, 2), label, np.uint16))
    for kind, label in (("instance", 26001), ("label", 25))
}
IMAGE = {"id": 1, "height": 2, "width": 2}
REFUSED: dict[str, Refusal] = {
    "no videos": ("semantic", {"a.txt": b""}, {"a/00000.png": MAP}, "truth: has no frames of any video; put the PNGs of each video into a folder of its own"),
    "no maps": ("ade20k", {"a.txt": b""}, {"a.png": MAP}, "truth: has no PNG"),
    "no maps of streets": ("cityscapes", {"a.png": MAP}, {"a.png": MAP}, "truth: has no ..._instanceIds.png"),
    "a name twice": ("ade20k", {"x/a.png": MAP, "y/a.png": MAP}, {"a.png": MAP}, "truth: has 1 PNG with names that other PNGs have too; name one folder"),
    "names twice": ("ade20k", {f"{folder}/{name}.png": MAP for folder in "xyz" for name in "ab"}, {"a.png": MAP}, "truth: has 4 PNGs with names that other PNGs have too; name one folder"),
    "no images of stuff": ("coco-stuff", stuff(), {"r.json": b"[]"}, "the truth has no images"),
    "labels beyond the list": ("coco-stuff", stuff(IMAGE, label=256), {"r.json": b"[]"}, "truth: cannot be read as the truth of COCO-Stuff (has labels outside 1 to 255. Use the categories of COCO-Stuff)"),
    "two files of a split": ("coco-stuff", stuff(IMAGE) | stuff(IMAGE, name="old_stuff_val2017.json"), {"r.json": b"[]"}, "truth: cannot be read as the truth of COCO-Stuff (has 2 JSON files of this split. Name the file)"),
    "objects of other classes": ("cityscapes", STREET, {"a_000000_000001.png": MAP}, "a_000000_000001_gtFine_instanceIds.png: cannot be read (does not have the classes of a_000000_000001_gtFine_labelIds.png. Make both from the same polygons)"),
    "two labels on a pixel": ("coco-stuff", stuff(IMAGE), {"r.json": json.dumps(records(92, 93)).encode()}, "image 1: has pixels with several labels, such as (0, 0). Give each pixel one label."),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_one_sentence(name: str, tmp_path: Path) -> None:
    protocol, truth, upload, sentence = REFUSED[name]
    assert refuse(tmp_path, protocol, truth, upload) == sentence
