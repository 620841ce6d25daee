"""Masks of instances in memory score the same bits as files, in parts, in any order and with repetitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge import FrameAccumulator, UsageError, score_arrays
from tests.data import TRACKS_DATA
from tests.families.instances.memory_images import SIZE, box, images, records
from tests.scoring.memory_parts import of_parts, same
from tests.shared import needs_shared


def files(detections: list[Any], folder: Path) -> tuple[str, str]:
    """Write results and truth, and return their paths."""
    truths: list[Any] = []
    for image, (_, truth) in enumerate(detections):
        truths += records(truth, image, len(truths) + 1)
    document = {
        "images": [{"id": image, "height": SIZE[0], "width": SIZE[1]} for image in range(len(detections))],
        "categories": [{"id": number, "name": str(number)} for number in (1, 2, 3)],
        "annotations": truths,
    }
    sent = [record for image, (prediction, _) in enumerate(detections) for record in records(prediction, image)]
    (folder / "results.json").write_text(json.dumps(sent))
    (folder / "truth.json").write_text(json.dumps(document))
    return str(folder / "results.json"), str(folder / "truth.json")


def boxed(side: Any) -> Any:
    """Return the columns of detection models, with boxes by their corners."""
    boxes = np.array([box(mask) for mask in side["masks"]]).reshape(-1, 4)
    return {
        **{key: side[key] for key in side if key != "masks"},
        "boxes": np.hstack((boxes[:, :2], boxes[:, :2] + boxes[:, 2:])),
    }


@pytest.mark.parametrize("protocol", ["coco", "places2017", "coco-boundary", "coco-box"])
def test_instances_in_memory_score_as_files_do(protocol: str, tmp_path: Path) -> None:
    results = images(5)
    expected = segjudge.score(*files(results, tmp_path), protocol)
    assert 0 < (expected.metrics["val"]["AP"] or 0) < 1
    if protocol == "coco-box":
        results = [({**boxed(item)}, {**boxed(two), "area": [m.sum() for m in two["masks"]]}) for item, two in results]
    same(of_parts(protocol, [(image, None, *sides) for image, sides in enumerate(results)]), expected)
    predictions, truths = ({image: sides[side] for image, sides in enumerate(results)} for side in (0, 1))
    same(score_arrays(predictions, truths, protocol), expected)
    same(score_arrays(list(predictions.values()), list(truths.values()), protocol), expected)


@needs_shared
@pytest.mark.parametrize("case", ["plain", "many"])
def test_lvis_in_memory_scores_as_files_do(case: str) -> None:
    folder = TRACKS_DATA / "instances"
    golden = json.loads((folder / "golden.json").read_text())["cases"]
    case = sorted(golden)[0 if case == "plain" else -1]
    truth = json.loads((folder / golden[case].get("truth", "truth.json")).read_text())
    sent = json.loads((folder / f"{case}.json").read_text())
    for protocol in ("lvis", "lvis-boundary", "coco"):
        accumulator = FrameAccumulator(protocol, categories=truth["categories"])
        for image in truth["images"]:
            of_image = [item for item in truth["annotations"] if item["image_id"] == image["id"]]
            predicted = [item for item in sent if item["image_id"] == image["id"]]
            accumulator.update(image["id"], None, predicted, {**image, "annotations": of_image})
        same(accumulator.compute(), segjudge.score(str(folder / f"{case}.json"), str(folder / "truth.json"), protocol))


@needs_shared
@pytest.mark.parametrize("protocol", ["youtube-vis-2019", "ovis"])
def test_instances_of_videos_score_as_files_do(protocol: str) -> None:
    folder = TRACKS_DATA / "vis"
    truth, sent = (json.loads((folder / name).read_text()) for name in ("truth.json", "ordinary.json"))
    updates = []
    for video in truth["videos"]:
        annotations = [item for item in truth["annotations"] if item["video_id"] == video["id"]]
        predicted = [item for item in sent if item["video_id"] == video["id"]]
        updates.append((video["id"], None, predicted, annotations))
    expected = segjudge.score(str(folder / "ordinary.json"), str(folder / "truth.json"), protocol)
    same(of_parts(protocol, updates, categories=truth["categories"]), expected)
    with pytest.raises(UsageError, match="compares whole videos"):
        FrameAccumulator(protocol).update("a", 3, [], [])
