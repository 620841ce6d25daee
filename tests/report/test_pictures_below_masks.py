"""Pictures below the masks of a page: of any depth, turned as viewers turn them, and damaged ones."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

from segjudge.report.page import PageOptions
from segjudge.report.player import PictureFolder, read_picture
from tests.families.contract import examples
from tests.report.known_scenes import SIZE
from tests.report.test_known_faults import score


def test_pictures_of_any_depth_and_colour_keep_their_shades(tmp_path: Path) -> None:
    grey = np.full((20, 30), 100, np.uint8)
    saved = {
        "deep.png": Image.fromarray(grey.astype(np.uint16) * 257),
        "print.jpg": Image.fromarray(grey).convert("CMYK"),
        "plain.png": Image.fromarray(grey),
    }
    for name, image in saved.items():
        image.save(tmp_path / name)
        assert np.abs(np.asarray(read_picture(str(tmp_path / name))).astype(int) - 100).max() <= 2, name


@pytest.mark.long
def test_a_picture_that_is_none_or_too_large_is_named_and_left_out(tmp_path: Path) -> None:
    saved = io.BytesIO()
    Image.effect_noise((160, 120), 50).convert("RGB").save(saved, "JPEG")
    (tmp_path / "cut.jpg").write_bytes(saved.getvalue()[: len(saved.getvalue()) // 2])
    (tmp_path / "empty.jpg").write_bytes(b"")
    Image.new("1", (20_000, 20_000)).save(tmp_path / "huge.png")
    for name, sentence in {
        "cut.jpg": "is not a picture", "empty.jpg": "is not a picture (cannot identify image file 'empty.jpg')",
        "huge.png": "has more than 178,956,970 pixels. Make the picture smaller",
    }.items():  # fmt: skip
        folder = PictureFolder(str(tmp_path))
        assert folder.shrink(str(tmp_path / name)) == b""
        assert folder.describe_faults().startswith(f"1 picture cannot be shown: {name} {sentence}")
        assert folder.shrink(str(tmp_path / name)) == b""  # counted once
        assert folder.describe_faults().startswith("1 picture cannot be shown")
        assert folder.shrink(str(tmp_path / "absent.jpg")) == b""
        assert folder.describe_faults().startswith(f"2 pictures cannot be shown: the first: {name} {sentence}")


@pytest.mark.parametrize("protocol", ["davis2017", "coco", examples("lists")[-1]])
def test_an_unreadable_picture_leaves_the_report_whole(protocol: str, tmp_path: Path) -> None:
    """One of the pictures is damaged; the page names it and shows the others."""
    scores, pictures = score(protocol, ["half"], tmp_path, 22), tmp_path / "pictures"
    videos = [f"scene{number:02d}" for number in range(1, 7)]
    names = [f"{video}.jpg" if protocol == "coco" else f"{video}/{n:05d}.jpg" for video in videos for n in range(8)]
    for name in names:
        (pictures / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", SIZE[::-1], (90, 120, 60)).save(pictures / name)
    damaged = "scene01.jpg" if protocol == "coco" else "scene01/00003.jpg"
    (pictures / damaged).write_bytes(b"no picture")
    page = scores.make_page(PageOptions(str(pictures)), "pictures")
    (about,) = (section.values for section in page.sections if section.id == "frames")
    fault = f"is not a picture (cannot identify image file {os.path.basename(damaged)!r})"
    assert about["note"] == f"1 picture cannot be shown: {damaged} {fault}."
    assert about["pictures"] == (6 if protocol == "coco" else 24) - 1


def test_pictures_are_turned_as_viewers_turn_them(tmp_path: Path) -> None:
    image = Image.new("RGB", (40, 20))
    image.paste((255, 255, 255), (0, 0, 20, 20))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6  # a quarter to the right
    image.save(tmp_path / "turned.jpg", exif=exif)
    turned = np.asarray(read_picture(str(tmp_path / "turned.jpg")).convert("L")) > 128
    assert turned.shape == (40, 20)
    assert turned[:19].all()
    assert not turned[21:].any()
    folder = PictureFolder(str(tmp_path))
    assert folder.shrink(str(tmp_path / "turned.jpg"))
    assert folder.shrink(str(tmp_path / "turned.jpg"), size=(40, 20))
    assert not folder.describe_faults()
    assert folder.shrink(str(tmp_path / "turned.jpg"), size=(20, 40))
    assert folder.describe_faults() == "1 picture does not fit the masks once turned as the EXIF data say."
