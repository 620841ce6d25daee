"""`segjudge.score` from Python: results and truths of every kind, both sequences and instances, and its errors."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS, PER_CATEGORY
from segjudge.evaluation_script.scoring.scorer import is_packed
from segjudge.families.sequences.published import open_sequences
from segjudge.families.truths import TruthSource, pack
from segjudge.masks.run_lengths import runs_of_mask
from tests.builders import ANNOTATIONS, ROOT, label_zip, zipped
from tests.commands.test_cli import ONE, TWO, davis
from tests.commands.test_participants import SHARP, TRUTH, folder_of
from tests.families.choices import WITH_UNSEEN


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return davis(tmp_path / "DAVIS")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "results")


def as_zip(results: Path) -> Path:
    files = {str(path.relative_to(results)): path.read_bytes() for path in results.rglob("*.png")}
    archive = results.parent / "results.zip"
    archive.write_bytes(zipped(files))
    return archive


def as_json(results: Path) -> Path:
    document = {
        name: {
            str(number): [{"size": list(labels.shape), "counts": runs_of_mask(labels == number)}] * 6
            for number in (1, 2)
        }
        for name, labels in (("dog", TWO), ("cat", ONE))
    }
    path = results.parent / "results.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("form", [lambda path: path, as_zip, as_json], ids=["folder", "zip", "json"])
@pytest.mark.parametrize("packed", [False, True])
def test_results_and_truths_of_every_kind_score_the_same(form: Any, packed: bool, root: Path, results: Path) -> None:
    truth: str | Path = root
    if packed:
        truth = str(root.parent / "truth.zip")
        pack(TruthSource(str(root), "davis2017", "val"), truth)
        assert is_packed(truth)

    scores = segjudge.score(form(results), truth, subset="val")

    expected = segjudge.score(results, root, "davis2017", subset="val")
    assert scores.metrics == expected.metrics
    assert scores.tables == expected.tables
    assert [row["sequence"] for row in scores.tables["sequences"]] == ["dog", "cat"]
    assert {(row["sequence"], row["object"]) for row in scores.tables["objects"]} >= {("dog", "1"), ("dog", "2")}


def test_the_numbers_are_those_of_the_command_line(root: Path, results: Path, tmp_path: Path) -> None:
    target = tmp_path / "scores.json"
    assert main(["score", str(results), "--truth", str(root), "--protocol", "davis2017", "--json", str(target)]) == 0
    document = json.loads(target.read_text())

    scores = segjudge.score(results, root)

    assert [{split: values} for split, values in scores.metrics.items()] == document["result"]
    assert scores.tables == {name: document[name] for name in ("sequences", "objects")}
    assert scores.warnings == document["warnings"]


def test_a_part_of_the_sequences_can_be_scored(root: Path, results: Path) -> None:
    scores = segjudge.score(results, root, sequences=["cat"])

    assert [row["sequence"] for row in scores.tables["sequences"]] == ["cat"]
    assert not any("dog" in line for line in scores.warnings), "it is in the truth, though not scored"
    assert segjudge.score(results, root, sequences=("cat", "cat")).metrics == scores.metrics


def test_scores_are_equal_where_they_say_the_same(root: Path, results: Path, tmp_path: Path) -> None:
    scores = segjudge.score(results, root)
    scores.save(tmp_path / "scores")
    for second in (copy.deepcopy(scores), copy.copy(scores), pickle.loads(pickle.dumps(scores))):
        assert second == scores
    assert segjudge.load(tmp_path / "scores").metrics == scores.metrics
    assert scores != segjudge.score(results, root, WITH_UNSEEN)
    assert scores != scores.metrics


def test_scores_say_which_metrics_they_have(root: Path, results: Path) -> None:
    scores = segjudge.score(results, root)
    assert "J&F-Mean" in scores
    assert "J-Deca" not in scores
    assert 0 not in scores
    assert list(scores) == list(scores.metrics["val"])
    assert {metric: scores[metric] for metric in scores} == scores.metrics["val"]


def test_instances_score_with_a_table_of_categories_and_standard_errors() -> None:
    scores = segjudge.score(SHARP, TRUTH, "places2017")

    assert set(scores.tables) == {"categories"}
    assert [row["name"] for row in scores.tables["categories"]] == ["disk", "bar", "ring", "wedge"]
    assert set(scores.standard_errors["dev"]) <= set(scores.metrics["dev"])


def test_a_coco_document_is_a_truth_too_and_a_protocol_may_be_changed(tmp_path: Path) -> None:
    document = tmp_path / "truth.json"
    document.write_bytes(instance_truth.documents(TRUTH)["dev"])
    changed = replace(INSTANCE_PROTOCOLS["places2017"], cap=PER_CATEGORY)

    scores = segjudge.score(SHARP, document, changed, jobs=2)

    assert scores.metrics["val"] == segjudge.score(SHARP, TRUTH, changed).metrics["dev"]


def test_every_split_is_scored_unless_one_is_named(results: Path, root: Path, tmp_path: Path) -> None:
    packed = str(tmp_path / "truth.zip")
    for name in ("easy", "hard"):
        pack(TruthSource(str(root), "davis2017", "val"), packed, split=name)

    assert set(segjudge.score(results, packed).metrics) == {"easy", "hard"}
    assert set(segjudge.score(results, packed, split="hard").metrics) == {"hard"}


def test_of_many_sequences_twenty_are_named(tmp_path: Path) -> None:
    videos = {f"s{number:02d}": [np.ones((4, 4))] for number in range(22)}
    (tmp_path / "truth.zip").write_bytes(label_zip(videos))
    with pytest.raises(segjudge.UsageError, match=r"no sequence x, only s00, .*, s18, s19 and 2 more$"):
        segjudge.score(tmp_path / "truth.zip", tmp_path / "truth.zip", sequences=["x"])


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"protocol": "davis2071"}, segjudge.UsageError, "there is no protocol 'davis2071'; did you mean davis2017"),
        ({"layout": "vosst"}, segjudge.UsageError, "there is no layout 'vosst', only "),
        ({"sequences": ["cow"]}, segjudge.UsageError, "the truth has no sequence cow"),
        (
            {"sequences": "cat"},
            segjudge.UsageError,
            r"sequences is a single string: give a list of names, such as \['cat'\]",
        ),
        ({"sequences": []}, segjudge.UsageError, "sequences names none: give a list of names, or omit it for all"),
        ({"sequences": ["cat", None]}, segjudge.UsageError, "sequences names None, which is not a name"),
        ({"sequences": ["cat", 2.5]}, segjudge.UsageError, "sequences names 2.5, which is not a name"),
        ({"sequences": 3}, segjudge.UsageError, "sequences has the type int: give a list of names"),
        ({"sequences": [3]}, segjudge.UsageError, "the truth has no sequence 3"),
        ({"jobs": 0}, segjudge.UsageError, "jobs is 0: give a whole number of at least 1, or 'auto'"),
        ({"jobs": -1}, segjudge.UsageError, "jobs is -1: give"),
        ({"jobs": "x"}, segjudge.UsageError, "jobs is 'x': give"),
        ({"jobs": 1.5}, segjudge.UsageError, "jobs is 1.5: give"),
        ({"jobs": True}, segjudge.UsageError, "jobs is True: give"),
        ({"split": "test"}, segjudge.UsageError, "has no split 'test', only val"),
        ({"protocol": "coco", "layout": "generic"}, segjudge.UsageError, "layout does not apply to instances"),
        ({"truth": "nowhere"}, segjudge.HostError, "nowhere"),
        ({"results": "nowhere"}, segjudge.SubmissionError, "nowhere: cannot be opened"),
        ({"results": ANNOTATIONS}, segjudge.SubmissionError, "is an annotation file of `pack`, not results"),
        (
            {"truth": ANNOTATIONS, "layout": "generic"},
            segjudge.UsageError,
            "layout does not apply to .*, which is a packed file",
        ),
    ],
)
def test_what_is_wrong_is_an_exception_with_a_sentence(
    options: dict[str, Any], error: type[Exception], sentence: str, root: Path, results: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with pytest.raises(error, match=sentence):
        segjudge.score(**{"results": results, "truth": root, **options})
    assert capsys.readouterr() == ("", "")


def test_strict_refuses_what_is_warned_of(root: Path, results: Path) -> None:
    (results / "stranger").mkdir()
    (results / "stranger/00000.png").write_bytes((results / "cat/00000.png").read_bytes())

    assert any("stranger" in line for line in segjudge.score(results, root).warnings)
    with pytest.raises(segjudge.SubmissionError, match="stranger"):
        segjudge.score(results, root, strict=True)


def test_progress_is_reported(root: Path, results: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    segjudge.score(results, root, progress=lambda *call: calls.append(call))

    assert calls == [("dog", 0, 2), ("cat", 1, 2), ("", 2, 2)]


def test_the_package_imports_nothing_until_a_name_is_used() -> None:
    code = (
        "import sys, segjudge\n"
        "print(sorted(name for name in sys.modules if name.startswith(('segjudge.', 'numpy'))))\n"
        "print(dir(segjudge) == segjudge.__all__ == sorted(segjudge.__all__))\n"
        "print(*(getattr(segjudge, name).__name__ for name in segjudge.__all__))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert run.stdout.splitlines() == ["[]", "True", " ".join(segjudge.__all__)]
    with pytest.raises(AttributeError, match="module 'segjudge' has no attribute 'sore'"):
        segjudge.sore  # noqa: B018


def test_a_truth_opens_the_same_packed_or_published(root: Path, tmp_path: Path) -> None:
    packed = str(tmp_path / "truth.zip")
    pack(TruthSource(str(root), "davis2017", "val"), packed)

    names = [
        [sequence.name for sequence in open_sequences(source).splits["val"].sequences]
        for source in (TruthSource(packed), TruthSource(str(root), "davis2017", "val"))
    ]

    assert names == [["dog", "cat"]] * 2


def test_only_the_opener_reads_published_datasets_in_the_toolkit() -> None:
    mounted = {"evaluation_script", "remote_challenge_evaluation", "code_upload_challenge_evaluation"}
    files = {path.relative_to(ROOT / "segjudge"): path for path in (ROOT / "segjudge").rglob("*.py")}
    readers = {
        name.as_posix()
        for name, path in files.items()
        if name.parts[0] not in mounted and re.search(r"\bdataset(_reader)?\.read\(", path.read_text(encoding="utf-8"))
    }

    # `compress` reads results by themselves, without a truth.
    assert readers == {"families/sequences/published.py", "families/sequences/compression.py"}
