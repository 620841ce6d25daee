"""Generated data in each benchmark's format and scaled size: truth, and slightly wrong results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.instances import Blob, Size, blob, shifted, write_set
from benchmarks.instances import segmentation as with_empty_runs
from segjudge.evaluation_script.families.semantic.protocols import SEMANTIC_PROTOCOLS
from segjudge.evaluation_script.masks.run_lengths import compress, runs_of
from segjudge.masks.run_lengths import encode_labels

Array = np.ndarray[Any, Any]
Lot = np.random.Generator
#: Regions are drawn at a quarter of the size.
COARSE = 4
VOID = 255


class Regions:
    """Regions with wavy borders that move from frame to frame; each pixel of a frame has the index of its region."""

    def __init__(self, lot: Lot, size: Size, count: int) -> None:
        self.size = size
        self._ys, self._xs = np.mgrid[: -(-size[0] // COARSE), : -(-size[1] // COARSE)]
        self._centres = lot.random((count, 2)) * self._ys.shape
        self._speeds = lot.normal(0, 2, (count, 2))

    def labels(self, frame: int, off: Array | float = 0.0) -> Array:
        """Return the regions of a frame; `off` moves their centres."""
        places = self._centres + self._speeds * frame + off
        waves = 400 * np.sin(self._xs / 4 + places[:, :1, None]) * np.cos(self._ys / 13 + places[:, 1:, None])
        far = (self._ys - places[:, :1, None]) ** 2 + (self._xs - places[:, 1:, None]) ** 2 + waves
        large = np.kron(far.argmin(0), np.ones((COARSE, COARSE), np.int64))
        return large[: self.size[0], : self.size[1]]


def save(path: Path, picture: Array) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture.astype(np.uint8)).save(path, compress_level=3)


def write(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))


def coloured(ids: Array) -> Array:
    return np.stack([ids & 255, ids >> 8 & 255, ids >> 16], axis=-1)


def scaled(count: int, scale: float) -> int:
    return max(1, round(count * scale))


def segments(ids: Array, categories: dict[int, int], crowds: frozenset[int]) -> list[dict[str, int]]:
    """Return the segments that the JSON lists of a picture."""
    found, areas = np.unique(ids, return_counts=True)
    return [
        {"id": record, "category_id": categories[record], "area": area, "iscrowd": int(record in crowds)}
        for record, area in zip(found.tolist(), areas.tolist(), strict=True)
        if record
    ]


class PanopticVideo:
    """The ids of both sides, their categories, and the regions of each frame."""

    def __init__(self, lot: Lot, size: Size, count: int, classes: int) -> None:
        self._lot, self._regions, self._count = lot, Regions(lot, size, count), count
        self._ids = [np.append(lot.choice((1 << 24) - 1, count, replace=False) + 1, 0) for _ in range(2)]
        of_truth = lot.integers(0, classes, count)
        sent = np.where(lot.random(count) < 0.85, of_truth, lot.integers(0, classes, count))
        self.categories = [
            dict(zip(ids.tolist(), list(record.tolist()), strict=False))
            for ids, record in zip(self._ids, (of_truth, sent), strict=True)
        ]
        self.crowds = frozenset(self._ids[0][:count][lot.random(count) < 0.04].tolist())

    def frame(self, index: int) -> tuple[Array, Array]:
        """Return the ids of truth and results, each with some void or missing pixels."""
        truth = self._regions.labels(index)
        sent = self._regions.labels(index, self._lot.normal(0, 1.5, (self._count, 2)))
        truth[: truth.shape[0] // 18, : truth.shape[1] // 10] = self._count
        sent[-sent.shape[0] // 18 :, : sent.shape[1] // 20] = self._count
        return self._ids[0][truth], self._ids[1][sent]


def things(classes: int) -> list[dict[str, Any]]:
    return [{"id": k, "name": f"c{k}", "isthing": int(k < classes * 0.5)} for k in range(classes)]


def coco_panoptic(folder: Path, lot: Lot, scale: float, size: Size, counts: tuple[int, int] = (5, 18)) -> None:
    """Write val2017's 5,000 images with 11 segments each, or with other counts."""
    lists: list[list[Any]] = [[], []]
    for image in range(scaled(5000, scale)):
        video = PanopticVideo(lot, size, int(lot.integers(*counts)), 133)
        for side, ids in enumerate(video.frame(0)):
            name = f"{image:012d}.png"
            save(folder / ("truth", "results/results")[side] / name, coloured(ids))
            listed = segments(ids, video.categories[side], video.crowds if not side else frozenset())
            lists[side].append({"image_id": image, "file_name": name, "segments_info": listed})
    write(folder / "truth.json", {"images": [], "annotations": lists[0], "categories": things(133)})
    write(folder / "results/results.json", {"annotations": lists[1]})


