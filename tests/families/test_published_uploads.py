"""What participants upload to the benchmarks' own servers is scored by a phase as it is, on truth as it is published."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.cli import main as cli
from segjudge.evaluation_script import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS, UNIT_LIMITS, ArchiveLimits
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from tests.builders import png, zipped
from tests.published import FRAMES, SIZE, VIDEOS, frames, labels, lines, published, rle, segments

LIMITS = {"sequences": ArchiveLimits(), "instances": INSTANCE_LIMITS}


def mevis(truth: Path) -> bytes:
    """A black and white PNG for each video, expression and frame; nothing in those that mean nothing."""
    masks = json.loads((truth / "mask_dict.json").read_text())
    videos = json.loads((truth / "meta_expressions.json").read_text())["videos"]
    numbers = {"swan": {3: 1, 7: 2}, "goat": {12: 1, 5: 2}}
    files = {}
    for name, video in videos.items():
        for key, expression in video["expressions"].items():
            for k, frame in enumerate(video["frames"]):
                seen = [numbers[name][one] for one in expression["anno_id"] if masks[str(one)][k]]
                files[f"{name}/{key}/{frame}.png"] = png(np.isin(labels(name, k), seen) * np.uint8(255))
    return zipped(files)


def ref_youtube_vos(_truth: Path) -> bytes:
    return zipped({
        f"Annotations/{name}/{one - 1}/{5 * k:05d}.png": png((labels(name, k) == one) * np.uint8(255))
        for name, k in frames() for one in (1, 2)
    })  # fmt: skip


def ref_davis17(_truth: Path) -> bytes:
    return zipped({
        f"anno_{person}/{name}/{k:05d}.png": png(labels(name, k)) for person in range(4) for name, k in frames()
    })  # fmt: skip


def coco(truth: Path) -> bytes:
    """A plain list; masks are boxes here, so that run lengths can be written without a library."""
    records = []
    for one in json.loads(truth.read_text())["annotations"]:
        x, y, width, height = one["bbox"]
        mask = np.zeros(SIZE, bool)
        mask[y : y + height, x : x + width] = True
        record = {key: one[key] for key in ("image_id", "category_id")}
        records.append({**record, "score": 0.9, "segmentation": rle(mask)})
    return json.dumps(records).encode()


def video_instances(truth: Path) -> bytes:
    """`results.json` in a zip, with null where an object is not to be seen."""
    names = list(VIDEOS)
    records = [
        {
            "video_id": one["video_id"], "category_id": one["category_id"], "score": 0.9,
            "segmentations": [
                mask and rle(labels(names[one["video_id"] - 1], k) == one["category_id"])
                for k, mask in enumerate(one["segmentations"])
            ],
        }
        for one in json.loads(truth.read_text())["annotations"]
    ]  # fmt: skip
    return zipped({"results.json": json.dumps(records)})


def kept(found: list[dict[str, int]]) -> list[dict[str, int]]:
    return [{"id": one["id"], "category_id": one["category_id"]} for one in found]


def coco_panoptic(_truth: Path) -> bytes:
    """A JSON, and a folder of PNGs that is named as it."""
    files: dict[str, Any] = {}
    listed = []
    for number, (name, k) in enumerate(frames(), 139):
        files[f"panoptic_val2017_ours_results/{number:012d}.png"], own = segments(labels(name, k))
        listed.append({"image_id": number, "file_name": f"{number:012d}.png", "segments_info": kept(own)})
    return zipped({**files, "panoptic_val2017_ours_results.json": json.dumps({"annotations": listed})})


def vipseg(_truth: Path) -> bytes:
    """`pred.json` and `pan_pred`, as the script reads them."""
    files: dict[str, Any] = {}
    videos = []
    for video in VIDEOS:
        listed = []
        for k in range(FRAMES):
            files[f"pan_pred/{video}/{k:08d}.png"], own = segments(labels(video, k))
            listed.append({"file_name": f"{k:08d}.png", "segments_info": kept(own)})
        videos.append({"video_id": video, "annotations": listed})
    return zipped({**files, "pred.json": json.dumps({"annotations": videos})})


def vspw(_truth: Path) -> bytes:
    return zipped({f"result_submission/{name}/{k:08d}.png": png(labels(name, k) + np.uint8(5)) for name, k in frames()})


def mots(_truth: Path) -> bytes:
    """A text for each sequence, without ignored regions."""
    texts = {f"MOTS20-{name}.txt": lines(name, 1, (2, 2)) for name in VIDEOS}
    return zipped({name: text[: text.index("1 10000 10 ")] for name, text in texts.items()})


def kitti_mots(_truth: Path) -> bytes:
    texts = {f"{k:04d}.txt": lines(name, 0, (1, 2)) for k, name in enumerate(VIDEOS)}
    return zipped({name: text[: text.index("0 10000 10 ")] for name, text in texts.items()})


def burst(truth: Path) -> bytes:
    """One JSON, with a score for each mask."""
    sequences = json.loads(truth.read_text())["sequences"]
    for sequence in sequences:
        for mask in [mask for masks in sequence["segmentations"] for mask in masks.values()]:
            mask["score"] = 0.9
    return json.dumps({"split": "val", "sequences": sequences}).encode()


#: What is uploaded for a benchmark, and what it scores.
UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    "mevis": (mevis, {"J&F-Mean": 1}),
    "mevis-official": (mevis, {"J&F-Mean": 1}),
    "mevis-v2": (mevis, {"J&F-Mean": 1, "N-acc": 1, "T-acc": 1, "Final": 1}),
    "ref-youtube-vos": (ref_youtube_vos, {"J&F-Mean": 1}),
    "ref-davis17": (ref_davis17, {"J&F-Mean": 1}),
    "coco": (coco, {"AP": 1}),
    "coco-boundary": (coco, {"AP": 1}),
    "lvis": (coco, {"AP": 1, "APc": 1}),
    "youtube-vis-2019": (video_instances, {"AP": 1}),
    "ovis": (video_instances, {"AP": 1, "AP-light": 1}),
    "coco-panoptic": (coco_panoptic, {"PQ": 1, "SQ-Stuff": 1}),
    "coco-panoptic-boundary": (coco_panoptic, {"PQ": 1}),
    "vipseg": (vipseg, {"VPQ": 1, "STQ": 1}),
    "vipseg-official": (vipseg, {"VPQ": 1, "STQ": 1}),
    "vspw": (vspw, {"mIoU": 1, "VC8": 1}),
    "mots": (mots, {"HOTA": 1, "sMOTSA": 1, "IDF1": 1}),
    "kitti-mots": (kitti_mots, {"HOTA-car": 1, "HOTA-pedestrian": 1}),
    "burst": (burst, {"HOTA": 1, "AP": 1, "HOTA-common": 1}),
}


@pytest.mark.parametrize("protocol", UPLOADS)
def test_a_phase_scores_an_upload_of_the_published_form(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, (make, expected) = published(protocol, tmp_path), UPLOADS[protocol]
    upload = tmp_path / "upload"
    upload.write_bytes(make(truth))
    track, metrics = PROTOCOLS[protocol].family, PROTOCOLS[protocol].metrics
    phase = Phase("val", "val.zip", (PhaseSplit("val", protocol, metrics),), limits=LIMITS.get(track, UNIT_LIMITS))
    monkeypatch.setattr(main, "PHASES", (phase,))

    found = main.evaluate(str(truth), str(upload), "val")["result"][0]["val"]
    assert {metric: found[metric] for metric in expected} == pytest.approx(expected)

    assert cli(["host", protocol, "--truth", str(truth), "--out", str(tmp_path / "mine")]) == 0
    packed = str(tmp_path / "mine/annotations/val.zip")
    assert main.evaluate(packed, str(upload), "val")["result"] == [{"val": found}]
