"""Tracks on masks: every number of TrackEval, merging, and the cost of hostile submissions."""

from __future__ import annotations

import copy
import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

import pytest

from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
from segjudge.evaluation_script.families.tracking import engine as tracks
from segjudge.evaluation_script.families.tracking import files as tracks_files
from segjudge.evaluation_script.families.tracking.counting import measure_hota
from segjudge.evaluation_script.families.tracking.protocols import DISTRACTORS, MERGED, TRACKS_PROTOCOLS
from segjudge.evaluation_script.files.problems import Flaw, HostError, SubmissionError
from segjudge.evaluation_script.masks import run_lengths as rle
from tests.builders import zipped
from tests.data import TRACKS_DATA
from tests.families.unit_counts import CLOSE, count_units, pack_units, read_golden, score_units
from tests.hostile_units import sentence_of
from tests.shared import needs_shared

MOTS, BURST = TRACKS_DATA / "mots", TRACKS_DATA / "burst"
#: Names in MOTS's papers, and in TrackEval.
NAMES = {"sMOTSA": "sMOTA", "MOTSA": "MOTA", "MOTSP": "MOTP", "IDSW": "IDSW"}


def test_lines_may_end_as_on_any_system() -> None:
    line = "1 2001 2 10 10 abc"
    assert tracks_files._read_lines(f"{line}\r\n\r\n {line}\r\r", None) == (
        {1: [[2001, 2, "abc"], [2001, 2, "abc"]]}, (10, 10),
    )  # fmt: skip
    for wrong in ("a\rb", "a b", "abc \r"):
        with pytest.raises(Flaw, match="line 2 is not"):
            tracks_files._read_lines(f"{line}\r\n1 2001 2 10 10 {wrong}\n", None)


@needs_shared
@pytest.mark.parametrize("name", read_golden(MOTS)["sequences"])
def test_sequences_score_as_trackeval_says(name: str, tmp_path: Path) -> None:
    expected = read_golden(MOTS)["sequences"][name]
    published = tracks_files.read_truth(str(MOTS / "gt"), "")
    chosen = [unit for unit in published.units if name in ("COMBINED_SEQ", unit.name)]
    for truth in (replace(published, units=chosen), pack_units(replace(published, units=chosen), tmp_path)):
        accumulator = count_units(MOTS / "trackers" / "ours" / "data", truth, "mots")
        results = tracks.values(accumulator)
        assert list(results) == list(TRACKS_PROTOCOLS["mots"].metrics)
        for metric, value in expected["HOTA_mean_over_alphas"].items():
            assert results[metric] == pytest.approx(value, **CLOSE)
        (hota,) = sum(counts.tables["hota"] for counts in accumulator.complete_counts() if len(counts.tables["hota"]))
        for metric, curve in measure_hota(hota).items():
            assert curve.tolist() == [pytest.approx(value, **CLOSE) for value in expected["HOTA"][metric]]
        assert results["IDF1"] == pytest.approx(expected["Identity"]["IDF1"], **CLOSE)
        if expected["Identity"]["IDTP"] + expected["Identity"]["IDFN"]:  # otherwise TrackEval adds up errors
            for metric, official in NAMES.items():
                assert results[metric] == pytest.approx(expected["CLEAR"][official], **CLOSE)


@needs_shared
@pytest.mark.parametrize(
    ("task", "protocol"), [("class-guided", "burst-official"), ("exemplar-guided", "burst-exemplar-guided-official")]
)
def test_burst_scores_as_trackeval_says(task: str, protocol: str, tmp_path: Path) -> None:
    expected = read_golden(BURST)[task]
    published = tracks_files.read_truth(str(BURST / "truth.json"), "")
    for truth in (published, pack_units(published, tmp_path)):
        accumulator = count_units(BURST / f"{task}.json", truth, protocol)
        results = tracks.values(accumulator)
        assert list(results) == list(TRACKS_PROTOCOLS[protocol].metrics)
        for group, suffix in (("all", ""), ("common", "-common"), ("uncommon", "-uncommon")):
            for metric, value in expected["summary"][group].items():
                assert results[f"{metric}{suffix}"] == pytest.approx(value, **CLOSE)
        rows = {str(row["id"]): row for row in tracks.tables(accumulator)["categories"]}
        assert rows.keys() == expected["classes"].keys()
        for category, measures in expected["classes"].items():
            for metric in ("HOTA", "DetA", "AssA", "DetRe", "LocA", "OWTA", "AP"):
                assert rows[category][metric] == pytest.approx(measures[metric], **CLOSE)


