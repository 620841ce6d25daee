"""Keys and moments in rows of the API."""

from __future__ import annotations

from typing import Any

import pytest

from segjudge.platforms.evalai.rows import board_labels, parse_key, parse_submission

SUBMISSION = {
    "id": 7, "challenge_phase": 3, "status": "submitted", "rerun_resumed_at": None, "started_at": None,
    "submitted_at": "2026-01-01T00:00:00.000000Z", "input_file": "https://files.example/x", "submission_input_file": None,
    "method_name": "m", "submission_metadata": [], "job_name": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "number"),
    [(7, 7), ("7", 7), (0, 0), (-1, 0), ("-1", 0), (True, 0), (7.0, 0), (10**30, 0), ("9" * 30, 0), ("1_0", 0), (" 7", 0), ("७", 0), (1 << 62, 0), ((1 << 62) - 1, (1 << 62) - 1), (None, 0), ({}, 0), ("", 0)],
    ids=repr,
)  # fmt: skip
def test_a_key_is_a_number_that_a_database_has(value: Any, number: int) -> None:
    assert parse_key(value) == number


@pytest.mark.parametrize("resumed", ["x", "", "2026", 5, {}, "9999-99-99T00:00:00Z", "2" * 10**6])
def test_a_moment_that_is_none_is_not_the_beginning_of_new_work(resumed: Any) -> None:
    assert parse_submission({**SUBMISSION, "rerun_resumed_at": resumed}) is None


def test_rows_of_another_form_are_none() -> None:
    for row in ({**SUBMISSION, "status": 7}, {**SUBMISSION, "challenge_phase": "x"}, {**SUBMISSION, "id": 8}, [], "x"):
        assert parse_submission(row, 7) is None
    for split in ({}, {"leaderboard_schema": 3}, {"leaderboard_schema": {"labels": 3}}):
        assert board_labels(split) is None
    assert parse_submission(SUBMISSION, 7) == SUBMISSION
