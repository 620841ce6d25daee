"""Phrases in videos: every number of SA-Co/VEval's script and of the safe rules, and messages about hostile uploads."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.cli import main as cli
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.masks.run_lengths import runs_of_mask
from tests.backends import use_numpy
from tests.data import FAMILIES_DATA
from tests.published import write_demo
from tests.shared import needs_shared

DATA = FAMILIES_DATA / "saco_video"
#: Where AP of the safe rules is that of the script: the same pairs, and nothing without a pixel.
SAME_AP = ("main", "perfect", "all-below", "all-wrong", "duplicate", "swapped-phrases", "iou-on-threshold", "nulls")
AP = {
    "phrase_AP": ("phrase_AP", "video_mask_phrase_ap_50_95"),
    "phrase_AP@0.5": ("phrase_AP", "video_mask_phrase_ap_50"),
    "phrase_AP@0.75": ("phrase_AP", "video_mask_phrase_ap_75"),
    "mAP": ("mAP", "video_mask_mAP_50_95"),
}


#: The script's names for its numbers of masks.
OFFICIAL = {
    **AP, "cgF1": ("cgF1", "video_mask_demo_cgf1_micro_50_95"),
    "cgF1@0.5": ("cgF1", "video_mask_demo_cgf1_micro_50"), "cgF1@0.75": ("cgF1", "video_mask_demo_cgf1_micro_75"),
    "pmF1": ("cgF1", "video_mask_demo_positive_micro_f1_50_95"), "IL_MCC": ("cgF1", "video_mask_demo_ilmcc_50_95"),
    "pHOTA": ("pHOTA", "video_mask_all_phrase_HOTA"), "pDetA": ("pHOTA", "video_mask_all_phrase_DetA"),
    "pAssA": ("pHOTA", "video_mask_all_phrase_AssA"), "TETA": ("TETA", "video_mask_teta"),
    "LocA": ("TETA", "video_mask_loc_a"), "AssocA": ("TETA", "video_mask_assoc_a"),
    "ClsA": ("TETA", "video_mask_cls_a"),
}  # fmt: skip
#: Cases that the official rules refuse, because some of the script's evaluators stop or give no number.
STOPPED = ("no-predictions", "unknown-video", "no-pair-list", "short-list", "no-areas", "no-boxes")


def cases() -> dict[str, Any]:
    path = DATA / "golden.json"
    return json.loads(path.read_text())["cases"] if path.exists() else {}


@needs_shared
@pytest.mark.parametrize("name", cases())
def test_every_case_scores_as_it_should(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = cases()[name]
    truth, submission, expected = str(DATA / case["truth"]), str(DATA / case["submission"]), case["safe"]
    if "refused" in expected:
        with pytest.raises((SubmissionError, HostError)):
            segjudge.score(submission, truth, "sa-co-veval")
        return
    packed = str(tmp_path / "packed.zip")
    assert cli(["pack", "--layout", "sa-co-veval", "--root", truth, "--out", packed]) == 0
    (row,) = segjudge.score(submission, truth, "sa-co-veval").tables["details"]
    assert segjudge.score(submission, packed, "sa-co-veval").tables["details"] == [row]
    use_numpy(monkeypatch)
    assert segjudge.score(submission, truth, "sa-co-veval").tables["details"] == [row]
    values = {metric: value for metric, value in expected.items() if not isinstance(value, (dict, list))}
    if name in SAME_AP:
        values.update({metric: case["official"][group]["dataset"][key] for metric, (group, key) in AP.items()})
    for metric, value in values.items():
        assert row[metric] == (None if value is None else pytest.approx(value, abs=1e-12)), metric


@needs_shared
@pytest.mark.parametrize("name", cases())
def test_every_case_scores_as_the_script_does(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = cases()[name]
    truth, submission = str(DATA / case["truth"]), str(DATA / case["submission"])
    if name in STOPPED:
        with pytest.raises((SubmissionError, HostError)):
            segjudge.score(submission, truth, "sa-co-veval-official")
        return
    packed = str(tmp_path / "packed.zip")
    assert cli(["pack", "--layout", "sa-co-veval", "--root", truth, "--out", packed]) == 0
    (row,) = segjudge.score(submission, packed, "sa-co-veval-official").tables["details"]
    use_numpy(monkeypatch)
    assert (
        segjudge.score(submission, truth, "sa-co-veval-official").tables["details"][0].items()
        >= {metric: row[metric] for metric in OFFICIAL}.items()
    )
    compared = set()
    for metric, (group, key) in OFFICIAL.items():
        of_group = {**case["official"][group], **case["official"].get(f"{group}_masks_only", {})}
        if "dataset" in of_group and key in of_group["dataset"]:
            value = float(f"{100 * row[metric]:.5g}") if group == "TETA" else row[metric]
            assert value == pytest.approx(of_group["dataset"][key], abs=1e-12), metric
            compared.add(group)
    assert compared >= {"cgF1", "pHOTA", "phrase_AP", "mAP"}
    assert ("TETA" in compared) == (name not in ("all-below", "raw-truth"))
    if name == "all-below":
        assert row["TETA"] is row["ClsA"] is None


@needs_shared
def test_frames_in_which_the_truth_shows_nothing_are_no_part_of_teta() -> None:
    folder = DATA / "frames_without_truth"
    (row,) = segjudge.score(str(folder / "submission.json"), str(folder / "truth.json"), "sa-co-veval-official").tables[
        "details"
    ]
    official = json.loads((folder / "golden.json").read_text())["official"]
    numbers = {key: 100 * row[metric] for metric, (_, key) in OFFICIAL.items() if key in official}
    assert numbers == official


# ── sets of our own ─────────────────────────────────────────────────────────

SIZE, FRAMES = (20, 30), 3


def encode(mask: Any) -> Any:
    return None if mask is None else {"size": list(mask.shape), "counts": compress(runs_of_mask(mask))}


def tube(top: int, left: int, side: int = 6) -> list[Any]:
    """Return a square that moves to the right, and is invisible in the second frame of an odd row."""
    masks = []
    for frame in range(FRAMES):
        mask = np.zeros(SIZE, bool)
        mask[top : top + side, left + frame : left + frame + side] = True
        masks.append(None if top % 2 and frame == 1 else mask)
    return masks


def document(pairs: dict[tuple[int, int], list[tuple[Any, int]]]) -> dict[str, Any]:
    """Return a truth: the tracks of each pair, and whether each is a crowd."""
    videos = [
        {
            "id": video, "height": SIZE[0], "width": SIZE[1], "length": FRAMES,
            "file_names": [f"v{video}/{frame}.jpg" for frame in range(FRAMES)],
        }
        for video in sorted({video for video, _ in pairs})
    ]  # fmt: skip
    rows = [(pair, track) for pair, tracks in pairs.items() for track in tracks]
    annotations = [
        {
            "id": index, "video_id": video, "category_id": category, "iscrowd": crowd,
            "segmentations": list(map(encode, masks)),
        }
        for index, ((video, category), (masks, crowd)) in enumerate(rows, 1)
    ]  # fmt: skip
    return {
        "videos": videos, "annotations": annotations, "categories": [{"id": k, "name": str(k)} for k in range(4)],
        "video_np_pairs": [{"video_id": video, "category_id": k, "noun_phrase": str(k)} for video, k in pairs],
    }  # fmt: skip


def records_of(predictions: dict[tuple[int, int], list[tuple[Any, float]]]) -> list[dict[str, Any]]:
    """Return tracks, with the areas and boxes that SA-Co/VEval's script trusts."""
    return [
        {
            "video_id": video, "category_id": category, "score": score, "segmentations": list(map(encode, masks)),
            "areas": [1] * FRAMES, "bboxes": [[0, 0, 1, 1]] * FRAMES,
        }
        for (video, category), tracks in predictions.items()
        for masks, score in tracks
    ]  # fmt: skip


