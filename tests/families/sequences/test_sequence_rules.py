"""Rules of the sequence track, one by one, on masks and series whose scores are known by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from segjudge.evaluation_script.families.base.reports import standard_errors
from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import metrics as sequence_metrics
from segjudge.evaluation_script.families.sequences.counting import _strict_boundary, choose_objects
from segjudge.evaluation_script.families.sequences.layouts import LAYOUTS
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.families.sequences.truth import (
    _BLOCK_FRAMES,
    ObjectFacts,
    Sequence,
    blocks_of,
    flags_of,
    is_number,
    label_order,
    ranges_of,
)
from segjudge.evaluation_script.files.limits import ArchiveLimits
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.evaluation_script.masks.similarity import Counts, Region, fractional_disk, region_similarity
from segjudge.evaluation_script.masks.stack import labels_in
from tests.builders import drawn, label_zip, png, score_sequences, stack_of, zipped
from tests.drawing import examples
from tests.families.sequences.test_sequences import BIG, BOTH, NONE, ONE, SMALL, TRUTH, score

TWO = (SMALL * 2).astype(np.uint8)


def values_of(videos: Any, prediction: Any, protocol: str, tmp_path: Path, **options: Any) -> Any:
    return score(videos, prediction, protocol, tmp_path, **options)[0]


def split_of(files: dict[str, bytes], tmp_path: Path, layout: str = "generic", **options: Any) -> Any:
    (tmp_path / "truth.zip").write_bytes(zipped(files))
    return dataset_reader.read(str(tmp_path / "truth.zip"), LAYOUTS[layout], **options).splits["val"]


def sent(files: dict[str, bytes], split: Any, protocol: str, tmp_path: Path, **options: Any) -> Any:
    (tmp_path / "sent").write_bytes(zipped(files))
    return score_sequences(str(tmp_path / "sent"), split, SEQUENCE_PROTOCOLS[protocol], ArchiveLimits(), **options)


# ── which frames and objects count ──────────────────────────────────────────


@pytest.mark.parametrize("protocol", ["lvos", "youtube-vos", "lvos-unsupervised"])
def test_an_object_needs_four_frames_from_its_first(protocol: str, tmp_path: Path) -> None:
    for first, names in ((2, ["a/1", "a/2"]), (3, ["a/1"])):
        video = {"a": [BOTH if k >= first else ONE for k in range(6)]}
        assert list(values_of(video, video, protocol, tmp_path)) == names


@pytest.mark.parametrize(("count", "frames"), [("3", [(1, 4)]), ("1", [(1, 2)]), ("9", [(1, 5)]), ("0", [])])
def test_an_interval_of_lvos_is_as_many_fifth_frames_as_it_says(count: str, frames: Any, tmp_path: Path) -> None:
    facts = {"frame_range": {"start": "11", "end": "26", "frame_nums": count}}
    files = {f"Annotations/a/{k:08d}.png": png(BOTH) for k in (6, 11, 16, 21, 26)}
    files["valid_meta.json"] = json.dumps({"videos": {"a": {"objects": {"2": facts}}}}).encode()
    (sequence,) = split_of(files, tmp_path, "lvos").sequences
    assert sequence.objects["2"].lifespan == frames
    assert sequence.objects["1"].lifespan is None


def test_frames_between_the_fifth_ones_are_not_in_an_interval(tmp_path: Path) -> None:
    facts = {"frame_range": {"start": "1", "end": "11", "frame_nums": "2"}}
    files = {f"Annotations/a/{name}.png": png(ONE) for name in ("00000001", "00000003", "00000006", "first")}
    files["valid_meta.json"] = json.dumps({"videos": {"a": {"objects": {"1": facts}}}}).encode()
    (sequence,) = split_of(files, tmp_path, "lvos").sequences
    assert sequence.objects["1"].lifespan == [(0, 1), (2, 3)]


FRAMES = {
    "davis2017": range(1, 5),
    "davis2017-unsupervised": range(6),
    "lvos": range(1, 5),
    "lvos-unsupervised": range(6),
    "vost": range(1, 5),
    "vos-benchmark": range(1, 5),
    "vos-benchmark-all-frames": range(6),
    "sav": range(1, 5),
    "mosev2": range(1, 5),
    "mose": range(1, 5),
    "youtube-vos": range(1, 6),
}


@pytest.mark.parametrize("protocol", FRAMES)
def test_each_protocol_skips_its_frames(protocol: str, tmp_path: Path) -> None:
    video = label_zip({"b": [ONE] * 6})
    (tmp_path / "t.zip").write_bytes(video)
    split = dataset_reader.read(str(tmp_path / "t.zip")).splits["val"]
    (item,), _ = score_sequences(str(tmp_path / "t.zip"), split, SEQUENCE_PROTOCOLS[protocol], ArchiveLimits())
    assert item.frames == [f"{k:05d}" for k in FRAMES[protocol]]
    assert len(item.j) == len(item.f) == len(FRAMES[protocol])


@pytest.mark.parametrize(
    ("label", "number"), [("1", True), ("255", True), ("65535", True), ("0", False), ("01", False), ("000", False)]
)
def test_a_label_with_leading_zeros_is_a_name(label: str, number: bool) -> None:
    assert is_number(label) is number


@pytest.mark.parametrize("label", ["", "100000", "1a", "-1", "+1", "1.0", "\u0661", "²", " 1"])
def test_what_is_no_label_of_an_image_is_a_name(label: str) -> None:
    assert not is_number(label)


def test_labels_are_in_the_order_of_their_numbers_and_names_follow() -> None:
    assert sorted(["b", "10", "9", "007", "a", "1"], key=label_order) == ["1", "9", "10", "007", "a", "b"]


def test_folders_with_leading_zeros_are_objects_of_their_own(tmp_path: Path) -> None:
    """In a protocol that counts objects up to the largest number, `002` is not one of them."""
    files = {f"a/{name}/{k:05d}.png": png(mask * 1) for name, mask in (("1", ONE), ("002", TWO)) for k in range(4)}
    split = split_of(files, tmp_path, "sav")
    assert list(split.sequences[0].objects) == ["1", "002"]
    scores, _ = sent(files, split, "davis2017", tmp_path)
    assert [score.name for score in scores] == ["1"]
    scores, _ = sent(files, split, "sav", tmp_path)
    assert [score.name for score in scores] == ["1", "002"]


def test_numbers_between_the_largest_and_one_are_objects_too(tmp_path: Path) -> None:
    far = (BIG * 3).astype(np.uint8)
    assert list(values_of({"a": [far] * 4}, {"a": [far] * 4}, "davis2017", tmp_path)) == ["a/1", "a/2", "a/3"]
    later = {"a": [ONE, BOTH, BOTH, BOTH]}
    assert list(values_of(later, later, "davis2017", tmp_path)) == ["a/1"]
    assert list(values_of(later, later, "mosev2", tmp_path)) == ["a/1"]
    assert list(values_of(later, later, "vos-benchmark", tmp_path)) == ["a/1", "a/2"]


def test_an_object_of_skipped_frames_alone_is_not_seen(tmp_path: Path) -> None:
    videos = {"a": [BOTH, ONE, ONE, BOTH], "c": [ONE, TWO, TWO, NONE]}
    assert list(values_of(videos, videos, "vos-benchmark", tmp_path)) == ["a/1", "c/2"]


def test_everything_but_zero_is_foreground_in_davis_2016(tmp_path: Path) -> None:
    truth, prediction = {"a": [BOTH] * 4}, {"a": [(BIG | SMALL) * np.uint8(9)] * 4}
    scored = values_of(truth, prediction, "davis2016", tmp_path)
    assert [(name, values["J-Mean"]) for name, values in scored.items()] == [("a/1", 1.0)]
    assert list(values_of({"a": [ONE * 5] * 4}, prediction, "davis2016", tmp_path)) == ["a/1"]


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


def test_sequences_of_other_splits_may_be_sent_too(tmp_path: Path) -> None:
    prediction = {**TRUTH, "other": [ONE], "stranger": [ONE]}
    _, warnings = score(TRUTH, prediction, "davis2017", tmp_path, elsewhere=frozenset({"other"}))
    assert warnings == ["extra files: not part of any sequence of this phase, so not scored: stranger"]
    assert (
        score(TRUTH, {**TRUTH, "other": [ONE]}, "davis2017", tmp_path, elsewhere=frozenset({"other"}), strict=True)[1]
        == []
    )


def test_masks_of_other_splits_alone_are_not_taken_for_a_lone_sequence(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="1 of 1 sequence is missing: b"):
        score({"b": [ONE] * 3}, {"other": [ONE] * 3}, "davis2017", tmp_path, elsewhere=frozenset({"other"}))


def test_json_may_name_the_sequences_of_other_splits(tmp_path: Path) -> None:
    rle = {"size": [6, 8], "counts": [48]}
    document = {"b": {"1": [rle] * 3}, "other": {}, "stranger": {}}
    _, warnings = score(
        {"b": [ONE] * 3}, json.dumps(document).encode(), "davis2017", tmp_path, elsewhere=frozenset({"other"})
    )
    assert warnings == ["extra files: not part of any sequence of this phase, so not scored: stranger"]
    alone = json.dumps({"other": {}}).encode()
    with pytest.raises(SubmissionError, match="1 of 1 sequence is missing: b"):
        score({"b": [ONE] * 3}, alone, "davis2017", tmp_path, elsewhere=frozenset({"other"}))


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


def test_files_that_are_no_masks_are_named(tmp_path: Path) -> None:
    files = {f"b/{k:05d}.png": png(ONE) for k in range(3)}
    _, warnings = score({"b": [ONE] * 3}, zipped({**files, "b/x.txt": b"x", "y.csv": b"y"}), "davis2017", tmp_path)
    assert warnings == ["extra files: not part of any sequence of this phase, so not scored: b/x.txt, y.csv"]


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


def test_progress_names_each_sequence_and_ends(tmp_path: Path) -> None:
    heard: list[Any] = []
    score(TRUTH, TRUTH, "davis2017", tmp_path, progress=lambda *what: heard.append(what))
    assert heard == [("a", 0, 2), ("b", 1, 2), ("", 2, 2)]


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


# ── run lengths in JSON ─────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (compress([40, -2, 10]), "has counts below zero or beyond the frame"),
        (compress([50, 0, -2]), "has counts below zero or beyond the frame"),
        (compress([40, 8]) + "0", None),
        ("X" + "P" * 4 + "0" + "X1", None),
        ("X" + "P" * 5 + "0" + "X1", "has counts that end too early or do not end"),
        ("X" + "P" * 9 + "0" + "X1", "has counts that end too early or do not end"),
    ],
)
def test_run_lengths_of_a_sequence_are_believed_when_they_are_sound(
    counts: str, sentence: str | None, tmp_path: Path
) -> None:
    """`X` is 8 and continues, `P` is zero and continues: six characters are a number, seven are not."""
    document = json.dumps({"b": {"1": [{"size": [6, 8], "counts": counts}] * 3}}).encode()
    if sentence is None:
        assert score({"b": [ONE] * 3}, document, "davis2017", tmp_path)[0]
        return
    with pytest.raises(SubmissionError, match=f"b, object 1, mask 1: {sentence}"):
        score({"b": [ONE] * 3}, document, "davis2017", tmp_path)


# ── label images ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("label", [1, 24, 25, 200, 65_535])
@pytest.mark.parametrize("place", [0, 5, -1])
def test_a_label_of_one_pixel_is_found_wherever_it_lies(label: int, place: int) -> None:
    image = np.zeros((2, 3, 4), np.uint16)
    image.reshape(-1)[place] = label
    assert label in labels_in(image)
    assert 0 not in labels_in(image)


@examples(50)
@given(hnp.arrays(np.uint8, (2, 3, 4), elements=st.sampled_from([0, 1, 2, 30, 99, 255])))
def test_many_labels_are_exactly_those_that_occur(image: Any) -> None:
    expected = sorted(set(image.reshape(-1).tolist()) - {0})
    labels = labels_in(image)
    assert labels == expected if image.max() > 24 else set(labels) >= set(expected)


def salient(tmp_path: Path, image: Any) -> float:
    scored = values_of({"b": [ONE] * 4}, {"b": [image] * 4}, "lvos-unsupervised-single", tmp_path)
    return float(scored["b/1"]["J-Mean"])


@pytest.mark.parametrize(("grey", "foreground"), [(1, False), (126, False), (127, True), (128, True), (254, True)])
def test_grey_levels_of_a_salient_mask_are_cut_in_the_middle(grey: int, foreground: bool, tmp_path: Path) -> None:
    image = ONE * 255
    image[5] = grey
    assert salient(tmp_path, image) == (12 / 20 if foreground else 1.0)


@pytest.mark.parametrize("value", [1, 255])
def test_a_salient_mask_of_two_values_is_not_cut(value: int, tmp_path: Path) -> None:
    assert salient(tmp_path, ONE * value) == 1.0


@pytest.mark.parametrize("value", [2, 128, 254])
def test_a_salient_mask_of_another_value_is_refused(value: int, tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match=rf"b: each of 4 files .* holds the values \[0, {value}\]"):
        salient(tmp_path, ONE * value)


def test_many_frames_are_read_in_blocks_of_one_size() -> None:
    assert _BLOCK_FRAMES == 16
    blocks = list(blocks_of([(10, 20)] * 17 + [(20, 10)] * 2 + [(3000, 3000)] * 2))
    assert [(block.start, block.stop, block.size) for block in blocks] == [
        (0, 16, (10, 20)),
        (16, 17, (10, 20)),
        (17, 19, (20, 10)),
        (19, 20, (3000, 3000)),
        (20, 21, (3000, 3000)),
    ]
    assert [(block.start, block.stop) for block in blocks_of([(2048, 2048)] * 3)] == [(0, 2), (2, 3)]


@given(hnp.arrays(bool, st.integers(0, 20)))
def test_flags_and_ranges_say_the_same(flags: Any) -> None:
    assert flags_of(ranges_of(flags), len(flags)).tolist() == flags.tolist()


# ── statistics ──────────────────────────────────────────────────────────────


def test_recall_counts_what_is_above_one_half() -> None:
    assert sequence_metrics.recall(np.array([0.5, 0.51, 0.49, 1.0])) == 0.5
    assert sequence_metrics.recall(np.array([])) is None
    assert sequence_metrics.mean(np.array([])) is None
    assert sequence_metrics._decay(np.array([])) is None


def test_decay_is_the_first_quarter_less_the_last() -> None:
    assert sequence_metrics._decay(np.array([1.0, 0.5, 0.5, 0.25])) == pytest.approx(0.75 - 0.375)
    assert sequence_metrics._decay(np.array([0.7])) == 0.0
    assert sequence_metrics._decay(np.arange(9.0)) == -6.0, "frames 0 to 2 and 6 to 8"


def test_decay_has_no_value_where_a_quarter_has_none() -> None:
    assert sequence_metrics._decay(np.array([math.nan, math.nan, 0.5, 0.5])) is None
    assert sequence_metrics._decay(np.array([0.5, 0.5, math.nan, math.nan])) is None
    assert sequence_metrics._decay(np.array([math.nan, 0.5, math.nan, 0.25])) == 0.25


def test_a_disk_of_a_broken_radius_lies_off_its_centre() -> None:
    assert fractional_disk(1.5) == ((-1, -1, 0), (0, -1, 0))
    assert fractional_disk(0.3) == ((-1, -1, -1),)
    assert fractional_disk(2.6) == ((-2, -2, 1), (-1, -2, 2), (0, -2, 2), (1, -2, 1), (2, -1, 0))


def test_consistency_is_the_root_of_a_variance_of_four_decimals() -> None:
    assert sequence_metrics.consistency(np.array([0.5, 0.7])) == pytest.approx(0.1)
    assert sequence_metrics.consistency(np.array([0.5, 0.507])) == 0.0
    assert sequence_metrics.consistency(np.array([0.5, 0.515])) == pytest.approx(0.01)
    assert sequence_metrics.consistency(np.array([])) is None


def test_consistency_is_summed_as_lvos_stores_the_frames() -> None:
    """For methods without a first mask, LVOS adds the first frame last, which changes the fourth decimal."""
    values = np.array([0.2, 0.88, 0.56, 0.35, 0.0, 0.95, 0.15, 0.83])
    for protocol, order in (("lvos", values), ("lvos-unsupervised-single", np.roll(values, -1))):
        counts = Counts(*np.ones((7, 8), np.int64))
        results = sequence_metrics.summary(counts, values, values, SEQUENCE_PROTOCOLS[protocol])
        assert results["V-Mean"] == sequence_metrics.consistency(order)


def test_the_last_quarter_begins_after_three(tmp_path: Path) -> None:
    """Of four scored frames the last is correct, of five the last two."""
    for count, right, late in ((6, [4], 1.0), (6, [3], 0.0), (7, [5], 0.5), (7, [4, 5], 1.0), (7, [3], 0.0)):
        prediction = {"b": [ONE if k in right else NONE for k in range(count)]}
        values = values_of({"b": [ONE] * count}, prediction, "vost", tmp_path)["b/1"]
        assert values["J_last-Mean"] == late, (count, right)
        assert values["J-Mean"] == pytest.approx(len(right) / (count - 2))


def test_reappearance_is_scored_by_absences_and_returns() -> None:
    visible = np.array([True, True, False, False, True, False, True, True])
    j, f_new, f = np.arange(8) / 10, np.arange(8) / 20, np.arange(8) / 40
    values = sequence_metrics.reappearance(j, f_new, f, visible)
    assert values["J-Mean"] == pytest.approx(0.35)
    assert values["F_new-Mean"] == pytest.approx(0.175)
    assert values["F-Mean"] == pytest.approx(0.0875)
    assert values["disappear_J-Mean"] == pytest.approx((0.25 + 0.5) / 2), "frames 2 and 3, and 5"
    assert values["disappear_F_new-Mean"] == pytest.approx((0.125 + 0.25) / 2)
    assert values["reappear_J-Mean"] == pytest.approx((0.4 + 0.65) / 2), "frame 4, and 6 and 7"
    assert values["reappear_F_new-Mean"] == pytest.approx((0.2 + 0.325) / 2)


def test_an_object_that_begins_hidden_has_no_absence_but_a_return() -> None:
    """The object's first return is paired with the absence that follows it."""
    visible = np.array([False, True, True, False])
    series = np.array([0.1, 0.2, 0.4, 0.8])
    values = sequence_metrics.reappearance(series, series, series, visible)
    assert values["disappear_J-Mean"] == pytest.approx(0.8)
    assert values["reappear_J-Mean"] == pytest.approx(0.3)
    always = sequence_metrics.reappearance(series, series, series, np.ones(4, bool))
    assert always["disappear_J-Mean"] is always["reappear_J-Mean"] is None


