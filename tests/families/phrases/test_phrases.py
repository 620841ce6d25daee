"""Phrases in pictures: every number of SA-Co's script and of the safe rules, and messages about hostile submissions."""

from __future__ import annotations

import itertools
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.cli import main as cli
from segjudge.evaluation_script.families.phrases import files
from segjudge.evaluation_script.families.phrases.files import read_truth
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks.backend import NumpyBackend
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.masks.run_lengths import runs_of_mask
from tests import backends
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


@pytest.mark.parametrize("seed", range(6))
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


@pytest.mark.parametrize("protocol", ["sa-co-gold", "sa-co-gold-official"])
def test_parts_processes_and_memory_give_the_bits_of_one_run(protocol: str, tmp_path: Path) -> None:
    sides, predictions = random_set(11)
    truth, results = write_set(tmp_path, sides), tmp_path / "results.json"
    results.write_text(json.dumps(records_of(predictions)))
    whole = segjudge.score(str(results), truth, protocol)
    assert segjudge.score(str(results), truth, protocol, jobs=2).metrics == whole.metrics
    parts = []
    for number in (1, 2, 3):
        parts.append(str(tmp_path / f"part-{number}.segjudge"))
        command = ["score", str(results), "--truth", truth, "--protocol", protocol, "--part", f"{number}/3"]
        assert cli([*command, "--out", parts[-1]]) == 0
    merged = tmp_path / "merged.json"
    assert cli(["merge", *parts, "--json", str(merged)]) == 0
    assert json.loads(merged.read_text())["result"][0]["val"] == whole.metrics["val"]
    truths = {
        str(pair): {
            "annotators": [
                {"masks": [mask for mask, _ in side[pair]], "iscrowd": [crowd for _, crowd in side[pair]]}
                for side in sides
            ]
        }
        for pair in sides[0]
    }
    answers = {
        str(pair): {"masks": [mask for mask, _ in masks], "scores": [score for _, score in masks]}
        for pair, masks in predictions.items()
    }
    in_memory = segjudge.score_arrays(answers, truths, protocol)
    (values,) = in_memory.metrics.values()
    assert values == whole.metrics["val"]


def test_subsets_are_means_of_their_own_files(tmp_path: Path) -> None:
    root = tmp_path / "truth"
    root.mkdir()
    rows = {}
    results = tmp_path / "results.zip"
    with zipfile.ZipFile(results, "w") as archive:
        for subset, seed in (("wiki", 3), ("sports", 4)):
            sides, predictions = random_set(seed)
            for letter, side in zip("abc", sides, strict=True):
                (root / f"gold_{subset}_merged_{letter}_release_test.json").write_text(json.dumps(document(side)))
            archive.writestr(f"run/gold_{subset}/coco_predictions_segm.json", json.dumps(records_of(predictions)))
            single = tmp_path / f"{subset}.json"
            single.write_text(json.dumps(records_of(predictions)))
            rows[subset] = segjudge.score(str(single), write_set(tmp_path / subset, sides), "sa-co-gold").metrics["val"]
    scores = segjudge.score(str(results), str(root), "sa-co-gold")
    for metric in ("cgF1", "pmF1", "IL_MCC"):
        mean = sum(row[metric] for row in rows.values()) / 2
        assert scores.metrics["val"][metric] == pytest.approx(mean, abs=1e-12)
    assert [row["name"] for row in scores.tables["subsets"]] == ["sports", "wiki"]


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


