"""How methods compare and rank, in words, tables, documents and plots, stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

from tests import calls
from tests.analysis import standings


def test_standings_and_refusals_are_what_was_noted() -> None:
    calls.hold(standings.write_standings(), standings.FILE)
