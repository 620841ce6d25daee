"""Input beyond a limit is rejected before it costs work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.families.contract import examples
from tests.families.unit_counts import refusal_of
from tests.scoring.mistakes import write_mistakes


@pytest.mark.parametrize("protocol", examples("records"))
@pytest.mark.parametrize("record", ["1", "{}"])
def test_a_thousand_bad_records_are_enough_and_are_one_sentence(protocol: str, record: str, tmp_path: Path) -> None:
    files = write_mistakes(protocol, tmp_path)
    upload = tmp_path / "upload.json"
    upload.write_text(f"[{','.join([record] * 20_000)}]", encoding="utf-8")
    text = refusal_of(protocol, upload, files.truth)
    assert re.search(r"records 0[^,]*, 1[^,]*, 2[^,]* and at least 997 more: each ", text)
    assert len(text.splitlines()) == 1
