"""Referring video: every number of MeViS's script and of Ref-DAVIS17, by PNGs and JSON, in every way to score."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

import segjudge
from segjudge.cli import main as cli
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from tests.builders import png, zipped
from tests.data import TRACKS_DATA, copy_files
from tests.shared import needs_shared

MEVIS, REFDAVIS = TRACKS_DATA / "mevis", TRACKS_DATA / "refdavis"
META = {"submission": "meta_expressions_without_late_start.json", "broken": "meta_expressions.json"}
CLOSE = {"abs": 1e-9, "rel": 0}


def mevis_truth(case: str, folder: Path) -> Path:
    """Return the published truth of a golden submission."""
    (folder / "valid_u").mkdir()
    shutil.copy(MEVIS / "truth" / META[case], folder / "valid_u" / "meta_expressions.json")
    shutil.copy(MEVIS / "truth" / "mask_dict.json", folder / "valid_u")
    return folder / "valid_u"


def objects(scores: segjudge.Scores) -> dict[str, list[float]]:
    rows = scores.tables["objects"]
    return {f"{row['sequence']}_{row['object']}": [row["J-Mean"], row["F-Mean"]] for row in rows}


@needs_shared
@pytest.mark.parametrize(("case", "protocol"), [("submission", "mevis"), *((case, "mevis-official") for case in META)])
def test_mevis_scores_as_its_script_does(case: str, protocol: str, tmp_path: Path) -> None:
    golden = json.loads((MEVIS / "golden.json").read_text())[case]
    root, packed = mevis_truth(case, tmp_path), str(tmp_path / "truth.zip")
    assert cli(["pack", "--layout", "mevis", "--root", str(root), "--out", packed, "--split", "valid_u"]) == 0
    for truth in (root, packed):
        scores = segjudge.score(MEVIS / case, truth, protocol)
        assert objects(scores) == {name: pytest.approx(pair, **CLOSE) for name, pair in golden["expressions"].items()}
        ((results),) = scores.metrics.values()
        for metric in ("J", "F", "J&F"):
            assert results[f"{metric}-Mean"] == pytest.approx(golden[metric], **CLOSE)
    output = "\n".join(scores.warnings)
    assert "1 of" in output
    assert "sequences is missing: not-sent (scored as 0)" in output
    assert ("late-start: 6 of 6 expressions lack masks" in output) == (case == "broken")


@needs_shared
def test_by_default_an_expression_that_lacks_masks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError) as caught:
        segjudge.score(MEVIS / "broken", mevis_truth("broken", tmp_path), "mevis")
    text = str(caught.value)
    assert "0a1b2c3d4e5f: 1 of 6 expressions lacks masks: 0." in text
    assert "mostly-absent/1/00005.png: is missing" in text
    assert "late-start" not in text  # whose frames are all there, though none is called 00000


@needs_shared
@pytest.mark.parametrize("protocol", ["ref-davis17", "ref-davis17-strict"])
def test_four_annotators_are_averaged(protocol: str) -> None:
    golden = json.loads((REFDAVIS / "golden.json").read_text())
    scores = segjudge.score(REFDAVIS / "submission", REFDAVIS / "DAVIS", protocol, subset="val")
    results, each = scores.metrics["val"], []
    for part in golden["annotators"]:
        rules = replace(SEQUENCE_PROTOCOLS[protocol], rounds=())
        root = REFDAVIS / "submission" / part
        each.append(segjudge.score(root, REFDAVIS / "DAVIS", rules, subset="val", layout="ref-davis17").metrics["val"])
        if protocol == "ref-davis17":
            assert each[-1] == {**each[-1], **golden["annotators"][part]["global"]}
    for metric in PROTOCOLS[protocol].metrics:
        assert results[metric] == pytest.approx(np.mean([item[metric] for item in each]), **CLOSE)
        if protocol == "ref-davis17":
            assert results[metric] == pytest.approx(golden["mean_of_four"][metric], **CLOSE)
    assert results["J-Mean"] is not None
    # Two expressions that were swapped score as if they were right officially, and not in the strict row.
    assert protocol == "ref-davis17" or results["J-Mean"] < golden["mean_of_four"]["J-Mean"]


@needs_shared
def test_a_missing_round_is_an_error_and_rounds_are_no_more_videos(tmp_path: Path) -> None:
    copy_files(REFDAVIS / "submission", tmp_path / "s")
    for part in ("anno_0", "anno_1", "anno_2", "anno_3"):
        copy_files(tmp_path / "s" / "anno_0", tmp_path / "same" / part)
    options = {"subset": "val", "layout": "ref-davis17"}
    scores = segjudge.score(tmp_path / "s" / "anno_0", REFDAVIS / "DAVIS", "davis2017-unsupervised", **options)
    four = segjudge.score(tmp_path / "same", REFDAVIS / "DAVIS", "ref-davis17", **options)
    assert four.standard_errors["val"] == pytest.approx(scores.standard_errors["val"])
    shutil.rmtree(tmp_path / "s" / "anno_2")
    with pytest.raises(SubmissionError, match="3 of 12 sequences are missing: anno_2/"):
        segjudge.score(tmp_path / "s", REFDAVIS / "DAVIS", "ref-davis17", **options)


#: A video of two frames of 4×6 pixels: two masks, and expressions that name one, both and none.
SIZE = (4, 6)
LEFT = np.array([[1, 1, 0, 0, 0, 0]] * 4, np.uint8)
RIGHT = np.array([[0, 0, 0, 0, 1, 1]] * 4, np.uint8)
NONE = np.zeros(SIZE, np.uint8)
NAMED = {"0": [7], "1": [7, 8], "2": []}


def runs(mask: Any) -> dict[str, Any]:
    flat, counts, value = mask.T.reshape(-1), [], 0
    while len(flat):
        run = int(np.argmax(flat != value)) if (flat != value).any() else len(flat)
        counts.append(run)
        flat, value = flat[run:], 1 - value
    return {"size": list(SIZE), "counts": counts}


DOCUMENT = {
    "a": {
        "0": [runs(LEFT), runs(LEFT)],
        "1": [runs(LEFT | RIGHT), runs(LEFT)],
        "2": [None, None],
    }
}  # fmt: skip


def small_truth(folder: Path, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    expressions = {name: {"exp": "it", "obj_id": ids, "anno_id": ids} for name, ids in NAMED.items()}
    video = {"expressions": expressions, "frames": ["00000", "00001"], **changes}
    (folder / "meta_expressions.json").write_text(json.dumps({"videos": {"a": video}}))
    masks = {"7": [runs(LEFT), runs(LEFT)], "8": [runs(RIGHT), None]}
    (folder / "mask_dict.json").write_text(json.dumps(masks))
    return folder


def upload(first: bytes | None = None, **files: bytes) -> bytes:
    masks = {"0": [LEFT, LEFT], "1": [LEFT | RIGHT, LEFT], "2": [NONE, NONE]}
    members = {f"a/{name}/{k:05d}.png": png(item * 255) for name, both in masks.items() for k, item in enumerate(both)}
    members |= {"a/0/00000.png": first} if first is not None else {}
    return zipped({name: data for name, data in {**members, **files}.items() if data != b"absent"})


def scored(data: bytes, folder: Path, protocol: str = "mevis") -> segjudge.Scores:
    (folder / "sent").write_bytes(data)
    return segjudge.score(folder / "sent", small_truth(folder / "t"), protocol)


@pytest.mark.parametrize("sent", [upload(), json.dumps(DOCUMENT).encode()], ids=["png", "json"])
def test_expressions_are_unions_and_their_numbers_begin_with_0(sent: bytes, tmp_path: Path) -> None:
    scores = scored(sent, tmp_path, "mevis-v2")
    assert {row["object"]: row["J-Mean"] for row in scores.tables["objects"]} == {"0": 1, "1": 1, "2": 1}
    assert scores.warnings == []
    assert scores.metrics["val"]["Final"] == 1


def test_accuracies_are_of_whole_expressions(tmp_path: Path) -> None:
    blank, stray = png(NONE), png(np.pad([[1]], ((0, 3), (0, 5))).astype(np.uint8))
    sent = upload(**{"a/2/00001.png": stray, "a/0/00000.png": blank, "a/0/00001.png": blank})
    values = scored(sent, tmp_path, "mevis-v2").metrics["val"]
    assert (values["N-acc"], values["T-acc"]) == (0, 1 / 2)
    assert values["Final"] == pytest.approx((values["J&F-Mean"] + 1 / 2) / 3)


@pytest.mark.parametrize("ids", [lambda ids: ids, lambda ids: str(ids[0])], ids=["list", "text"])
def test_label_images_are_read_for_the_listed_frames_that_there_are(ids: Callable[[Any], Any], tmp_path: Path) -> None:
    root = tmp_path / "t"
    masks, meta = root / "valid" / "Annotations", root / "meta_expressions" / "valid"
    (masks / "a").mkdir(parents=True)
    meta.mkdir(parents=True)
    (masks / "a" / "00000.png").write_bytes(png(LEFT * 7 + RIGHT * 8))
    (masks / "a" / "00005.png").write_bytes(png(LEFT * 7))
    named = {name: {"exp": "it", "obj_id": ids(numbers)} for name, numbers in NAMED.items() if numbers}
    (masks / "of-other-frames").mkdir()
    (masks / "of-other-frames" / "00001.png").write_bytes(png(LEFT * 7))
    names = ("of-other-frames", "a", "of-the-test-set")
    videos = {name: {"expressions": named, "frames": ["00000", "00005", "00010"]} for name in names}
    (meta / "meta_expressions.json").write_text(json.dumps({"videos": videos}))
    beside = meta.parent / "train"
    beside.mkdir()
    (beside / "meta_expressions.json").write_text(json.dumps({"videos": {"of-another-set": videos["a"]}}))
    (tmp_path / "sent.zip").write_bytes(
        zipped({f"a/{name}/{frame}.png": png(LEFT) for name in named for frame in ("00000", "00005", "00010")})
    )
    scores = segjudge.score(tmp_path / "sent.zip", root, "ref-youtube-vos", subset="valid")
    assert scores.notes == [
        "2 videos of meta_expressions/valid/meta_expressions.json have no masks and are skipped: of-other-frames, of-the-test-set"
    ]
    both = ids([7, 8]) == [7, 8]
    assert {row["object"]: row["J-Mean"] for row in scores.tables["objects"]} == {"0": 1, "1": 0.75 if both else 1}


TRUTHS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no-masks": (lambda root: (root / "mask_dict.json").unlink(), "has no mask_dict.json"),
    "no-expressions": (lambda root: (root / "meta_expressions.json").unlink(), "has no meta_expressions.json"),
    "no-videos": (lambda root: (root / "meta_expressions.json").write_text("{}"), "is not a file of expressions"),
    "other-masks": (lambda root: (root / "mask_dict.json").write_text("{}"), "no video of meta_expressions.json has"),
    "broken-masks": (lambda root: (root / "mask_dict.json").write_text("[1]"), "is not an object of run lengths"),
    "short": (lambda root: small_truth(root, frames=["00000"]), "has 2 masks"),
    "two": (
        lambda root: (
            [(root / name).mkdir() or shutil.copy(root / "meta_expressions.json", root / name) for name in ("x", "y")]
            and (root / "meta_expressions.json").unlink()
        ),
        "choose one with --subset",
    ),
    "sizes": (
        lambda root: (root / "mask_dict.json").write_text(
            json.dumps({"7": [{"size": [1, 1], "counts": [1]}, None], "8": [runs(LEFT), None]})
        ),
        "not run lengths of the same size",
    ),
    "faulty": (
        lambda root: (root / "mask_dict.json").write_text(
            json.dumps({"7": [{"size": list(SIZE), "counts": [3]}, None], "8": [None, None]})
        ),
        "add up to 3, not to the 24 pixels",
    ),
}


@pytest.mark.parametrize("name", TRUTHS)
def test_a_truth_that_cannot_be_read_is_a_sentence(name: str, tmp_path: Path) -> None:
    spoil, sentence = TRUTHS[name]
    spoil(small_truth(tmp_path / "t"))
    (tmp_path / "sent").write_bytes(upload())
    with pytest.raises(HostError, match=sentence):
        segjudge.score(tmp_path / "sent", tmp_path / "t", "mevis")
