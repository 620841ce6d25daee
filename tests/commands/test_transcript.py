"""What commands print and write stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

import pytest

from tests import transcript


def test_commands_print_and_write_what_was_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    noted = transcript.FILE.read_text()
    assert transcript.write_transcript() == noted, "`python -m tests.transcript` notes what is meant to be seen"
