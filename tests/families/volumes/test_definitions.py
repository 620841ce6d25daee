"""The page about definitions: its numbers for one pair are the golden ones, and its names are those of measures."""

from __future__ import annotations

import re

import pytest

from segjudge.evaluation_script.families.volumes.measures import _OF_ANY, _OF_PAIRS
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS
from tests.data import ROOT
from tests.families.volumes.volumes import read_golden

PAGE = (ROOT / "docs/volume-metrics.md").read_text(encoding="utf-8")
#: For each library of the table: its name in the golden numbers, and the keys of the numbers in its row.
LIBRARIES = {
    "surface-distance": ("deepmind", "dice nsd@1.0 hd hd95 average_truth_to_prediction average_prediction_to_truth"),
    "pymia": ("pymia", "dice nsd@1.0 hd hd95 average_distance"),
    "MONAI": ("monai", "dice nsd@1.0 nsd_subvoxels@1.0 hd hd95 hd95_directed asd_symmetric asd"),
    "MetricsReloaded": ("reloaded", "dsc nsd@1.0 hd hd95 assd masd"),
    "medpy": ("medpy", "dc hd hd95 hd95_connectivity_3 assd asd"),
    "seg-metrics": ("seg_metrics", "dice hd hd95 msd"),
    "SimpleITK": ("simpleitk", "DiceCoefficient HausdorffDistance AverageHausdorffDistance"),
    "nnU-Net": ("nnunet", "Dice"),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_numbers_of_libraries_are_the_golden_ones(library: str) -> None:
    cases = read_golden("pairs")["cases"]
    if not cases:
        pytest.skip("needs the shared data")
    (row,) = re.findall(rf"^\| {library} [^|]+\| (.+) \|$", PAGE, re.MULTILINE)
    name, keys = LIBRARIES[library]
    wanted = [cases["lesion-missed"]["official"][name][key] for key in keys.split()]
    shown = re.findall(r"\d+\.\d+", row)
    assert len(shown) == len(wanted)
    assert shown == [f"{number:.{len(text.partition('.')[2])}f}" for text, number in zip(shown, wanted)]


def test_names_are_those_of_measures_and_protocols() -> None:
    names = set(re.findall(r"`([^` ]+)`", PAGE)) - {"segjudge"}
    assert names <= {*_OF_ANY, *_OF_PAIRS, *VOLUME_PROTOCOLS}
    assert {name for name in _OF_PAIRS if "border" in name or "pooled" in name} <= names
