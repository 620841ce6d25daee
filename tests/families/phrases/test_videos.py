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
from segjudge.evaluation_script.families.phrases import tubes, videos
from segjudge.evaluation_script.families.phrases.files import read_truth
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.masks.run_lengths import runs_of_mask
from segjudge.system.errors import UsageError
from tests.backends import use_numpy
from tests.data import FAMILIES_DATA
from tests.families.phrases.test_phrases import NOT_A_LIST
from tests.families.unit_counts import refusal
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
    **AP,
    "cgF1": ("cgF1", "video_mask_demo_cgf1_micro_50_95"),
    "cgF1@0.5": ("cgF1", "video_mask_demo_cgf1_micro_50"),
    "cgF1@0.75": ("cgF1", "video_mask_demo_cgf1_micro_75"),
    "pmF1": ("cgF1", "video_mask_demo_positive_micro_f1_50_95"),
    "IL_MCC": ("cgF1", "video_mask_demo_ilmcc_50_95"),
    "pHOTA": ("pHOTA", "video_mask_all_phrase_HOTA"),
    "pDetA": ("pHOTA", "video_mask_all_phrase_DetA"),
    "pAssA": ("pHOTA", "video_mask_all_phrase_AssA"),
    "TETA": ("TETA", "video_mask_teta"),
    "LocA": ("TETA", "video_mask_loc_a"),
    "AssocA": ("TETA", "video_mask_assoc_a"),
    "ClsA": ("TETA", "video_mask_cls_a"),
}
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
            "video_id": video,
            "category_id": category,
            "score": score,
            "segmentations": list(map(encode, masks)),
            "areas": [1] * FRAMES,
            "bboxes": [[0, 0, 1, 1]] * FRAMES,
        }
        for (video, category), tracks in predictions.items()
        for masks, score in tracks
    ]


