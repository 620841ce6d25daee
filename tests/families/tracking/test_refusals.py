"""Refused lines of results of tracks, by the whole sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.families.refusals import refuse

LINE = "1 2001 2 4 6 08`0"
TRUTH = {"A/seqinfo.ini": b"[Sequence]\nseqLength=2\nimWidth=6\nimHeight=4\n", "A/gt/gt.txt": f"{LINE}\n".encode()}
START, REMEDY = "is not `frame id class height width run-lengths`", "Write whole numbers, and compressed run lengths."
REFUSED = {
    "seven fields": ("1 2001 2 4 6 a b", "it has 7 fields with a space between them, not 6"),
    "five fields": ("1 2001 2 4 6", "it has 5 fields with a space between them, not 6"),
    "a frame in letters": ("x 2001 2 4 6 08`0", "its frame is x, which is not a whole number of at most 12 digits"),
    "a long id": (
        f"1 {'2' * 13} 2 4 6 08`0",
        f"its id is {'2' * 13}, which is not a whole number of at most 12 digits",
    ),
    "a class below zero": ("1 2001 -2 4 6 08`0", "its class is -2, which is not a whole number of at most 12 digits"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("number", [1, 2])
def test_a_refused_line_is_named_with_its_fault(name: str, number: int, tmp_path: Path) -> None:
    line, fault = REFUSED[name]
    text = "\n".join([LINE] * (number - 1) + [line])
    sentence = refuse(tmp_path, "mots", TRUTH, {"A.txt": text.encode()})
    assert sentence == f"A.txt: line {number} {START}: {fault}. {REMEDY}"


def test_a_truth_without_tracks_is_refused(tmp_path: Path) -> None:
    sought = "holds neither gt/SEQUENCE/gt/gt.txt nor instances_txt/SEQUENCE.txt"
    fault = f"{sought}. Name the folder that holds gt or instances_txt"
    sentence = refuse(tmp_path, "mots", {"a.png": b""}, {"A.txt": LINE.encode()})
    assert sentence == f"truth: cannot be read as the truth of tracks ({fault})"
