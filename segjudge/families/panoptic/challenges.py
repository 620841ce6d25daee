"""New challenges of panoptic segments: samples, and a synthetic truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.families.panoptic.files import VOID
from segjudge.evaluation_script.families.panoptic.protocols import PanopticProtocol
from segjudge.families.base.challenges import QUICK, encode_json, move_labels
from segjudge.families.base.tools import Content, Members
from segjudge.masks.compression import code_png
from segjudge.masks.demo import NAMES, Labels, Scene, first_scenes, label_frames, still_images
from segjudge.masks.photographs import photograph_frames, photograph_images

#: The factor of the category in a segment's id.
_IDS = 1000
_GROUND = 4
_PANOPTIC = [{"id": number, "name": name, "isthing": 1} for number, name in NAMES.items()]
_PANOPTIC.append({"id": _GROUND, "name": "ground", "isthing": 0})


def make_sample(truths: list[UnitTruth], protocol: PanopticProtocol, share: float) -> Members:
    """Yield PNGs whose colours are ids, and the JSON of their segments, without crowds."""
    if protocol.classes:
        yield from _make_coded_sample(truths, share)
        return
    entries: list[dict[str, Any]] = []
    for unit, categories_of_truth in [(unit, truth.facts["categories"]) for truth in truths for unit in truth.units]:
        frames = []
        for frame in unit.load():
            categories = {row[0]: categories_of_truth[row[1]][0] for row in frame.rows if not row[2]}
            ids = move_labels(frame.read(), np.array(list(categories), np.int64), share)
            flat = ids.reshape(-1)
            visible = [number for number in np.unique(flat[np.append(True, flat[1:] != flat[:-1])]).tolist() if number]
            folder, name = f"segments/{unit.name}" if protocol.video else "segments", f"{frame.name}.png"
            yield f"{folder}/{name}", code_png(ids, QUICK)
            segments = [{"id": number, "category_id": categories[number]} for number in visible]
            frames.append({"file_name": name, "segments_info": segments})
        if protocol.video:
            entries.append({"video_id": unit.name, "annotations": frames})
        else:
            entries += [{"image_id": unit.name, **frame} for frame in frames]
    yield "segments.json", encode_json({"annotations": entries})


def _make_coded_sample(truths: list[UnitTruth], share: float) -> Members:
    """Yield PNGs whose colours are classes and object numbers, with the truth's void."""
    for unit in [unit for truth in truths for unit in truth.units]:
        for frame in unit.load():
            pixels = frame.read()
            labels = np.unique(pixels.numbers if pixels.labels is None else pixels.labels)
            codes = move_labels(pixels, labels, share).astype(np.int64) - 1
            yield f"{unit.name}/{frame.name}.png", code_png(np.where(codes < 0, VOID, codes), QUICK)


def make_demo(protocol: PanopticProtocol) -> Content:
    videos = first_scenes()
    if protocol.classes:
        return _publish_step(videos, protocol)
    return _publish_vipseg(videos) if protocol.video else _publish_coco_panoptic(videos)


def _draw_segments(labels: Labels) -> tuple[bytes, list[dict[str, int]]]:
    """Draw a PNG whose colours are ids, and list its segments."""
    ids = np.where(labels, labels, _GROUND) * np.int64(_IDS)
    areas = zip(*np.unique(ids, return_counts=True), strict=True)
    return code_png(ids, QUICK), [
        {"id": int(segment), "category_id": int(segment) // _IDS, "iscrowd": 0, "area": int(area)}
        for segment, area in areas
    ]


def _publish_coco_panoptic(videos: list[Scene]) -> Content:
    records = []
    for image, labels in still_images(videos):
        data, segments = _draw_segments(labels)
        records.append({"image_id": image, "file_name": f"{image:012d}.png", "segments_info": segments})
        yield f"panoptic_val/{image:012d}.png", data
    listing = [{"id": record["image_id"], "file_name": record["file_name"]} for record in records]
    yield "panoptic_val.json", {"images": listing, "annotations": records, "categories": _PANOPTIC}


def _publish_vipseg(videos: list[Scene]) -> Content:
    records = []
    for video in videos:
        entries = []
        for frame, labels in label_frames(video):
            data, segments = _draw_segments(labels)
            entries.append({"image_id": frame, "file_name": f"{frame}.png", "segments_info": segments})
            yield f"panomasksRGB/{video.name}/{frame}.png", data
        records.append({"video_id": video.name, "annotations": entries})
    listing = [{"video_id": video.name} for video in videos]
    yield "panoptic_gt_VIPSeg_val.json", {"videos": listing, "annotations": records, "categories": _PANOPTIC}


def _publish_step(videos: list[Scene], protocol: PanopticProtocol) -> Content:
    """Yield maps in which moving objects have the last thing class, on the first class."""
    things = [number for number, _, is_thing in protocol.categories if is_thing]
    for video in videos:
        for frame, labels in label_frames(video):
            codes = np.where(labels, things[-1] + (labels.astype(np.int64) << 16), 0)
            yield f"panoptic_maps/val/{video.name}/{frame}.png", code_png(np.where(labels == VOID, VOID, codes), QUICK)


def make_demo_pictures(protocol: PanopticProtocol) -> Members:
    if protocol.video or protocol.classes:
        yield from photograph_frames()
        return
    yield from ((f"{image:012d}.jpg", data) for image, data in photograph_images().items())