@needs_shared
@pytest.mark.parametrize(
    ("task", "protocol"), [("class-guided", "burst"), ("exemplar-guided", "burst-exemplar-guided")]
)
def test_by_default_burst_compares_masks_which_scores_otherwise(task: str, protocol: str) -> None:
    truth = tracks_files.read_truth(str(BURST / "truth.json"), "")
    units = score_units(BURST / f"{task}.json", truth, protocol)
    boxes = score_units(BURST / f"{task}.json", truth, f"{protocol}-official")
    assert units["AP"] == boxes["AP"]
    assert units["HOTA"] != boxes["HOTA"]


SIZE = (20, 30)


def mask(left: int, width: int = 4) -> str:
    """Return a mask of some columns of the frame from `left` on."""
    height, whole = SIZE[0], SIZE[0] * SIZE[1]
    return rle.compress([left * height, width * height, whole - (left + width) * height])


def line(frame: int, track: int, category: int, counts: str, size: tuple[int, int] = SIZE) -> str:
    return f"{frame} {track} {category} {size[0]} {size[1]} {counts}\n"


PERFECT = "".join(line(frame, track, 2, mask(6 * track)) for frame in (1, 2, 3) for track in (1, 2))


def mots_truth(folder: Path, text: str = PERFECT) -> UnitTruth:
    (folder / "gt" / "a" / "gt").mkdir(parents=True)
    (folder / "gt" / "a" / "gt" / "gt.txt").write_text(text)
    (folder / "gt" / "a" / "seqinfo.ini").write_text("[Sequence]\nseqLength=3\nimWidth=30\nimHeight=20\n")
    return tracks_files.read_truth(str(folder / "gt"), "")


def texts(text: str | bytes, **files: bytes) -> bytes:
    return zipped({"a.txt": text, **files})


def test_what_lies_in_ignored_regions_is_left_out_unless_it_matches(tmp_path: Path) -> None:
    truth = mots_truth(tmp_path, PERFECT + line(1, 10000, 10, mask(20, 6)))
    (tmp_path / "upload").write_bytes(texts(PERFECT + line(1, 7, 2, mask(22, 7)) + line(2, 7, 2, mask(22, 7))))
    units = score_units(tmp_path / "upload", truth, "mots")
    assert units["DetPr"] == pytest.approx(6 / 7)


def test_a_sequence_without_any_object_of_the_protocol_counts_nothing(tmp_path: Path) -> None:
    cars = line(1, 1001, 1, mask(0))
    truth = mots_truth(tmp_path, cars)
    (tmp_path / "cars.zip").write_bytes(texts(cars))
    units = score_units(tmp_path / "cars.zip", truth, "mots")
    assert (units["HOTA"], units["IDSW"]) == (0, 0)


def test_cars_and_pedestrians_of_kitti_are_averaged(tmp_path: Path) -> None:
    (tmp_path / "t" / "instances_txt").mkdir(parents=True)
    cars = PERFECT.replace(" 1 2 ", " 1 1 ")
    (tmp_path / "t" / "instances_txt" / "0002.txt").write_text(cars)
    (tmp_path / "t" / "val.seqmap").write_text("\n0001 empty 000000\n0002 empty 000000 000005\n")
    truth = tracks_files.read_truth(str(tmp_path / "t"), "")
    (tmp_path / "upload").write_bytes(
        zipped({"0002.txt": "".join(part for part in cars.splitlines(keepends=True) if " 1 1 " in part)})
    )
    units = score_units(tmp_path / "upload", truth, "kitti-mots")
    assert [(unit.name, [frame.name for frame in unit.load()]) for unit in truth.units] == [("0002", list("01234"))]
    assert (units["HOTA-car"], units["HOTA-pedestrian"], units["HOTA"]) == (pytest.approx(1), 0, pytest.approx(1 / 2))


