"""Masks in memory score the same bits as files, in any order and however merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pycocotools.mask as coco
import pytest

import segjudge
from segjudge import FrameAccumulator, UsageError, score_arrays
from segjudge.evaluation_script.families.sequences.protocols import (
    SEQUENCE_PROTOCOLS,
    MissingRule,
    ObjectRule,
    SequenceProtocol,
)
from segjudge.evaluation_script.files.limits import ArchiveLimits
from tests.builders import label_truth, label_zip, png, score_sequences
from tests.families.contract import examples


def of_whole_results(protocol: SequenceProtocol) -> bool:
    return bool(protocol.rounds) or protocol.missing_object is not MissingRule.EMPTY


#: What is sent for these is one mask without numbers.
NUMBERED = {
    name: protocol
    for name, protocol in SEQUENCE_PROTOCOLS.items()
    if not protocol.salient and protocol.objects is not ObjectRule.FOREGROUND and not of_whole_results(protocol)
}


def video(seed: int, frames: int = 9, *, void: bool = True) -> Any:
    """Return blobs that move, arrive late, leave and return, with ignored pixels."""
    draw = np.random.default_rng(seed)
    labels = np.zeros((frames, 37, 70), np.uint8)
    for number in range(1, 5):
        top, left, side = draw.integers(0, 25), draw.integers(0, 55), draw.integers(3, 12)
        absent = {frames // 2} if number == 2 else set(range(3)) if number == 3 else set()
        for frame in set(range(frames)) - absent:
            labels[frame, top + frame // 3 : top + side, left + frame // 2 : left + side + 3] = number
    if void:
        labels[:, :3, :9] = 255
    return labels


TRUTHS = {"cat": video(1), "dog": video(2, 6)}
PREDICTIONS = {
    name: np.where(np.roll(labels, 1, 2) == 255, 0, np.roll(labels, 1, 2)) for name, labels in TRUTHS.items()
}
PREDICTIONS["dog"][4][30:34, 5:9] = 7  # no object of the truth


def of_files(folder: Path, protocol: str) -> Any:
    path = folder / "predictions.zip"
    path.write_bytes(label_zip({name: list(frames) for name, frames in PREDICTIONS.items()}))
    split = label_truth(folder, {name: list(frames) for name, frames in TRUTHS.items()})
    return score_sequences(str(path), split, SEQUENCE_PROTOCOLS[protocol], ArchiveLimits())


def same(actual: Any, expected: Any) -> bool:
    """Return whether the scores of objects have the same bits."""
    scores, _ = expected
    mine = actual.reports[0].scores
    assert [(entry.sequence, entry.name, entry.values, entry.frames, entry.proposal) for entry in mine] == [
        (score.sequence, score.name, score.values, score.frames, score.proposal) for score in scores
    ]
    for item, two in zip(mine, scores, strict=True):
        np.testing.assert_array_equal(item.j, two.j)
        np.testing.assert_array_equal(item.f, two.f)
    return True


@pytest.mark.parametrize("protocol", NUMBERED)
def test_arrays_score_as_files_do(protocol: str, tmp_path: Path) -> None:
    expected = of_files(tmp_path, protocol)
    assert same(score_arrays(PREDICTIONS, TRUTHS, protocol), expected)


@pytest.mark.parametrize("protocol", examples("frames"))
def test_means_are_taken_in_the_order_of_the_list_as_those_of_files(protocol: str, tmp_path: Path) -> None:
    truths = {f"{number}": video(10 + number, 5 + number) for number in (3, 1, 9, 10, 2, 5, 4)}
    predictions = {name: np.roll(labels, int(name), 2) % 255 for name, labels in truths.items()}
    root = tmp_path / "davis"
    for name, labels in truths.items():
        (root / "Annotations/480p" / name).mkdir(parents=True)
        for frame, data in enumerate(labels):
            (root / "Annotations/480p" / name / f"{frame:05d}.png").write_bytes(png(data))
    (tmp_path / "results.zip").write_bytes(label_zip({name: list(labels) for name, labels in predictions.items()}))
    plain = segjudge.score(tmp_path / "results.zip", root, protocol).metrics["val"]
    (root / "ImageSets/2017").mkdir(parents=True)
    (root / "ImageSets/2017/val.txt").write_text("\n".join(truths))
    listed = segjudge.score(tmp_path / "results.zip", root, protocol).metrics["val"]
    assert plain != listed, "the order of a sum does not show in its last bits"
    assert score_arrays(predictions, truths, protocol).metrics["all"] == listed
    for expected, metrics in (((), plain), ({name: range(len(truths[name])) for name in truths}, listed)):
        accumulator = FrameAccumulator(protocol, expected=expected)
        for name, labels in sorted(truths.items()):
            for frame, truth in reversed(list(enumerate(labels))):
                accumulator.update(name, frame, predictions[name][frame], truth)
        assert accumulator.compute().metrics["all"] == metrics


def test_any_form_of_masks_scores_the_same() -> None:
    truth, prediction = video(3, void=False), np.roll(video(3, void=False), 2, 1)
    expected = score_arrays(prediction, truth).metrics
    numbers = range(1, 5)
    booleans = {number: prediction == number for number in numbers}
    encoded = {n: [coco.encode(np.asfortranarray(mask.astype(np.uint8))) for mask in prediction == n] for n in numbers}
    texts = {n: [{"size": [37, 70], "counts": rle["counts"].decode()} for rle in rles] for n, rles in encoded.items()}
    gone = {n: [mask if mask.any() else None for mask in prediction == n] for n in numbers}
    named = {str(number): masks for number, masks in booleans.items()}
    for form in (booleans, named, encoded, texts, gone, prediction.astype(np.int64), prediction.astype(np.uint16)):
        assert score_arrays(form, truth).metrics == expected
    assert score_arrays({"a": booleans}, {"a": truth}).metrics == expected


def test_names_are_the_same_in_every_unicode_form() -> None:
    composed, split = "caf\u00e9", "cafe\u0301"
    accumulator = FrameAccumulator(expected={split: range(9)})
    for frame, labels in enumerate(TRUTHS["cat"]):
        accumulator.update((composed, split)[frame % 2], frame, PREDICTIONS["cat"][frame], labels)
    expected = score_arrays({split: PREDICTIONS["cat"]}, {composed: TRUTHS["cat"]}).metrics
    assert accumulator.compute().metrics == expected == score_arrays(PREDICTIONS["cat"], TRUTHS["cat"]).metrics


@pytest.mark.parametrize("protocol", examples("no label maps"))
def test_maps_of_labels_where_others_are_scored_are_a_wrong_call(protocol: str) -> None:
    categories = [{"id": 1, "name": "one", "isthing": True}]
    for masks in (TRUTHS["dog"], {"dog": TRUTHS["dog"]}, list(TRUTHS["dog"])):
        with pytest.raises(UsageError, match=f"{protocol} does not score maps of labels: give "):
            score_arrays(masks, masks, protocol, categories=categories)
