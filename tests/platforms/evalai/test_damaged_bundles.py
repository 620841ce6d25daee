"""`segjudge check` gives the noted messages about damaged bundles, which only an intended change renews."""

from __future__ import annotations

import pytest

from . import damaged_bundles


@pytest.mark.long
def test_damaged_bundles_are_refused_in_the_words_that_were_noted() -> None:
    assert damaged_bundles.write_text() == damaged_bundles.FILE.read_text(encoding="utf-8"), (
        "`python -m tests.platforms.evalai.damaged_bundles` notes what is meant to be seen"
    )