@backends.needs_kernel
@pytest.mark.parametrize("protocol", ["sa-co-gold", "sa-co-gold-official"])
@pytest.mark.parametrize("seed", range(3))
def test_a_table_of_records_gives_the_same_as_the_parser(
    protocol: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides, predictions = random_set(seed)
    truth, results = write_set(tmp_path, sides), tmp_path / "results.json"
    empty = {
        "image_id": 1,
        "category_id": 1,
        "score": 1,
        "segmentation": encode(np.zeros((20, 30), bool)),
        "bbox": [0] * 4,
    }
    results.write_text(json.dumps([*records_of(predictions), empty, {**empty, "score": 0.1}]))
    tables: list[bool] = []
    read = files._Reader._read_table

    def read_table(self: Any, *arguments: Any) -> bool:
        tables.append(read(self, *arguments))
        return tables[-1]

    monkeypatch.setattr(files._Reader, "_read_table", read_table)
    scores = []
    for backend in (backends.compiled(), NumpyBackend("in a test")):
        backends.use(monkeypatch, backend)
        scores.append(segjudge.score(results, truth, protocol))
    assert tables == [True]
    assert scores[0].tables == scores[1].tables
    assert scores[0].warnings == scores[1].warnings


SENT: dict[str, Any] = {
    "without boxes": lambda records: [record.pop("bbox") for record in records],
    "with empty boxes": lambda records: [record.update(bbox=None) for record in records],
    "with some boxes": lambda records: [record.pop("bbox") for record in records[::3]],
    "without categories": lambda records: [record.pop("category_id") for record in records],
    "with other categories": lambda records: [record.update(category_id=7) for record in records[::2]],
}


@backends.needs_kernel
@pytest.mark.parametrize("protocol", ["sa-co-silver", "sa-co-silver-official"])
@pytest.mark.parametrize("change", SENT)
def test_records_in_any_form_give_the_same_as_by_the_parser(
    protocol: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides, predictions = random_set(1, annotators=1)
    truth, results, records = write_set(tmp_path, sides, (0,)), tmp_path / "results.json", records_of(predictions)
    SENT[change](records)
    results.write_text(json.dumps(records))
    answers = []
    for backend in (backends.compiled(), NumpyBackend("in a test")):
        backends.use(monkeypatch, backend)
        try:
            scores = segjudge.score(results, truth, protocol)
            answers.append((scores.tables, scores.warnings))
        except SubmissionError as error:
            answers.append((str(error), []))
    assert answers[0] == answers[1]


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


@pytest.mark.parametrize(("protocol", "value"), [("sa-co-gold", 1), ("sa-co-gold-official", 2 / 3)])
def test_a_crowd_excuses_what_lies_on_it_but_for_the_script(protocol: str, value: float, tmp_path: Path) -> None:
    truth: dict[int, list[Any]] = {1: [A, (square(8, 8, 12), True)], 2: []}
    assert details(tmp_path, protocol, [truth], {1: [A, C]})["pmF1"] == pytest.approx(value, abs=1e-3)


@pytest.mark.parametrize(("score", "value"), [(0.5, 1), (0.49, 0)])
def test_predictions_count_from_a_score_of_one_half_on(score: float, value: float, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    results.write_text(json.dumps(records_of({1: [(A, score)]})))
    truth = write_set(tmp_path, [{1: [(A, False)], 2: []}], (0,))
    for protocol in ("sa-co-gold", "sa-co-gold-official"):
        row = segjudge.score(str(results), truth, protocol).tables["details"][0]
        assert row["pmF1"] == pytest.approx(value, abs=1e-3)


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


def test_a_pair_that_nobody_annotated_whole_is_left_out(tmp_path: Path) -> None:
    whole = document({1: [(A, False)], 2: [(B, False)], 3: []})
    whole["images"][0]["is_instance_exhaustive"] = 0
    (tmp_path / "truth.json").write_text(json.dumps(whole))
    (tmp_path / "results.json").write_text(json.dumps(records_of({1: [(C, 0.9)], 2: [(B, 0.9)]})))
    scores = segjudge.score(str(tmp_path / "results.json"), str(tmp_path / "truth.json"), "sa-co-gold")
    assert scores.metrics["val"] == {"cgF1": 1, "pmF1": 1, "IL_MCC": 1}


def test_what_costs_pmf1_sums_to_what_it_lacks(tmp_path: Path) -> None:
    sides, predictions = random_set(5)
    results = tmp_path / "results.json"
    results.write_text(json.dumps(records_of(predictions)))
    truth = write_set(tmp_path, sides)
    scores = segjudge.score(str(results), truth, "sa-co-gold")
    total = float(scores.kinds[["partial", "surplus", "missed"]].sum().sum())
    assert total == pytest.approx(1 - scores.metrics["val"]["pmF1"], abs=1e-12)
    page = tmp_path / "report.html"
    assert cli(["report", str(results), "--truth", truth, "--protocol", "sa-co-gold", "--out", str(page)]) == 0
    assert "objects only predicted" in page.read_text()


# ── what is refused ─────────────────────────────────────────────────────────

GOOD = {
    "image_id": 1,
    "category_id": 1,
    "segmentation": {"size": [20, 30], "counts": compress([100, 40, 460])},
    "score": 0.9,
}


def changed(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}


def masked(size: Any = (20, 30), counts: Any = GOOD["segmentation"]["counts"]) -> dict[str, Any]:
    return changed(segmentation={"size": list(size) if isinstance(size, tuple) else size, "counts": counts})


#: Submissions that are not a list of records, with the sentences that they get.
NOT_A_LIST: dict[str, tuple[Any, str]] = {
    "no list": ({"results": [GOOD]}, "not a list of records"),
    "text": ("[", "a closing bracket is missing"),
    "nothing": ("", "is empty"),
    "not UTF-8": (b"[\xff]", "UTF-8"),
    "trailing": ("[] []", "text follows"),
}
HOSTILE: dict[str, tuple[Any, str]] = {
    **NOT_A_LIST,
    "number": ([3], "lacks image_id"),
    "null": ([None], "lacks image_id"),
    "no pair": ([changed(image_id=...)], "lacks image_id"),
    "no score": ([changed(score=...)], "lacks image_id or score"),
    "pair as text": ([changed(image_id="1")], "not a whole number"),
    "pair as fraction": ([changed(image_id=1.0)], "not a whole number"),
    "pair as truth value": ([changed(image_id=True)], "not a whole number"),
    "unknown pair": ([changed(image_id=99)], "the truth lacks"),
    "huge pair": ([changed(image_id=10**30)], "the truth lacks"),
    "score as text": ([changed(score="0.9")], "not a finite number"),
    "score null": ([changed(score=None)], "not a finite number"),
    "score true": ([changed(score=True)], "not a finite number"),
    "score NaN": (
        '[{"image_id": 1, "score": NaN, "segmentation": {"size": [20, 30], "counts": "PT3"}}]',
        "not a finite",
    ),
    "score infinite": (
        '[{"image_id": 1, "score": 1e999, "segmentation": {"size": [20, 30], "counts": "PT3"}}]',
        "finite",
    ),
    "score of 400 digits": ([changed(score=10**400)], "not a finite number"),
    "no mask": ([changed(segmentation=...)], "no segmentation"),
    "mask null": ([changed(segmentation=None)], "no segmentation"),
    "box alone": ([changed(segmentation=..., bbox=[1, 1, 5, 5])], "no segmentation"),
    "polygon": ([changed(segmentation=[[0, 0, 5, 0, 5, 5]])], "no segmentation"),
    "no size": ([changed(segmentation={"counts": "PT3"})], "no segmentation"),
    "not counts": ([changed(segmentation={"size": [20, 30]})], "no segmentation"),
    "size as text": ([masked(size="20x30")], "is not [height, width]"),
    "size of three": ([masked(size=(20, 30, 1))], "is not [height, width]"),
    "size of fractions": ([masked(size=(20.0, 30.0))], "is not [height, width]"),
    "size turned": ([masked(size=(30, 20))], "but the picture is [20, 30]"),
    "size huge": ([masked(size=(1 << 40, 1 << 40))], "but the picture is [20, 30]"),
    "size negative": ([masked(size=(-20, -30))], "but the picture is [20, 30]"),
    "counts short": ([masked(counts=compress([100, 40]))], "do not add up"),
    "counts long": ([masked(counts=compress([100, 40, 9999]))], "do not add up"),
    "counts below zero": ([masked(counts=compress([100, -40, 540]))], "below zero"),
    "counts endless": ([masked(counts="o" * 40)], "end too early"),
    "counts of other characters": ([masked(counts="~~\x7f")], "characters"),
    "counts beyond ASCII": ([masked(counts="äöü")], "characters"),
    "counts enormous": ([masked(counts="0" * 5000)], "more counts than"),
    "counts a number": ([masked(counts=600)], "neither text nor a list"),
    "counts an object": ([masked(counts={})], "neither text nor a list"),
    "list of texts": ([masked(counts=["1"])], "whole numbers"),
    "list of fractions": ([masked(counts=[1.5, 598.5])], "whole numbers"),
    "list below zero": ([masked(counts=[-1, 601])], "below zero"),
    "list short": ([masked(counts=[100, 40])], "add up to 140"),
    "key twice": ('[{"image_id": 1, "image_id": 1, "score": 1, "segmentation": {}}]', "twice"),
    "nested": ("[" + "[" * 100_000 + "]" * 100_000 + "]", "nested"),
    "many predictions": ([GOOD] * 1_001, "pair 1: has more than 1,000 predictions"),
}


@pytest.fixture(scope="module")
def small_truth(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("truth")
    mask = np.zeros((20, 30), bool)
    mask[3:9, 5:12] = True
    (folder / "toy_a.json").write_text(json.dumps(document({1: [(mask, False)], 2: []})))
    return str(folder)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_submission_gets_a_sentence(name: str, small_truth: str, tmp_path: Path) -> None:
    content, sentence = HOSTILE[name]
    assert sentence in refusal(content, tmp_path / "results.json", small_truth, "sa-co-gold")


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (changed(category_id=...), "lacks category_id"),
        (changed(segmentation=..., bbox=[0, 0, float("inf"), 1]), "bbox"),
        (changed(segmentation=..., bbox=[0, 0, 1e30, 1]), ""),
        (masked(size=(1 << 20, 1 << 20)), "but the picture is"),
        (masked(size=(0, 30)), "but the picture is"),
    ],
)
def test_the_official_rules_refuse_what_would_stop_the_script(
    record: dict[str, Any], sentence: str, small_truth: str, tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps([record]))
    with pytest.raises(SubmissionError) as error:
        segjudge.score(str(path), small_truth, "sa-co-gold-official")
    assert sentence in str(error.value)


def test_the_script_does_not_look_at_categories_that_nobody_listed(small_truth: str, tmp_path: Path) -> None:
    path, scores = tmp_path / "results.json", []
    for others in ([], [changed(category_id=77), changed(category_id="1"), changed(category_id=True)]):
        path.write_text(json.dumps([GOOD, *others]))
        scores.append(segjudge.score(str(path), small_truth, "sa-co-gold-official").metrics)
    assert scores[0] == scores[1]


def test_all_problems_are_said_at_once(small_truth: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps([changed(score=None), GOOD, changed(image_id=7), masked(counts="~")]))
    with pytest.raises(SubmissionError) as error:
        segjudge.score(str(path), small_truth, "sa-co-gold")
    text = str(error.value)
    for place in ("record 0 (pair 1)", "record 2 (pair 7)", "record 3 (pair 1)"):
        assert place in text


def test_empty_masks_are_left_out_and_said_to_be(small_truth: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps([GOOD, masked(counts=compress([600])), masked(counts=compress([600]))]))
    scores = segjudge.score(str(path), small_truth, "sa-co-gold")
    assert "val: 2 predictions without pixels were ignored" in scores.warnings
    path.write_text(json.dumps([GOOD]))
    assert scores.metrics == segjudge.score(str(path), small_truth, "sa-co-gold").metrics
    official = segjudge.score(str(path), small_truth, "sa-co-gold-official")
    assert not [line for line in official.warnings if "pixel" in line]


def test_subsets_that_are_not_sent_are_named(tmp_path: Path) -> None:
    root = tmp_path / "truth"
    root.mkdir()
    for subset in ("wiki", "sports"):
        (root / f"gold_{subset}_merged_a_release_test.json").write_text(json.dumps(document({1: []})))
    results = tmp_path / "wiki.json"
    results.write_text("[]")
    with pytest.raises(SubmissionError, match="for the subset sports"):
        segjudge.score(str(results), str(root), "sa-co-gold")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda truth: truth.pop("images"), "cannot be read as the truth of SA-Co"),
        (lambda truth: truth["images"].append(truth["images"][0]), "lists a pair twice"),
        (lambda truth: truth["annotations"][0].update(image_id=99), "cannot be read as the truth of SA-Co"),
        (
            lambda truth: truth["annotations"][0]["segmentation"].update(size=[1, 1]),
            "a mask whose size differs from its pair's",
        ),
        (lambda truth: truth["annotations"][0]["segmentation"].update(counts="~"), "characters"),
    ],
)
def test_a_broken_truth_is_the_hosts_error(change: Any, sentence: str, small_truth: str, tmp_path: Path) -> None:
    truth = json.loads((Path(small_truth) / "toy_a.json").read_text())
    change(truth)
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(truth))
    with pytest.raises(HostError, match=sentence):
        read_truth(str(path))


