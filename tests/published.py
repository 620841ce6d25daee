"""Truths of two short videos, written as each benchmark publishes its own, and what participants upload for them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, Callable

import numpy as np
from pycocotools import mask as coco

from segjudge.evaluation_script.families import PROTOCOLS, engine_of
from segjudge.evaluation_script.families.sequences.layouts import ALIASES
from segjudge.families import tools_of
from segjudge.masks.tiff import encode_tiff
from segjudge.starting.new_challenge import write_demo_truth

from .builders import png, written, zipped

SIZE = (96, 128)
#: How fast the objects of each video move.
VIDEOS = {"swan": 1, "goat": 2}
FRAMES = 8


def disk(radius: int, x: int) -> Any:
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    return (rows - 48) ** 2 + (columns - x) ** 2 < radius**2


def labels(name: str, frame: int) -> Any:
    """Two disks that move towards each other."""
    return (disk(14, 30 + VIDEOS[name] * frame) * 1 + disk(10, 90 - frame) * 2).astype(np.uint8)


def frames() -> list[tuple[str, int]]:
    return [(name, frame) for name in VIDEOS for frame in range(FRAMES)]


def rle(mask: Any) -> Any:
    encoded = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": list(mask.shape), "counts": encoded["counts"].decode()}


def davis(folder: Path) -> Path:
    masks = {f"Annotations/480p/{name}/{k:05d}.png": png(labels(name, k)) for name, k in frames()}
    return written(folder / "DAVIS", {**masks, "ImageSets/2017/val.txt": "\n".join(VIDEOS)})


def davis_unsupervised(folder: Path) -> Path:
    masks = {f"Annotations_unsupervised/480p/{name}/{k:05d}.png": png(labels(name, k)) for name, k in frames()}
    return written(folder / "DAVIS", {**masks, "ImageSets/2017/val.txt": "\n".join(VIDEOS)})


def sav(folder: Path) -> Path:
    """A folder for each object."""
    return written(folder / "sav_val", {
        f"Annotations_6fps/{name}/{one - 1:03d}/{4 * k:05d}.png": png((labels(name, k) == one) * np.uint8(255))
        for name, k in frames() for one in (1, 2)
    })  # fmt: skip


def mevis(folder: Path) -> Path:
    """Expressions that mean one object, both, and none."""
    ids = {"swan": [3, 7], "goat": [12, 5]}
    expressions = {
        name: {str(k): {"exp": "…", "obj_id": [], "anno_id": one} for k, one in enumerate(([a], [b], [a, b], []))}
        for name, (a, b) in ids.items()
    }
    videos = {
        name: {"expressions": own, "frames": [f"{k:05d}" for k in range(FRAMES)]} for name, own in expressions.items()
    }
    masks = {
        str(one): [rle(labels(name, k) == number) if k else None for k in range(FRAMES)]
        for name in VIDEOS for number, one in enumerate(ids[name], 1)
    }  # fmt: skip
    return written(folder / "valid_u", {"meta_expressions.json": {"videos": videos}, "mask_dict.json": masks})


def revos(folder: Path) -> Path:
    """MeViS's with the type of each expression, and the masks of all that they could mean."""
    truth = mevis(folder / "mevis")
    listing = json.loads((truth / "meta_expressions.json").read_text())
    masks = json.loads((truth / "mask_dict.json").read_text())
    foreground = {}
    for name, video in listing["videos"].items():
        for expression in video["expressions"].values():
            expression["type_id"] = {0: 2, 1: 0, 2: 1}[len(expression["anno_id"])]
        both = [masks[str(one)] for one in video["expressions"]["2"]["anno_id"]]
        foreground[name] = {"masks_rle": [[mask for mask in of_frame if mask] for of_frame in zip(*both, strict=True)]}
    return written(folder / "ReVOS", {
        "meta_expressions_valid_.json": listing, "mask_dict.json": masks, "mask_dict_foreground.json": foreground,
    })  # fmt: skip


def ref_youtube_vos(folder: Path) -> Path:
    """Every fifth frame has a label image; the list of the test set lies beside."""
    expressions = {"0": {"exp": "a disk", "obj_id": "1"}, "1": {"exp": "a smaller one", "obj_id": "2"}}
    listing = {name: {"expressions": expressions, "frames": [f"{5 * k:05d}" for k in range(FRAMES)]} for name in VIDEOS}
    return written(folder / "rvos", {
        "meta_expressions/valid/meta_expressions.json": {"videos": listing},
        **{f"valid/Annotations/{name}/{5 * k:05d}.png": png(labels(name, k)) for name, k in frames()},
    })  # fmt: skip


