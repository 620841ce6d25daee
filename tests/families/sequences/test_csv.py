"""The columns of CSV files, as official evaluators have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from segjudge.cli import main
from tests.builders import ANNOTATIONS, STRONG


@pytest.mark.parametrize(
    ("protocol", "head"),
    [
        ("davis2017", "Sequence,J-Mean,F-Mean\n"),
        ("vost", "Sequence,J-Mean,J_last-Mean\n"),
        ("lvos", "Sequence,J-Mean,F-Mean,V-Mean\n"),
    ],
)
def test_columns_of_sequences_are_those_of_the_official_files(protocol: str, head: str, tmp_path: Path) -> None:
    arguments = ["score", str(STRONG), "--truth", str(ANNOTATIONS), "--protocol", protocol, "--csv", str(tmp_path)]
    assert main(arguments) == 0
    assert (tmp_path / "per-sequence_results-dev.csv").read_text(encoding="utf-8").startswith(head)
