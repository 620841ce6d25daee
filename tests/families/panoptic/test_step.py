"""Panoptic sequences whose pixels encode class and object: STEP's numbers, and the cost of hostile submissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.families.panoptic import engine, files
from segjudge.evaluation_script.families.panoptic.protocols import PANOPTIC_PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.scoring.arrays import score_arrays
from tests.backends import use_numpy
from tests.builders import chunk, png, raw_png, zipped
from tests.data import FAMILIES_DATA
from tests.families.unit_counts import count_units, pack_units, read_golden, score_units
from tests.hostile_units import Make, hostile, sentence_of

STEP = FAMILIES_DATA / "step"
EXACT = {"abs": 1e-12, "rel": 0}
MEASURES = ("STQ", "AQ", "IoU")
CASES = [
    (name, case, golden)
    for name in ("kitti-step", "motchallenge-step")
    for case, golden in read_golden(STEP / name)["cases"].items()
]
#: Inputs that no protocol scores: classes that the benchmark does not have, and other sizes.
REFUSED = {
    "label-too-high": "in red. Write classes from 0 to",
    "label-classes": "in red. Write classes from 0 to",
    "other-size": "0002/000001.png: is ",
}


def truth_of(name: str, golden: Any) -> UnitTruth:
    truth = files.read_coded_truth(str(STEP / name / "truth"), name)
    return truth.select(golden.get("sequences", truth.item_names), None)


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize(
    ("name", "case", "golden"), [pytest.param(*case, id="/".join(case[:2])) for case in CASES if case[1] not in REFUSED]
)
def test_sequences_score_as_the_official_evaluator_says(
    name: str, case: str, golden: Any, kernel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        use_numpy(monkeypatch)
    truth = truth_of(name, golden)
    folder = STEP / name / ("ordinary" if case == "no-objects" else case)
    for form in (truth, pack_units(truth, tmp_path)):
        counts = count_units(folder, form, f"{name}-official")
        values = engine.values(counts)
        assert tuple(values) == PANOPTIC_PROTOCOLS[name].metrics == MEASURES
        rows = engine.tables(counts)["sequences"]
        assert {row["sequence"]: row["tubes"] for row in rows} == golden["tubes"]
        for measure in MEASURES:
            assert values[measure] == pytest.approx(golden[measure], **EXACT)
            assert [row[measure] for row in rows] == pytest.approx(golden[f"{measure}_per_seq"], **EXACT)
    # The safe rule differs where a pixel with a class was left unlabelled.
    safe = score_units(folder, truth, name)
    assert safe["AQ"] == values["AQ"]
    classes = len(engine.tables(counts)["categories"])
    void = case == "void-predicted"
    assert safe["IoU"] == pytest.approx(golden["IoU"] * ((classes + 1) / classes if void else 1), **EXACT)
    assert safe["STQ"] == pytest.approx((safe["AQ"] * safe["IoU"]) ** 0.5, **EXACT)


@pytest.mark.parametrize(
    ("name", "case", "golden"), [pytest.param(*case, id="/".join(case[:2])) for case in CASES if case[1] in REFUSED]
)
@pytest.mark.parametrize("row", ["", "-official"])
def test_what_ends_the_official_run_or_adds_a_class_is_an_error_that_says_where(
    name: str, case: str, golden: Any, row: str
) -> None:
    with pytest.raises(SubmissionError) as caught:
        score_units(STEP / name / case, truth_of(name, golden), name + row)
    assert REFUSED[case] in str(caught.value)


# ── by hand ─────────────────────────────────────────────────────────────────


def step_png(rows: list[list[tuple[int, int]]]) -> bytes:
    """Return a picture of classes and numbers of objects."""
    pixels = np.array(rows)
    return png(np.dstack([pixels[..., 0], pixels[..., 1] >> 8, pixels[..., 1] & 255]).astype(np.uint8))


SKY, ONE, TWO, CROWD, VOID = (10, 0), (13, 1), (13, 300), (13, 0), (255, 0)


def write(folder: Path, **sequences: list[bytes]) -> Path:
    for name, pictures in sequences.items():
        (folder / name).mkdir(parents=True)
        for number, picture in enumerate(pictures):
            (folder / name / f"{number:06d}.png").write_bytes(picture)
    return folder


def test_crowds_void_and_what_is_left_unlabelled_can_be_counted_by_hand(tmp_path: Path) -> None:
    truth = write(tmp_path / "t", a=[step_png([[SKY, ONE, ONE, ONE, ONE, CROWD, VOID]])])
    sent = write(tmp_path / "s", a=[step_png([[SKY, TWO, TWO, TWO, VOID, ONE, TWO]])])
    safe, official = (segjudge.score(sent, truth, name) for name in ("kitti-step", "kitti-step-official"))
    # Three of four pixels lie in an object of four, one of them on void; the crowd's pixel counts for the class alone.
    quality = 3 * (3 / 5) / 4
    for scores, iou in ((safe, (1 + 4 / 5) / 2), (official, (1 + 4 / 5 + 0) / 3)):
        assert scores.metrics["val"] == {
            "STQ": pytest.approx((quality * iou) ** 0.5, **EXACT),
            "AQ": pytest.approx(quality, **EXACT),
            "IoU": pytest.approx(iou, **EXACT),
        }
    assert safe.tables["categories"] == [
        {"split": "val", "id": 10, "name": "sky", "IoU": 1.0},
        {"split": "val", "id": 13, "name": "car", "IoU": 0.8},
    ]
    assert [row["tubes"] for row in safe.tables["sequences"]] == [1]
    first = [np.array([[10, 13, 13, 13, 13, 13, 255]]), np.array([[0, 1, 1, 1, 1, 0, 0]])]
    second = [np.array([[10, 13, 13, 13, 255, 13, 255 - 242]]), np.array([[0, 300, 300, 300, 0, 1, 300]])]
    (in_memory,) = score_arrays({"a": [second]}, {"a": [first]}, "kitti-step").reports
    assert in_memory.values == safe.metrics["val"]
    for broken, sentence in (
        ((first[0], first[1], first[1]), "Give .classes, numbers"),
        ((first[0] + 1, first[1]), "numbers up to 65535"),
        ((first[0], first[1] + 65_536), "numbers up to 65535"),
        ((first[0] * 0 + 19, first[1]), "holds the class 19 in red"),
        ((first[0], first[1][:, 1:]), "7x1"),
    ):
        with pytest.raises(SubmissionError, match=sentence):
            score_arrays({"a": [broken]}, {"a": [first]}, "kitti-step")


def test_of_several_splits_that_of_the_subset_is_read(tmp_path: Path) -> None:
    sky = [step_png([[SKY]])]
    maps = write(tmp_path / "k" / "panoptic_maps" / "val", a=sky)
    write(tmp_path / "k" / "panoptic_maps" / "train", a=sky, b=sky)
    write(tmp_path / "k" / "images" / "val", c=sky)
    names = [
        files.read_coded_truth(str(root), "kitti-step", subset).item_names
        for root, subset in ((tmp_path / "k", ""), (tmp_path / "k", "train"), (maps, ""))
    ]
    assert names == [["a"], ["a", "b"], ["a"]]
    with pytest.raises(HostError, match="has no PNG SEQUENCE/FRAME.png in a folder test"):
        files.read_coded_truth(str(tmp_path / "k"), "kitti-step", "test")
    (maps / "a").parent.rename(tmp_path / "k" / "panoptic_maps" / "other")
    with pytest.raises(HostError, match="has several folders named a; name the folder of one split"):
        files.read_coded_truth(str(tmp_path / "k"), "kitti-step")
    strange = write(tmp_path / "m", a=[step_png([[(7, 0)]])])
    with pytest.raises(HostError, match="holds the class 7 in red"):
        segjudge.score(write(tmp_path / "s", a=[step_png([[VOID]])]), strange, "motchallenge-step")


def test_ids_of_another_coding_are_noticed(tmp_path: Path) -> None:
    truth = write(tmp_path / "t", a=[step_png([[(number, 0) for number in (0, 1, 2, 8, 10, 13)]] * 4)])
    sent = write(tmp_path / "s", a=[step_png([[(number + 1, 0) for number in (0, 1, 2, 8, 10, 13)]] * 4)])
    (warning,) = segjudge.score(sent, truth, "kitti-step").warnings
    assert "categories look 1 too high: corrected" in warning


# ── hostile ─────────────────────────────────────────────────────────────────

SIZE = (12, 16)
MAP = np.zeros((*SIZE, 3), np.uint8)
MAP[:, 8:] = 13, 1, 44
IMAGE = png(MAP)


def upload(picture: bytes = IMAGE, **members: bytes) -> bytes:
    named = {"a/000000.png": IMAGE, "a/000001.png": picture, **members}
    return zipped({name: data for name, data in named.items() if data != b"absent"})


def with_red(red: int) -> bytes:
    pixels = MAP.copy()
    pixels[0, 0, 0] = red
    return png(pixels)


HOSTILE: dict[str, tuple[Make, str]] = {
    "good": (upload, "scored"),
    "text": (lambda: b"hello", "red is the class, green and blue the object's number"),
    "no-folder": (lambda: zipped({"000000.png": IMAGE}), "a, frame 000001: there is no PNG a/000001.png"),
    "as-vipseg": (lambda: zipped({"pred.json": b"{}", "pan_pred/a.png": IMAGE}), "1 of 1 sequence is missing: a"),
    "twice": (lambda: upload(**{"x/a/000001.png": IMAGE}), "there are 2 PNGs a/000001.png"),
    "class-254": (lambda: upload(with_red(254)), "holds the class 254 in red"),
    "all-void": (lambda: upload(png(np.full((*SIZE, 3), 255, np.uint8))), "scored"),
    "alpha": (lambda: upload(png(np.dstack([MAP, MAP[..., :1]]))), "scored"),
    "damaged": (lambda: upload(IMAGE[:45] + b"\xff\xff" + IMAGE[47:]), "is damaged"),
    "few-rows": (lambda: upload(raw_png(SIZE[1], SIZE[0], 8, 2, bytes(49 * 3))), "its pixels end in row 3"),
    "huge-header": (lambda: upload(raw_png(1 << 30, 1 << 30, 8, 2, b"\0" * 99)), "pixels but the frame is 16x12"),
    "bomb": (lambda: upload(raw_png(SIZE[1], SIZE[0], 8, 2, bytes(40 << 20))), "scored"),
    "many-chunks": (lambda: upload(IMAGE[:33] + chunk(b"tEXt", b"") * 9999 + IMAGE[33:]), "chunks"),
}  # fmt: skip


@hostile(HOSTILE)
def test_hostile_submissions_get_a_sentence_soon_and_in_little_memory(
    make: Make, sentence: str, tmp_path: Path
) -> None:
    truth = files.read_coded_truth(str(write(tmp_path / "t", a=[IMAGE, IMAGE])), "kitti-step")
    assert sentence in sentence_of(make(), tmp_path, lambda path: score_units(path, truth, "kitti-step"))