def write(path: Path, value: Any) -> str:
    path.write_text(json.dumps(value))
    return str(path)


@pytest.mark.parametrize(("score", "matched", "followed"), [(0.51, 1, 1), (0.5, 1, 0), (0.49, 0, 0)])
def test_the_script_follows_tracks_above_one_half_alone(
    score: float, matched: int, followed: int, tmp_path: Path
) -> None:
    truth = write(tmp_path / "t.json", document({(0, 1): [(tube(0, 0), 0)], (0, 2): []}))
    results = write(tmp_path / "r.json", records_of({(0, 1): [(tube(0, 0), score)]}))
    values = segjudge.score(results, truth, "sa-co-veval-official").metrics["val"]
    assert (values["cgF1"], values["pmF1"]) == pytest.approx((matched, matched), abs=1e-3)
    assert (values["pHOTA"], round(values["phrase_AP"], 12)) == (followed, 1)
    assert values["TETA"] == (1 if matched else None)


def frames_of(track: list[Any], *shown: int) -> list[Any]:
    """Return a track that is visible only in these frames."""
    return [mask if frame in shown else None for frame, mask in enumerate(track)]


OBJECT, ELSEWHERE = tube(0, 0), tube(12, 12)
#: Of phrases 1 and 2 the objects, and tracks that claim to show them; LocA, AssocA and ClsA, by hand.
TETA: dict[str, tuple[list[Any], list[Any], list[Any], list[Any], tuple[Any, Any, Any]]] = {
    "as it is": ([OBJECT], [], [OBJECT], [], (1, 1, 1)),
    "twice": ([OBJECT], [], [OBJECT, OBJECT], [], (1 / 2, 1, 1)),
    "with one where nothing is": ([OBJECT], [], [OBJECT, ELSEWHERE], [], (1, 1, 1 / 2)),
    "in two tracks": ([OBJECT], [], [frames_of(OBJECT, 0), frames_of(OBJECT, 1, 2)], [], (1, 5 / 9, 1)),
    "in one frame": ([OBJECT], [], [frames_of(OBJECT, 0)], [], (1 / 3, 1 / 3, 1)),
    "too far to the right by one of six": ([OBJECT], [], [tube(0, 1)], [], (15 / 20, 15 / 20, 5 / 10)),
    "by the other's name": ([OBJECT], [ELSEWHERE], [], [OBJECT], (1 / 2, 1 / 2, 0)),
    "by each other's names": ([OBJECT], [ELSEWHERE], [ELSEWHERE], [OBJECT], (1, 1, 0)),
    "near one of each phrase": ([OBJECT], [tube(0, 1)], [OBJECT], [], (1 / 2, 1 / 2, 1 / 2)),
    "after it has left": ([frames_of(OBJECT, 0)], [], [OBJECT], [], (1, 1, 1)),
    "while the other phrase's object is seen": (
        [frames_of(OBJECT, 0)],
        [frames_of(ELSEWHERE, 1)],
        [OBJECT],
        [frames_of(ELSEWHERE, 1)],
        (1, 3 / 4, (1 / 2 + 1) / 2),
    ),
    "nowhere near": ([OBJECT], [], [ELSEWHERE], [], (0, 0, 0)),
    "only where nothing is": ([], [], [OBJECT], [], (None, None, None)),
}


