"""Cells in images: every number of Cellpose's script, the safe rules, files of other programs, and rejections."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import segjudge
from segjudge.evaluation_script.families import PROTOCOLS, report_of
from segjudge.evaluation_script.families.base.reports import bounds_of
from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.families.microscopy.engine import count_pairs, list_mistakes
from segjudge.evaluation_script.families.microscopy.files import read_truth
from segjudge.evaluation_script.families.microscopy.protocols import THRESHOLDS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.masks.tiff import encode_tiff
from tests.builders import png, written
from tests.data import FAMILIES_DATA
from tests.families.promises import PROMISES, keep
from tests.families.unit_counts import count_units, pack_units, read_golden, score_units

DATA = FAMILIES_DATA / "cellpose"
GOLDEN = read_golden(DATA)
METRICS = ("AP50", "AP75", "AP90")


def folder(path: Path, maps: dict[str, Any]) -> Path:
    """Write maps, or files, by name; names without an ending become 16-bit PNGs."""
    files = {
        name: labels if isinstance(labels, bytes) else png(np.asarray(labels, "u2")) for name, labels in maps.items()
    }
    return written(path, {name if "." in name else f"{name}_masks.png": data for name, data in files.items()})


def golden_sides(case: str, tmp_path: Path) -> tuple[Path, UnitTruth]:
    """Return a case's submission and truth, with names of the test set and the names that Cellpose saves."""
    sides = {
        kind: {file.name[:2]: file.read_bytes() for file in (DATA / case).glob(f"*_{kind}.png")}
        for kind in ("pred", "truth")
    }
    sent = folder(tmp_path / "sent", {f"{name}_img_cp_masks.png": data for name, data in sides["pred"].items()})
    truth = folder(tmp_path / "truth", {f"{name}_masks.png": data for name, data in sides["truth"].items()})
    return sent, read_truth(str(truth))


def score_one(tmp_path: Path, truth: Any, sent: Any, protocol: str = "cellpose-ap") -> dict[str, Any]:
    return score_units(
        folder(tmp_path / "s", {"a": sent}), read_truth(str(folder(tmp_path / "t", {"a": truth}))), protocol
    )


# ── numbers ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("case", ["ordinary", "both-sides", "halves", "no-background"])
def test_the_scripts_bits_are_ours(case: str, tmp_path: Path) -> None:
    if case not in GOLDEN["cases"]:
        pytest.skip("needs the shared data")
    golden = GOLDEN["cases"][case]
    sent, truth = golden_sides(case, tmp_path)
    for source in (truth, pack_units(truth, tmp_path)):
        assert list(score_units(sent, source, "cellpose-ap-official").values()) == golden["mean"]
        counts = count_units(sent, source, "cellpose-ap-official")
        assert [table.tolist() for table in list_mistakes(counts)] == [golden[key] for key in ("tp", "fp", "fn")]
        rows = [[row[metric] for metric in METRICS] for row in report_of("val", counts).rows()["images"]]
        assert rows == golden["ap"]
        safe = list(score_units(sent, source, "cellpose-ap").values())
        assert safe == ([1, 1, 1] if case == "no-background" else pytest.approx(golden["nanmean"], abs=1e-7, rel=0))


def match_as_the_script(truth: Any, prediction: Any, threshold: float) -> int:
    """Return the matches of the assignment that is best by IoU and by the number above the threshold."""
    labels = [np.unique(side[side > 0]) for side in (truth, prediction)]
    ious = np.array([[((truth == a) & (prediction == b)).sum() / ((truth == a) | (prediction == b)).sum()
                      for b in labels[1]] for a in labels[0]]).reshape(*map(len, labels))  # fmt: skip
    if not ious.size:
        return 0
    rows, columns = linear_sum_assignment(-(ious >= threshold).astype(float) - ious / (2 * min(ious.shape)))
    return int((ious[rows, columns] >= threshold).sum())


@pytest.mark.parametrize("seed", range(2))
def test_halves_and_ties_match_as_in_the_best_assignment(seed: int) -> None:
    """In maps of few blocks, many pairs have an IoU of exactly one half, and some of three quarters."""
    draw = np.random.default_rng(seed)
    for _ in range(20):
        truth, prediction = (
            np.repeat(np.repeat(draw.integers(0, 4, (2, 4)), draw.integers(1, 3), 0)[:2], 2, axis=1) for _ in range(2)
        )
        tables = count_pairs(backend().count_label_pairs(LabelMap(truth), LabelMap(prediction)))
        matches = [match_as_the_script(truth, prediction, threshold) for threshold in THRESHOLDS.values()]
        assert tables["matches"].tolist() == matches


# ── the safe rules ──────────────────────────────────────────────────────────


NONE = np.zeros((4, 6))
TWO = NONE.copy()
TWO[:2, :2], TWO[2:, 4:] = 7, 300