def test_the_second_f_matches_within_a_tenth_of_the_root_of_the_area() -> None:
    """400 pixels reach 2 pixels; the frame's own tolerance is 5, and a square moved by 3 is outside the first."""
    from segjudge.evaluation_script.masks.similarity import Region, diagonal_tolerance
    from tests.builders import stack_of

    truth = np.zeros((360, 480), bool)
    truth[100:120, 100:120] = True
    assert diagonal_tolerance((360, 480)) == pytest.approx(4.8)
    for moved, expected in ((0, 1.0), (2, 1.0), (3, 0.9)):
        new, usual = _strict_boundary(Region(stack_of(truth)), Region(stack_of(np.roll(truth, moved, 1))))
        assert usual[0] == 1.0
        assert (new[0] == 1.0) == (expected == 1.0), moved
    empty = np.zeros_like(truth)
    new, usual = _strict_boundary(Region(stack_of(empty)), Region(stack_of(truth)))
    assert (new[0], usual[0]) == (0.0, 0.0)


def test_two_empty_masks_agree_in_mosev2_and_full_ones_do_not_exceed_one() -> None:
    from segjudge.evaluation_script.masks.similarity import Counts

    truth, prediction, shared = np.array([0, 4, 0, 3]), np.array([0, 4, 1, 3]), np.array([0, 4, 0, 0])
    counts = Counts(truth, prediction, shared, *[np.zeros(4, int)] * 4)
    assert sequence_metrics._smooth_similarity(counts).tolist() == [1.0, 1.0, 0.5, 1 / 7]


