"""Masks that match nothing are dropped while records are read, and scores stay the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families.instances import submission
from segjudge.evaluation_script.families.instances.records import Targets
from segjudge.evaluation_script.masks.run_lengths import encode_flags


def test_masks_may_match_instances_of_their_category_and_of_similar_size() -> None:
    targets = Targets(np.array([1, 1, 4]), np.array([100, 900, 50]), np.array([False, False, True]), 2, 0.5)
    rows = [(0, 1, 60, True), (0, 1, 300, False), (0, 0, 100, False), (2, 0, 9000, True), (1, 1, 50, False)]
    image, category, pixels, wanted = map(np.array, zip(*rows, (1, -1, 100, False), strict=True))
    assert targets.may_match(image, category, pixels).tolist() == wanted.tolist()


@pytest.mark.parametrize("protocol", ["youtube-vis-2021", "ovis"])
def test_scores_are_those_of_all_masks(protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator, (height, width, frames) = np.random.default_rng(3), (60, 80, 4)
    annotations, records = [], []
    for video in (1, 2, 3):
        for number in range(3):
            flags = np.zeros((width, height), bool)
            flags[20 * number : 20 * number + 30, 10 : 20 + 10 * number] = True
            mask = {"size": [height, width], "counts": encode_flags(flags.reshape(-1))}
            annotations.append(
                {
                    "id": len(annotations) + 1, "video_id": video, "category_id": 1 + number % 2, "iscrowd": int(number == 2),
                    "segmentations": [mask] * frames, "areas": [int(flags.sum())] * frames,
                    "occlusion": ["slight_occlusion"] * frames,
                }
            )  # fmt: skip
            for share in (0.01, 0.1, 0.5):
                noisy = [
                    encode_flags((flags ^ (generator.random(flags.shape) < share)).reshape(-1)) for _ in range(frames)
                ]
                tube = [{"size": [height, width], "counts": counts} for counts in noisy]
                records.append(
                    {"video_id": video, "category_id": 1 + number % 2, "score": share, "segmentations": tube}
                )
    videos = [{"id": video, "height": height, "width": width, "length": frames} for video in (1, 2, 3)]
    categories = [{"id": number, "name": f"c{number}"} for number in (1, 2, 3)]
    truth, sent = tmp_path / "truth.json", tmp_path / "sent.json"
    truth.write_text(json.dumps({"videos": videos, "categories": categories, "annotations": annotations}))
    sent.write_text(json.dumps(records))
    results = []
    for limit in (0, 1 << 40):
        monkeypatch.setattr(submission, "_LONG_MASK", limit)
        results.append(score(sent, truth=truth, protocol=protocol))
    assert results[0] == results[1]
