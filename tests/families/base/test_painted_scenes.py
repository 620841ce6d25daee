"""Pages describe and draw small scenes as noted, which only an intended change renews."""

from __future__ import annotations

from tests import calls
from tests.families.base import painted_scenes


def test_small_scenes_are_told_and_drawn_as_was_noted() -> None:
    calls.hold(painted_scenes.write_scenes(), painted_scenes.FILE)
