"""What stand-ins return, print, write and refuse stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

from tests import calls
from tests.commands import drop_ins


def test_stand_ins_return_and_refuse_what_was_noted() -> None:
    calls.hold(drop_ins.write_drop_ins(), drop_ins.FILE)
