"""A verdict reports mirrored maps, unless only a single object shows it."""

from __future__ import annotations

from pathlib import Path

from tests.report.test_known_faults import find_cause, score


def test_mirrored_maps_are_named(tmp_path: Path) -> None:
    assert (
        find_cause(score("sod-official", ["mirrored"], tmp_path, 11)) == "Left and right are exchanged in all 6 images."
    )


def test_a_single_object_on_the_other_side_may_be_a_mistake(tmp_path: Path) -> None:
    cause = find_cause(score("sod-official", ["mirrored"], tmp_path, 11, least=True))
    assert cause == "1 of 6 objects is missed; 1 of 6 predicted objects matches nothing."
