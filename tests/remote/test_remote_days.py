"""The days of a worker of `segjudge.remote_challenge_evaluation` proceed as noted, to the second."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .days import DAYS, FILE, Day, write_day

NOTED = {text.partition("\n")[0]: text for text in FILE.read_text(encoding="utf-8").split("═══ ")}


@pytest.mark.parametrize("live", DAYS, ids=lambda live: live.__name__)
def test_a_day_of_the_worker_is_its_golden_one(live: Callable[[Day], None]) -> None:
    text = write_day(live).removeprefix("═══ ")
    assert text == NOTED[text.partition("\n")[0]], "`python -m tests.remote.days` notes what is meant"
