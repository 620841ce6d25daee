"""Submissions mounted by grand-challenge score as everywhere, in every family and form that it can carry."""

from __future__ import annotations

import gzip
import importlib
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from segjudge.evaluation_script import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files import limits
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.families import tools_of
from segjudge.families.truths import TruthSource, pack_truth
from segjudge.platforms.grand_challenge import build, evaluate, platform_input
from segjudge.scoring.request import ScoreRequest, prepare
from segjudge.starting.new_challenge import write_demo_truth
from tests.builders import tarred, zipped
from tests.families.contract import examples
from tests.platforms.grand_challenge import evaluations

#: The long tests try all.
KINDS = examples("mounts")
EVERY_KIND = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (name not in KINDS))
        for number, name in enumerate(PROTOCOLS)
        if name in KINDS or number % 3 == 0
    ],
)
#: The scorers' modules that the image's program imports.
_MODULES = (
    "evaluation_script",
    *(f"evaluation_script.{name}" for name in ("main", "files", "files.archive", "files.limits", "files.problems")),
)


@dataclass(frozen=True)
class Evaluation:
    """A strict phase of one protocol, with its demo truth and sample in a folder."""

    folder: Path
    phase: Phase
    sample: dict[str, bytes]
    expected: dict[str, float]

    @property
    def labels(self) -> dict[str, str]:
        return build._path_keys(self.phase.splits[0].metrics)

    def score(self, mount: Callable[[Path], None]) -> dict[str, Any]:
        """Run the image's program on the platform's mounts; return the value at each label's path."""
        for name in ("input", "output"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / name).mkdir()
        mount(self.folder / "input")
        split = self.phase.splits[0].codename
        task = {"phase": "p", "annotations": "truth.zip", "splits": {split: {"key": "key", "labels": self.labels}}}
        (self.folder / "task.json").write_text(json.dumps(task))
        arguments = [str(self.folder / name) for name in ("input", "", "output")]
        modules = {name: importlib.import_module(f"segjudge.{name}") for name in _MODULES}
        with (
            mock.patch.dict(sys.modules, {**modules, "platform_input": platform_input}),
            mock.patch.object(main, "PHASES", (self.phase,)),
            mock.patch.object(evaluate, "_HERE", str(self.folder)),
            mock.patch.object(sys, "argv", ["evaluate.py", *arguments]),
        ):
            assert evaluate.main() == 0
        metrics = json.loads((self.folder / "output/metrics.json").read_text())
        return {label: evaluations.ranked_value(metrics, f"key.{key}") for label, key in self.labels.items()}


def make_evaluation(name: str, folder: Path) -> Evaluation:
    protocol = PROTOCOLS[name]
    tools = tools_of(protocol.family)
    source = TruthSource(write_demo_truth(protocol, str(folder / "demo")), "", "", "", "")
    pack_truth(source, protocol, str(folder / "truth.zip"), lambda *_: None)
    packed = TruthSource(str(folder / "truth.zip"), "", "", "", "")
    ((split, scorer),) = prepare(ScoreRequest("", packed, protocol)).scorers.items()
    sample = dict(tools.make_sample([scorer.truth], protocol, 0.01))
    phase_limits = getattr(limits, tools.limits) if tools.limits else limits.ArchiveLimits()
    splits = (PhaseSplit(split, name, tuple(protocol.metrics)),)
    phase = Phase("p", "truth.zip", splits, limits=phase_limits, strict=True)
    (folder / "sample.zip").write_bytes(zipped(sample))
    answer = main.evaluate_phase(phase, str(folder / "truth.zip"), str(folder / "sample.zip"))
    return Evaluation(folder, phase, sample, answer["result"][0][split])


@EVERY_KIND
def test_every_kind_of_submission_scores_as_the_platform_mounts_it(name: str, tmp_path: Path) -> None:
    """Uploaded, and written by jobs: three with some of the records or objects each, or a single one with a zip."""
    evaluation = make_evaluation(name, tmp_path)
    others = {"images/scan/1.mha": b"an image", "lists/cases.json": b"[]"}
    upload = partial(evaluations.upload, data=zipped(evaluation.sample), others=others)
    assert evaluation.score(upload) == evaluation.expected

    outputs = {"only-job": {"masks.zip": zipped(evaluation.sample)}}
    if [Path(path).suffix for path in evaluation.sample] == [".json"]:
        parts = evaluations.split_document(json.loads(*evaluation.sample.values()), 3)
        outputs = {f"job-{number}": {"masks.json": evaluations.encode(part)} for number, part in enumerate(parts)}
    assert evaluation.score(partial(evaluations.run_jobs, outputs=outputs)) == evaluation.expected


@pytest.mark.long
@pytest.mark.parametrize("name", examples("JSON mounts"))
def test_json_may_come_plain_gzipped_or_in_an_archive(name: str, tmp_path: Path) -> None:
    evaluation = make_evaluation(name, tmp_path)
    ((path, data),) = evaluation.sample.items()
    gzipped, tar = zipped({f"{path}.gz": gzip.compress(data)}), zipped({"results.tar": tarred(evaluation.sample)})
    for upload in (data, zipped({f"my results/{path}": data}), gzipped, tar):
        assert evaluation.score(partial(evaluations.upload, data=upload)) == evaluation.expected


def test_picked_files_do_what_all_files_do(tmp_path: Path) -> None:
    path = tmp_path / "000000.label"
    path.write_bytes(b"1234")
    folder: Any = platform_input._make_folder(str(tmp_path), {"08/000000.label": str(path)})
    files = folder.open_files(limits.UNIT_LIMITS)
    assert files.read_buffer("08/000000.label") == files.read("08/000000.label") == b"1234"
    files.close()
