"""Every number of the official evaluators, to 1e-9, on real masks and on edge cases."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evaluation_script import averages, published, sequences, summaries
from evaluation_script.errors import SubmissionError
from evaluation_script.masks import cropped, empty_labels, pack
from evaluation_script.members import Limits
from evaluation_script.sequence_protocols import PROTOCOLS, Protocol
from evaluation_script.similarity import Region, boundary_similarity, disk, reach, region_similarity
from evaluation_script.truth import Split

from .data import SEQUENCES
from .golden.pairs import png_bytes, write_pair
from .shared import needs_shared

pytestmark = needs_shared

EXACT = 1e-9
EVALUATORS = {
    "davis_semi": "davis2017",
    "davis_unsup": "davis2017-unsupervised",
    "vosb": "vos-benchmark",
    "vosb_d": "vos-benchmark-all-frames",
    "sav": "sav",
    "sav_flat": "sav",
    "lvos_semi": "lvos",
    "lvos_us": "lvos-unsupervised-single",
    "lvos_um": "lvos-unsupervised",
    "vost": "vost",
    "mosev2": "mosev2",
}
ALWAYS_WRONG = {"lvos_cy"}  # LVOS's optional extension computes another boundary
GOLDENS = sorted(SEQUENCES.glob("golden_*_open.json"))


def golden_id(path: Path) -> str:
    return path.name[len("golden_") : -len("_open.json")]


def protocol_of(pair: str, evaluator: str) -> Protocol:
    return PROTOCOLS["davis2016" if (pair, evaluator) == ("A", "davis_semi") else EVALUATORS[evaluator]]


@pytest.fixture(scope="session")
def pair_files(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[tuple[str, bool], tuple[Path, Path]] = {}

    def files(pair: str, *, by_object: bool) -> tuple[Path, Path]:
        if (pair, by_object) not in made:
            made[pair, by_object] = write_pair(pair, tmp_path_factory.mktemp(pair), by_object=by_object)
        return made[pair, by_object]

    return files


def without(split: Split, names: Any) -> Split:
    return replace(split, sequences=[one for one in split.sequences if one.name not in names])


def close(mine: float | None, golden: float | None, scale: float = 1.0) -> bool:
    if golden is None or mine is None:
        return mine is golden
    return abs(mine - golden / scale) <= EXACT


@pytest.mark.parametrize("path", [p for p in GOLDENS if not p.name.endswith("lvos_cy_open.json")], ids=golden_id)
def test_real_masks_score_as_the_official_evaluator_says(path: Path, pair_files: Any) -> None:
    match = re.fullmatch(r"(\w+?)_(.*)", golden_id(path))
    assert match
    pair, evaluator = match.groups()
    golden = json.loads(path.read_text())
    protocol = protocol_of(pair, evaluator)
    truth_path, prediction_path = pair_files(pair, by_object=evaluator == "sav")
    if protocol.name == "davis2016":
        truth_path = SEQUENCES / "open_gt2016.zip"
    layout = published.LAYOUTS["sav" if evaluator == "sav" else "generic"]
    truth = published.read(str(truth_path), layout, unseen=str(SEQUENCES / "unseen_videos.txt"))
    split = without(truth.splits["val"], golden.get("errors", {}))

    scores, _ = sequences.score(str(prediction_path), split, protocol, Limits())

    scale = 100 if golden["unit"].startswith("percent") else 1
    values = averages.averaged(scores, protocol)
    for name, number in golden["global"].items():
        if name == "n_objects":
            assert len(scores) == number
        elif not name.startswith("scores_txt"):
            ours = name if name.endswith(("-Mean", "-Recall", "-Decay")) else name + "-Mean"
            assert close(values[ours], number, scale), (name, values[ours], number)
    check_objects(golden, evaluator, scores, scale)
    check_frames(pair, evaluator, scores)


def rows_by_sequence(scores: list[summaries.ObjectScore]) -> dict[str, list[summaries.ObjectScore]]:
    rows: dict[str, list[summaries.ObjectScore]] = {}
    for one in scores:
        rows.setdefault(one.sequence, []).append(one)
    for of_one in rows.values():  # official tables of matched proposals are in the proposals' order
        of_one.sort(key=lambda row: row.proposal)
    return rows


def check_objects(golden: Any, evaluator: str, scores: Any, scale: float) -> None:
    rows = rows_by_sequence(scores)
    for sequence, entry in golden["sequences"].items():
        objects = entry if evaluator == "mosev2" else entry["objects"]
        assert len(objects) == len(rows.get(sequence, []))
        for mine, values in zip(rows.get(sequence, []), objects.values()):
            check_values(values, mine, evaluator, scale)


def check_values(values: dict[str, Any], mine: Any, evaluator: str, scale: float) -> None:
    for name, number in values.items():
        head, _, tail = name.rpartition("_")
        if name in ("object_id", "n") or tail == "frames":
            continue
        if evaluator.startswith("lvos") and tail in ("recall", "decay"):
            continue  # always computed on the wrong axis there
        ours = f"{head}-{tail.capitalize()}" if tail in ("mean", "recall", "decay") else f"{name}-Mean"
        assert close(mine.values[ours], number, scale), (mine.sequence, mine.name, name)


def check_frames(pair: str, evaluator: str, scores: Any) -> None:
    path = SEQUENCES / f"perframe_{pair}_{evaluator}_open.json.gz"
    if not path.exists():
        return
    golden = json.loads(gzip.decompress(path.read_bytes()))
    rows = rows_by_sequence(scores)
    compared = 0
    for sequence, objects in golden.items():
        if sequence not in rows:
            continue
        for mine, entry in zip(rows[sequence], objects.values()):
            for letter, series in (("J", mine.j), ("F", mine.f)):
                if f"{letter}_frames" in entry:
                    ours = in_official_order(series, evaluator)
                    np.testing.assert_allclose(ours, entry[f"{letter}_frames"], rtol=0, atol=EXACT)
                    compared += len(series)
    assert compared, path.name


def in_official_order(series: Any, evaluator: str) -> Any:
    """LVOS's single-mask task stores the first frame's value last."""
    return np.roll(series, -1) if evaluator == "lvos_us" else series


def check_long_list(golden: Any, rows: list[Any]) -> None:
    assert len(rows) == golden["number_of_entries"]
    for row in rows:
        entry = golden["objects_1_and_200"].get(f"{row.sequence}_{row.name}")
        if entry is None:
            entry = {"J_mean": 1.0}
        check_values(entry, row, "vost", 1)


EDGES = json.loads((SEQUENCES / "edge_cases.json").read_text()) if SEQUENCES.is_dir() else {}


def mask_of(entry: dict[str, Any], shape: list[int]) -> Any:
    if "rows" in entry:
        return np.array([[cell == "#" for cell in row] for row in entry["rows"]])
    return np.repeat(np.arange(len(entry["rle"])) % 2 == 1, entry["rle"]).reshape(shape)


def stack_of(flags: Any) -> Any:
    block = empty_labels(1, flags.shape, bool)
    block[0, :, : flags.shape[1]] = flags
    return cropped(pack(block), flags.shape)


@pytest.mark.parametrize("case", EDGES.get("frame_cases", []), ids=lambda case: case["name"])
def test_two_masks_compare_as_the_official_code_says(case: Any) -> None:
    truth, prediction = stack_of(mask_of(case["gt"], case["shape"])), stack_of(mask_of(case["pred"], case["shape"]))
    if "void" in case:
        void = stack_of(mask_of(case["void"], case["shape"]))
        truth, prediction = truth.without(void), prediction.without(void)

    counts = Region(truth).compared(Region(prediction), disk(reach(truth.size)))

    assert reach(truth.size) == case["bound_pix"]
    assert counts.truth_boundary.tolist() == [case["n_gt_boundary"]]
    assert counts.prediction_boundary.tolist() == [case["n_pred_boundary"]]
    assert close(region_similarity(counts)[0], case["davis"]["J"])
    assert close(boundary_similarity(counts)[0], case["davis"]["F"])


#: Official decay wraps at 8 bits and is then wrong; for n = 256 NumPy 1.21 still had the right number.
WRAPPED = {"decay_n257", "decay_n258", "decay_n300", "decay_n512", "decay_n513", "decay_n700"}


def series_of(case: Any) -> Any:
    if case["values"] == f"RandomState(7+n).rand(n), n={case['name'][len('decay_n') :]}":
        count = int(case["name"][len("decay_n") :])
        return np.random.RandomState(7 + count).rand(count)
    return np.array([math.nan if value is None else value for value in case["values"]], float)


@pytest.mark.parametrize("case", EDGES.get("statistics_cases", []), ids=lambda case: case["name"])
def test_statistics_are_the_official_ones(case: Any) -> None:
    values = series_of(case)
    mean, recall, decay = case["mean_recall_decay"]
    if case["name"] == "decay_n256":
        mean, recall, decay = case["mean_recall_decay_numpy_1_21"]

    assert close(summaries.mean(values), mean)
    assert close(summaries.recall(values), recall)
    if case["name"] in WRAPPED:
        assert not close(summaries.decay(values), decay), "no exception is needed here"
    else:
        assert close(summaries.decay(values), decay)


def image_of(rows: list[str], mode: str) -> bytes:
    labels = np.array([[int(cell) for cell in row.split(",")] for row in rows])
    if mode == "I;16":
        return png_bytes(labels.astype(np.uint16))
    if mode == "1":
        return png_bytes(labels.astype(bool))
    if mode in ("RGB", "LA"):
        return png_bytes(np.stack([labels] * len(mode), axis=2).astype(np.uint8))
    if mode.startswith("P"):
        image = Image.fromarray(labels.astype(np.uint8))
        image.putpalette([255 - i // 3 if mode == "Pperm" else i // 3 for i in range(768)])
        out = io.BytesIO()
        image.save(out, "PNG", **({"bits": 2} if mode == "P2" else {}))
        return out.getvalue()
    return png_bytes(labels.astype(np.uint8))


def video_files(name: str, case: Any, evaluator: str, folder: Path) -> tuple[Path, Path]:
    lvos = evaluator.startswith("lvos")
    paths = folder / "truth.zip", folder / "prediction.zip"
    for path, side in zip(paths, ("gt", "pred")):
        with zipfile.ZipFile(path, "w") as out:
            for k, rows in enumerate(case[f"{side}_frames"]):
                if rows is not None:
                    frame = f"{1 + 5 * k:08d}" if lvos else f"{k:05d}"
                    out.writestr(f"{name}/{frame}.png", image_of(rows, case[f"{side}_png_mode"]))
            if side == "gt" and lvos:
                meta = {"videos": {name: {"objects": case["lvos_meta_objects"]}}}
                out.writestr("valid_meta.json", json.dumps(meta))
            out.writestr("readme.txt", "a zip may hold other files")
    return paths


VIDEO_PROTOCOLS = {**EVALUATORS, "sav_flat_d": "vos-benchmark-all-frames"}
VIDEOS = [
    pytest.param(name, evaluator, id=f"{name}-{evaluator}")
    for name, case in EDGES.get("video_cases", {}).items()
    for evaluator in case["results"]
    if evaluator not in ALWAYS_WRONG
]

#: Where the official run stops: the words of our refusal. Every other such video is scored, with a warning or not.
REFUSED = {
    r"m14.*": r"is \d+×\d+ pixels but the frame is",
    r"m15.*|m16.*": r"missing",
    r"m21.*": r"not in the DAVIS palette",
    r"m26.*": r"grey with an alpha channel",
    r"m28.*": r"sequences? (is|are) missing|none of the sequences|holds no",
    r"(m04|m27|m33)_.*davis_unsup|m04b.*davis_unsup|m29.*davis_unsup": r"proposals beyond 20",
    r"m07_.*lvos_us": r"holds the values",
}


@pytest.mark.parametrize(("name", "evaluator"), VIDEOS)
def test_tiny_videos_score_as_the_official_evaluator_says(name: str, evaluator: str, tmp_path: Path) -> None:
    case = EDGES["video_cases"][name]
    golden = case["results"][evaluator]
    protocol = PROTOCOLS[VIDEO_PROTOCOLS[evaluator]]
    truth_path, prediction_path = video_files(name, case, evaluator, tmp_path)
    split = published.read(str(truth_path)).splits["val"]

    if "__error__" in golden:
        refusal = [words for cases, words in REFUSED.items() if re.match(cases, f"{name}-{evaluator}")]
        if refusal:
            with pytest.raises(SubmissionError, match=refusal[0]):
                sequences.score(str(prediction_path), split, protocol, Limits())
            return
        scores, _ = sequences.score(str(prediction_path), split, protocol, Limits())
        assert all(value is None or math.isfinite(value) for one in scores for value in one.values.values())
        return

    scores, _ = sequences.score(str(prediction_path), split, protocol, Limits())

    rows = rows_by_sequence(scores).get(name, [])
    if "number_of_entries" in golden:
        check_long_list(golden, rows)
        return
    objects = [entry for label, entry in golden.items() if isinstance(entry, dict)]
    assert len(rows) == len(objects)
    scale = 100 if evaluator.startswith(("vosb", "sav")) else 1
    if evaluator.startswith(("vosb", "sav")):  # Python's order of a set there
        objects = [golden[row.name] for row in rows]
    for mine, entry in zip(rows, objects):
        check_values(entry, mine, evaluator, scale)
        for letter, series in (("J", mine.j), ("F", mine.f)):
            if f"{letter}_frames" in entry:
                ours = in_official_order(series, evaluator)
                np.testing.assert_allclose(ours, entry[f"{letter}_frames"], rtol=0, atol=EXACT)
