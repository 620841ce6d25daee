"""Semantic segmentation: every number of VSPW's scripts, merging, and the cost of hostile submissions."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.families.semantic import engine as semantic
from segjudge.evaluation_script.families.semantic.protocols import SEMANTIC_PROTOCOLS
from tests.builders import chunk, png, raw_png, written, zipped
from tests.data import TRACKS_DATA
from tests.families.unit_counts import CLOSE, count_units, pack_units, score_units
from tests.hostile_units import Make, hostile, sentence_of
from tests.shared import needs_shared

VSPW = TRACKS_DATA / "vspw"


@needs_shared
@pytest.mark.parametrize("protocol", ["vspw-official", "semantic"])
def test_vspw_scores_as_its_scripts_say(protocol: str, tmp_path: Path) -> None:
    golden = json.loads((VSPW / "golden.json").read_text())
    published = semantic.read_truth(str(VSPW / "truth"), "")
    for truth in (published, pack_units(published, tmp_path)):
        accumulator = count_units(VSPW / "submission", truth, protocol)
        results = semantic.values(accumulator)
        assert list(results) == list(SEMANTIC_PROTOCOLS[protocol].metrics)
        for metric in ("mIoU", "Acc", "Acc_class", "fwIoU"):
            assert results[metric] == pytest.approx(golden[metric], **CLOSE)
        rows = {str(row["id"]): row for row in semantic.tables(accumulator)["categories"]}
        for label, iou in golden["iou_per_class"].items():
            assert rows[label]["IoU"] == pytest.approx(iou, **CLOSE)
        for metric in ("VC8", "VC16") if protocol == "vspw-official" else ():
            assert results[metric] == pytest.approx(golden[metric]["score"], **CLOSE)
            for counts in accumulator.complete_counts():
                ratios = [both / same if same else None for both, same in counts.tables[metric].tolist()]
                expected = golden[metric]["windows"].get(counts.name, [])
                assert ratios == [None if ratio is None else pytest.approx(ratio, **CLOSE) for ratio in expected]


def painted(folder: Path, frames: dict[str, Any]) -> Path:
    return written(folder, {name: png(np.asarray(labels, np.uint8)) for name, labels in frames.items()})


def test_consistency_can_be_counted_by_hand(tmp_path: Path) -> None:
    real = {f"t/a/{frame}.png": [[1, 2, 2, 2]] for frame in range(8)}
    sent = {f"s/a/{frame}.png": [[1, 1, 2, frame % 2]] for frame in range(8)}
    painted(tmp_path, {**real, **sent})
    units = score_units(tmp_path / "s", semantic.read_truth(str(tmp_path / "t"), ""), "semantic")
    assert units["VC8"] == 3 / 4
    assert units["VC16"] is None
    assert units["mIoU"] == ((8 / (8 + 8 + 4)) + 8 / 24) / 2


SIZE = (40, 50)
LABELS = np.arange(SIZE[0] * SIZE[1]).reshape(SIZE) % 7
IMAGE = png(LABELS.astype(np.uint8))


def upload(first: bytes | None = None, **files: bytes) -> bytes:
    members = {"a/0.png": IMAGE if first is None else first, "a/1.png": IMAGE, "b/0.png": IMAGE}
    return zipped({name: data for name, data in {**members, **files}.items() if data != b"absent"})


def picture(labels: Any, mode: str = "L") -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.asarray(labels, np.uint8), mode).save(out, "PNG")
    return out.getvalue()


def other_format(name: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(LABELS.astype(np.uint8)).save(out, name)
    return out.getvalue()


def pixels(fill: int, rows: int = SIZE[0]) -> bytes:
    return (b"\0" + bytes([fill]) * SIZE[1]) * rows


#: Files in place of a picture, and the message about each.
PICTURES: dict[str, tuple[Make, str]] = {
    "no-bytes": (lambda: b"", ".png: is empty"),
    "jpeg": (lambda: other_format("JPEG"), "is a JPEG image"),
    "cut-header": (lambda: IMAGE[:20], "is cut off"),
    "damaged": (lambda: IMAGE[:60] + b"\xff\xff" + IMAGE[62:], "is damaged"),
    "few-rows": (lambda: raw_png(SIZE[1], SIZE[0], 8, 0, pixels(1, 7)), "its pixels end in row 7"),
    "odd-depth": (lambda: raw_png(SIZE[1], SIZE[0], 3, 0, pixels(1)), "invalid values"),
    "no-width": (lambda: raw_png(0, SIZE[0], 8, 0, pixels(1)), "invalid values"),
    "huge-header": (lambda: raw_png(1 << 30, 1 << 30, 8, 0, pixels(1)), "pixels but the frame is 50x40"),
    "bomb": (lambda: raw_png(SIZE[1], SIZE[0], 8, 0, bytes(50 << 20)), "scored"),
    "many-chunks": (lambda: IMAGE[:33] + chunk(b"tEXt", b"") * 9999 + IMAGE[33:], "more than 4096 chunks"),
    "other-size": (lambda: png(LABELS.astype(np.uint8).T), "is 40x50 pixels but the frame is 50x40"),
    "sixteen-bits": (lambda: png(np.full(SIZE, 40_000, np.uint16)), "holds the label 40000"),
    "colours": (lambda: png(np.full((*SIZE, 3), (77, 1, 1), np.uint8)), "is not the colour of a label"),
    "alpha": (lambda: png(np.full((*SIZE, 2), 77, np.uint8)), "is grey with an alpha channel"),
    "transparent": (lambda: png(np.zeros((*SIZE, 4), np.uint8)), "is transparent"),
    "long-file": (lambda: os.urandom(3 << 20), "has 3,145,728 bytes"),
}  # fmt: skip
HOSTILE: dict[str, tuple[Make, str]] = {
    "text": (lambda: b"hello", "neither a zip nor a tar"),
    "json": (lambda: b'{"a": []}', "2 of 2 videos are missing: a, b"),
    "at-the-top": (lambda: zipped({"0.png": IMAGE}), "2 of 2 videos are missing"),
    "one-video": (lambda: upload(**{"b/0.png": b"absent"}), "1 of 2 videos is missing: b"),
    "frame-missing": (lambda: upload(**{"a/1.png": b"absent"}), "a, frame 1: there is no PNG a/1.png"),
    "frame-twice": (lambda: upload(**{"x/a/0.png": IMAGE}), "a, frame 0: there are 2 PNGs a/0.png"),
    "label-too-large": (lambda: upload(png(np.full(SIZE, 124, np.uint8))), "holds the label 124 where the truth is not"),
    "void-predicted": (lambda: upload(png(np.full(SIZE, 255, np.uint8))), "Write labels from 0 to 123"),
    **{name: (lambda make=make: upload(make()), sentence) for name, (make, sentence) in PICTURES.items()},
}  # fmt: skip


def small_truth(folder: Path) -> UnitTruth:
    painted(folder, {f"t/{name}.png": LABELS for name in ("a/0", "a/1", "b/0")})
    return semantic.read_truth(str(folder / "t"), "")


@hostile(HOSTILE)
def test_hostile_submissions_get_a_sentence_soon_and_in_little_memory(
    make: Make, sentence: str, tmp_path: Path
) -> None:
    truth = small_truth(tmp_path)
    assert sentence in sentence_of(make(), tmp_path, lambda path: score_units(path, truth, "vspw"))
