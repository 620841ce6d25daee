"""Scores, requests, figures and executors give the noted results and errors."""

from __future__ import annotations

from tests.calls import hold

from .score_calls import FILE, write_calls


def test_scores_answer_calls_as_noted() -> None:
    hold(write_calls(), FILE)
