"""Label maps of images: every number of ADE20K's and BDD100K's evaluators, and the cost of hostile submissions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.families.semantic import engine as semantic
from segjudge.evaluation_script.families.semantic.protocols import SEMANTIC_PROTOCOLS
from segjudge.evaluation_script.files.limits import UNIT_LIMITS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.families.semantic.pictures import SemanticPainter
from tests.backends import use_numpy
from tests.builders import png, zipped
from tests.data import FAMILIES_DATA
from tests.families.semantic.test_semantic import IMAGE, LABELS, painted
from tests.families.unit_counts import CLOSE, count_units, pack_units, read_golden, score_units
from tests.hostile_units import Make, hostile, sentence_of

ADE20K, BDD100K = FAMILIES_DATA / "ade20k", FAMILIES_DATA / "bdd100k"
ADE20K_CASES, BDD100K_CASES = (read_golden(folder)["cases"] for folder in (ADE20K, BDD100K))


def truths(folder: Path, tmp_path: Path) -> list[UnitTruth]:
    """Return a truth as published, and packed."""
    published = semantic.read_images(str(folder))
    return [published, pack_units(published, tmp_path)]


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("case", [name for name in ADE20K_CASES if name not in ("missing", "other-size")])
def test_ade20k_scores_as_its_evaluators_say(
    case: str, kernel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        use_numpy(monkeypatch)
    golden = ADE20K_CASES[case]["sceneparsing"]
    for truth in truths(ADE20K / "truth", tmp_path):
        counts = count_units(ADE20K / case, truth, "ade20k")
        values = semantic.values(counts)
        assert list(values) == list(SEMANTIC_PROTOCOLS["ade20k"].metrics)
        assert values["mIoU-official"] == pytest.approx(golden["mean_iou"], **CLOSE)
        assert values["Acc"] == pytest.approx(golden["accuracy"], **CLOSE)
        assert values["Score"] == pytest.approx((golden["mean_iou"] + golden["accuracy"]) / 2, **CLOSE)
        rows = {row["id"]: row for row in semantic.tables(counts)["categories"]}
        for label, iou in enumerate(golden["iou"], 1):
            assert (rows[label]["IoU"] or 0 if label in rows else 0) == pytest.approx(iou or 0, **CLOSE)
    assert rows[1]["name"] == "wall"


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("case", [name for name in BDD100K_CASES if not name.endswith("other-size")])
def test_bdd100k_scores_as_its_script_says(
    case: str, kernel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        use_numpy(monkeypatch)
    part, golden = case.partition("/")[0], BDD100K_CASES[case]
    for truth in truths(BDD100K / part / "truth", tmp_path):
        counts = count_units(BDD100K / case, truth, "bdd100k" if part == "sem_seg" else "bdd100k-drivable-official")
        values = {name: 100 * (value or 0) for name, value in semantic.values(counts).items()}
        assert values["mIoU"] == pytest.approx(golden["IoU"][1]["AVERAGE"], **CLOSE)
        assert values["Precision"] == pytest.approx(golden["Acc"][1]["AVERAGE"], **CLOSE)
        assert values["fwIoU"] == pytest.approx(golden["fIoU"], **CLOSE)
        assert values["Acc"] == pytest.approx(golden["pAcc"], **CLOSE)
        for row in semantic.tables(counts)["categories"]:
            assert 100 * (row["IoU"] or 0) == pytest.approx(golden["IoU"][0][row["name"]], **CLOSE)


def images(folder: Path, **maps: Any) -> Path:
    painted(folder, {f"{name}.png": labels for name, labels in maps.items()})
    return folder


def test_means_over_the_truths_classes_over_all_and_background_can_be_counted_by_hand(tmp_path: Path) -> None:
    truth = semantic.read_images(str(images(tmp_path / "t", a=[[1, 1, 2, 0]], b=[[2, 2, 2, 2]])))
    sent = images(tmp_path / "s", a=[[1, 3, 2, 9]], b=[[2, 2, 200, 0]])
    values = score_units(sent, truth, "ade20k")
    assert values["mIoU"] == (1 / 2 + 3 / 5) / 2
    assert values["mIoU-official"] == pytest.approx((1 / 2 + 3 / 5) / 150)
    assert values["Acc"] == 4 / 7
    assert values["Score"] == pytest.approx((values["mIoU-official"] + 4 / 7) / 2)
    road = semantic.read_images(str(images(tmp_path / "r", a=[[0, 1, 2, 2]])))
    everywhere = images(tmp_path / "e", a=[[0, 1, 0, 0]])
    assert score_units(everywhere, road, "bdd100k-drivable-official")["mIoU"] == 1
    assert score_units(everywhere, road, "bdd100k-drivable")["mIoU"] == (1 / 3 + 1) / 2


def test_shared_pixels_have_a_row_for_each_true_and_a_column_for_each_predicted_class(tmp_path: Path) -> None:
    truth = semantic.read_images(str(images(tmp_path / "t", a=[[1, 1, 2, 2]])))
    sent = images(tmp_path / "s", a=[[2, 2, 2, 3]])
    painter = SemanticPainter(str(sent), truth, ScoringRules(SEMANTIC_PROTOCOLS["ade20k"], UNIT_LIMITS))
    (seen,) = painter.read_frames(truth.units[0], truth.units[0].load(), {})
    painter.close()
    assert seen.shared.tolist() == [[2, 0], [1, 1]]


def test_an_image_that_was_not_sent_is_missed_where_the_benchmark_has_it_so(tmp_path: Path) -> None:
    truth = semantic.read_images(str(images(tmp_path / "t", a=[[1, 2]], b=[[1, 2]])))
    counts = count_units(images(tmp_path / "s", a=[[1, 2]]), truth, "bdd100k")
    assert counts.notes == ["1 image is missing: b. All of their pixels count as missed"]
    assert semantic.values(counts)["mIoU"] == 1 / 2
    with pytest.raises(SubmissionError, match="1 of 2 images is missing: b"):
        count_units(tmp_path / "s", truth, "ade20k")


def test_published_folders_are_found(tmp_path: Path) -> None:
    ade = painted(tmp_path / "ade", {
        "annotations/training/x.png": [[1]], "annotations/validation/a.png": [[1]], "annotations/validation/b.png": [[1]],
    })  # fmt: skip
    assert semantic.read_images(str(ade)).item_names == ["a", "b"]
    assert semantic.read_images(str(ade), "training").item_names == ["x"]
    bdd = painted(tmp_path / "bdd", {
        f"sem_seg/{kind}/{part}/a.png": [[1]] for kind in ("masks", "colormaps") for part in ("train", "val")
    })  # fmt: skip
    assert semantic.read_images(str(bdd)).item_names == ["a"]
    twice = painted(tmp_path / "twice", {"x/a.png": [[1]], "y/a.png": [[1]]})
    with pytest.raises(HostError, match="1 PNG with names that other PNGs have too"):
        semantic.read_images(str(twice))
    (tmp_path / "empty").mkdir()
    with pytest.raises(HostError, match="has no PNG"):
        semantic.read_images(str(tmp_path / "empty"))


# ── hostile submissions ─────────────────────────────────────────────────────


def upload(first: bytes | None = None, **files: bytes) -> bytes:
    members = {"a.png": IMAGE if first is None else first, "b.png": IMAGE}
    return zipped({name: data for name, data in {**members, **files}.items() if data != b"absent"})


HOSTILE: dict[str, tuple[Make, str]] = {
    "json": (lambda: json.dumps({"a": []}).encode(), "2 of 2 images are missing: a, b"),
    "one-missing": (lambda: upload(**{"b.png": b"absent"}), "1 of 2 images is missing: b"),
    "other-names": (lambda: zipped({"0.png": IMAGE, "1.png": IMAGE}), "2 of 2 images are missing"),
    "twice": (lambda: upload(**{"x/a.png": IMAGE}), "a: there are 2 PNGs a.png"),
    "surplus": (lambda: upload(**{"c.png": b"no picture"}), "scored"),
    "label-0": (lambda: upload(png(np.zeros(LABELS.shape, np.uint8))), "scored"),
    "label-255": (lambda: upload(png(np.full(LABELS.shape, 255, np.uint8))), "scored"),
}  # fmt: skip


@hostile(HOSTILE)
def test_hostile_submissions_get_a_sentence_soon_and_in_little_memory(
    make: Make, sentence: str, tmp_path: Path
) -> None:
    truth = semantic.read_images(str(images(tmp_path / "t", a=LABELS + 1, b=LABELS + 1)))
    assert sentence in sentence_of(make(), tmp_path, lambda path: score_units(path, truth, "ade20k"))
