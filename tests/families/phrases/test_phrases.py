"""Phrases in pictures: every number of SA-Co's script and of the safe rules, and messages about hostile submissions."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.cli import main as cli
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.masks.run_lengths import runs_of_mask
from tests.data import FAMILIES_DATA
from tests.families.unit_counts import refusal
from tests.shared import needs_shared

DATA = FAMILIES_DATA / "saco"
#: The names of the safe rules' numbers in the table.
NAMES = {"pmF1@0.5": "positive_micro_F1@0.5", "pmF1@0.75": "positive_micro_F1@0.75"}


def cases() -> dict[str, Any]:
    path = DATA / "golden.json"
    golden = json.loads(path.read_text())["cases"] if path.exists() else {}
    return {name: case for name, case in golden.items() if case["iou_type"] == "segm"}


def open_case(case: dict[str, Any], folder: Path) -> tuple[str, str]:
    """Write the truth of a case with its order of annotators; return it and the submission."""
    root = folder / "truth"
    root.mkdir()
    for letter, name in zip("abc", case["truth"], strict=False):
        shutil.copy(DATA / name, root / f"gold_case_merged_{letter}_release_test.json")
    return str(root), str(DATA / case["submission"])


@needs_shared
@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("rules", ["official", "safe"])
def test_every_case_scores_as_it_should(name: str, rules: str, tmp_path: Path) -> None:
    case = cases()[name]
    truth, submission = open_case(case, tmp_path)
    protocol = "sa-co-gold-official" if rules == "official" else "sa-co-gold"
    expected = case.get("official", {}).get("metrics") if rules == "official" else case["safe"]
    if expected is None or "refused" in expected:
        with pytest.raises((SubmissionError, HostError)):
            segjudge.score(submission, truth, protocol)
        return
    packed = str(tmp_path / "packed.zip")
    assert cli(["pack", "--layout", "sa-co", "--root", truth, "--out", packed]) == 0
    for opened in (truth, packed):
        scores = segjudge.score(submission, opened, protocol)
        (row,) = scores.tables["details"]
        for metric, value in expected.items():
            if isinstance(value, (dict, list)):
                continue  # the counts that it comes from
            assert row[NAMES.get(metric, metric)] == (None if value is None else pytest.approx(value, abs=1e-12)), (
                metric
            )
        assert scores.metrics["val"]["cgF1"] == row["cgF1"]


def encode(mask: Any) -> dict[str, Any]:
    return {"size": list(mask.shape), "counts": compress(runs_of_mask(mask))}


def boxes(rng: np.random.Generator, count: int, size: tuple[int, int] = (20, 30)) -> list[Any]:
    masks = []
    for _ in range(count):
        mask = np.zeros(size, bool)
        top, left = rng.integers(0, size[0] - 6), rng.integers(0, size[1] - 6)
        mask[top : top + rng.integers(2, 7), left : left + rng.integers(2, 7)] = True
        masks.append(mask)
    return masks


def shaken(rng: np.random.Generator, masks: list[Any]) -> list[Any]:
    return [np.roll(mask, rng.integers(0, 2, 2), (0, 1)) for mask in masks if rng.random() < 0.9]


def document(pairs: dict[int, list[Any]], size: tuple[int, int] = (20, 30)) -> dict[str, Any]:
    images = [
        {"id": pair, "height": size[0], "width": size[1], "is_instance_exhaustive": 1, "text_input": "x"}
        for pair in pairs
    ]
    rows = [(pair, mask) for pair, masks in pairs.items() for mask in masks]
    annotations = [
        {"id": index, "image_id": pair, "category_id": 1, "iscrowd": int(rng_crowd), "segmentation": encode(mask)}
        for index, (pair, (mask, rng_crowd)) in enumerate(rows, 1)
    ]
    return {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "object"}]}


def random_set(seed: int, annotators: int = 3) -> tuple[list[dict[int, list[Any]]], dict[int, list[tuple[Any, float]]]]:
    """Return the objects that annotators see in each pair, with crowds, and predictions with scores."""
    rng = np.random.default_rng(seed)
    sides: list[dict[int, list[Any]]] = [{} for _ in range(annotators)]
    predictions: dict[int, list[tuple[Any, float]]] = {}
    for pair in range(1, 13):
        masks = boxes(rng, int(rng.integers(0, 4)) if rng.random() < 0.7 else 0)
        for side in sides:
            side[pair] = [(mask, rng.random() < 0.2) for mask in shaken(rng, masks)]
        extra = boxes(rng, int(rng.random() < 0.3))
        predictions[pair] = [(mask, float(rng.choice([0.3, 0.5, 0.9]))) for mask in shaken(rng, masks) + extra]
    return sides, predictions


def write_set(folder: Path, sides: list[dict[int, list[Any]]], order: tuple[int, ...] = (0, 1, 2)) -> str:
    root = folder / f"truth-{''.join(map(str, order))}"
    root.mkdir(parents=True)
    for letter, index in zip("abc", order, strict=False):
        (root / f"toy_{letter}.json").write_text(json.dumps(document(sides[index])))
    return str(root)


def records_of(predictions: dict[int, list[tuple[Any, float]]]) -> list[dict[str, Any]]:
    return [
        {"image_id": pair, "category_id": 1, "segmentation": encode(mask), "score": score, "bbox": [0.0, 0.0, 1.0, 1.0]}
        for pair, masks in predictions.items()
        for mask, score in masks
    ]


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_annotators_and_of_records_changes_nothing(seed: int, tmp_path: Path) -> None:
    sides, predictions = random_set(seed)
    records = records_of(predictions)
    results = tmp_path / "results.json"
    rows = []
    for number, order in enumerate(itertools.permutations(range(3))):
        results.write_text(json.dumps(records if number % 2 else records[::-1]))
        scores = segjudge.score(str(results), write_set(tmp_path, sides, order), "sa-co-gold")
        rows.append(scores.tables["details"])
    assert all(row == rows[0] for row in rows)
    assert rows[0][0]["cgF1"] is not None


def square(top: int, left: int, side: int = 6) -> Any:
    mask = np.zeros((20, 30), bool)
    mask[top : top + side, left : left + side] = True
    return mask


A, B, C = square(0, 0), square(0, 20), square(12, 12)


def details(folder: Path, protocol: str, annotators: list[dict[int, list[Any]]], sent: dict[int, list[Any]]) -> Any:
    """Score masks against annotators in this order; a pair is a mask of the truth and whether it is a crowd."""
    sides = [
        {pair: [mask if isinstance(mask, tuple) else (mask, False) for mask in masks] for pair, masks in seen.items()}
        for seen in annotators
    ]
    folder.mkdir(exist_ok=True)
    results = folder / "results.json"
    results.write_text(json.dumps(records_of({pair: [(mask, 0.9) for mask in masks] for pair, masks in sent.items()})))
    (row,) = segjudge.score(str(results), write_set(folder, sides, tuple(range(len(sides)))), protocol).tables[
        "details"
    ]
    return row


@pytest.mark.parametrize(
    ("protocol", "macro", "digits"), [("sa-co-gold", 1 / 3, 12), ("sa-co-gold-official", 2 / 3, 3)]
)
def test_every_number_can_be_counted_by_hand(protocol: str, macro: float, digits: int, tmp_path: Path) -> None:
    truth: dict[int, list[Any]] = {1: [A], 2: [], 3: [], 4: [B], 5: []}
    row = details(tmp_path, protocol, [truth], {1: [A, C], 3: [A]})
    expected = {
        "positive_micro_F1": 1 / 2, "positive_macro_F1": macro, "precision": 1 / 3, "positive_micro_precision": 1 / 2,
        "recall": 1 / 2, "F1": 2 / 5, "IL_MCC": 1 / 6, "IL_precision": 1 / 2, "IL_recall": 1 / 2, "IL_F1": 1 / 2,
        "IL_FPR": 1 / 3, "cgF1": 1 / 12, "pmF1": 1 / 2, "pairs": 5,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == pytest.approx(expected, abs=10**-digits)


@pytest.mark.parametrize(
    ("moved", "least", "middle", "most"), [(0, 1, 1, 1), (1, 5 / 10, 1, 0), (2, 1 / 10, 1, 0), (3, 0, 0, 0)]
)
def test_a_prediction_finds_an_object_from_each_threshold_on(
    moved: int, least: float, middle: float, most: float, tmp_path: Path
) -> None:
    row = details(tmp_path, "sa-co-gold", [{1: [A], 2: []}], {1: [square(0, moved)]})
    names = ("positive_micro_F1", "positive_micro_F1@0.5", "positive_micro_F1@0.75")
    assert tuple(row[name] for name in names) == pytest.approx((least, middle, most), abs=1e-12)


@pytest.mark.parametrize(
    ("seen", "others", "sent", "safe", "official"),
    [
        ([A], [B], [A], 1, (1, 1)),  # one agrees
        ([A], [A, B], [C], 1 / 2, (1 / 2, 2 / 5)),  # none agrees: fewer objects are missed, or those of the first file
        ([A], [A, B], [A, B], 1, (1, 1)),
        ([A], [], [C], 1 / 2, (1 / 2, 1)),  # there is something to find, or the first file decides
        ([A], [], [], 1, (1, 1)),
        ([A], [A, B], [], 2 / 3, (2 / 3, 1 / 2)),
    ],
)
def test_the_annotator_who_agrees_most_is_the_one_that_counts(
    seen: list[Any], others: list[Any], sent: list[Any], safe: float, official: tuple[float, float], tmp_path: Path
) -> None:
    sides: list[dict[int, list[Any]]] = [{1: seen, 2: [A]}, {1: others, 2: [A]}]
    for number, annotators in enumerate((sides, sides[::-1])):
        sent_of = {1: sent, 2: [A]}
        row = details(tmp_path / f"safe-{number}", "sa-co-gold", annotators, sent_of)
        assert row["pmF1"] == pytest.approx(safe, abs=1e-12)
        row = details(tmp_path / f"official-{number}", "sa-co-gold-official", annotators, sent_of)
        assert row["pmF1"] == pytest.approx(official[number], abs=1e-3)


# ── what is refused ─────────────────────────────────────────────────────────

MASK = {"size": [20, 30], "counts": compress([100, 40, 460])}
#: Records of pictures that no other test sends; those of videos have the same readers.
HOSTILE: dict[str, tuple[Any, str]] = {
    "nothing": ("", "is empty"),
    "not UTF-8": (b"[\xff]", "UTF-8"),
    "nested": ("[" * 100_000 + "]" * 100_000, "nested"),
    "key twice": ('[{"image_id": 1, "image_id": 1, "score": 1, "segmentation": {}}]', "twice"),
    "pair as truth value": ([{"image_id": True, "score": 1, "segmentation": MASK}], "not a whole number"),
    "huge pair": ([{"image_id": 10**30, "score": 1, "segmentation": MASK}], "the truth lacks"),
    "score NaN": ('[{"image_id": 1, "score": NaN, "segmentation": {"size": [20, 30], "counts": "PT3"}}]', "not a finite"),
    "score infinite": ('[{"image_id": 1, "score": 1e999, "segmentation": {"size": [20, 30], "counts": "PT3"}}]', "finite"),
    "score of 400 digits": ([{"image_id": 1, "score": 10**400, "segmentation": MASK}], "not a finite number"),
    "polygon": ([{"image_id": 1, "score": 1, "segmentation": [[0, 0, 5, 0, 5, 5]]}], "no segmentation"),
    "size huge": ([{"image_id": 1, "score": 1, "segmentation": {**MASK, "size": [1 << 40] * 2}}], "but the picture is"),
    "counts endless": ([{"image_id": 1, "score": 1, "segmentation": {**MASK, "counts": "o" * 40}}], "end too early"),
    "counts beyond ASCII": ([{"image_id": 1, "score": 1, "segmentation": {**MASK, "counts": "äöü"}}], "characters"),
    "counts enormous": ([{"image_id": 1, "score": 1, "segmentation": {**MASK, "counts": "0" * 5000}}], "more counts than"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_submission_gets_a_sentence(name: str, tmp_path: Path) -> None:
    content, sentence = HOSTILE[name]
    truth = write_set(tmp_path, [{1: [(A, False)], 2: []}], (0,))
    assert sentence in refusal(content, tmp_path / "results.json", truth, "sa-co-gold")
