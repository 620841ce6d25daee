"""`segjudge.testing` gives the noted messages about invented families that keep or break its promises."""

from __future__ import annotations

import pytest

from segjudge.testing import checks

from .promises import FILE, write_promises


def test_the_kit_says_of_each_promise_what_was_noted() -> None:
    assert write_promises() == FILE.read_text(encoding="utf-8"), (
        "`python -m tests.testing.promises` notes what is meant"
    )


def test_a_number_at_the_edge_of_the_tolerance_is_the_expected_one() -> None:
    for value in (0.0, 0.5):
        checks._expect_numbers("all", {"J": value}, {"J": 0.25}, 0.25)
        with pytest.raises(AssertionError, match=rf"^all: J is {value}, but 0.25 is expected \(to 0.2\)$"):
            checks._expect_numbers("all", {"J": value}, {"J": 0.25}, 0.2)