def long_rvos(folder: Path) -> Path:
    """A folder for each object, with the frames in which it is seen; expressions of all three types."""
    kinds = {"swan": ("static", "dynamic"), "goat": ("static+dynamic", "static")}
    listing = {
        name: {
            "expressions": {
                str(one): {"exp": "…", "obj_id": one + 1, "type": kind}
                for one, kind in enumerate(kinds.get(name, ("static", "dynamic")))
            },
            "frames": [f"{10 * k:05d}" for k in range(FRAMES)],
        }
        for name in VIDEOS
    }
    masks = {
        f"Annotations/{name}/{one}/{10 * k:05d}.png": png((labels(name, k) == one) * np.uint8(255))
        for name, k in frames() for one in (1, 2) if k >= one
    }  # fmt: skip
    return written(folder / "Long-RVOS", {"meta_expressions.json": {"videos": listing}, **masks})


def coco_instances(folder: Path) -> Path:
    """Polygons, and what LVIS says of images and categories beside."""
    squares = [(10, 10), (40, 50), (20, 80)]
    annotations = [
        {
            "id": k + 1, "image_id": 1 + k % 2, "category_id": 3, "iscrowd": 0, "area": 400, "bbox": [x, y, 20, 20],
            "segmentation": [[x, y, x + 20, y, x + 20, y + 20, x, y + 20]],
        }
        for k, (y, x) in enumerate(squares)
    ]  # fmt: skip
    images = [
        {
            "id": k, "height": SIZE[0], "width": SIZE[1], "file_name": f"{k}.jpg", "neg_category_ids": [],
            "not_exhaustive_category_ids": [],
        }
        for k in (1, 2)
    ]  # fmt: skip
    categories = [{"id": 3, "name": "box", "frequency": "c"}]
    document = {"images": images, "categories": categories, "annotations": annotations}
    return written(folder, {"instances_val.json": document}) / "instances_val.json"


def coco_keypoints(folder: Path) -> Path:
    """People with all, some and none of COCO's 17 points, and a crowd."""
    corners = [(10, 10), (40, 50), (20, 80), (60, 100)]
    annotations = []
    for k, (y, x) in enumerate(corners):
        marks = [2 * int(point % 4 >= k) for point in range(17)] if k < 3 else [0] * 17
        points = [[x + point, y + 2 * point % 20, mark] if mark else [0, 0, 0] for point, mark in enumerate(marks)]
        annotations.append({
            "id": k + 1, "image_id": 1 + k % 2, "category_id": 1, "iscrowd": int(k == 2), "area": 1100 + k,
            "bbox": [x, y, 20, 20], "keypoints": [number for point in points for number in point],
            "num_keypoints": sum(map(bool, marks)),
            "segmentation": [[x, y, x + 20, y, x + 20, y + 20, x, y + 20]],
        })  # fmt: skip
    images = [{"id": k, "height": SIZE[0], "width": SIZE[1], "file_name": f"{k}.jpg"} for k in (1, 2)]
    categories = [{"id": 1, "name": "person", "keypoints": [f"point {k}" for k in range(17)], "skeleton": [[1, 2]]}]
    document = {"images": images, "categories": categories, "annotations": annotations}
    return written(folder, {"person_keypoints_val.json": document}) / "person_keypoints_val.json"


def video_instances(folder: Path) -> Path:
    """Uncompressed run lengths, as YouTube-VIS and OVIS publish them, and a frame without a mask."""
    annotations = []
    for video, name in enumerate(VIDEOS, 1):
        for one in (1, 2):
            masks = [labels(name, k) == one for k in range(FRAMES)]
            runs: list[Any] = [
                {"size": list(SIZE), "counts": np.diff(np.flatnonzero(np.diff(down, prepend=0)), prepend=0).tolist()}
                for down in (mask.T.reshape(-1).astype(np.int8) for mask in masks)
            ]
            for mask in runs:
                mask["counts"].append(SIZE[0] * SIZE[1] - sum(mask["counts"]))
            areas: list[Any] = [int(mask.sum()) for mask in masks]
            runs[3] = areas[3] = None
            annotations.append({
                "id": len(annotations) + 1, "video_id": video, "category_id": one, "iscrowd": 0, "areas": areas,
                "height": SIZE[0], "width": SIZE[1], "segmentations": runs,
                "occlusion": [None if area is None else "slight_occlusion" for area in areas],
            })  # fmt: skip
    videos = [{"id": k, "height": SIZE[0], "width": SIZE[1], "length": FRAMES, "file_names": []} for k in (1, 2)]
    categories = [{"id": 1, "name": "large"}, {"id": 2, "name": "small"}]
    document = {"videos": videos, "categories": categories, "annotations": annotations}
    return written(folder, {"valid.json": document}) / "valid.json"


CATEGORIES = [
    {"id": 1, "name": "swan", "isthing": 1}, {"id": 18, "name": "boat", "isthing": 1},
    {"id": 119, "name": "water", "isthing": 0},
]  # fmt: skip
#: Ids of segments, and their categories.
SEGMENTS = {70_000: 119, 257: 1, 600: 18}


