"""What is installed for scripts, and how their processes end, stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

from tests.calls import hold

from . import hosted_pythons


def test_pythons_are_found_filled_and_ended_as_noted() -> None:
    hold(hosted_pythons.write_text(), hosted_pythons.FILE)
