"""A push to Codabench makes the noted requests and messages, which only an intended change renews."""

from __future__ import annotations

from tests.calls import hold

from . import uploads


def test_competitions_are_uploaded_as_noted() -> None:
    hold(uploads.write_text(), uploads.FILE)