def segments(image: Any) -> tuple[bytes, list[dict[str, int]]]:
    ids = np.array(list(SEGMENTS))[image]
    colours = np.stack([ids & 255, ids >> 8 & 255, ids >> 16], axis=-1).astype(np.uint8)
    return png(colours), [
        {"id": one, "category_id": category, "iscrowd": 0, "area": int((ids == one).sum())}
        for one, category in SEGMENTS.items()
    ]


def coco_panoptic(folder: Path) -> Path:
    """The JSON beside the folder of PNGs that is named as it."""
    files: dict[str, Any] = {}
    listed = []
    for number, (name, k) in enumerate(frames(), 139):
        files[f"panoptic_val2017/{number:012d}.png"], own = segments(labels(name, k))
        listed.append({"image_id": number, "file_name": f"{number:012d}.png", "segments_info": own})
    files["panoptic_val2017.json"] = {"annotations": listed, "categories": CATEGORIES, "images": []}
    return written(folder, files) / "panoptic_val2017.json"


def vipseg(folder: Path) -> Path:
    files: dict[str, Any] = {}
    annotations = []
    for video in VIDEOS:
        listed = []
        for k in range(FRAMES):
            files[f"panomasksRGB/{video}/{k:08d}.png"], own = segments(labels(video, k))
            listed.append({"image_id": f"{k:08d}", "file_name": f"{k:08d}.png", "segments_info": own})
        annotations.append({"video_id": video, "annotations": listed})
    videos = [{"video_id": video, "images": []} for video in VIDEOS]
    files["panoptic_gt_VIPSeg_val.json"] = {"videos": videos, "annotations": annotations, "categories": CATEGORIES}
    return written(folder / "VIPSeg", files)


#: A class that has objects, by protocol.
STEP_THINGS = {
    f"{name}-step{row}": thing for name, thing in (("kitti", 13), ("motchallenge", 4)) for row in ("", "-official")
}


def step_map(name: str, frame: int, thing: int) -> bytes:
    """The first disk is an object, the second a crowd, on ground of the first class, with void at the top."""
    disks = labels(name, frame)
    classes = np.where(disks, thing, 0)
    classes[:4] = 255
    return png(np.dstack([classes, disks * 0, disks == 1]).astype(np.uint8))


def step(thing: int, folder: Path) -> Path:
    """Maps of val, with those of train beside."""
    maps = {f"panoptic_maps/val/{name}/{k:06d}.png": step_map(name, k, thing) for name, k in frames()}
    other = {"panoptic_maps/train/0000/000000.png": png(np.zeros((*SIZE, 3), np.uint8))}
    return written(folder / "step", {**maps, **other})


def vspw(folder: Path) -> Path:
    """Classes 5, 6 and 7, and void at the top; a video of another split lies beside."""
    files: dict[str, Any] = {
        "val.txt": "\n".join(VIDEOS),
        "data/other/mask/00000000.png": png(np.zeros(SIZE, np.uint8)),
    }
    for name, k in frames():
        classes = labels(name, k) + np.uint8(5)
        classes[:4] = 255
        files[f"data/{name}/mask/{k:08d}.png"] = png(classes)
    return written(folder / "VSPW_480p", files)


def lines(name: str, first: int, kinds: tuple[int, int]) -> str:
    rows = [
        f"{k + first} {1000 * kind + one} {kind} {SIZE[0]} {SIZE[1]} {rle(labels(name, k) == one)['counts']}\n"
        for k in range(FRAMES) for one, kind in zip((1, 2), kinds)
    ]  # fmt: skip
    return "".join([*rows, f"{first} 10000 10 {SIZE[0]} {SIZE[1]} {rle(disk(4, 4))['counts']}\n"])


def mots(folder: Path) -> Path:
    """Folders as of MOTS20."""
    facts = f"[Sequence]\nseqLength={FRAMES}\nimWidth={SIZE[1]}\nimHeight={SIZE[0]}\n"
    texts = {f"MOTS20-{name}/gt/gt.txt": lines(name, 1, (2, 2)) for name in VIDEOS}
    return written(folder / "train", {**texts, **{f"MOTS20-{name}/seqinfo.ini": facts for name in VIDEOS}})


def kitti_mots(folder: Path) -> Path:
    """A zip of texts and the list of sequences."""
    texts = {f"instances_txt/{k:04d}.txt": lines(name, 0, (1, 2)) for k, name in enumerate(VIDEOS)}
    listing = "".join(f"{k:04d} empty 000000 {FRAMES:06d}\n" for k in range(len(VIDEOS)))
    (folder / "kitti.zip").write_bytes(zipped({**texts, "val.seqmap": listing}))
    return folder / "kitti.zip"


