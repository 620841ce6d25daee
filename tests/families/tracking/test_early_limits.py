"""Input beyond a limit is rejected before it costs work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.families.tracking import files as tracks
from tests.families.unit_counts import refusal_of
from tests.scoring.mistakes import write_mistakes


def test_too_many_masks_are_refused_before_any_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write_mistakes("burst", tmp_path)

    def check_masks(*_: Any) -> None:
        raise AssertionError("masks were read")

    monkeypatch.setattr(tracks, "check_masks", check_masks)
    monkeypatch.setattr(tracks, "_MOST_MASKS", 3)
    assert "has more than 3 masks. Send fewer masks" in refusal_of("burst", Path(files.results), files.truth)
