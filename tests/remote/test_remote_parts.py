"""`segjudge.remote_challenge_evaluation` gives the noted messages about settings, challenges and processes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .parts import FILE, PARTS, Page, write_part

NOTED = {text.partition("\n")[0]: text for text in FILE.read_text(encoding="utf-8").split("═══ ")}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_a_worker_says_what_its_golden_text_has(part: Callable[[Page], None]) -> None:
    text = write_part(part).removeprefix("═══ ")
    assert text == NOTED[text.partition("\n")[0]], "`python -m tests.remote.parts` notes what is meant"
