"""The data that a phase stores for a submission's page, which changes no score."""

from __future__ import annotations

import copy
import io
import json
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.evaluation_script.families.sequences import losses
from segjudge.evaluation_script.main import evaluate_phase
from segjudge.evaluation_script.masks import stream as mask_stream
from segjudge.evaluation_script.phases import PHASES
from segjudge.evaluation_script.scoring import answer as answers
from segjudge.evaluation_script.scoring.phase import DETAILS
from tests.builders import ROOT, files_of, png, stack_of, zipped


def left_by(number: int = 0, **changes: Any) -> dict[str, Any]:
    return dict(json.loads(json.dumps(answer_of(number, **changes)["submission_result"])))


def answer_of(number: int = 0, **changes: Any) -> dict[str, Any]:
    phase = replace(PHASES[number], **changes)
    sample = {0: "sequences-dev/lagging.zip", 2: "instances-dev/coarse.json"}[number]
    return evaluate_phase(phase, str(ROOT / phase.annotations), str(ROOT / "examples" / sample))


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """Return the maximum size of a phase's data."""
    return left_by(detail="all", report=True)


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("number", [0, 2])
def test_a_report_changes_no_score(number: int, detail: str) -> None:
    bare, full = (answer_of(number, detail=detail, report=report) for report in (False, True))
    more = {
        key: full["submission_result"].pop(key)
        for key in ("errors", "intervals", "losses")
        if key in full["submission_result"]
    }
    for answer in (bare, full):
        answer["submission_metadata"].pop("seconds")
        answer["submission_result"].pop("provenance", None)
    assert full == bare
    levels = {"means": {"intervals"}, "sequences": {"intervals", "losses"}, "all": {"errors", "intervals", "losses"}}
    assert set(more) == levels[detail]
    assert bool(more.get("losses")) == (detail != "means" and number == 0)


@pytest.mark.long
def test_processes_share_the_work_and_leave_the_same(whole: dict[str, Any]) -> None:
    shared = left_by(detail="all", report=True, jobs=3)
    assert shared["losses"] == whole["losses"]


def test_what_kinds_take_of_the_whole_is_left_of_a_truth_that_is_not_public(whole: dict[str, Any]) -> None:
    losses = left_by(detail="sequences", report=True)["losses"]["dev"]
    assert losses["shares"] == [round(share, 3) for share in whole["losses"]["dev"]["shares"]]
    assert losses["sequences"] == []


def test_nothing_is_left_of_hidden_splits() -> None:
    split = replace(PHASES[0].splits[0], hidden=True)
    left = left_by(splits=(split,), detail="all", report=True)
    assert (left["losses"], left["intervals"], left["errors"]) == ({}, [], [])


@pytest.mark.parametrize("failure", [MemoryError("none"), SystemExit(3), RuntimeError("secret"), KeyboardInterrupt()])
def test_scores_stay_whatever_happens_to_the_report(
    failure: BaseException, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(losses, "view_sequence", broken)
    answer = answer_of(detail="all", report=True)
    assert answer["result"] == answer_of(detail="all")["result"]
    assert "losses" not in answer["submission_result"]
    assert "the page of a submission lacks the causes of loss" in capfd.readouterr().err


def test_a_report_that_takes_too_long_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(losses, "view_sequence", lambda *_, **__: time.sleep(600))
    monkeypatch.setattr(answers, "_TIME", 1 / 7200)  # of an hour, half a second
    answer = answer_of(detail="all", report=True)
    assert "losses" not in answer["submission_result"]
    assert answer["result"][0]["dev"]["J-Mean"] > 0
    assert "UnfinishedError" in capfd.readouterr().err


def test_masks_of_the_worst_sequences_are_kept_in_whatever_order_they_come() -> None:
    generator = np.random.default_rng(5)
    entries = [
        {
            "name": f"{number}",
            "lost": float(lost),
            "objects": [],
            "noise": False,
            "streams": ["m" * int(size)],
            "bare": ["b"],
        }
        for number, (lost, size) in enumerate(zip(generator.random(30).round(1), generator.integers(5, 60, 30)))
    ]
    results = []
    for _ in range(20):
        kept = losses._Entries(500)
        for number in generator.permutation(30):
            kept.add(copy.deepcopy(entries[number]))
        results.append(kept.rows())
        assert kept.fit
    assert all(item == results[0] for item in results)
    masks = [entry["masks"] for entry in results[0]]
    assert masks == sorted(masks, reverse=True)
    assert 0 < sum(masks) < 30
    # One more would not fit.
    sizes = {entry["name"]: len(entry["streams"][0]) for entry in entries}
    following = results[0][sum(masks)]["name"]
    used = sum(len(text) for entry in results[0] for text in entry["streams"])
    assert used + sizes[following] - 1 > 500


def test_masks_of_noise_are_left_out() -> None:
    noise = np.random.default_rng(1).integers(0, 2, (6, 60, 80)).astype(bool)
    masks = mask_stream.MaskStream(["1"], (60, 80), 480, 1000)
    masks.add({"1": stack_of(*noise)}, 6, (60, 80))
    header = json.loads(zlib.decompress(masks.pack({})).partition(b"\n")[0])
    assert (header["runs"], header["groups"]) == (0, [[]])


def test_objects_that_overlap_in_every_way_keep_their_labels() -> None:
    masks = mask_stream.MaskStream([str(number) for number in range(12)], (64, 64), 64)
    pixels = np.arange(64 * 64).reshape(64, 64)
    stacks = {str(number): stack_of(pixels >> number & 1 > 0) for number in range(11)}
    for _ in range(2):
        masks.add(stacks, 1, (64, 64))
    masks.add({"11": stack_of(pixels >= 0)}, 1, (64, 64))
    assert not masks.is_full
    data = zlib.decompress(masks.pack({})).partition(b"\n")
    assert len(json.loads(data[0])["groups"]) == 2**11 + 1


def test_noise_leaves_its_numbers_and_no_masks(tmp_path: Path) -> None:
    """The masks of noise would be larger than the page."""
    generator = np.random.default_rng(2)
    files = {}
    for name, data in files_of().items():
        size = Image.open(io.BytesIO(data)).size[::-1]
        files[name] = png(generator.integers(0, 2, size).astype(np.uint8))
    (tmp_path / "noise.zip").write_bytes(zipped(files))
    phase = replace(PHASES[0], detail="all", report=True)
    answer = evaluate_phase(phase, str(ROOT / phase.annotations), str(tmp_path / "noise.zip"))
    sequences = answer["submission_result"]["losses"]["dev"]["sequences"]
    assert [entry["masks"] for entry in sequences] == [False] * 3
    assert sum(len(stream) for entry in sequences for stream in entry["streams"]) < 20_000


def test_a_start_imports_nothing_of_it() -> None:
    text = "import sys, segjudge.evaluation_script.families.sequences.engine; print([name for name in sys.modules if 'loss' in name or 'fail' in name or 'phase_report' in name])"
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