@pytest.mark.parametrize("name", TETA)
def test_teta_can_be_counted_by_hand(name: str, tmp_path: Path) -> None:
    *sides, parts = TETA[name]
    item, two, claimed_one, claimed_two = (
        [(masks, index) for masks in side] for side, index in zip(sides, (0, 0, 1, 1))
    )
    truth = write(tmp_path / "t.json", document({(0, 1): item, (0, 2): two}))
    results = write(tmp_path / "r.json", records_of({(0, 1): claimed_one, (0, 2): claimed_two}))
    values = segjudge.score(results, truth, "sa-co-veval-official").metrics["val"]
    assert [values[part] for part in ("LocA", "AssocA", "ClsA")] == pytest.approx(parts, abs=1e-12)
    assert values["TETA"] == (None if None in parts else pytest.approx(sum(parts) / 3, abs=1e-12))


# ── what is refused ─────────────────────────────────────────────────────────


def test_pairs_and_tracks_of_the_demo_are_numbered_from_one(tmp_path: Path) -> None:
    document = json.loads(write_demo("sa-co-veval", tmp_path).read_text())
    for rows in (document["video_np_pairs"], document["annotations"], document["videos"]):
        assert [row["id"] for row in rows] == [*range(1, len(rows) + 1)]
    tracks = Counter((track["video_id"], track["noun_phrase"]) for track in document["annotations"])
    for pair in document["video_np_pairs"]:
        assert pair["num_masklets"] == tracks[pair["video_id"], pair["noun_phrase"]]
