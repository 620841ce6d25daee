"""Bundles and trials give the noted messages, which only an intended change renews."""

from __future__ import annotations

from tests.calls import hold

from . import opened_bundles


def test_bundles_are_opened_and_tried_as_noted() -> None:
    hold(opened_bundles.write_text(), opened_bundles.FILE)
