"""Small scenes of detections are described and drawn as noted."""

from __future__ import annotations

from tests import calls
from tests.families.instances import drawn_images


def test_detections_are_told_apart_and_drawn_as_was_noted() -> None:
    calls.hold(drawn_images.write_images(), drawn_images.FILE)
