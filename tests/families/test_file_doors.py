"""What files score, how they are refused, and what is read of truths, stays what it is, by either backend."""

from __future__ import annotations

import pytest

from tests import calls
from tests.backends import use_numpy
from tests.families import file_doors


@pytest.mark.parametrize("kernel", [True, pytest.param(False, marks=pytest.mark.long)])
def test_files_score_and_are_refused_as_was_noted(kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not kernel:
        use_numpy(monkeypatch)
    calls.hold(file_doors.write_doors(), file_doors.FILE)
