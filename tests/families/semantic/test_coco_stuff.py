"""COCO-Stuff: every number of its evaluator, unlabelled pixels, and the families' promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.families.base import unit_counts
from segjudge.evaluation_script.families.semantic import engine as semantic
from segjudge.evaluation_script.families.semantic.protocols import SEMANTIC_PROTOCOLS
from segjudge.evaluation_script.families.semantic.records import read_stuff
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks.run_lengths import runs_of
from segjudge.masks.run_lengths import encode_labels
from tests.backends import use_numpy
from tests.data import FAMILIES_DATA
from tests.families.unit_counts import count_units, pack_units, read_golden, score_units

DATA = FAMILIES_DATA / "coco_stuff"
CASES: dict[str, Any] = read_golden(DATA)["cases"]
NAMES = {"mIoU": "mIoU", "fwIoU": "fwIoU", "Acc_class": "mAcc", "Acc": "pAcc"}
#: The message where the evaluator stops.
SENTENCES = {
    "things": "has the label 50. Write labels from 92 to 183",
    "missing": "1 of 4 images is missing: 4",
    "overlap": "image 1: has pixels with several labels",
}


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_every_number_is_the_evaluators(
    case: str, kernel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        use_numpy(monkeypatch)
        monkeypatch.setattr(unit_counts, "_CELLS_AT_ONCE", 7)  # large sets are summed in batches
    golden, published = CASES[case], read_stuff(str(DATA / "truth.json"))
    for truth in (published, pack_units(published, tmp_path)):
        if case in SENTENCES:
            assert "official_error" in golden
            with pytest.raises(SubmissionError, match=SENTENCES[case].replace(".", r"\.")):
                count_units(DATA / f"{case}.json", truth, "coco-stuff-official").complete_counts()
            continue
        counts = count_units(DATA / f"{case}.json", truth, "coco-stuff-official")
        values = semantic.values(counts)
        assert list(values) == list(SEMANTIC_PROTOCOLS["coco-stuff"].metrics)
        for name, official in NAMES.items():
            assert values[name] == pytest.approx(golden[official], abs=1e-12, rel=0)
            assert values[f"{name}-super"] == pytest.approx(golden[f"{official}_super"], abs=1e-12, rel=0)
        rows = {str(row["id"]): row["IoU"] for row in semantic.tables(counts)["categories"] if row["IoU"] is not None}
        assert rows == pytest.approx(golden["iou"], abs=1e-12, rel=0)
        safe = score_units(DATA / f"{case}.json", truth, "coco-stuff")
        assert (safe == values) == (case == "ordinary"), "what is left out is no answer"


def records(image: int, labels: Any) -> list[dict[str, Any]]:
    return [
        {"image_id": image, "category_id": label, "segmentation": {"size": list(np.shape(labels)), "counts": text}}
        for label, text in encode_labels(labels).items()
    ]


def document(maps: dict[int, Any]) -> dict[str, Any]:
    return {
        "images": [
            {"id": image, "height": np.shape(item)[0], "width": np.shape(item)[1]} for image, item in maps.items()
        ],
        "annotations": [record for image, labels in maps.items() for record in records(image, labels)],
        "categories": [
            {"id": label, "name": f"s{label}", "supercategory": "ab"[label % 2]} for label in range(92, 184)
        ],
    }


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def test_pixels_without_label_are_missed_or_counted_as_everything_else(tmp_path: Path) -> None:
    truth = read_stuff(str(write(tmp_path / "truth.json", document({1: [[92, 92, 183, 183, 0]]}))))
    sent = write(tmp_path / "sent.json", records(1, [[92, 0, 0, 183, 93]]))
    values = score_units(sent, truth, "coco-stuff")
    assert (values["mIoU"], values["Acc"], values["Acc-super"]) == (1 / 2, 2 / 4, 2 / 4)
    official = score_units(sent, truth, "coco-stuff-official")
    assert (official["mIoU"], official["Acc"]) == ((1 / 2 + 2 / 3) / 2, 3 / 4)


def list_runs(record: dict[str, Any]) -> dict[str, Any]:
    mask = record["segmentation"]
    runs = runs_of(mask["counts"], mask["size"][0] * mask["size"][1]).tolist()
    return {**record, "segmentation": {**mask, "counts": runs}}


@pytest.mark.parametrize("every", [1, 2])
def test_lists_of_counts_score_as_texts(every: int, tmp_path: Path) -> None:
    rows = records(1, draw_landscape(3))
    truth = read_stuff(str(write(tmp_path / "truth.json", document({1: draw_landscape(2)}))))
    listed = [list_runs(row) if number % every == 0 else row for number, row in enumerate(rows)]
    sent = [write(tmp_path / f"{number}.json", side) for number, side in enumerate((rows, listed))]
    assert score_units(sent[0], truth, "coco-stuff") == score_units(sent[1], truth, "coco-stuff")
    for counts, fault in (([1, 2], "add up to 3"), ([-1, 19201], "below zero"), ([0.5, 19199.5], "whole numbers")):
        listed[0]["segmentation"]["counts"] = counts
        with pytest.raises(SubmissionError, match=fault):
            score_units(write(tmp_path / "sent.json", listed), truth, "coco-stuff")


def draw_landscape(number: int) -> Any:
    """Return labels of a cloud in a sky."""
    rows, columns = np.mgrid[:120, :160]
    labels = np.full(rows.shape, 100)
    labels[(rows - 60) ** 2 + (columns - 30 - 9 * number) ** 2 < 700] = 120
    return labels


def read_by_columns(labels: Any) -> Any:
    """Return the map that results if run lengths are written row by row."""
    return labels.reshape(labels.shape[::-1]).T


#: Valid maps of poor methods, and how each is made from the truth.
POOR_MAPS: dict[str, Any] = {
    "upright bands": lambda labels: np.repeat(labels[:1], len(labels), 0),
    "noise": lambda labels: np.random.default_rng(5).choice([100, 120], labels.shape),
    "classes exchanged": lambda labels: 220 - labels,
}


@pytest.mark.parametrize("method", ["exact", *POOR_MAPS])
def test_runs_along_rows_are_named_though_large_areas_match_and_poor_maps_are_not(method: str, tmp_path: Path) -> None:
    maps = {number: draw_landscape(number) for number in range(1, 7)}
    truth = write(tmp_path / "truth.json", document(maps))
    sent = {number: POOR_MAPS.get(method, np.copy)(labels) for number, labels in maps.items()}

    def list_warnings(maps: dict[int, Any]) -> tuple[float, list[str]]:
        path = write(
            tmp_path / "sent.json", [record for number, item in maps.items() for record in records(number, item)]
        )
        scores = segjudge.score(path, truth, "coco-stuff")
        return scores["mIoU"] or 0.0, [line for line in scores.warnings if "row by row" in line]

    assert list_warnings(sent)[1] == []
    turned, lines = list_warnings({number: read_by_columns(labels) for number, labels in sent.items()})
    if method == "exact":
        assert turned > 0.4
        assert "corrected, mIoU would be 1.00" in "".join(lines)


def test_the_truth_of_a_split_is_chosen_and_a_broken_one_is_told(tmp_path: Path) -> None:
    write(tmp_path / "a/stuff_val2017.json", document({1: [[92]]}))
    write(tmp_path / "a/stuff_train2017.json", document({2: [[92]]}))
    assert read_stuff(str(tmp_path / "a")).item_names == ["1"]
    assert read_stuff(str(tmp_path / "a"), "train").item_names == ["2"]
    shared = document({1: [[92, 93, 0], [92, 93, 93]]})
    shared["annotations"] += records(1, [[0, 0, 0], [0, 94, 94]])
    with pytest.raises(HostError, match=r"image 1: cannot be read .has pixels with several labels, such as \(1, 1\)"):
        read_stuff(str(write(tmp_path / "b.json", shared))).read_through()
    for broken, sentence in (
        ({"images": []}, "cannot be read as the truth of COCO-Stuff .'categories'"),
        (document({}), "no images"),
    ):
        with pytest.raises(HostError, match=sentence):
            read_stuff(str(write(tmp_path / "c.json", broken)))


def test_records_that_are_none_are_told_all_at_once(tmp_path: Path) -> None:
    truth = read_stuff(str(write(tmp_path / "truth.json", document({1: [[92, 93]]}))))
    (good,) = records(1, [[92, 92]])
    odd: list[Any] = [
        {**good, "image_id": "1"}, {**good, "category_id": 92.0}, {**good, "segmentation": None}, 5, good,
        {**good, "category_id": 91}, {**good, "category_id": 184}, {**good, "category_id": 183},
    ]  # fmt: skip
    example = 'Write [{"image_id": 1, "category_id": 92, "segmentation": {"size": [h, w], "counts": "..."}}, ...]'
    with pytest.raises(SubmissionError) as caught:
        score_units(write(tmp_path / "sent.json", odd), truth, "coco-stuff")
    assert str(caught.value).splitlines() == [
        "3 problems found in your submission:",
        f"  1. records 0, 1, 2 and 1 more: each lacks image_id, category_id or segmentation. {example}.",
        "  2. record 5: has the label 91. Write labels from 92 to 183.",
        "  3. record 6: has the label 184. Write labels from 92 to 183.",
    ]
    wide = {**good, "segmentation": records(1, [[92, 92, 92]])[0]["segmentation"]}
    with pytest.raises(SubmissionError, match=r"image 1: has a mask of size \[1, 3\] but the picture is \[1, 2\]"):
        score_units(write(tmp_path / "sent.json", [wide]), truth, "coco-stuff")
    with pytest.raises(SubmissionError, match="is not a list of records. Write .{3}image_id"):
        score_units(write(tmp_path / "sent.json", {}), truth, "coco-stuff")
    for label in (0, 256):
        item = document({1: [[92, 93]]})
        item["annotations"][0]["category_id"] = label
        with pytest.raises(HostError, match="has labels outside 1 to 255"):
            read_stuff(str(write(tmp_path / "truth.json", item)))
    write(tmp_path / "two/a.json", document({1: [[92]]}))
    write(tmp_path / "two/b.json", document({1: [[92]]}))
    with pytest.raises(HostError, match="has 0 JSON files of this split"):
        read_stuff(str(tmp_path / "two"))