def test_one_pixel_is_added_to_both_sides_of_the_fraction_in_mosev2(tmp_path: Path) -> None:
    big = np.kron(ONE, np.ones((20, 20), np.uint8))
    half = big.copy()
    half[:, 60:] = 0
    values = values_of({"b": [big] * 3}, {"b": [half] * 3}, "mosev2", tmp_path)["b/1"]
    assert values["J-Mean"] == pytest.approx((half.sum() + 1) / (big.sum() + 1))


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


def test_a_mean_of_classes_is_the_mean_of_seen_and_unseen() -> None:
    scores = [object_score("a", "1", J=0.9), object_score("a", "2", J=0.7), object_score("b", "1", True, J=0.2)]
    values = sequence_metrics._ScoreTable(scores, SEQUENCE_PROTOCOLS["youtube-vos"]).means()
    assert values["J-seen-Mean"] == pytest.approx(0.8)
    assert values["J-unseen-Mean"] == pytest.approx(0.2)
    assert values["J-Mean"] == pytest.approx(0.5)
    assert values["F-Mean"] is None
    assert values["J&F-Mean"] == pytest.approx(0.5), "of the parts that are there"


def test_standard_errors_leave_out_what_a_sequence_alone_has() -> None:
    scores = [object_score("a", "1", J=0.9, F=0.3), object_score("b", "1", J=0.5), object_score("c", "1", J=0.1)]
    errors = standard_errors(
        sequence_metrics._ScoreTable(scores, SEQUENCE_PROTOCOLS["vos-benchmark"]).means_without_each()
    )
    means = np.array([0.3, 0.5, 0.7])
    assert errors["J-Mean"] == pytest.approx(math.sqrt(2 / 3 * ((means - 0.5) ** 2).sum()))
    assert "F-Mean" not in errors
    assert set(
        standard_errors(
            sequence_metrics._ScoreTable(scores[:2], SEQUENCE_PROTOCOLS["vos-benchmark"]).means_without_each()
        )
    ) == {
        "J-Mean",
        "J&F-Mean",
    }


