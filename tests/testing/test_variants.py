"""`segjudge.testing` makes the noted variants of a submission, which only an intended change renews."""

from __future__ import annotations

from .hostile_variants import FILE, write_variants


def test_hostile_submissions_are_those_that_were_noted() -> None:
    assert write_variants() == FILE.read_text(encoding="utf-8"), "`python -m tests.testing.hostile_variants` notes them"
