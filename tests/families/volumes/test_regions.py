"""`report --region` scores and shows only one region, with the same values as among all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families.volumes.geometry import Geometry
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS
from segjudge.families.volumes.challenges import encode_nifti
from segjudge.families.volumes.regions import choose_region
from segjudge.system.errors import OptionError
from tests.builders import written

SPACING = (1.0, 1.5, 2.0)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the truth and the prediction of three cases: blocks of the labels 1 to 4, moved, and some missing."""
    draw, files = np.random.default_rng(9), (dict[str, bytes](), dict[str, bytes]())
    for case in range(3):
        true, predicted = np.zeros((9, 16, 14), np.uint8), np.zeros((9, 16, 14), np.uint8)
        for label in range(1, 5):
            z, y, x = draw.integers(0, (5, 10, 8)).tolist()
            true[z : z + 4, y : y + 5, x : x + 5] = label
            if label != 1 + case:
                predicted[z : z + 3, y + 1 : y + 6, x : x + 5] = label
        affine = np.column_stack([np.diag(SPACING), np.zeros(3)])
        for side, labels in zip(files, (true, predicted), strict=True):
            side[f"case_{case}.nii.gz"] = encode_nifti(labels, Geometry((14, 16, 9), SPACING, affine))
    folder = tmp_path_factory.mktemp("sides")
    return written(folder / "truth", files[0]), written(folder / "results", files[1])


@pytest.mark.parametrize(
    ("name", "region"),
    [("brats-2024-ped", "TC"), ("kits23", "tumor"), ("topcow", "Merged"), ("hecktor", "GTVn"), ("flare22", "Spleen")],
)
def test_a_region_alone_has_the_values_that_it_has_among_all(name: str, region: str, sides: tuple[Path, Path]) -> None:
    truth, results = sides
    protocol = VOLUME_PROTOCOLS[name]
    whole = segjudge.score(results, truth, protocol)
    alone = segjudge.score(results, truth, choose_region(protocol, region))
    rows = {row["name"]: row for row in whole.tables["regions"]}
    assert {measure: alone[measure] for measure in protocol.measures} == {
        measure: rows[region][measure] for measure in protocol.measures
    }


@pytest.mark.parametrize("name", ["volumes", "msd", "components", "totalsegmentator"])
def test_a_label_alone_has_the_values_that_it_has_among_all(name: str, sides: tuple[Path, Path]) -> None:
    truth, results = sides
    protocol = VOLUME_PROTOCOLS[name]
    rows = {row["name"]: row for row in segjudge.score(results, truth, protocol).tables["regions"]}
    for label in ("2", "label 4"):
        alone = segjudge.score(results, truth, choose_region(protocol, label))
        for measure in protocol.measures:
            assert alone[measure] == rows[label[-1]][measure], measure


@pytest.mark.parametrize(
    ("name", "region", "sentence"),
    [
        ("brats-2023", "et", "region et: brats-2023 has the regions WT, TC, ET"),
        ("volumes", "0", "region 0: give a label of volumes, from 1 to 65,535"),
        ("volumes", "65536", "region 65536: give a label of volumes, from 1 to 65,535"),
        ("volumes", "liver", "region liver: give a label of volumes, from 1 to 65,535"),
    ],
)
def test_another_region_is_an_error(name: str, region: str, sentence: str) -> None:
    with pytest.raises(OptionError) as raised:
        choose_region(VOLUME_PROTOCOLS[name], region)
    assert str(raised.value) == sentence


def test_the_page_and_the_slices_of_a_case_show_one_region(
    sides: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth, results = sides
    report = ["report", str(results), "--truth", str(truth), "--protocol", "kits23"]
    page, folder = tmp_path / "page.html", tmp_path / "drawn"
    assert main([*report, "--region", "tumor", "--out", str(page)]) == 0
    text = page.read_text()
    assert "kits23-tumor" in text
    assert "kidney" not in text.replace(json.dumps(VOLUME_PROTOCOLS["kits23"].about)[1:-1], "")
    assert main([*report, "--region", "tumor", "--sequences", "case_2", "--draw", str(folder)]) == 0
    drawn = (folder / "index.html").read_text()
    assert "case_2" in drawn
    assert "case_0" not in drawn
    capsys.readouterr()
    for options, sentence in (
        (["--protocol", "davis2017", "--truth", str(truth)], "--region does not apply to davis2017"),
        (["--phase", "val"], "--region does not apply to --phase"),
    ):
        assert main(["report", str(results), *options, "--region", "ET"]) == 2
        assert sentence in capsys.readouterr().err