def kitti_truth(folder: Path) -> UnitTruth:
    """Return a sequence with pedestrians, and one whose empty text file does not state the size of its frames."""
    (folder / "t" / "instances_txt").mkdir(parents=True)
    (folder / "t" / "instances_txt" / "0001.txt").write_text("")
    (folder / "t" / "instances_txt" / "0002.txt").write_text(PERFECT)
    (folder / "t" / "val.seqmap").write_text("0001 empty 000000 000005\n0002 empty 000000 000005\n")
    return tracks_files.read_truth(str(folder / "t"), "")


def test_masks_in_a_sequence_without_true_masks_are_surplus(tmp_path: Path) -> None:
    """TrackEval reads the size of a frame from each line."""
    truth = kitti_truth(tmp_path)
    upload = {"0001.txt": line(0, 7, 2, mask(22, 7)) + line(3, 7, 2, mask(22, 7)), "0002.txt": PERFECT}
    (tmp_path / "upload").write_bytes(zipped(upload))
    units = score_units(tmp_path / "upload", truth, "kitti-mots")
    assert units["DetPr-pedestrian"] == pytest.approx(6 / 8)
    assert units["MOTSA-pedestrian"] == pytest.approx(1 - 2 / 6)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (line(0, 7, 2, mask(22, 7)) + line(3, 7, 2, mask(22, 7), (9, 9)), "line 2 has the size 9 x 9"),
        (
            line(0, 7, 2, mask(22, 7), (10**6, 10**6)),
            "has masks of 1000000 x 1000000 pixels. Write masks at the size of the frames, at most",
        ),
        (line(0, 7, 2, mask(22, 7), (10**11, 10**11)), "has masks of 100000000000 x 100000000000 pixels"),
        (line(0, 7, 2, mask(22, 7), (0, 0)), "counts that do not add up"),
        (line(0, 7, 2, mask(22, 7)) + line(0, 8, 2, mask(22, 7)), "tracks 7 and 8 share pixels"),
    ],
)
def test_masks_in_a_sequence_without_true_masks_have_one_usual_size(lines: str, problem: str, tmp_path: Path) -> None:
    truth = kitti_truth(tmp_path)
    (tmp_path / "upload").write_bytes(zipped({"0001.txt": lines, "0002.txt": PERFECT}))
    with pytest.raises(SubmissionError, match=problem):
        score_units(tmp_path / "upload", truth, "kitti-mots")