# ── proposals ───────────────────────────────────────────────────────────────


def test_proposals_beyond_twenty_are_not_matched_where_they_are_ignored(tmp_path: Path) -> None:
    for number, expected in ((20, 1.0), (21, 0.0)):
        scored, warnings = score({"a": [ONE] * 4}, {"a": [ONE * number] * 4}, "lvos-unsupervised", tmp_path)
        assert scored["a/1"]["J-Mean"] == expected
        assert bool(warnings) == (number == 21)


def test_a_proposal_is_matched_by_region_and_boundary_together(tmp_path: Path) -> None:
    """Of two proposals, the second object gets the one that the first leaves."""
    labels = (BIG * 5 + SMALL * 2).astype(np.uint8)
    scored, _ = score({"a": [BOTH] * 4}, {"a": [labels] * 4}, "davis2017-unsupervised", tmp_path)
    assert [values["J-Mean"] for values in scored.values()] == [1.0, 1.0]
    (tmp_path / "t.zip").write_bytes(label_zip({"a": [BOTH] * 4}))
    (tmp_path / "p.zip").write_bytes(label_zip({"a": [labels] * 4}))
    split = dataset_reader.read(str(tmp_path / "t.zip")).splits["val"]
    scores, _ = score_sequences(
        str(tmp_path / "p.zip"), split, SEQUENCE_PROTOCOLS["davis2017-unsupervised"], ArchiveLimits()
    )
    assert [score.proposal for score in scores] == [5, 2]


