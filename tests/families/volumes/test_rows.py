"""The rows: every number of the challenges' own evaluators except their stated defects, region by region."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.families.volumes.engine import count_case
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS
from tests.builders import written
from tests.families.volumes.volumes import DATA, read_golden, read_pair

EXACT: dict[str, Any] = {"rel": 1e-12, "abs": 1e-12}
#: Spacing or volume has 32 bits in the evaluator.
IN_32_BITS: dict[str, Any] = {"rel": 1e-6, "abs": 1e-6}

_AUTOPET = {"Dice": ("dice",), "FPV": ("false_positive_volume_ml",), "FNV": ("false_negative_volume_ml",)}
_KITS = {"kidney": "kidney_and_mass", "mass": "mass", "tumor": "tumor"}
_TOTAL = {"1": "kidney", "2": "tumor", "3": "cyst"}
_FLARE = [region.name for region in VOLUME_PROTOCOLS["flare22"].regions]
#: For each row its folder of golden numbers, and the key of each region's measures there.
ROWS: list[tuple[str, str, str, dict[tuple[str, str], tuple[Any, ...]]]] = [
    ("kits23", "kits", "kits23",
     {(r, m): (key, k) for r, key in _KITS.items() for m, k in (("Dice", "dice"), ("NSD", "surface_dice"))}),
    ("totalsegmentator", "kits", "totalsegmentator",
     {(r, m): (f"{k}-{n}",) for r, n in _TOTAL.items() for m, k in (("Dice", "dice"), ("NSD", "surface_dice_3"))}),
    ("autopet-2", "autopet", "autopet_2", {("lesion", name): key for name, key in _AUTOPET.items()}),
    ("autopet", "autopet", "autopet_3", {("lesion", name): key for name, key in _AUTOPET.items()}),
    ("autopet", "autopet", "autopet_4", {("lesion", name): key for name, key in _AUTOPET.items()}),
    ("isles22", "autopet", "isles_2022",
     {("lesion", "Dice"): ("dice",), ("lesion", "VolumeError"): ("absolute_volume_difference_ml",),
      ("lesion", "LesionError"): ("absolute_lesion_difference",), ("lesion", "LesionF1"): ("lesion_f1",)}),
    ("flare22", "flare", "flare22",
     {(r, m): (f"{r}_{k}",) for r in _FLARE for m, k in (("Dice", "DSC"), ("NSD", "NSD"))}),
    ("chaos", "chaos", "official",
     {("liver", "Dice"): ("dice",), ("liver", "RAVD"): ("ravd",), ("liver", "ASSD-border"): ("assd_mssd", 0),
      ("liver", "HD-border"): ("assd_mssd", 1)}),
    ("toothfairy", "toothfairy", "toothfairy_2_class",
     {("Lower Jawbone", "Dice"): ("dice",), ("Lower Jawbone", "HD95-pooled"): ("hd95",)}),
    ("components", "panoptica", "iou_0.5_one_to_one",
     {("1", m): (k,) for m, k in
      {"PQ": "pq", "SQ": "sq", "RQ": "rq", "ComponentRecall": "rec", "ComponentPrecision": "prec",
       "ComponentDice": "sq_dsc"}.items()}),
]  # fmt: skip
#: Cases where the evaluator stops, or divides by zero, and Segjudge goes on.
STOPPED = {
    ("flare22", "aorta-of-one-slice"),
    ("chaos", "both-empty"),
    ("chaos", "prediction-empty"),
    ("chaos", "truth-empty"),
}
PAIRS = [
    (index, case)
    for index, (protocol, folder, _, _) in enumerate(ROWS)
    for case, golden in read_golden(folder)["cases"].items()
    if not golden.get("safe") and (protocol, case) not in STOPPED
]


def measure(protocol: str, folder: str, case: str) -> dict[tuple[str, str], float | None]:
    """Return the measures of a case by region and name."""
    row, golden = VOLUME_PROTOCOLS[protocol], read_golden(folder)
    files = {"panoptica": "brats"}.get(folder, folder)
    truth, prediction = read_pair(files, case, ".mha" if folder in {"toothfairy", "topcow"} else ".nii.gz")
    if folder == "panoptica":  # every label above 0
        truth, prediction = (
            volume._replace(labels=(volume.labels > 0).astype(np.uint8)) for volume in (truth, prediction)
        )
    # Two evaluators are given the spacing in 64 bits, which no NIfTI file has.
    is_given = protocol in {"isles22", "chaos"}
    spacing = tuple(golden["spacing"]) if is_given else truth.geometry.spacing
    tables = count_case(truth.labels, prediction.labels, spacing, row)
    names = [region.name for region in row.regions] or [str(label) for label in tables["labels"].tolist()]
    return {
        (name, measure): value if known else None
        for name, values, flags in zip(names, tables["values"].tolist(), tables["known"].tolist())
        for measure, value, known in zip(row.measures, values, flags)
    }


@pytest.mark.parametrize(("index", "case"), PAIRS)
def test_measures_are_those_of_the_evaluator(index: int, case: str) -> None:
    protocol, folder, key, places = ROWS[index]
    values, official = measure(protocol, folder, case), read_golden(folder)["cases"][case][key]
    closeness = IN_32_BITS if protocol.startswith("autopet") else EXACT
    for place, path in places.items():
        wanted = official
        for step in path:
            wanted = wanted.get(step) if isinstance(wanted, dict) else wanted[step]
        if wanted is None:
            assert values.get(place) is None, place
        else:
            assert values[place] == pytest.approx(wanted, **closeness), place


def test_where_an_evaluator_stops_ours_goes_on() -> None:
    if not PAIRS:
        pytest.skip("needs the shared data")
    assert set(measure("flare22", "flare", "aorta-of-one-slice").values()) == {1}
    diagonal = {
        case: measure("chaos", "chaos", case)["liver", "HD-border"] for case in ("prediction-empty", "truth-empty")
    }
    assert diagonal["truth-empty"] == diagonal["prediction-empty"]
    shape, spacing = read_pair("chaos", "truth-empty")[0].labels.shape, (3.0, 0.8, 0.8)
    assert diagonal["truth-empty"] == pytest.approx(math.dist((0, 0, 0), np.multiply(shape, spacing)))
    assert set(measure("chaos", "chaos", "both-empty").values()) == {None}


def test_all_classes_of_toothfairy_are_in_the_mean() -> None:
    golden = read_golden("toothfairy")
    if "classes" not in golden:
        pytest.skip("needs the shared data")
    values = measure("toothfairy", "toothfairy", "classes")
    for name, key in (("Dice", "dice"), ("HD95-pooled", "hd95")):
        official = dict(golden["classes"][key])
        average = official.pop("average")
        ours = {region: value for (region, measure), value in values.items() if measure == name}
        assert ours == pytest.approx(official, **EXACT)
        assert sum(value or 0.0 for value in ours.values()) / 42 == pytest.approx(average, **EXACT)


#: TopCoW's script stops at labels without a name.
VESSELS = [case for case, golden in read_golden("topcow")["cases"].items() if not golden["safe"]]


@pytest.mark.parametrize("case", VESSELS)
def test_vessels_are_measured_as_topcow_does(case: str, tmp_path: Path) -> None:
    values, official = measure("topcow", "topcow", case), read_golden("topcow")["cases"][case]["official"]
    names = {
        "Dice": ("Dice", "ClsAvgDice"),
        "HD95-border26": ("HD95", "ClsAvgHD95"),
        "B0Error": ("B0err", "ClsAvgB0err"),
    }
    for side in ("truth", "prediction"):
        content = (DATA / f"topcow/{case}.{side}.mha").read_bytes()
        written(tmp_path / side, {"a.mha": content})
    (report,) = segjudge.score(tmp_path / "prediction", tmp_path / "truth", "topcow").reports
    for name, (key, average) in names.items():
        present = {
            region: value for (region, measure), value in values.items() if measure == name and value is not None
        }
        wanted = {region: official[f"{key}_{region}"] for region in present if region != "Merged"}
        wanted |= {"Merged": official[f"{key}_MergedBin"]} if present else {}
        assert present == pytest.approx(wanted, rel=1e-5, abs=2e-6)
        # If both sides are empty, the score is 0 there, and undefined here.
        assert report.values[name] == (
            pytest.approx(official[f"{key}_{average}"], rel=1e-5, abs=2e-6) if present else None
        )
        assert report.values[f"{name}_Merged"] == present.get("Merged")


def test_hosts_of_the_decathlon_set_the_tolerances() -> None:
    truth = np.zeros((9, 9, 9), np.uint8)
    truth[2:7, 2:7, 1:4], truth[2:7, 2:7, 5:8] = 1, 2
    prediction = np.roll(truth, 1, axis=1)
    row = VOLUME_PROTOCOLS["msd"]
    for tolerances, wanted in (
        ((), [True, True]),
        (((1, 0.5),), [False, True]),
        (((1, 0.5), (2, 0.9)), [False, False]),
    ):
        tables = count_case(truth, prediction, (1.0, 1.0, 1.0), replace(row, tolerances=tolerances))
        assert [nsd == 1 for _, nsd in tables["values"].tolist()] == wanted
