"""Referring images: every number of the official evaluators and the safe rules, and messages about hostile answers."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge.cli import main as cli
from segjudge.evaluation_script.families.referring.drawing import fill
from segjudge.evaluation_script.families.referring.truth import draw, read_truth
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.masks.run_lengths import compress, runs_of
from segjudge.masks.run_lengths import runs_of_mask
from tests.data import FAMILIES_DATA
from tests.families.unit_counts import refusal
from tests.shared import needs_shared

DATA = FAMILIES_DATA / "referring_images"
#: The golden numbers' names of metrics.
NAMES = {
    "refcoco": {"gIoU": "mIoU", "cIoU": "oIoU", **{f"Pr@0.{digit}": f"P@0.{digit}" for digit in range(5, 10)}},
    "gres": {"N_acc": "N-acc", "T_acc": "T-acc"},
    "reasonseg": {},
}


def golden() -> dict[str, Any]:
    path = DATA / "golden.json"
    return json.loads(path.read_text()) if path.exists() else {}


def cases(*folders: str) -> list[tuple[str, str]]:
    return [(folder, name) for folder in folders for name in golden().get(folder, {}).get("cases", {})]


def case_of(folder: str, name: str) -> tuple[str, str, dict[str, Any], list[str] | None]:
    """Return a case's answers and truth, its numbers, and the list of its samples."""
    case = golden()[folder]["cases"][name]
    scored = case.get("scored_sent_ids", "all")
    return (
        str(DATA / case["submission"]),
        str(DATA / folder),
        case,
        None if scored == "all" else list(map(str, scored)),
    )


def details(answers: str, truth: str, protocol: str, samples: list[str] | None) -> dict[str, Any]:
    (row,) = segjudge.score(answers, truth, protocol, sequences=samples).tables["details"]
    return row


def check(row: dict[str, Any], expected: dict[str, Any], folder: str, tolerance: float = 1e-12) -> None:
    for name, value in expected.items():
        if not isinstance(value, dict) and name not in {"I", "U"}:
            metric = NAMES[folder].get(name, name)
            assert row[metric] == (None if value is None else pytest.approx(value, abs=tolerance)), name


@needs_shared
@pytest.mark.parametrize(("folder", "name"), cases("refcoco", "gres", "reasonseg"))
def test_every_case_has_the_safe_numbers(folder: str, name: str, tmp_path: Path) -> None:
    answers, truth, case, samples = case_of(folder, name)
    layout = "grefcoco" if folder == "gres" else folder
    packed = str(tmp_path / "packed.zip")
    assert cli(["pack", "--layout", layout, "--root", truth, "--out", packed]) == 0
    for opened in (truth, packed):
        check(details(answers, opened, layout, samples), case["safe"], folder)


@needs_shared
@pytest.mark.parametrize(("folder", "name"), cases("refcoco"))
@pytest.mark.parametrize("protocol", ["refcoco", "refcoco-plus", "refcocog"])
def test_refcocos_numbers_are_those_of_lavt_and_rela(folder: str, name: str, protocol: str) -> None:
    answers, truth, case, _ = case_of(folder, name)
    row = details(answers, truth, protocol, None)
    check(row, case["lavt"], folder)
    rela = {key: value / 100 for key, value in case["rela"]["refcoco"].items() if "acc" not in key}
    check(row, rela, folder)


@needs_shared
@pytest.mark.parametrize(("folder", "name"), cases("gres"))
def test_grefcocos_official_numbers_are_those_of_rela(folder: str, name: str) -> None:
    answers, truth, case, samples = case_of(folder, name)
    if "official_error" in case["rela"]:
        with pytest.raises(HostError, match="no sample has a target"):
            details(answers, truth, "grefcoco-official", samples)
        return
    numbers = case["rela"]["grefcoco"]
    expected = {key: value if "acc" in key else value / 100 for key, value in numbers.items()}
    check(details(answers, truth, "grefcoco-official", samples), expected, folder)


@needs_shared
@pytest.mark.parametrize(("folder", "name"), cases("reasonseg"))
def test_reasonsegs_official_numbers_are_those_of_lisa_to_the_last_bit(folder: str, name: str) -> None:
    answers, truth, case, _ = case_of(folder, name)
    check(details(answers, truth, "reasonseg-official", None), case["lisa"], folder, tolerance=0.0)


