"""A verdict reports mirrored maps, unless only a single object shows it."""

from __future__ import annotations

from pathlib import Path

from tests.report.known_faults import spoil
from tests.report.test_known_faults import find_cause, make_worlds, score, score_worlds


def test_mirrored_maps_are_named(tmp_path: Path) -> None:
    assert (
        find_cause(score("sod-official", ["mirrored"], tmp_path, 11)) == "Left and right are exchanged in all 6 images."
    )


def test_a_single_object_on_the_other_side_may_be_a_mistake_if_its_shape_differs(tmp_path: Path) -> None:
    world, random = make_worlds("sod-official", 11)
    mirrored = spoil(world, ["mirrored"], random, least=True)
    cause = find_cause(score_worlds("sod-official", world, spoil(mirrored, ["dilated"], random), tmp_path))
    assert "1 of 6 objects is missed" in cause
    assert "exchanged" not in cause