def test_an_unmatched_object_scores_nothing(tmp_path: Path) -> None:
    scored, _ = score({"a": [BOTH] * 4}, {"a": [ONE] * 4}, "davis2017-unsupervised", tmp_path)
    assert [values["J-Mean"] for values in scored.values()] == [1.0, 0.0]


def test_frames_of_the_truth_that_are_empty_count_as_agreeing(tmp_path: Path) -> None:
    truth = {"a": [ONE, NONE, NONE, ONE, ONE]}
    values = values_of(truth, {"a": [NONE] * 5}, "davis2017", tmp_path)["a/1"]
    assert values["J-Mean"] == values["F-Mean"] == pytest.approx(2 / 3)
    assert (values["False-Alarm"], values["J-Visible"], values["J-Volume"]) == (0.0, 0.0, 0.0)
    assert values["F-Volume"] == values["F-Visible"] == 0.0


def test_an_object_counts_from_the_frame_in_which_either_side_shows_it(tmp_path: Path) -> None:
    truth = {"a": [NONE, NONE, NONE, ONE, ONE, ONE]}
    for prediction, frames in (([NONE] * 6, 2), ([NONE, NONE, ONE, NONE, NONE, NONE], 3), ([ONE] * 6, 4)):
        (tmp_path / "t.zip").write_bytes(label_zip(truth))
        (tmp_path / "p.zip").write_bytes(label_zip({"a": prediction}))
        split = dataset_reader.read(str(tmp_path / "t.zip")).splits["val"]
        (item,), _ = score_sequences(
            str(tmp_path / "p.zip"), split, SEQUENCE_PROTOCOLS["vos-benchmark"], ArchiveLimits()
        )
        assert len(item.frames) == frames