@needs_shared
@pytest.mark.parametrize("name", golden().get("reasonseg", {}).get("drawn", {}))
def test_outlines_are_drawn_as_opencv_draws_them(name: str) -> None:
    expected = golden()["reasonseg"]["drawn"][name]
    document = json.loads((DATA / "reasonseg" / "truth" / f"{name}.json").read_text())
    size = tuple(expected["target"]["size"])
    for drawn, key in zip(draw(document["shapes"], size), ("target", "ignore"), strict=True):
        runs = runs_of(expected[key]["counts"], size[0] * size[1])
        assert (drawn == np.repeat(np.arange(len(runs)) % 2 == 1, runs)).all()


# ── rules that no golden case has ───────────────────────────────────────────

SIZE = (20, 30)


def encode(mask: Any) -> dict[str, Any]:
    return {"size": list(mask.shape), "counts": compress(runs_of_mask(mask))}


def box(top: int, left: int, height: int = 6, width: int = 8) -> Any:
    mask = np.zeros(SIZE, bool)
    mask[top : top + height, left : left + width] = True
    return mask


def write_expressions(
    folder: Path, samples: dict[int, Any], *, several: bool = True, split: str = "val", name: str = ""
) -> str:
    """Write a truth of one picture: a mask per sentence, or None without a target."""
    annotations = [
        {"id": number, "image_id": 1, "iscrowd": 0, "segmentation": encode(mask)}
        for number, mask in samples.items()
        if mask is not None
    ]
    records = [
        {
            "image_id": 1,
            "split": split,
            "ann_id": [-1] if mask is None else [number] if several else number,
            "sentences": [{"sent_id": number}],
        }
        for number, mask in samples.items()
    ]
    folder.mkdir(exist_ok=True, parents=True)
    instances = {"images": [{"id": 1, "height": SIZE[0], "width": SIZE[1]}], "annotations": annotations}
    (folder / "instances.json").write_text(json.dumps(instances))
    name = name or ("grefs(unc).json" if several else "refs(unc).p")
    data = json.dumps(records).encode() if name.endswith(".json") else pickle.dumps(records, protocol=2)
    (folder / name).write_bytes(data)
    return str(folder)


def write_answers(path: Path, answers: dict[int, Any], flags: dict[int, bool] | None = None) -> str:
    lines = []
    for number, mask in answers.items():
        record = {"sent_id": number, "segmentation": encode(mask)}
        if flags and number in flags:
            record["no_target"] = flags[number]
        lines.append(json.dumps(record))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


NOTHING = np.zeros(SIZE, bool)


def random_set(seed: int) -> tuple[dict[int, Any], dict[int, Any], dict[int, bool]]:
    rng = np.random.default_rng(seed)
    samples: dict[int, Any] = {}
    answers: dict[int, Any] = {}
    flags: dict[int, bool] = {}
    for number in range(1, 31):
        top, left = rng.integers(0, 12), rng.integers(0, 20)
        samples[number] = None if rng.random() < 0.3 else box(top, left)
        answers[number] = NOTHING if rng.random() < 0.2 else np.roll(box(top, left), rng.integers(0, 9, 2), (0, 1))
        if rng.random() < 0.5:
            flags[number] = bool(rng.random() < 0.4)
    return samples, answers, flags


def mean_by_hand(samples: dict[int, Any], answers: dict[int, Any], flags: dict[int, bool]) -> float:
    ious = []
    for number, mask in samples.items():
        withdrawn = flags.get(number, not answers[number].any())
        answer = NOTHING if withdrawn else answers[number]
        if mask is None:
            ious.append(float(withdrawn))
        else:
            ious.append((mask & answer).sum() / (mask | answer).sum())
    return float(np.mean(ious))


@pytest.mark.parametrize("seed", range(2))
def test_random_sets_score_as_by_hand_and_losses_sum_to_what_is_lacking(seed: int, tmp_path: Path) -> None:
    samples, answers, flags = random_set(seed)
    truth = write_expressions(tmp_path / "truth", samples)
    path = write_answers(tmp_path / "answers.jsonl", answers, flags)
    scores = segjudge.score(path, truth, "grefcoco")
    value = scores.metrics["val"]["gIoU"]
    assert value == pytest.approx(mean_by_hand(samples, answers, flags), abs=1e-12)
    kinds = scores.kinds[["false alarm", "withdrawn", "missed", "wrong object", "inexact"]].sum()
    assert float(kinds.sum()) == pytest.approx(1 - value, abs=1e-12)
    assert (kinds > 0).sum() >= 4


