"""Files of other programs are read: every line of the table in docs/participants.md, and pictures with channels."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import tifffile
from PIL import Image
from pycocotools import mask as coco_mask
from skimage import io as skimage_io
from skimage import measure

import segjudge
from docs.site.writers import PICTURES, READERS, RECORDS, Writer
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files import Flaw
from segjudge.evaluation_script.masks import png, tiff
from segjudge.evaluation_script.masks.backend import backend
from tests.builders import png as make_png
from tests.builders import written, zipped

LABELS = np.kron(np.arange(12).reshape(3, 4), np.ones((9, 11), int))
#: The truth of pictures: of cells and of scenes.
TRUTH = {"a_masks.png": make_png(LABELS.astype(np.uint16))}
EQUAL = "is a colour picture with equal channels, which were read as one channel"


def run(call: str, **names: Any) -> Any:
    """Return the value of a call of the table."""
    modules = {"Image": Image, "cv2": cv2, "io": skimage_io, "measure": measure, "shutil": shutil, "tifffile": tifffile}
    return eval(call, {**modules, **names})


def name_of(row: Writer) -> str:
    return f"{row.program} {row.call}"


@pytest.mark.parametrize("row", PICTURES, ids=name_of)
def test_pictures_of_other_programs_are_read(row: Writer, tmp_path: Path) -> None:
    truth = written(tmp_path / "truth", TRUTH)
    for _, name in [READERS["maps"], READERS["cells"]] if row.kind == "maps" else [READERS[row.kind]]:
        sent = tmp_path / name
        sent.mkdir()
        run(row.call, labels=LABELS, path=str(sent / f"a_masks.{row.ending}"))
        scores = segjudge.score(sent, truth, name)
        assert scores.metrics["val"][PROTOCOLS[name].metrics[0]] == 1
        assert any(EQUAL in line for line in scores.warnings) == ("channels" in row.note), scores.warnings


@pytest.mark.parametrize("row", RECORDS, ids=name_of)
def test_records_of_other_programs_are_read(row: Writer, tmp_path: Path) -> None:
    mask = np.zeros((20, 30), np.uint8)
    mask[5:15, 8:20] = 1
    text = coco_mask.encode(np.asfortranarray(mask))["counts"].decode()
    names = {"x": 8, "y": 5, "w": 12, "h": 10, "size": [20, 30], "mask": mask}
    runs = np.diff(np.flatnonzero(np.diff(np.r_[2, mask.T.reshape(-1), 2]))).tolist()
    record = run(row.call, counts=runs, encode=lambda _: {"size": [20, 30], "counts": text}, **names)
    annotation = {"id": 1, "image_id": 1, "category_id": 2, "iscrowd": 0, "area": 120, "bbox": [8, 5, 12, 10]}
    document = {
        "images": [{"id": 1, "height": 20, "width": 30}],
        "categories": [{"id": 2, "name": "two"}],
        "annotations": [{**annotation, "segmentation": {"size": [20, 30], "counts": text}}],
    }
    for name, value in (("truth", document), ("sent", [record])):
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    scores = segjudge.score(tmp_path / "sent.json", tmp_path / "truth.json", READERS[row.kind][1])
    assert scores.metrics["val"]["AP"] == pytest.approx(1)
    assert any("bbox" in line for line in scores.warnings) == ("bbox" in row.note), scores.warnings


# ── channels ────────────────────────────────────────────────────────────────


def merged(labels: Any, alpha: int | None = None) -> bytes:
    return make_png(np.stack([labels] * 3 + ([] if alpha is None else [np.full_like(labels, alpha)]), axis=-1))


def test_equal_channels_are_labels_where_the_palette_lacks_a_grey() -> None:
    labels = LABELS.astype(np.uint8)
    for data in (merged(labels), merged(labels, 255)):
        assert np.array_equal(backend().read_labels(data, labels.shape), labels)
        assert png.holds_equal_channels(data, labels.shape)
    for value, label in ((0, 0), (64, 56), (128, 7), (191, 63), (192, 63), (255, 255)):  # the palette's own greys
        painted = merged(np.array([[0, value]], np.uint8))
        assert backend().read_labels(painted, (1, 2)).tolist() == [[0, label]]
        assert not png.holds_equal_channels(painted, (1, 2))
    assert backend().read_labels(merged(np.array([[1, 128]], np.uint8)), (1, 2)).tolist() == [[1, 128]]
    with pytest.raises(Flaw, match="is transparent"):
        backend().read_labels(merged(labels, 254), labels.shape)
    one_off = np.stack([labels] * 3, axis=-1)
    one_off[4, 5, 2] ^= 1
    with pytest.raises(Flaw, match="is not the colour of a label"):
        backend().read_labels(make_png(one_off), labels.shape)
    with pytest.raises(Flaw, match="is a colour picture"):
        backend().read_channel(make_png(one_off), labels.shape, "Remedy")


def test_videos_with_equal_channels_are_scored_with_a_warning(tmp_path: Path) -> None:
    frames = [np.roll(LABELS % 3, shift, 1).astype(np.uint8) for shift in range(4)]
    truth = written(
        tmp_path / "truth",
        {f"Annotations/480p/v/{index:05d}.png": make_png(labels) for index, labels in enumerate(frames)},
    )
    for make, expected in ((make_png, 0), (merged, 1)):
        path = tmp_path / "sent.zip"
        path.write_bytes(zipped({f"v/{index:05d}.png": make(labels) for index, labels in enumerate(frames)}))
        scores = segjudge.score(path, truth, "davis2017")
        assert scores.metrics["val"]["J&F-Mean"] == 1
        assert len([line for line in scores.warnings if EQUAL in line]) == expected, scores.warnings


@pytest.mark.parametrize("kind", ["uint8", "uint16"])
@pytest.mark.parametrize("options", [{}, {"tile": (16, 16)}, {"compression": "zlib", "predictor": 2}], ids=str)
@pytest.mark.parametrize("axis", [-1, 0], ids=["pixel by pixel", "channel by channel"])
def test_tiffs_with_equal_channels_are_read(axis: int, kind: str, options: dict[str, Any]) -> None:
    picture = np.stack([LABELS] * 3, axis=axis).astype(kind)
    options = {**options, "planarconfig": "contig" if axis else "separate"}
    out = io.BytesIO()
    tifffile.imwrite(out, picture, photometric="rgb", **options)
    assert tiff.has_channels(out.getvalue())
    assert np.array_equal(tiff.read_labels(out.getvalue(), LABELS.shape, wide=True), LABELS)
    np.moveaxis(picture, axis, -1)[8, 9, 1] += 1
    out = io.BytesIO()
    tifffile.imwrite(out, picture, photometric="rgb", **options)
    with pytest.raises(Flaw, match="is a colour picture"):
        tiff.read_labels(out.getvalue(), LABELS.shape, wide=True)
    with pytest.raises(Flaw, match="has 3 channels|is written in tiles"):
        tiff.read_labels(out.getvalue(), LABELS.shape)
