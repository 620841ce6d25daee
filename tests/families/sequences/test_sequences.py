"""Errors, empty masks and ignored input: the table in docs/participants.md."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences.layouts import LAYOUTS
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS, MissingRule, SequenceProtocol
from segjudge.evaluation_script.files.limits import ArchiveLimits
from segjudge.evaluation_script.files.problems import SubmissionError
from tests.builders import drawn, label_zip, png, score_sequences, zipped

BIG = drawn("........", ".####...", ".####...", ".####...", "........", "........")
SMALL = drawn("........", "........", "........", "........", ".....##.", ".....##.")
NONE = np.zeros((6, 8), np.uint8)
BOTH = (BIG * 1 + SMALL * 2).astype(np.uint8)
ONE = BIG.astype(np.uint8)
TRUTH = {"a": [BOTH] * 6, "b": [ONE] * 6}


def sent(videos: Any, protocol: SequenceProtocol) -> bytes:
    """Return label images in a folder per round, or masks in a folder per object if the protocol needs them."""
    if protocol.missing_object is not MissingRule.EMPTY:
        return zipped(
            {
                f"{name}/{label}/{k:05d}.png": png((frame == label).astype(np.uint8))
                for name, frames in videos.items()
                for k, frame in enumerate(frames)
                for label in range(1, frames[0].max() + 1)
            }
        )
    parts = protocol.rounds or (".",)
    return label_zip({f"{part}/{name}": frames for part in parts for name, frames in videos.items()})


def score(
    videos: Any, prediction: Any, protocol: str, tmp_path: Path, elsewhere: frozenset[str] = frozenset(), **options: Any
) -> tuple[dict[str, Any], list[str]]:
    (tmp_path / "truth.zip").write_bytes(label_zip(videos))
    (tmp_path / "prediction").write_bytes(
        prediction if isinstance(prediction, bytes) else sent(prediction, SEQUENCE_PROTOCOLS[protocol])
    )
    split = dataset_reader.read(str(tmp_path / "truth.zip")).splits["val"]
    split = replace(split, elsewhere=elsewhere)
    scores, warnings = score_sequences(
        str(tmp_path / "prediction"), split, SEQUENCE_PROTOCOLS[protocol], ArchiveLimits(), **options
    )
    return {f"{score.sequence}/{score.name}": score.values for score in scores}, warnings


@pytest.mark.parametrize("protocol", SEQUENCE_PROTOCOLS)
def test_a_perfect_submission_scores_one(protocol: str, tmp_path: Path) -> None:
    videos = {"b": [ONE] * 6} if protocol in ("davis2016", "lvos-unsupervised-single") else TRUTH
    if protocol == "mosev2":  # whose fractional disk is empty on frames below 60 pixels
        videos = {
            name: [np.kron(frame, np.ones((20, 20), np.uint8)) for frame in frames] for name, frames in TRUTH.items()
        }
    scored, warnings = score(videos, videos, protocol, tmp_path)
    assert scored
    for values in scored.values():
        for metric, value in values.items():
            expected = 0.0 if re.search("Decay|V-Mean|False", metric) else 1.0
            assert value in (expected, None), metric
    assert warnings == []


@pytest.mark.parametrize(
    "protocol",
    ["davis2016", "davis2017", "davis2017-unsupervised", "lvos", "lvos-unsupervised", "vost", "mose", "youtube-vos"],
)
def test_a_missing_sequence_is_an_error(protocol: str, tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="1 of 2 sequences is missing: b"):
        score(TRUTH, {"a": TRUTH["a"]}, protocol, tmp_path)


def test_a_missing_sequence_scores_zero_in_mosev2(tmp_path: Path) -> None:
    scored, warnings = score(TRUTH, {"a": TRUTH["a"]}, "mosev2", tmp_path)
    assert scored["b/1"]["J-Mean"] == scored["b/1"]["J&F_new-Mean"] == 0.0
    assert scored["b/1"]["disappear_J-Mean"] is None
    assert scored["a/1"]["J-Mean"] == 1.0
    assert "your file: 1 of 2 sequences is missing: b (scored as 0)" in warnings


@pytest.mark.parametrize("protocol", ["vos-benchmark", "vos-benchmark-all-frames", "sav"])
def test_a_missing_sequence_is_left_out(protocol: str, tmp_path: Path) -> None:
    scored, warnings = score(TRUTH, {"a": TRUTH["a"]}, protocol, tmp_path)
    assert set(scored) == {"a/1", "a/2"}
    assert any("excluded from the means" in line for line in warnings)


def many(count: int) -> Any:
    labels = np.zeros((6, 8), np.uint8)
    labels.reshape(-1)[:count] = range(1, count + 1)
    return labels


def test_too_many_proposals_are_an_error_or_ignored(tmp_path: Path) -> None:
    prediction = {"a": [many(25)] * 6, "b": [ONE] * 6}
    with pytest.raises(SubmissionError, match="a: has proposals beyond 20: 21, 22, 23 and 2 more"):
        score(TRUTH, prediction, "davis2017-unsupervised", tmp_path)
    _, warnings = score(TRUTH, prediction, "lvos-unsupervised", tmp_path)
    assert any("beyond 20" in line and "ignored" in line for line in warnings)


def test_proposals_are_matched_whatever_their_numbers(tmp_path: Path) -> None:
    swapped = (BIG * 17 + SMALL * 3).astype(np.uint8)
    scored, _ = score({"a": [BOTH] * 6}, {"a": [swapped] * 6}, "davis2017-unsupervised", tmp_path)
    assert [values["J&F-Mean"] for values in scored.values()] == [1.0, 1.0]


def test_object_folders_may_overlap_in_sav_alone(tmp_path: Path) -> None:
    images = {f"v/{label}/{k:05d}.png": png(BIG.astype(np.uint8) * 255) for label in ("000", "001") for k in range(5)}
    (tmp_path / "t.zip").write_bytes(zipped(images))
    split = dataset_reader.read(str(tmp_path / "t.zip"), LAYOUTS["sav"]).splits["val"]
    scores, _ = score_sequences(str(tmp_path / "t.zip"), split, SEQUENCE_PROTOCOLS["sav"], ArchiveLimits())
    assert [score.values["J-Mean"] for score in scores] == [1.0, 1.0]
    del images["v/001/00002.png"]
    (tmp_path / "p.zip").write_bytes(zipped(images))
    with pytest.raises(SubmissionError, match="v/001/00002.png: is missing"):
        score_sequences(str(tmp_path / "p.zip"), split, SEQUENCE_PROTOCOLS["sav"], ArchiveLimits())
    missing = {name: data for name, data in images.items() if "/001/" not in name}
    (tmp_path / "p.zip").write_bytes(zipped(missing))
    scores, _ = score_sequences(str(tmp_path / "p.zip"), split, SEQUENCE_PROTOCOLS["sav"], ArchiveLimits())
    assert [score.values["J-Mean"] for score in scores] == [1.0, 0.0]


def test_void_is_judged_by_nobody_where_the_protocol_says_so(tmp_path: Path) -> None:
    truth = ONE.copy()
    truth[4, 1:5] = 255
    taller = ONE.copy()
    taller[4, 1:5] = 1
    for protocol, expected in (("davis2017-unsupervised", 1.0), ("davis2017", 0.75)):
        scored, _ = score({"a": [truth] * 6}, {"a": [taller] * 6}, protocol, tmp_path)
        assert scored["a/1"]["J-Mean"] == expected


def test_an_object_of_its_own_frames_is_not_seen_outside_them(tmp_path: Path) -> None:
    """A skipped first frame of one object may be a scored frame of another."""
    whole = {f"v/000/{k:05d}.png": png(BIG.astype(np.uint8) * 255) for k in range(8)}
    truth = {f"v/001/{k:05d}.png": png((SMALL if k in (2, 6) else NONE).astype(np.uint8)) for k in range(2, 8)}
    sent = {f"v/001/{k:05d}.png": png(SMALL.astype(np.uint8) if k in (2, 6) else NONE) for k in range(8)}
    (tmp_path / "t.zip").write_bytes(zipped({**whole, **truth}))
    (tmp_path / "p.zip").write_bytes(zipped({**whole, **sent}))
    split = dataset_reader.read(str(tmp_path / "t.zip"), LAYOUTS["sav"]).splits["val"]

    scores, _ = score_sequences(str(tmp_path / "p.zip"), split, SEQUENCE_PROTOCOLS["sav"], ArchiveLimits())

    assert scores[1].frames == ["00006"], "its frame 2 is its skipped first one"