def test_a_text_without_a_list_has_the_frames_of_its_lines(tmp_path: Path) -> None:
    for text, names in (("", ["0"]), (line(5, 1, 2, mask(1)) + line(3, 1, 2, mask(1)), ["3", "4", "5"])):
        (tmp_path / "a.txt").write_text(text)
        (unit,) = tracks_files.read_truth(str(tmp_path)).units
        assert [frame.name for frame in unit.load()] == names


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 1 2 20 30 ab\rcd", "line 1 {}: its run-lengths hold a line feed"),
        ("1 1 2 20 30 a\n\n1 1 2 20 30\n", "line 3 {}: it has 5 fields with a space between them, not 6"),
        ("1 1 2 20 30 a b", "line 1 {}: it has 7 fields with a space between them, not 6"),
        ("x 1 2 20 30 a", "line 1 {}: its frame is x, which is not a whole number of at most 12 digits"),
        ("1 1 -2 20 30 a", "line 1 {}: its class is -2, which is not a whole number of at most 12 digits"),
        ("1 1 2 2.0 30 a", "line 1 {}: its height is 2.0, which is not a whole number of at most 12 digits"),
        ("1 x 2 20 30 a", "line 1 {}: its id is x, which is not a whole number of at most 12 digits"),
        ("1  2 20 30 a", "line 1 {}: its id is empty, which is not a whole number of at most 12 digits"),
        ("1 1 2 20 1234567890123 a", "line 1 {}: its width is 1234567890123, which is not a whole number of at most 12 digits"),
        ("1 1 2 20 30 a\n1 1 2 21 30 a", "line 2 has the size 21 x 30, but the frames have 20 x 30"),
        ("1 1 2 20 31 a", "line 1 has the size 20 x 31, but the frames have 20 x 30"),
        ("\n\n\n\n", "has more than 3 lines"),
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_named(text: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracks_files, "_MOST_LINES", 3)
    with pytest.raises(Flaw) as caught:
        tracks_files._read_lines(text, SIZE)
    assert caught.value.fault == problem.format("is not `frame id class height width run-lengths`")
    assert tracks_files._read_lines("1 1 2 20 30 a\r\n\n3 2 1 20 30 b\n", None) == (
        {1: [[1, 2, "a"]], 3: [[2, 1, "b"]]},
        SIZE,
    )


@pytest.mark.parametrize(
    ("limit", "most", "sentence"),
    [
        ("_MOST_TRACKS", 2, "a.txt: has more than 1 tracks. Send fewer tracks"),
        ("_MOST_MASKS", 6, "a.txt: has more than 5 masks. Send fewer masks"),
        ("_MOST_IN_FRAME", 2, "a.txt: has 2 masks in frame 1. Send at most 1"),
    ],
)
def test_a_prediction_has_tracks_and_masks_up_to_a_limit(
    limit: str, most: int, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "upload").write_bytes(texts(PERFECT))
    truth = mots_truth(tmp_path)
    monkeypatch.setattr(tracks_files, limit, most)
    assert score_units(tmp_path / "upload", truth, "mots")["IDSW"] == 0
    monkeypatch.setattr(tracks_files, limit, most - 1)
    with pytest.raises(SubmissionError, match=sentence):
        score_units(tmp_path / "upload", truth, "mots")


def test_the_track_that_is_twice_in_a_frame_is_named(tmp_path: Path) -> None:
    (tmp_path / "upload").write_bytes(rows(line(1, 5, 2, mask(1)), line(1, 3, 2, mask(9)), line(1, 3, 2, mask(15))))
    with pytest.raises(SubmissionError, match="a.txt: has the track 3 twice in frame 1"):
        score_units(tmp_path / "upload", mots_truth(tmp_path), "mots")


def rows(*lines: str) -> bytes:
    return texts("".join(lines))


