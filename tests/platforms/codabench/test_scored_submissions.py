"""What scoring programs write, and what Codabench makes of it, stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

from tests.calls import hold

from . import scored_submissions


def test_submissions_are_scored_as_noted() -> None:
    hold(scored_submissions.write_text(), scored_submissions.FILE)
