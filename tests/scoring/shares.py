"""Results with mistakes and their truth, for every family: shared scoring gives the same bits."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from segjudge.evaluation_script.families.instances.truth import LABELS
from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from tests import published
from tests.builders import label_zip
from tests.families.contract import value_of
from tests.families.instances.test_instances import document

NAMES = "abcdefg"
IMAGES = 23


class Files(NamedTuple):
    results: str
    truth: str


def _draw_videos() -> dict[str, list[Any]]:
    draw = np.random.default_rng(5)
    return {
        name: [
            np.kron(draw.integers(0, 4, (6, 7)), np.ones((9, 8))).astype(np.uint8) for _ in range(4 + 5 * number)
        ]
        for number, name in enumerate(NAMES)
    }  # fmt: skip


TRUTH = _draw_videos()
SENT = {name: [np.roll(frame, 1, 1) for frame in frames] for name, frames in TRUTH.items()}
SENT["c"] = [np.where(frame == 2, 7, frame).astype(np.uint8) for frame in SENT["c"]]


def write_sequences(folder: Path, results: Any = SENT) -> Files:
    """Return a packed truth of sequences of very different lengths, and shifted masks."""
    files = Files(str(folder / "sent.zip"), str(folder / "packed.zip"))
    (folder / "truth.zip").write_bytes(label_zip(TRUTH))
    sequence_truth.write(files.truth, dataset_reader.read(str(folder / "truth.zip")).splits)
    Path(files.results).write_bytes(results if isinstance(results, bytes) else label_zip(results))
    return files


def write_instances(folder: Path, results: Any = None, *, videos: bool = False, share: float = 0.9) -> Files:
    """Write random detections, each again with this share of its score, so that some exceed the cap."""
    truth, records = document(11, images=IMAGES, categories=3)
    if videos:
        truth, records = _as_videos(truth, records)
    records = [{**record, "bbox": [0, 0, 5, 5]} for record in records]
    records += [{**record, "score": record["score"] * share} for record in records]
    random.Random(1).shuffle(records)
    files = Files(str(folder / "sent.json"), str(folder / "truth.json"))
    Path(files.truth).write_text(json.dumps(truth))
    Path(files.results).write_text(json.dumps(records if results is None else results))
    return files


def _as_videos(truth: Any, records: Any) -> tuple[Any, Any]:
    """Return images as videos of two frames, the second with every other instance."""
    videos = [{**image, "length": 2} for image in truth["images"]]

    def repeat(record: Any, number: int) -> Any:
        masks = [record["segmentation"], record["segmentation"] if number % 2 else None]
        return {**record, "video_id": record["image_id"], "segmentations": masks, "areas": [record.get("area"), None]}

    annotations = [
        {**repeat(record, number), "occlusion": [list(LABELS)[number % 3], None]}
        for number, record in enumerate(truth["annotations"])
    ]
    detections = [repeat(record, number) for number, record in enumerate(records)]
    return {"videos": videos, "categories": truth["categories"], "annotations": annotations}, detections


def write_units(protocol: str, folder: Path, names: str = NAMES) -> Files:
    """Return a published truth of videos; the results show every second one at another speed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published, "VIDEOS", {name: 1 + number % 3 for number, name in enumerate(names)})
        truth = published.published(protocol, folder)
        patch.setattr(published, "VIDEOS", {name: 1 + number % 2 for number, name in enumerate(names)})
        files = Files(str(folder / "results.zip"), str(truth))
        if value_of(protocol, "RESULTS_FROM_TRUTH"):
            (folder / "other").mkdir()
            truth = published.published(protocol, folder / "other")
        Path(files.results).write_bytes(published.upload(protocol, truth))
    return files


def write_files(protocol: str, folder: Path, names: str = NAMES) -> Files:
    """Results and truth for a protocol, in a folder; for families without a writer, of these videos."""
    write = value_of(protocol, "write_results")
    files: Files | None = write(protocol, folder) if write else None
    return files or write_units(protocol, folder, names)