HOSTILE_TEXTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "text-alone": (PERFECT.encode, "neither a zip nor a tar"),
    "no-files": (lambda: zipped({}), "1 of 1 sequence is missing: a"),
    "other-name": (lambda: zipped({"b.txt": PERFECT}), "1 of 1 sequence is missing: a"),
    "twice": (lambda: texts(PERFECT, **{"x/a.txt": b""}), "holds a.txt and x/a.txt. Send each sequence once."),
    "words": (lambda: texts("hello\n"), "line 1 is not `frame id class height width run-lengths`"),
    "few-fields": (lambda: texts("1 1 2 20 30\n"), "line 1 is not"),
    "many-fields": (lambda: texts(PERFECT.strip() + " 7\n"), "line 6 is not"),
    "two-blanks": (lambda: texts(PERFECT.replace(" 2 ", "  2 ")), "line 1 is not"),
    "negative": (lambda: rows(line(-1, 1, 2, mask(1))), "line 1 is not"),
    "fraction": (lambda: texts("1.0 1 2 20 30 " + mask(1)), "line 1 is not"),
    "other-digits": (lambda: texts("\u0661 1 2 20 30 ".encode() + mask(1).encode()), "has characters that do not belong to run lengths. Write lines of `frame id class height width run-lengths`."),
    "long-number": (lambda: texts("9" * 5000 + " 1 2 20 30 " + mask(1)), "line 1 is not"),
    "utf-16": (lambda: texts(PERFECT.encode("utf-16")), "is UTF-16 text"),
    "nul": (lambda: texts(b"\0" * 999), "line 1 is not"),
    "other-size": (lambda: rows(line(1, 1, 2, mask(1), (30, 20))), "has the size 30 x 20, but the frames have 20 x 30. Write masks at the size of the frames."),
    "no-size": (lambda: rows(line(1, 1, 2, mask(1), (0, 0))), "has the size 0 x 0"),
    "huge-size": (lambda: rows(line(1, 1, 2, mask(1), (10**9, 10**9))), "has the size"),
    "beyond": (lambda: rows(line(4, 1, 2, mask(1))), "has the frame 4; the frames are 1 to 3. Omit the other frames."),
    "one too high": (
        lambda: rows("".join(line(frame, 1, 2, mask(1)) for frame in (2, 3, 4))),
        "has the frame 4; the frames are 1 to 3. Number the first frame 1: all numbers look 1 too high.",
    ),
    "before": (lambda: rows(line(0, 1, 2, mask(1))), "has the frame 0"),
    "far-beyond": (lambda: rows(line(10**11, 1, 2, mask(1))), "has the frame 100000000000"),
    "same-track": (lambda: rows(line(1, 1, 2, mask(1)), line(1, 1, 2, mask(9))), "has the track 1 twice in frame 1"),
    "shared": (lambda: rows(line(2, 1, 2, mask(1)), line(2, 5, 2, mask(4))), "a, frame 2: tracks 1 and 5 share pixels"),
    "shared-classes": (lambda: rows(line(2, 1, 1, mask(1)), line(2, 5, 2, mask(4))), "tracks 1 and 5 share pixels"),
    "no-counts": (lambda: texts("1 1 2 20 30 \n"), "counts that do not add up"),
    "short-counts": (lambda: rows(line(1, 1, 2, "1")), "counts that do not add up"),
    "long-counts": (lambda: rows(line(1, 1, 2, "0" * 100_000)), "more counts than its image can need"),
    "endless-counts": (lambda: rows(line(1, 1, 2, "o" * 500)), "end too early or do not end"),
    "broken-counts": (lambda: rows(line(1, 1, 2, "P")), "end too early"),
    "other-characters": (lambda: rows(line(1, 1, 2, "\x7f\x7f")), "invalid characters"),
    "below-zero": (lambda: rows(line(1, 1, 2, "2N")), "counts below zero"),
    "overflowing": (lambda: rows(line(1, 1, 2, "oooooO" * 9)), "counts"),
    "many-in-a-frame": (lambda: rows(*(line(1, k, 2, mask(0, 0)) for k in range(600))), "has 600 masks in frame 1"),
    "many-tracks": (lambda: rows(*(line(1 + k % 3, k, 2, mask(0, 0)) for k in range(1600))), "Send at most 500"),
    "bomb": (lambda: zipped({"a.txt": b" " * (50 << 20)}), "like a zip bomb"),
    "long-line": (lambda: zipped({"a.txt": b"1 " * (8 << 20)}, zipfile.ZIP_STORED), "line 1 is not"),
    "many-lines": (lambda: zipped({"a.txt": b"\n" * (16 << 20)}, zipfile.ZIP_STORED), "has more than 1,000,000 lines. Write lines of `frame id class height width run-lengths`."),
}  # fmt: skip

SEQUENCE = {
    "dataset": "D", "seq_name": "s", "width": 30, "height": 20, "annotated_image_paths": ["1.jpg", "2.jpg"],
    "neg_category_ids": [4], "not_exhaustive_category_ids": [], "track_category_ids": {"1": 5, "2": 13},
    "segmentations": [{"1": {"rle": mask(1), "score": 0.5}, "2": {"rle": mask(9), "score": 0.5}}] * 2,
}  # fmt: skip


