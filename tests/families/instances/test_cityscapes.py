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
from segjudge.families.instances.diagnosis import diagnose
from segjudge.families.instances.published import open_instances
from segjudge.testing import CHECKS, Case
from tests.backends import use_numpy
from tests.builders import png, zipped
from tests.data import FAMILIES_DATA, copy_files
from tests.families.unit_counts import read_golden
from tests.report.known_faults import FAULTS
from tests.report.known_files import list_benchmarks
from tests.report.known_scenes import make_world
from tests.shared import needs_shared

DATA = FAMILIES_DATA / "cityscapes"
BENCHMARK = list_benchmarks()["cityscapes-instance"]
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


def test_of_the_lines_that_name_a_mask_the_last_counts_officially_alone(tmp_path: Path) -> None:
    truth = objects(tmp_path / "t", a=boxed((26000, 0, 10)))
    files = sent(tmp_path / "s", a=[("26 0.9", (0, 10))])
    (text,) = files.glob("*.txt")
    text.write_text("a_0.png 26 0.9\na_0.png 24 0.8\n")
    assert score(files, truth)["AP"] == 1
    assert score(files, truth, OFFICIAL)["AP"] == 0
    assert "val: 1 line names a mask that an earlier line names" in segjudge.score(files, truth, SAFE).warnings


def test_show_draws_the_masks_that_texts_name(tmp_path: Path) -> None:
    truth = objects(tmp_path / "t", a=boxed((26000, 0, 10), (26001, 20, 30)))
    files = sent(tmp_path / "s", a=[("26 0.9", (0, 10)), ("26 0.5", (50, 55))])
    assert main(["show", str(files), "--truth", str(truth), "--protocol", SAFE, "--out", str(tmp_path / "page")]) == 0
    page = (tmp_path / "page/index.html").read_text()
    assert "1 right, 1 wrong, 1 missed" in page


def test_every_problem_is_a_sentence(tmp_path: Path) -> None:
    truth = objects(tmp_path / "t", a=boxed((26000, 0, 10)), b=boxed((24000, 5, 20)))
    files = sent(
        tmp_path / "s",
        a=[
            ("26 nan", (0, 10)),
            ("26 1_0", (0, 10)),
            ("26", (0, 10)),
            ("car 1", (0, 10)),
            ("26 1", None),
            ("26 1", np.zeros((20, 81), np.uint8)),
            ("26 1", np.indices((20, 80, 3), np.uint8)[2]),
        ],
        b=[],
    )
    (files / "b_000000_000019.txt").write_bytes(b"\xff")
    with pytest.raises(SubmissionError) as refused:
        score(files, truth)
    for sentence in (
        "a_000000_000019_pred.txt, line 1: has the score nan, which is not a finite number",
        "line 2: has the score 1_0",
        "line 3: has 2 words, not three",
        "line 4: has the label car, which is not a label of Cityscapes. Write ids: 24 is a person",
        "line 5: names a_4.png, which was not sent",
        "a_5.png: is 81x20 pixels but the frame is 80x20",
        "a_6.png: is a colour picture",
        "is one of 2 text files of the image: b_000000_000019.txt, b_000000_000019_pred.txt",
    ):
        assert sentence in str(refused.value)
    (files / "b_000000_000019_pred.txt").unlink()
    with pytest.raises(SubmissionError, match="is not UTF-8 text"):
        score(files, truth)


def test_texts_of_an_image_are_named_in_any_order_of_files(tmp_path: Path) -> None:
    truth = objects(tmp_path / "t", a=boxed((26000, 0, 10)))
    names = ["a/a_000000_000019.txt", "b/a_000000_000019.txt"]
    archive = tmp_path / "s.zip"
    for order in (names, names[::-1]):
        archive.write_bytes(zipped(dict.fromkeys(order, b"")))
        with pytest.raises(SubmissionError, match=f"^{names[0]}: is one of 2 text files of the image: {names[0]}, "):
            score(archive, truth)


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


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("a", r"has no text file for 1 of 2 images: b_000000_000019\. Send"),
        ("ac", r"1 of 2 images: b_000000_000019; not in the truth: c_000000_000019_pred\. Send"),
        ("cd", r"2 of 2 images: a_\w+, b_\w+; not in the truth: c_\w+, d_\w+\. Send"),
    ],
)
def test_texts_that_are_missing_are_named_beside_those_of_other_images(
    texts: str, message: str, tmp_path: Path
) -> None:
    truth = objects(tmp_path / "t", a=boxed((26000, 0, 10)), b=boxed((26000, 0, 10)))
    with pytest.raises(SubmissionError, match=message):
        score(sent(tmp_path / "s", **{city: [] for city in texts}), truth)


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


