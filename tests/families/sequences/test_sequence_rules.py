"""Rules of the sequence track, one by one, on masks and series whose scores are known by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import metrics as sequence_metrics
from segjudge.evaluation_script.families.sequences.counting import choose_objects
from segjudge.evaluation_script.families.sequences.layouts import LAYOUTS
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.families.sequences.truth import ObjectFacts, Sequence, ranges_of
from segjudge.evaluation_script.files.limits import ArchiveLimits
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.evaluation_script.masks.run_lengths import compress
from tests.builders import drawn, label_zip, png, score_sequences, zipped
from tests.families.sequences.test_sequences import BOTH, NONE, ONE, score


def values_of(videos: Any, prediction: Any, protocol: str, tmp_path: Path, **options: Any) -> Any:
    return score(videos, prediction, protocol, tmp_path, **options)[0]


def split_of(files: dict[str, bytes], tmp_path: Path, layout: str = "generic", **options: Any) -> Any:
    (tmp_path / "truth.zip").write_bytes(zipped(files))
    return dataset_reader.read(str(tmp_path / "truth.zip"), LAYOUTS[layout], **options).splits["val"]


def sent(files: dict[str, bytes], split: Any, protocol: str, tmp_path: Path, **options: Any) -> Any:
    (tmp_path / "sent").write_bytes(zipped(files))
    return score_sequences(str(tmp_path / "sent"), split, SEQUENCE_PROTOCOLS[protocol], ArchiveLimits(), **options)


# ── which frames and objects count ──────────────────────────────────────────


FRAMES = {
    "davis2017": range(1, 5), "davis2017-unsupervised": range(6), "lvos": range(1, 5), "lvos-unsupervised": range(6),
    "vost": range(1, 5), "vos-benchmark": range(1, 5), "vos-benchmark-all-frames": range(6), "sav": range(1, 5),
    "mosev2": range(1, 5), "mose": range(1, 5), "youtube-vos": range(1, 6),
}  # fmt: skip


@pytest.mark.parametrize("protocol", FRAMES)
def test_each_protocol_skips_its_frames(protocol: str, tmp_path: Path) -> None:
    video = label_zip({"b": [ONE] * 6})
    (tmp_path / "t.zip").write_bytes(video)
    split = dataset_reader.read(str(tmp_path / "t.zip")).splits["val"]
    (item,), _ = score_sequences(str(tmp_path / "t.zip"), split, SEQUENCE_PROTOCOLS[protocol], ArchiveLimits())
    assert item.frames == [f"{k:05d}" for k in FRAMES[protocol]]
    assert len(item.j) == len(item.f) == len(FRAMES[protocol])


def test_an_object_is_unseen_by_its_category_or_its_sequence(tmp_path: Path) -> None:
    objects = {"1": {"category": "dog", "frames": []}, "2": {"category": "ball", "frames": []}}
    files = {f"valid/Annotations/{name}/{k:05d}.png": png(BOTH) for name in "ab" for k in range(5)}
    files["valid/meta.json"] = json.dumps({"videos": {"a": {"objects": objects}, "b": {}}}).encode()
    for listed, expected in (("", [False, True, False, False]), ("b", [False, False, True, True])):
        (tmp_path / "unseen.txt").write_text(listed)
        options = {"unseen": str(tmp_path / "unseen.txt")} if listed else {}
        split = split_of(files, tmp_path, "youtube-vos", **options)
        scores, _ = sent(
            {name: data for name, data in files.items() if name.endswith("png")}, split, "youtube-vos", tmp_path
        )
        assert [score.unseen for score in scores] == expected
        assert [(score.sequence, score.name) for score in scores] == [(name, label) for name in "ab" for label in "12"]


# ── missing, surplus and elsewhere ──────────────────────────────────────────


def test_rounds_are_sequences_of_their_own(tmp_path: Path) -> None:
    """Rounds are folders at any level; those that are not scored are recognized too."""
    protocol, frames = SEQUENCE_PROTOCOLS["ref-davis17"], range(3)
    split = split_of({f"{name}/{k:05d}.png": png(BOTH) for name in "ab" for k in frames}, tmp_path)
    places = [f"{folder}/{below}" for folder in protocol.rounds for below in ("a", "deep/b")]
    masks = {f"x/{place}/{k:05d}.png": png(BOTH) for place in places for k in frames}
    scores, warnings = sent(masks, split, protocol.name, tmp_path)
    assert sorted({score.sequence for score in scores}) == [
        f"anno_{number}/{name}" for number in range(4) for name in "ab"
    ]
    assert warnings == []
    runs = {"size": list(BOTH.shape), "counts": compress([BOTH.size])}
    document = {folder: {name: {"1": [runs] * 3} for name in "abc"} for folder in protocol.rounds}
    strange = {**masks, "x/anno_0/c/00000.png": png(BOTH), "anno_1/d/00000.png": png(BOTH)}
    elsewhere = replace(split.select(["anno_1/b"], protocol), elsewhere=frozenset("ac"))
    for files, others in ((strange, "anno_1/d"), ({"one.json": json.dumps(document).encode()}, "")):
        scores, warnings = sent(files, elsewhere, protocol.name, tmp_path)
        assert {score.sequence for score in scores} == {"anno_1/b"}
        known = [f"extra files: not part of any sequence of this phase, so not scored: {others}"] if others else []
        assert [line for line in warnings if "extra" in line] == known
    del masks["x/anno_3/a/00000.png"], masks["x/anno_3/a/00001.png"], masks["x/anno_3/a/00002.png"]
    with pytest.raises(SubmissionError, match="1 of 8 sequences is missing: anno_3/a"):
        sent(masks, split, protocol.name, tmp_path)


def test_a_frame_and_a_sequence_are_sent_once(tmp_path: Path) -> None:
    files = {f"b/{k:05d}.png": png(ONE) for k in range(3)}
    for more, sentence in (
        ({"b/00001.PNG": png(ONE)}, "b/00001.PNG: is the same frame as b/00001.png. Send each frame once."),
        ({"x/b/00001.png": png(ONE)}, "b: occurs more than once: b, x/b. Send one folder for each sequence."),
    ):
        with pytest.raises(SubmissionError) as caught:
            score({"b": [ONE] * 3}, zipped({**files, **more}), "davis2017", tmp_path)
        assert str(caught.value) == sentence


def test_a_submission_holds_one_document(tmp_path: Path) -> None:
    document = json.dumps({"b": {"1": [{"size": [6, 8], "counts": [48]}] * 3}}).encode()
    assert score({"b": [ONE] * 3}, zipped({"x/A.JSON": document}), "davis2017", tmp_path)[0]
    with pytest.raises(SubmissionError, match=r"^a\.json: holds 2 JSON files\. Send one, with all sequences"):
        score({"b": [ONE] * 3}, zipped({"a.json": document, "b.json": document}), "davis2017", tmp_path)
    with pytest.raises(SubmissionError, match=r"^x/a\.json: is JSON, but not an object of sequences"):
        score({"b": [ONE] * 3}, zipped({"x/a.json": b"[]"}), "davis2017", tmp_path)


def test_a_few_warnings_of_each_kind_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    videos = {f"v{k}": [ONE] * 3 for k in range(6)}
    longer = {name: [ONE] * 4 for name in videos}
    _, warnings = score(videos, longer, "davis2017", tmp_path)
    output = "1 frame is not in the truth and was ignored: 00003"
    assert warnings == [*(f"v{k}: {output}" for k in range(4)), "... and 2 more like this"]
    four = {name: frames for name, frames in longer.items() if name < "v4"}
    assert len(score({k: videos[k] for k in four}, four, "davis2017", tmp_path)[1]) == 4


@pytest.mark.parametrize(
    ("surplus", "is_shifted"), [("00003", True), ("00004", False), ("x", False), ("3" * 120, False)]
)
def test_frames_that_are_all_numbered_too_high_are_named(surplus: str, is_shifted: bool, tmp_path: Path) -> None:
    files = {f"b/{name}.png": png(ONE) for name in ("00001", "00002", surplus)}
    _, warnings = score({"b": [ONE] * 3}, zipped(files), "davis2017", tmp_path)
    hint = "; all frames look numbered 1 too high" * is_shifted
    assert warnings == [f"b: 1 frame is not in the truth and was ignored: {surplus}{hint}"]


def test_a_frame_that_is_not_scored_may_be_absent_or_unreadable(tmp_path: Path) -> None:
    files = {f"b/{k:05d}.png": png(ONE) for k in range(1, 5)}
    files["b/00005.png"] = b"no picture"
    scored, warnings = score({"b": [ONE] * 6}, zipped(files), "davis2017", tmp_path)
    assert (scored["b/1"]["J-Mean"], warnings) == (1.0, [])
    del files["b/00003.png"]
    with pytest.raises(SubmissionError, match=r"^b/00003\.png: is missing"):
        score({"b": [ONE] * 6}, zipped(files), "davis2017", tmp_path)


def test_a_frame_that_no_object_needs_is_read_all_the_same_where_there_is_none(tmp_path: Path) -> None:
    files = {f"b/{k:05d}.png": png(ONE) for k in range(4)}
    files["b/00002.png"] = b"no picture"
    with pytest.raises(SubmissionError, match=r"^b/00002\.png: is not a PNG"):
        score({"b": [NONE] * 4}, zipped(files), "davis2017", tmp_path)


# ── label images ────────────────────────────────────────────────────────────


def salient(tmp_path: Path, image: Any) -> float:
    scored = values_of({"b": [ONE] * 4}, {"b": [image] * 4}, "lvos-unsupervised-single", tmp_path)
    return float(scored["b/1"]["J-Mean"])


@pytest.mark.parametrize(("grey", "foreground"), [(1, False), (126, False), (127, True), (128, True), (254, True)])
def test_grey_levels_of_a_salient_mask_are_cut_in_the_middle(grey: int, foreground: bool, tmp_path: Path) -> None:
    image = ONE * 255
    image[5] = grey
    assert salient(tmp_path, image) == (12 / 20 if foreground else 1.0)


@pytest.mark.parametrize("value", [2, 128, 254])
def test_a_salient_mask_of_another_value_is_refused(value: int, tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match=rf"b: each of 4 files .* holds the values \[0, {value}\]"):
        salient(tmp_path, ONE * value)


# ── means ───────────────────────────────────────────────────────────────────


def object_score(sequence: str, name: str, unseen: bool = False, **values: float | None) -> ObjectScore:
    everything = {"J-Mean": None, "F-Mean": None, "J&F-Mean": None, **{f"{k}-Mean": v for k, v in values.items()}}
    return ObjectScore(sequence, name, everything, [], np.array([]), np.array([]), unseen)


def test_means_are_over_objects_not_sequences() -> None:
    scores = [
        object_score("a", "1", J=0.9, F=0.5),
        object_score("a", "2", J=0.6, F=0.5),
        object_score("b", "1", J=0.0, F=0.8),
    ]
    values = sequence_metrics._ScoreTable(scores, SEQUENCE_PROTOCOLS["vos-benchmark"]).means()
    assert (values["J-Mean"], values["F-Mean"]) == (pytest.approx(0.5), pytest.approx(0.6))
    assert values["J&F-Mean"] == pytest.approx(0.55)
    assert values["J-Volume"] is None
    rows = sequence_metrics._by_sequence(scores, ["J-Mean", "F-Mean"])
    assert rows == {"a": {"J-Mean": 0.75, "F-Mean": 0.5}, "b": {"J-Mean": 0.0, "F-Mean": 0.8}}


# ── proposals ───────────────────────────────────────────────────────────────


def test_of_objects_that_share_pixels_the_right_two_are_named(tmp_path: Path) -> None:
    """The first object surrounds the others without sharing their pixels."""
    split = split_of({f"v/{k:05d}.png": png(BOTH) for k in range(4)}, tmp_path)
    around, inside = drawn("########", *["#......#"] * 4, "########"), drawn("........", "..##....", *["........"] * 4)
    images = {"1": around, "2": inside, "3": np.roll(inside, 1, 1)}
    shared = {f"v/{label}/{k:05d}.png": png(image) for label, image in images.items() for k in range(4)}
    with pytest.raises(SubmissionError, match="objects 2 and 3 share pixels"):
        sent(shared, split, "davis2017", tmp_path)
    runs = {"size": [6, 8], "counts": [8, 30, 10]}
    document = json.dumps({"v": {"1": [runs] * 4, "2": [runs] * 4}}).encode()
    (tmp_path / "sent").write_bytes(document)
    assert score_sequences(str(tmp_path / "sent"), split, SEQUENCE_PROTOCOLS["sav"], ArchiveLimits())[0]
    with pytest.raises(SubmissionError, match="objects 1 and 2 share pixels"):
        score_sequences(str(tmp_path / "sent"), split, SEQUENCE_PROTOCOLS["davis2017"], ArchiveLimits())


# ── numbers by hand, of rules that real masks seldom reach ──────────────────


def seen_in(frames: list[int], count: int = 9) -> Sequence:
    visible = np.isin(np.arange(count), frames)
    return Sequence("a", [f"{k:05d}" for k in range(count)], [], {"1": ObjectFacts(ranges_of(visible))}, lambda _: {})


@pytest.mark.parametrize(
    ("protocol", "frames", "counted"),
    [
        ("lvos", [2, 3, 6], [3, 4, 5, 6, 7]),  # from its first frame on, seen or not, without the first and the last
        ("lvos", [0], [1, 2, 3, 4, 5, 6, 7]),
        ("lvos", [5], [6, 7]),
        ("lvos", [6], []),  # three frames are too few
        ("lvos-unsupervised", [4, 6], [4, 5, 6, 7, 8]),
        ("youtube-vos", [2, 3, 6], [3, 4, 5, 6, 7, 8]),
        ("davis2017", [0, 3], [1, 2, 3, 4, 5, 6, 7]),
        ("davis2017", [1, 3], []),  # no object of the first frame
    ],
)
def test_an_object_lives_from_its_first_frame_to_the_end(protocol: str, frames: list[int], counted: list[int]) -> None:
    objects = choose_objects(seen_in(frames), SEQUENCE_PROTOCOLS[protocol])
    assert [np.flatnonzero(flags).tolist() for flags in objects.values()] == ([counted] if counted else [])
