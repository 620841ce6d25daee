"""Referring images: every number of the official evaluators and the safe rules, and messages about hostile answers."""

from __future__ import annotations

import gzip
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge.cli import main as cli
from segjudge.evaluation_script.families import PROTOCOLS, engine_of, report_of
from segjudge.evaluation_script.families.base.units import UnitCounts
from segjudge.evaluation_script.families.referring.drawing import fill
from segjudge.evaluation_script.families.referring.truth import draw, read_truth
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
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


@pytest.mark.parametrize("seed", range(4))
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


@pytest.mark.parametrize("protocol", ["grefcoco", "grefcoco-official"])
def test_parts_processes_and_memory_give_the_bits_of_one_run(protocol: str, tmp_path: Path) -> None:
    samples, answers, flags = random_set(11)
    truth = write_expressions(tmp_path / "truth", samples)
    path = write_answers(tmp_path / "answers.jsonl", answers, flags)
    whole = segjudge.score(path, truth, protocol).metrics["val"]
    assert segjudge.score(path, truth, protocol, jobs=2).metrics["val"] == whole
    parts = []
    for number in (1, 2, 3):
        parts.append(str(tmp_path / f"part-{number}.segjudge"))
        command = ["score", path, "--truth", truth, "--protocol", protocol, "--part", f"{number}/3"]
        assert cli([*command, "--out", parts[-1]]) == 0
    merged = tmp_path / "merged.json"
    assert cli(["merge", *parts, "--json", str(merged)]) == 0
    assert json.loads(merged.read_text())["result"][0]["val"] == whole
    predicted = {number: {"mask": mask, "no_target": flags.get(number)} for number, mask in answers.items()}
    (values,) = segjudge.score_arrays(predicted, samples, protocol).metrics.values()
    assert values == whole


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


def test_without_a_sample_that_has_no_target_the_script_says_none_is_right() -> None:
    truth, sent = {"exact": TARGETS["exact"]}, {"exact": SENT["exact"]}
    (values,) = segjudge.score_arrays(sent, truth, "grefcoco").metrics.values()
    assert (values["N-acc"], values["T-acc"]) == (None, 1)
    (values,) = segjudge.score_arrays(sent, truth, "grefcoco-official").metrics.values()
    assert (values["N-acc"], values["T-acc"]) == (0, 0)


def test_a_report_says_where_the_mean_is_lost(tmp_path: Path) -> None:
    samples, answers, flags = random_set(2)
    truth = write_expressions(tmp_path / "truth", samples)
    path = write_answers(tmp_path / "answers.jsonl", answers, flags)
    page = tmp_path / "report.html"
    assert cli(["report", path, "--truth", truth, "--protocol", "grefcoco", "--out", str(page)]) == 0
    for text in ("Where gIoU is lost", "no target, but a mask answered", "wrong object"):
        assert text in page.read_text()


@pytest.mark.parametrize(("step", "side"), [(1, "before"), (-1, "after"), (0, "")])
def test_answers_to_neighbouring_samples_are_named(step: int, side: str, tmp_path: Path) -> None:
    samples = {number: box(number % 3 * 6, 4 * number % 20) for number in range(12)}
    answers = {number: samples[(number - step) % 12] for number in samples}
    truth = write_expressions(tmp_path / "truth", samples)
    lines = segjudge.score(write_answers(tmp_path / "answers.jsonl", answers), truth, "grefcoco").warnings
    slips = [line for line in lines if "each looks as if" in line]
    assert len(slips) == bool(step)
    assert all(
        f"belonged to the sample {side} its own: corrected, the IoU over all pixels would be 1.00" in line
        for line in slips
    )


def test_what_is_withdrawn_widens_no_union_but_the_official_one(tmp_path: Path) -> None:
    target = box(2, 2)
    truth = write_expressions(tmp_path / "truth", {1: target, 2: target})
    path = write_answers(tmp_path / "answers.jsonl", {1: target, 2: box(2, 20)}, {2: True})
    assert segjudge.score(path, truth, "grefcoco").metrics["val"]["cIoU"] == 48 / 96
    assert segjudge.score(path, truth, "grefcoco-official").metrics["val"]["cIoU"] == 48 / 144