def vipseg(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write val's 343 videos with 24 frames each."""
    videos: list[Any] = []
    lists: list[list[Any]] = [[], []]
    for number in range(scaled(343, scale)):
        name, video = f"v{number}", PanopticVideo(lot, size, 22, 124)
        frames: list[list[Any]] = [[], []]
        for index in range(int(lot.integers(18, 31))):
            for side, ids in enumerate(video.frame(index)):
                file = f"{index:08d}.png"
                save(folder / ("truth", "results/pan_pred")[side] / name / file, coloured(ids))
                listed = segments(ids, video.categories[side], frozenset())
                frames[side].append({"image_id": f"{index:08d}", "file_name": file, "segments_info": listed})
        for side in (0, 1):
            lists[side].append({"video_id": name, "annotations": frames[side]})
        pictures = [
            {"id": record["image_id"], "file_name": record["file_name"], "height": size[0], "width": size[1]}
            for record in frames[0]
        ]
        videos.append({"video_id": name, "images": pictures})
    write(folder / "truth.json", {"videos": videos, "annotations": lists[0], "categories": things(124)})
    write(folder / "results/pred.json", {"annotations": lists[1]})


def kitti_step(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write nine sequences of 2,981 frames in all: 19 classes, and 12 objects."""
    for number in range(9):
        regions = Regions(lot, size, 32)
        classes = np.append(np.arange(20), lot.choice([11, 13], 12))
        classes[19] = VOID
        truth = classes | np.where(np.isin(classes, [11, 13]), np.arange(32) % 20, 0) << 16
        switched = np.where(lot.random(32) < 0.2, truth + (40 << 16), truth)
        sent = np.where(truth == VOID, 0, switched)
        for index in range(scaled(331, scale)):
            off = lot.normal(0, 1.5, (32, 2))
            for side, pixels in (
                ("truth", truth[regions.labels(index)]),
                ("results", sent[regions.labels(index, off)]),
            ):
                save(folder / side / f"{number:04d}" / f"{index:06d}.png", coloured(pixels))


def vspw(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write val's 343 videos with 71 frames each."""
    names = [f"v{number}" for number in range(scaled(343, scale))]
    for name in names:
        regions, classes = Regions(lot, size, 20), lot.integers(0, 124, 20)
        wrong = np.where(lot.random(20) < 0.8, classes, lot.integers(0, 124, 20))
        for index in range(int(lot.integers(5, 138))):
            truth = classes[regions.labels(index)]
            truth[: size[0] // 18] = VOID
            save(folder / "truth/data" / name / "mask" / f"{index:08d}.png", truth)
            sent = wrong[regions.labels(index, lot.normal(0, 1, (20, 2)))]
            save(folder / "results" / name / f"{index:08d}.png", sent)
    write(folder / "truth/val.txt", "".join(f"{name}\n" for name in names))


def cityscapes(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write val's 500 images with 30 regions each."""
    ids = np.array(SEMANTIC_PROTOCOLS["cityscapes"].labels)
    sized = np.array([label for label, _ in SEMANTIC_PROTOCOLS["cityscapes"].sizes])
    for number in range(scaled(500, scale)):
        regions, classes = Regions(lot, size, 30), lot.choice(ids, 30)
        wrong = np.where(lot.random(30) < 0.8, classes, lot.choice(ids, 30))
        objects = np.where(np.isin(classes, sized), classes * 1000 + np.arange(30), classes)
        stem = f"town_{number:06d}_000019"
        truth = regions.labels(0)
        path = folder / f"truth/gtFine/val/town/{stem}_gtFine_instanceIds.png"
        save(path.with_name(f"{stem}_gtFine_labelIds.png"), classes[truth])
        Image.fromarray(objects.astype(np.uint16)[truth]).save(path, compress_level=3)
        save(folder / "results" / f"{stem}.png", wrong[regions.labels(0, lot.normal(0, 1, (30, 2)))])


def cityscapes_instances(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write val's 500 images with 20 objects and 40 detections each, half of them noise."""
    labels = np.array([label for label, _ in SEMANTIC_PROTOCOLS["cityscapes"].sizes])
    for number in range(scaled(500, scale)):
        regions, stem = Regions(lot, size, 30), f"town_{number:06d}_000019"
        classes = np.append(lot.choice(labels, 20), np.full(10, 7))
        objects = np.where(classes == 7, classes, classes * 1000 + np.arange(30))
        path = folder / f"truth/gtFine/val/town/{stem}_gtFine_instanceIds.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(objects.astype(np.uint16)[regions.labels(0)]).save(path, compress_level=3)
        lines = []
        for shift in (1, 12):
            moved = regions.labels(0, lot.normal(0, shift * size[0] / 1024, (30, 2)))
            for region in range(20):
                name = f"masks/{stem}_{shift}_{region}.png"
                save(folder / "results" / name, np.uint8(255) * (moved == region))
                label = classes[region] if lot.random() < 0.9 else lot.choice(labels)
                lines.append(f"{name} {label} {lot.random():.3f}\n")
        write(folder / f"results/{stem}.txt", "".join(lines))


def coco_stuff(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write val2017's 5,000 images with 8 labels each."""
    categories = [{"id": label, "name": f"s{label}", "supercategory": f"g{label % 15}"} for label in range(92, 184)]
    truth: dict[str, Any] = {"images": [], "annotations": [], "categories": categories}
    results = []
    for image in range(scaled(5000, scale)):
        regions, labels = Regions(lot, size, 8), lot.integers(92, 184, 8).astype(np.uint8)
        wrong = np.where(lot.random(8) < 0.8, labels, lot.integers(91, 184, 8)).astype(np.uint8)
        truth["images"].append({"id": image, "height": size[0], "width": size[1]})
        sides = (
            (labels, truth["annotations"], 0.0),
            (np.where(wrong == 91, 0, wrong), results, lot.normal(0, 1, (8, 2))),
        )
        for own, records, off in sides:
            records += [
                {"image_id": image, "category_id": label, "segmentation": {"size": list(size), "counts": counts},
                 "id": number, "iscrowd": 0, "area": 1, "bbox": [0, 0, 1, 1]}
                for number, (label, counts) in enumerate(
                    encode_labels(own[regions.labels(0, off)]).items(), len(records) + 1
                )
            ]  # fmt: skip
    write(folder / "truth.json", truth)
    write(folder / "results.json", results)


def mots_lines(lot: Lot, size: Size, frames: int, first: int, classes: list[int]) -> Iterator[tuple[str, str]]:
    """Yield lines of truth and results per frame: people side by side, some lost, some with another number."""
    count, height = 10, size[0]
    stride = size[1] // count
    tall = height // 3
    names = np.arange(count)
    for frame in range(first, first + frames):
        lines: tuple[list[str], list[str]] = ([], [])
        names = np.where(lot.random(count) < 0.01, names + count, names)
        for track in range(count):
            kind = classes[track % len(classes)]
            ignored = track == count - 1
            for side, off in ((0, 0), (1, int(lot.integers(-stride // 12, stride // 12 + 1)))):
                if lot.random() < (0.05, 0.1)[side]:
                    continue
                half = (stride * (0.2 + 0.1 * np.sin(np.arange(tall) / 9 + track))).astype(int)
                mask = abs(np.arange(stride) - stride // 2 - off) <= half[:, None]
                flags = np.zeros((stride, height), bool)
                flags[:, height // 3 : height // 3 + tall] = mask.T
                borders = np.flatnonzero(np.diff(flags.reshape(-1), prepend=False)) + track * stride * height
                lengths = np.diff(borders, prepend=0, append=height * size[1]).tolist()
                number, category = (track + kind * 1000, kind) if not side else (int(names[track]) + 1, kind)
                if ignored and not side:
                    number, category = 10000, 10
                lines[side].append(f"{frame} {number} {category} {height} {size[1]} {compress(lengths)}\n")
        yield "".join(lines[0]), "".join(lines[1])


def mots(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write the 4 sequences of MOTS20's training set: 2,862 frames, 9 people in each."""
    names = [f"MOTS20-{number:02d}" for number in (2, 5, 9, 11)]
    for name in names:
        frames = scaled(715, scale)
        truth, sent = zip(*mots_lines(lot, size, frames, 1, [2]), strict=True)
        write(folder / "truth" / name / "gt/gt.txt", "".join(truth))
        write(folder / "trackers/results/data" / f"{name}.txt", "".join(sent))
        write(
            folder / "truth" / name / "seqinfo.ini",
            f"[Sequence]\nname={name}\nseqLength={frames}\nimWidth={size[1]}\nimHeight={size[0]}\n",
        )
    write(folder / "truth/seqmaps/MOTS-train.txt", "name\n" + "".join(f"{name}\n" for name in names))


def kitti_mots(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write the 9 sequences of KITTI-MOTS's validation set: 2,981 frames."""
    rows = []
    for number in range(9):
        frames, name = scaled(331, scale), f"{number:04d}"
        truth, sent = zip(*mots_lines(lot, size, frames, 0, [1, 2]), strict=True)
        write(folder / "truth/instances_txt" / f"{name}.txt", "".join(truth))
        write(folder / "trackers/results/data" / f"{name}.txt", "".join(sent))
        rows.append(f"{name} empty 000000 {frames:06d}\n")
    write(folder / "truth/evaluate_mots.seqmap.val", "".join(rows))


def segmentation(shape: Blob, size: Size) -> dict[str, Any]:
    """Return a blob as non-empty run lengths, because pycocotools' union stops where two masks have an empty run."""
    drawn, pixels = with_empty_runs(shape, size), size[0] * size[1]
    borders, times = np.unique(np.cumsum(runs_of(drawn["counts"], pixels)), return_counts=True)
    borders = borders[(times % 2 == 1) & (borders < pixels)]
    return {**drawn, "counts": compress(np.diff(borders, prepend=0, append=pixels).tolist())}


def runs(mask: dict[str, Any]) -> Array:
    return runs_of(mask["counts"], mask["size"][0] * mask["size"][1])


def tube(lot: Lot, shape: Blob, size: Size, frames: int, seen: float) -> list[Any]:
    """Return the masks of a moving object; null in frames without it."""
    speed, off = int(lot.integers(-4, 5)), int(lot.integers(-3, 4))
    return [
        segmentation(shifted(lot, shape, size, speed * index + off), size) if lot.random() < seen else None
        for index in range(frames)
    ]


def near(lot: Lot, masks: list[Any], shape: Blob, size: Size) -> list[Any]:
    """Return results for an object: its own masks, others near it, or none."""
    other = tube(lot, shape, size, len(masks), 0.9)
    return [mask if lot.random() < 0.7 else two for mask, two in zip(masks, other, strict=True)]


def score(lot: Lot) -> float:
    return round(float(lot.random()), 2) if lot.random() < 0.3 else float(lot.random())


def area(mask: Any) -> int | None:
    return None if mask is None else int(sum(runs(mask)[1::2]))


def video_instances(videos: int, frames: int, *, labels: bool) -> Callable[[Path, Lot, float, Size], None]:
    def make(folder: Path, lot: Lot, scale: float, size: Size) -> None:
        truth: dict[str, Any] = {"videos": [], "annotations": [], "categories": []}
        truth["categories"] = [{"id": k, "name": f"c{k}"} for k in range(1, 41)]
        records: list[Any] = []
        for video in range(1, scaled(videos, scale) + 1):
            count = int(lot.integers(frames // 2, frames * 3 // 2 + 1))
            truth["videos"].append({"id": video, "height": size[0], "width": size[1], "length": count})
            for _ in range(int(lot.integers(1, 8))):
                shape, category = blob(lot, size), int(lot.integers(1, 41))
                masks = tube(lot, shape, size, count, 0.85)
                number = len(truth["annotations"]) + 1
                record = {"id": number, "video_id": video, "category_id": category, "segmentations": masks}
                record |= {"iscrowd": int(lot.random() < 0.03), "areas": [area(mask) for mask in masks]}
                if labels:
                    kinds = np.array(["no_occlusion", "slight_occlusion", "severe_occlusion"])
                    drawn = lot.choice(kinds, count).tolist()
                    record["occlusion"] = [label if mask else None for label, mask in zip(drawn, masks, strict=True)]
                    record["occlusion"][0] = record["occlusion"][0] or "no_occlusion"
                truth["annotations"].append(record)
                for _ in range(int(lot.integers(0, 9))):
                    kind = category if lot.random() < 0.8 else int(lot.integers(1, 41))
                    sent = near(lot, masks, shape, size)
                    records.append({"video_id": video, "category_id": kind, "score": score(lot), "segmentations": sent})
        write(folder / "truth.json", truth)
        write(folder / "results.json", records)

    return make


def image_instances(images: int, *, federated: bool) -> Callable[[Path, Lot, float, Size], None]:
    def make(folder: Path, lot: Lot, scale: float, size: Size) -> None:
        del size  # those of `instances`
        folder.mkdir(parents=True, exist_ok=True)
        write_set(folder, scaled(images, scale), int(lot.integers(1 << 30)))
        (folder / "records.json").rename(folder / "results.json")
        if not federated:
            return
        truth = json.loads((folder / "truth.json").read_text())
        numbers = [category["id"] for category in truth["categories"]]
        for category in truth["categories"]:
            category["frequency"] = "rcf"[int(lot.integers(3))]
        present: dict[int, set[int]] = {}
        for record in truth["annotations"]:
            present.setdefault(record["image_id"], set()).add(record["category_id"])
        for image in truth["images"]:
            there = present.get(image["id"], set())
            others = [number for number in numbers if number not in there]
            image["neg_category_ids"] = lot.choice(others, 20, replace=False).tolist()
            image["not_exhaustive_category_ids"] = [record for record in sorted(there) if lot.random() < 0.1]
        write(folder / "truth.json", truth)

    return make


def burst(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write val's 993 sequences with 36 frames and 5 tracks each."""
    sequences: tuple[list[Any], list[Any]] = ([], [])
    categories = lot.choice(1230, 60, replace=False) + 1
    for number in range(scaled(993, scale)):
        frames = int(lot.integers(18, 55))
        facts = {"dataset": "D", "seq_name": f"s{number}", "width": size[1], "height": size[0], "id": number + 1}
        facts |= {"annotated_image_paths": [f"{index:05d}.jpg" for index in range(frames)], "fps": 30}
        masks: tuple[list[Any], list[Any]] = ([{} for _ in range(frames)], [{} for _ in range(frames)])
        kinds: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for _ in range(int(lot.integers(2, 9))):
            shape, track = blob(lot, size), len(kinds[0]) + 1
            real = tube(lot, shape, size, frames, 0.8)
            kinds[0][str(track)] = int(lot.choice(categories))
            real[0] = real[0] or segmentation(shape, size)
            for index, mask in enumerate(real):
                if mask and area(mask):
                    masks[0][index][str(track)] = {"rle": mask["counts"]}
            for _ in range(int(lot.integers(0, 4))):
                sent = len(kinds[1]) + 1
                kinds[1][str(sent)] = kinds[0][str(track)] if lot.random() < 0.8 else int(lot.choice(categories))
                for index, mask in enumerate(near(lot, real, shape, size)):
                    if mask and area(mask):
                        masks[1][index][str(sent)] = {"rle": mask["counts"], "score": score(lot)}
        there = set(kinds[0].values())
        negative = [int(record) for record in categories if int(record) not in there and lot.random() < 0.3]
        loose = [record for record in sorted(there) if lot.random() < 0.15]
        facts |= {"neg_category_ids": negative, "not_exhaustive_category_ids": loose}
        for side in (0, 1):
            sequences[side].append({**facts, "segmentations": masks[side], "track_category_ids": kinds[side]})
    named = [{"id": int(record), "name": f"c{record}"} for record in sorted(categories)]
    write(folder / "truth/all_classes.json", {"split": "val", "categories": named, "sequences": sequences[0]})
    write(folder / "trackers/results/data/results.json", {"split": "val", "sequences": sequences[1]})


def mevis(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write the 50 videos of valid_u: 80 frames and 16 expressions each."""
    videos: dict[str, Any] = {}
    masks: dict[str, Any] = {}
    for number in range(scaled(50, scale)):
        frames = int(lot.integers(40, 121))
        names = [f"{index:05d}" for index in range(frames)]
        shapes = [blob(lot, size) for _ in range(4)]
        first = len(masks)
        for shape in shapes:
            masks[str(len(masks))] = tube(lot, shape, size, frames, 0.9)
        expressions: dict[str, Any] = {}
        for record in range(16):
            chosen = sorted(int(k) for k in lot.choice(4, int(lot.integers(0, 4)), replace=False))
            expressions[str(record)] = {"exp": "moving", "obj_id": chosen, "anno_id": [first + k for k in chosen]}
            shown = chosen if lot.random() < 0.8 else [int(lot.integers(4))]
            for index, name in enumerate(names):
                union = np.zeros(size, bool)
                for k in shown:
                    union |= pixels(masks[str(first + k)][max(0, index - 1)], size)
                save(folder / "results" / f"video{number}" / str(record) / f"{name}.png", union * np.uint8(255))
        videos[f"video{number}"] = {"frames": names, "expressions": expressions}
    write(folder / "truth/meta_expressions.json", {"videos": videos})
    write(folder / "truth/mask_dict.json", masks)


def pixels(mask: Any, size: Size) -> Array:
    """Return a mask as flags."""
    if mask is None:
        return np.zeros(size, bool)
    lengths = runs(mask)
    return np.repeat(np.arange(len(lengths)) % 2 == 1, lengths).reshape(size[::-1]).T
