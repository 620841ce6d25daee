"""What a push to Codabench asks and says stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

from tests.calls import hold

from . import uploads


def test_competitions_are_uploaded_as_noted() -> None:
    hold(uploads.write_text(), uploads.FILE)