def burst_truth(folder: Path) -> UnitTruth:
    (folder / "t.json").write_text(json.dumps({"categories": [], "sequences": [SEQUENCE]}))
    return tracks_files.read_truth(str(folder / "t.json"), "")


def document(**changes: Any) -> bytes:
    return json.dumps({"sequences": [{**copy.deepcopy(SEQUENCE), **changes}]}).encode()


def first_frame(masks: Any) -> bytes:
    return document(segmentations=[masks, {}])


def first_mask(**changes: Any) -> bytes:
    return first_frame({"1": {"rle": mask(1), "score": 0.5, **changes}})


def test_mugs_are_cups_on_either_side_as_in_tao(tmp_path: Path) -> None:
    mug, cup = next(iter(MERGED.items()))
    for real, sent in ((mug, cup), (cup, mug), (mug, mug)):
        tracks_of = [{"1": item, "2": 13} for item in (real, sent)]
        document_of = {"categories": [], "sequences": [{**SEQUENCE, "track_category_ids": tracks_of[0]}]}
        (tmp_path / "t.json").write_text(json.dumps(document_of))
        (tmp_path / "s.json").write_bytes(document(track_category_ids=tracks_of[1]))
        accumulator = count_units(tmp_path / "s.json", tracks_files.read_truth(str(tmp_path / "t.json"), ""), "burst")
        assert tracks.values(accumulator)["HOTA"] == pytest.approx(1)
        assert [row["id"] for row in tracks.tables(accumulator)["categories"]] == [13, cup]


def with_distractor(folder: Path, category: int, protocol: str, **sent: Any) -> UnitAccumulator[Any]:
    """Score perfect results, with changes; the second frame has only a distractor."""
    tracks_of, frames = {"1": 5, "2": 13, "3": category}, [SEQUENCE["segmentations"][0], {"3": {"rle": mask(20)}}]
    truth = {**SEQUENCE, "track_category_ids": tracks_of, "segmentations": frames, "neg_category_ids": [5]}
    (folder / "t.json").write_text(json.dumps({"categories": [], "sequences": [truth]}))
    (folder / "s.json").write_bytes(document(track_category_ids=tracks_of, **sent))
    return count_units(folder / "s.json", tracks_files.read_truth(str(folder / "t.json"), ""), protocol)


@pytest.mark.parametrize("names", [["s2", "s10"], ["s10", "s2"]])
def test_of_equal_scores_those_of_the_first_name_count_first_as_in_trackeval(names: list[str], tmp_path: Path) -> None:
    truth = [{**SEQUENCE, "seq_name": name, "track_category_ids": {"1": 5, "2": 5}} for name in names]
    wrong = [{key: {**masks[key], "rle": mask(20)} for key in masks} for masks in SEQUENCE["segmentations"][:1]] * 2
    sent = [{**entry, "segmentations": wrong} if entry["seq_name"] == "s10" else entry for entry in truth]
    sent = [{**entry, "segmentations": [{"1": frame["1"]} for frame in entry["segmentations"]]} for entry in sent]
    (tmp_path / "t.json").write_text(json.dumps({"categories": [], "sequences": truth}))
    (tmp_path / "s.json").write_text(json.dumps({"sequences": sent}))
    accumulator = count_units(tmp_path / "s.json", tracks_files.read_truth(str(tmp_path / "t.json"), ""), "burst")
    assert tracks.values(accumulator)["AP"] == pytest.approx(26 / 101 / 2)  # a quarter is found, after a wrong track


def test_of_too_many_masks_in_a_frame_the_best_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracks_files, "_BURST_MASKS", 2)
    low, high, again = ([number, 5, mask(1), score] for number, score in ((1, 0.2), (2, 0.9), (3, 0.2)))
    assert tracks_files.keep_best_rows([low, high]) == [low, high]
    assert tracks_files.keep_best_rows([low, high, again]) == [high, low]