def test_reasonsegs_official_mean_is_of_quotients_in_single_precision() -> None:
    truth = {"half": box(2, 2), "missed": box(2, 2), "nothing": None}
    answers = {"half": box(2, 2) | box(2, 20), "missed": box(2, 20), "nothing": None}
    (values,) = segjudge.score_arrays(answers, truth, "reasonseg-official").metrics.values()
    assert values["gIoU"] == pytest.approx((48 / 96 + 0 + 1) / 3, abs=1e-5)
    assert values["cIoU"] == pytest.approx(48 / (96 + 96), abs=1e-6)


def test_ignored_pixels_leave_both_sides_in_memory() -> None:
    truth = {"a": {"mask": box(2, 2), "ignore": box(10, 2)}, "b": None}
    answers = {"a": box(2, 2) | box(10, 2), "b": None}
    (values,) = segjudge.score_arrays(answers, truth, "reasonseg").metrics.values()
    assert values == {"gIoU": 1.0, "cIoU": 1.0}


@pytest.mark.parametrize("side", [{"masks": 3}, {"mask": NOTHING, "no_target": "yes"}, "text", np.zeros((2, 2, 2))])
def test_what_is_no_mask_in_memory_is_refused(side: Any) -> None:
    with pytest.raises(SubmissionError):
        segjudge.score_arrays({"a": side}, {"a": box(2, 2)}, "grefcoco")


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


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(_Harm()),
        pickle.dumps([{"split": _Harm()}]),
        pickle.dumps([1, 2])[:-2],
        pickle.dumps({"a": 1}),
        pickle.dumps([3]),
        b"\x80\x02c__builtin__\neval\nq\x00.",
        b"\x80\x02.",
        b"garbage",
        b"",
    ],
)
def test_a_pickle_of_anything_else_is_the_hosts_error(data: bytes, tmp_path: Path, capsys: Any) -> None:
    truth = write_expressions(tmp_path / "truth", {1: box(1, 1)}, several=False)
    (Path(truth) / "refs(unc).p").write_bytes(data)
    with pytest.raises(HostError, match="cannot be read as the truth of referring images"):
        read_truth(truth)
    assert "harm" not in capsys.readouterr().out


def test_a_split_is_chosen_and_answers_to_others_are_left(tmp_path: Path) -> None:
    folder = Path(write_expressions(tmp_path / "truth", {1: box(1, 1), 2: box(5, 5), 3: box(7, 7)}, several=False))
    records = pickle.loads((folder / "refs(unc).p").read_bytes())
    for record, split in zip(records, ("train", "testA", "testB"), strict=True):
        record["split"] = split
    (folder / "refs(unc).p").write_bytes(pickle.dumps(records))
    with pytest.raises(HostError, match="--subset"):
        read_truth(str(folder))
    with pytest.raises(HostError, match="has no split testC"):
        read_truth(str(folder), "testC")
    path = write_answers(tmp_path / "answers.jsonl", {1: NOTHING, 2: box(5, 5), 3: NOTHING})
    packed = str(tmp_path / "packed.zip")
    assert cli(["pack", "--layout", "refcoco", "--root", str(folder), "--subset", "testA", "--out", packed]) == 0
    command = ["score", path, "--truth", str(folder), "--subset", "testA", "--protocol", "refcoco", "--json"]
    for truth in (packed, str(folder)):
        out = tmp_path / "scores.json"
        command[3:4] = [truth]
        assert cli([word for word in command if truth != packed or word not in {"--subset", "testA"}] + [str(out)]) == 0
        (split,) = json.loads(out.read_text())["result"]
        assert split["testA"]["mIoU"] == 1.0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda truth: truth.pop("images"), "cannot be read as the truth of referring images"),
        (lambda truth: truth["images"][0].update(height=0), "has a picture of size"),
        (lambda truth: truth["images"][0].update(height=1 << 40), "has a picture of size"),
        (lambda truth: truth["images"][0].update(height=21), "a mask whose size differs from its picture's"),
        (lambda truth: truth["annotations"][0].update(image_id=2), "an object of another picture"),
        (lambda truth: truth["annotations"][0].update(segmentation=[[1, 2, 3]]), "three corners"),
        (lambda truth: truth["annotations"][0]["segmentation"].update(counts="~"), "characters"),
        (lambda truth: truth["annotations"][0]["segmentation"].update(counts=[1, 2]), "add up"),
        (lambda truth: truth["annotations"].clear(), "cannot be read as the truth of referring images"),
    ],
)
def test_broken_instances_are_the_hosts_error(change: Any, sentence: str, tmp_path: Path) -> None:
    folder = write_expressions(tmp_path / "truth", {1: box(1, 1)})
    path = Path(folder) / "instances.json"
    truth = json.loads(path.read_text())
    change(truth)
    path.write_text(json.dumps(truth))
    with pytest.raises(HostError, match=sentence):
        read_truth(folder)


