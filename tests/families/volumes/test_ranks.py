"""`rank --method challenge` with scores of volumes; `tests/analysis/test_challenge_ranks.py` has the rules."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from segjudge import cli
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS
from segjudge.families.volumes.challenges import make_demo
from tests.builders import written
from tests.families.volumes.family import relabel, send_truth, volumes


@pytest.mark.parametrize(
    ("protocol", "sentence"), [("brats-2023", "mean rank of LesionDice, LesionHD95"), ("kits23", "place")]
)
def test_the_command_ranks_as_the_challenge(
    protocol: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = volumes(tmp_path, protocol)
    files = {
        "good": send_truth(truth),
        "shifted": relabel(lambda labels: np.roll(labels, 2, axis=2))(send_truth(truth)),
        "poor": relabel(lambda labels: np.roll(labels, 8, axis=2))(send_truth(truth)),
    }
    written(tmp_path / "sent", {f"{name}.zip": data for name, data in files.items()})
    for name in files:
        results = str(tmp_path / f"sent/{name}.zip")
        json_file = str(tmp_path / f"{name}.json")
        assert cli.main(["score", results, "--truth", str(truth), "--protocol", protocol, "--json", json_file]) == 0
    paths = [str(tmp_path / f"{name}.json") for name in ("poor", "shifted", "good")]
    out, page = tmp_path / "ranking.json", tmp_path / "page.html"
    assert cli.main(["rank", *paths, "--method", "challenge", "--json", str(out), "--out", str(page)]) == 0
    assert sentence in capsys.readouterr().out
    document = json.loads(out.read_text())
    if protocol == "kits23":
        assert [(row["place"], row["algorithm"]) for row in document["places"]] == [
            (1, "good"),
            (2, "shifted"),
            (3, "poor"),
        ]
    else:
        (task,) = document["tasks"]
        assert (task["algorithms"], task["ranks"]) == (["poor", "shifted", "good"], [3, 2, 1])
    assert cli.main(["rank", *paths, "--method", "challenge", "--metric", "Dice"]) != 0
    assert "omit it" in capsys.readouterr().err


def test_a_protocol_without_a_ranking_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = written(tmp_path, dict(make_demo(VOLUME_PROTOCOLS["volumes"]))) / "labelsTr"
    paths = [str(tmp_path / f"{name}.json") for name in "ab"]
    for path in paths:
        assert cli.main(["score", str(truth), "--truth", str(truth), "--protocol", "volumes", "--json", path]) == 0
    assert cli.main(["rank", *paths, "--method", "challenge"]) != 0
    assert "volumes does not define the ranking of its own challenge; choose another method" in capsys.readouterr().err
