"""Each benchmark's readers accept the data of `benchmarks/tracks.py`, which are neither perfect nor wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import segjudge
from benchmarks import tracks
from segjudge.evaluation_script.families import PROTOCOLS


@pytest.mark.parametrize("name", tracks.SETS)
def test_a_generated_set_scores_by_each_of_its_protocols(name: str, tmp_path: Path) -> None:
    item = tracks.SETS[name]
    item.make(tmp_path, np.random.default_rng(1), 0.001, (64, 96))
    for protocol in item.peers:
        (values,) = segjudge.score(tmp_path / item.results, tmp_path / item.truth, protocol).metrics.values()
        first = values[PROTOCOLS[protocol].metrics[0]]
        assert first is not None
        assert 0 < first < 1


def test_numbers_that_differ_are_reported() -> None:
    mine = {"a": 0.5, "b": None, "c": 0.25, "d": None}
    assert tracks.differences(mine, {"a": 0.5 + 1e-12, "b": None, "c": 0.26, "d": 0.0}) == [
        "c 0.25, there 0.26", "d None, there 0.0",
    ]  # fmt: skip


@pytest.mark.long
def test_an_evaluators_numbers_stand_beside_ours_and_an_absent_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One peer prints an equal and a different number below other lines, and another peer is missing."""
    name = next(name for name in tracks.SETS if f"{name}-official" in PROTOCOLS)
    first, second = PROTOCOLS[name].metrics[:2]
    script = f"import json; print('loading {{'); print(json.dumps({{'{first}': 0.0, '{second}': None}}))"
    evaluators = {name: ("present", script), f"{name}-official": ("absent", "import no_such_evaluator")}
    peer = replace(tracks.SETS[name], peers=evaluators)
    peer.make(tmp_path, np.random.default_rng(1), 0.003, (16, 16))
    rows, odd = tracks.compare(tracks.parsed([name, "--repeat", "1"]), peer, tmp_path)
    assert [text.partition(f"{first} ")[0] for text in odd if f" {first} " in text] == [f"{name}: "]
    assert rows[0][4] == "present"
    assert rows[0][-1].endswith(" of 2")
    assert rows[1][4:] == [""] * 5
    assert "absent is left out: ModuleNotFoundError" in capsys.readouterr().out