def test_an_image_without_any_cell_is_in_no_mean_and_said(tmp_path: Path) -> None:
    truth = folder(tmp_path / "t", {"a": TWO, "b": NONE, "c": NONE})
    sent = folder(tmp_path / "s", {"a": TWO, "b": NONE, "c": TWO[:, ::-1]})
    scores = segjudge.score(sent, truth, "cellpose-ap")
    assert scores.metrics["val"] == {"AP50": 0.5, "AP75": 0.5, "AP90": 0.5}
    assert scores.warnings == ["val: 1 image is without cells in truth and prediction, so not averaged: b"]
    scores = segjudge.score(sent, truth, "cellpose-ap-official")
    assert set(scores.metrics["val"].values()) == {None}
    assert "val: 1 image is without cells in truth and prediction, which leaves AP undefined: b" in scores.warnings


def test_an_image_without_background_keeps_all_its_cells(tmp_path: Path) -> None:
    full = np.repeat([[1, 2, 3]], 4, axis=0)
    assert set(score_one(tmp_path / "1", full, full).values()) == {1}
    assert score_one(tmp_path / "2", full, full, "cellpose-ap-official")["AP50"] == 3
    # The script ignores a single prediction that covers everything.
    assert score_one(tmp_path / "3", full, full > 0, "cellpose-ap-official")["AP50"] == 0
    assert score_one(tmp_path / "4", full[:, :1], full[:, :1], "cellpose-ap-official")["AP50"] is None
    assert bounds_of("AP50", PROTOCOLS["cellpose-ap-official"]) == (0, math.inf)
    sides = (folder(tmp_path / side, {"a": full, "b": TWO}) for side in "st")
    lines = segjudge.score(*sides, "cellpose-ap-official").warnings
    assert lines == [
        "val: 1 image is without background in truth or prediction, where the script counts one cell too few: a"
    ]
    # Next to background both count unchanged.
    assert score_one(tmp_path / "5", TWO, TWO == 7, "cellpose-ap-official")["AP50"] == 0.5


# ── files as people have and send them ──────────────────────────────────────


