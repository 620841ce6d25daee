"""Panoptic images and videos in memory score as files do, in any order of their frames."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge import FrameAccumulator
from segjudge.evaluation_script.families.base.units import UnitCounts, decode_unit
from tests.data import TRACKS_DATA
from tests.scoring.memory_parts import CATEGORIES, frames_of, of_parts, refuse_state, same
from tests.shared import needs_shared


def colours(path: Path) -> Any:
    """Return the ids of a panoptic PNG."""
    channels = np.asarray(Image.open(path).convert("RGB")).astype(np.int64)
    return channels[..., 0] + 256 * channels[..., 1] + 65536 * channels[..., 2]


@needs_shared
@pytest.mark.parametrize("protocol", ["coco-panoptic", "coco-panoptic-boundary"])
def test_panoptic_images_in_memory_score_as_files_do(protocol: str, tmp_path: Path) -> None:
    folder = TRACKS_DATA / "panoptic"
    truth, sent = (json.loads((folder / name).read_text()) for name in ("truth.json", "submission.json"))
    by_image = {item["image_id"]: item for item in sent["annotations"]}
    updates = []
    for first in truth["annotations"]:
        second = by_image[first["image_id"]]
        real = colours(folder / "truth" / first["file_name"]), first["segments_info"]
        segments = {segment["id"]: segment["category_id"] for segment in second["segments_info"]}
        updates.append(
            (first["image_id"], None, (colours(folder / "submission" / second["file_name"]), segments), real)
        )
    shutil.copytree(folder / "submission", tmp_path / "submission")
    shutil.copy(folder / "submission.json", tmp_path)
    expected = segjudge.score(str(tmp_path), str(folder / "truth.json"), protocol)
    same(of_parts(protocol, updates, categories=truth["categories"]), expected)


def video_frames(folder: Path) -> tuple[Any, list[tuple[Any, ...]]]:
    """Return the categories of VIPSeg-like data, and an update for each frame."""
    truth = json.loads((folder / "truth.json").read_text())
    sent = json.loads((folder / "submission/pred.json").read_text())
    of_video = {item["video_id"]: item["annotations"] for item in sent["annotations"]}
    updates = []
    for video in truth["annotations"]:
        for first, second in zip(video["annotations"], of_video[video["video_id"]]):
            name = Path(first["file_name"]).stem
            picture = f"{video['video_id']}/{name}.png"
            real = colours(folder / "truth" / picture), first["segments_info"]
            predicted = colours(folder / "submission/pan_pred" / picture), second["segments_info"]
            updates.append((video["video_id"], name, predicted, real))
    return truth["categories"], updates


@needs_shared
@pytest.mark.parametrize("protocol", ["vipseg", "vipseg-official"])
def test_panoptic_videos_in_memory_score_as_files_do(protocol: str) -> None:
    folder = TRACKS_DATA / "vps"
    categories, updates = video_frames(folder)
    expected = segjudge.score(str(folder / "submission"), str(folder / "truth.json"), protocol)
    names = list(dict.fromkeys(update[0] for update in updates))
    assert names != sorted(names), "the truth's order is not that of names"
    same(of_parts(protocol, updates, 7, categories=categories, expected=frames_of(names, updates)), expected)
    same(of_parts(protocol, updates, 7, categories=categories), expected, order=False)


def test_a_state_without_the_areas_of_the_truth_makes_no_scores() -> None:
    ids = np.zeros((4, 6), np.int64)
    ids[1:3, 1:4] = 1
    panoptic = FrameAccumulator("coco-panoptic", categories=CATEGORIES)
    panoptic.update("dog", None, (ids, {1: 1}), (ids, {1: 1}))
    tables = decode_unit(panoptic.state_dict()["frames"]["dog"][""]).tables
    refuse_state("coco-panoptic", "", UnitCounts("", {**tables, "truth": tables["truth"][:, :1]}).encode())
