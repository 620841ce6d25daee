"""What setting up does, says and leaves is as `sessions.txt` has it; with the real uv, `tests/house/test_set_up.py` tests it."""

from __future__ import annotations

from pathlib import Path

from .sessions import FILE, write_sessions


def test_setting_up_goes_as_it_went(tmp_path: Path) -> None:
    expected = FILE.read_text(encoding="utf-8").splitlines()
    assert write_sessions(tmp_path).splitlines() == expected, "if that is meant: python -m tests.set_up.sessions"
