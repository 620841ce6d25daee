"""Slices in reports of volumes: they meet where a case is worst, are not distorted, and show both sides truly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.families.volumes.geometry import Geometry
from segjudge.families.volumes.challenges import encode_nifti
from segjudge.families.volumes.pictures import find_view
from segjudge.report.page import PageOptions, ReportPage, Section, render_page
from segjudge.scoring.scores import Scores
from tests.browser import needs_chromium
from tests.builders import zipped
from tests.report.test_report import WIDE, browser, open_player, wait_for
from tests.streams import read_stream

from .test_causes import score

__all__ = ["browser"]

_PLANES = ("Axial", "Coronal", "Sagittal")


def find_player(page: ReportPage) -> Section | None:
    return next((section for section in page.sections if section.template == "frames"), None)


def draw(scores: Scores) -> Section:
    player = find_player(scores.make_page(PageOptions(), "slices"))
    assert player is not None
    return player


def score_one(folder: Path, truth: np.ndarray, sent: np.ndarray, geometry: Geometry, protocol: str) -> Scores:
    (folder / "truth").mkdir()
    (folder / "truth" / "case.nii.gz").write_bytes(encode_nifti(truth, geometry))
    (folder / "sent.zip").write_bytes(zipped({"case.nii.gz": encode_nifti(sent, geometry)}))
    return segjudge.score(folder / "sent.zip", folder / "truth", protocol)


def test_three_slices_meet_in_a_missed_lesion(tmp_path: Path) -> None:
    truth = np.zeros((20, 30, 40), np.uint8)
    truth[2:6, 3:9, 4:14] = 1
    sent = truth.copy()
    truth[12:17, 20:25, 30:33] = 1
    player = draw(score(tmp_path, "components", [(truth, sent)]))
    headers = [read_stream(player.streams[f"val/case_000/{plane}"])[0] for plane in range(3)]
    names = [header["frames"][header["place"][plane]] for plane, header in enumerate(headers)]
    z, y, x = map(int, names)
    assert truth[z, y, x] != sent[z, y, x]
    assert [header["plane"] for header in headers] == list(_PLANES)
    for plane, header in enumerate(headers):
        counts = read_stream(player.streams[f"val/case_000/{plane}/0"])[0]["counts"][0]
        column = header["place"][plane] - counts["first"]
        both = [np.take(side == 1, int(names[plane]), plane) for side in (truth, sent)]
        assert counts["truth"][column] == both[0].sum()
        assert counts["missing"][column] == (both[0] & ~both[1]).sum() > 0
        assert counts["extra"][column] == 0
    (moment,) = player.data["moments"]  # type: ignore[index] # of the scripts
    assert (moment["kind"], moment["text"]) == ("missed", "missed, 75 mm³")
    assert all(place in header["drawn"] for place, header in zip(moment["place"], headers, strict=True))


def find_rows(page: ReportPage, title: str) -> list[dict[str, Any]]:
    values: Any = next(section.values for section in page.sections if section.title == title)
    return [dict(zip(values["columns"], row, strict=True)) for row in values["rows"]]


def test_lesions_are_listed_with_their_volume_overlap_and_place(tmp_path: Path) -> None:
    truth = np.zeros((20, 30, 40), np.uint8)
    truth[2:6, 3:9, 4:14] = 1
    sent = truth.copy()
    truth[12:17, 20:25, 30:33] = 1
    truth[1:4, 20:22, 5:10] = 1
    sent[1:4, 20:22, 5:8] = 1
    sent[10:14, 10:12, 20:22] = 1
    geometry = Geometry((40, 30, 20), (1.0, 1.0, 2.5), np.column_stack([np.diag([1.0, 1.0, 2.5]), np.zeros(3)]))
    scores = score_one(tmp_path, truth, sent, geometry, "components")
    rows = find_rows(scores.make_page(PageOptions(), "lesions"), "Components")
    lesions = {(row["verdict"], row["mm³"]): (row["Dice"], row["voxel"]) for row in rows}
    assert lesions == {
        ("missed", 188): (0.0, "31, 22, 14"),
        ("too little", 75.0): (0.75, "7, 20, 2"),
        ("surplus", 40.0): (None, "20, 10, 11"),
        ("right", 600): (1.0, "8, 5, 3"),
    }
    lost = 1 - (scores.reports[0].values["PQ"] or 0)
    assert rows[-1]["verdict"] == "right"
    assert sum(row["costs"] for row in rows) == pytest.approx(lost)
    assert all('data-open="val/case" data-place="' in str(row["case"]) for row in rows)


def test_slices_have_the_proportions_of_the_body(tmp_path: Path) -> None:
    truth = np.ones((10, 40, 80), np.uint8)
    geometry = Geometry((80, 40, 10), (0.5, 1.0, 4.0), np.column_stack([np.diag([0.5, 1.0, 4.0]), np.zeros(3)]))
    player = draw(score_one(tmp_path, truth, np.zeros_like(truth), geometry, "volumes"))
    sizes = [read_stream(player.streams[f"val/case/{plane}"])[0]["size"] for plane in range(3)]
    assert sizes == [[80, 80], [80, 80], [80, 80]]  # 40 mm along each axis


@pytest.mark.parametrize("signs", [(1, 1, 1), (-1, -1, 1), (1, -1, -1), (-1, 1, -1)])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
def test_slices_are_seen_as_radiologists_see_them(
    order: tuple[int, int, int], signs: tuple[int, int, int], tmp_path: Path
) -> None:
    body = np.zeros((7, 8, 9), np.uint8)  # right, anterior, superior
    body[1:-1, 1:-1, 1:-1] = 1
    body[-1, 3, 4], body[2, -1, 4], body[2, 3, -1] = 2, 3, 4  # rightmost, foremost, uppermost
    affine, stored = np.zeros((3, 4)), body.transpose(order)
    for axis, (body_axis, sign) in enumerate(zip(order, signs, strict=True)):
        affine[body_axis, axis] = sign
        stored = np.flip(stored, axis) if sign < 0 else stored
    labels = np.ascontiguousarray(stored.transpose(2, 1, 0))
    side = labels.shape
    geometry = Geometry((side[2], side[1], side[0]), (1.0, 1.0, 1.0), affine)
    assert np.array_equal(find_view(geometry).turn(labels), body.transpose(2, 1, 0)[:, ::-1, ::-1])
    player = draw(score_one(tmp_path, labels, np.where(labels == 1, 5, labels), geometry, "volumes"))
    axial, coronal, sagittal = (read_stream(player.streams[f"val/case/{plane}"]) for plane in range(3))
    right, front, top = (
        next(number for number, group in enumerate(axial[0]["groups"]) if group == [n]) for n in (1, 2, 3)
    )
    assert (axial[1] == right).nonzero()[2].tolist() == (coronal[1] == right).nonzero()[2].tolist() == [0]
    assert (axial[1] == front).nonzero()[1].tolist() == (sagittal[1] == front).nonzero()[2].tolist() == [0]
    assert (coronal[1] == top).nonzero()[1].tolist() == (sagittal[1] == top).nonzero()[1].tolist() == [0]
    assert [header["ends"] for header, _ in (axial, coronal, sagittal)] == [list("RLAP"), list("RLSI"), list("APSI")]


@pytest.mark.long
@needs_chromium
def test_planes_move_together_in_the_player(tmp_path: Path, browser: Any) -> None:
    truth = np.zeros((20, 30, 40), np.uint8)
    truth[2:12, 3:19, 4:24] = 1
    sent = truth.copy()
    truth[14:17, 24:27, 30:33] = 2
    path = tmp_path / "report.html"
    scores = score(tmp_path, "volumes", [(truth, sent)])
    path.write_text(render_page(scores.make_page(PageOptions(), "slices")), encoding="utf-8")
    with open_player(browser, path.as_uri(), WIDE) as page:
        wait_for(page, "case_000, voxel x 31, y 25, z 15. Axial slice: label 2: 9 of 9 voxels missing")
        canvases, captions = page.locator(".views canvas"), page.locator(".views figcaption")
        assert captions.all_inner_texts() == ["Axial, z 15", "Coronal, y 25", "Sagittal, x 31"]
        before = canvases.nth(0).evaluate("canvas => canvas.toDataURL()")
        page.locator(".plane input").nth(1).press("ArrowRight")
        assert captions.nth(1).inner_text() == "Coronal, y 24"
        wait_for(page, "case_000, voxel x 31, y 24, z 15. Coronal slice")
        assert canvases.nth(0).evaluate("canvas => canvas.toDataURL()") != before, "its cross has moved"
        box = canvases.nth(1).bounding_box()
        canvases.nth(1).click(position={"x": box["width"] / 2, "y": box["height"] - 5})
        assert captions.nth(2).inner_text() != "Sagittal, x 31"
        assert captions.nth(0).inner_text() == "Axial, z 0"
        page.keyboard.press("w")
        assert captions.all_inner_texts() == ["Axial, z 15", "Coronal, y 25", "Sagittal, x 31"]
        difference = canvases.nth(0).evaluate("canvas => canvas.toDataURL()")
        page.keyboard.press("t")
        assert canvases.nth(0).evaluate("canvas => canvas.toDataURL()") != difference
        page.keyboard.press("l")
        address = page.url
    assert "place=15,4,4" in address.replace("%2C", ",")
    with open_player(browser, address.replace("15%2C4%2C4", "5%2C9%2C20").replace("15,4,4", "5,9,20"), WIDE) as page:
        assert page.locator(".views figcaption").first.inner_text() == "Axial, z 5"