#: 48 pixels found exactly, with 24 of them among 72, among 96, where there is nothing, withdrawn, and correctly empty.
TARGETS: dict[str, Any] = {
    "exact": box(2, 2), "aside": box(2, 2), "twice": box(2, 2), "alarm": None, "withdrawn": box(2, 2), "empty": None,
}  # fmt: skip
SENT: dict[str, Any] = {
    "exact": box(2, 2), "aside": box(2, 6), "twice": box(2, 2) | box(10, 20), "alarm": box(2, 2),
    "withdrawn": {"mask": box(2, 20), "no_target": True}, "empty": NOTHING,
}  # fmt: skip
BY_HAND: dict[str, tuple[str, dict[str, float]]] = {
    "refcoco": (
        "exact aside twice",
        {"oIoU": 120 / 216, "mIoU": (1 + 1 / 3 + 1 / 2) / 3, "P@0.5": 2 / 3, "P@0.6": 1 / 3, "P@0.9": 1 / 3},
    ),
    "grefcoco": (
        "exact aside twice alarm withdrawn empty",
        {
            "gIoU": (1 + 1 / 3 + 1 / 2 + 1) / 6, "cIoU": 120 / (216 + 48 + 48), "N-acc": 1 / 2, "T-acc": 3 / 4,
            "Pr@0.5": 2 / 4, "Pr@0.7": 1 / 4, "Pr@0.9": 1 / 4,
        },
    ),
    "grefcoco-official": (
        "exact aside twice alarm withdrawn empty",
        {"gIoU": (1 + 1 / 3 + 1 / 2 + 1) / 6, "cIoU": 120 / (216 + 48 + 96), "N-acc": 1 / 2, "T-acc": 3 / 4},
    ),
    "reasonseg": ("exact aside twice alarm empty", {"gIoU": (1 + 1 / 3 + 1 / 2 + 1) / 5, "cIoU": 120 / 264}),
    "reasonseg-official": ("exact aside twice alarm empty", {"gIoU": (1 + 1 / 3 + 1 / 2 + 1) / 5, "cIoU": 120 / 264}),
}  # fmt: skip


@pytest.mark.parametrize("protocol", BY_HAND)
def test_every_number_can_be_counted_by_hand(protocol: str) -> None:
    names, expected = BY_HAND[protocol]
    truth, sent = ({name: side[name] for name in names.split()} for side in (TARGETS, SENT))
    (row,) = segjudge.score_arrays(sent, truth, protocol).tables["details"]
    tolerance = 1e-5 if protocol == "reasonseg-official" else 1e-12
    assert {name: row[name] for name in expected} == pytest.approx(expected, abs=tolerance)
    assert row["samples"] == len(truth)


# ── truths ──────────────────────────────────────────────────────────────────


def test_a_pickle_reads_as_json_does_and_packs_to_the_same(tmp_path: Path) -> None:
    samples = {number: box(number, number) for number in range(1, 9)}
    packed = []
    for name in ("refs(unc).p", "refs.json"):
        truth = write_expressions(tmp_path / name[-4:], samples, several=False, name=name)
        packed.append(tmp_path / f"{name[-4:]}.zip")
        assert cli(["pack", "--layout", "refcoco", "--root", f"{truth}/{name}", "--out", str(packed[-1])]) == 0
    assert packed[0].read_bytes() == packed[1].read_bytes()


class _Harm:
    def __reduce__(self) -> Any:
        return print, ("harm",)


#: A pickle of references → what is wrong with it.
PICKLES = {
    "a function": (pickle.dumps([{"split": _Harm()}]), "it holds builtins.print, but only plain values are read"),
    "a name": (b"\x80\x02c__builtin__\neval\nq\x00.", "it holds __builtin__.eval, but only plain values are read"),
    "half of a list": (pickle.dumps([1, 2])[:-2], ""),
    "no list": (pickle.dumps({"a": 1}), "is not a list of expressions"),
    "no records": (pickle.dumps([3]), ""),
    "no pickle": (
        b"nonsense",
        "is not a pickle of plain values: invalid load key, 'n'. Write the same records as JSON",
    ),
    "nothing": (b"", ""),
}


@pytest.mark.parametrize("name", PICKLES)
def test_a_pickle_of_anything_else_is_the_hosts_error(name: str, tmp_path: Path, capsys: Any) -> None:
    data, fault = PICKLES[name]
    truth = write_expressions(tmp_path / "truth", {1: box(1, 1)}, several=False)
    (Path(truth) / "refs(unc).p").write_bytes(data)
    with pytest.raises(HostError, match="cannot be read as the truth of referring images") as caught:
        read_truth(truth)
    assert fault in str(caught.value)
    assert "harm" not in capsys.readouterr().out


SHAPES = {
    "text": ["x"],
    "is_sentence": False,
    "shapes": [{"label": "target", "points": [[2, 3], [20.9, 3], [20.9, 11], [2, 11]]}],
}


