"""A record of scores holds what others need to check them, and each change of it is found and named."""

from __future__ import annotations

import copy
import json
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segjudge import cli
from segjudge.scoring.records import Record, Subject, write_record
from segjudge.scoring.request import prepare
from segjudge.system.errors import UsageError
from tests.data import ROOT
from tests.families.contract import examples
from tests.scoring.shares import write_files

RESULTS, TRUTH = str(ROOT / "examples/sequences-dev/strong.zip"), str(ROOT / "annotations/sequences-dev.zip")
#: The keys that Every Eval Ever's schema 0.3.0 requires, by the place of their object.
REQUIRED = {
    "": "schema_version evaluation_id retrieved_timestamp source_metadata model_info eval_library evaluation_results",
    "source_metadata": "source_type source_organization_name evaluator_relationship",
    "eval_library": "name version",
    "model_info": "name id additional_details",
    "model_info additional_details": "deployment_type model_availability",
    "evaluation_results 0": "evaluation_name source_data metric_config score_details",
    "evaluation_results 0 source_data": "dataset_name source_type",
    "evaluation_results 0 metric_config": "lower_is_better min_score max_score",
    "evaluation_results 0 score_details": "score",
}


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "record.json"
    command = ["score", RESULTS, "--truth", TRUTH, "--protocol", "davis2017", "--record", str(path)]
    assert cli.main([*command, "--model", "org/model"]) == 0
    return path


def verify(record: Path, submission: str = RESULTS, truth: str = TRUTH) -> int:
    return cli.main(["verify", str(record), "--submission", submission, "--truth", truth])


def test_a_record_has_the_form_of_every_eval_ever(record: Path) -> None:
    content = json.loads(record.read_text())
    for place, keys in REQUIRED.items():
        inner: Any = content
        for step in place.split():
            inner = inner[int(step) if step.isdecimal() else step]
        assert set(keys.split()) <= inner.keys(), place
    for details in (content["eval_library"], content["model_info"], content["evaluation_results"][0]["source_data"]):
        assert all(isinstance(value, str) for value in details["additional_details"].values())
    assert content["model_info"]["id"] == "org/model"
    names = [result["metric_config"]["metric_id"] for result in content["evaluation_results"]]
    assert names[:2] == ["J&F-Mean", "J-Mean"]


@pytest.mark.parametrize("protocol", examples("samples"))
def test_every_family_records_and_verifies(protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write_files(protocol, tmp_path)
    path = tmp_path / "record.json"
    words = ["--truth", files.truth]
    assert cli.main(["score", files.results, *words, "--protocol", protocol, "--record", str(path)]) == 0
    capsys.readouterr()
    assert cli.main(["verify", str(path), "--submission", files.results, *words]) == 0
    assert capsys.readouterr().out.startswith("equal: ")


def test_each_flipped_bit_of_a_record_is_found(record: Path, tmp_path: Path) -> None:
    scores = prepare_scores()
    subject = Subject("org/model", RESULTS, TRUTH, None)
    data, draw = record.read_bytes(), random.Random(1)
    for place in draw.sample(range(len(data) - 1), 400):
        changed = bytearray(data)
        changed[place] ^= 1 << draw.randrange(8)
        path = tmp_path / "changed.json"
        path.write_bytes(changed)
        try:
            verdict = Record.read(str(path)).compare(scores, subject)
        except UsageError as error:
            assert "is not a record of `score --record`, or is damaged" in str(error)
        else:
            assert verdict.differences or verdict.unknown, (place, changed[max(place - 40, 0) : place + 10])


def prepare_scores() -> Any:
    from segjudge.evaluation_script.families import PROTOCOLS
    from segjudge.families.truths import TruthSource
    from segjudge.scoring.request import ScoreRequest

    return prepare(ScoreRequest(RESULTS, TruthSource(TRUTH), PROTOCOLS["davis2017"])).score()


def test_differences_are_named(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(record.read_text())
    result = content["evaluation_results"][0]
    result["score_details"]["score"] += 1e-12
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(content))
    capsys.readouterr()
    assert verify(changed) == 1
    assert "differs: dev J&F-Mean is 0.93250374963" in capsys.readouterr().err
    assert verify(record, str(ROOT / "examples/sequences-dev/lagging.zip")) == 1
    assert "the submission is not the recorded file" in capsys.readouterr().err
    other = tmp_path / "truth.zip"
    shutil.copy(TRUTH, other)
    with other.open("ab") as file:
        file.write(b"\0")
    assert verify(record, truth=str(other)) == 4
    assert "cannot be known: the truth is not the recorded one; its 12 numbers are equal" in capsys.readouterr().out


def test_numbers_of_hidden_splits_are_not_shown(record: Path) -> None:
    scores, subject = prepare_scores(), Subject("m", RESULTS, TRUTH, None)
    content = json.loads(record.read_text())
    content["evaluation_results"][0]["score_details"]["score"] = 0.5
    verdict = Record("r", content).compare(scores, subject, frozenset({"dev"}))
    assert not any(character.isdigit() for line in verdict.differences for character in line)


def test_splits_beyond_the_record_are_neither_compared_nor_shown(record: Path) -> None:
    """A phase has hidden splits that its public record omits."""
    scores, subject = prepare_scores(), Subject("m", RESULTS, TRUTH, None)
    (report,) = scores.reports
    hidden = copy.copy(report)
    hidden.split = "hidden"
    both = replace(scores, reports=[report, hidden])
    content = json.loads(record.read_text())
    assert not any(Record("r", content).compare(both, subject, frozenset({"hidden"}))[1:])
    verdict = Record("r", content).compare(replace(scores, reports=[hidden]), subject)
    assert verdict == (0, [], ["the truth has no split of the record"])


def test_the_digest_of_a_folder_is_that_of_its_sums(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.unpack_archive(RESULTS, folder)
    path = tmp_path / "record.json"
    write_record(str(path), prepare_scores(), Subject("m", str(folder), TRUTH, None))
    line = "find -L . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum"
    expected = subprocess.run(
        ["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.split()[0]
    assert json.loads(path.read_text())["model_info"]["additional_details"]["submission.digest.sha256"] == expected
