"""Refused calls of the library, by the whole sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import FrameAccumulator, Scores, compare, rank, score, score_arrays
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError
from segjudge.families.truths import TruthSource
from segjudge.scoring.request import ScoreRequest
from segjudge.system.errors import UsageError

MASK, GREY = np.array([[0, 1], [0, 1]], np.uint8), np.array([[0, 255], [0, 255]], np.uint8)
VOLUME = {"labels": np.ones((2, 2, 2), np.uint8), "spacing": [1, 1, 1]}
HEADER = "algorithm,case,value\n"
KEYS = "give each the keys of COCO's annotation files: id, name"


def scored() -> Scores:
    return score_arrays([MASK], [MASK], "davis2017")


def pair() -> dict[str, Scores]:
    return {"a": scored(), "b": scored()}


def write(text: str) -> str:
    Path("scores.csv").write_text(text)
    return "scores.csv"


def count_two_frames() -> None:
    counted = FrameAccumulator("msd")
    for frame in (None, 1):
        counted.update("case", frame, VOLUME, VOLUME)


def merge_other_frames() -> None:
    counted = FrameAccumulator("sod-official")
    for prediction in (GREY, 255 - GREY):
        counted.update("image", None, prediction, GREY)


def count_two_images() -> None:
    counted = FrameAccumulator("sod-official")
    for frame in (None, 1):
        counted.update("image", frame, GREY, GREY)


def score_with(jobs: Any) -> Callable[[], object]:
    return lambda: score("a.zip", "truth", "davis2017", jobs=jobs)


JOBS = "give a whole number of at least 1, or 'auto'"
CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "an empty path": (lambda: score("", "truth", "davis2017"), "results is '', of type str, which is empty; give a path or an address"),
    "a path with a null": (lambda: score("a\0", "truth", "davis2017"), "results is 'a\\x00', of type str, which holds a null character; give a path or an address"),
    "a missing truth": (lambda: score("a.zip", "truth", "davis2017"), "truth: there is no such file or folder"),
    "categories in numbers": (lambda: score_arrays([MASK], [MASK], "ade20k", categories=[1]), "categories hold 1, of type int; give mappings as in COCO's annotation files"),  # type: ignore[list-item]
    "categories without ids": (lambda: score_arrays([MASK], [MASK], "ade20k", categories=[{"x": 1}]), f"categories cannot be used by ade20k (KeyError('id')); {KEYS}"),
    "frames of a volume": (count_two_frames, "msd compares whole volumes: update it with a case and None as the frame"),
    "a frame twice": (merge_other_frames, "image was counted twice, with different results"),
    "a second frame of an image": (count_two_images, "image has a second frame, but sod-official counts each name as a whole; give each image, scan or case a name of its own, and None as the frame"),
    "too many processes": (lambda: ScoreRequest("a.zip", TruthSource("truth"), PROTOCOLS["davis2017"], jobs=100_001), "jobs is 100001: give at most 100,000"),
    "no processes": (score_with(0), f"jobs is 0: {JOBS}"),
    "half a process": (score_with(1.5), f"jobs is 1.5: {JOBS}"),
    "true processes": (score_with(True), f"jobs is True: {JOBS}"),
    "processes in words": (score_with("many"), f"jobs is 'many': {JOBS}"),
    "nothing": (FrameAccumulator("sod-official").compute, "nothing was counted"),
    "a page of no size": (lambda: scored().report("a.html", budget=0), "budget is 0; give the megabytes that the page may have, such as 6"),
    "scores beside a file": (lambda: rank(scored(), "a.csv"), "rank takes scores or files, not both; segjudge.load opens a file"),
    "no scores": (lambda: rank({}), 'rank needs scores: give them by name, such as {"A": scores, "B": scores}'),
    "scores of one name": (lambda: rank(scored(), scored()), 'two have the name Scores; name them: {"A": scores, "B": scores}'),
    "no draws": (lambda: rank(pair(), draws=0), "draws is 0; give a whole number from 1 to 100,000"),
    "a table without rows": (lambda: rank(write(HEADER)), "scores.csv: has no rows"),
    "a table of too many": (lambda: rank(write(HEADER + "".join(f"{row},case,1\n" for row in range(501)))), "scores.csv: has 501 algorithms and 1 case; at most 500 algorithms are ranked"),
    "a case twice": (lambda: rank(write(f"{HEADER}a,case,1\na,case,2\n")), "scores.csv: line 3: a has case case twice"),
    "a comma in a number": (lambda: rank(write(f"{HEADER}a,case,0,5\n")), "scores.csv: line 2: has more cells than the header; write 0.5, not 0,5"),
    "a score in words": (lambda: rank(write(f"{HEADER}a,case,good\n")), "scores.csv: line 2: good is not a valid score; leave a missing value empty"),
    "a comparison of single frames": (lambda: compare(pair()), "J&F-Mean of a has no value, so it is not compared"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_refused_call_is_answered_by_one_sentence(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, sentence = CALLS[name]
    with pytest.raises((UsageError, HostError)) as caught:
        call()
    assert str(caught.value) == sentence
