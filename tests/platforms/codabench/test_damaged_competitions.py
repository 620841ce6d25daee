"""`segjudge check` gives the noted messages about damaged competitions, which only an intended change renews."""

from __future__ import annotations

import pytest

from . import damaged_competitions


@pytest.mark.long
def test_damaged_competitions_are_refused_in_the_words_that_were_noted() -> None:
    assert damaged_competitions.write_text() == damaged_competitions.FILE.read_text(encoding="utf-8"), (
        "`python -m tests.platforms.codabench.damaged_competitions` notes what is meant to be seen"
    )