def _list_truth(path: Path) -> Any:
    """Return all that a truth holds, or the sentence about its fault."""
    try:
        truth = read_truth(str(path))
    except HostError as error:
        return str(error)
    rows = [[(frame.name, frame.size, frame.rows) for frame in unit.load()] for unit in truth.units]
    return truth.facts, truth.notes, truth.elsewhere, [(unit.name, unit.cost, unit.facts) for unit in truth.units], rows


#: Changes of the annotations of a truth, and whether the kernel reads them all.
ANNOTATED: dict[str, tuple[Any, bool]] = {
    "the usual form": (lambda _: None, True),
    "more keys": (lambda row: row.update(area=3.5, bbox=[0, 0.5, 1, 1], note={"é": [None]}), True),
    "lists of counts": (lambda row: row["segmentation"].update(counts=[100, 20, 480]), True),
    "no crowds": (lambda row: row.pop("iscrowd"), True),
    "crowds as words": (lambda row: row.update(iscrowd=True), True),
    "another crowd flag": (lambda row: row.update(iscrowd=2), False),
    "no categories": (lambda row: row.pop("category_id"), False),
    "polygons": (lambda row: row.update(segmentation=[[1, 1, 9, 1, 9, 9]]), False),
    "no masks": (lambda row: row.pop("segmentation"), False),
    "another pair": (lambda row: row.update(image_id=99), False),
    "another size": (lambda row: row["segmentation"].update(size=[1, 1]), False),
    "another character": (lambda row: row["segmentation"].update(counts="~"), False),
    "short runs": (lambda row: row["segmentation"].update(counts="22"), False),
}


