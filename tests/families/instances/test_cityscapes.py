"""Cityscapes' instances: every number of its script, faults of texts and masks, and the families' promises."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.families.base.published import TruthSource
from segjudge.families.instances.published import open_instances
from tests.backends import use_numpy
from tests.builders import png
from tests.data import FAMILIES_DATA, copy_files
from tests.families.unit_counts import read_golden
from tests.shared import needs_shared

DATA = FAMILIES_DATA / "cityscapes"
CASES: dict[str, Any] = read_golden(DATA).get("instance", {})
SAFE, OFFICIAL = "cityscapes-instance", "cityscapes-instance-official"
#: The message where the script stops.
SENTENCES = {
    "no-file": "has no text file for 1 of 4 images: aachen_000000_000019",
    "unknown-label": "aachen_000000_000019.txt, line 13: has the label 34, which is not a label of Cityscapes",
}
#: The score where the script stops.
SCORED = {"only-in-void": 0.0, "two-spaces": 1.0}


def score(submission: Path, truth: Path, protocol: str = SAFE, **options: Any) -> dict[str, float | None]:
    (values,) = segjudge.score(submission, truth, protocol, **options).metrics.values()
    return values


@pytest.fixture(scope="module")
def truths(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, list[Path]]:
    """With and without distances: the truth as published, and packed."""
    folder, truths = tmp_path_factory.mktemp("cityscapes"), {}
    for measured in (False, True):
        root = DATA / "gtFine"
        if measured:
            root = folder / "measured"
            copy_files(DATA / "gtFine", root)
            shutil.copy(DATA / "distances.json", root)
        packed = folder / f"{measured}.zip"
        assert main(["pack", "--layout", SAFE, "--root", str(root), "--out", str(packed)]) == 0
        truths[measured] = [root, packed]
    return truths


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_every_number_is_the_scripts(
    case: str, kernel: bool, truths: dict[bool, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        use_numpy(monkeypatch)
    golden, submission = CASES[case], DATA / "instance" / case
    for truth in truths[golden["distances"]]:
        if case in SENTENCES:
            assert "official_error" in golden
            with pytest.raises(SubmissionError, match=SENTENCES[case]):
                score(submission, truth, OFFICIAL)
            continue
        scores = segjudge.score(submission, truth, OFFICIAL)
        ((report, values),) = zip(scores.reports, scores.metrics.values(), strict=True)
        if case in SCORED:
            assert "official_error" in golden
            assert values["AP"] == SCORED[case]
            continue
        averages = golden["averages"]
        expected = {f"AP{name[5:]}": value for name, value in averages.items() if name != "classes"}
        assert {name: values[name] for name in expected} == pytest.approx(expected, abs=1e-12, rel=0)
        assert [name for name, value in values.items() if value is None] == [n for n in values if n not in expected]
        rows = {row["name"]: row for row in report.rows()["categories"]}
        for name, of_class in averages["classes"].items():
            for metric, value in of_class.items():
                ours = rows[name][f"AP{metric[2:]}"]
                assert ours == (value if value is None else pytest.approx(value, abs=1e-12, rel=0))


@needs_shared
def test_the_safe_rule_differs_where_the_script_errs(truths: dict[bool, list[Path]]) -> None:
    (truth, _) = truths[False]
    safe, official = (
        {case: score(DATA / "instance" / case, truth, name)["AP"] for case in ("trucks-on-caravans", "small-group")}
        for name in (SAFE, OFFICIAL)
    )
    assert safe["trucks-on-caravans"] == 1, "what lies on caravans is no false positive"
    assert official["trucks-on-caravans"] < 1
    assert safe["small-group"] < official["small-group"], "a small group excuses once"


def objects(folder: Path, **maps: Any) -> Path:
    folder.mkdir(parents=True)
    for city, numbers in maps.items():
        Image.fromarray(np.asarray(numbers, np.uint16)).save(folder / f"{city}_000000_000019_gtFine_instanceIds.png")
    return folder


def boxed(*rows: tuple[int, int, int]) -> Any:
    """Return a map of 20×80 with a number in some columns."""
    numbers = np.full((20, 80), 7)
    for number, start, stop in rows:
        numbers[:, start:stop] = number
    return numbers


def sent(folder: Path, **lines: list[tuple[str, Any]]) -> Path:
    """Return texts of some cities, each line completed from a mask's name, and a mask of columns, or an image."""
    folder.mkdir()
    for city, entries in lines.items():
        text = ""
        for index, (ending, shape) in enumerate(entries):
            name = f"{city}_{index}.png"
            mask = (boxed((255, *shape)) == 255).astype(np.uint8) * 255 if isinstance(shape, tuple) else shape
            if mask is not None:
                (folder / name).write_bytes(png(mask))
            text += f"{name} {ending}\n"
        (folder / f"{city}_000000_000019_pred.txt").write_text(text)
    return folder