def test_a_sentence_stands_once_and_a_target_without_a_pixel_is_noted(tmp_path: Path) -> None:
    truth = write_expressions(tmp_path / "truth", {1: NOTHING, 2: box(1, 1)})
    assert "1 sentence with a target without pixels" in " ".join(read_truth(truth).notes)
    path = Path(truth) / "grefs(unc).json"
    path.write_text(json.dumps(json.loads(path.read_text()) * 2))
    with pytest.raises(HostError, match="twice"):
        read_truth(truth)


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


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda truth: truth.pop("shapes"), "holds neither"),
        (lambda truth: truth["shapes"][0].update(points=[[1e30, 2]]), "far outside"),
        (lambda truth: truth["shapes"][0].update(points=[[float("nan"), 2]]), "far outside"),
        (lambda truth: truth["shapes"][0].update(points=[["a", 2]]), "cannot be read"),
        (lambda truth: truth["shapes"][0].pop("label"), "cannot be read as the truth"),
    ],
)
def test_broken_outlines_are_the_hosts_error(change: Any, sentence: str, tmp_path: Path) -> None:
    write_picture(tmp_path, (30, 20))
    truth = json.loads(json.dumps(SHAPES))
    change(truth)
    (tmp_path / "a.json").write_text(json.dumps(truth))
    with pytest.raises(HostError, match=sentence):
        read_truth(str(tmp_path))


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


OTHER = json.dumps(changed(sent_id=2))

