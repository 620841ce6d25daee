"""What `segjudge.testing` says of made-up families that keep or break its promises stays what was noted."""

from __future__ import annotations

from .promises import FILE, write_promises


def test_the_kit_says_of_each_promise_what_was_noted() -> None:
    assert write_promises() == FILE.read_text(encoding="utf-8"), (
        "`python -m tests.testing.promises` notes what is meant"
    )
