"""Cityscapes: every number of its script, the names of its files, other codings, and the families' promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base import unit_counts
from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.families.semantic import engine as semantic
from segjudge.evaluation_script.families.semantic.protocols import CITYSCAPES, SEMANTIC_PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from tests.backends import use_numpy
from tests.builders import png
from tests.data import FAMILIES_DATA
from tests.families.semantic.test_semantic import painted
from tests.families.unit_counts import count_units, pack_units, read_golden, score_units

DATA = FAMILIES_DATA / "cityscapes"
CASES: dict[str, Any] = read_golden(DATA).get("pixel", {})
RULES = SEMANTIC_PROTOCOLS["cityscapes"]
AVERAGES = ("averageScoreClasses", "averageScoreInstClasses", "averageScoreCategories", "averageScoreInstCategories")
#: The message where the script stops, or computes a meaningless number.
SENTENCES = {
    "train-ids-255": "holds the label 255 where the truth is not void. Write labels from 0 to 33: 7 is road",
    "label-34": "holds the label 34 where the truth is not void",
    "missing": "1 of 4 images is missing: aachen_000000_000019",
    "other-size": "is 200x119 pixels but the frame is 200x120",
    "colour": "is a colour picture. Write the id of its class into each pixel",
    "twice": "there are 2 PNGs: aachen_000000_000019_b_pred, aachen_000000_000019_pred",
}


def read(folder: Path, subset: str = "") -> UnitTruth:
    return semantic.read_images(str(folder), subset, CITYSCAPES)


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_every_number_is_the_scripts(case: str, kernel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not kernel:
        use_numpy(monkeypatch)
        monkeypatch.setattr(unit_counts, "_CELLS_AT_ONCE", 7)  # large sets are summed in batches
    golden, published = CASES[case]["python"], read(DATA / "gtFine")
    for truth in (published, pack_units(published, tmp_path)):
        if case in SENTENCES:
            assert "official_error" in golden
            with pytest.raises(SubmissionError, match=SENTENCES[case].replace(".", r"\.")):
                count_units(DATA / "pixel" / case, truth, "cityscapes").complete_counts()
            continue
        counts = count_units(DATA / "pixel" / case, truth, "cityscapes")
        values, tables = semantic.values(counts), semantic.tables(counts)
        assert list(values) == list(RULES.metrics)
        assert list(values.values())[:4] == pytest.approx([golden[name] for name in AVERAGES], abs=1e-12, rel=0)
        for table, metric, scores in (
            ("categories", "IoU", "classScores"), ("categories", "iIoU", "classInstScores"),
            ("groups", "IoU", "categoryScores"), ("groups", "iIoU", "categoryInstScores"),
        ):  # fmt: skip
            rows = {row["name"]: row[metric] for row in tables[table]}
            for name, score in golden[scores].items():
                assert rows.get(name) == (score if score is None else pytest.approx(score, abs=1e-12, rel=0))


def streets(folder: Path, suffix: str, **maps: Any) -> Path:
    return painted(folder, {f"{city}_000000_000019{suffix}.png": labels for city, labels in maps.items()})


def objects(folder: Path, **maps: Any) -> Path:
    """Return the truth of some cities, with numbered objects."""
    wide = {city: np.asarray(labels, np.uint16) for city, labels in maps.items()}
    folder.mkdir()
    for city, labels in wide.items():
        (folder / f"{city}_000000_000019_gtFine_instanceIds.png").write_bytes(png(labels))
    return folder


def test_weights_groups_and_absent_classes_can_be_counted_by_hand(tmp_path: Path) -> None:
    truth = read(objects(tmp_path / "t", a=[[7, 26000, 26000, 26001, 26, 0]]))
    values = score_units(streets(tmp_path / "s", "", a=[[7, 26, 29, 26, 7, 33]]), truth, "cityscapes")
    size = dict(RULES.sizes)[26]
    # The first car is right in one of two pixels, the second in all; the one without a number weighs nothing.
    assert values["iIoU"] == pytest.approx(1.5 * size / (2 * size))
    assert values["iIoU-categories"] == 1  # a caravan is a vehicle
    assert values["IoU"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert values["IoU-categories"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    surplus = score_units(streets(tmp_path / "b", "", a=[[31, 26, 26, 26, 26, 0]]), truth, "cityscapes")
    assert surplus["IoU"] == pytest.approx((0 + 1 + 0) / 3), "a train that the truth lacks is in the mean"
    assert surplus["mIoU"] == pytest.approx((0 + 1) / 2), "and in this one it is not"
    assert surplus["iIoU-categories"] == pytest.approx(2 * size / (2 * size + 1))
    assert [label for label, _ in RULES.sizes] == [24, 25, 26, 27, 28, 31, 32, 33], "what has instances, has a size"


def test_files_are_those_of_the_split_and_begin_with_the_name_of_their_image(tmp_path: Path) -> None:
    objects(tmp_path / "gtFine", a=[[7]]).rename(tmp_path / "a")
    (tmp_path / "gtFine/val").mkdir(parents=True)
    (tmp_path / "a").rename(tmp_path / "gtFine/val/a")
    objects(tmp_path / "train", a=[[7]], b=[[8]]).rename(tmp_path / "gtFine/train")
    assert read(tmp_path).item_names == ["a_000000_000019"]
    assert read(tmp_path, "train").item_names == ["a_000000_000019", "b_000000_000019"]
    sent = streets(tmp_path / "s/a", "_leftImg8bit_labelIds", a=[[7]])
    streets(tmp_path / "s/c", "_pred", c=[[7]])
    counts = count_units(sent.parent, read(tmp_path), "cityscapes")
    assert counts.notes == ["1 image is not in the truth and was ignored: c_000000_000019_pred"]
    with pytest.raises(HostError, match=r"has no \.\.\._instanceIds.png"):
        read(sent)
    (tmp_path / "gtFine/val/a/a_000000_000019_gtFine_labelIds.png").write_bytes(png(np.array([[8]], np.uint8)))
    with pytest.raises(
        HostError, match=r"does not have the classes of gtFine/val/a/a_000000_000019_gtFine_labelIds\.png"
    ):
        read(tmp_path).read_through()
