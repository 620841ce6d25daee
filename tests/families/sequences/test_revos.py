"""Reasoning expressions: every number of ReVOS's evaluator, the effect of its grey values, and the safe rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from tests import published
from tests.backends import use_numpy
from tests.builders import png, raw_png, written, zipped
from tests.data import FAMILIES_DATA
from tests.shared import needs_shared

REVOS = FAMILIES_DATA / "revos" / "revos"
EXACT = {"abs": 1e-12, "rel": 0}
GROUPS = {"referring": "-referring", "reason": "-reasoning", "no_target": "-no-target", "overall": ""}
NAMES = {"J": "J", "F": "F", "JF": "J&F", "A": "A", "R": "R"}
META = "meta_expressions_valid_.json"


@needs_shared
@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize(
    ("case", "protocol"),
    [(case, "revos-official") for case in ("ones", "grey255", "palette", "broken")] + [("grey255", "revos")],
)
def test_expressions_score_as_the_official_evaluator_and_the_safe_rule_say(
    case: str, protocol: str, kernel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        use_numpy(monkeypatch)
    golden = json.loads((FAMILIES_DATA / "revos" / "golden.json").read_text())["revos"]["cases"][case]
    official = protocol == "revos-official"
    golden, scale = (golden["official"], 100) if official else (golden["safe"], 1)
    packed = str(tmp_path / "truth.zip")
    assert main(["pack", "--layout", protocol, "--root", str(REVOS / "truth"), "--out", packed]) == 0
    for truth in (REVOS / "truth", packed):
        scores = segjudge.score(REVOS / case, truth, protocol)
        values = scores.metrics["val"]
        assert len(golden["summary"]) == 4 - official
        for group, numbers in golden["summary"].items():
            for name, number in numbers.items():
                assert values[f"{NAMES[name]}{GROUPS[group]}-Mean"] == pytest.approx(number / scale, **EXACT)
        rows = {f"{row['sequence']}_{row['object']}": row for row in scores.tables["objects"]}
        expressions = golden["rounded" if official else "expressions"]
        assert rows.keys() == expressions.keys()
        for expression, numbers in expressions.items():
            for name in NAMES.keys() & numbers.keys():
                value = rows[expression][f"{NAMES[name]}-Mean"]
                assert value == pytest.approx(numbers[name] / scale, **EXACT)
        output = "\n".join(scores.warnings)
        assert "1 of 4 sequences is missing: not_sent (scored as 0)" in output
        grey = official and case in ("grey255", "palette")
        assert ("masks of 6 of 6 expressions hold values other than 0 and 1, which lowers A and R" in output) is grey
        assert ("vid_a_1: 2 of 6 expressions lack masks: 0, 2, all of the" in output) is (case == "broken")


def scored(files: dict[str, Any], truth: Path, protocol: str, folder: Path) -> segjudge.Scores:
    results = folder / "sent.zip"
    results.write_bytes(zipped(files))
    return segjudge.score(results, truth, protocol)


LEFT, MIDDLE = (np.array([[start <= column < start + 2 for column in range(6)]] * 4, np.uint8) for start in (0, 1))


def runs(mask: Any) -> dict[str, Any]:
    return published.rle(mask.astype(bool))


def small_truth(folder: Path) -> Path:
    expressions = {
        name: {"exp": "it", "anno_id": ids, "type_id": kind}
        for kind, (name, ids) in enumerate({"0": [7], "1": [7, 8], "2": []}.items())
    }
    videos = {"a": {"expressions": expressions, "frames": ["00000", "00001"]}}
    return written(folder / "t", {
        META: {"videos": videos},
        "mask_dict.json": {"7": [runs(LEFT)] * 2, "8": [runs(MIDDLE), None]},
        "mask_dict_foreground.json": {"a": {"masks_rle": [[runs(LEFT), runs(MIDDLE)], runs(LEFT)]}},
    })  # fmt: skip


def values_of(scores: segjudge.Scores, name: str) -> list[float]:
    (row,) = [row for row in scores.tables["objects"] if row["object"] == name]
    return [row[f"{metric}-Mean"] for metric in ("J", "A", "R")]


def test_where_objects_overlap_the_official_truth_is_two_and_wraps(tmp_path: Path) -> None:
    truth, results = small_truth(tmp_path), tmp_path / "results.json"
    union = {"1": [runs(LEFT | MIDDLE), runs(LEFT)], "2": [None, None]}
    results.write_text(json.dumps({"a": {"0": [runs(LEFT), runs(LEFT | MIDDLE)], **union}}))
    safe, official = (segjudge.score(results, truth, name) for name in ("revos", "revos-official"))
    # Of 24 pixels four are outside in the second frame, whose foreground has eight.
    assert values_of(safe, "0") == pytest.approx([5 / 6, 11 / 12, 3 / 4], **EXACT)
    assert values_of(official, "0") == pytest.approx([0.8333, 0.9167, 0.75], **EXACT)
    assert values_of(safe, "1") == values_of(safe, "2") == values_of(official, "2") == [1, 1, 1]
    # Four pixels of the first frame are wrong, and count 255 each: of that frame no R is left.
    assert values_of(official, "1") == pytest.approx([1, 0.9167, 0.5], **EXACT)
    results.write_text(json.dumps({"a": union}))
    official = segjudge.score(results, truth, "revos-official")
    assert values_of(official, "0") == [0, 0, 0]
    assert official.warnings == ["val: a: 1 of 3 expressions lacks masks: 0, all of the frames' size (scored as 0)"]
    with pytest.raises(SubmissionError, match="1 of 3 expressions lacks masks: 0"):
        segjudge.score(results, truth, "revos")


def test_officially_a_mask_that_cannot_be_read_is_an_error_and_folders_have_to_be_of_expressions(
    tmp_path: Path,
) -> None:
    truth = small_truth(tmp_path)
    masks = {"0": [LEFT, LEFT], "1": [LEFT | MIDDLE, LEFT], "2": [LEFT * 0] * 2}
    files = {f"a/{name}/{k:05d}.png": png(mask) for name, both in masks.items() for k, mask in enumerate(both)}
    assert values_of(scored(files, truth, "revos-official", tmp_path), "1") == pytest.approx([1, 0.9167, 0.5], **EXACT)
    for data, sentence in (
        (files["a/1/00000.png"][:-30], "a/1/00000.png: is cut off"),
        (b"hello", "a/1/00000.png: is not a PNG"),
        (raw_png(6, 4, 8, 0, b"\0"), "a/1/00000.png: is"),
    ):
        with pytest.raises(SubmissionError, match=sentence):
            scored({**files, "a/1/00000.png": data}, truth, "revos-official", tmp_path)
    with pytest.raises(SubmissionError, match="a: 3 of 3 expressions lack masks: 0, 1, 2"):
        scored({f"a/{k:05d}.png": png(LEFT) for k in range(2)}, truth, "revos-official", tmp_path)


def test_a_truth_needs_the_foreground_of_each_video(tmp_path: Path) -> None:
    truth, packed = published.published("revos", tmp_path), str(tmp_path / "truth.zip")
    results = tmp_path / "sent.zip"
    results.write_bytes(published.upload("revos", truth))
    assert main(["pack", "--layout", "mevis", "--root", str(truth), "--out", packed]) == 0
    assert segjudge.score(results, packed, "mevis")["J-Mean"] == 1
    scores = segjudge.score(results, packed, "revos")
    assert scores["R-Mean"] == 1
    (note,) = scores.notes
    assert note.startswith("val: it was not packed with --layout revos: expressions have no types and count equally")
    masks = json.loads((truth / "mask_dict_foreground.json").read_text())
    (truth / "mask_dict_foreground.json").write_text(json.dumps({"swan": masks["swan"]}))
    scores = segjudge.score(results, truth, "revos")
    assert scores.notes == [f"1 video of {META} has no masks and is skipped: goat"]
    (truth / "mask_dict_foreground.json").unlink()
    with pytest.raises(HostError, match=r"has no mask_dict_foreground\.json"):
        segjudge.score(results, truth, "revos")


def test_a_foreground_may_be_empty(tmp_path: Path) -> None:
    truth, results = small_truth(tmp_path), tmp_path / "results.json"
    (truth / "mask_dict_foreground.json").write_text(json.dumps({"a": {"masks_rle": [None, None]}}))
    right = {"1": [runs(LEFT | MIDDLE), runs(LEFT)], "2": [None, None]}
    results.write_text(json.dumps({"a": {"0": [runs(LEFT), runs(LEFT | MIDDLE)], **right}}))
    scores = segjudge.score(results, truth, "revos")
    assert values_of(scores, "0") == pytest.approx(
        [5 / 6, 11 / 12, 1 / 2], **EXACT
    )  # an empty outside is all right, or all wrong
    assert scores.notes == []