def write_picture(folder: Path, size: tuple[int, int], orientation: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    picture = Image.new("RGB", size)
    exif = Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    picture.save(folder / "a.jpg", exif=exif)
    (folder / "a.json").write_text(json.dumps(SHAPES))


@pytest.mark.parametrize(("orientation", "size"), [(0, (20, 30)), (3, (20, 30)), (6, (30, 20))])
def test_reasonseg_reads_the_size_of_a_picture_as_it_is_shown(
    orientation: int, size: tuple[int, int], tmp_path: Path
) -> None:
    write_picture(tmp_path / "val", (30, 20), orientation)
    (unit,) = read_truth(str(tmp_path), "val").units
    assert unit.facts["size"] == size
    (frame,) = unit.load()
    assert frame.rows[0][1] == min(19, size[1] - 2) * 9


def test_a_polygon_without_corners_is_nothing_and_one_far_outside_ends_at_the_border() -> None:
    target, ignored = draw([{"label": "target", "points": []}], (5, 5))
    assert not target.any()
    assert not ignored.any()
    assert fill([(-900, -900), (900, -900), (900, 900), (-900, 900)], (5, 5)).all()


#: Polygons that leave an image of 30 × 40 at every side; pixels, and the sums of their rows and columns, by OpenCV
#: 4.8; later ones draw some sides a pixel aside.
LEAVING: list[Any] = [
    ([(-7, 3), (12, -9), (47, 11), (33, 44), (2, 71)], [1155, 17315, 21812]),
    ([(10, 10), (10, 400), (300, 10)], [600, 11700, 14700]),
    ([(-5, -5), (-9, 30), (44, -6), (25, 25)], [480, 5920, 8562]),
    ([(20, -40), (60, 15), (20, 70), (-3, 15)], [1176, 17147, 23383]),
    ([(5, -90), (12, -90), (38, 120), (30, 120)], [255, 3722, 5422]),
    ([(-80, 22), (-80, 18), (90, 2), (90, 9)], [240, 2760, 4680]),
]


@pytest.mark.parametrize(("corners", "sums"), LEAVING)
def test_outlines_beyond_the_border_are_cut_as_opencv_cuts_them(corners: Any, sums: list[int]) -> None:
    rows, columns = np.nonzero(fill(corners, (30, 40)))
    assert [len(rows), rows.sum(), columns.sum()] == sums


# ── what is refused ─────────────────────────────────────────────────────────

GOOD = {"sent_id": 1, "segmentation": encode(box(2, 2)), "no_target": False}


def changed(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}


def masked(size: Any = SIZE, counts: Any = GOOD["segmentation"]["counts"]) -> dict[str, Any]:
    return changed(segmentation={"size": list(size) if isinstance(size, tuple) else size, "counts": counts})


HOSTILE: dict[str, tuple[Any, str]] = {
    "nothing": ("", "is empty"),
    "not UTF-8": (b'{"sent_id": "\xff"}', "UTF-8"),
    "two on a line": (json.dumps(GOOD) + json.dumps(GOOD), "not valid JSON"),
    "a list": ([GOOD], "is not an object"),
    "sample as truth value": (changed(sent_id=True), "not a whole number"),
    "sample of 30 digits": (changed(sent_id=10**30), "digits"),
    "sample twice": (json.dumps(GOOD) + "\n" + json.dumps(GOOD), "occurs twice"),
    "flag as number": (changed(no_target=0), "neither true nor false"),
    "polygon": (changed(segmentation=[[0, 0, 5, 0, 5, 5]]), "no segmentation"),
    "size of truth values": (masked(size=(True, True)), "is not [height, width]"),
    "size huge": (masked(size=(1 << 38, 1 << 38)), "but the picture is [20, 30]"),
    "counts empty": (masked(counts=""), "do not add up"),
    "counts beyond ASCII": (masked(counts="äöü"), "characters"),
    "counts enormous": (masked(counts="0" * 5000), "more counts than"),
    "NaN": ('{"sent_id": NaN}', "NaN"),
    "key twice": ('{"sent_id": 1, "sent_id": 1}', "twice"),
    "nested": ('{"sent_id": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested"),
}


@pytest.fixture(scope="module")
def small_truth(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_expressions(tmp_path_factory.mktemp("small") / "truth", {1: box(2, 2), 2: None})


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_submission_gets_a_sentence(name: str, small_truth: str, tmp_path: Path) -> None:
    content, sentence = HOSTILE[name]
    assert sentence in refusal(content, tmp_path / "answers.jsonl", small_truth, "grefcoco")