HOSTILE: dict[str, tuple[Any, str]] = {
    "nothing": ("", "is empty"),
    "blanks": (" \n\n ", "is empty"),
    "text": ("hello", "neither a zip"),
    "not UTF-8": (b'{"sent_id": "\xff"}', "UTF-8"),
    "broken": ('{"sent_id": 1', "not valid JSON"),
    "two on a line": (json.dumps(GOOD) + json.dumps(GOOD), "not valid JSON"),
    "a list": ([GOOD], "is not an object"),
    "a number": ("{}\n3", "is not an object"),
    "null": ("{}\nnull", "is not an object"),
    "no sample": (changed(sent_id=...), "lacks sent_id"),
    "sample null": (changed(sent_id=None), "not a whole number"),
    "sample as text": (changed(sent_id="1"), "not a whole number"),
    "sample as fraction": (changed(sent_id=1.0), "not a whole number"),
    "sample as truth value": (changed(sent_id=True), "not a whole number"),
    "sample as list": (changed(sent_id=[1]), "not a whole number"),
    "unknown sample": (changed(sent_id=99), "the truth lacks"),
    "sample below zero": (changed(sent_id=-1), "the truth lacks"),
    "sample of 30 digits": (changed(sent_id=10**30), "digits"),
    "sample twice": (json.dumps(GOOD) + "\n" + json.dumps(GOOD), "occurs twice"),
    "sample missing": (GOOD, "1 of 2 samples is missing: 2"),
    "flag as text": (changed(no_target="false"), "neither true nor false"),
    "flag as number": (changed(no_target=0), "neither true nor false"),
    "flag as list": (changed(no_target=[]), "neither true nor false"),
    "no mask": (changed(segmentation=...), "no segmentation"),
    "mask null, flag false": (changed(segmentation=None), "no segmentation"),
    "mask null, no flag": (changed(segmentation=None, no_target=...), "no segmentation"),
    "polygon": (changed(segmentation=[[0, 0, 5, 0, 5, 5]]), "no segmentation"),
    "mask as text": (changed(segmentation="PT3"), "no segmentation"),
    "no size": (changed(segmentation={"counts": "PT3"}), "no segmentation"),
    "not counts": (changed(segmentation={"size": [20, 30]}), "no segmentation"),
    "size as text": (masked(size="20x30"), "is not [height, width]"),
    "size of three": (masked(size=(20, 30, 1)), "is not [height, width]"),
    "size of fractions": (masked(size=(20.0, 30.0)), "is not [height, width]"),
    "size of truth values": (masked(size=(True, True)), "is not [height, width]"),
    "size turned": (masked(size=(30, 20)), "but the picture is [20, 30]"),
    "size of 480": (masked(size=(480, 480)), "but the picture is [20, 30]"),
    "size huge": (masked(size=(1 << 38, 1 << 38)), "but the picture is [20, 30]"),
    "size negative": (masked(size=(-20, -30)), "but the picture is [20, 30]"),
    "counts short": (masked(counts=compress([100, 40])), "do not add up"),
    "counts long": (masked(counts=compress([100, 40, 9999])), "do not add up"),
    "counts below zero": (masked(counts=compress([100, -40, 540])), "below zero"),
    "counts endless": (masked(counts="o" * 40), "end too early"),
    "counts empty": (masked(counts=""), "do not add up"),
    "counts of other characters": (masked(counts="~~\x7f"), "characters"),
    "counts beyond ASCII": (masked(counts="äöü"), "characters"),
    "counts enormous": (masked(counts="0" * 5000), "more counts than"),
    "counts a number": (masked(counts=600), "neither text nor a list"),
    "counts an object": (masked(counts={}), "neither text nor a list"),
    "list of texts": (masked(counts=["1"]), "whole numbers"),
    "list of fractions": (masked(counts=[1.5, 598.5]), "whole numbers"),
    "list below zero": (masked(counts=[-1, 601]), "below zero"),
    "list short": (masked(counts=[100, 40]), "add up to 140"),
    "NaN": ('{"sent_id": NaN}', "NaN"),
    "key twice": ('{"sent_id": 1, "sent_id": 1}', "twice"),
    "nested": ('{"sent_id": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested"),
    "a picture": (b"\x89PNG\r\n\x1a\n", "is a single PNG"),
}


@pytest.fixture(scope="module")
def small_truth(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_expressions(tmp_path_factory.mktemp("small") / "truth", {1: box(2, 2), 2: None})


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_submission_gets_a_sentence(name: str, small_truth: str, tmp_path: Path) -> None:
    content, sentence = HOSTILE[name]
    assert sentence in refusal(content, tmp_path / "answers.jsonl", small_truth, "grefcoco")


@pytest.mark.long
def test_a_line_that_does_not_end_is_refused_before_it_fills_memory(small_truth: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"sent_id": 1, "x": "')
        for _ in range(40):
            file.write(np.random.default_rng(1).integers(97, 120, 1 << 20, np.uint8).tobytes())
    with pytest.raises(SubmissionError, match="does not end"):
        segjudge.score(str(path), small_truth, "grefcoco")


def test_several_files_or_none_are_refused(small_truth: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.zip"
    for names, fault in (
        ((), "no file of JSON lines, only notes.txt"),
        (("a.jsonl", "b.jsonl"), "2 files of JSON lines"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("notes.txt", "")
            for name in names:
                archive.writestr(name, "{}")
        with pytest.raises(SubmissionError, match=f"holds {fault}"):
            segjudge.score(str(path), small_truth, "grefcoco")


def test_all_problems_are_said_at_once(small_truth: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    lines = [
        changed(no_target=3),
        changed(sent_id=7),
        changed(sent_id=2, segmentation={"size": [20, 30], "counts": "~"}),
    ]
    path.write_text("\n\n".join(map(json.dumps, lines)))
    with pytest.raises(SubmissionError) as error:
        segjudge.score(str(path), small_truth, "grefcoco")
    for place in ("line 1 (sample 1)", "line 3 (sample 7)", "line 5 (sample 2)"):
        assert place in str(error.value)


def test_thousands_of_bad_lines_end_early(small_truth: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"sent_id": 77}\n' * 50_000)
    with pytest.raises(SubmissionError, match="the truth lacks"):
        segjudge.score(str(path), small_truth, "grefcoco")


def test_a_flag_is_for_grefcoco_alone(tmp_path: Path) -> None:
    truth = write_expressions(tmp_path / "truth", {1: box(2, 2)}, several=False)
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps(changed(no_target=True)))
    with pytest.raises(SubmissionError, match="which only gRefCOCO scores"):
        segjudge.score(str(path), truth, "refcoco")
    path.write_text(json.dumps(GOOD))
    assert segjudge.score(str(path), truth, "refcoco").metrics["val"]["mIoU"] == 1.0
    with pytest.raises(HostError, match="does not score"):
        segjudge.score(str(path), truth, "grefcoco")


@pytest.mark.parametrize("changes", [{"segmentation": None}, {"segmentation": ...}])
def test_what_has_no_target_needs_no_mask(changes: dict[str, Any], small_truth: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    nothing = json.dumps(changed(sent_id=2, no_target=True, **changes))
    path.write_text(f"{json.dumps(GOOD)}\r\n{nothing}")
    assert segjudge.score(str(path), small_truth, "grefcoco").metrics["val"]["gIoU"] == 1.0


@pytest.mark.parametrize("name", ["a", "a.jpg"])
def test_a_picture_of_reasonseg_is_named_with_its_ending_or_without(name: str, tmp_path: Path) -> None:
    write_picture(tmp_path / "truth", (30, 20))
    mask = box(3, 2, 9, 19)
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps({"image": name, "segmentation": encode(mask)}))
    assert segjudge.score(str(path), str(tmp_path / "truth"), "reasonseg").metrics["val"] == {"gIoU": 1.0, "cIoU": 1.0}
    path.write_text(json.dumps({"image": 3, "segmentation": encode(mask)}))
    with pytest.raises(SubmissionError, match="not a text"):
        segjudge.score(str(path), str(tmp_path / "truth"), "reasonseg")


def test_wrong_numbers_of_samples_and_empty_masks_are_noted(tmp_path: Path) -> None:
    truth = write_expressions(tmp_path / "truth", {1: box(2, 2), 2: box(10, 10)})
    for answers, note in (
        ({1: box(10, 10), 2: box(2, 2)}, "nothing in the masks of 2 samples tried matches the truth"),
        ({1: NOTHING, 2: NOTHING}, "all masks are empty"),
    ):
        path = write_answers(tmp_path / "answers.jsonl", answers)
        assert note in " ".join(segjudge.score(path, truth, "grefcoco").warnings)
    nowhere = write_expressions(tmp_path / "nowhere", {1: None, 2: None})
    for answers, where in (({1: box(2, 2), 2: NOTHING}, truth), ({1: box(2, 2), 2: box(9, 9)}, nowhere)):
        path = write_answers(tmp_path / "answers.jsonl", answers)
        assert not any("check" in line for line in segjudge.score(path, where, "grefcoco").warnings)


def test_counts_of_a_part_that_are_none_are_refused() -> None:
    engine = engine_of("referring")
    accumulator = engine.accumulator(PROTOCOLS["grefcoco"], {"subsets": [["no target"]]}, ["1"])
    assert engine.check(accumulator) is None
    accumulator.facts["subsets"] = [[3]]
    with pytest.raises(ValueError, match="unknown format"):
        engine.check(accumulator)


@pytest.mark.parametrize("protocol", BY_HAND)
def test_a_kind_of_query_without_samples_has_no_numbers(protocol: str) -> None:
    counts = UnitCounts("1", {"sample": np.array([1, 1, 0, 48, 48, 48])})
    accumulator = engine_of("referring").accumulator(PROTOCOLS[protocol], {"subsets": [["short"], ["long"]]}, ["1"])
    accumulator.update(counts)
    without, whole = report_of("val", accumulator).rows()["queries"]
    assert (without.pop("name"), without.pop("samples")) == ("short", 0)
    assert (whole["name"], whole["samples"], whole.get("gIoU", 1)) == ("long", 1, pytest.approx(1, abs=1e-4))
    assert not any(value for name, value in without.items() if name != "split")
