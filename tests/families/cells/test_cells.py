"""Cells: every number of py-ctcmetrics, the safe rules by hand, and the cost of hostile submissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families import engine_of
from segjudge.evaluation_script.families.cells.files import read_truth
from segjudge.evaluation_script.families.cells.protocols import CELL_PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.cells.challenges import follow_labels, write_tracks
from segjudge.masks.tiff import encode_tiff
from tests.builders import written
from tests.data import FAMILIES_DATA
from tests.families.promises import PROMISES, keep
from tests.families.unit_counts import count_units, pack_units, read_golden, score_units

DATA = FAMILIES_DATA / "ctc"
CASES = read_golden(DATA)["cases"]
#: Inputs at which the script stops, or which it misreads: here they give other numbers, or messages.
OTHERWISE = {"frame-shifted", "label-65535", "no-background"}
OFFICIAL = [name for name, case in CASES.items() if case.get("Valid") and name not in OTHERWISE]
EXACT = {"abs": 1e-12, "rel": 0}
SIZE = (12, 16)


def near(value: float | None, expected: float | None) -> bool:
    return value is expected or (None not in {value, expected} and value == pytest.approx(expected, **EXACT))


def frame(**cells: tuple[int, int]) -> Array:
    """Return a frame with squares of three pixels: label → row and column."""
    labels = np.zeros(SIZE, np.uint16)
    for name, (row, column) in cells.items():
        labels[row : row + 3, column : column + 3] = int(name.lstrip("c"))
    return labels


def truth_files(
    name: str, frames: list[Array], tracks: list[list[int]], outlined: tuple[int, ...] = (0,)
) -> dict[str, bytes]:
    files = {
        f"{name}_GT/TRA/man_track{index:03d}.tif": encode_tiff(labels[None]) for index, labels in enumerate(frames)
    }
    files |= {f"{name}_GT/SEG/man_seg{index:03d}.tif": encode_tiff(frames[index][None]) for index in outlined}
    return {**files, f"{name}_GT/TRA/man_track.txt": write_tracks(tracks).encode()}


def sent_files(name: str, frames: list[Array], tracks: list[list[int]]) -> dict[str, bytes]:
    files = {f"{name}_RES/mask{index:03d}.tif": encode_tiff(labels[None]) for index, labels in enumerate(frames)}
    return {**files, f"{name}_RES/res_track.txt": write_tracks(tracks).encode()}


#: A cell that stays, one that divides after two frames, and one of its children.
FRAMES = [frame(c1=(0, 0), c2=(5, 5)), frame(c1=(0, 1), c2=(5, 5)), frame(c1=(0, 2), c3=(5, 2), c4=(5, 9))]
FRAMES += [frame(c1=(0, 3), c3=(5, 1), c4=(5, 10))]
TRACKS = [[1, 0, 3, 0], [2, 0, 1, 0], [3, 2, 3, 2], [4, 2, 3, 2]]


# ── the script's numbers ────────────────────────────────────────────────────


@pytest.mark.parametrize("case", OFFICIAL)
def test_the_scripts_numbers_are_ours(case: str, tmp_path: Path) -> None:
    published = read_truth(str(DATA / CASES[case]["truth"]))
    for truth in (published, pack_units(published, tmp_path)):
        report = engine_of("cells").report("val", count_units(DATA / case, truth, "ctc-official"))
        for metric, value in report.values.items():
            assert near(value, CASES[case][metric]), metric
        (row,) = report.rows()["videos"]
        assert {key: row[key] for key in ("NS", "FN", "FP", "ED", "EA", "EC")} == {
            key: CASES[case][f"AOGM_{key}"] for key in ("NS", "FN", "FP", "ED", "EA", "EC")
        }


@pytest.mark.parametrize("case", OFFICIAL)
def test_the_safe_rules_differ_where_the_script_has_a_defect_and_nowhere_else(case: str) -> None:
    """TF covers all tracks of a label, BC is undefined without divisions, and each frame counts once in SEG."""
    golden = CASES[case]
    values = score_units(DATA / case, read_truth(str(DATA / golden["truth"])), "ctc")
    divisions = golden["gt_divisions"] + golden["fp_div(0)"] > 0
    expected = {**golden, "TF": golden.get("TF_without_break_not_official", golden["TF"])}
    expected["SEG"] = golden.get("SEG_each_frame_once_not_official", golden["SEG"])
    for metric in ("SEG", "DET", "TRA", "LNK", "CT", "TF", "CCA", "HOTA", "CHOTA"):
        assert near(values[metric], expected[metric]), metric
    for frames in range(4):
        assert values[f"BC({frames})"] == (pytest.approx(golden[f"BC({frames})"], **EXACT) if divisions else None)
        known = [values[key] for key in ("CT", "TF", f"BC({frames})", "CCA") if values[key] is not None]
        assert values[f"BIO({frames})"] == pytest.approx(np.mean(known), **EXACT)
        assert values[f"OP_CLB({frames})"] == pytest.approx((values["LNK"] + np.mean(known)) / 2, **EXACT)
    assert values["OP_CTB"] == pytest.approx((expected["SEG"] + values["TRA"]) / 2, **EXACT)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("hole-with-row", "mask002.tif: lacks 1 label that res_track.txt lists there: 1. End the track of a cell that"),
        ("no-row", "9 problems found in your submission"),
        ("row-only", "mask003.tif: lacks 1 label that res_track.txt lists there: 99"),
        ("parent-late", "res_track.txt: has 1 label that begin before their parent ends: 9. End the parent"),
        ("unknown-parent", "res_track.txt: has 1 label with a parent that has no line"),
        ("row-twice", "res_track.txt: has 1 label in several lines: 1. Write one line for each label"),
        ("frame-missing", "your file: lacks 1 of 9 frames: mask008.tif. Send every frame"),
        ("frame-shifted", "your file: has 1 frame that the sequence lacks: mask009.tif. Number frames from 000"),
        ("no-text", "your file: has no res_track.txt. Write a line for each label"),
        ("comma", 'res_track.txt: has the line 1 "1,0,8,0", which is not four whole numbers separated by spaces'),
    ],
)
def test_what_is_invalid_or_stops_the_script_is_a_sentence(case: str, message: str) -> None:
    if CASES:
        for protocol in CELL_PROTOCOLS:
            with pytest.raises(SubmissionError) as caught:
                score_units(DATA / case, read_truth(str(DATA / CASES[case]["truth"])), protocol)
            assert message in str(caught.value)


@pytest.mark.skipif(not CASES, reason="needs the shared data")
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("label-65535", {"DET": 1, "TRA": 1, "CHOTA": 1}),
        ("blank-line", {"DET": 1, "TRA": 1, "BIO(0)": 1}),
        ("no-edges", {"OP_CTB": 1, "LNK": None, "OP_CLB(0)": None}),
        ("one-frame", {"OP_CTB": 1, "LNK": None}),
        ("empty-text", {"DET": 0, "TRA": 0, "SEG": 0, "CT": 0, "TF": 0, "TF-all": 0, "CHOTA": 0}),
        ("no-background", {"SEG": 1, "LNK": 1}),
    ],
)
def test_what_the_script_wraps_or_stops_at_is_scored(case: str, expected: dict[str, float | None]) -> None:
    values = score_units(DATA / case, read_truth(str(DATA / CASES[case]["truth"])), "ctc")
    assert {metric: values[metric] for metric in expected} == expected


# ── rules that can be counted by hand ───────────────────────────────────────


def test_means_are_over_the_sequences_that_have_a_value(tmp_path: Path) -> None:
    alone = [frame(c1=(0, 0))] * 2
    truth = written(
        tmp_path / "truth", {**truth_files("01", FRAMES, TRACKS), **truth_files("02", alone, [[1, 0, 1, 0]])}
    )
    sent = [frame(c1=(0, 1)), frame(c1=(0, 1))]
    files = {**sent_files("01", FRAMES, TRACKS), **sent_files("02", sent, [[1, 0, 1, 0]])}
    values = score_units(written(tmp_path / "sent", files), read_truth(str(truth)), "ctc")
    assert values["SEG"] == pytest.approx((1 + 6 / 12) / 2)
    assert (values["BC(0)"], values["CCA"], values["TRA"]) == (1, None, 1)


@pytest.mark.parametrize("protocol", ["ctc", "ctc-official"])
@pytest.mark.parametrize(
    ("outlined", "seg"),
    [(["_000"], 15 / 21), (["_000_000"], 6 / 12), (["_000_001"], 1), (["_000_000", "_000_001"], 15 / 21)],
)
def test_slices_are_outlined_one_by_one_or_together(
    protocol: str, outlined: list[str], seg: float, tmp_path: Path
) -> None:
    cells = np.stack([frame(c1=(0, 1)), frame(c1=(6, 1))])
    results = np.stack([frame(c1=(0, 2)), frame(c1=(6, 1))])  # a column aside in the first slice
    files = {"01_GT/TRA/man_track000.tif": encode_tiff(cells), "01_GT/TRA/man_track.txt": b"1 0 0 0\n"}
    for name in outlined:
        pages = cells if name == "_000" else cells[[int(name[-1])]]
        files[f"01_GT/SEG/man_seg{name}.tif"] = encode_tiff(pages)
    truth = read_truth(str(written(tmp_path / "t", files)))
    sent = {"01_RES/mask000.tif": encode_tiff(results), "01_RES/res_track.txt": b"1 0 0 0\n"}
    counts = count_units(written(tmp_path / "s", sent), truth, protocol)
    (row,) = engine_of("cells").report("val", counts).rows()["videos"]
    assert row["SEG"] == pytest.approx(seg, **EXACT)


def test_a_joined_tracks_parent_is_that_of_its_beginning_in_whatever_order_lines_stand(tmp_path: Path) -> None:
    """The script reads the parent of the first line, and loses the mother if that is the second part."""
    frames = [frame(c2=(5, 5)), frame(c3=(5, 2), c4=(5, 9)), frame(c1=(5, 2), c4=(5, 9))]
    tracks = [[1, 2, 2, 3], [2, 0, 0, 0], [3, 1, 1, 2], [4, 1, 2, 2]]
    truth = read_truth(str(written(tmp_path / "truth", truth_files("01", frames, tracks))))
    sent = written(tmp_path / "sent", sent_files("01", frames, tracks))
    assert score_units(sent, truth, "ctc")["CHOTA"] == score_units(sent, truth, "ctc-official")["CHOTA"] == 1
    flat = written(tmp_path / "flat", sent_files("01", frames, [[*row[:3], 0] for row in tracks]))
    safe, official = (score_units(flat, truth, name)["CHOTA"] for name in CELL_PROTOCOLS)
    assert safe < official < 1


@pytest.mark.parametrize("parent", [1, 7])
@pytest.mark.parametrize("protocol", CELL_PROTOCOLS)
def test_an_only_child_is_its_parent_going_on(protocol: str, parent: int, tmp_path: Path) -> None:
    frames = [frame(**{f"c{label}": (5, 5)}) for label in (parent, parent, 2, 2)]
    truth = read_truth(str(written(tmp_path, truth_files("01", frames, [[parent, 0, 1, 0], [2, 2, 3, parent]]))))
    item = sent_files("01", [frame(c5=(5, 5))] * 4, [[5, 0, 3, 0]])
    values = score_units(written(tmp_path / "one", item), truth, protocol)
    assert (values["HOTA"], values["CHOTA"]) == (1, 1)
    two = sent_files("01", [frame(c5=(5, 5))] * 2 + [frame(c6=(5, 5))] * 2, [[5, 0, 1, 0], [6, 2, 3, 0]])
    values = score_units(written(tmp_path / "two", two), truth, protocol)
    assert (values["HOTA"], values["CHOTA"]) == pytest.approx((0.5**0.5, 0.5**0.5))


# ── truths, and other doors ─────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"01_GT/TRA/man_track.txt": None}, "01_GT/TRA: has no man_track.txt"),
        ({"01_GT/TRA/man_track001.tif": None}, "01_GT/TRA: frames are not numbered from 0 without gaps"),
        ({"01_GT/TRA/man_track.txt": b"1 0 9 0\n"}, "has 1 label that end after the last frame, 3: 1"),
        ({"01_GT/SEG/man_seg009.tif": b""}, "01_GT/SEG: has frames that TRA lacks: 9"),
        ({"01_GT/SEG/man_seg_000_001.tif": b""}, "man_seg_000_001.tif: the frame has 1 slice"),
        ({"01_GT/TRA/man_track000.tif": b"II*\0"}, "man_track000.tif: cannot be read .is cut off"),
    ],
)
def test_a_truth_that_cannot_be_read_is_the_hosts_mistake(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    files = {**truth_files("01", FRAMES, TRACKS), **change}
    written(tmp_path, {name: data for name, data in files.items() if data is not None})
    with pytest.raises(HostError, match=message):
        read_truth(str(tmp_path))


def test_a_label_that_comes_back_is_renamed_as_its_own_child() -> None:
    frames = [frame(c1=(0, 0)), frame(), frame(c1=(0, 0)), frame(c7=(0, 0))]
    assert follow_labels(frames, {7: 1}) == [[1, 0, 0, 0], [8, 2, 2, 1], [7, 3, 3, 8]]
    assert frames[2].max() == 8


# ── what all families promise ───────────────────────────────────────────────


@PROMISES
def test_the_family_keeps_its_promises(promise: str, tmp_path: Path) -> None:
    def move(make: Any, columns: int) -> dict[str, bytes]:
        frames = [np.roll(labels, columns, axis=1) for labels in FRAMES]
        return {key: data for name in ("01", "02") for key, data in make(name, frames, TRACKS).items()}

    sent = move(sent_files, 1)
    faulty = {**sent, "01_RES/mask001.tif": encode_tiff(np.zeros((1, 3, 3))), "02_RES/res_track.txt": b"1,2,3,4\n"}
    arrays = [
        {
            name: {"masks": np.roll(FRAMES, columns, axis=2), "tracks": TRACKS, "cells": {0: FRAMES[0]}}
            for name in ("01", "02")
        }
        for columns in (1, 0)
    ]
    keep(
        promise, "ctc", tmp_path, (move(truth_files, 0), move(truth_files, 4)), (sent, faulty),
        ["mask001.tif", "res_track.txt"], (arrays[0], arrays[1]),
    )  # fmt: skip
