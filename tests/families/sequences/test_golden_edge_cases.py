"""Every number of the official evaluators, to 1e-9, on edge cases: tiny masks, statistics and tiny videos."""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import metrics as sequence_metrics
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.files.limits import ArchiveLimits
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.similarity import Region, boundary_similarity, disk, reach, region_similarity
from segjudge.evaluation_script.masks.stack import crop, empty_labels, pack
from tests.builders import score_sequences
from tests.families.contract import golden_path
from tests.families.sequences.comparison import (
    EVALUATORS,
    EXACT,
    check_values,
    close,
    in_official_order,
    rows_by_sequence,
)
from tests.golden.pairs import png_bytes

ALWAYS_WRONG = {"lvos_cy"}  # LVOS's optional extension computes another boundary


def check_long_list(golden: Any, rows: list[Any]) -> None:
    assert len(rows) == golden["number_of_entries"]
    for row in rows:
        entry = golden["objects_1_and_200"].get(f"{row.sequence}_{row.name}")
        if entry is None:
            entry = {"J_mean": 1.0}
        check_values(entry, row, "vost", 1)


EDGES = json.loads(golden_path("sequences", "edge_cases.json").read_text())


def mask_of(entry: dict[str, Any], shape: list[int]) -> Any:
    if "rows" in entry:
        return np.array([[cell == "#" for cell in row] for row in entry["rows"]])
    return np.repeat(np.arange(len(entry["rle"])) % 2 == 1, entry["rle"]).reshape(shape)


def stack_of(flags: Any) -> Any:
    block = empty_labels(1, flags.shape, bool)
    block[0, :, : flags.shape[1]] = flags
    return crop(pack(block), flags.shape)


@pytest.mark.parametrize("case", EDGES["frame_cases"], ids=lambda case: case["name"])
def test_two_masks_compare_as_the_official_code_says(case: Any) -> None:
    truth, prediction = stack_of(mask_of(case["gt"], case["shape"])), stack_of(mask_of(case["pred"], case["shape"]))
    if "void" in case:
        void = stack_of(mask_of(case["void"], case["shape"]))
        truth, prediction = truth.without(void), prediction.without(void)

    (counts,) = backend().compare([(Region(truth), Region(prediction))], disk(reach(truth.size)))

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


@pytest.mark.parametrize("case", EDGES["statistics_cases"], ids=lambda case: case["name"])
def test_statistics_are_the_official_ones(case: Any) -> None:
    values = series_of(case)
    mean, recall, decay = case["mean_recall_decay"]
    if case["name"] == "decay_n256":
        mean, recall, decay = case["mean_recall_decay_numpy_1_21"]

    assert close(sequence_metrics.mean(values), mean)
    assert close(sequence_metrics.recall(values), recall)
    if case["name"] in WRAPPED:
        assert not close(sequence_metrics._decay(values), decay), "no exception is needed here"
    else:
        assert close(sequence_metrics._decay(values), decay)


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
    for name, case in EDGES["video_cases"].items()
    for evaluator in case["results"]
    if evaluator not in ALWAYS_WRONG
]

#: Where the official run stops: words of Segjudge's message. Every other such video is scored, with a warning or not.
REFUSED = {
    r"m14.*": r"is \d+x\d+ pixels but the frame is",
    r"m15.*|m16.*": r"missing",
    r"m26.*": r"grey with an alpha channel",
    r"m28.*": r"sequences? (is|are) missing|holds no",
    r"(m04|m27|m33)_.*davis_unsup|m04b.*davis_unsup|m29.*davis_unsup": r"proposals beyond 20",
    r"m07_.*lvos_us": r"holds the values",
}


@pytest.mark.parametrize(("name", "evaluator"), VIDEOS)
def test_tiny_videos_score_as_the_official_evaluator_says(name: str, evaluator: str, tmp_path: Path) -> None:
    case = EDGES["video_cases"][name]
    golden = case["results"][evaluator]
    protocol = SEQUENCE_PROTOCOLS[VIDEO_PROTOCOLS[evaluator]]
    truth_path, prediction_path = video_files(name, case, evaluator, tmp_path)
    split = dataset_reader.read(str(truth_path)).splits["val"]

    if "__error__" in golden:
        refusal = [message for cases, message in REFUSED.items() if re.match(cases, f"{name}-{evaluator}")]
        if refusal:
            with pytest.raises(SubmissionError, match=refusal[0]):
                score_sequences(str(prediction_path), split, protocol, ArchiveLimits())
            return
        scores, _ = score_sequences(str(prediction_path), split, protocol, ArchiveLimits())
        assert all(value is None or math.isfinite(value) for score in scores for value in score.values.values())
        if case["pred_png_mode"] == "RGB":  # with equal channels, which are read as one
            (tmp_path / "grey").mkdir()
            _, grey_path = video_files(name, {**case, "pred_png_mode": "L"}, evaluator, tmp_path / "grey")
            in_grey, _ = score_sequences(str(grey_path), split, protocol, ArchiveLimits())
            assert [score.values for score in scores] == [score.values for score in in_grey]
        return

    scores, _ = score_sequences(str(prediction_path), split, protocol, ArchiveLimits())

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
