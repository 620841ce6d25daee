"""What evaluation methods read, write and say stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

from tests.calls import hold

from . import methods


def test_methods_score_and_are_built_as_noted() -> None:
    hold(methods.write_text(), methods.FILE)
