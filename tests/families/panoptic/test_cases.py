"""What the texts in `golden/` say of masks, files and offers stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

from tests.families.cases import hold_cases

test_a_case_is_answered_as_was_noted = hold_cases(__file__)
