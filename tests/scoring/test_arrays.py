"""Masks in memory score the same bits as files, in any order and however merged."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pycocotools.mask as coco
import pytest

import segjudge
from segjudge import FrameAccumulator, SubmissionError, UsageError, score_arrays
from segjudge.evaluation_script.families.sequences.protocols import (
    SEQUENCE_PROTOCOLS,
    MissingRule,
    ObjectRule,
    SequenceProtocol,
)
from segjudge.evaluation_script.files.limits import ArchiveLimits
from tests.backends import use_numpy
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


@pytest.mark.parametrize("path", ["kernel", "numpy"])
@pytest.mark.parametrize("protocol", NUMBERED)
def test_arrays_score_as_files_do(protocol: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = of_files(tmp_path, protocol)
    if path == "numpy":
        use_numpy(monkeypatch)
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


@pytest.mark.long
@pytest.mark.parametrize("parts", [1, 2, 7, 64])
@pytest.mark.parametrize("protocol", examples("frames"))
def test_parts_in_any_order_with_repeats_have_the_same_bits(parts: int, protocol: str) -> None:
    whole = score_arrays(PREDICTIONS, TRUTHS, protocol)
    draw = np.random.default_rng(parts)
    frames = [(name, frame) for name, labels in TRUTHS.items() for frame in range(len(labels))]
    frames += [frames[place] for place in draw.integers(0, len(frames), 5)]  # as a sampler that pads
    some = [FrameAccumulator(protocol) for _ in range(parts)]
    for place in draw.permutation(len(frames)):
        name, frame = frames[place]
        some[int(draw.integers(parts))].update(name, frame, PREDICTIONS[name][frame], TRUTHS[name][frame])
    merged = FrameAccumulator(protocol)
    for place in draw.permutation(parts):
        loaded = FrameAccumulator(protocol)
        loaded.load_state_dict(pickle.loads(pickle.dumps(some[place].state_dict())))
        merged.merge(loaded)
    assert same(merged.compute(), (whole.reports[0].scores, []))
    assert merged.compute().metrics == whole.metrics
    assert json.dumps(merged.compute().tables) == json.dumps(whole.tables)


def test_a_frame_that_is_counted_twice_with_other_masks_is_refused() -> None:
    accumulator = FrameAccumulator()
    accumulator.update("dog", 0, PREDICTIONS["dog"][0], TRUTHS["dog"][0])
    with pytest.raises(ValueError, match="dog, frame 00000 was counted twice, with different results"):
        accumulator.update("dog", 0, TRUTHS["dog"][0], TRUTHS["dog"][0])


def test_expected_frames_that_are_missing_are_named() -> None:
    accumulator = FrameAccumulator(expected={"dog": range(3)})
    accumulator.update("dog", 1, PREDICTIONS["dog"][1], TRUTHS["dog"][1])
    with pytest.raises(UsageError, match="nothing was counted for dog/00000, dog/00002"):
        accumulator.compute()
    accumulator.reset()
    with pytest.raises(UsageError, match="nothing was counted"):
        FrameAccumulator().compute()


def test_videos_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SubmissionError, match="lacks dog"):
        score_arrays({"cat": PREDICTIONS["cat"]}, TRUTHS)
    with pytest.raises(SubmissionError, match="has 5 frames, the truth 6"):
        score_arrays(PREDICTIONS["dog"][:5], TRUTHS["dog"])
    with pytest.raises(SubmissionError, match="has 1 twice"):
        score_arrays({"1": PREDICTIONS["dog"], 1: PREDICTIONS["cat"]}, TRUTHS)
    for masks, sentence in ((None, "is of NoneType"), (3, "is of int"), ({1: 3}, "object 1: is of int")):
        with pytest.raises(SubmissionError, match=sentence):
            score_arrays(masks, TRUTHS["dog"])
    with pytest.raises(SubmissionError, match="truth of 0: is neither records nor columns"):
        score_arrays(["cat"], ["cat"], "coco")
    with pytest.raises(UsageError, match="scores whole results"):
        FrameAccumulator("ref-davis17")


def test_no_object_at_all_is_a_prediction_too() -> None:
    scores = score_arrays({}, TRUTHS["dog"])
    assert scores.metrics["all"]["J-Mean"] < 0.5
    with pytest.raises(ValueError, match="does not belong"):
        FrameAccumulator().load_state_dict({"protocol": "mine", "counts": {}})


def test_videos_may_be_named_by_numbers() -> None:
    for names in ((1, 2), (1.0, np.int64(2)), ("1", "2")):
        truths = dict(zip(names, TRUTHS.values(), strict=True))
        predictions = dict(zip(("1", 2), PREDICTIONS.values(), strict=True))
        arrays = score_arrays(predictions, truths)
        assert arrays.metrics == score_arrays(PREDICTIONS, TRUTHS).metrics
        assert [row["sequence"] for row in arrays.tables["sequences"]] == ["1", "2"]
    lists = {name: list(labels) for name, labels in TRUTHS.items()}
    assert score_arrays(PREDICTIONS, lists).metrics == score_arrays(PREDICTIONS, TRUTHS).metrics
    item = {1: (PREDICTIONS["dog"] == 1).astype(np.uint8)}
    assert score_arrays(item, {1: TRUTHS["dog"]}).metrics == score_arrays({"a": item[1]}, {"a": TRUTHS["dog"]}).metrics


def test_what_may_be_videos_or_objects_is_asked_for() -> None:
    masks = {number: (TRUTHS["dog"] == number).astype(np.uint8) * 255 for number in (1, 2)}
    with pytest.raises(UsageError, match="name videos by text and give arrays, or give masks of objects as booleans"):
        score_arrays(masks, masks)
    objects = {number: mask > 0 for number, mask in masks.items()}
    expected = score_arrays(objects, objects).metrics
    assert score_arrays(masks, objects).metrics == score_arrays(objects, masks).metrics == expected
    assert score_arrays(masks, TRUTHS["dog"]).metrics == score_arrays(objects, TRUTHS["dog"]).metrics


def test_names_are_the_same_in_every_unicode_form() -> None:
    composed, split = "caf\u00e9", "cafe\u0301"
    accumulator = FrameAccumulator(expected={split: range(9)})
    for frame, labels in enumerate(TRUTHS["cat"]):
        accumulator.update((composed, split)[frame % 2], frame, PREDICTIONS["cat"][frame], labels)
    expected = score_arrays({split: PREDICTIONS["cat"]}, {composed: TRUTHS["cat"]}).metrics
    assert accumulator.compute().metrics == expected == score_arrays(PREDICTIONS["cat"], TRUTHS["cat"]).metrics


def test_a_frame_has_one_number() -> None:
    accumulator, labels = FrameAccumulator(expected={"dog": [1, 2]}), TRUTHS["dog"]
    for frame, place in ((1, 0), ("1", 0), (1.0, 0), ("00001", 0), (np.int8(1), 0), (2, 1)):
        accumulator.update("dog", frame, labels[place], labels[place])
    assert accumulator.state_dict()["frames"]["dog"].keys() == {"00001", "00002"}
    accumulator.update("dog", "0000002", labels[1], labels[1])
    with pytest.raises(UsageError, match="dog has the frames 00002 and 0000002, which are the same number"):
        accumulator.compute()
    for frame in (float("nan"), np.float64("inf")):
        with pytest.raises(UsageError, match="is not the number of a frame"):
            accumulator.update("dog", frame, labels[1], labels[1])


@pytest.mark.parametrize("protocol", examples("no label maps"))
def test_maps_of_labels_where_others_are_scored_are_a_wrong_call(protocol: str) -> None:
    categories = [{"id": 1, "name": "one", "isthing": True}]
    for masks in (TRUTHS["dog"], {"dog": TRUTHS["dog"]}, list(TRUTHS["dog"])):
        with pytest.raises(UsageError, match=f"{protocol} does not score maps of labels: give "):
            score_arrays(masks, masks, protocol, categories=categories)
