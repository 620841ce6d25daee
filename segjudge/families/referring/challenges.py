"""New challenges of referring images: samples, and synthetic truths."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.units import Unit, UnitTruth
from segjudge.evaluation_script.families.referring.protocols import GREFCOCO, REASONSEG, ReferringProtocol
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.challenges import encode_json, move_runs
from segjudge.families.base.tools import Content, Members
from segjudge.masks.demo import NAMES, first_scenes, still_images
from segjudge.masks.photographs import photograph_images
from segjudge.masks.run_lengths import encode_labels

#: An expression that fits nothing in the demo's pictures.
_ABSENT = "square"


def make_sample(truths: list[UnitTruth], protocol: ReferringProtocol, share: float) -> Members:
    """Yield the lines of all samples: targets, moved."""
    lines = [encode_json(_answer(unit, protocol.form, share)) for truth in truths for unit in truth.units]
    yield "answers.jsonl", b"\n".join([*lines, b""])


def _answer(unit: Unit, form: str, share: float) -> dict[str, Any]:
    (frame,) = unit.load()
    ((text, _, _),) = frame.rows
    mask = {"size": list(frame.size), "counts": compress(move_runs(text, frame.size, 1, share)[0])}
    if form == REASONSEG:
        return {"image": unit.name, "segmentation": mask}
    answer = {"sent_id": int(unit.name), "segmentation": mask}
    return {**answer, "no_target": not unit.facts["target"]} if form == GREFCOCO else answer


def make_demo(protocol: ReferringProtocol) -> Content:
    """Yield the synthetic truth as the benchmark publishes its own."""
    form = protocol.form
    pictures = [(image, labels) for image, labels in still_images(first_scenes()) if _numbers_in(labels)]
    if form == REASONSEG:
        yield from _outline_pictures(pictures)
        return
    annotations: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    for image, labels in pictures:
        ids = []
        texts = encode_labels(labels)
        for number in _numbers_in(labels):
            ids.append(len(annotations) + 1)
            mask = {"size": list(labels.shape), "counts": texts[number]}
            annotations.append({"id": ids[-1], "image_id": image, "category_id": 1, "iscrowd": 0, "segmentation": mask})
            meant = [ids[-1]] if form == GREFCOCO else ids[-1]
            records.append(_expression(len(records) + 1, image, meant, [f"the {NAMES[number]}", f"a {NAMES[number]}"]))
        if form == GREFCOCO:
            records.append(_expression(len(records) + 1, image, [-1], [f"the {_ABSENT}"]))
            if len(ids) > 1:
                records.append(_expression(len(records) + 1, image, ids, ["everything that moves"]))
    images = [
        {"id": image, "file_name": f"{image:012d}.jpg", "height": labels.shape[0], "width": labels.shape[1]}
        for image, labels in pictures
    ]
    categories = [{"id": 1, "name": "object"}]
    yield "instances.json", {"images": images, "annotations": annotations, "categories": categories}
    yield "grefs(demo).json" if form == GREFCOCO else "refs(demo).json", records


def _numbers_in(labels: Array) -> list[int]:
    return [number for number in NAMES if (labels == number).any()]


def _expression(number: int, image: int, objects: int | list[int], texts: list[str]) -> dict[str, Any]:
    """Return an expression record with two sentences."""
    sentences = [{"sent_id": 2 * number + index, "sent": text} for index, text in enumerate(texts)]
    return {"ref_id": number, "image_id": image, "split": "val", "ann_id": objects, "sentences": sentences}


def _outline_pictures(pictures: list[tuple[int, Array]]) -> Content:
    """Yield ReasonSeg's JSON for each picture, and the list of sizes in place of pictures."""
    for image, labels in pictures:
        number = _numbers_in(labels)[-1]
        long = image % 2 == 0
        text = f"What would you call the {NAMES[number]} in this picture?" if long else NAMES[number]
        shapes = [{"label": "target", "points": _outline(labels == number)}]
        yield f"{image:06d}.json", {"text": [text], "is_sentence": long, "shapes": shapes}
    yield "sizes.json", {f"{image:06d}": list(labels.shape) for image, labels in pictures}


def _outline(mask: Array) -> list[list[int]]:
    """Return the outline of a mask: its left borders downwards, then its right ones upwards."""
    rows = np.flatnonzero(mask.any(axis=1))
    starts = mask[rows].argmax(axis=1)
    right_columns = mask.shape[1] - 1 - mask[rows, ::-1].argmax(axis=1)
    corners = [*zip(starts.tolist(), rows.tolist()), *zip(right_columns[::-1].tolist(), rows[::-1].tolist())]
    return [list(corner) for corner in corners]


def make_demo_pictures(protocol: ReferringProtocol) -> Members:
    """Yield the pictures; for expressions, whose truth names no pictures, one for each sentence."""
    pictures = photograph_images()
    if protocol.form == REASONSEG:
        yield from ((f"{image:06d}.jpg", data) for image, data in pictures.items())
        return
    records: list[dict[str, Any]] = next(
        content for name, content in make_demo(protocol) if name.endswith("refs(demo).json")
    )
    for record in records:
        for sentence in record["sentences"]:
            yield f"{sentence['sent_id']}.jpg", pictures[record["image_id"]]
