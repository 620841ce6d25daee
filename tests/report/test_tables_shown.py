"""Tables and stored results are shown as noted, which only an intended change renews."""

from __future__ import annotations

from tests import calls
from tests.report import tables_shown


def test_tables_and_stored_results_are_what_was_noted() -> None:
    calls.hold(tables_shown.write_tables(), tables_shown.FILE)
