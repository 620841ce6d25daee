"""Locks of requirements, and messages about them, are as in `locks.txt`."""

from __future__ import annotations

from pathlib import Path

from segjudge.starting import lock

from .locks import FILE, write_locks


def test_locks_are_as_they_were(tmp_path: Path) -> None:
    assert lock.FILE == "requirements.txt"
    expected = FILE.read_text(encoding="utf-8").splitlines()
    assert write_locks(tmp_path).splitlines() == expected, "if that is meant: python -m tests.starting.locks"
