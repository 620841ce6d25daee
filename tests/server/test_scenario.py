"""A rehearsal's answers are as noted next to this file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.answers import read_answers, split_answers

from . import scenario

_NOTED = read_answers(scenario.FOLDER)


@cache
def _play_scenario() -> dict[str, str]:
    with TemporaryDirectory(prefix="segjudge-") as folder:
        texts = scenario.write_scenario(Path(folder))  # asks what was noted
    return {title: case for name, text in texts.items() for title, case in split_answers(name, text).items()}


@pytest.mark.parametrize("title", _NOTED)
def test_pages_and_answers_are_as_they_were(title: str) -> None:
    assert _play_scenario()[title] == _NOTED[title], "if that is meant: python -m tests.server.scenario"
