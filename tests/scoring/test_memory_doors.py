"""What masks in memory score, and how they are refused, stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

from tests import calls
from tests.scoring import memory_doors


def test_doors_of_every_family_give_and_refuse_what_was_noted() -> None:
    calls.hold(memory_doors.write_doors(), memory_doors.FILE)