def test_tiffs_of_32_bits_in_tiles_score_as_pngs_do(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    truth, sent = (np.random.default_rng(seed).integers(0, 300, (40, 50)).repeat(5, 0) for seed in (1, 2))
    scores = []
    for name, kind in (("png", None), ("int32", np.int32), ("float32", np.float32)):
        for side, labels in (("t", truth), ("s", sent)):
            (tmp_path / name / side).mkdir(parents=True)
            path = tmp_path / name / side / "7_masks.png"
            if kind is None:
                path.write_bytes(png(labels.astype(np.uint16)))
            else:
                tifffile.imwrite(path.with_suffix(".tif"), labels.astype(kind), tile=(64, 64), bigtiff=True)
        scores.append(segjudge.score(str(tmp_path / name / "s"), str(tmp_path / name / "t"), "cellpose-ap").metrics)
    assert scores[0] == scores[1] == scores[2]


NAMES = ["7_masks.png", "x/7_img_cp_masks.png", "7_cp_masks.tif", "7_img_cp_masks.tiff", "7_mask.PNG", "7.png"]


@pytest.mark.parametrize("name", NAMES)
def test_masks_are_named_as_cellpose_names_them(name: str, tmp_path: Path) -> None:
    data = png(TWO.astype(np.uint16)) if name.lower().endswith("png") else encode_tiff(TWO[None].astype(np.uint16))
    beside = {} if name == "7.png" else {"7_img.png": b"a picture", "7_img_flows.tif": b"flows", "7_seg.npy": b"more"}
    sent = folder(tmp_path / "s", {name: data, **beside})
    truth = read_truth(str(folder(tmp_path / "t", {name: data, **beside})))
    assert truth.item_names == ["7"]
    assert set(score_units(sent, truth, "cellpose-ap").values()) == {1}


def test_a_subset_is_a_folder(tmp_path: Path) -> None:
    truth = folder(tmp_path / "t", {"train/0": TWO, "test/0": NONE, "test/1": TWO})
    assert read_truth(str(truth), "test").item_names == ["0", "1"]
    with pytest.raises(HostError, match="several masks for one image: test/0_masks.png, train/0_masks.png"):
        read_truth(str(truth))
    with pytest.raises(HostError, match="has no masks such as 007_masks.png in a folder val2"):
        read_truth(str(truth), "val2")
    with pytest.raises(HostError, match=r"0_masks.png: cannot be read \(is a colour picture"):
        read_truth(str(folder(tmp_path / "c", {"0_masks.png": png(COLOURS)}))).read_through()


COLOURS = np.stack([TWO, TWO.T.reshape(TWO.shape), TWO], axis=-1).astype(np.uint8)
REFUSED = {
    "other size": ({"b": TWO.T}, "b_masks.png: is 4x6 pixels but the frame is 6x4"),
    "other shape, as many pixels": ({"b": TWO.reshape(2, 12)}, "b_masks.png: is 12x2 pixels but the frame is 6x4"),
    "TIFF of another size": ({"b_masks.tif": encode_tiff(np.zeros((1, 6, 4), np.uint16))}, "b_masks.tif: is 4x6"),
    "slices": (
        {"b_masks.tif": encode_tiff(np.zeros((2, 4, 6), np.uint16))},
        "b_masks.tif: has several pages. Save one picture per file",
    ),
    "colours": ({"b_masks.png": png(COLOURS)}, "b_masks.png: is a colour picture. Write the number of its cell"),
    "no picture": ({"b_masks.png": b"JFIF"}, "b_masks.png: is not a PNG"),
    "cut": ({"b_masks.png": png(TWO.astype(np.uint16))[:-30]}, "b_masks.png: is cut off"),
    "twice": ({"b": TWO, "x/b": TWO}, "b_masks.png: is also sent as x/b_masks.png. Send one file for each image"),
    "missing": ({"c": TWO}, "1 of 2 images is missing: b; 1 is not in the truth: c. Send every image"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_map_of_the_image_is_a_sentence(name: str, tmp_path: Path) -> None:
    sent, message = REFUSED[name]
    truth = read_truth(str(folder(tmp_path / "t", {"a": TWO, "b": TWO})))
    with pytest.raises(SubmissionError, match=re.escape(message)):
        score_units(folder(tmp_path / "s", {"a": TWO, **sent}), truth, "cellpose-ap")


@pytest.mark.parametrize(
    ("sent", "message"),
    [(TWO > 0, "no image tried has more than 1 number, though the truth has up to 2 objects: give each object its own"),
     (TWO[:, ::-1], "maps look mirrored, with left and right exchanged: corrected, AP50 would be 1.00 instead of 0.00"),
     (NONE, "all maps are empty: check the labels, and that the results were written")],
)  # fmt: skip
def test_masks_without_numbers_and_of_other_images_are_said(sent: Any, message: str, tmp_path: Path) -> None:
    truth = folder(tmp_path / "t", {"a": TWO})
    (warning,) = segjudge.score(folder(tmp_path / "s", {"a": sent}), truth, "cellpose-ap").warnings
    assert message in warning


#: Small cells on a wide background, and valid maps of poor methods.
GRID = np.zeros((96, 96), np.uint16)
GRID[2::5, 2::5] = np.arange(1, 19 * 19 + 1).reshape(19, 19)
GRID = np.maximum(GRID, np.roll(GRID, 1, 1))
#: Few cells, one of which is the background.
NUMBERED = np.where(GRID < 3, GRID + np.uint16(1), 1)
POOR_MAPS = {
    "few cells": np.where(GRID < 40, GRID, 0),
    "one blob": np.where(np.arange(96) < 40, 1, GRID),
    "joined": (GRID + 1) // 2,
    "fewer than 8 bits": np.where(GRID < 255, GRID, 0),
}


@pytest.mark.parametrize(
    ("sent", "message"),
    [(GRID.astype(np.uint8), "no number is above 255 in 2 images tried with more than 255 objects: write maps of 16 bits"),
     (NUMBERED, "in 2 of 2 images tried one number covers most of the background: write 0 where there is no object"),
     (np.roll(GRID, 2, 0), "maps look moved by 2 along y"),
     *((sent, "") for sent in POOR_MAPS.values())],
)  # fmt: skip
def test_maps_of_8_bits_and_numbered_background_are_said_and_poor_maps_are_not(
    sent: Any, message: str, tmp_path: Path
) -> None:
    truth, results = (folder(tmp_path / name, {"a": item, "b": item}) for name, item in (("t", GRID), ("s", sent)))
    warnings = segjudge.score(results, truth, "cellpose-ap").warnings
    assert bool(message) == bool(warnings)
    assert message in "".join(warnings)


# ── what all families promise ───────────────────────────────────────────────


@PROMISES
def test_the_family_keeps_its_promises(promise: str, tmp_path: Path) -> None:
    def files(images: dict[str, Any]) -> dict[str, bytes]:
        return {f"{key}_cp_masks.png": png(image) for key, image in images.items()}

    draw = np.random.default_rng(3)
    maps = {str(k): np.kron(draw.integers(0, 5, (4, 5)), np.ones((5, 5), int)).astype(np.uint16) for k in range(5)}
    second = {key: np.flip(labels, 0) for key, labels in maps.items()}
    sent = {key: np.roll(labels, 1, axis=1) for key, labels in maps.items()}
    faulty = {**sent, "1": sent["1"][1:], "3": np.indices((20, 25, 3), "u1")[2]}
    keep(
        promise, "cellpose-ap", tmp_path, (files(maps), files(second)), (files(sent), files(faulty)),
        ["1_cp_masks.png: is 25x19", "3_cp_masks.png: is a colour picture"], (sent, maps),
    )  # fmt: skip