def test_show_draws_the_masks_that_texts_name(tmp_path: Path) -> None:
    truth = objects(tmp_path / "t", a=boxed((26000, 0, 10), (26001, 20, 30)))
    files = sent(tmp_path / "s", a=[("26 0.9", (0, 10)), ("26 0.5", (50, 55))])
    assert main(["show", str(files), "--truth", str(truth), "--protocol", SAFE, "--out", str(tmp_path / "page")]) == 0
    page = (tmp_path / "page/index.html").read_text()
    assert "1 right, 1 wrong, 1 missed" in page


def test_masks_with_several_values_are_named(tmp_path: Path) -> None:
    truth = objects(tmp_path / "t", a=boxed((26000, 0, 10)))
    blended = boxed((0, 0, 80), (255, 0, 10), (120, 10, 12)).astype(np.uint8)
    for name, shape, lines in (("blended", blended, 1), ("right", (0, 10), 0)):
        files = sent(tmp_path / name, a=[("26 0.9", shape)])
        warnings = segjudge.score(files, truth, SAFE).warnings
        sentence = "1 mask holds several values besides 0, all of which count: save masks as PNG with 0 and 255"
        assert [sentence in line for line in warnings].count(True) == lines


def test_train_ids_and_texts_of_other_images_are_named(tmp_path: Path) -> None:
    truth = objects(tmp_path / "t", a=boxed((26000, 0, 10)))
    files = sent(tmp_path / "s", a=[("13 0.9", (0, 10))], c=[])
    warnings = "\n".join(segjudge.score(files, truth, SAFE).warnings)
    assert "1 text matches no image of the truth and was ignored: c_000000_000019_pred" in warnings
    assert "all labels are train ids, from 11 to 18, instead of ids: a person is 24, not 11" in warnings
    with pytest.raises(SubmissionError, match="Scoring is strict"):
        segjudge.score(files, truth, SAFE, strict=True)


def read(folder: Path, subset: str = "") -> InstanceTruth:
    (truth,) = open_instances(TruthSource(str(folder), subset=subset)).splits.values()
    return truth


def test_the_truth_is_that_of_the_split(tmp_path: Path) -> None:
    objects(tmp_path / "gtFine/val/a", a=boxed((26000, 0, 10)))
    objects(tmp_path / "gtFine/train/b", b=boxed((24000, 0, 10), (24, 20, 30), (29001, 40, 50), (4, 60, 70)))
    assert list(read(tmp_path / "gtFine").names.values()) == ["a_000000_000019_leftImg8bit.png"]
    train = read(tmp_path / "gtFine", "train")
    assert sorted(zip(train.category.tolist(), train.crowd.tolist(), strict=True)) == [
        (-1, False), (-1, True), (0, False), (0, True),
    ]  # fmt: skip
    objects(tmp_path / "gtFine/val/c", a=boxed())
    with pytest.raises(HostError, match="several maps for one image"):
        read(tmp_path / "gtFine")
    next((tmp_path / "gtFine/val/c").iterdir()).write_bytes(b"PNG")
    with pytest.raises(HostError, match="instanceIds.png: "):
        read(tmp_path / "gtFine")
    (tmp_path / "gtFine/distances.json").write_text("[]")
    with pytest.raises(HostError, match="cannot be read"):
        read(tmp_path / "gtFine", "train")
