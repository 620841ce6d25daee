"""What a rehearsal answers, and what becomes of submissions, is as texts beside this file have it."""

from __future__ import annotations

from pathlib import Path

from . import readers, scenario, scorers, troubles


def test_pages_and_answers_are_as_they_were(tmp_path: Path) -> None:
    expected = scenario.FILE.read_text(encoding="utf-8").splitlines()  # asks and expects
    assert scenario.write_scenario(tmp_path).splitlines() == expected, (
        "if that is meant: python -m tests.server.scenario"
    )


def test_submissions_end_as_they_did(tmp_path: Path) -> None:
    expected = scorers.FILE.read_text(encoding="utf-8").splitlines()
    assert scorers.write_scorers(tmp_path).splitlines() == expected, "if that is meant: python -m tests.server.scorers"


def test_trouble_is_met_as_it_was(tmp_path: Path) -> None:
    expected = troubles.FILE.read_text(encoding="utf-8").splitlines()
    assert troubles.write_troubles(tmp_path).splitlines() == expected, (
        "if that is meant: python -m tests.server.troubles"
    )


def test_reports_are_for_whom_they_were(tmp_path: Path) -> None:
    expected = readers.FILE.read_text(encoding="utf-8").splitlines()
    assert readers.write_readers(tmp_path).splitlines() == expected, "if that is meant: python -m tests.server.readers"
