"""Scans below the slices of a page: located by name, in the truth's grid, in levels that every window can show."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.families.volumes.geometry import Geometry, Order, reorder
from segjudge.evaluation_script.files.problems import HostError
from segjudge.families.volumes.challenges import encode_nifti
from segjudge.families.volumes.scans import Scan, ScanFolder
from segjudge.report.page import PageOptions, Section, render_page
from tests.browser import needs_chromium
from tests.builders import zipped
from tests.report.test_report import WIDE, browser, open_player, wait_for
from tests.streams import read_stream

from .test_slices import find_player, score_one

__all__ = ["browser"]

_SHAPE = (12, 20, 30)
_GEOMETRY = Geometry((30, 20, 12), (1.0, 1.0, 2.0), np.column_stack([np.diag([1.0, 1.0, 2.0]), np.zeros(3)]))
_CODES = {"i2": 4, "f4": 16, "f8": 64, "u1": 2, "u2": 512}


def encode_scan(
    values: np.ndarray, geometry: Geometry, kind: str = "<i2", scale: tuple[float, float] = (1.0, 0.0)
) -> bytes:
    header = bytearray(gzip.decompress(encode_nifti(np.zeros(values.shape, np.uint8), geometry))[:352])
    struct.pack_into("<2h", header, 70, _CODES[kind[-2:]], 8 * np.dtype(kind).itemsize)
    struct.pack_into("<2f", header, 112, *scale)
    return gzip.compress(bytes(header) + values.astype(kind).tobytes(), 1, mtime=0)


def draw_body() -> np.ndarray:
    """Return Hounsfield units: air, tissue that rises along x, and bone."""
    values = np.full(_SHAPE, -1000.0)
    values[:, 3:17] = np.arange(30) * 10 - 100
    values[:, 8:10] = 900
    return values


def read(folder: Path, files: dict[str, bytes], geometry: Geometry = _GEOMETRY) -> Scan:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    scans = ScanFolder(str(folder), ["case"])
    scan = scans.read("case", geometry)
    assert scan is not None, scans.refused
    return scan


def restore(scan: Scan) -> np.ndarray:
    return np.interp(scan.volume, scan.shades.levels, scan.shades.values)


@pytest.mark.parametrize(("kind", "scale"), [("<i2", (1.0, 0.0)), ("<u2", (1.0, -1024.0)), ("<f4", (2.0, 10.0))])
def test_levels_hold_what_each_window_shows(kind: str, scale: tuple[float, float], tmp_path: Path) -> None:
    body = draw_body()
    scan = read(tmp_path, {"case.nii.gz": encode_scan((body - scale[1]) / scale[0], _GEOMETRY, kind, scale)})
    assert [name for name, _, _ in scan.shades.windows] == ["Soft tissue", "Lung", "Bone"]
    away = np.abs(restore(scan) - body)
    assert away[(body > -200) & (body < 300)].max() < 2
    assert away.max() < 11


def test_other_scans_have_windows_of_percentiles(tmp_path: Path) -> None:
    values = np.zeros(_SHAPE)
    values[4:, 5:15] = np.linspace(100, 500, 10)[None, :, None]
    values[0, 0, :2] = np.nan, np.inf
    scan = read(tmp_path, {"case.nii.gz": encode_scan(values, _GEOMETRY, "<f4")})
    assert [name for name, _, _ in scan.shades.windows] == ["1 to 99 %", "5 to 95 %", "0.1 to 99.9 %"]
    _name, level, width = scan.shades.windows[0]
    assert (level - width / 2, level + width / 2) == pytest.approx((100, 500)), "the background is no part of it"
    assert scan.volume[0, 0, :2].tolist() == [0, 255]
    assert (scan.volume[4, :5] == 0).all()


@pytest.mark.parametrize(
    "names",
    [
        ["case.nii.gz"], ["images/case_0000.nii.gz", "images/case_0001.nii.gz", "labels/case.nii.gz"],
        ["case/case-t1c.nii.gz", "case/case-t2f.nii.gz", "case/case-seg.nii.gz"],
        ["case/imaging.nii.gz", "case/segmentation.nii.gz"],
        ["case.nii.gz", "case_2.nii.gz", "case-a.nii.gz", "cas.nii.gz", "other.nii.gz", "case.json"],
    ],
)  # fmt: skip
def test_scans_are_found_by_the_name_of_their_case(names: list[str], tmp_path: Path) -> None:
    files = {name: encode_scan(np.full(_SHAPE, -900), _GEOMETRY) for name in names[:1]}
    for name in names[1:]:
        files[name] = encode_scan(np.full(_SHAPE, 1), _GEOMETRY)
    assert read(tmp_path, files).shades.windows[0][0] == "Soft tissue"


def test_a_longer_name_of_a_case_owns_its_scan(tmp_path: Path) -> None:
    for name in ("case_1", "case_1_0000", "case_10_0000", "case_1_2_0000"):
        (tmp_path / f"{name}.nii.gz").write_bytes(b"")
    scans = ScanFolder(str(tmp_path), ["case_1", "case_1_2", "case_3"])
    assert [scans.has(case) for case in ("case_1", "case_1_2", "case_3", "case_10")] == [True, True, False, False]


@pytest.mark.parametrize("flips", [(True, False, False), (False, True, True)])
def test_scans_with_reversed_axes_lie_below_their_labels(flips: tuple[bool, bool, bool], tmp_path: Path) -> None:
    body, order = draw_body(), Order((1, 0, 2), flips)
    straight = read(tmp_path / "straight", {"case.nii.gz": encode_scan(body, _GEOMETRY)})
    moved = body.T.transpose(order.sources)[tuple(slice(None, None, -1 if flip else 1) for flip in flips)].T
    data = encode_scan(np.ascontiguousarray(moved), reorder(_GEOMETRY, order))
    assert np.array_equal(read(tmp_path / "moved", {"case.nii.gz": data}).volume, straight.volume)


def _draw_pair() -> tuple[np.ndarray, np.ndarray]:
    truth = np.zeros(_SHAPE, np.uint8)
    truth[2:8, 5:12, 6:20] = 1
    return truth, np.roll(truth, 2, 2)


def make_player(folder: Path, files: dict[str, bytes], budget: int = 6_000_000) -> Section:
    (folder / "scans").mkdir()
    for name, data in files.items():
        (folder / "scans" / name).write_bytes(data)
    scores = score_one(folder, *_draw_pair(), _GEOMETRY, "volumes")
    player = find_player(scores.make_page(PageOptions(str(folder / "scans"), budget), "scans"))
    assert player is not None
    return player


def test_a_scan_in_another_grid_is_not_drawn(tmp_path: Path) -> None:
    player = make_player(
        tmp_path, {"case.nii.gz": encode_scan(draw_body()[:-1], _GEOMETRY._replace(shape=(30, 20, 11)))}
    )
    assert not any("#" in name for name in player.streams)
    assert player.values["scans"] is False
    assert player.values["note"] == (
        "Scans of 0 of 1 cases are shown. A scan is not shown: case.nii.gz has 30 x 20 x 11 voxels; "
        "the truth has 30 x 20 x 12."
    )


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda data: data[: len(data) // 2], "case.nii.gz is cut off"),
        (lambda data: b"", "case.nii.gz is empty"),
        (lambda data: gzip.compress(gzip.decompress(data) + b"1"), "case.nii.gz has surplus bytes"),
        (lambda data: gzip.compress(gzip.decompress(data)[:400]), "case.nii.gz is cut off"),
    ],
)
def test_a_damaged_scan_is_named(damage: Any, sentence: str, tmp_path: Path) -> None:
    player = make_player(tmp_path, {"case.nii.gz": damage(encode_scan(draw_body(), _GEOMETRY))})
    assert sentence in str(player.values["note"])


@pytest.mark.parametrize("values", [(1e308, 1.7e308), (2.0**64, 2.0**64), (1e30, 2e30)])
def test_values_that_no_window_can_show_are_named(values: tuple[float, float], tmp_path: Path) -> None:
    """An infinite centre of a window would be no JSON, and the page would stay empty."""
    scan = np.resize(np.array(values), _SHAPE)
    player = make_player(tmp_path, {"case.nii.gz": encode_scan(scan, _GEOMETRY, "<f8")})
    assert f"case.nii.gz is no scan: its values reach {values[1]:.3g}" in str(player.values["note"])
    assert json.dumps(player.values, allow_nan=False)


def test_a_folder_without_scans_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scans").mkdir()
    with pytest.raises(HostError) as caught:
        make_player_of_none(tmp_path)
    sentence = "has no scans of the scored cases; it needs files such as case_0000.nii.gz"
    assert str(caught.value) == f"{tmp_path / 'scans'}: {sentence}"


def make_player_of_none(folder: Path) -> None:
    scores = score_one(folder, *_draw_pair(), _GEOMETRY, "volumes")
    scores.make_page(PageOptions(str(folder / "scans")), "none")


def _score_two(folder: Path) -> dict[str, segjudge.Scores]:
    truth, sent = _draw_pair()
    (folder / "truth").mkdir()
    for name in ("near", "far"):
        (folder / "truth" / f"{name}.nii.gz").write_bytes(encode_nifti(truth, _GEOMETRY))
    worse = np.where(np.arange(_SHAPE[0])[:, None, None] == 5, 0, truth)
    methods = {"old": {"near": sent, "far": truth}, "new": {"near": truth, "far": worse}}
    for name, cases in methods.items():
        files = {
            f"{case}.nii.gz": encode_nifti(np.ascontiguousarray(labels), _GEOMETRY) for case, labels in cases.items()
        }
        (folder / f"{name}.zip").write_bytes(zipped(files))
    return {name: segjudge.score(folder / f"{name}.zip", folder / "truth", "volumes") for name in methods}


def test_compared_methods_have_the_same_slices(tmp_path: Path) -> None:
    comparison = segjudge.compare(_score_two(tmp_path))
    page = comparison.make_page(PageOptions())
    player = find_player(page)
    assert player is not None
    entries: Any = player.values["sequences"]
    assert [entry["name"] for entry in entries] == ["far", "near"], "by the loss of the second minus that of the first"
    assert entries[0]["lost"][0] == 0 < entries[0]["lost"][1]
    header, truth = read_stream(player.streams["val/far/0"])
    sides = [read_stream(player.streams[f"val/far/0/{method}"])[1] for method in (0, 1)]
    assert header["frames"][header["place"][0]] == "5", "the slice that the second lacks"
    assert np.array_equal(sides[0], truth)
    assert not sides[1][header["place"][0]].any()
    header, _ = read_stream(player.streams["val/near/0"])
    counts = [read_stream(player.streams[f"val/near/0/{method}"])[0]["counts"][0] for method in (0, 1)]
    assert sum(counts[0]["missing"]) == 6 * 7 * 2
    assert sum(counts[1]["missing"]) == 0
    assert 'data-open="val/far"' in render_page(page)


@pytest.mark.long
@needs_chromium
def test_windows_change_the_scan_below_the_masks(tmp_path: Path, browser: Any) -> None:
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "case_0000.nii.gz").write_bytes(encode_scan(draw_body(), _GEOMETRY))
    scores = score_one(tmp_path, *_draw_pair(), _GEOMETRY, "volumes")
    path = tmp_path / "report.html"
    path.write_text(render_page(scores.make_page(PageOptions(str(tmp_path / "scans")), "scans")), encoding="utf-8")
    pixels = """canvas => {
      const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      pen.drawImage(canvas, -2, -2);
      return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    }"""
    with open_player(browser, path.as_uri(), WIDE) as page:
        wait_for(page, "case, voxel x")
        page.locator("[data-layer=scan]").click()
        windows = page.locator("[data-part=windows] button")
        assert windows.all_inner_texts() == ["Soft tissue", "Lung", "Bone"]
        canvas = page.locator(".views canvas").first
        assert canvas.evaluate(pixels) == [0, 0, 0], "air is black"
        windows.nth(1).click()
        assert page.locator("[data-part=level-text]").inner_text() == "Level −600"
        level = canvas.evaluate(pixels)[0]
        assert abs(level - 255 * 350 / 1500) < 8, "air is grey in the window of lungs"
        page.locator("[data-part=level]").press("ArrowRight")
        assert page.locator("[data-part=level-text]").inner_text() == "Level −599"
        assert windows.nth(1).get_attribute("aria-pressed") == "false"