def evaluate(truth: str, submission: str) -> dict[str, float]:
    """Evaluate by the rule in simple steps, for a truth without groups, void and small objects."""
    aps = []
    for overlap in np.arange(0.5, 1.0, 0.05):
        for label in range(24, 34):
            rows: list[tuple[float, bool]] = []
            instances = 0
            for path in sorted(Path(truth).rglob("*_instanceIds.png")):
                numbers = np.array(Image.open(path)).astype(int)
                own_masks = [numbers == number for number in np.unique(numbers) if number // 1000 == label]
                instances += len(own_masks)
                (text,) = Path(submission).glob(f"{'_'.join(path.name.split('_')[:3])}*.txt")
                lines = [line.split() for line in text.read_text().splitlines()]
                masks = [
                    (float(score), np.array(Image.open(text.parent / name)) > 0)
                    for name, line_label, score in lines
                    if int(line_label) == label
                ]
                free = set(range(len(own_masks)))
                for score, mask in sorted(masks, key=lambda entry: -entry[0]):
                    hits = [
                        k for k, item in enumerate(own_masks) if (item & mask).sum() / (item | mask).sum() > overlap
                    ]
                    rows.append((score, bool(free.intersection(hits))))
                    free.difference_update(hits)
            if not instances:
                continue
            points = [(1.0, 0.0)]
            for least in sorted({score for score, _ in rows}, reverse=True):
                kept = [right for score, right in rows if score >= least]
                points.insert(0, (sum(kept) / len(kept), sum(kept) / instances))
            recall = [points[0][1], *(point[1] for point in points), 0.0]
            aps.append(sum(p * (recall[k] - recall[k + 2]) / 2 for k, (p, _) in enumerate(points)) if rows else 0.0)
    return {"AP": float(np.mean(aps))}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ("numbers", "packing") else pytest.mark.long) for name in CHECKS]
)
def test_it_keeps_what_all_families_promise(name: str, tmp_path: Path) -> None:
    maps = {
        "a": boxed((26000, 0, 10), (26001, 12, 30), (24000, 30, 41)),
        "b": boxed((24000, 0, 20), (24001, 20, 30), (26000, 40, 60)),
        "c": boxed((33000, 5, 30)),
    }
    lines: dict[str, list[tuple[str, Any]]] = {
        "a": [("26 0.9", (0, 9)), ("26 0.9", (13, 30)), ("24 0.5", (30, 47)), ("26 0.4", (60, 70))],
        "b": [("24 0.8", (0, 20)), ("24 0.7", (0, 18)), ("24 0.6", (21, 29)), ("26 0.3", (41, 60))],
        "c": [("33 0.5", (5, 26))],
    }
    faulty = sent(tmp_path / "faulty", **{**lines, "b": [("99 1", (0, 1))], "c": [("26 x", (0, 1))]})

    def side(city: str, entries: Any) -> list[dict[str, Any]]:
        return [
            {"category_id": label, "score": value, "segmentation": (boxed((99, *columns)) == 99).astype(np.uint8)}
            for label, value, columns in entries
        ]

    arrays = (
        {f"{city}_000000_000019": side(city, [(int(e.split()[0]), float(e.split()[1]), c) for e, c in entries])
         for city, entries in lines.items()},
        {f"{city}_000000_000019": [
            {"category_id": number // 1000, "segmentation": (numbers == number).astype(np.uint8)}
            for number in np.unique(numbers).tolist() if number >= 1000
        ] for city, numbers in maps.items()},
    )  # fmt: skip
    CHECKS[name](Case(
        SAFE,
        truth=objects(tmp_path / "truth", **maps),
        submissions={"good": sent(tmp_path / "good", **lines)},
        expected=evaluate,
        faults={faulty: ["has the label 99", "has the score x"]},
        arrays={"good": lambda: arrays},
        other_truth=objects(tmp_path / "other", **{city: np.roll(numbers, 3, axis=1) for city, numbers in maps.items()}),
    ))  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_ap_of_cityscapes_is_explained_by_its_own_curves(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    world = make_world(random, 6, 1, BENCHMARK.kinds)
    predicted = [video.copy() for video in world]
    for video in predicted:
        FAULTS[str(random.choice(["missed", "surplus", "merged", "renamed", "half", "noise"]))].spoil(video, 2, random)
        video.scores.update({number: round(random.uniform(0.1, 1), 1) for number in video.numbers()})
    (tmp_path / "truth").mkdir()
    truth, results = BENCHMARK.publish(world, tmp_path / "truth"), tmp_path / "results.zip"
    results.write_bytes(BENCHMARK.send(predicted))
    scores = segjudge.score(results, truth, "cityscapes-instance")
    (report,) = scores.reports
    diagnosis = diagnose(scores.open_inputs(), report)
    expected = {row["name"]: row["AP50%"] for row in report.rows()["categories"] if row["AP50%"] is not None}
    found = dict(zip(diagnosis.names, diagnosis.errors.precision.tolist(), strict=True))
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-12)
    assert diagnosis.average_precision(0.5) == pytest.approx(report.values["AP50%"], abs=1e-12)
    means = [diagnosis.average_precision(iou) for iou in diagnosis.average_curves()]
    assert sum(means) / len(means) == pytest.approx(report.values["AP"], abs=1e-9)
