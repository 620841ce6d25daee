"""Panoptic segmentation: every number of the official evaluators, merging, and the cost of hostile submissions."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.families.panoptic import engine as panoptic
from segjudge.evaluation_script.families.panoptic import files as panoptic_files
from segjudge.evaluation_script.families.panoptic.counting import _BOUNDARY_RATIO
from segjudge.evaluation_script.families.panoptic.protocols import PANOPTIC_PROTOCOLS
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.evaluation_script.masks.overlaps import reach_of
from tests.builders import png, written, zipped
from tests.data import FAMILIES_DATA, TRACKS_DATA
from tests.families.panoptic.family import CATEGORIES
from tests.families.panoptic.family import segments as draw_segments
from tests.families.unit_counts import CLOSE, count_units, pack_units, read_golden, score_units
from tests.hostile_units import Make, hostile, sentence_of
from tests.shared import needs_shared

IMAGES, VIDEOS = TRACKS_DATA / "panoptic", TRACKS_DATA / "vps"
GROUPS = {"All": "", "Things": "-Things", "Stuff": "-Stuff"}


CASES = read_golden(IMAGES)["cases"]
KINDS = {"pq": "coco-panoptic", "boundary": "coco-panoptic-boundary"}


def laid_out(case: Any, folder: Path) -> tuple[Path, Path]:
    for side, document in (("truth", case["truth"]), ("submission", case["submission"])):
        shutil.copytree(IMAGES / side, folder / side / side)
        shutil.copy(IMAGES / document, folder / side / f"{side}.json")
    return folder / "truth", folder / "submission"


CITYSCAPES = FAMILIES_DATA / "cityscapes"
STREETS = read_golden(CITYSCAPES).get("panoptic", {})
#: The message where the script stops.
STREET_SENTENCES = {
    "missing": "1 of 4 images is missing: aachen_000000_000019",
    "png-only": "holds ids that the JSON does not list: 1",
    "train-ids": "segment 1 has the category 0, which the truth does not have",
}


@pytest.mark.parametrize("case", STREETS)
def test_cityscapes_scores_as_its_script_says(case: str, tmp_path: Path) -> None:
    shutil.copytree(CITYSCAPES / "panoptic/images", tmp_path / "sent/images")
    shutil.copy(CITYSCAPES / f"panoptic/{case}.json", tmp_path / "sent")
    published = panoptic_files.read_truth(str(CITYSCAPES / "gtFine/cityscapes_panoptic_val.json"))
    for truth in (published, pack_units(published, tmp_path)):
        if case in STREET_SENTENCES:
            assert "official_error" in STREETS[case]
            with pytest.raises(SubmissionError, match=STREET_SENTENCES[case]):
                count_units(tmp_path / "sent", truth, "cityscapes-panoptic").complete_counts()
            continue
        values = score_units(tmp_path / "sent", truth, "cityscapes-panoptic")
        expected = {f"{name.upper()}{suffix}": STREETS[case][group][name] for group, suffix in GROUPS.items()
                    for name in ("pq", "sq", "rq")}  # fmt: skip
        assert values == pytest.approx(expected, abs=1e-12, rel=0)


@needs_shared
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "official_error" not in case["pq"]])
def test_images_score_as_the_official_evaluators_say(name: str, kind: str, tmp_path: Path) -> None:
    expected = CASES[name][kind]
    published, submission = laid_out(CASES[name], tmp_path)
    for truth in (
        panoptic_files.read_truth(str(published), ""),
        panoptic_files.read_truth(f"{published}/truth.json", ""),
    ):
        for form in (truth, pack_units(truth, tmp_path)):
            accumulator = count_units(submission, form, KINDS[kind])
            results = panoptic.values(accumulator)
            assert list(results) == list(PANOPTIC_PROTOCOLS[KINDS[kind]].metrics)
            for group, suffix in GROUPS.items():
                for quality in ("PQ", "SQ", "RQ"):
                    assert results[quality + suffix] == pytest.approx(expected[group][quality.lower()], **CLOSE)
            rows = {str(row["id"]): row for row in panoptic.tables(accumulator)["categories"]}
            for category, qualities in expected["per_class"].items():
                for quality, value in qualities.items():
                    assert (rows[category][quality.upper()] or 0) == pytest.approx(value, **CLOSE)


@needs_shared
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("image-missing", "your file: 1 of 6 images is missing: 103. Send every image."),
        ("png-only", "holds ids that the JSON does not list: 2614989. List every segment."),
        ("json-only", "lacks ids that the JSON lists: 15999999. List only the segments of the PNG."),
        ("unknown-category", "image 103: segment 2614989 has the category 77, which the truth does not have."),
        ("things-only", "6 problems found in your submission"),
    ],
)
def test_what_ends_the_official_run_is_an_error_that_says_where(name: str, sentence: str, tmp_path: Path) -> None:
    assert "official_error" in CASES[name]["pq"]
    truth, submission = laid_out(CASES[name], tmp_path)
    with pytest.raises(SubmissionError) as caught:
        score_units(submission, panoptic_files.read_truth(str(truth), ""), "coco-panoptic")
    assert sentence in str(caught.value)


VPQ = read_golden(VIDEOS)["vpq"]


def videos(subset: str = "all") -> UnitTruth:
    truth = panoptic_files.read_truth(str(VIDEOS / "truth.json"), "")
    units = [unit for unit in truth.units if subset in ("all", unit.name)]
    return UnitTruth(truth.family, truth.layout, truth.facts, units)


@needs_shared
@pytest.mark.parametrize("subset", VPQ)
def test_videos_score_as_the_official_evaluators_say(subset: str, tmp_path: Path) -> None:
    expected = VPQ[subset]
    for truth in (videos(subset), pack_units(videos(subset), tmp_path)):
        units = score_units(VIDEOS / "submission", truth, "vipseg-official")
        assert list(units) == list(PANOPTIC_PROTOCOLS["vipseg-official"].metrics)
        for group, suffix in GROUPS.items():
            percent = expected["VPQ"].get(group)
            assert units[f"VPQ{suffix}"] == (None if percent is None else pytest.approx(percent / 100, **CLOSE))
        for window in (1, 2, 4, 6, 8):
            quality = expected[str(window)]["All"].get("pq")  # none: the official run divides by zero
            assert units[f"VPQ{window}"] == (None if quality is None else pytest.approx(quality, **CLOSE))
        for metric in ("STQ", "AQ", "IoU"):
            if subset in read_golden(VIDEOS)["stq"]:
                assert units[metric] == pytest.approx(read_golden(VIDEOS)["stq"][subset][metric], **CLOSE)


@needs_shared
def test_by_default_no_instance_is_left_out_of_stq() -> None:
    units = score_units(VIDEOS / "submission", videos(), "vipseg")
    expected = read_golden(VIDEOS)["stq_if_instances_started_at_1"]
    assert [units[key] for key in ("STQ", "AQ", "IoU")] == [
        pytest.approx(expected[key], **CLOSE) for key in ("STQ", "AQ", "IoU")
    ]


@pytest.mark.parametrize(
    ("size", "reach"),
    [((480, 640), 16), ((427, 640), 15), ((75, 100), 2), ((105, 140), 4), ((225, 300), 8), ((5, 7), 1)],
)
def test_boundaries_reach_as_deep_as_in_the_official_code(size: tuple[int, int], reach: int) -> None:
    assert reach_of(*size, _BOUNDARY_RATIO) == reach


SIZE = (40, 50)
LISTED = {
    "image_id": 1,
    "file_name": "a.png",
    "segments_info": [{"id": 7, "category_id": 1}, {"id": 300, "category_id": 2}],
}


def coloured(ids: Any) -> bytes:
    ids = np.asarray(ids, np.uint32)
    return png(np.stack([ids & 255, ids >> 8 & 255, ids >> 16], axis=-1).astype(np.uint8))


def halves(size: tuple[int, int] = SIZE) -> Any:
    ids = np.full(size, 7)
    ids[:, size[1] // 2 :] = 300
    return ids


def truth_of(folder: Path, size: tuple[int, int] = SIZE) -> UnitTruth:
    (folder / "t" / "t").mkdir(parents=True)
    (folder / "t" / "t" / "a.png").write_bytes(coloured(halves(size)))
    segments = [
        {"id": item, "category_id": category, "iscrowd": 0, "area": size[0] * size[1] // 2}
        for item, category in ((7, 1), (300, 2))
    ]
    document = {
        "annotations": [{"image_id": 1, "file_name": "a.png", "segments_info": segments}],
        "categories": [{"id": 1, "name": "person", "isthing": 1}, {"id": 2, "name": "sky", "isthing": 0}],
    }
    (folder / "t" / "t.json").write_text(json.dumps(document))
    return panoptic_files.read_truth(str(folder / "t"), "")


def upload(entries: Any = None, picture: Any = None, **files: bytes) -> bytes:
    document = (
        entries if isinstance(entries, bytes) else json.dumps({"annotations": [LISTED] if entries is None else entries})
    )
    members = {"s.json": document, "s/a.png": coloured(halves()) if picture is None else picture}
    return zipped({name: data for name, data in {**members, **files}.items() if data != b"absent"})


def changed(**entry: Any) -> bytes:
    return upload([{**LISTED, **entry}])


def segments(*rows: Any) -> bytes:
    return changed(segments_info=list(rows))


def noise() -> bytes:
    return coloured(np.random.default_rng(0).integers(1, 1 << 24, SIZE))


def cut(data: bytes, length: int) -> bytes:
    return data[:length]


#: Each with the participant's message.
HOSTILE: dict[str, tuple[Make, str]] = {
    "text": (lambda: b"hello", "neither a zip nor a tar"),
    "two-pictures": (lambda: upload(**{"b/a.png": b"1", "c/a.png": b"2", "s/a.png": b"absent"}), "there are 2 PNGs a.png"),
    "id-true": (lambda: changed(image_id=True), "has an annotation without image_id"),
    "nested": (lambda: upload(b"[" * 100_000), "is nested too deeply"),
    "nan": (lambda: upload(b'{"annotations": NaN}'), "holds NaN"),
    "long-number": (lambda: upload(b'{"annotations": ' + b"9" * 4000 + b"}"), "holds a number of 4000 digits"),
    "utf-16": (lambda: upload('{"annotations": []}'.encode("utf-16")), "is not UTF-8"),
    "lists": (lambda: zipped({"s.json": b"[" + b"[]," * 4_000_000 + b"[]]"}, zipfile.ZIP_STORED), "too many lists"),
    "upwards": (lambda: changed(file_name="../../etc/passwd"), "there is no PNG passwd"),
    "control": (lambda: changed(file_name="\x1b[2J"), "there is no PNG \\x1b[2J"),
    "segment-id-negative": (lambda: segments({"id": -1, "category_id": 1}), "without an id"),
    "noise": (lambda: upload(picture=noise()), "ids that the JSON does not list"),
    "palette": (lambda: upload(picture=png(Image.fromarray(np.zeros(SIZE, np.uint8), "P"))), "is not an RGB picture"),
    "huge-size": (lambda: upload(picture=coloured(np.zeros((6000, 9000)))), "is 9000x6000 pixels"),
    "cut-png": (lambda: upload(picture=cut(coloured(halves()), 80)), "is cut off"),
    "long-picture": (lambda: upload(picture=os.urandom(3 << 20)), "has 3,145,728 bytes"),
}  # fmt: skip


@pytest.mark.long
@hostile(HOSTILE)
def test_hostile_submissions_get_a_sentence_soon_and_in_little_memory(
    make: Make, sentence: str, tmp_path: Path
) -> None:
    truth = truth_of(tmp_path)
    assert sentence in sentence_of(make(), tmp_path, lambda path: score_units(path, truth, "coco-panoptic"))


@pytest.mark.parametrize(("step", "side"), [(0, ""), (1, "after"), (-1, "before")])
def test_entries_of_other_images_are_named(step: int, side: str, tmp_path: Path) -> None:
    random, pictures, entries = np.random.default_rng(8), {}, []
    for number in range(9):
        image = np.zeros((60, 80), np.uint8)
        for segment, (top, left) in enumerate(random.integers((0, 0), (40, 60), (2, 2)), 1):
            image[top : top + 20, left : left + 20] = segment
        pictures[f"{number}.png"], records = draw_segments(image)
        occurring = [record for record in records if record["area"]]
        entries.append({"image_id": number, "file_name": f"{number}.png", "segments_info": occurring})
    truth = {"annotations": entries, "categories": CATEGORIES, "images": []}
    root = written(tmp_path / "truth", {"val.json": truth, **{f"val/{name}": data for name, data in pictures.items()}})
    sent = [{**entries[(number + step) % 9], "image_id": number} for number in range(9)]
    results = {"results.json": json.dumps({"annotations": sent}).encode(), **pictures}
    (tmp_path / "results.zip").write_bytes(zipped(results))
    lines = segjudge.score(tmp_path / "results.zip", root / "val.json", "coco-panoptic").warnings
    named = [line for line in lines if "maps: each looks as if it belonged to the image" in line]
    assert len(named) == bool(step)
    assert all(
        f"{side} its own: corrected, the mean IoU of categories would be 1.00 instead of 0." in line for line in named
    )
