"""Every number of the official evaluators, to 1e-9, on real masks."""

from __future__ import annotations

import gzip
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import metrics as sequence_metrics
from segjudge.evaluation_script.families.sequences.layouts import LAYOUTS
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS, SequenceProtocol
from segjudge.evaluation_script.families.sequences.truth import Split
from segjudge.evaluation_script.files.limits import ArchiveLimits
from tests.builders import score_sequences
from tests.data import SEQUENCES
from tests.families.sequences.comparison import (
    EVALUATORS,
    EXACT,
    check_values,
    close,
    in_official_order,
    rows_by_sequence,
)
from tests.golden.pairs import write_pair
from tests.shared import needs_shared

#: Scored by the kernel here, and by numpy on the worker's interpreter.
pytestmark = needs_shared

GOLDENS = sorted(SEQUENCES.glob("golden_*_open.json"))


def golden_id(path: Path) -> str:
    return path.name[len("golden_") : -len("_open.json")]


def protocol_of(pair: str, evaluator: str) -> SequenceProtocol:
    return SEQUENCE_PROTOCOLS["davis2016" if (pair, evaluator) == ("A", "davis_semi") else EVALUATORS[evaluator]]


@pytest.fixture(scope="session")
def pair_files(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[tuple[str, bool], tuple[Path, Path]] = {}

    def files(pair: str, *, by_object: bool) -> tuple[Path, Path]:
        if (pair, by_object) not in made:
            made[pair, by_object] = write_pair(pair, tmp_path_factory.mktemp(pair), by_object=by_object)
        return made[pair, by_object]

    return files


def of_sequences(split: Split, names: Any) -> Split:
    return replace(split, sequences=[sequence for sequence in split.sequences if sequence.name in names])


#: The cases that numpy scores: each evaluator, but not every pair, because it gives the kernel's bits. For the same
#: reason it scores an eighth of the sequences of all pairs but A.
BY_NUMPY = {path for path in GOLDENS if re.match("A_|Blate_sav|Lvoid_davis|C2_davis", golden_id(path))}
CASES = [
    pytest.param(path, id=golden_id(path))
    for path in GOLDENS
    if not path.name.endswith("lvos_cy_open.json") and (sys.version_info >= (3, 11) or path in BY_NUMPY)
]


@pytest.mark.long
@pytest.mark.parametrize("path", CASES)
def test_real_masks_score_as_the_official_evaluator_says(path: Path, pair_files: Any) -> None:
    match = re.fullmatch(r"(\w+?)_(.*)", golden_id(path))
    assert match
    pair, evaluator = match.groups()
    golden = json.loads(path.read_text())
    protocol = protocol_of(pair, evaluator)
    truth_path, prediction_path = pair_files(pair, by_object=evaluator == "sav")
    if protocol.name == "davis2016":
        truth_path = SEQUENCES / "open_gt2016.zip"
    layout = LAYOUTS["sav" if evaluator == "sav" else "generic"]
    truth = dataset_reader.read(str(truth_path), layout, unseen=str(SEQUENCES / "unseen_videos.txt"))
    is_whole = pair == "A" or sys.version_info >= (3, 11)
    golden["sequences"] = dict([*golden["sequences"].items()][:: 1 if is_whole else 8])
    split = of_sequences(truth.splits["val"], golden["sequences"])

    scores, _ = score_sequences(str(prediction_path), split, protocol, ArchiveLimits())

    scale = 100 if golden["unit"].startswith("percent") else 1
    values = sequence_metrics._ScoreTable(scores, protocol).means()
    for name, number in golden["global"].items() if is_whole else ():
        if name == "n_objects":
            assert len(scores) == number
        elif not name.startswith("scores_txt"):
            ours = name if name.endswith(("-Mean", "-Recall", "-Decay")) else name + "-Mean"
            assert close(values[ours], number, scale), (name, values[ours], number)
    check_objects(golden, evaluator, scores, scale)
    check_frames(pair, evaluator, scores)


def check_objects(golden: Any, evaluator: str, scores: Any, scale: float) -> None:
    rows = rows_by_sequence(scores)
    for sequence, entry in golden["sequences"].items():
        objects = entry if evaluator == "mosev2" else entry["objects"]
        assert len(objects) == len(rows.get(sequence, []))
        for mine, values in zip(rows.get(sequence, []), objects.values()):
            check_values(values, mine, evaluator, scale)


def check_frames(pair: str, evaluator: str, scores: Any) -> None:
    path = SEQUENCES / f"perframe_{pair}_{evaluator}_open.json.gz"
    if not path.exists():
        return
    golden = json.loads(gzip.decompress(path.read_bytes()))
    rows = rows_by_sequence(scores)
    compared = 0
    for sequence, objects in golden.items():
        if sequence not in rows:
            continue
        for mine, entry in zip(rows[sequence], objects.values()):
            for letter, series in (("J", mine.j), ("F", mine.f)):
                if f"{letter}_frames" in entry:
                    ours = in_official_order(series, evaluator)
                    np.testing.assert_allclose(ours, entry[f"{letter}_frames"], rtol=0, atol=EXACT)
                    compared += len(series)
    assert compared, path.name
