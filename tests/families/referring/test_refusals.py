"""Refused truths of referring images, by the whole sentence."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from tests.families.refusals import refuse

MASK = {"size": [2, 2], "counts": [0, 4]}
DOCUMENT = {
    "images": [{"id": 1, "height": 2, "width": 2}],
    "annotations": [{"id": 1, "image_id": 1, "segmentation": MASK}],
}
REMEDY = "Write the same records as JSON"
#: A pickle of references → what is wrong with it.
PICKLES = {
    "a function": (pickle.dumps(json.loads, 2), "it holds json.loads, but only plain values are read"),
    "half of a list": (pickle.dumps(["a" * 99], 2)[:-9], "pickle data was truncated"),
    "no pickle": (b"nonsense", "invalid load key, 'n'"),
}


@pytest.mark.parametrize("name", PICKLES)
def test_a_pickle_of_more_than_plain_values_is_refused(name: str, tmp_path: Path) -> None:
    data, fault = PICKLES[name]
    files = {"refs(u).p": data, "instances.json": json.dumps(DOCUMENT).encode()}
    sentence = refuse(tmp_path, "refcoco", files, {"a.jsonl": b""})
    start = "truth: cannot be read as the truth of referring images"
    assert sentence == f"{start} (is not a pickle of plain values: {fault}. {REMEDY})"
