"""Pictures of scans: their points from above and as range images, and messages about missing points."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import call, patch

import numpy as np
import pytest

from segjudge.cli import main
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.scans.points import ScanPoints, index_points, open_dataset
from tests.builders import written

ROAD, CAR = 40, 10 | 1 << 16
SIZE = (64, 80)
NAMES = ("000000", "000001")


def make_points(count: int) -> Array:
    """Place points on the ground in all directions."""
    angle, distance = np.linspace(-3, 3, count), np.linspace(4, 20, count)
    height = np.full(count, -1.7)
    return np.stack((distance * np.cos(angle), distance * np.sin(angle), height, angle % 1), axis=1).astype("<f4")


def make_dataset(folder: Path, points: dict[str, int]) -> Path:
    """Write two scans of 90 points, and this many points of each."""
    labels = np.repeat([ROAD, CAR], [30, 60]).astype("<u4")
    files = {f"sequences/08/labels/{name}.label": labels.tobytes() for name in NAMES}
    files |= {f"sequences/08/velodyne/{name}.bin": make_points(count).tobytes() for name, count in points.items()}
    return written(folder / "dataset", files)


def write_report(folder: Path, truth: Path, *options: str, protocol: str = "semantic-kitti") -> str:
    """Write the report of results that label a third of the cars as road."""
    labels = np.repeat([ROAD, CAR], [50, 40]).astype("<u4")
    results = written(
        folder / "results", {f"sequences/08/predictions/{name}.label": labels.tobytes() for name in NAMES}
    )
    page = folder / "page.html"
    command = ["report", str(results), "--truth", str(truth), "--protocol", protocol, "--out", str(page), *options]
    assert main(command) == 0
    return page.read_text(encoding="utf-8")


# ── where points are in a picture ───────────────────────────────────────────


def test_a_picture_shows_points_from_above_and_as_a_range_image() -> None:
    ahead, left, behind = (20, 0, -1.7, 0), (0, 10, -1.7, 0), (-20, 0, -1.7, 0)
    corners = [(40, 0, -1, 0), (-40, 0, -1, 0)]
    above, ranges = np.vsplit(index_points(np.array([ahead, left, behind, *corners], float), SIZE), [48])
    places = {number: np.argwhere(above == number).mean(axis=0) for number in (1, 2, 3)}
    assert places[1][1] > places[2][1] > places[3][1], "forwards is to the right"
    assert places[2][0] < min(places[1][0], places[3][0]), "left is above"
    columns = {number: np.argwhere(ranges == number)[:, 1].mean() for number in (1, 2)}
    assert abs(columns[1] - SIZE[1] / 2) < 4 < SIZE[1] / 2 - columns[2], "forwards is in the middle, left is left"


def test_the_highest_point_is_seen_from_above_and_the_nearest_one_from_the_sensor() -> None:
    roof, floor, far = (10, 0, 1, 0), (10, 0, -1, 0), (20, 0, -2, 0)
    corner = (40, 0, -1, 0)
    above, ranges = np.vsplit(index_points(np.array([floor, roof, far, corner], float), SIZE), [48])
    assert {2, 3} == set(np.unique(above)) - {0, 4}
    assert {1, 2} <= set(np.unique(ranges))
    assert 3 not in ranges


# ── pages ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("protocol", ["semantic-kitti", "semantic-kitti-panoptic", "semantic-kitti-moving"])
def test_the_first_screen_of_scans_shows_their_points(tmp_path: Path, protocol: str) -> None:
    truth = make_dataset(tmp_path, dict.fromkeys(NAMES, 90))
    page = write_report(tmp_path, truth, protocol=protocol)
    assert ('class="first"' in page) == (protocol != "semantic-kitti-moving"), "nothing moves, so nothing is lost"


def test_points_lie_in_a_folder_of_their_own(tmp_path: Path) -> None:
    truth = make_dataset(tmp_path, {})
    images = written(tmp_path / "points", {f"08/velodyne/{name}.bin": make_points(90).tobytes() for name in NAMES})
    page = write_report(tmp_path, truth, "--images", str(images))
    assert 'class="first"' in page
    assert "Below: its range image" in page


def test_a_page_without_points_says_how_to_have_a_picture(tmp_path: Path) -> None:
    page = write_report(tmp_path, make_dataset(tmp_path, {}))
    assert 'class="first"' not in page
    assert "name the folder of their points with --images" in page


def test_a_page_names_scans_whose_points_differ(tmp_path: Path) -> None:
    page = write_report(tmp_path, make_dataset(tmp_path, {NAMES[0]: 90, NAMES[1]: 80}))
    assert "1 scan without a picture: sequences/08/velodyne/000001.bin has 80 points" in page
    assert 'class="first"' in page


def test_a_folder_without_points_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth, empty = make_dataset(tmp_path, {}), written(tmp_path / "other", {"readme.txt": b"?"})
    with pytest.raises(AssertionError):
        write_report(tmp_path, truth, "--images", str(empty))
    assert "has no points of the scored scans; it needs files such as" in capsys.readouterr().err


def test_a_page_of_the_truth_needs_its_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth, empty = make_dataset(tmp_path, {NAMES[0]: 90}), written(tmp_path / "other", {"readme.txt": b"?"})
    command = ["report", "--truth", str(truth), "--protocol", "semantic-kitti", "--out", str(tmp_path / "page.html")]
    assert main(command) == 2
    assert "name the folder of the points with --images" in capsys.readouterr().err
    assert main([*command, "--images", str(empty)]) == 3
    assert f"{empty}: has no points of the scored scans; it needs files such as" in capsys.readouterr().err
    with patch("segjudge.families.scans.points.open_dataset", wraps=open_dataset) as opened:
        assert main([*command, "--images", str(truth)]) == 0
    assert opened.call_args_list == [call(str(truth))]


def test_a_file_of_points_of_another_size_is_not_read(tmp_path: Path) -> None:
    root = written(tmp_path / "points", {"08/velodyne/000000.bin": b"0" * 100})
    points = ScanPoints(str(root))
    assert points.explain_absence("08/000000", 6).startswith("08/velodyne/000000.bin has 100 bytes, but the truth")
    assert points.explain_absence("08/000001", 6) == "08/000001 has no points"