def test_objects_may_not_share_pixels_where_each_pixel_is_one_objects(tmp_path: Path) -> None:
    split = split_of({f"v/{k:05d}.png": png(BOTH) for k in range(4)}, tmp_path)
    upper, lower = drawn("########", *["........"] * 5), drawn(*["........"] * 5, "#.......")
    apart = {f"v/{label}/{k:05d}.png": png(item) for label, item in (("1", upper), ("2", lower)) for k in range(4)}
    sent(apart, split, "davis2017", tmp_path)
    apart["v/2/00002.png"] = png(drawn(".......#", *["........"] * 5))
    with pytest.raises(SubmissionError, match=r"^v, frame 00002: objects 1 and 2 share pixels"):
        sent(apart, split, "davis2017", tmp_path)


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


def test_a_sequence_holds_masks_or_folders_of_masks(tmp_path: Path) -> None:
    files = {f"b/{k:05d}.png": png(ONE) for k in range(4)}
    mixed = {**files, **{f"b/1/{k:05d}.png": png(ONE) for k in range(4)}}
    with pytest.raises(SubmissionError, match="^b: holds both masks and folders of masks"):
        score({"b": [ONE] * 4}, zipped(mixed), "davis2017", tmp_path)


def test_as_many_objects_as_the_limit_allows(tmp_path: Path) -> None:
    split = split_of({f"v/{k:05d}.png": png(ONE) for k in range(4)}, tmp_path)
    limits = replace(ArchiveLimits(), objects=2)
    for labels, fits in (([1, 2], True), ([1, 2, 3], False)):
        image = np.zeros((6, 8), np.uint8)
        image[0, : len(labels)] = labels
        folders = {f"v/{label}/{k:05d}.png": png(image == label) for label in labels for k in range(4)}
        runs = [{"size": [6, 8], "counts": [48]}] * 4
        document = json.dumps({"v": {str(label): runs for label in labels}}).encode()
        for data in (label_zip({"v": [image * 20] * 4}), zipped(folders), document):
            (tmp_path / "sent").write_bytes(data)
            if fits:
                assert score_sequences(str(tmp_path / "sent"), split, SEQUENCE_PROTOCOLS["davis2017"], limits)[0]
                continue
            with pytest.raises(SubmissionError, match="has 3 objects; this phase allows 2 in a sequence"):
                score_sequences(str(tmp_path / "sent"), split, SEQUENCE_PROTOCOLS["davis2017"], limits)


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


