"""Writes scenes as truths and uploads of phrases, for `tests/report/test_known_faults.py`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from tests.builders import written, zipped
from tests.report.known_files import OF_OBJECTS, Benchmark, rle_of, to_json
from tests.report.known_scenes import NAMES, SIZE, Video, World

#: Phrases by class, the last one of which names nothing.
_PHRASES = {**NAMES, 4: "bird"}


def publish_phrases(world: World, folder: Path) -> Path:
    images, annotations = [], []
    for image, (video, kind) in enumerate(itertools.product(world, _PHRASES), 1):
        images.append(
            {"id": image, "file_name": f"{video.name}.jpg", "text_input": _PHRASES[kind], "height": SIZE[0],
             "width": SIZE[1], "is_instance_exhaustive": 1, "is_pixel_exhaustive": 1}
        )  # fmt: skip
        for text in _texts_of(video, kind):
            annotations.append(
                {"id": len(annotations) + 1, "image_id": image, "category_id": 1, "iscrowd": 0,
                 "segmentation": rle_of(text)}
            )  # fmt: skip
    document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "object"}]}
    return written(folder, {f"gold_demo_merged_{letter}_release_test.json": document for letter in "abc"})


def _texts_of(video: Video, kind: int) -> Iterator[str]:
    return (text for number, text in video.runs()[0].items() if video.classes[number] == kind)


def send_phrases(world: World) -> bytes:
    from pycocotools.mask import toBbox

    records = [
        {"image_id": image, "category_id": 1, "segmentation": rle_of(text), "score": 0.9,
         "bbox": list(map(int, toBbox({"size": [*SIZE], "counts": text.encode()})))}
        for image, (video, kind) in enumerate(itertools.product(world, _PHRASES), 1) for text in _texts_of(video, kind)
    ]  # fmt: skip
    return zipped({"demo.json": to_json(records)})


# Classes of phrases are queries of their own.
SCENES = {"sa-co-gold": Benchmark(publish_phrases, send_phrases, faults=OF_OBJECTS)}
