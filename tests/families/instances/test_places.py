"""Places-style PNGs are converted as by the official converter, and drawn."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.cli import main
from tests.builders import ROOT
from tests.data import GOLDEN

PNGS = GOLDEN / "places" / "png"
TRUTH = str(ROOT / "annotations/instances-dev.zip")
SHARP = str(ROOT / "examples/instances-dev/sharp.json")


def write_listing(tmp_path: Path) -> Path:
    """Write the list of images and categories of the PNGs."""
    document = json.loads(gzip.decompress((GOLDEN / "places/official_converter_gt.json.gz").read_bytes()))
    path = tmp_path / "listing.json"
    path.write_text(json.dumps({"images": document["images"], "categories": document["categories"]}))
    return path


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    return write_listing(tmp_path)


def test_the_document_equals_the_official_one_annotation_by_annotation(
    listing: Path, tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "out.json"
    assert main(["convert", "places", str(PNGS), str(out), "--categories", str(listing)]) == 0

    official = json.loads(gzip.decompress((GOLDEN / "places/official_converter_gt.json.gz").read_bytes()))
    ours = json.loads(out.read_text())
    assert ours["images"] == official["images"]
    assert ours["categories"] == official["categories"]
    assert ours["annotations"] == official["annotations"]
    output = capsys.readouterr().err
    assert output.count("has the category 0, which is not in the list: it is kept") == 4
    assert "has the categories 69 and 79" in output


@pytest.mark.parametrize(
    ("options", "key"),
    [
        (["--cap", "category", "--id-zero-quirk", "on"], "ids_from_0_as_official_converter|percat255_as_official"),
        (["--cap", "image", "--id-zero-quirk", "on"], "ids_from_0_as_official_converter|across255_as_README"),
        (["--cap", "category", "--id-zero-quirk", "off"], "ids_from_1|percat255_as_official"),
        (["--cap", "image", "--id-zero-quirk", "off"], "ids_from_1|across255_as_README"),
    ],
)
def test_all_four_golden_runs_are_reached(options: list[str], key: str, tmp_path: Path) -> None:
    truth, out = tmp_path / "truth.json", tmp_path / "scores.json"
    truth.write_bytes(gzip.decompress((GOLDEN / "places/official_converter_gt.json.gz").read_bytes()))
    preds = str(GOLDEN / "places/preds.json.gz")
    main(
        [
            "score", "--preds_json", preds, "--dataset_json", str(truth), "--protocol", "places2017", *options,
            "--json", str(out),
        ]
    )  # fmt: skip
    golden = json.loads((GOLDEN / "golden_places.json").read_text())["runs"][key]
    assert json.loads(out.read_text())["result"][0]["val"] == pytest.approx(golden["stats"], abs=1e-12)


def picture(folder: Path, name: str, red: Any, green: Any) -> None:
    Image.fromarray(np.stack([red, green, np.zeros_like(red)], axis=2).astype(np.uint8)).save(folder / name)


def test_without_a_list_images_are_numbered_and_the_host_is_told(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "png"
    folder.mkdir()
    green = np.zeros((8, 9), int)
    green[1:4, 2:5] = 7
    picture(folder, "b.png", green // 7 * 2, green)
    picture(folder, "a.png", green * 0, green * 0)
    categories = tmp_path / "c.json"
    categories.write_text('{"categories": [{"id": 1, "name": "bed"}]}')
    out = tmp_path / "o.json"

    assert main(["convert", "places", str(folder), str(out), "--categories", str(categories)]) == 0

    document = json.loads(out.read_text())
    assert [(image["id"], image["file_name"]) for image in document["images"]] == [(0, "a.jpg"), (1, "b.jpg")]
    assert [(a["id"], a["image_id"], a["category_id"], a["area"]) for a in document["annotations"]] == [(0, 1, 2, 9)]
    output = capsys.readouterr().err
    assert "lists no images" in output
    assert "b.png: instance 7 has the category 2, which is not in the list" in output


def test_a_page_shows_what_was_right_wrong_and_missed(tmp_path: Path) -> None:
    assert main(["show", SHARP, "--truth", TRUTH, "--out", str(tmp_path), "--iou", "0.75"]) == 0
    page = (tmp_path / "index.html").read_text()
    assert page.count("<figure>") == 12
    assert "union of 0.75" in page
    for name in os.listdir(tmp_path / "images"):
        with Image.open(tmp_path / "images" / name) as image:
            assert image.size == (2 * 320 + 8, 240 + 26)
    green = (0, 158, 115)
    with Image.open(tmp_path / "images" / "1.png") as image:
        colours = {colour for _, colour in image.getcolors(1 << 20) or []}
    assert green in colours