def draw_set(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    pairs: dict[tuple[int, int], list[tuple[Any, int]]] = {}
    predictions: dict[tuple[int, int], list[tuple[Any, float]]] = {}
    for pair in [(video, category) for video in range(4) for category in range(3)]:
        places = rng.integers(0, 14, (int(rng.integers(0, 4)), 2)).tolist()
        pairs[pair] = [(tube(top, left), int(rng.random() < 0.2)) for top, left in places]
        moved = [(top + int(rng.integers(0, 2)), left + int(rng.integers(0, 3))) for top, left in places]
        if rng.random() < 0.4:
            moved.append(tuple(rng.integers(0, 14, 2).tolist()))
        predictions[pair] = [(tube(top, left), float(rng.choice([0.2, 0.5, 0.7, 0.9]))) for top, left in moved]
    return pairs, predictions


def write(path: Path, value: Any) -> str:
    path.write_text(json.dumps(value))
    return str(path)


@pytest.mark.parametrize("protocol", ["sa-co-veval", "sa-co-veval-official"])
def test_parts_processes_and_memory_give_the_bits_of_one_run(protocol: str, tmp_path: Path) -> None:
    pairs, predictions = draw_set(3)
    records = records_of(predictions)
    if protocol == "sa-co-veval-official":  # with a phrase that is not a query
        records += [{**records[0], "category_id": 3}]
    truth, results = write(tmp_path / "t.json", document(pairs)), write(tmp_path / "r.json", records)
    whole = segjudge.score(results, truth, protocol)
    assert 0 < whole.metrics["val"]["phrase_AP"] < 1
    assert 0 < whole.metrics["val"]["pHOTA"] < 1
    assert segjudge.score(results, truth, protocol, jobs=2).metrics == whole.metrics
    parts = [str(tmp_path / f"part-{number}.segjudge") for number in (1, 2, 3)]
    for number, part in enumerate(parts, 1):
        command = ["score", results, "--truth", truth, "--protocol", protocol, "--part", f"{number}/3"]
        assert cli([*command, "--out", part]) == 0
    merged = tmp_path / "merged.json"
    assert cli(["merge", *parts, "--json", str(merged)]) == 0
    assert json.loads(merged.read_text())["result"][0]["val"] == whole.metrics["val"]
    if protocol == "sa-co-veval-official":
        with pytest.raises(UsageError, match="scores only files"):
            segjudge.score_arrays({}, {}, protocol)
        return
    names = {f"{video}_{category}": (video, category) for video, category in pairs}
    truths = {
        name: {
            "tracks": [masks for masks, _ in pairs[pair]], "iscrowd": [crowd for _, crowd in pairs[pair]],
            "category_id": pair[1],
        }
        for name, pair in names.items()
    }  # fmt: skip
    answers = {
        name: {"tracks": [masks for masks, _ in predictions[pair]], "scores": [item for _, item in predictions[pair]]}
        for name, pair in names.items()
    }
    (values,) = segjudge.score_arrays(answers, truths, "sa-co-veval").metrics.values()
    assert values == whole.metrics["val"]
    with pytest.raises(SubmissionError, match="2 and 3 frames"):
        segjudge.score_arrays({"0_0": {"tracks": [tube(2, 2)[:2]]}}, {"0_0": {"tracks": [tube(2, 2)]}}, "sa-co-veval")
    with pytest.raises(SubmissionError, match="not a mapping with tracks"):
        segjudge.score_arrays({"0_0": [tube(2, 2)]}, {"0_0": {"tracks": []}}, "sa-co-veval")


def test_a_crowd_excuses_what_lies_on_it_in_every_metric(tmp_path: Path) -> None:
    crowd, small = tube(4, 4, 12), tube(8, 8)
    truth = write(tmp_path / "t.json", document({(0, 1): [(tube(0, 20), 0), (crowd, 1)], (0, 2): []}))
    results = write(tmp_path / "r.json", records_of({(0, 1): [(tube(0, 20), 0.9), (small, 0.8), (small, 0.8)]}))
    values = segjudge.score(results, truth, "sa-co-veval").metrics["val"]
    assert values == {metric: pytest.approx(1, abs=1e-12) for metric in values}
    beside = write(tmp_path / "b.json", records_of({(0, 1): [(tube(0, 20), 0.9), (tube(14, 22), 0.95)]}))
    values = segjudge.score(beside, truth, "sa-co-veval").metrics["val"]
    assert values["pDetA"] == pytest.approx(0.5, abs=1e-12)
    assert values["phrase_AP"] == pytest.approx(0.5, abs=1e-12)
    assert values["pmF1"] == pytest.approx(2 / 3, abs=1e-12)


def test_scores_decide_whether_tracks_count_but_for_ap(tmp_path: Path) -> None:
    truth = write(tmp_path / "t.json", document({(0, 1): [(tube(0, 0), 0)], (0, 2): []}))
    for score, counted in ((0.5, 1), (0.49, 0)):
        results = write(tmp_path / "r.json", records_of({(0, 1): [(tube(0, 0), score)]}))
        values = segjudge.score(results, truth, "sa-co-veval").metrics["val"]
        assert (values["cgF1"], values["pHOTA"], round(values["phrase_AP"], 12)) == (counted, counted, 1)


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


def test_teta_without_a_track_that_counts_is_undefined(tmp_path: Path) -> None:
    truth = write(tmp_path / "t.json", document({(0, 1): [(OBJECT, 0)]}))
    results = write(tmp_path / "r.json", records_of({(0, 1): [(OBJECT, 0.4)]}))
    values = segjudge.score(results, truth, "sa-co-veval-official").metrics["val"]
    assert [values[part] for part in ("TETA", "LocA", "AssocA", "ClsA")] == [None] * 4


def test_a_page_shows_what_costs_pmf1_and_follows_tracks(tmp_path: Path) -> None:
    pairs, predictions = draw_set(5)
    truth, results = write(tmp_path / "t.json", document(pairs)), write(tmp_path / "r.json", records_of(predictions))
    scores = segjudge.score(results, truth, "sa-co-veval")
    total = float(scores.kinds[["partial", "surplus", "missed"]].sum().sum())
    assert total == pytest.approx(1 - scores.metrics["val"]["pmF1"], abs=1e-12)
    page = tmp_path / "report.html"
    assert cli(["report", results, "--truth", truth, "--protocol", "sa-co-veval", "--out", str(page)]) == 0
    assert "objects only predicted" in page.read_text()


# ── what is refused ─────────────────────────────────────────────────────────

COUNTS = compress([100, 40, 460])
MASK = {"size": [20, 30], "counts": COUNTS}
GOOD = {"video_id": 1, "category_id": 1, "score": 0.9, "segmentations": [MASK, None, MASK]}


def changed(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}


def masked(mask: Any) -> list[Any]:
    return [changed(segmentations=[None, mask, None])]


HOSTILE: dict[str, tuple[Any, str]] = {
    **NOT_A_LIST,
    "number": ([3], "lacks video_id"),
    "null": ([None], "lacks video_id"),
    "no video": ([changed(video_id=...)], "lacks video_id"),
    "no phrase": ([changed(category_id=...)], "lacks video_id, category_id"),
    "no score": ([changed(score=...)], "lacks video_id"),
    "no masks": ([changed(segmentations=...)], "lacks video_id"),
    "video as text": ([changed(video_id="1")], "not a whole number"),
    "video as fraction": ([changed(video_id=1.0)], "not a whole number"),
    "video true": ([changed(video_id=True)], "not a whole number"),
    "phrase as list": ([changed(category_id=[1])], "not a whole number"),
    "unknown video": ([changed(video_id=99)], "(pair 99_1): belongs to a pair that the truth does not list"),
    "unknown phrase": ([changed(category_id=7)], "the truth does not list"),
    "huge video": ([changed(video_id=10**30)], "the truth does not list"),
    "score as text": ([changed(score="0.9")], "not a finite number"),
    "score null": ([changed(score=None)], "not a finite number"),
    "score true": ([changed(score=True)], "not a finite number"),
    "score infinite": (json.dumps([changed(score=1.5)]).replace("1.5", "1e999"), "finite"),
    "score NaN": (json.dumps([changed(score=1.5)]).replace("1.5", "NaN"), "not a finite"),
    "score of 400 digits": ([changed(score=10**400)], "not a finite number"),
    "masks null": ([changed(segmentations=None)], "not a list"),
    "masks an object": ([changed(segmentations={"0": MASK})], "not a list"),
    "masks a text": ([changed(segmentations=COUNTS)], "not a list"),
    "too few": ([changed(segmentations=[MASK])], "has 1 mask but the video has 3 frames"),
    "too many": ([changed(segmentations=[MASK] * 4)], "has 4 masks but the video has 3 frames"),
    "none": ([changed(segmentations=[])], "has 0 masks"),
    "mask a number": (masked(3), "no segmentation of run lengths (frame 1)"),
    "mask a text": (masked(COUNTS), "no segmentation"),
    "polygon": (masked([[0, 0, 5, 0, 5, 5]]), "no segmentation"),
    "no size": (masked({"counts": COUNTS}), "no segmentation"),
    "not counts": (masked({"size": [20, 30]}), "no segmentation"),
    "size as text": (masked({"size": "20x30", "counts": COUNTS}), "is not [height, width]"),
    "size of fractions": (masked({"size": [20.0, 30.0], "counts": COUNTS}), "is not [height, width]"),
    "size turned": (masked({"size": [30, 20], "counts": COUNTS}), "but the picture is [20, 30]"),
    "size huge": (masked({"size": [1 << 40, 1 << 40], "counts": COUNTS}), "but the picture is [20, 30]"),
    "size negative": (masked({"size": [-20, -30], "counts": COUNTS}), "but the picture is [20, 30]"),
    "counts short": (masked({"size": [20, 30], "counts": compress([100, 40])}), "frame 1: has counts that do not add"),
    "counts long": (masked({"size": [20, 30], "counts": compress([100, 40, 9999])}), "do not add up"),
    "counts below zero": (masked({"size": [20, 30], "counts": compress([100, -40, 540])}), "below zero"),
    "counts endless": (masked({"size": [20, 30], "counts": "o" * 40}), "end too early"),
    "counts of other characters": (masked({"size": [20, 30], "counts": "~~\x7f"}), "characters"),
    "counts beyond ASCII": (masked({"size": [20, 30], "counts": "äöü"}), "characters"),
    "counts enormous": (masked({"size": [20, 30], "counts": "0" * 5000}), "more counts than"),
    "counts a number": (masked({"size": [20, 30], "counts": 600}), "neither text nor a list"),
    "list of texts": (masked({"size": [20, 30], "counts": ["1"]}), "whole numbers"),
    "list below zero": (masked({"size": [20, 30], "counts": [-1, 601]}), "below zero"),
    "list short": (masked({"size": [20, 30], "counts": [100, 40]}), "add up to 140"),
    "key twice": ('[{"video_id": 1, "video_id": 1, "category_id": 1, "score": 1, "segmentations": []}]', "twice"),
    "nested": ("[" + "[" * 100_000 + "]" * 100_000 + "]", "nested"),
    "many tracks": ([GOOD] * 301, "pair 1_1: has more than 300 tracks"),
}


@pytest.fixture(scope="module")
def small_truth(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("truth") / "toy.json"
    return write(path, document({(1, 1): [(tube(3, 5), 0)], (1, 2): []}))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_submission_gets_a_sentence(name: str, small_truth: str, tmp_path: Path) -> None:
    content, sentence = HOSTILE[name]
    assert sentence in refusal(content, tmp_path / "results.json", small_truth, "sa-co-veval")


BELIEVED = {"areas": [36, 0, 36], "bboxes": [[0, 0, 6, 6], None, [0, 0, 6, 6]]}


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (GOOD, "lacks areas for 3 frames, without which SA-Co/VEval's script stops"),
        (changed(**{**BELIEVED, "bboxes": [None]}), "lacks bboxes for 3 frames"),
        (changed(**{**BELIEVED, "areas": {}}), "lacks areas"),
        (changed(**{**BELIEVED, "areas": ["36", 0, 36]}), "areas that are not finite numbers"),
        (changed(**{**BELIEVED, "bboxes": [["0", 0], None, None]}), "bboxes that are not"),
        (changed(**BELIEVED, video_id=9), "belongs to a video that the truth lacks, which"),
        (changed(**BELIEVED, category_id=10**400), "belongs to a video that the truth lacks, which"),
        (changed(**BELIEVED, category_id=1 << 53), "belongs to a video that the truth lacks, which"),
    ],
)
def test_the_official_rules_refuse_what_would_stop_the_script(
    record: dict[str, Any], sentence: str, small_truth: str, tmp_path: Path
) -> None:
    with pytest.raises(SubmissionError) as error:
        segjudge.score(write(tmp_path / "results.json", [record]), small_truth, "sa-co-veval-official")
    assert sentence in str(error.value)


