"""Faults in the segments of a video are reported quickly and in little memory."""

from __future__ import annotations

import copy
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.families.panoptic import files as panoptic_files
from segjudge.evaluation_script.families.panoptic.protocols import PANOPTIC_PROTOCOLS
from segjudge.evaluation_script.files.limits import UNIT_LIMITS
from segjudge.evaluation_script.scoring.scorer import Scorer
from tests.builders import chunk, png, raw_png, zipped
from tests.hostile_units import Make, hostile, sentence_of

SIZE = (12, 16)
IDS = np.full(SIZE, 5)
IDS[:, 8:] = 300
ROWS = [{"id": 5, "category_id": 0}, {"id": 300, "category_id": 1}]


def coloured(ids: Any) -> bytes:
    ids = np.asarray(ids, np.uint32)
    return png(np.stack([ids & 255, ids >> 8 & 255, ids >> 16], axis=-1).astype(np.uint8))


IMAGE = coloured(IDS)
FRAMES = [{"image_id": name, "file_name": f"{name}.png", "segments_info": ROWS} for name in ("0", "1")]
VIDEO = {"video_id": "a", "annotations": FRAMES}


def small_truth(folder: Path) -> UnitTruth:
    (folder / "t" / "t" / "a").mkdir(parents=True)
    for frame in FRAMES:
        (folder / "t" / "t" / "a" / str(frame["file_name"])).write_bytes(IMAGE)
    document = copy.deepcopy(VIDEO)
    for frame in document["annotations"]:
        for row in frame["segments_info"]:
            row.update(area=96, iscrowd=0)
    categories = [{"id": 0, "name": "wall", "isthing": 0}, {"id": 1, "name": "dog", "isthing": 1}]
    videos = [{"video_id": "a", "images": []}]
    truth = {"videos": videos, "categories": categories, "annotations": [document]}
    (folder / "t" / "t.json").write_text(json.dumps(truth))
    return panoptic_files.read_truth(str(folder / "t"), "")


def upload(videos: Any = None, picture: bytes = IMAGE, **files: bytes) -> bytes:
    document = (
        videos if isinstance(videos, bytes) else json.dumps({"annotations": [VIDEO] if videos is None else videos})
    )
    members = {"pred.json": document, "pan_pred/a/0.png": IMAGE, "pan_pred/a/1.png": picture, **files}
    return zipped({name: data for name, data in members.items() if data != b"absent"})


def video(**changes: Any) -> bytes:
    return upload([{**VIDEO, **changes}])


def frame(**changes: Any) -> bytes:
    return video(annotations=[FRAMES[0], {**FRAMES[1], **changes}])


def rows(*listed: Any) -> bytes:
    return frame(segments_info=list(listed))


