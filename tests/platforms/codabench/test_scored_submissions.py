"""Scoring programs and Codabench give the noted output, which only an intended change renews."""

from __future__ import annotations

from tests.calls import hold

from . import scored_submissions


def test_submissions_are_scored_as_noted() -> None:
    hold(scored_submissions.write_text(), scored_submissions.FILE)