def test_the_official_rules_bound_what_nobody_asked_about_and_tracks_of_a_video(
    small_truth: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(videos, "_MOST_STRAYS", 2)
    monkeypatch.setattr(tubes, "_MOST_IN_VIDEO", 2)
    record = changed(**BELIEVED)
    strays = [{**record, "category_id": number} for number in range(10, 13)]
    for records, sentence in (
        (strays, "more than 2 pairs that video_np_pairs"),
        ([record] * 3, "video 1: has 3 tracks with"),
    ):
        with pytest.raises(SubmissionError, match=sentence):
            segjudge.score(write(tmp_path / "results.json", records), small_truth, "sa-co-veval-official")


def test_all_problems_are_said_at_once(small_truth: str, tmp_path: Path) -> None:
    bad = [changed(score=None), GOOD, changed(video_id=7), *masked({"size": [20, 30], "counts": "~"})]
    with pytest.raises(SubmissionError) as error:
        segjudge.score(write(tmp_path / "results.json", bad), small_truth, "sa-co-veval")
    for place in ("record 0 (pair 1_1)", "record 2 (pair 7_1)", "record 3 (pair 1_1), frame 1"):
        assert place in str(error.value)


def test_tracks_without_a_pixel_are_left_out_and_said_to_be(small_truth: str, tmp_path: Path) -> None:
    empty = changed(segmentations=[None, {"size": [20, 30], "counts": compress([600])}, None])
    scores = segjudge.score(write(tmp_path / "a.json", [GOOD, empty]), small_truth, "sa-co-veval")
    assert "val: 1 track without pixels was ignored" in scores.warnings
    assert scores.metrics == segjudge.score(write(tmp_path / "b.json", [GOOD]), small_truth, "sa-co-veval").metrics


def test_a_submission_of_which_nothing_counts_or_fits_is_told_why(small_truth: str, tmp_path: Path) -> None:
    def warnings(name: str, records: list[Any]) -> str:
        return "\n".join(segjudge.score(write(tmp_path / name, records), small_truth, "sa-co-veval").warnings)

    assert "no prediction counts: only scores of at least 0.5 do" in warnings("a.json", [changed(score=0.1)])
    astray = changed(segmentations=[encode(mask) for mask in tube(14, 18)])
    assert "nothing in the masks of 1 pair tried matches the truth" in warnings("b.json", [astray])
    assert "nothing" not in warnings("c.json", [GOOD])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda truth: truth.pop("video_np_pairs"), "has no video_np_pairs"),
        (lambda truth: truth["video_np_pairs"].append(truth["video_np_pairs"][0]), "lists a pair twice"),
        (
            lambda truth: truth["video_np_pairs"].append({"video_id": 9, "category_id": 1}),
            "cannot be read as the truth of SA-Co",
        ),
        (lambda truth: truth["annotations"][0].update(category_id=3), "belongs to a pair that video_np_pairs lacks"),
        (lambda truth: truth["annotations"][0]["segmentations"].pop(), "does not have one mask"),
        (
            lambda truth: truth["annotations"][0]["segmentations"][0].update(size=[1, 1]),
            "a mask whose size differs from its video's",
        ),
        (
            lambda truth: truth["annotations"][0]["segmentations"][0].update(counts="~"),
            "annotation 1, frame 0 .*charac",
        ),
        (lambda truth: truth.pop("categories"), "cannot be read as the truth of SA-Co"),
    ],
)
def test_a_broken_truth_is_the_hosts_error(change: Any, sentence: str, small_truth: str, tmp_path: Path) -> None:
    truth = json.loads(Path(small_truth).read_text())
    change(truth)
    with pytest.raises(HostError, match=sentence):
        read_truth(write(tmp_path / "truth.json", truth))