LONG = raw_png(SIZE[1], SIZE[0], 8, 2, bytes(40 << 20))
HOSTILE: dict[str, tuple[Make, str]] = {
    "good": (upload, "scored"),
    "text": (lambda: b"hello", "neither a zip nor a tar"),
    "no-json": (lambda: upload(b"absent"), "holds no JSON file, only"),
    "two-json": (lambda: upload(**{"a/pred.json": b"{}"}), "JSON files that could list the segments"),
    "broken-json": (lambda: upload(b'{"annotations": ['), "is not valid JSON"),
    "list": (lambda: upload(b"[]"), "has no list of annotations"),
    "numbers": (lambda: upload([1]), "has no list of annotations"),
    "as-images": (lambda: upload(FRAMES), "has an annotation without video_id"),
    "id-list": (lambda: video(video_id=["a"]), "has an annotation without video_id"),
    "id-null": (lambda: video(video_id=None), "has an annotation without video_id"),
    "video-missing": (lambda: upload([]), "1 of 1 video is missing: a"),
    "other-video": (lambda: video(video_id="b"), "1 of 1 video is missing: a"),
    "video-twice": (lambda: upload([VIDEO, VIDEO]), "lists video a twice"),
    "no-frames": (lambda: video(annotations=[]), "a: has 0 frames in the JSON, not 2"),
    "one-frame": (lambda: video(annotations=FRAMES[:1]), "a: has 1 frame in the JSON, not 2"),
    "many-frames": (lambda: video(annotations=FRAMES * 300), "a: has 600 frames in the JSON, not 2"),
    "frames-null": (lambda: video(annotations=None), "a: has no list of annotations in the JSON"),
    "frames-numbers": (lambda: video(annotations=[1, 2]), "a: each of 2 frames (0, 1) has no list segments_info"),
    "other-order": (lambda: video(annotations=FRAMES[::-1]), "a, frame 0: is 1 in the JSON"),
    "same-frame": (lambda: video(annotations=[FRAMES[0], FRAMES[0]]), "a, frame 1: is 0 in the JSON"),
    "no-segments": (lambda: frame(segments_info=None), "a, frame 1: has no list segments_info"),
    "id-zero": (lambda: rows({"id": 0, "category_id": 1}), "lists a segment without an id from 1"),
    "id-large": (lambda: rows({"id": 1 << 24, "category_id": 1}), "lists a segment without an id from 1"),
    "id-text": (lambda: rows({"id": "5", "category_id": 1}), "lists a segment without an id from 1"),
    "no-category": (lambda: rows({"id": 5}), "and a category_id"),
    "unknown-category": (lambda: rows({"id": 5, "category_id": 124}), "segment 5 has the category 124"),
    "many-segments": (lambda: rows(*ROWS * 2000), "lists 4,000 segments; the limit is 2,000"),
    "unlisted": (lambda: rows(ROWS[0]), "pan_pred/a/1.png: holds ids that the JSON does not list: 300"),
    "not-drawn": (lambda: rows(*ROWS, {"id": 7, "category_id": 1}), "lacks ids that the JSON lists: 7"),
    "picture-missing": (lambda: upload(picture=b"absent"), "a, frame 1: there is no PNG a/1.png"),
    "picture-twice": (lambda: upload(**{"x/a/1.png": IMAGE, "y/a/1.png": IMAGE, "pan_pred/a/1.png": b"absent"}), "there are 2 PNGs"),
    "other-folder": (lambda: upload(picture=b"absent", **{"pan_pred/b/1.png": IMAGE}), "there is no PNG a/1.png"),
    "no-bytes": (lambda: upload(picture=b""), "pan_pred/a/1.png: is empty"),
    "no-png": (lambda: upload(picture=b"\0" * 99), "is not a PNG"),
    "cut-png": (lambda: upload(picture=IMAGE[:-30]), "is cut off"),
    "damaged": (lambda: upload(picture=IMAGE[:45] + b"\xff\xff" + IMAGE[47:]), "is damaged"),
    "grey": (lambda: upload(picture=png(IDS.astype(np.uint8))), "is not an RGB picture"),
    "transparent": (lambda: upload(picture=png(np.zeros((*SIZE, 4), np.uint8))), "lacks ids that the JSON lists"),
    "bomb-of-json": (lambda: video(annotations=FRAMES * 20_000), "like a zip bomb"),
    "sixteen-bits": (lambda: upload(picture=png(IDS.astype(np.uint16))), "is not an RGB picture"),
    "other-size": (lambda: upload(picture=coloured(IDS.T)), "is 12x16 pixels but the frame is 16x12"),
    "huge-header": (lambda: upload(picture=raw_png(1 << 30, 1 << 30, 8, 2, b"\0" * 99)), "pixels but the frame is 16x12"),
    "bomb": (lambda: upload(picture=LONG), "lacks ids that the JSON lists"),
    "many-chunks": (lambda: upload(picture=IMAGE[:33] + chunk(b"tEXt", b"") * 9999 + IMAGE[33:]), "chunks"),
    "long-picture": (lambda: upload(picture=os.urandom(3 << 20)), "has 3,145,728 bytes"),
    "nested": (lambda: upload(b"[" * 100_000), "is nested too deeply"),
    "nan": (lambda: upload(b'{"annotations": NaN}'), "holds NaN"),
    "key-twice": (lambda: upload(b'{"annotations": [], "annotations": []}'), "has the key annotations twice"),
    "lists": (lambda: zipped({"s.json": b"[" + b"[]," * 4_000_000 + b"[]]"}, zipfile.ZIP_STORED), "too many lists"),
}  # fmt: skip


@hostile(HOSTILE)
def test_hostile_videos_get_a_sentence_soon_and_in_little_memory(make: Make, sentence: str, tmp_path: Path) -> None:
    truth = small_truth(tmp_path)
    rules = ScoringRules(PANOPTIC_PROTOCOLS["vipseg"], UNIT_LIMITS)
    assert sentence in sentence_of(make(), tmp_path, lambda path: Scorer("val", truth, rules).score(str(path)))
