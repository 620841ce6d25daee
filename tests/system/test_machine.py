"""Requests to a machine, and the use of its answers, are as in `machine.txt`."""

from __future__ import annotations

from pathlib import Path

from .machine import FILE, write_machine


def test_a_machine_is_asked_as_it_was(tmp_path: Path) -> None:
    expected = FILE.read_text(encoding="utf-8").splitlines()
    assert write_machine(tmp_path).splitlines() == expected, "if that is meant: python -m tests.system.machine"
