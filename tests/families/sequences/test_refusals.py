"""Refused uploads and truths of videos, by the whole sentence, as `segjudge.score` shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from tests.builders import png, written, zipped
from tests.families.refusals import refuse

MASK = png(np.array([[0, 0, 0], [0, 1, 2], [0, 1, 2]], np.uint8))


def frames(names: str = "ab", numbers: Any = range(3), folder: str = "") -> dict[str, bytes]:
    return {f"{folder}{name}/{number:05d}.png": MASK for name in names for number in numbers}


SEND = "Send one folder of PNG masks for each sequence."
UPLOADS: dict[str, tuple[dict[str, bytes], str]] = {
    "masks without a folder": ({"00000.png": MASK}, f"up.zip: has its masks at the top level, outside any folder; the sequences are a, b. {SEND}"),
    "a folder of another name": ({"x/00000.png": MASK}, f"up.zip: no folder has the name of a sequence of this phase (a, b); found x. {SEND}"),
    "other files": ({"a.txt": b"x"}, f"up.zip: holds no PNG and no JSON file, only a.txt. {SEND}"),
    "no files": ({}, f"up.zip: holds no files. {SEND}"),
    "a sequence twice": ({**frames(), **frames("a", folder="again/")}, "a: occurs more than once: a, again/a. Send one folder for each sequence."),
    "a sequence twice, the copy before": ({**frames("a", folder="again/"), **frames()}, "a: occurs more than once: a, again/a. Send one folder for each sequence."),
    "masks beside objects": ({**frames(), "a/1/00000.png": MASK}, "a: holds both masks and folders of masks. Send one PNG per frame, or one folder per object."),
    "a missing sequence": (frames("a"), "up.zip: 1 of 2 sequences is missing: b. Send a folder of masks for each sequence, with its name."),
    "a missing frame": (frames("a", [0, 2]) | frames("b"), "a/00001.png: is missing. Add a PNG for each frame, black if no object is visible."),
}  # fmt: skip


@pytest.mark.parametrize("name", UPLOADS)
def test_a_refused_upload_is_answered_by_one_sentence(name: str, tmp_path: Path) -> None:
    files, sentence = UPLOADS[name]
    assert refuse(tmp_path, "davis2017", frames(), files) == sentence


WARNED: dict[str, tuple[str, dict[str, bytes], str]] = {
    "a surplus frame": ("davis2017", frames() | frames("a", [9]), "val: a: 1 frame is not in the truth and was ignored: 00009"),
    "two surplus frames": ("davis2017", frames() | frames("a", [8, 9]), "val: a: 2 frames are not in the truth and were ignored: 00008, 00009"),
    "frames that begin with 1": ("davis2017", frames("a") | frames("b", range(1, 4)), "val: b: 1 frame is not in the truth and was ignored: 00003; all frames look numbered 1 too high"),
    "a missing sequence, excluded": ("sav", frames("a"), "val: up.zip: 1 of 2 sequences is missing: b (excluded from the means)"),
    "a missing sequence, scored as 0": ("mosev2", frames("a"), "val: up.zip: 1 of 2 sequences is missing: b (scored as 0)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNED)
def test_a_scored_upload_is_warned_about(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    protocol, files, sentence = WARNED[name]
    written(tmp_path, {"up.zip": zipped(files)})
    assert segjudge.score("up.zip", written(tmp_path / "truth", frames()), protocol).warnings[0] == sentence


def test_a_name_with_an_accent_is_the_name_of_its_folder(tmp_path: Path) -> None:
    names = "e\u0301", "\u00e9"  # as macOS spells it, and as others do
    for truth, sent in (names, names[::-1], names[:1] * 2):
        path = tmp_path / f"{truth}{sent}"
        results, folder = (written(path / side, frames([name, "b"])) for side, name in (("s", sent), ("t", truth)))
        (values,) = segjudge.score(results, folder, "davis2017").metrics.values()
        assert values["J-Mean"] == 1


def test_an_upload_without_the_chosen_sequence_is_refused(tmp_path: Path) -> None:
    sentence = refuse(tmp_path, "sav", frames(), frames("a"), sequences=["b"])
    assert sentence == "up.zip: holds no masks of b. Send a folder of masks for each sequence."


META = "meta_expressions.json"
EXPRESSIONS = json.dumps(
    {"videos": {"a": {"expressions": {"0": {"exp": "one", "obj_id": ["1"], "anno_id": [1]}}, "frames": ["0", "1"]}}}
).encode()
MASKS_OF_TWO_SIZES = json.dumps({"1": [{"size": [3, 3], "counts": "9"}, {"size": [2, 2], "counts": "4"}]}).encode()


def meta(*names: str) -> bytes:
    return json.dumps({"videos": {name: {"objects": {"1": {"frames": ["00000"]}}} for name in names}}).encode()


TRUTHS: dict[str, tuple[str, str, dict[str, bytes], str]] = {
    "a list of more": ("davis2017", "val", {**frames(folder="Annotations/480p/"), "ImageSets/2017/val.txt": b"a\nb\nc\n"}, "truth: its list names sequences without masks: c"),
    "a list of another subset": ("davis2017", "test", {**frames(folder="Annotations/480p/"), "ImageSets/2017/val.txt": b"a\n"}, "truth: has no list of sequences for 'test'; found val"),
    "two lists": ("lvos", "", {**frames(folder="Annotations/"), "ImageSets/x.txt": b"a\n", "ImageSets/y.txt": b"b\n"}, "truth: has several lists of sequences; choose one with --subset: x, y"),
    "two meta files": ("youtube-vos", "", {**frames(folder="Annotations/"), "meta_one.json": meta("a"), "meta_two.json": meta("b")}, "truth: has several meta files (meta_one.json, meta_two.json); choose one with --subset"),
    "no masks": ("davis2017", "", {"a.txt": b""}, "truth: holds no PNG masks"),
    "no expressions": ("mevis", "", {"a.txt": b""}, f"truth: has no {META}"),
    "expressions twice": ("mevis", "", {f"one/{META}": EXPRESSIONS, f"two/{META}": EXPRESSIONS}, f"truth: has several files of expressions (one/{META}, two/{META}); choose one with --subset"),
    "expressions of another subset": ("mevis", "test", {f"one/{META}": EXPRESSIONS, f"two/{META}": EXPRESSIONS}, f"truth: has no expressions of 'test', only one/{META}, two/{META}"),
    "no masks of expressions": ("mevis", "", {META: EXPRESSIONS}, f"truth: has no mask_dict.json for {META}; add the one that holds its masks"),
    "masks in a list": ("mevis", "", {META: EXPRESSIONS, "mask_dict.json": b"[1]"}, "truth: mask_dict.json is not an object of run lengths"),
    "masks cut off": ("mevis", "", {META: EXPRESSIONS, "mask_dict.json": b'{"1": '}, "truth: mask_dict.json is not valid JSON (its JSON is cut off: copy the file again)"),
    "masks of two sizes": ("mevis", "", {META: EXPRESSIONS, "mask_dict.json": MASKS_OF_TWO_SIZES}, "truth: a: its masks are not run lengths of the same size"),
    "no mask in any frame": ("mevis", "", {META: EXPRESSIONS, "mask_dict.json": b'{"1": [null, null]}'}, "truth: a: has no mask, so its size is unknown; write a frame as an empty mask"),
    "masks of other videos": ("mevis", "", {META: EXPRESSIONS, "mask_dict.json": b"{}"}, f"truth: no video of {META} has masks"),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUTHS)
def test_a_refused_truth_is_answered_by_one_sentence(name: str, tmp_path: Path) -> None:
    protocol, subset, files, sentence = TRUTHS[name]
    assert refuse(tmp_path, protocol, files, frames(), subset=subset) == sentence
