"""Participants read the same about a hidden split whatever its truth, and each platform knows what is hidden."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from segjudge.cli import main
from segjudge.evaluation_script import evaluate
from segjudge.evaluation_script import main as scoring
from segjudge.evaluation_script.phases import PHASES
from segjudge.evaluation_script.scoring.phase import DETAILS
from segjudge.scoring.report import make_stored_report
from tests.builders import ROOT, png, zipped
from tests.families.sequences.family import davis
from tests.published import FRAMES, VIDEOS, labels


def other_truth(folder: Path) -> Path:
    """Return the same videos with other masks: larger, elsewhere, absent in the middle, one object fewer."""
    root = davis(folder)
    for name in VIDEOS:
        for frame in range(FRAMES):
            moved = np.roll(labels(name, frame), 9, axis=0)
            moved[moved == 2] = 0 if name == "goat" or frame == 4 else 2
            (root / f"Annotations/480p/{name}/{frame:05d}.png").write_bytes(png(moved))
    return root


@pytest.mark.parametrize("report", [False, True])
@pytest.mark.parametrize("detail", DETAILS)
def test_two_truths_give_the_same_bytes_where_the_split_is_hidden(
    detail: str, report: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    split = replace(PHASES[0].splits[0], codename="val", hidden=True)
    monkeypatch.setattr(scoring, "PHASES", (replace(PHASES[0], splits=(split,), detail=detail, report=report),))
    submission = tmp_path / "results.zip"
    extra = {1: 0, 2: 0, 3: 1}  # an object that neither truth has, and one that one of them lacks
    masks = {
        f"{name}/{frame:05d}.png": png(np.where(labels(name, frame) > 0, labels(name, frame), extra.get(frame, 0) * 3))
        for name in VIDEOS
        for frame in range(FRAMES)
    }
    submission.write_bytes(zipped(masks))
    read, scores = [], []
    for number, root in enumerate((davis(tmp_path / "one"), other_truth(tmp_path / "two"))):
        packed = tmp_path / f"{number}.zip"
        assert main(["pack", "--layout", "davis2017", "--root", str(root), "--out", str(packed)]) == 0
        capsys.readouterr()
        answer = evaluate(str(packed), str(submission), PHASES[0].codename)
        scores.append((answer.pop("result"), answer.pop("error"), answer.pop("interval", None)))
        assert answer.pop("submission_metadata")["provenance"]["truth"]  # which hosts read
        page = make_stored_report(answer["submission_result"], "results.zip")
        read.append((json.dumps(answer, sort_keys=True), page, *capsys.readouterr()))
    assert scores[0] != scores[1]
    assert read[0] == read[1]


@pytest.fixture(scope="module")
def challenge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a challenge with the splits test and test-hard, which participants see."""
    folder = tmp_path_factory.mktemp("new") / "challenge"
    truth = str(ROOT / "annotations/sequences-test.zip")
    assert main(["new", str(folder), "--protocol", "davis2017", "--truth", truth]) == 0
    phases = folder / "evaluation_script/phases.py"
    phases.write_text(phases.read_text().replace('codename="all",', 'codename="all", report=True,'))
    return folder


_HIDDEN = ("py", "LABELS),", "LABELS, hidden=True),")
_UNMAPPED = ("py", 'PhaseSplit("test-hard"', 'PhaseSplit("test-dev", "davis2017", LABELS), PhaseSplit("test-hard"')
#: What differs between the YAML and `phases.py` → the edits of the two files, and the exit code of EvalAI's `check`.
DISAGREEMENTS: dict[str, tuple[tuple[tuple[str, str, str], ...], int]] = {
    **{f"visibility {value}": ((("yaml", "visibility: 3", f"visibility: {value}"),), 3) for value in ("1", "2", "'1'")},
    "visibility 0": ((("yaml", "visibility: 3", "visibility: 0"),), 3),
    "visibility 0 of a hidden split": ((("yaml", "visibility: 3", "visibility: 0"), _HIDDEN), 3),
    "no visibility": ((("yaml", "visibility: 3", "about: 3"),), 3),
    "no visibility of a hidden split": ((("yaml", "visibility: 3", "about: 3"), _HIDDEN), 3),
    "phases.py alone": ((_HIDDEN,), 3),
    "another name": ((("py", 'PhaseSplit("test-hard"', 'PhaseSplit("test-easy"'),), 4),
    "a split without a row": ((_UNMAPPED,), 4),
    "another phase": ((("py", 'codename="all"', 'codename="every"'),), 4),
}
_FAULTS = (
    "shows the scores of test-hard|hides the scores of test-hard|its splits differ from the YAML's|lacks the phase all"
    "|has no visibility|has the visibility 0"
)


@pytest.mark.parametrize("platform", ["evalai", "codabench", "grand-challenge"])
@pytest.mark.parametrize(("edits", "code"), DISAGREEMENTS.values(), ids=DISAGREEMENTS)
def test_what_the_yaml_hides_and_phases_py_shows_or_the_reverse_is_built_for_no_platform(
    edits: tuple[tuple[str, str, str], ...], code: int, platform: str, challenge: Path, tmp_path: Path, capsys: Any
) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(challenge, mine)
    for kind, old, new in edits:
        path = mine / ("challenge_config.yaml" if kind == "yaml" else "evaluation_script/phases.py")
        before, _, after = path.read_text().rpartition(old)
        assert after
        path.write_text(before + new + after)
    arguments, out = (
        ["--platform", platform, "--bundle", str(mine)],
        tmp_path / ("out.zip" if platform == "evalai" else "out"),
    )
    commands = [["build", "--out", str(out)]]
    commands += [["check", "--quick"], ["run"], ["push", "--dry-run"]] if platform == "codabench" else []
    for command in commands:
        assert main([*command, *arguments]) == 3
        assert re.search(_FAULTS, capsys.readouterr().err)
    if platform == "evalai":
        assert main(["check", "--quick", *arguments]) == code
        assert main(["run", *arguments]) == 3
        assert not (mine / "dist/challenge_config.zip").exists()
    assert not out.exists()


@pytest.mark.parametrize("kind", ["yaml", "py"])
def test_a_file_for_public_hubs_holds_no_hidden_split(
    kind: str, challenge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    mine, out = tmp_path / "mine", tmp_path / "me.yaml"
    shutil.copytree(challenge, mine)
    path = mine / ("challenge_config.yaml" if kind == "yaml" else "evaluation_script/phases.py")
    old, new = {"yaml": ("visibility: 3", "visibility: 1"), "py": ("LABELS),", "LABELS, hidden=True),")}[kind]
    before, _, after = path.read_text().rpartition(old)
    path.write_text(before + new + after)
    monkeypatch.chdir(mine)
    strong = str(ROOT / "examples/sequences-test/strong.zip")
    arguments = ["score", strong, "--phase", "all", "--results-yaml", str(out), "--hub-dataset", "me/data"]
    assert main([*arguments, "--split", "test-hard"]) == 2
    assert "not test-hard of all, whose scores are hidden from participants" in capsys.readouterr().err
    assert not out.exists()
    record = tmp_path / "record.json"
    assert main([*arguments, "--record", str(record)]) == 0
    assert capsys.readouterr().err.count("test-hard is hidden from participants, and omitted from") == 2
    assert [entry["dataset"]["task_id"] for entry in yaml.safe_load(out.read_text())] == ["test"]
    assert "test-hard" not in record.read_text()
    assert main(["verify", str(record), "--submission", strong, "--phase", "all"]) == 0
