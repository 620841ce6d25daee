"""`segjudge host`, `benchmarks` and `new --demo`: from published data to a local leaderboard, for every benchmark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS
from tests.families.contract import examples, merge_rows
from tests.published import published

#: A protocol of each form of truth stands for the others where there is little time.
OF_A_FORM = {protocol.form: name for name, protocol in reversed([*PROTOCOLS.items()])}.values()


@pytest.mark.parametrize("protocol", OF_A_FORM)
def test_two_commands_lead_from_published_data_to_a_leaderboard(protocol: str, tmp_path: Path, capsys: Any) -> None:
    folder = _host(protocol, tmp_path)
    capsys.readouterr()
    assert main(["run", folder]) == 0

    out = capsys.readouterr().out
    rows = re.findall(r"^(\d)\. (\w+)\.zip +(\d\.\d+)", out, re.MULTILINE)[:2]  # further columns stand below
    assert [row[:2] for row in rows] == [("1", "good"), ("2", "poor")]
    _compare(*(float(row[2]) for row in rows))
    assert main(["check", "--quick", "--strict", folder]) == 0
    assert "warning" not in out + capsys.readouterr().out


@pytest.mark.long  # these differ from those of a form by their truths and rules, which `run` only carries
@pytest.mark.parametrize(
    "protocol",
    [
        name
        for name in PROTOCOLS
        if name not in OF_A_FORM and name.removesuffix("-official") not in {*PROTOCOLS} - {name}
    ],
)
def test_published_data_of_every_protocol_become_a_challenge_whose_samples_score(
    protocol: str, tmp_path: Path, capsys: Any
) -> None:
    folder = _host(protocol, tmp_path)
    truth = ["--truth", f"{folder}/annotations/val.zip", "--protocol", protocol]
    shown = yaml.safe_load(Path(folder, "challenge_config.yaml").read_text())["leaderboard"][0]["schema"]["labels"]
    values = []
    for sample in ("good", "poor"):
        capsys.readouterr()
        assert main(["score", f"{folder}/examples/val/{sample}.zip", *truth, "--json", "-"]) == 0
        result = json.loads(capsys.readouterr().out)["result"][0]["val"]
        assert None not in [result[metric] for metric in shown]
        values.append(result[PROTOCOLS[protocol].metrics[0]])
    _compare(*values)
    assert main(["check", "--quick", "--strict", folder]) == 0
    assert "warning" not in capsys.readouterr().out


def _host(protocol: str, tmp_path: Path) -> str:
    """Make a challenge from the published truth of a protocol; return its folder."""
    folder = str(tmp_path / "my-challenge")
    assert main(["host", protocol, "--truth", str(published(protocol, tmp_path)), "--out", folder]) == 0
    return folder


def _compare(good: float, poor: float) -> None:
    assert 0.5 <= good <= 1  # one salient mask for two objects is half right, and so is a moved boundary
    assert poor < good


#: A protocol of each form in which truths are published.
FORMS = examples("hosts")


@pytest.mark.long
@pytest.mark.parametrize("protocol", FORMS)
def test_the_demo_needs_no_data(protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "try", "--demo", "--protocol", protocol]) == 0
    assert main(["check", "--quick", "--strict", "try"]) == 0
    results = []
    for sample in ("good", "poor"):
        capsys.readouterr()
        arguments = [
            "score", f"try/examples/val/{sample}.zip", "--truth", "try/annotations/val.zip", "--protocol", protocol,
        ]  # fmt: skip
        assert main([*arguments, "--json", "-"]) == 0
        result = json.loads(capsys.readouterr().out)["result"][0]["val"]
        results.append(result[PROTOCOLS[protocol].metrics[0]])
    assert 0.8 < results[0] < 1
    assert 0.2 < results[1] < results[0] - 0.1


def test_every_benchmark_has_a_line_below_its_track(capsys: Any) -> None:
    assert main(["benchmarks"]) == 0
    listing = capsys.readouterr().out.partition("\n\n")[0]
    assert re.findall(r"^(\S+):$", listing, re.MULTILINE) == list(
        dict.fromkeys(protocol.family for protocol in PROTOCOLS.values())
    )
    lines = re.sub(r"\n {4,}", " ", listing).splitlines()  # descriptions wrap
    rows = [line.split(maxsplit=1) for line in lines if line.startswith("  ")]
    assert rows == [[name, protocol.about] for name, protocol in PROTOCOLS.items()]


UNFIT = [(protocol, *row) for protocol, rows in merge_rows("UNFIT").items() for row in rows]


@pytest.mark.parametrize(("protocol", "source", "content"), UNFIT)
def test_a_truth_of_another_form_is_refused(
    protocol: str, source: str, content: str, tmp_path: Path, capsys: Any
) -> None:
    truth = published(source, tmp_path)
    if PROTOCOLS[protocol].family != PROTOCOLS[source].family:  # a family reads all files as one track
        assert main(["host", source, "--truth", str(truth), "--out", str(tmp_path / "one")]) == 0
        truth = tmp_path / "one/annotations/val.zip"
    assert main(["host", protocol, "--truth", str(truth), "--out", str(tmp_path / "two")]) == 3
    assert f"the truth of val holds {content}, which the protocol {protocol} does not score" in capsys.readouterr().err
    assert not (tmp_path / "two").exists()


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = merge_rows("BROKEN")


@pytest.mark.parametrize("protocol", BROKEN)
def test_a_broken_truth_is_a_sentence_and_leaves_nothing(protocol: str, tmp_path: Path, capsys: Any) -> None:
    truth, (spoil, sentence) = published(protocol, tmp_path / "data"), BROKEN[protocol]
    spoil(truth)
    assert main(["host", protocol, "--truth", str(truth), "--out", str(tmp_path / "mine")]) == 3
    output = capsys.readouterr().err
    assert sentence in output
    assert "defect" not in output
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.long
def test_splits_of_instances_are_packed_one_by_one(tmp_path: Path, capsys: Any) -> None:
    """The splits are the short and the long videos of YouTube-VIS 2022."""
    truth, packed, folder = published("youtube-vis-2022", tmp_path), str(tmp_path / "truth.zip"), str(tmp_path / "mine")
    for split in ("short", "long"):
        arguments = ["pack", "--layout", "coco", "--root", str(truth), "--out", packed, "--split", split]
        assert main(arguments) == 0
        assert f"split {split}, 2 images or videos, 4 instances" in capsys.readouterr().out
    assert main(["pack", "--layout", "coco", "--root", packed, "--out", f"{packed}2"]) == 2
    assert "is already packed" in capsys.readouterr().err
    assert main(["host", "youtube-vis-2022", "--truth", packed, "--out", folder]) == 0
    assert main(["run", folder]) == 0
    assert "all / long" in capsys.readouterr().out


@pytest.mark.parametrize("protocol", examples("any names"))
def test_an_empty_truth_is_told_to_a_host_and_not_to_a_participant(
    protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = tmp_path / "truth.zip"
    truth.touch()
    assert main(["host", protocol, "--truth", str(truth), "--out", str(tmp_path / "out")]) == 3
    output = capsys.readouterr().err
    assert output.startswith(f"{truth}: ")
    assert "is empty. Name the folder or the " in output
    assert "your file" not in output
    assert "Send" not in output
    assert not (tmp_path / "out").exists()
