"""The noted texts stay short enough to read."""

from __future__ import annotations

from tests import notes


def test_noted_texts_and_their_writers_stay_below_their_ceiling() -> None:
    lines = notes.count_towards_ceiling()
    assert lines <= notes.CEILING, (
        f"noted texts and their writers have {lines} lines beyond the first of each family, more than CEILING of tests/notes.py ({notes.CEILING}). "
        "See the longest with `python -m tests.notes --count`; note what differs from another case, and no line twice"
    )
