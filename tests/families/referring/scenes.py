"""Writes scenes as truths and uploads of referred objects, for `tests/report/test_known_faults.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from segjudge.masks.run_lengths import encode_labels
from tests.builders import written
from tests.report.known_files import OF_ONE, Benchmark, list_images, rle_of, to_json
from tests.report.known_scenes import OBJECTS, SIZE, World


def publish_refcoco(world: World, folder: Path) -> Path:
    annotations: list[dict[str, Any]] = []
    records = []
    for image, video in enumerate(world, 1):
        for number, text in video.runs()[0].items():
            annotations.append(
                {"id": len(annotations) + 1, "image_id": image, "category_id": 1, "iscrowd": 0,
                 "segmentation": rle_of(text)}
            )  # fmt: skip
            sentences = [{"sent_id": len(annotations), "sent": f"object {number}"}]
            records.append(
                {"ref_id": len(annotations), "image_id": image, "split": "val", "ann_id": len(annotations),
                 "sentences": sentences}
            )  # fmt: skip
    document = {"images": list_images(world), "annotations": annotations, "categories": [{"id": 1, "name": "object"}]}
    return written(folder, {"instances.json": document, "refs(demo).json": records})


def send_refcoco(world: World) -> bytes:
    lines = []
    for index, video in enumerate(world):
        texts = video.runs()[0]
        for number in range(1, OBJECTS + 1):
            object_mask = video.labels[0] == number
            extra = {key: text for key, text in texts.items() if key > OBJECTS and key % OBJECTS == number % OBJECTS}
            mask = object_mask | np.isin(video.labels[0], list(extra))
            lines.append(to_json(
                {"sent_id": OBJECTS * index + number,
                 "segmentation": rle_of(encode_labels(mask.astype(np.uint8)).get(1, encode_labels(mask * 1).get(1, "")))}
            ) if mask.any() else to_json({"sent_id": OBJECTS * index + number, "segmentation": rle_of(_EMPTY)}))  # fmt: skip
    return b"\n".join([*lines, b""])


def _encode_empty() -> str:
    from segjudge.evaluation_script.masks.run_lengths import compress

    return compress([SIZE[0] * SIZE[1]])


_EMPTY = _encode_empty()


SCENES = {"refcoco": Benchmark(publish_refcoco, send_refcoco, kinds=1, faults=OF_ONE, asks="object")}