@backends.needs_kernel
@pytest.mark.parametrize("case", ANNOTATED)
def test_annotations_are_those_of_the_json_parser(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (side,), _ = random_set(1, annotators=1)
    truth, path = document(side), tmp_path / "truth.json"
    change, is_usual = ANNOTATED[case]
    for row in truth["annotations"][2:]:
        change(row)
    path.write_text(json.dumps(truth))
    answers, parsed = [], []
    read = files._read_rows
    monkeypatch.setattr(files, "_read_rows", lambda *arguments: parsed.append(backends) or read(*arguments))
    for backend in (backends.compiled(), NumpyBackend("in a test")):
        backends.use(monkeypatch, backend)
        answers.append(_list_truth(path))
    assert answers[0] == answers[1]
    assert len(parsed) == 2 - is_usual


def test_annotators_of_a_pair_agree_on_its_size(tmp_path: Path) -> None:
    for name, size in (("a", (20, 30)), ("b", (20, 31))):
        (tmp_path / f"toy_{name}.json").write_text(json.dumps(document({1: []}, size)))
    with pytest.raises(HostError, match=r"^toy_b.json: pair 1 has a different size in another file$"):
        read_truth(str(tmp_path))


def test_a_truth_without_negatives_or_with_odd_annotators_says_so(tmp_path: Path) -> None:
    mask = np.ones((20, 30), bool)
    (tmp_path / "toy_a.json").write_text(json.dumps(document({1: [(mask, False)], 2: [(~mask, False)]})))
    (tmp_path / "toy_b.json").write_text(json.dumps(document({1: [(mask, False)]})))
    notes = " ".join(read_truth(str(tmp_path)).notes)
    for note in ("1 mask without pixels", "every pair has objects", "not listed by every annotator"):
        assert note in notes