def test_masks_of_distractors_take_no_places_in_exemplar_guided_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracks_files, "_BURST_MASKS", 2)
    masks = {"3": {"rle": mask(20), "score": 0.9}, **SEQUENCE["segmentations"][0]}
    accumulator = with_distractor(tmp_path, min(DISTRACTORS), "burst-exemplar-guided", segmentations=[masks, {}])
    assert tracks.values(accumulator)["HOTA"] == pytest.approx(1)


HOSTILE_JSON: dict[str, tuple[Callable[[], bytes], str]] = {
    "broken": (lambda: document()[:-9], "is not valid JSON"),
    "list": (lambda: b"[]", f"has no list of sequences in its JSON. Write {tracks_files._EXAMPLE}."),
    "no-list": (lambda: b"{}", "has no list of sequences"),
    "object": (lambda: b'{"sequences": {}}', "has no list of sequences"),
    "numbers": (lambda: b'{"sequences": [1]}', "has no list of sequences"),
    "none": (lambda: b'{"sequences": []}', "1 of 1 sequence is missing: D/s"),
    "other-name": (lambda: document(seq_name="x"), "1 of 1 sequence is missing: D/s"),
    "name-list": (lambda: document(seq_name=["s"]), "is missing"),
    "twice": (lambda: json.dumps({"sequences": [SEQUENCE, SEQUENCE]}).encode(), "lists the sequence D/s twice. Send each sequence once."),
    "two-files": (lambda: zipped({"a.json": document(), "b.json": document()}), "holds 2 JSON files"),
    "no-file": (lambda: zipped({"a.txt": b"1"}), "holds no JSON file, only a.txt"),
    "nested": (lambda: b"[" * 99_999, "is nested too deeply"),
    "nan": (lambda: document(width=float("nan")), "holds NaN"),
    "infinite": (lambda: document(width=float("inf")), "holds Infinity"),
    "long-number": (lambda: document(width=10**4000), "holds a number of 4001 digits"),
    "key-twice": (lambda: b'{"sequences": [], "sequences": []}', "has the key sequences twice"),
    "utf-16": (lambda: document().decode().encode("utf-16"), "is UTF-16 text"),
    "lists": (lambda: b'{"sequences": [' + b"[]," * 4_000_000 + b"[]]}", "too many lists"),
    "no-paths": (lambda: document(annotated_image_paths=None), f"lacks annotated_image_paths, segmentations or track_category_ids. Write {tracks_files._EXAMPLE}."),
    "paths-numbers": (lambda: document(annotated_image_paths=[1, 2]), "has 2 paths of frames and 2 lists"),
    "paths-lists": (lambda: document(annotated_image_paths=[[], []]), "has 2 paths of frames and 2 lists"),
    "few-paths": (lambda: document(annotated_image_paths=["1.jpg"]), "has 1 path of frames and 2 lists"),
    "other-paths": (lambda: document(annotated_image_paths=["1.jpg", "x.jpg"]), "lacks the frame 2.jpg. Give a list for each frame, empty if it has no masks."),
    "no-masks": (lambda: document(segmentations=None), "lacks annotated_image_paths, segmentations"),
    "masks-numbers": (lambda: document(segmentations=[1, 2]), "has a frame whose masks are not an object with a mask for each track"),
    "no-categories": (lambda: document(track_category_ids=None), "or track_category_ids"),
    "categories-list": (lambda: document(track_category_ids=[5, 13]), "or track_category_ids"),
    "category-missing": (lambda: document(track_category_ids={"1": 5}), "track 2 has no category in track_category_ids. Write"),
    "category-text": (lambda: document(track_category_ids={"1": "5", "2": 13}), "track 1 has no category"),
    "category-true": (lambda: document(track_category_ids={"1": True, "2": 13}), "track 1 has no category"),
    "frame-list": (lambda: first_frame([1]), "whose masks are not an object with a mask for each track"),
    "track-word": (lambda: first_frame({"one": {"rle": mask(1)}}), "has the track one, which is not a number"),
    "track-negative": (lambda: first_frame({"-1": {"rle": mask(1)}}), "has the track -1"),
    "track-long": (lambda: first_frame({"9" * 999: {"rle": mask(1)}}), "which is not a number"),
    "track-same": (lambda: first_frame({"1": {"rle": mask(1)}, "01": {"rle": mask(5)}}), "has no category"),
    "mask-text": (lambda: first_frame({"1": mask(1)}), "has the track 1, which is not a number with a mask"),
    "score-text": (lambda: first_mask(score="high"), "track 1 has a mask that lacks an rle or a finite score. Write"),
    "score-true": (lambda: first_mask(score=True), "lacks an rle or a finite score"),
    "no-counts": (lambda: first_mask(rle=None), "lacks an rle or a finite score"),
    "counts-list": (lambda: first_mask(rle=[600]), "lacks an rle or a finite score"),
    "counts-empty": (lambda: first_mask(rle=""), "counts that do not add up"),
    "counts-long": (lambda: first_mask(rle="0" * 99_999), "more counts than its image can need"),
    "counts-foreign": (lambda: first_mask(rle="\u0661"), "invalid characters"),
    "counts-endless": (lambda: first_mask(rle="o" * 99), "end too early or do not end"),
    "control": (lambda: first_frame({"\x1b[2J": {"rle": mask(1)}}), "has the track \\x1b[2J"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("protocol", "name"), [*(("mots", name) for name in HOSTILE_TEXTS), *(("burst", name) for name in HOSTILE_JSON)]
)
def test_hostile_submissions_get_a_sentence_soon_and_in_little_memory(protocol: str, name: str, tmp_path: Path) -> None:
    make, sentence = (HOSTILE_TEXTS if protocol == "mots" else HOSTILE_JSON)[name]
    truth = mots_truth(tmp_path) if protocol == "mots" else burst_truth(tmp_path)
    assert sentence in sentence_of(make(), tmp_path, lambda path: score_units(path, truth, protocol))


def test_what_is_wrong_with_a_submission_is_a_sentence(tmp_path: Path) -> None:
    large = {"nested", "lists", "bomb", "long-line", "many-lines"}
    for protocol, cases, truth in (
        ("mots", HOSTILE_TEXTS, mots_truth(tmp_path)),
        ("burst", HOSTILE_JSON, burst_truth(tmp_path)),
    ):
        for name in cases.keys() - large:
            make, sentence = cases[name]
            (tmp_path / "upload").write_bytes(make())
            try:
                output = str(score_units(tmp_path / "upload", truth, protocol) and "scored")
            except SubmissionError as error:
                output = str(error)
            assert sentence in output, (protocol, name)


def test_the_good_submission_of_the_hostile_ones_is_perfect(tmp_path: Path) -> None:
    (tmp_path / "upload").write_bytes(document())
    units = score_units(tmp_path / "upload", burst_truth(tmp_path), "burst")
    assert [units[name] for name in ("HOTA", "DetA", "AssA", "AP", "HOTA-common")] == [pytest.approx(1)] * 5


def test_truth_and_protocol_have_to_go_together(tmp_path: Path) -> None:
    (tmp_path / "upload").write_bytes(document())
    with pytest.raises(HostError, match="which the protocol mots does not score"):
        score_units(tmp_path / "upload", burst_truth(tmp_path), "mots")
    (tmp_path / "none").mkdir()
    with pytest.raises(HostError, match="holds neither gt/SEQUENCE/gt/gt.txt nor instances_txt/SEQUENCE.txt"):
        tracks_files.read_truth(str(tmp_path / "none"), "")
    with pytest.raises(SubmissionError, match="Omit everything that is not scored"):
        (tmp_path / "more").write_bytes(texts(PERFECT, **{"b.txt": b""}))
        count_units(tmp_path / "more", mots_truth(tmp_path), "mots", strict=True)
