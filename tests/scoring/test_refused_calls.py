"""Refused calls of the library, by the whole sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from segjudge import FrameAccumulator, Scores, compare, rank, score, score_arrays
from segjudge.evaluation_script.files.problems import HostError
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


CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "an empty path": (lambda: score("", "truth", "davis2017"), "results is '', of type str, which is empty; give a path or an address"),
    "a path with a null": (lambda: score("a\0", "truth", "davis2017"), "results is 'a\\x00', of type str, which holds a null character; give a path or an address"),
    "a missing truth": (lambda: score("a.zip", "truth", "davis2017"), "truth: there is no such file or folder"),
    "categories in numbers": (lambda: score_arrays([MASK], [MASK], "ade20k", categories=[1]), "categories hold 1, of type int; give mappings as in COCO's annotation files"),  # type: ignore[list-item]
    "categories without ids": (lambda: score_arrays([MASK], [MASK], "ade20k", categories=[{"x": 1}]), f"categories cannot be used by ade20k (KeyError('id')); {KEYS}"),
    "frames of a volume": (count_two_frames, "msd compares whole volumes: update it with a case and None as the frame"),
    "a frame twice": (merge_other_frames, "image was counted twice, with different results"),
    "a second frame of an image": (count_two_images, "image has a second frame, but sod-official counts each name as a whole; give each image, scan or case a name of its own, and None as the frame"),
    "nothing": (FrameAccumulator("sod-official").compute, "nothing was counted"),
    "a page of no size": (lambda: scored().report("a.html", budget=0), "budget is 0; give the megabytes that the page may have, such as 6"),
    "scores of one name": (lambda: rank(scored(), scored()), 'two have the name Scores; name them: {"A": scores, "B": scores}'),
    "a table of too many": (lambda: rank(write(HEADER + "".join(f"{row},case,1\n" for row in range(501)))), "scores.csv: has 501 algorithms and 1 case; at most 500 algorithms are ranked"),
    "a comparison of single frames": (lambda: compare(pair()), "J&F-Mean of a has no value, so it is not compared"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_refused_call_is_answered_by_one_sentence(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, sentence = CALLS[name]
    with pytest.raises((UsageError, HostError)) as caught:
        call()
    assert str(caught.value) == sentence
