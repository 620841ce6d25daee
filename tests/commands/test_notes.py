"""Options and stand-ins give the noted values, output and errors, which only an intended change renews."""

from __future__ import annotations

import pytest

from tests import calls
from tests.commands import drop_ins, interactions, options, rehearsals


def test_stand_ins_return_and_refuse_what_was_noted() -> None:
    calls.hold(drop_ins.write_drop_ins(), drop_ins.FILE)


def test_options_take_and_are_what_was_noted() -> None:
    calls.hold(options.list_options(), options.FILE)


def test_every_option_is_explained() -> None:
    assert options.list_unexplained() == []


@pytest.mark.long
def test_sessions_are_run_and_drawn_as_was_noted() -> None:
    calls.hold(interactions.write_interactions(), interactions.FILE)


@pytest.mark.long
def test_a_rehearsal_begins_and_ends_as_was_noted() -> None:
    calls.hold(rehearsals.write_rehearsals(), rehearsals.FILE)
