"""The file on single units has one row for each, whatever names their rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from segjudge.families.base.tools import FamilyTools


@pytest.mark.parametrize("key", ["name", "sequence"])
def test_a_family_names_its_rows_by_name_or_by_sequence(key: str) -> None:
    rows = [{"split": "val", key: "a", "J-Mean": 0.25}, {"split": "val", key: "b", "J-Mean": None}]
    report = cast("Any", SimpleNamespace(rows=lambda: {"sequences": rows}))
    assert FamilyTools().make_files(report) == {"per-sequence_results": "Sequence,Id,J-Mean\na,,0.250\nb,,\n"}
