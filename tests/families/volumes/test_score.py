"""Messages of `score` about submissions: unknown labels, names of files, missing, surplus or duplicate cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.families.volumes import engine
from segjudge.evaluation_script.families.volumes.files import read_truth
from segjudge.evaluation_script.families.volumes.geometry import Geometry
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.families.volumes.challenges import encode_nifti, make_demo, make_sample
from tests.builders import written, zipped
from tests.families.volumes.volumes import DATA, read_golden

GRID = Geometry((8, 7, 6), (1.0, 1.0, 2.0), np.column_stack([np.diag([1.0, 1.0, 2.0]), np.zeros(3)]))
LABELS = np.zeros((6, 7, 8), np.uint8)
LABELS[1:4, 2:5, 2:6] = 1


def volume(labels: Any = LABELS) -> bytes:
    return encode_nifti(np.asarray(labels, np.uint8), GRID)


def score(folder: Path, truth: dict[str, bytes], results: dict[str, bytes], protocol: str = "autopet") -> Any:
    truths = written(folder / "truth", truth)
    archive = written(folder, {"results.zip": zipped(results)}) / "results.zip"
    return segjudge.score(archive, truths, protocol)


@pytest.mark.parametrize(
    ("most", "listed", "where"), [(3, 5, "no mean includes"), (2, 2, "no mean and no table includes")]
)
def test_tables_list_no_flood_of_labels_that_no_truth_has(
    tmp_path: Path, most: int, listed: int, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_MOST_FALSE_ROWS", most)
    flooded = LABELS.copy()
    flooded[5, 0, :3] = 7, 8, 9
    truth = {"a.nii.gz": volume(), "b.nii.gz": volume()}
    (report,) = score(tmp_path, truth, {"a.nii.gz": volume(flooded), "b.nii.gz": volume()}, "volumes").reports
    assert report.values["Dice"] == 1
    assert len(report.rows()["cases"]) == listed
    assert f"no truth has these predicted labels, which {where}: 7, 8, 9" in " ".join(report.warnings)


def test_truths_of_brats_may_end_in_seg(tmp_path: Path) -> None:
    name = "BraTS-GLI-00001-000"
    (report,) = score(
        tmp_path, {f"{name}/{name}-seg.nii.gz": volume()}, {f"{name}.nii.gz": volume()}, "brats-2023"
    ).reports
    assert report.values["LesionDice"] == 1


def test_names_with_and_without_a_suffix_in_one_upload_are_named(tmp_path: Path) -> None:
    truth = {f"c{number}.nii.gz": volume() for number in range(2)}
    results = {"c0-seg.nii.gz": volume(), "c1.nii.gz": volume()}
    with pytest.raises(SubmissionError) as rejection:
        score(tmp_path, truth, results, "volumes")
    sentence = "Some names end in -seg or _seg, others, such as c1.nii.gz, do not: name all alike"
    assert sentence in str(rejection.value)


@pytest.mark.parametrize("share", [0.0012, 0.03], ids=["good", "poor"])
def test_samples_of_a_new_challenge_do_not_look_moved(share: float, tmp_path: Path) -> None:
    protocol = VOLUME_PROTOCOLS["kits23"]
    truth = written(tmp_path / "truth", dict(make_demo(protocol)))
    sample = dict(make_sample([read_truth(str(truth))], protocol, share))
    archive = written(tmp_path, {"sample.zip": zipped(sample)}) / "sample.zip"
    scores = segjudge.score(archive, truth, protocol.name)
    assert 0.8 < scores.reports[0].values["Dice"] < 0.9
    assert scores.warnings == []


@pytest.mark.parametrize("submission", read_golden("hecktor")["cases"])
def test_aggregated_dice_is_that_of_hecktor(submission: str) -> None:
    golden = read_golden("hecktor")["cases"][submission]
    folder = DATA / "hecktor"
    if golden["safe"]:
        with pytest.raises(SubmissionError) as rejection:
            segjudge.score(folder / submission, folder / "truth", "hecktor")
        sentences = {"one-missing": "missing: CHUV003", "label-3": "not in the table: 3 in"}
        assert sentences[submission] in str(rejection.value)
        return
    (report,) = segjudge.score(folder / submission, folder / "truth", "hecktor").reports
    official = golden["hecktor_2022"]
    wanted = {"DSCagg": official["mean"], "DSCagg_GTVp": official["GTVp"], "DSCagg_GTVn": official["GTVn"]}
    assert report.values == pytest.approx(wanted, rel=1e-12)


def test_headers_that_were_put_in_order_are_reported(tmp_path: Path) -> None:
    """The golden truth's voxels, saved with x reversed, and a truth without a position."""
    truth = (DATA / "formats/plain.nii.gz").read_bytes() if DATA.exists() else b""
    if not truth:
        pytest.skip("needs the shared data")
    names = {"a": "flipped", "b": "axes-exchanged", "c": "neither", "d": "plain"}
    results = {f"{case}.nii.gz": (DATA / f"formats/{name}.nii.gz").read_bytes() for case, name in names.items()}
    (report,) = score(tmp_path, dict.fromkeys(results, truth), results, "volumes").reports
    assert report.values["Dice"] == 1
    assert report.warnings == [
        "val: 2 cases with exchanged or reversed axes, brought into the truth's order: a, b",
        "val: 1 case without a position in the header, compared by shape and spacing only: c",
    ]
