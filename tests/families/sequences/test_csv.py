"""The columns of CSV files, as official evaluators have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from segjudge import score_arrays
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


def test_each_scored_frame_of_each_object_is_a_row() -> None:
    truth = np.zeros((5, 6, 8), np.uint8)
    truth[:, 1:4, 1:4], truth[:, 4:, 5:] = 1, 2
    scores = score_arrays({"a": np.where(truth == 2, 0, truth)}, {"a": truth}, "davis2017")
    rows = [
        ("a", name, f"{frame:05d}", score, score) for name, score in (("1", 1.0), ("2", 0.0)) for frame in (1, 2, 3)
    ]
    columns = ["sequence", "object", "frame", "j", "f"]
    assert list(scores.frames[columns].itertuples(index=False, name=None)) == rows
