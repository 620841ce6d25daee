"""Causes of the loss of volumes: their costs sum to it, and sentences state only facts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import segjudge
from segjudge.families import tools_of
from segjudge.families.volumes.diagnosis import Diagnosis, diagnose
from segjudge.families.volumes.report import sum_causes
from segjudge.report.page import PageOptions
from segjudge.scoring.scores import Scores
from tests.builders import zipped

from .family import encode_volume

_SHAPE = (12, 28, 36)


def draw_case(random: np.random.Generator, labels: int) -> np.ndarray:
    """Draw blobs of random labels."""
    volume = np.zeros(_SHAPE, np.uint8)
    places = np.indices(_SHAPE)
    for _ in range(int(random.integers(3, 12))):
        middle = random.integers(0, _SHAPE)[:, None, None, None]
        radii = random.uniform(1, 5, 3)[:, None, None, None]
        volume[(((places - middle) / radii) ** 2).sum(axis=0) <= 1] = random.integers(1, labels + 1)
    return volume


def spoil_case(volume: np.ndarray, random: np.random.Generator, labels: int) -> np.ndarray:
    """Move a volume, draw and erase blobs in it, and exchange some of its labels."""
    spoilt = np.roll(volume, random.integers(-2, 3, 3), (0, 1, 2))
    other = draw_case(random, labels)
    spoilt = np.where(random.random(_SHAPE) < 0.03, other, spoilt)
    spoilt[other == 1] = random.integers(0, labels + 1)
    return spoilt


def score(folder: Path, protocol: str, pairs: list[tuple[np.ndarray, np.ndarray]]) -> Scores:
    (folder / "truth").mkdir()
    for number, (truth, _) in enumerate(pairs):
        (folder / "truth" / f"case_{number:03d}.nii.gz").write_bytes(encode_volume(truth))
    files = {f"case_{number:03d}.nii.gz": encode_volume(sent) for number, (_, sent) in enumerate(pairs)}
    (folder / "results.zip").write_bytes(zipped(files))
    return segjudge.score(folder / "results.zip", folder / "truth", protocol)


def look(scores: Scores) -> Diagnosis:
    return diagnose(scores.open_inputs(), scores.reports[0])


def read_sentences(scores: Scores) -> list[str]:
    sentences = scores.make_page(PageOptions(), "causes").sections[0].values["sentences"]
    return [str(sentence) for sentence in sentences]  # type: ignore[attr-defined] # a list of sentences


@pytest.mark.parametrize(("protocol", "measure"), [("volumes", "Dice"), ("brats-2023", "LesionDice")])
def test_the_verdict_on_a_score_names_the_measure_of_the_loss(tmp_path: Path, protocol: str, measure: str) -> None:
    truth = draw_case(np.random.default_rng(3), 3)
    scores = score(tmp_path, protocol, [(truth, np.where(truth == 3, 0, truth)), (truth, truth)])
    (report,) = scores.reports
    verdict = tools_of(report.protocol.family).describe_loss(report)
    assert verdict.startswith(f"1 of 2 cases causes 100 % of the loss of {measure}. ")


@pytest.mark.parametrize(
    ("protocol", "labels"),
    [("volumes", 3), ("brats-2023", 3), ("brats-2024-ped", 4), ("kits23", 3), ("flare22", 13), ("hecktor", 2),
     ("totalsegmentator", 5), ("autopet", 1), ("brats-2024-men-rt", 1), ("topcow", 12), ("components", 3)],
)  # fmt: skip
def test_what_all_causes_cost_is_what_the_first_share_lacks(protocol: str, labels: int, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    truths = [draw_case(random, labels) for _ in range(6)]
    scores = score(tmp_path, protocol, [(truth, spoil_case(truth, random, labels)) for truth in truths])
    verdicts, report = look(scores), scores.reports[0]
    lost = 1 - (report.values[report.protocol.metrics[0]] or 0)
    assert lost > 0.05
    assert sum(sum_causes(verdicts).values()) == pytest.approx(lost, abs=1e-9)
    assert verdicts.causes.describe()


def test_missed_lesions_are_counted_with_their_volume(tmp_path: Path) -> None:
    truth = np.zeros(_SHAPE, np.uint8)
    for number in range(4):
        truth[2:8, 2:20, 8 * number + 1 : 8 * number + 6] = 1
    truth[10, 24:26, 30:32] = truth[10, 24:27, 2:4] = 1
    sent = truth.copy()
    sent[10] = 0
    sent[2] = 0
    sentences = read_sentences(score(tmp_path, "isles22", [(truth, sent), (truth, truth)]))
    small = "4 of 12 lesions are too small: 17 % of their voxels are missing"
    assert sentences[1] == f"{small}; 2 of 12 lesions are missed, all below 6.1 mm³."


def test_false_volume_of_healthy_cases_is_named_where_nothing_else_is_lost(tmp_path: Path) -> None:
    truth = np.zeros(_SHAPE, np.uint8)
    truth[2:8, 2:20, 2:20] = 1
    false = np.zeros(_SHAPE, np.uint8)
    false[:10, :20, :20] = 1
    sentences = read_sentences(score(tmp_path, "autopet", [(truth, truth), (truth * 0, false)]))
    assert sentences == ["<b>Dice is 1.000, FPV is 2.</b>", "1 of 2 predicted lesions matches nothing."]


def test_a_part_of_a_label_that_is_called_another_is_said_to_be_a_part(tmp_path: Path) -> None:
    truth = np.zeros(_SHAPE, np.uint8)
    truth[2:10, 4:24, 4:14] = 1
    sent = truth.copy()
    sent[2:10, 4:24, 4:8] = 2
    sentences = read_sentences(score(tmp_path, "kits23", [(truth, sent), (truth, truth)]))
    assert sentences[1].startswith("Part of label 1 (kidney) is called tumor in 1 of 2 cases")


def test_missing_voxels_that_have_another_label_are_named(tmp_path: Path) -> None:
    truth = np.zeros(_SHAPE, np.uint8)
    truth[2:10, 4:24, 4:14], truth[2:10, 4:24, 14:18] = 2, 3
    sent = np.where((truth == 3) & (np.indices(_SHAPE)[2] < 16), 2, truth)
    sentences = read_sentences(score(tmp_path, "brats-2023", [(truth, sent)]))
    assert "called label 2 (WT)" in sentences[1]


def test_parts_of_a_lesion_that_do_not_touch_are_not_called_split(tmp_path: Path) -> None:
    """BraTS joins parts of a true lesion within three voxels, but not those of predictions."""
    truth = np.zeros(_SHAPE, np.uint8)
    truth[2:9, 4:20, 4:14] = truth[2:9, 4:20, 16:30] = 3
    cut = truth.copy()
    cut[:, 12, :] = 0
    (tmp_path / "moved").mkdir()
    (tmp_path / "cut").mkdir()
    sentences = read_sentences(score(tmp_path / "moved", "brats-2023", [(truth, np.roll(truth, 1, 2))]))
    assert "inexact" in sentences[1]
    assert "split" not in " ".join(sentences)
    assert "split" in read_sentences(score(tmp_path / "cut", "brats-2023", [(truth, cut)]))[1]