def test_an_object_that_leaves_is_scored_while_it_is_gone(tmp_path: Path) -> None:
    video = {"a": [ONE, ONE, NONE, NONE, ONE, ONE]}
    alarm = {"a": [ONE, ONE, ONE, NONE, ONE, ONE]}
    assert values_of(video, video, "lvos", tmp_path)["a/1"]["J-Mean"] == 1
    assert values_of(video, alarm, "lvos", tmp_path)["a/1"]["J-Mean"] == 0.75  # of frames 1 to 4 one is a false alarm


def test_the_second_f_takes_the_frames_tolerance_where_the_objects_is_as_wide() -> None:
    """In 60×80 pixels boundaries match at 0.8; a tenth of the root of 100 pixels is 1, which is not less."""
    truth, moved = (np.zeros((60, 80), bool) for _ in range(2))
    truth[20:30, 20:30] = moved[20:30, 21:31] = True
    results = _strict_boundary(Region(stack_of(truth)), Region(stack_of(moved)))
    assert [values.tolist() for values in results] == [[0.5], [0.5]]  # two rings of 40 pixels share 20


def test_the_second_f_takes_the_objects_tolerance_where_that_is_less() -> None:
    """In 600×800 pixels boundaries match at 8; a tenth of the root of 400 pixels is 2."""
    truth, moved = (np.zeros((600, 800), bool) for _ in range(2))
    truth[20:40, 20:40] = moved[20:40, 23:43] = True
    second, first = _strict_boundary(Region(stack_of(truth)), Region(stack_of(moved)))
    # Of a ring of 80 pixels the outer side is 3 away, 21 pixels, and of the inner side all but 3 pixels at either end.
    assert first.tolist() == [1.0]
    assert second.tolist() == [pytest.approx(44 / 80)]


