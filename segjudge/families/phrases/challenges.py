"""New challenges of phrases: samples, and a synthetic truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from pycocotools.mask import toBbox

from segjudge.datasets.demo import NAMES, first_scenes, still_images
from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.run_lengths import compress_many
from segjudge.families.base.challenges import encode_json, move_labels, move_runs
from segjudge.families.base.tools import Content, Members
from segjudge.masks.run_lengths import encode_labels

#: A phrase that no picture of the demo shows.
_ABSENT = "square"
#: SA-Co counts its pairs from here.
_FIRST_PAIR = 10_000_000


def make_sample(truths: list[UnitTruth], share: float) -> Members:
    """Yield a JSON for each subset: the first annotator's objects, moved; a bad sample sees some that are not there."""
    for truth in truths:
        subsets = [subset for (subset,) in truth.facts["subsets"]]
        records: dict[str, list[dict[str, Any]]] = {subset: [] for subset in subsets}
        for unit in truth.units:
            (frame,) = unit.load()
            own = records[subsets[unit.facts["subset"]]]
            runs = [move_runs(text, frame.size, 1, share)[0] for crowd, text, _ in frame.rows[0] if not crowd]
            for text in compress_many([run for run in runs if len(run) > 1]):
                pair = int(unit.name.rpartition("/")[2])
                mask = {"size": list(frame.size), "counts": text}
                own.append(
                    {"image_id": pair, "category_id": 1, "segmentation": mask, "score": round(1 - share, 3),
                     "bbox": list(map(int, toBbox({"size": [*frame.size], "counts": text.encode()})))}
                )  # fmt: skip
        for subset, own in records.items():
            yield f"{subset}.json", encode_json(own)


def make_demo(annotators: str) -> Content:
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
            seen = _draw(mask, annotators.index(letter))
            for text in encode_labels(seen).values():
                annotations.append(
                    {"id": len(annotations) + 1, "image_id": pair, "category_id": 1, "iscrowd": 0,
                     "segmentation": {"size": [height, width], "counts": text}}
                )  # fmt: skip
        categories = [{"id": 1, "name": "object"}]
        document = {"images": images, "annotations": annotations, "categories": categories}
        yield f"gold_demo_merged_{letter}_release_test.json", document


def _draw(mask: Any, annotator: int) -> Any:
    """Return a mask as an annotator draws it: each a pixel or two beside the others."""
    return move_labels(LabelMap(mask), np.array([1]), annotator / mask.shape[1]) if annotator else mask