def burst(folder: Path) -> Path:
    sequences = [
        {
            "id": k, "width": SIZE[1], "height": SIZE[0], "seq_name": name, "dataset": "YFCC100M", "fps": 1,
            "annotated_image_paths": [f"{frame:05d}.jpg" for frame in range(FRAMES)], "neg_category_ids": [9],
            "not_exhaustive_category_ids": [], "track_category_ids": {"1": 805, "2": 1},
            "segmentations": [
                {str(one): {"rle": rle(labels(name, frame) == one)["counts"]} for one in (1, 2)}
                for frame in range(FRAMES)
            ],
        }
        for k, name in enumerate(VIDEOS)
    ]  # fmt: skip
    categories = [{"id": 805, "name": "person"}, {"id": 1, "name": "acorn"}]
    document = {"split": "val", "sequences": sequences, "categories": categories}
    return written(folder, {"all_classes.json": document}) / "all_classes.json"


def phrases(folder: Path) -> Path:
    """Two annotators of phrases for both objects of each frame and one that is not there, as SA-Co publishes them."""
    pairs = [(name, k, one) for name, k in frames() for one in (1, 2, 9)]
    images = [
        {
            "id": 10_000_000 + number, "height": SIZE[0], "width": SIZE[1], "file_name": f"{name}-{k}.jpg",
            "text_input": f"object {one}", "is_instance_exhaustive": 1, "is_pixel_exhaustive": 1,
        }
        for number, (name, k, one) in enumerate(pairs)
    ]  # fmt: skip
    annotations = [
        {
            "id": number + 1, "image_id": 10_000_000 + number, "category_id": 1, "iscrowd": 0,
            "segmentation": rle(labels(name, k) == one),
        }
        for number, (name, k, one) in enumerate(pairs)
        if (labels(name, k) == one).any()
    ]  # fmt: skip
    document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "object"}]}
    return written(folder / "SA-Co", {f"gold_toy_merged_{one}_release_test.json": document for one in "ab"})


def video_phrases(folder: Path) -> Path:
    """Phrases for one object of each video, for both, and for one that is not there, as SA-Co/VEval publishes them."""
    named = {1: (1,), 2: (1, 2), 9: ()}
    videos = [
        {
            "id": video, "height": SIZE[0], "width": SIZE[1], "video_name": name,
            "file_names": [f"{name}/{frame:05d}.jpg" for frame in range(FRAMES)], "length": FRAMES,
        }
        for video, name in enumerate(VIDEOS)
    ]  # fmt: skip
    asked = [(video, category) for video in range(len(videos)) for category in named]
    pairs = [
        {"id": k, "video_id": video, "category_id": category, "noun_phrase": f"object {category}"}
        for k, (video, category) in enumerate(asked)
    ]
    tracks = [(pair, one) for pair in asked for one in named[pair[1]]]
    annotations = [
        {
            "id": k, "video_id": video, "category_id": category, "iscrowd": 0,
            "segmentations": [rle(labels(videos[video]["video_name"], frame) == one) for frame in range(FRAMES)],
        }
        for k, ((video, category), one) in enumerate(tracks, 1)
    ]  # fmt: skip
    document = {
        "videos": videos, "annotations": annotations, "video_np_pairs": pairs,
        "categories": [{"id": category, "name": f"object {category}"} for category in named],
    }  # fmt: skip
    return written(folder, {"saco_veval_toy_test.json": document}) / "saco_veval_toy_test.json"


def label_maps(folder: Path) -> Path:
    """Frames of both videos as images; labels that every benchmark of images has."""
    maps = {f"masks/val/{name}-{k}.png": png(np.clip(labels(name, k), 1, 2)) for name, k in frames()}
    return written(folder / "labels", maps)


def streets(name: str, frame: int) -> Any:
    """The labels of a frame as ids of Cityscapes: a road with a car and a person."""
    return np.array([7, 26, 24])[np.clip(labels(name, frame), 0, 2)]


def cityscapes(folder: Path) -> Path:
    """Both videos as cities, with and without the numbers of objects."""
    maps = {}
    for name, k in frames():
        ids, stem = streets(name, k), f"gtFine/val/{name}/{name}_{k:06d}_000019_gtFine"
        maps[f"{stem}_labelIds.png"] = png(ids.astype(np.uint8))
        maps[f"{stem}_instanceIds.png"] = png(np.where(ids > 7, 1000 * ids, ids).astype(np.uint16))
    return written(folder / "cityscapes", maps)


def numbered(name: str, frame: int) -> Any:
    """The same with numbered objects, enlarged until they count."""
    ids = streets(name, frame).repeat(4, axis=0).repeat(4, axis=1)
    return np.where(ids > 7, 1000 * ids, ids).astype(np.uint16)


def cityscapes_instances(folder: Path) -> Path:
    maps = {
        f"gtFine/val/{name}/{name}_{k:06d}_000019_gtFine_instanceIds.png": png(numbered(name, k))
        for name, k in frames()
    }
    return written(folder / "cityscapes", maps)


