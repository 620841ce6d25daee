"""Masks, files and offers give the answers in `golden/`, which only an intended change renews."""

from __future__ import annotations

from tests.families.cases import hold_cases

test_a_case_is_answered_as_was_noted = hold_cases(__file__)
