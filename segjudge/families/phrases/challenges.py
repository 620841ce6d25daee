"""New challenges of phrases: samples, and a synthetic truth."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from pycocotools.mask import toBbox

from segjudge.evaluation_script.families.base.units import Unit, UnitTruth
from segjudge.evaluation_script.families.phrases.protocols import PhraseProtocol
from segjudge.evaluation_script.families.phrases.videos import MASK, TRACK
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.run_lengths import compress_many
from segjudge.families.base.challenges import encode_json, move_labels, move_runs
from segjudge.families.base.tools import Content, Members
from segjudge.masks.demo import NAMES, first_scenes, label_frames, still_images
from segjudge.masks.photographs import photograph_frames, photograph_images
from segjudge.masks.run_lengths import encode_labels

#: A phrase that no picture of the demo shows.
_ABSENT = "square"
#: A phrase that names every object.
_ALL = "shape"
#: The first number of SA-Co's pairs.
_FIRST_PAIR = 10_000_000


def make_sample(truths: list[UnitTruth], protocol: PhraseProtocol, share: float) -> Members:
    return _make_video_sample(truths, share) if protocol.videos else _make_picture_sample(truths, share)


def make_demo(protocol: PhraseProtocol) -> Content:
    return _make_video_demo() if protocol.videos else _make_picture_demo("abc" if "gold" in protocol.name else "a")


# ── pictures ──


def _make_picture_sample(truths: list[UnitTruth], share: float) -> Members:
    """Yield a JSON for each subset: the first annotator's objects, moved; a poor sample has additional false ones."""
    for truth in truths:
        subsets = [subset for (subset,) in truth.facts["subsets"]]
        records: dict[str, list[dict[str, Any]]] = {subset: [] for subset in subsets}
        for unit in truth.units:
            (frame,) = unit.load()
            subset_records = records[subsets[unit.facts["subset"]]]
            runs = [move_runs(text, frame.size, 1, share)[0] for crowd, text, _ in frame.rows[0] if not crowd]
            for text in compress_many([run for run in runs if len(run) > 1]):
                pair = int(unit.name.rpartition("/")[2])
                mask = {"size": list(frame.size), "counts": text}
                subset_records.append(
                    {"image_id": pair, "category_id": 1, "segmentation": mask, "score": round(1 - share, 3),
                     "bbox": list(map(int, toBbox({"size": [*frame.size], "counts": text.encode()})))}
                )  # fmt: skip
        for subset, subset_records in records.items():
            yield f"{subset}.json", encode_json(subset_records)


def _make_picture_demo(annotators: str) -> Content:
    """Yield the synthetic truth as SA-Co publishes its own: a file for each annotator."""
    images: list[dict[str, Any]] = []
    masks: list[tuple[int, Any]] = []
    for image, labels in still_images(first_scenes()):
        for number, phrase in {**NAMES, 0: _ABSENT}.items():
            pair = _FIRST_PAIR + len(images)
            height, width = labels.shape
            images.append(
                {"id": pair, "file_name": f"{image:012d}.jpg", "text_input": phrase, "height": height, "width": width,
                 "is_instance_exhaustive": 1, "is_pixel_exhaustive": 1}
            )  # fmt: skip
            if number and (labels == number).any():
                masks.append((pair, (labels == number).astype(labels.dtype)))
    for letter in annotators:
        annotations: list[dict[str, Any]] = []
        for pair, mask in masks:
            height, width = mask.shape
            seen = _shift_for_annotator(mask, annotators.index(letter))
            for text in encode_labels(seen).values():
                annotations.append(
                    {"id": len(annotations) + 1, "image_id": pair, "category_id": 1, "iscrowd": 0,
                     "segmentation": {"size": [height, width], "counts": text}}
                )  # fmt: skip
        categories = [{"id": 1, "name": "object"}]
        document = {"images": images, "annotations": annotations, "categories": categories}
        yield f"gold_demo_merged_{letter}_release_test.json", document


def _shift_for_annotator(mask: Any, annotator: int) -> Any:
    """Return a mask as one annotator draws it, shifted by a pixel or two."""
    return move_labels(LabelMap(mask), np.array([1]), annotator / mask.shape[1]) if annotator else mask


# ── videos ──


def _make_video_sample(truths: list[UnitTruth], share: float) -> Members:
    """Yield a list of tracks: the objects, moved, with boxes and areas, which other tools write too."""
    for truth in truths:
        yield "results.json", encode_json([record for unit in truth.units for record in _move_tracks(unit, share)])


def _move_tracks(unit: Unit, share: float) -> list[dict[str, Any]]:
    frames = unit.load()
    records = []
    for track, crowd in enumerate(unit.facts["crowds"]):
        if crowd:
            continue
        record: dict[str, Any] = {
            "video_id": unit.facts["video"], "category_id": unit.facts["category"], "score": round(1 - share, 3),
            "segmentations": [], "bboxes": [], "areas": [],
        }  # fmt: skip
        for frame in frames:
            texts = [row[MASK] for row in frame.rows if row[TRACK] == track]
            (runs,) = move_runs(texts[0], frame.size, 1, share) if texts else [[]]
            (text,) = compress_many([runs]) if len(runs) > 1 else (None,)
            mask = None if text is None else {"size": list(frame.size), "counts": text}
            record["segmentations"].append(mask)
            box = toBbox({"size": [*frame.size], "counts": text.encode()}) if text is not None else [0] * 4
            record["bboxes"].append([int(side) for side in box])
            record["areas"].append(sum(runs[1::2]))
        records.append(record)
    return records


def _make_video_demo() -> Content:
    """Yield the synthetic truth as SA-Co/VEval publishes its own."""
    phrases = {**NAMES, max(NAMES) + 1: _ALL, max(NAMES) + 2: _ABSENT}
    videos: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    for index, video in enumerate(first_scenes(), 1):
        names, labels = zip(*label_frames(video), strict=True)
        masks = list(map(encode_labels, labels))
        height, width = video.size
        videos.append(
            {"id": index, "video_name": video.name, "file_names": [f"{video.name}/{name}.jpg" for name in names],
             "height": height, "width": width, "length": video.frames}
        )  # fmt: skip
        numbers = sorted({number for frame_masks in masks for number in frame_masks})
        for category, phrase in phrases.items():
            named = numbers if phrase == _ALL else [number for number in numbers if number == category]
            pairs.append(
                {"id": len(pairs) + 1, "video_id": index, "category_id": category, "noun_phrase": phrase,
                 "num_masklets": len(named)}
            )  # fmt: skip
            for number in named:
                tracks = [
                    {"size": [height, width], "counts": frame_masks[number]} if number in frame_masks else None
                    for frame_masks in masks
                ]
                annotations.append(
                    {"id": len(annotations) + 1, "video_id": index, "category_id": category, "iscrowd": 0,
                     "noun_phrase": phrase, "segmentations": tracks}
                )  # fmt: skip
    categories = [{"id": category, "name": phrase} for category, phrase in phrases.items()]
    yield "saco_veval_demo_test.json", {
        "videos": videos, "annotations": annotations, "categories": categories, "video_np_pairs": pairs,
    }  # fmt: skip


def make_demo_pictures(protocol: PhraseProtocol) -> Members:
    """Yield the pictures of each pair, whose truth does not name its picture, or of the videos."""
    if protocol.videos:
        yield from photograph_frames()
        return
    pairs = itertools.product(photograph_images().values(), (*NAMES, 0))
    yield from ((f"{_FIRST_PAIR + number}.jpg", data) for number, (data, _) in enumerate(pairs))
