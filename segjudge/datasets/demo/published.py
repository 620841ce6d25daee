"""A small synthetic truth in the form in which a benchmark publishes its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from segjudge.datasets.compression import code_png
from segjudge.evaluation_script.families.base.family import TrackProtocol
from segjudge.evaluation_script.families.instances.protocols import InstanceProtocol
from segjudge.evaluation_script.families.panoptic.protocols import PanopticProtocol
from segjudge.evaluation_script.families.semantic.protocols import SemanticProtocol
from segjudge.evaluation_script.families.sequences.layouts import layout_of
from segjudge.evaluation_script.families.tracking.protocols import TracksProtocol
from segjudge.masks.run_lengths import encoded

from .make import davis_files, first_scenes, images, png_of
from .scenes import VOID, Labels, Scene

#: Paths, and bytes, texts or documents.
Content = Iterator[tuple[str, Any]]

#: What the objects of a scene are called, by their numbers, and how often LVIS would have seen them.
NAMES = {1: "disk", 2: "oval", 3: "guest"}
FREQUENCIES = {1: "f", 2: "c", 3: "r"}
#: The categories of BURST that they are taken for: one of them is not common.
BURST = {1: 4, 2: 5, 3: 13}
#: A segment's id is so many times its category.
IDS = 1000
GROUND = 4
#: So many frames lie between two images.
APART = 4


def write_published(protocol: TrackProtocol, folder: str) -> str:
    """Write the truth of a benchmark into a folder; return what to name as the truth."""
    paths = []
    for name, content in _content(protocol, first_scenes()):
        paths.append(Path(folder, name))
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, (bytes, str)) else json.dumps(content)
        paths[-1].write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(paths[0]) if len(paths) == 1 else folder


def _content(protocol: TrackProtocol, videos: list[Scene]) -> Content:
    if isinstance(protocol, InstanceProtocol):
        return _vis(videos) if protocol.tubes else _coco(videos)
    if isinstance(protocol, PanopticProtocol):
        return _vipseg(videos) if protocol.video else _coco_panoptic(videos)
    if isinstance(protocol, SemanticProtocol):
        return _vspw(videos)
    if isinstance(protocol, TracksProtocol):
        return _burst(videos) if protocol.burst else _kitti(videos) if len(protocol.classes) > 1 else _mots(videos)
    layouts = {"sav": _sav, "mevis": _mevis, "ref-youtube-vos": _ref_youtube_vos}
    return layouts.get(layout_of(protocol.name).name, davis_files)(videos)


def _frames(video: Scene) -> list[tuple[str, Labels]]:
    return [(f"{frame:05d}", video.labels(frame)) for frame in range(video.frames)]


def _numbers(video: Scene) -> range:
    return range(1, len(video.shapes) + 1)


def _masks(video: Scene) -> dict[int, list[dict[str, Any] | None]]:
    """Return the run lengths of each object, frame by frame."""
    texts = [encoded(labels) for _, labels in _frames(video)]
    return {
        number: [{"size": video.size, "counts": text[number]} if number in text else None for text in texts]
        for number in _numbers(video)
    }


def _sav(videos: list[Scene]) -> Content:
    for video in videos:
        for number in _numbers(video):
            for frame, labels in _frames(video):
                mask = (labels == number).astype(np.uint8)
                yield f"Annotations_6fps/{video.name}/{number - 1:03d}/{frame}.png", png_of(mask)


def _mevis(videos: list[Scene]) -> Content:
    masks: dict[str, Any] = {}
    listing = {}
    for video in videos:
        first = len(masks)
        masks.update({str(first + place): mask for place, mask in enumerate(_masks(video).values())})
        one_by_one = [[number] for number in range(first, len(masks))]
        ids = [*one_by_one, list(range(first, len(masks))), []]  # each, all and none
        expressions = {str(place): {"exp": "…", "obj_id": one, "anno_id": one} for place, one in enumerate(ids)}
        listing[video.name] = {"expressions": expressions, "frames": [name for name, _ in _frames(video)]}
    yield "meta_expressions.json", {"videos": listing}
    yield "mask_dict.json", masks


def _ref_youtube_vos(videos: list[Scene]) -> Content:
    listing = {}
    for video in videos:
        expressions = {
            str(number - 1): {"exp": f"a {NAMES[number]}", "obj_id": str(number)} for number in _numbers(video)
        }
        listing[video.name] = {"expressions": expressions, "frames": [name for name, _ in _frames(video)]}
    yield "meta_expressions/valid/meta_expressions.json", {"videos": listing}
    yield from ((f"valid/Annotations/{name}", data) for name, data in images(videos, Scene.labels))


def _pictures(videos: list[Scene]) -> list[tuple[int, Labels]]:
    """Return some frames as images, numbered from 1."""
    return list(enumerate((labels for video in videos for _, labels in _frames(video)[::APART]), 1))


def _coco(videos: list[Scene]) -> Content:
    records: list[dict[str, Any]] = []
    pictures = _pictures(videos)
    for image, labels in pictures:
        for number, counts in encoded(labels).items():
            rows, columns = np.nonzero(labels == number)
            left, top = int(columns.min()), int(rows.min())
            records.append({
                "id": len(records) + 1, "image_id": image, "category_id": number, "iscrowd": 0, "area": len(rows),
                "bbox": [left, top, int(columns.max()) + 1 - left, int(rows.max()) + 1 - top],
                "segmentation": {"size": labels.shape, "counts": counts},
            })  # fmt: skip
    listing = [
        {
            "id": image, "file_name": f"{image:012d}.jpg", "height": labels.shape[0], "width": labels.shape[1],
            "neg_category_ids": [], "not_exhaustive_category_ids": [],
        }
        for image, labels in pictures
    ]  # fmt: skip
    categories = [{"id": number, "name": name, "frequency": FREQUENCIES[number]} for number, name in NAMES.items()]
    yield "instances.json", {"images": listing, "categories": categories, "annotations": records}


def _vis(videos: list[Scene]) -> Content:
    listing: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    for place, video in enumerate(videos, 1):
        size = {"height": video.size[0], "width": video.size[1]}
        files = [f"{video.name}/{name}.jpg" for name, _ in _frames(video)]
        listing.append({"id": place, **size, "length": video.frames, "file_names": files})
        for number, masks in _masks(video).items():
            areas = [int((labels == number).sum()) or None for _, labels in _frames(video)]
            hidden = [None if area is None else ("no", "slight", "severe")[number - 1] + "_occlusion" for area in areas]
            records.append({
                "id": len(records) + 1, "video_id": place, "category_id": number, "iscrowd": 0, **size,
                "segmentations": masks, "areas": areas, "occlusion": hidden,
            })  # fmt: skip
    categories = [{"id": number, "name": name} for number, name in NAMES.items()]
    yield "instances.json", {"videos": listing, "categories": categories, "annotations": records}


def _segments(labels: Labels) -> tuple[bytes, list[dict[str, int]]]:
    """Return a PNG whose colours are ids, and its list of segments."""
    ids = np.where(labels, labels, GROUND) * np.int64(IDS)
    found = zip(*np.unique(ids, return_counts=True), strict=True)
    return code_png(ids), [
        {"id": int(one), "category_id": int(one) // IDS, "iscrowd": 0, "area": int(area)} for one, area in found
    ]


_PANOPTIC = [{"id": number, "name": name, "isthing": 1} for number, name in NAMES.items()]
_PANOPTIC.append({"id": GROUND, "name": "ground", "isthing": 0})


def _coco_panoptic(videos: list[Scene]) -> Content:
    records = []
    for image, labels in _pictures(videos):
        data, segments = _segments(labels)
        records.append({"image_id": image, "file_name": f"{image:012d}.png", "segments_info": segments})
        yield f"panoptic_val/{image:012d}.png", data
    listing = [{"id": record["image_id"], "file_name": record["file_name"]} for record in records]
    yield "panoptic_val.json", {"images": listing, "annotations": records, "categories": _PANOPTIC}


def _vipseg(videos: list[Scene]) -> Content:
    records = []
    for video in videos:
        entries = []
        for frame, labels in _frames(video):
            data, segments = _segments(labels)
            entries.append({"image_id": frame, "file_name": f"{frame}.png", "segments_info": segments})
            yield f"panomasksRGB/{video.name}/{frame}.png", data
        records.append({"video_id": video.name, "annotations": entries})
    listing = [{"video_id": video.name} for video in videos]
    yield "panoptic_gt_VIPSeg_val.json", {"videos": listing, "annotations": records, "categories": _PANOPTIC}


def _vspw(videos: list[Scene]) -> Content:
    yield "val.txt", "".join(f"{video.name}\n" for video in videos)
    for name, data in images(videos, Scene.truth):
        yield "data/" + name.replace("/", "/mask/"), data


def _lines(video: Scene, first: int, classes: tuple[int, ...]) -> str:
    """Return a text of tracks: the frames count from `first`, the objects are of these classes in turn."""
    lines = []
    for frame in range(video.frames):
        for number, counts in encoded(video.truth(frame)).items():
            kind = 10 if number == VOID else classes[number % len(classes)]
            track = 10_000 if number == VOID else kind * IDS + number
            lines.append(f"{frame + first} {track} {kind} {video.size[0]} {video.size[1]} {counts}\n")
    return "".join(lines)


def _mots(videos: list[Scene]) -> Content:
    for video in videos:
        yield f"{video.name}/gt/gt.txt", _lines(video, 1, (2,))
        facts = {"seqLength": video.frames, "imHeight": video.size[0], "imWidth": video.size[1]}
        yield f"{video.name}/seqinfo.ini", "".join(["[Sequence]\n", *(f"{key}={one}\n" for key, one in facts.items())])


def _kitti(videos: list[Scene]) -> Content:
    for place, video in enumerate(videos):
        yield f"instances_txt/{place:04d}.txt", _lines(video, 0, (1, 2))
    yield "val.seqmap", "".join(f"{place:04d} empty 000000 {one.frames:06d}\n" for place, one in enumerate(videos))


def _burst(videos: list[Scene]) -> Content:
    sequences = [
        {
            "id": place, "width": video.size[1], "height": video.size[0], "seq_name": video.name, "dataset": "Demo",
            "annotated_image_paths": [f"{name}.jpg" for name, _ in _frames(video)],
            "neg_category_ids": [], "not_exhaustive_category_ids": [],
            "track_category_ids": {str(number): BURST[number] for number in _numbers(video)},
            "segmentations": [
                {str(number): {"rle": counts} for number, counts in encoded(labels).items()}
                for _, labels in _frames(video)
            ],
        }
        for place, video in enumerate(videos, 1)
    ]  # fmt: skip
    categories = [{"id": BURST[number], "name": name} for number, name in NAMES.items()]
    yield "all_classes.json", {"split": "val", "sequences": sequences, "categories": categories}
