"""Comparisons and rankings give the noted texts, tables, documents and plots, which only an intended change renews."""

from __future__ import annotations

import pytest

from tests import calls
from tests.analysis import standings


@pytest.mark.long
def test_standings_and_refusals_are_what_was_noted() -> None:
    calls.hold(standings.write_standings(), standings.FILE)
