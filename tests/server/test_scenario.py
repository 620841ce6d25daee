"""What a rehearsal answers to hosts, teams and strangers is as `scenario.txt` has it."""

from __future__ import annotations

from pathlib import Path

from .scenario import FILE, write_scenario


def test_pages_and_answers_are_as_they_were(tmp_path: Path) -> None:
    expected = FILE.read_text(encoding="utf-8").splitlines()  # asks and expects
    assert write_scenario(tmp_path).splitlines() == expected, "if that is meant: python -m tests.server.scenario"
