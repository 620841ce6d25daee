"""Scores, requests, figures and executors give the noted results and errors."""

from __future__ import annotations

import pytest

from tests.calls import hold

from .score_calls import FILE, write_calls


@pytest.mark.long
def test_scores_answer_calls_as_noted() -> None:
    hold(write_calls(), FILE)