def scan_values(name: str, frame: int) -> bytes:
    """Every class: stuff in bands, a thing that differs from frame to frame, a car that moves."""
    bands = np.array([40, 44, 48, 49, 50, 51, 70, 71, 72, 80, 81, 81], "<u4").repeat(SIZE[0] // 12)[:, None]
    thing = (10, 11, 15, 18, 20, 30, 31, 32)[frame]
    return np.choose(labels(name, frame), [bands, thing | 1 << 16, 252 | 2 << 16]).astype("<u4").tobytes()


def scans(folder: Path) -> Path:
    """Frames of both videos as scans of a sequence."""
    files = {f"sequences/08/labels/{k:06d}.label": scan_values(*one) for k, one in enumerate(frames())}
    return written(folder / "dataset", files)


def grey_maps() -> dict[str, bytes]:
    """Masks of both objects of each frame, by data set: a video each."""
    return {f"{name}/{k}.png": png((labels(name, k) > 0) * np.uint8(255)) for name, k in frames()}


def saliency(folder: Path) -> Path:
    """Both videos as data sets of salient objects."""
    return written(folder / "masks", {name.replace("/", "/GT/"): data for name, data in grey_maps().items()})


def cell_files(folder: str, marker: str, text: str) -> dict[str, Any]:
    """Both videos as sequences of cells."""
    masks = {f"{name}_{folder}/{marker}{k:03d}.tif": encode_tiff(labels(name, k)[None]) for name, k in frames()}
    tracks = {f"{name}_{folder}/{text}": f"1 0 {FRAMES - 1} 0\n2 0 {FRAMES - 1} 0\n" for name in VIDEOS}
    return {**masks, **tracks}


def cells(folder: Path) -> Path:
    outlines = {f"{name}_GT/SEG/man_seg003.tif": encode_tiff(labels(name, 3)[None]) for name in VIDEOS}
    return written(folder / "dataset", {**cell_files("GT", "TRA/man_track", "TRA/man_track.txt"), **outlines})


def cell_maps(ending: str) -> dict[str, bytes]:
    """Frames of both videos as images of cells; numbers have gaps."""
    return {f"{name}-{k}{ending}": png(labels(name, k).astype(np.uint16) * 300) for name, k in frames()}


def microscopy(folder: Path) -> Path:
    return written(folder / "test", cell_maps("_masks.png"))


def coco_stuff(folder: Path) -> Path:
    """Both videos as images of COCO-Stuff: grass with a tree and a wall."""
    sizes = [{"id": image, "height": SIZE[0], "width": SIZE[1]} for image in range(len(frames()))]
    categories = [
        {"id": label, "name": f"stuff {label}", "supercategory": f"group {label % 2}"} for label in range(92, 184)
    ]
    document = {"images": sizes, "annotations": stuff_records(), "categories": categories}
    return written(folder, {"stuff_val2017.json": document}) / "stuff_val2017.json"


def stuff_records() -> list[dict[str, Any]]:
    return [
        {"image_id": image, "category_id": 92 + one, "segmentation": rle(labels(*place) == one)}
        for image, place in enumerate(frames())
        for one in np.unique(labels(*place)).tolist()
    ]


#: By the name of a protocol, where its truth is not laid out as that of most of its track.
OWN: dict[str, Callable[[Path], Path]] = {
    "davis2017-unsupervised": davis_unsupervised, "ref-davis17": davis_unsupervised, "sav": sav, "mevis": mevis,
    "revos": revos, "revos-official": revos, "ref-youtube-vos": ref_youtube_vos, "long-rvos": long_rvos, "long-rvos-official": long_rvos,
    "coco-panoptic": coco_panoptic, "coco-panoptic-boundary": coco_panoptic,
    "cityscapes-panoptic": coco_panoptic,
    "mots": mots, "kitti-mots": kitti_mots, "coco-keypoints": coco_keypoints, "coco-keypoints-official": coco_keypoints,
    **{name: partial(step, thing) for name, thing in STEP_THINGS.items()},
    "cityscapes-instance": cityscapes_instances, "cityscapes-instance-official": cityscapes_instances,
    "ade20k": label_maps, "cityscapes": cityscapes, "sa-co-veval": video_phrases, "sa-co-veval-official": video_phrases,
    "coco-stuff": coco_stuff, "coco-stuff-official": coco_stuff,
    "bdd100k": label_maps, "bdd100k-drivable": label_maps, "bdd100k-drivable-official": label_maps,
}  # fmt: skip
USUAL: dict[str, Callable[[Path], Path]] = {
    "sequences": davis, "instances": coco_instances, "panoptic": vipseg, "semantic": vspw, "tracks": burst,
    "phrases": phrases, "scans": scans, "saliency": saliency, "cells": cells,
    "microscopy": microscopy,
}  # fmt: skip


def published(protocol: str, folder: Path) -> Path:
    """Write the truth of a benchmark; return what a host names."""
    if getattr(PROTOCOLS[protocol], "tubes", False):
        return video_instances(folder)
    usual = USUAL.get(PROTOCOLS[protocol].family, lambda folder: demo(protocol, folder))
    return OWN.get(ALIASES.get(protocol, protocol), usual)(folder)


def demo(protocol: str, folder: Path) -> Path:
    """Write the synthetic truth that the family has for new challenges."""
    (folder / "demo").mkdir()
    return Path(write_demo_truth(PROTOCOLS[protocol], str(folder / "demo")))


def send_davis(_truth: Path) -> bytes:
    return zipped({f"{name}/{k:05d}.png": png(labels(name, k)) for name, k in frames()})


def send_mevis(truth: Path, meta: str = "meta_expressions.json", value: int = 255) -> bytes:
    """A black and white PNG for each video, expression and frame; nothing in those that mean nothing."""
    masks = json.loads((truth / "mask_dict.json").read_text())
    videos = json.loads((truth / meta).read_text())["videos"]
    numbers = {"swan": {3: 1, 7: 2}, "goat": {12: 1, 5: 2}}
    files = {}
    for name, video in videos.items():
        for key, expression in video["expressions"].items():
            for k, frame in enumerate(video["frames"]):
                seen = [numbers[name][one] for one in expression["anno_id"] if masks[str(one)][k]]
                files[f"{name}/{key}/{frame}.png"] = png(np.isin(labels(name, k), seen) * np.uint8(value))
    return zipped(files)


def send_revos(truth: Path) -> bytes:
    """Masks of 0 and 1, which its script needs."""
    return send_mevis(truth, "meta_expressions_valid_.json", 1)


def send_ref_youtube_vos(_truth: Path) -> bytes:
    return zipped({
        f"Annotations/{name}/{one - 1}/{5 * k:05d}.png": png((labels(name, k) == one) * np.uint8(255))
        for name, k in frames() for one in (1, 2)
    })  # fmt: skip


def send_long_rvos(_truth: Path) -> bytes:
    """Nothing in the frames in which an object is not seen."""
    return zipped({
        f"{name}/{one - 1}/{10 * k:05d}.png": png((labels(name, k) == one) * np.uint8(255 * (k >= one)))
        for name, k in frames() for one in (1, 2)
    })  # fmt: skip


def send_ref_davis17(_truth: Path) -> bytes:
    return zipped({
        f"anno_{person}/{name}/{k:05d}.png": png(labels(name, k)) for person in range(4) for name, k in frames()
    })  # fmt: skip


def send_coco(truth: Path) -> bytes:
    """A plain list; masks are boxes here, so that run lengths can be written without a library."""
    records = []
    for one in json.loads(truth.read_text())["annotations"]:
        x, y, width, height = one["bbox"]
        mask = np.zeros(SIZE, bool)
        mask[y : y + height, x : x + width] = True
        record = {key: one[key] for key in ("image_id", "category_id")}
        records.append({**record, "score": 0.9, "segmentation": rle(mask)})
    return json.dumps(records).encode()


def send_keypoints(truth: Path) -> bytes:
    """A plain list, with flags of 1 and the boxes that some tools write beside."""
    return json.dumps([
        {
            "image_id": one["image_id"], "category_id": 1, "score": 0.9, "bbox": [0, 0, 9, 9],
            "keypoints": [1 if k % 3 == 2 else number for k, number in enumerate(one["keypoints"])],
        }
        for one in json.loads(truth.read_text())["annotations"]
    ]).encode()  # fmt: skip


def send_video_instances(truth: Path) -> bytes:
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


def without_areas(listed: list[dict[str, int]]) -> list[dict[str, int]]:
    return [{"id": one["id"], "category_id": one["category_id"]} for one in listed]


def send_coco_panoptic(_truth: Path) -> bytes:
    """A JSON, and a folder of PNGs that is named as it."""
    files: dict[str, Any] = {}
    listed = []
    for number, (name, k) in enumerate(frames(), 139):
        files[f"panoptic_val2017_ours_results/{number:012d}.png"], own = segments(labels(name, k))
        listed.append({"image_id": number, "file_name": f"{number:012d}.png", "segments_info": without_areas(own)})
    return zipped({**files, "panoptic_val2017_ours_results.json": json.dumps({"annotations": listed})})


def send_vipseg(_truth: Path) -> bytes:
    """`pred.json` and `pan_pred`, as the script reads them."""
    files: dict[str, Any] = {}
    videos = []
    for video in VIDEOS:
        listed = []
        for k in range(FRAMES):
            files[f"pan_pred/{video}/{k:08d}.png"], own = segments(labels(video, k))
            listed.append({"file_name": f"{k:08d}.png", "segments_info": without_areas(own)})
        videos.append({"video_id": video, "annotations": listed})
    return zipped({**files, "pred.json": json.dumps({"annotations": videos}, ensure_ascii=False)})


def send_step(thing: int, _truth: Path) -> bytes:
    return zipped({f"{name}/{k:06d}.png": step_map(name, k, thing) for name, k in frames()})


def send_vspw(_truth: Path) -> bytes:
    return zipped({f"result_submission/{name}/{k:08d}.png": png(labels(name, k) + np.uint8(5)) for name, k in frames()})


def send_label_maps(_truth: Path) -> bytes:
    return zipped({f"{name}-{k}.png": png(np.clip(labels(name, k), 1, 2)) for name, k in frames()})


def send_cityscapes(_truth: Path) -> bytes:
    """Maps of ids, named as the pictures that they are of."""
    return zipped({
        f"results/{name}_{k:06d}_000019_leftImg8bit.png": png(streets(name, k).astype(np.uint8))
        for name, k in frames()
    })  # fmt: skip


def send_cityscapes_instances(_truth: Path) -> bytes:
    """A text for each image that names a mask of every object."""
    members: dict[str, bytes] = {}
    for name, k in frames():
        image, numbers = f"{name}_{k:06d}_000019", numbered(name, k)
        labels = [number // 1000 for number in np.unique(numbers).tolist() if number >= 1000]
        members |= {f"pred/{image}/{label}.png": png(np.uint8(255) * (numbers == 1000 * label)) for label in labels}
        members[f"pred/{image}_pred.txt"] = "".join(f"{image}/{label}.png {label} 0.9\n" for label in labels).encode()
    return zipped(members)


def send_coco_stuff(_truth: Path) -> bytes:
    return json.dumps(stuff_records()).encode()


def send_mots(_truth: Path) -> bytes:
    """A text for each sequence, without ignored regions."""
    texts = {f"MOTS20-{name}.txt": lines(name, 1, (2, 2)) for name in VIDEOS}
    return zipped({name: text[: text.index("1 10000 10 ")] for name, text in texts.items()})


def send_kitti_mots(_truth: Path) -> bytes:
    texts = {f"{k:04d}.txt": lines(name, 0, (1, 2)) for k, name in enumerate(VIDEOS)}
    return zipped({name: text[: text.index("0 10000 10 ")] for name, text in texts.items()})


def send_burst(truth: Path) -> bytes:
    """One JSON, with a score for each mask."""
    sequences = json.loads(truth.read_text())["sequences"]
    for sequence in sequences:
        for mask in [mask for masks in sequence["segmentations"] for mask in masks.values()]:
            mask["score"] = 0.9
    return json.dumps({"split": "val", "sequences": sequences}).encode()


#: What is uploaded for a benchmark, and what it scores.
def send_phrases(truth: Path) -> bytes:
    """COCO's results, with the boxes that SA-Co's script reads."""
    document = json.loads((truth / "gold_toy_merged_a_release_test.json").read_text())
    return json.dumps([
        {**{key: one[key] for key in ("image_id", "category_id", "segmentation")}, "score": 0.9, "bbox": [0, 0, 1, 1]}
        for one in document["annotations"]
    ]).encode()  # fmt: skip


def send_video_phrases(truth: Path) -> bytes:
    """A list of tracks, with the boxes and areas that SA-Co/VEval's script believes."""
    document = json.loads(truth.read_text())
    return json.dumps([
        {
            **{key: one[key] for key in ("video_id", "category_id", "segmentations")}, "score": 0.9,
            "bboxes": [[0, 0, 1, 1]] * FRAMES, "areas": [1] * FRAMES,
        }
        for one in document["annotations"]
    ]).encode()  # fmt: skip


def send_grey_maps(_truth: Path) -> bytes:
    return zipped(grey_maps())


def send_scans(_truth: Path) -> bytes:
    return zipped({f"sequences/08/predictions/{k:06d}.label": scan_values(*one) for k, one in enumerate(frames())})


def send_cells(_truth: Path) -> bytes:
    files = cell_files("RES", "mask", "res_track.txt")
    return zipped({name: data.encode() if isinstance(data, str) else data for name, data in files.items()})


def send_cell_maps(_truth: Path) -> bytes:
    return zipped(cell_maps("_img_cp_masks.png"))


UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    "davis2017": (send_davis, {"J&F-Mean": 1}),
    "mevis": (send_mevis, {"J&F-Mean": 1}),
    "mevis-official": (send_mevis, {"J&F-Mean": 1}),
    "mevis-v2": (send_mevis, {"J&F-Mean": 1, "N-acc": 1, "T-acc": 1, "Final": 1}),
    "revos": (send_revos, {"J&F-Mean": 1, "A-Mean": 1, "R-reasoning-Mean": 1, "J-no-target-Mean": 1}),
    "revos-official": (send_revos, {"J&F-Mean": 1, "A-Mean": 1, "R-reasoning-Mean": 1}),
    "ref-youtube-vos": (send_ref_youtube_vos, {"J&F-Mean": 1}),
    "long-rvos": (send_long_rvos, {"J&F-Mean": 1, "tIoU-Mean": 1, "vIoU-hybrid-Mean": 1}),
    "long-rvos-official": (send_long_rvos, {"J&F-Mean": 1, "tIoU-Mean": 1, "vIoU-hybrid-Mean": 1}),
    "ref-davis17": (send_ref_davis17, {"J&F-Mean": 1}),
    "coco": (send_coco, {"AP": 1}),
    "coco-boundary": (send_coco, {"AP": 1}),
    "coco-keypoints": (send_keypoints, {"AP": 1, "APm": 1, "AR75": 1}),
    "coco-keypoints-official": (send_keypoints, {"AP": 1, "APm": 1}),
    "lvis": (send_coco, {"AP": 1, "APc": 1}),
    "youtube-vis-2019": (send_video_instances, {"AP": 1}),
    "ovis": (send_video_instances, {"AP": 1, "AP-light": 1}),
    "coco-panoptic": (send_coco_panoptic, {"PQ": 1, "SQ-Stuff": 1}),
    "coco-panoptic-boundary": (send_coco_panoptic, {"PQ": 1}),
    "cityscapes-panoptic": (send_coco_panoptic, {"PQ": 1}),
    "vipseg": (send_vipseg, {"VPQ": 1, "STQ": 1}),
    "vipseg-official": (send_vipseg, {"VPQ": 1, "STQ": 1}),
    **{name: (partial(send_step, thing), {"STQ": 1.0, "AQ": 1}) for name, thing in STEP_THINGS.items()},
    "vspw": (send_vspw, {"mIoU": 1, "VC8": 1}),
    "ade20k": (send_label_maps, {"mIoU": 1, "Acc": 1}),
    "cityscapes-instance": (send_cityscapes_instances, {"AP": 1, "AP50%": 1}),
    "cityscapes-instance-official": (send_cityscapes_instances, {"AP": 1}),
    "cityscapes": (send_cityscapes, {"IoU": 1, "iIoU": 1, "iIoU-categories": 1}),
    "coco-stuff": (send_coco_stuff, {"mIoU": 1, "fwIoU-super": 1}),
    "coco-stuff-official": (send_coco_stuff, {"mIoU": 1, "Acc-super": 1}),
    "bdd100k": (send_label_maps, {"mIoU": 1, "Precision": 1}),
    "bdd100k-drivable": (send_label_maps, {"mIoU": 1}),
    "bdd100k-drivable-official": (send_label_maps, {"mIoU": 1}),
    "mots": (send_mots, {"HOTA": 1, "sMOTSA": 1, "IDF1": 1}),
    "kitti-mots": (send_kitti_mots, {"HOTA-car": 1, "HOTA-pedestrian": 1}),
    "burst": (send_burst, {"HOTA": 1, "AP": 1, "HOTA-common": 1}),
    "sa-co-gold": (send_phrases, {"cgF1": 1, "pmF1": 1, "IL_MCC": 1}),
    "sa-co-veval": (send_video_phrases, {"cgF1": 1, "pHOTA": 1, "phrase_AP": 1, "mAP": 1}),
    "semantic-kitti": (send_scans, {"mIoU": 1, "Acc": 1}),
    "semantic-kitti-panoptic": (send_scans, {"PQ": 1, "PQ_dagger": 1, "RQ-Stuff": 1}),
    "semantic-kitti-moving": (send_scans, {"IoU-moving": 1}),
    "ctc": (send_cells, {"OP_CTB": 1, "LNK": 1, "CHOTA": 1}),
    "ctc-official": (send_cells, {"OP_CTB": 1, "BC(0)": 0, "HOTA": 1}),
    "sa-co-veval-official": (send_video_phrases, {"pHOTA": 1, "mAP": 1, "TETA": 1}),
    "cellpose-ap": (send_cell_maps, {"AP50": 1, "AP90": 1}),
    "cellpose-ap-official": (send_cell_maps, {"AP50": 1, "AP90": 1}),
    "sod": (send_grey_maps, {"F_max": 1, "wF": 1, "MAE": 0}),
    "sod-official": (send_grey_maps, {"F_max": 1, "wF": 1, "MAE": 0}),
}
#: Of each family the protocol whose upload others take too.
_LIKE = {"semantic": "vspw", "tracks": "burst", "phrases": "sa-co-gold", "scans": "semantic-kitti", "saliency": "sod"}


def upload(protocol: str, truth: Path) -> bytes:
    """What is uploaded that is as the truth, or a sample of the family's demo."""
    rules = PROTOCOLS[protocol]
    if rules.family not in USUAL:
        (split,) = engine_of(rules.family).read_published(str(truth), "", protocol).splits.values()
        members = dict(tools_of(rules.family).make_sample([split], rules, 0.05))
        return zipped(members) if len(members) > 1 else next(iter(members.values()))
    return UPLOADS[protocol if protocol in UPLOADS else _LIKE[PROTOCOLS[protocol].family]][0](truth)
