"""The losses of frames and objects by kind of failure, computed by hand, or by short formulas on plain arrays."""

from __future__ import annotations

import base64
import json
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.sequences.losses import KINDS as FAILURES
from segjudge.evaluation_script.families.sequences.losses import mean_shares, read_losses, shares_of
from segjudge.evaluation_script.families.sequences.metrics import SequenceReport
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.scoring import score
from segjudge.scoring.request import find_protocol
from tests.builders import label_zip

# ── losses of sequences ─────────────────────────────────────────────────────


def test_classes_count_the_same_where_the_protocol_tells_them_apart() -> None:
    kinds = len(FAILURES)
    objects = [([0.3] * kinds, "seen"), ([0.6] * kinds, "seen"), ([0.9] * kinds, "unseen")]
    assert shares_of(objects, SEQUENCE_PROTOCOLS["davis2017"]) == pytest.approx([0.6] * kinds)
    assert shares_of(objects, SEQUENCE_PROTOCOLS["lvos"]) == pytest.approx([(0.45 + 0.9) / 2] * kinds)
    assert shares_of(objects[:2], SEQUENCE_PROTOCOLS["lvos"]) == pytest.approx([0.45] * kinds)
    rising = [float(kind) for kind in range(kinds)]
    assert mean_shares([(rising, 1.0), ([1.0] * kinds, 3.0)]) == pytest.approx([(item + 3) / 4 for item in rising])
    assert mean_shares([]) == [0.0] * kinds


def left_of(folder: Path, name: str, room: int, across: int = 1300) -> dict[str, Any]:
    """Return the data that a phase stores of two videos, with streams as headers and lengths."""
    small, wide = np.zeros((4, 6, 8), np.uint8), np.zeros((4, 4, across), np.uint8)
    small[:, 1:4, 1:5], wide[:, 1:3, 10:900], wide[2:, 3, 1000:] = 1, 1, 2
    sent = {"a": list(np.roll(small, 1, 2)), "b": list(wide * (wide == 1))}
    (folder / "truth.zip").write_bytes(label_zip({"a": list(small), "b": list(wide)}))
    (folder / "sent.zip").write_bytes(label_zip(sent))
    scores = score(folder / "sent.zip", folder / "truth.zip", find_protocol(name), layout="davis2017")
    inputs, (report,) = scores.open_inputs(), scores.reports
    assert isinstance(report, SequenceReport)
    with closing(inputs.scorers[report.split].open(inputs.results)) as opened:
        losses = read_losses(opened.pairs, report, room, 1)
    for row in losses["sequences"]:
        lines = [zlib.decompress(base64.b64decode(stream)).partition(b"\n") for stream in row["streams"]]
        row["streams"] = [
            (json.loads(head)["size"], json.loads(head)["runs"], len(rest) > 0) for head, _, rest in lines
        ]
    return losses


def test_a_phase_leaves_of_all_sequences_their_losses_and_of_the_worst_their_masks(tmp_path: Path) -> None:
    left = left_of(tmp_path, "vos-benchmark", 10**6)
    missed = [float(kind == "miss") for kind in FAILURES]
    right, still = np.zeros(9).tolist(), {"category": "", "unseen": False, "absent": False}
    # The first and the last frame do not count; what nobody predicted starts in the third one.
    assert left == {
        "metric": "J&F", "exact": True, "shares": pytest.approx([0, 0, 1 / 3, 0, 0, 0, 0, 0, 0.2 / 3]), "smaller": True,
        "sequences": [
            {"name": "b", "masks": True, "streams": [([3, 854], 14, True), ([3, 854], 12, True)], "objects": [
                {"name": "1", "frames": 2, "area": pytest.approx(2 * 890 / 5200), "shares": right, **still},
                {"name": "2", "frames": 1, "area": pytest.approx(300 / 5200), "shares": missed, **still},
            ]},
            {"name": "a", "masks": True, "streams": [([6, 8], 28, True), ([6, 8], 28, True)], "objects": [
                {"name": "1", "frames": 2, "area": 0.25, "shares": pytest.approx([*right[1:], 0.2]), **still},
            ]},
        ],
    }  # fmt: skip
    assert left_of(tmp_path, "vost", 0) == {
        **left_of(tmp_path, "vost", -1),
        "metric": "J",
        "smaller": True,
        "sequences": [],
    }
    assert not left_of(tmp_path, "mosev2", 10**6)["exact"]
    # Eight frames of two sides, 640 pixels wide, of 1.2 bytes each, may take nine tenths of the room.
    fitting = left_of(tmp_path, "vost", 13_654)["sequences"][1]["streams"]
    assert [size for size, *_ in fitting] == [[2, 640], [2, 640]]
    assert not left_of(tmp_path, "vost", 1, 160)["smaller"]  # the narrowest that masks are drawn


def test_masks_of_too_many_runs_are_left_out(tmp_path: Path) -> None:
    """Frames may have 40 runs per pixel of width: here 1,280, with eight in each row."""
    for rows, is_noise in ((53, False), (54, True)):
        stripes, path = (np.indices((rows, 8))[1] % 2).astype(np.uint8), tmp_path / f"{rows}.zip"
        path.write_bytes(label_zip({"a": [stripes, stripes, stripes.repeat(2, axis=1)]}))
        scores = score(path, path, find_protocol("vos-benchmark"), layout="davis2017")
        inputs, (report,) = scores.open_inputs(), scores.reports
        assert isinstance(report, SequenceReport)
        with closing(inputs.scorers[report.split].open(inputs.results)) as opened:
            (row,) = read_losses(opened.pairs, report, 10**6, 1)["sequences"]
        assert row["masks"] is not is_noise