def test_a_truth_says_what_is_odd_about_it_and_videos_are_named_one_by_one(small_truth: str, tmp_path: Path) -> None:
    empty = np.zeros(SIZE, bool)
    path = write(tmp_path / "a.json", document({(1, 1): [(tube(3, 5), 0), ([empty] * FRAMES, 0)]}))
    notes = " ".join(read_truth(path).notes)
    for note in ("1 object without pixels in any frame", "every pair has objects"):
        assert note in notes
    write(tmp_path / "b.json", json.loads(Path(small_truth).read_text()))
    with pytest.raises(HostError, match="holds 2 JSON files"):
        read_truth(str(tmp_path))
    assert [unit.name for unit in read_truth(str(tmp_path), "b").units] == ["1_1", "1_2"]


@pytest.mark.parametrize(
    ("folders", "hidden"), [(("a", "b", "c"), [False] * 3), (("a", "b", "a"), [True, False, False])]
)
def test_of_videos_in_one_folder_the_last_one_alone_has_a_teta(
    folders: Any, hidden: list[bool], tmp_path: Path
) -> None:
    truth = document({(video, 1): [(OBJECT, 0)] for video in range(3)})
    for video, folder in zip(truth["videos"], folders):
        video["file_names"] = [f"{folder}/{frame}.jpg" for frame in range(FRAMES)]
    path = write(tmp_path / "t.json", truth)
    assert [unit.facts["hidden"] for unit in read_truth(path).units] == hidden
    # the first video is not followed at all: its TETA is in the mean unless it has none
    results = write(tmp_path / "r.json", records_of({(video, 1): [(OBJECT, 0.9)] for video in (1, 2)}))
    values = segjudge.score(results, path, "sa-co-veval-official").metrics["val"]
    assert (values["TETA"] == 1) == hidden[0]


def test_pairs_and_tracks_of_the_demo_are_numbered_from_one(tmp_path: Path) -> None:
    document = json.loads(write_demo("sa-co-veval", tmp_path).read_text())
    for rows in (document["video_np_pairs"], document["annotations"], document["videos"]):
        assert [row["id"] for row in rows] == [*range(1, len(rows) + 1)]
    tracks = Counter((track["video_id"], track["noun_phrase"]) for track in document["annotations"])
    for pair in document["video_np_pairs"]:
        assert pair["num_masklets"] == tracks[pair["video_id"], pair["noun_phrase"]]
