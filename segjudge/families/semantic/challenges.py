"""New challenges of label maps: samples, and a synthetic truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.evaluation_script.families.semantic.engine import drop_numbers
from segjudge.evaluation_script.families.semantic.protocols import CITYSCAPES, STUFF, VIDEOS, SemanticProtocol
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.challenges import QUICK, encode_json, move_labels
from segjudge.families.base.tools import Content, Members
from segjudge.masks.compression import grey_png, label_png
from segjudge.masks.demo import Scene, first_scenes, images, still_images
from segjudge.masks.photographs import photograph_frames, photograph_images
from segjudge.masks.run_lengths import encode_labels


def make_sample(truths: list[Any], protocol: SemanticProtocol, share: float) -> Members:
    """Yield PNGs of classes, with 0 where the truth is void."""
    classes, records = np.array(protocol.labels), []
    for unit in [unit for truth in truths for unit in truth.units]:
        for frame in unit.load():
            pixels = frame.read()
            if pixels.labels is not None:
                pixels = LabelMap(pixels.numbers, drop_numbers(pixels.labels, protocol))
            labels = move_labels(pixels, classes, share).astype(np.uint8)
            if protocol.form == STUFF:
                records += _encode_records(int(unit.name), labels)
                continue
            name = f"{unit.name}/{frame.name}" if protocol.form == VIDEOS else unit.name
            yield f"{name}.png", label_png(labels, QUICK)
    if protocol.form == STUFF:
        yield "results.json", encode_json(records)


def make_demo(protocol: SemanticProtocol) -> Content:
    videos = first_scenes()
    if protocol.form != VIDEOS:
        yield from _make_stuff_demo(protocol) if protocol.form == STUFF else _make_image_demo(protocol)
        return
    yield "val.txt", "".join(f"{video.name}\n" for video in videos)
    for name, data in images(videos, Scene.truth):
        yield "data/" + name.replace("/", "/mask/"), data


def _encode_records(image: int, labels: Array) -> list[dict[str, Any]]:
    """List the labels of an image as COCO-Stuff does, with their run lengths."""
    return [
        {"image_id": image, "category_id": label, "segmentation": {"size": list(labels.shape), "counts": counts}}
        for label, counts in encode_labels(labels).items()
    ]


def _make_stuff_demo(protocol: SemanticProtocol) -> Content:
    """Yield the demo's frames as COCO-Stuff JSON, with the first labels for its objects."""
    pictures: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for image, labels in still_images(first_scenes()):
        pictures.append({"id": image, "height": labels.shape[0], "width": labels.shape[1]})
        annotations += _encode_records(image, labels + np.uint8(protocol.labels[0]))
    categories = [
        {"id": label, "name": f"stuff {label}", "supercategory": f"group {label % 3 + 1}"} for label in protocol.labels
    ]
    yield "stuff_val.json", {"images": pictures, "annotations": annotations, "categories": categories}


def _make_image_demo(protocol: SemanticProtocol) -> Content:
    """Yield the demo's frames as images with the benchmark's labels."""
    # The demo's objects become the benchmark's if the benchmark weighs them.
    labels_of_demo = np.array(
        [protocol.labels[0], *(label for label, _ in protocol.sizes)] if protocol.sizes else protocol.labels
    )
    for image, labels in still_images(first_scenes()):
        classes = labels_of_demo[np.minimum(labels, len(labels_of_demo) - 1)]
        if protocol.form == CITYSCAPES:
            name = f"gtFine/val/demo/demo_{image:06d}_000019_gtFine"
            objects = np.where(np.isin(classes, labels_of_demo[1:]), 1000 * classes, classes)
            yield f"{name}_instanceIds.png", grey_png(objects, QUICK)
            yield f"{name}_labelIds.png", label_png(classes.astype(np.uint8), QUICK)
        else:
            yield f"{image:08d}.png", label_png(classes.astype(np.uint8), QUICK)


def make_demo_pictures(protocol: SemanticProtocol) -> Members:
    if protocol.form == VIDEOS:
        yield from photograph_frames()
        return
    names = {CITYSCAPES: "demo_{:06d}_000019_leftImg8bit.jpg", STUFF: "{:012d}.jpg"}
    name = names.get(protocol.form, "{:08d}.jpg")
    yield from ((name.format(image), data) for image, data in photograph_images().items())
