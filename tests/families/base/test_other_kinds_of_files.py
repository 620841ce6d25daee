"""An upload of another kind of file is refused by what it holds; byte order marks of texts are skipped."""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.files.problems import SubmissionError
from tests.builders import png, zipped

_LINES = b"1 2001 2 4 6 08`0\n2 2001 2 4 6 48<\n"
_LABELS = np.array([[1, 1, 2], [1, 2, 2]], np.uint8)
_COLOURS = np.zeros((2, 4, 3), np.uint8)
_COLOURS[..., 0] = [[1, 1, 2, 2], [1, 1, 2, 2]]


def _write(files: dict[str, bytes], root: Path) -> None:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def _list_segments() -> dict[str, Any]:
    segments = [{"id": number, "category_id": number, "area": 4, "iscrowd": 0} for number in (1, 2)]
    categories = [{"id": number, "name": str(number), "isthing": number - 1} for number in (1, 2)]
    annotations = [{"image_id": 9, "file_name": "9.png", "segments_info": segments}]
    return {"annotations": annotations, "categories": categories}


_SEGMENTS = json.dumps(_list_segments()).encode()
_TRUTHS = {
    "mots": {"A/seqinfo.ini": b"[Sequence]\nseqLength=2\nimWidth=6\nimHeight=4\n", "A/gt/gt.txt": _LINES},
    "ade20k": {"1.png": png(_LABELS), "2.png": png(_LABELS)},
    "coco-panoptic": {"val.json": _SEGMENTS, "val/9.png": png(_COLOURS)},
}


def _score(protocol: str, upload: dict[str, bytes], folder: Path) -> Any:
    _write(_TRUTHS[protocol], folder / "truth")
    (folder / "results.zip").write_bytes(zipped(upload))
    truth = folder / "truth" / "val.json" if protocol == "coco-panoptic" else folder / "truth"
    return score(folder / "results.zip", truth, protocol)


@pytest.mark.parametrize(
    ("protocol", "upload", "fault"),
    [
        ("ade20k", {"1.npz": b"PK", "2.npz": b"PK"}, "the upload holds only 1.npz, 2.npz. Send one zip with a PNG for"),
        ("mots", {"A.csv": _LINES}, "is missing: A; the upload holds only A.csv. Send one zip with a text file"),
        ("mots", {"A.txt": _LINES.decode().encode("utf-16")}, "A.txt: is UTF-16 text. Save it in ASCII or UTF-8"),
        ("coco-panoptic", {"9.npz": b"PK"}, "holds no JSON file, only 9.npz. Send one zip with a JSON file that lists"),
        ("coco-panoptic", {"s.json": _SEGMENTS, "s/9.jpg": b"x"}, "holds no PNG, only s.json, s/9.jpg. Send one zip"),
        ("coco-panoptic", {"s.json": b"<html>", "s/9.png": b""}, "s.json: is not valid JSON"),
    ],
)
def test_what_an_upload_holds_instead_is_named(
    protocol: str, upload: dict[str, bytes], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(SubmissionError) as refusal:
        _score(protocol, upload, tmp_path)
    assert fault in str(refusal.value)


def test_byte_order_marks_are_skipped(tmp_path: Path) -> None:
    assert _score("mots", {"A.txt": codecs.BOM_UTF8 + _LINES}, tmp_path)["HOTA"] == 1
    upload = {"s.json": codecs.BOM_UTF8 + _SEGMENTS, "s/9.png": png(_COLOURS)}
    assert _score("coco-panoptic", upload, tmp_path)["PQ"] == 1
