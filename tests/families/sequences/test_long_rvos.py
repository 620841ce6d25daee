"""Expressions of long videos: every number of Long-RVOS's evaluator, by type too."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from tests import published
from tests.backends import use_numpy
from tests.builders import zipped
from tests.data import FAMILIES_DATA
from tests.shared import needs_shared

LONG = FAMILIES_DATA / "revos" / "long_rvos"
LACKS = {
    "submission": [],
    "ones": [],
    "broken": [
        "val: long_1: 2 of 5 expressions lack masks: 0, 1 (excluded from the means)",
        "val: long_1/2/00030.png: is missing (scored as empty)",
    ],
}
EXACT = {"abs": 1e-12, "rel": 0}


@needs_shared
@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize(
    ("case", "protocol"),
    [("submission", "long-rvos"), ("ones", "long-rvos-official"), ("broken", "long-rvos-official")],
)
def test_expressions_score_as_the_official_evaluator_says(
    case: str, protocol: str, kernel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        use_numpy(monkeypatch)
    golden = json.loads((FAMILIES_DATA / "revos" / "golden.json").read_text())["long_rvos"]["cases"][case]["official"]
    packed = str(tmp_path / "truth.zip")
    assert main(["pack", "--layout", protocol, "--root", str(LONG / "truth"), "--out", packed]) == 0
    for truth in (LONG / "truth", packed):
        scores = segjudge.score(LONG / case, truth, protocol)
        values = scores.metrics["val"]
        assert tuple(values)[:20] == SEQUENCE_PROTOCOLS[protocol].metrics
        groups = {"": golden["overall"], **{f"-{kind}": numbers for kind, numbers in golden["types"].items()}}
        for group, numbers in groups.items():
            for name in ("J", "F", "J&F", "tIoU", "vIoU"):
                assert values[f"{name}{group}-Mean"] == pytest.approx(numbers[name], **EXACT)
        rows = {f"{row['sequence']}_{row['object']}": row for row in scores.tables["objects"]}
        assert rows.keys() == golden["expressions"].keys()
        for expression, numbers in golden["expressions"].items():
            for name, number in numbers.items():
                assert rows[expression][f"{name}-Mean"] == pytest.approx(number, **EXACT)
        assert scores.warnings == [f"val: {case}/: 1 of 4 sequences is missing: not_sent (scored as 0)", *LACKS[case]]


def test_officially_an_expression_needs_its_first_frame_alone(tmp_path: Path) -> None:
    truth, results = published.published("long-rvos", tmp_path), tmp_path / "sent.zip"
    with zipfile.ZipFile(io.BytesIO(published.upload("long-rvos", truth))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    first, *_, last = sorted(name for name in files if name.startswith("swan/0/"))
    for lacks, warning in (
        (last, f"val: {last}: is missing (scored as empty)"),
        (first, "val: swan: 1 of 2 expressions lacks masks: 0 (excluded from the means)"),
    ):
        results.write_bytes(zipped({name: data for name, data in files.items() if name != lacks}))
        scores = segjudge.score(results, truth, "long-rvos-official")
        assert scores.warnings == [warning]
        assert len(scores.tables["objects"]) == 3 + (lacks == last)
        with pytest.raises(SubmissionError, match=f"{lacks}: is missing"):
            segjudge.score(results, truth, "long-rvos")


def test_expressions_have_to_say_their_type(tmp_path: Path) -> None:
    truth = published.published("long-rvos", tmp_path)
    text = (truth / "meta_expressions.json").read_text()
    (truth / "meta_expressions.json").write_text(text.replace('"type"', '"kind"'))
    with pytest.raises(HostError, match=r"is not a file of expressions with obj_id and type"):
        segjudge.score(truth, truth, "long-rvos")
