"""Rules of semantic segmentation, compared with short formulas and values computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitCounts
from segjudge.evaluation_script.families.semantic import engine as semantic
from segjudge.evaluation_script.families.semantic.protocols import SemanticProtocol
from segjudge.evaluation_script.files.problems import HostError
from tests.builders import png
from tests.families.unit_counts import accumulated, close

pytestmark = pytest.mark.usefixtures("without_kernel")

FEW = SemanticProtocol("few", "", classes=4, refused_from=4, windows=(2, 3))


def clip(seed: int, frames: int = 6) -> list[tuple[Any, Any]]:
    """Return frames whose labels often stay the same; 9 and 4 are void."""
    rng, results = np.random.default_rng(seed), []
    real, sent = rng.choice([0, 1, 2, 9], (4, 6)), rng.integers(0, 4, (4, 6))
    for _ in range(frames):
        results.append((real.astype(np.uint8), sent.astype(np.uint8)))
        real = np.where(rng.random((4, 6)) < 0.7, real, rng.choice([0, 1, 2, 4, 9], (4, 6)))
        sent = np.where(rng.random((4, 6)) < 0.7, sent, rng.integers(0, 4, (4, 6)))
    return results


@pytest.mark.parametrize("without_last", [False, True])
def test_consistency_and_accuracy_are_what_their_words_say(without_last: bool) -> None:
    protocol = SemanticProtocol("few", "", classes=4, refused_from=4, windows=(2, 3), without_last=without_last)
    clips = [clip(seed) for seed in range(4)]
    total = accumulated(protocol, {}, *(semantic.count_maps(iter(clip), len(clip), protocol) for clip in clips))
    expected: dict[str, Any] = {}
    for length in (2, 3):
        ratios = []
        for item in clips:
            real, sent = (np.stack(side) for side in zip(*item))
            for start in range(len(item) - length + 1 - without_last):
                same, both = ((side[start : start + length] == side[start]).all(0) for side in (real, sent))
                ratios.append((same & both).sum() / same.sum())
        expected[f"VC{length}"] = float(np.mean(ratios))
    real, sent = (np.concatenate([frame[side].ravel() for clip in clips for frame in clip]) for side in (0, 1))
    known = real < 4
    real, sent = real[known], sent[known]
    assert 3 not in real
    hit = [np.count_nonzero((real == k) & (sent == k)) for k in range(3)]
    union = [np.count_nonzero((real == k) | (sent == k)) for k in range(4)]
    ious, shares = [a / b for a, b in zip(hit, union)], [np.mean(real == k) for k in range(3)]
    expected["mIoU"], expected["Acc"] = np.mean(ious), np.mean(real == sent)
    expected["Acc_class"] = np.mean([a / np.count_nonzero(real == k) for k, a in enumerate(hit)])
    expected["fwIoU"] = np.sum(np.multiply(ious, shares))
    assert semantic.values(total) == {name: close(value) for name, value in expected.items()}
    rows = semantic.tables(total)["categories"]
    assert rows[:-1] == [{"id": k, "name": str(k), "IoU": close(iou)} for k, iou in enumerate(ious)]
    assert rows[-1] == {"id": 3, "name": "3", "IoU": None}


def test_what_has_no_class_or_no_window_has_no_value() -> None:
    void = np.full((1, 2), 9, np.uint8)
    results = semantic.values(accumulated(FEW, {}, semantic.count_maps([(void, void)] * 2, 2, FEW)))
    assert results == {"mIoU": None, "VC2": 1.0, "VC3": None, "Acc": None, "Acc_class": None, "fwIoU": None}
    moving = [(np.full((1, 1), k, np.uint8), void[:, :1]) for k in (1, 2)]
    still = [(void[:, :1], np.full((1, 1), k, np.uint8)) for k in (1, 2)]
    tables = [semantic.count_maps(item, 2, FEW) for item in (moving, still)]
    assert [table["VC2"].tolist() for table in tables] == [[[0, 0]], [[0, 1]]]
    total = UnitAccumulator(FEW, {}, ["a"])
    total.update(UnitCounts("a", tables[1]))
    assert semantic.values(total)["VC2"] == 0


def test_a_pixel_that_stays_for_more_frames_than_a_byte_counts_still_stays() -> None:
    steps, label = semantic._LabelAges(), np.array([[3, 4]], np.uint8)
    kept = []
    for _ in range(300):
        steps.add(label)
        kept.append(steps.ages.tolist())
    assert kept == [[[min(k, 255)] * 2] for k in range(1, 301)]
    steps.add(np.array([[3, 5]], np.uint8))
    assert steps.ages.tolist() == [[255, 1]]
    steps.add(np.array([[3]], np.uint8))
    assert steps.ages.tolist() == [[1]]


def test_videos_are_folders_of_pictures_or_hold_a_folder_of_masks(tmp_path: Path) -> None:
    for name in ("data/one/mask/0.png", "data/one/mask/1.png", "mask/0.png", "two/0.png", "odd.png", "two/a.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(png(np.zeros((1, 1), np.uint8)))
    truth = semantic.read_truth(str(tmp_path), "")
    assert {unit.name: unit.cost for unit in truth.units} == {"one": 2, "mask": 1, "two": 1}
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "test.txt").write_text("two\none")
    assert [unit.name for unit in semantic.read_truth(str(tmp_path), "test").units] == ["two", "one"]
    assert len(semantic.read_truth(str(tmp_path), "").units) == 3
    (tmp_path / "val.txt").write_text("two three\n")
    with pytest.raises(HostError, match="has no frames of three"):
        semantic.read_truth(str(tmp_path), "")
    (tmp_path / "val.txt").write_text("")
    with pytest.raises(HostError, match="has no frames of any video"):
        semantic.read_truth(str(tmp_path), "")