def test_the_cases_of_a_mean_over_classes_are_the_fewer_of_both() -> None:
    values = {"J-Mean": 0.5, "F-Mean": 0.5, "V-Mean": 0.1, **dict.fromkeys(sequence_metrics.BESIDE, 0.5)}
    for seen, unseen, fewer in ((7, 3, 3), (3, 7, 3), (5, 0, 5), (0, 4, 4), (2, 2, 2)):
        flags = [False] * seen + [True] * unseen
        scores = [object_score(f"{k}", "1", flag, **values) for k, flag in enumerate(flags)]
        scores += [object_score("0", "2", flags[0], **values)]  # another object is not another case
        table = sequence_metrics._ScoreTable(scores, SEQUENCE_PROTOCOLS["lvos"])
        assert table.count_cases("J&F-Mean") == fewer
        assert (table.count_cases("J-seen-Mean"), table.count_cases("J-unseen-Mean")) == (seen, unseen)
        assert table.count_cases("J-Volume") == seen + unseen
        plain = sequence_metrics._ScoreTable(scores, SEQUENCE_PROTOCOLS["davis2017"])
        assert plain.count_cases("J&F-Mean") == seen + unseen


def counts_of(truth: list[int], prediction: list[int], shared: list[int]) -> Counts:
    zeros = np.zeros(len(truth), np.int64)
    return Counts(np.array(truth), np.array(prediction), np.array(shared), zeros, zeros, zeros, zeros)


def test_one_pixel_is_a_mask(tmp_path: Path) -> None:
    """A false alarm, a visible object, and the first counted frame in sav each need a single pixel."""
    counts = counts_of([1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 0, 1])
    j = region_similarity(counts)
    assert j.tolist() == [0, 0, 1, 1]
    own_statistics = sequence_metrics._own_statistics(counts, j, j)
    assert (own_statistics["J-Visible"], own_statistics["False-Alarm"]) == (0.5, 0.5)
    assert own_statistics["J-Volume"] == 1 / 3  # one pixel shared, of two and two
    nothing, dot = np.zeros_like(ONE), np.zeros_like(ONE)
    dot[2, 3] = 1
    for truth, prediction, expected in (
        ([nothing, nothing, nothing, dot, dot, dot], [nothing, nothing, dot, dot, dot, dot], 2 / 3),  # frames 2, 3, 4
        ([nothing, nothing, dot, dot, dot, dot], [nothing, nothing, nothing, dot, dot, dot], 2 / 3),
        ([nothing, nothing, nothing, dot, dot, dot], [nothing, nothing, nothing, dot, dot, dot], 1),
    ):
        assert values_of({"a": truth}, {"a": prediction}, "sav", tmp_path)["a/1"]["J-Mean"] == pytest.approx(expected)


def test_sums_and_means_without_a_sequence_leave_out_what_has_no_value() -> None:
    scores = [
        object_score("a", "1", J=0.9, F=0.5), object_score("a", "2", F=0.3), object_score("b", "1", J=0.2, F=0.1),
        object_score("c", "1", F=0.7),
    ]  # fmt: skip
    table = sequence_metrics._ScoreTable(scores, SEQUENCE_PROTOCOLS["vos-benchmark"])
    sums, counts = table.sums("J-Mean")
    assert (sums.tolist(), counts.tolist()) == ([0.9, 0.2, 0.0], [1, 1, 0])
    left = table.means_without_each()
    assert left["J-Mean"].tolist() == [pytest.approx(0.2), pytest.approx(0.9), pytest.approx(0.55)]
    assert left["F-Mean"].tolist() == [pytest.approx(0.4), pytest.approx(0.5), pytest.approx(0.3)]
    assert left["J&F-Mean"].tolist() == [pytest.approx(number) for number in (0.3, 0.7, 0.425)]
