"""Rules of the newer families, against short formulas of their own and values worked out by hand."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from segjudge.evaluation_script.families.base.family import mean_of_all
from segjudge.evaluation_script.families.base.units import (
    TruthFrame,
    Unit,
    UnitAccumulator,
    UnitCounts,
    UnitTruth,
    no_pixels,
)
from segjudge.evaluation_script.families.instances.records import join_frames
from segjudge.evaluation_script.families.instances.truth import LABELS, mean_occlusion
from segjudge.evaluation_script.families.panoptic import counting as panoptic_counting
from segjudge.evaluation_script.families.panoptic import engine as panoptic
from segjudge.evaluation_script.families.panoptic.files import PredictedFrame
from segjudge.evaluation_script.families.panoptic.protocols import PANOPTIC_PROTOCOLS, PanopticProtocol
from segjudge.evaluation_script.families.semantic import engine as semantic
from segjudge.evaluation_script.families.semantic.protocols import SemanticProtocol
from segjudge.evaluation_script.families.sequences import metrics as sequence_metrics
from segjudge.evaluation_script.families.sequences.counting import _fractional_disk
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, _ScoreTable
from segjudge.evaluation_script.families.sequences.protocols import BESIDE, SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.families.tracking import counting as tracks_counting
from segjudge.evaluation_script.families.tracking import engine as tracks
from segjudge.evaluation_script.families.tracking.counting import ComparedFrame
from segjudge.evaluation_script.families.tracking.protocols import TRACKS_PROTOCOLS
from segjudge.evaluation_script.files.problems import Flaw, HostError, Problem, Problems
from segjudge.evaluation_script.masks import overlaps as instance_overlaps
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.backend import CompiledBackend, NumpyBackend, backend
from segjudge.evaluation_script.masks.overlaps import LabelMap, Pairs
from segjudge.evaluation_script.masks.run_lengths import Masks, pack_texts
from segjudge.evaluation_script.masks.similarity import Counts
from tests.backends import use, use_numpy
from tests.builders import png
from tests.families.unit_counts import pack_units


@pytest.fixture(autouse=True)
def _without_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules are those of the Python code; that the kernel agrees with it is tested elsewhere."""
    use_numpy(monkeypatch)


def accumulated(protocol: Any, facts: Any, *tables: Any) -> UnitAccumulator[Any]:
    names = [f"unit {number}" for number in range(len(tables))]
    total = UnitAccumulator(protocol, facts, names)
    for name, one in zip(names, tables):
        total.update(UnitCounts(name, one))
    return total


def close(value: Any) -> Any:
    return pytest.approx(value, abs=1e-12, rel=0)


# ── HOTA, CLEAR and identity ────────────────────────────────────────────────


def compared(*frames: tuple[list[int], list[int], Any]) -> list[ComparedFrame]:
    return [
        ComparedFrame(np.array(one, int), np.array(two, int), np.array(table, float).reshape(len(one), len(two)))
        for one, two, table in frames
    ]


def sampled(seed: int) -> list[ComparedFrame]:
    """Some frames with objects and predictions that come and go, and similarities without ties."""
    rng, frames = np.random.default_rng(seed), []
    for _ in range(9):
        one, two = (np.flatnonzero(rng.random(4) < 0.7).tolist() for _ in range(2))
        table = rng.random((len(one), len(two))) * (rng.random((len(one), len(two))) < 0.6)
        frames.append((one, two, table))
    return compared(*frames, (list(range(4)), list(range(4)), np.eye(4) * rng.random(4)))


def hota_of(frames: list[ComparedFrame], alpha: float) -> list[float]:
    """Return matched, missed, surplus, AssA, AssRe, AssPr and LocA, summed, pair by pair as the paper says."""
    truths = np.bincount(np.concatenate([one.truth for one in frames]))
    sent = np.bincount(np.concatenate([one.prediction for one in frames]))
    joint = np.zeros((len(truths), len(sent)))
    for one in frames:
        for (i, row), (j, column) in itertools.product(enumerate(one.truth), enumerate(one.prediction)):
            s = one.similarity[i, j]
            if s > 0:
                joint[row, column] += s / (one.similarity[i].sum() + one.similarity[:, j].sum() - s)
    aligned = joint / (truths[:, None] + sent - joint)
    hits: dict[Any, int] = {}
    total = 0.0
    for one in frames:
        score = aligned[one.truth][:, one.prediction] * one.similarity
        for at, its in zip(*linear_sum_assignment(score, maximize=True)):
            if score[at, its] > 0 and one.similarity[at, its] >= alpha - 1e-15:
                pair = one.truth[at], one.prediction[its]
                hits[pair] = hits.get(pair, 0) + 1
                total += one.similarity[at, its]
    count = sum(hits.values())
    shares = [
        sum(c * c / of(i, j, c) for (i, j), c in hits.items())
        for of in (lambda i, j, c: truths[i] + sent[j] - c, lambda i, j, c: truths[i], lambda i, j, c: sent[j])
    ]
    return [count, truths.sum() - count, sent.sum() - count, *shares, total]


@pytest.mark.parametrize("seed", range(12))
def test_hota_is_what_the_paper_says_at_each_alpha(seed: int) -> None:
    found = tracks_counting.count_hota(sampled(seed))
    for place in range(19):
        assert found[:, place].tolist() == close(hota_of(sampled(seed), 0.05 * (place + 1)))


def clear_of(frames: list[ComparedFrame]) -> list[float]:
    """Return matched, missed, surplus, switches, similarity and identical, frame by frame."""
    matched, switches, total, objects, sent = 0, 0, 0.0, 0, 0
    last: dict[int, int] = {}
    before: dict[int, int] = {}
    together: Any = np.zeros((9, 9))
    for one in frames:
        objects, sent = objects + len(one.truth), sent + len(one.prediction)
        if not len(one.truth) or not len(one.prediction):
            continue
        together[one.truth[:, None], one.prediction] += one.similarity >= 0.5
        score = np.where(one.similarity >= 0.5, one.similarity, 0)
        for i, j in itertools.product(range(len(one.truth)), range(len(one.prediction))):
            if score[i, j] and before.get(one.truth[i]) == one.prediction[j]:
                score[i, j] += 1000
        now = {
            one.truth[i]: (one.prediction[j], one.similarity[i, j])
            for i, j in zip(*linear_sum_assignment(score, maximize=True))
            if score[i, j]
        }
        before = {key: number for key, (number, _) in now.items()}
        switches += sum(last.get(key, number) != number for key, number in before.items())
        last.update(before)
        matched, total = matched + len(now), total + sum(share for _, share in now.values())
    identical = together[linear_sum_assignment(together, maximize=True)].sum()
    return [matched, objects - matched, sent - matched, switches, total, identical]


@pytest.mark.parametrize("seed", range(40))
def test_clear_and_identity_are_what_the_papers_say(seed: int) -> None:
    frames = [
        ComparedFrame(one.truth, one.prediction, np.where(one.similarity > 0, one.similarity / 2 + 0.4, 0))
        for one in sampled(seed)
    ]
    assert tracks_counting._count_clear(frames).tolist() == close(clear_of(frames))


def test_a_pair_of_exactly_the_threshold_matches() -> None:
    exact = compared(([0], [0], [[0.5]]))
    assert tracks_counting._count_clear(exact).tolist() == [1, 0, 0, 0, 0.5, 1]
    assert tracks_counting.count_hota(exact)[0].tolist() == [1] * 10 + [0] * 9
    assert tracks_counting.count_hota(compared(([0], [0], [[0.0]])))[0].tolist() == [0] * 19


def test_the_match_of_the_frame_before_is_kept_over_a_better_one_and_over_frames_without_detections() -> None:
    kept = compared(([0], [0, 1], [[0.9, 0.0]]), ([0], [], []), ([], [0], []), ([0], [0, 1], [[0.6, 0.8]]))
    assert tracks_counting._count_clear(kept).tolist() == [2, 1, 3, 0, 1.5, 2]
    lost = compared(([0, 1], [0, 1], [[0.9, 0], [0, 0]]), ([1], [1], [[0.7]]), ([0], [0, 1], [[0.6, 0.8]]))
    assert tracks_counting._count_clear(lost).tolist() == close([3, 1, 2, 1, 2.4, 3])


def test_a_return_to_a_number_after_another_is_two_switches() -> None:
    frames = compared(*(([0], [number], [[1.0]]) for number in (0, 1, 0)))
    assert tracks_counting._count_clear(frames).tolist() == [3, 0, 0, 2, 3, 2]


def test_without_a_side_all_of_the_other_is_wrong() -> None:
    for one, two, expected in (([0, 1], [], [0, 2, 0]), ([], [0], [0, 0, 1]), ([], [], [0, 0, 0])):
        frames = compared((one, two, []))
        assert tracks_counting.count_hota(frames)[:3].T.tolist() == [expected] * 19
        assert tracks_counting._count_clear(frames).tolist() == [*expected, 0, 0, 0]
    assert tracks_counting.count_categories([])["hota"].shape == (0, 7, 19)


@pytest.mark.parametrize("seed", range(60))
def test_assignments_found_without_a_solver_are_the_solvers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    quality = rng.random(rng.integers(1, 5, 2))
    quality *= rng.random(quality.shape) < rng.random()
    rows, columns = tracks_counting._find_best_pairs(quality)
    expected = linear_sum_assignment(quality, maximize=True)
    chosen = [[(i, j) for i, j in zip(*pairs) if quality[i, j] > 0] for pairs in ((rows, columns), expected)]
    assert chosen[0] == chosen[1]


def test_hota_and_its_parts_follow_from_the_counts() -> None:
    counts = np.tile(np.array([[8, 2, 8, 4, 6, 5, 6]], float).T, 19)
    found = {name: one.tolist() for name, one in tracks_counting.measure_hota(counts).items()}
    det = 8 / 18
    expected = {
        "DetA": det, "DetRe": 0.8, "DetPr": 0.5, "AssA": 0.5, "AssRe": 0.75, "AssPr": 0.625, "LocA": 0.75,
        "HOTA": math.sqrt(det / 2), "OWTA": math.sqrt(0.4),
    }  # fmt: skip
    assert found == {name: [pytest.approx(value)] * 19 for name, value in expected.items()}
    nothing = {name: set(one.tolist()) for name, one in tracks_counting.measure_hota(np.zeros((7, 19))).items()}
    assert nothing == {name: {1.0 if name == "LocA" else 0.0} for name in expected}


def test_clear_and_idf1_follow_from_the_counts() -> None:
    found = tracks._clear_values(np.array([8, 2, 3, 1, 6, 5], float))
    assert found == {"sMOTSA": 0.2, "MOTSA": 0.4, "MOTSP": 0.75, "IDSW": 1, "IDF1": 10 / 21}
    one = tracks._clear_values(np.array([0, 0, 1, 0, 0, 0], float))
    assert found.keys() == one.keys()
    assert list(one.values()) == [-1, -1, 0, 0, 0]


def filled(category: list[int], hota: list[Any], clear: list[Any], **more: Any) -> Any:
    table = np.tile(np.array(hota, float).reshape(-1, 7, 1), 19)
    return {"classes": np.array(category), "hota": table, "clear": np.array(clear, float).reshape(-1, 6), **more}


def test_counts_of_sequences_are_summed_and_categories_averaged() -> None:
    half = filled([1], [[1, 1, 0, 1, 1, 1, 1]], [[1, 1, 0, 0, 1, 1]])
    whole = filled([0, 1], [[2, 0, 0, 2, 2, 2, 2], [1, 1, 0, 1, 1, 1, 1]], [[2, 0, 0, 0, 2, 2], [1, 1, 0, 0, 1, 1]])
    total = accumulated(TRACKS_PROTOCOLS["kitti-mots"], {}, half, whole)
    found = tracks.values(total)
    assert list(found) == list(TRACKS_PROTOCOLS["kitti-mots"].metrics)
    assert [found[name] for name in ("DetA-car", "DetA-pedestrian", "DetA", "MOTSA")] == [1, 0.5, 0.75, 0.75]
    rows = tracks.tables(total)["categories"]
    assert [(row["id"], row["name"], row["sMOTSA"]) for row in rows] == [(1, "car", 1), (2, "pedestrian", 0.5)]


def track(place: int, score: float, hits: int, loose: int = 0) -> list[float]:
    """Return a predicted track that matches at so many thresholds, from the lowest."""
    return [place, score, (1 << hits) - 1, loose]


def test_ap_of_tracks_can_be_worked_out_by_hand() -> None:
    rows = np.array([track(0, 0.2, 10), track(0, 0.9, 10), track(0, 0.5, 0)], float)
    # recall 1/4 at precision 1, 2/4 at 2/3: 26 and 25 of the 101 recalls
    assert tracks._average_precision(rows, 4) == pytest.approx((26 + 25 * 2 / 3) / 101)
    loose = np.array([track(0, 0.2, 10), track(0, 0.9, 10), track(0, 0.5, 0, 1)], float)
    assert tracks._average_precision(loose, 4) == pytest.approx(51 / 101)
    assert tracks._average_precision(np.array([track(0, 1, 3)], float), 1) == pytest.approx(0.3)
    assert tracks._average_precision(np.zeros((0, 4)), 3) == tracks._average_precision(rows, 0) == 0


def test_of_equal_scores_the_track_that_was_counted_first_comes_first() -> None:
    rows = np.array([track(0, 0.5, 10), track(0, 0.5, 0)], float)
    assert tracks._average_precision(rows, 1) == pytest.approx(1)
    assert tracks._average_precision(rows[::-1], 1) == pytest.approx(0.5)


def test_burst_averages_common_and_uncommon_categories_apart() -> None:
    nothing = [[0] * 7] * 2, [[0] * 6] * 2
    first = filled(
        [0, 1], *nothing, objects=np.array([1, 1]), tracks=np.array([track(0, 1, 10), track(1, 1, 5)], float)
    )
    second = filled(
        [0, 2], *nothing, objects=np.array([1, 1]), tracks=np.array([track(2, 1, 4), track(0, 1, 10)], float)
    )
    facts = {"classes": [("a", 4), ("b", 5), ("c", 6)]}
    found = tracks.values(accumulated(TRACKS_PROTOCOLS["burst"], facts, first, second))
    assert list(found) == list(TRACKS_PROTOCOLS["burst"].metrics)
    assert [found[f"AP{group}"] for group in ("", "-common", "-uncommon")] == [
        pytest.approx(value) for value in (1.9 / 3, 1, 0.45)
    ]
    common = tracks.values(accumulated(TRACKS_PROTOCOLS["burst"], {"classes": facts["classes"][:1]}, {
        **filled([0], [[0] * 7], [[0] * 6]), "objects": np.array([1]), "tracks": np.zeros((0, 4)),
    }))  # fmt: skip
    assert (common["AP"], common["AP-common"], common["AP-uncommon"]) == (0, 0, None)


# ── what is counted of tracks ───────────────────────────────────────────────

WIDTH = 20


def bar(start: int, length: int) -> str:
    """Return the run lengths of neighbouring pixels in an image of one row."""
    return rle.compress([start, length, WIDTH - start - length])


def sequence(protocol: str, frames: list[tuple[Any, Any]], **facts: list[int]) -> tracks_counting.ComparedSequence:
    """Return a sequence of frames with rows (number, category, start, length[, score]) of both sides."""

    def rows(side: Any) -> Any:
        return [[number, kind, bar(start, length), *score] for number, kind, start, length, *score in side]

    truth = [TruthFrame(str(at), (1, WIDTH), rows(real), no_pixels) for at, (real, _) in enumerate(frames)]
    sent = [rows(side) for _, side in frames]
    given = {"neg": [], "loose": [], **facts}
    return tracks_counting.ComparedSequence(
        truth, (sent, tracks_counting.masks_of(truth, sent)), TRACKS_PROTOCOLS[protocol], given
    )


def clear_in(protocol: str, frames: list[tuple[Any, Any]], category: int = 2, **facts: list[int]) -> Any:
    """Return matched, missed and surplus."""
    one = sequence(protocol, frames, **facts).compare(category)
    return tracks_counting._count_clear(one)[:3].tolist()


def test_a_prediction_that_is_half_ignored_still_counts_and_one_that_is_more_does_not() -> None:
    ignored = (10000, 10, 0, 6)
    assert clear_in("mots", [([ignored], [(1, 2, 3, 6)])]) == [0, 0, 1]
    assert clear_in("mots", [([ignored], [(1, 2, 3, 5)])]) == [0, 0, 0]
    assert clear_in("mots", [([ignored, (5, 2, 3, 5)], [(1, 2, 3, 5)])]) == [1, 0, 0]
    assert clear_in("mots", [([(5, 2, 3, 5)], [])]) == [0, 1, 0]
    both = [(10000, 10, 0, 2), (10000, 10, 4, 2), (5, 2, 8, 4)]
    assert clear_in("mots", [(both, [(1, 2, 0, 6), (2, 2, 8, 3)])]) == [1, 0, 0]


def test_ignored_regions_do_not_excuse_in_frames_in_which_all_predictions_are_outside() -> None:
    assert clear_in("mots", [([(10000, 10, 0, 6), (5, 2, 8, 4)], [(1, 2, 12, 6)])]) == [0, 1, 1]


def test_another_category_is_another_track() -> None:
    frames: Any = [([(1, 1, 0, 5), (2, 2, 5, 5)], [(7, 1, 0, 5), (8, 2, 5, 5)]), ([], [(8, 2, 0, 3)])]
    assert clear_in("kitti-mots", frames, 1) == [1, 0, 0]
    assert clear_in("kitti-mots", frames, 2) == [1, 0, 1]
    tables = sequence("kitti-mots", frames[:1]).tables([("car", 1), ("bus", 3), ("pedestrian", 2)])
    assert tables["classes"].tolist() == [0, 2]
    assert tables["clear"].tolist() == [[1, 0, 0, 0, 1, 1]] * 2
    assert "tracks" not in tables


def test_a_similarity_is_the_iou_of_masks_or_of_the_boxes_around_them() -> None:
    frames: Any = [([(1, 2, 0, 8)], [(1, 2, 2, 8, 1.0)])]
    for protocol, number in (("mots", 6 / 10), ("burst", 6 / 10), ("burst-official", 6 / 10)):
        (one,) = sequence(protocol, frames).compare(2)
        assert one.similarity.tolist() == [[close(number)]]
    hollow = rle.compress([0, 2, 16, 2])
    truth = [TruthFrame("0", (1, WIDTH), [[1, 2, hollow]], no_pixels)]
    sent = [[[1, 2, bar(0, WIDTH), 1.0]]]
    for protocol, number in (("burst", 0.2), ("burst-official", 1.0)):
        both = tracks_counting.ComparedSequence(
            truth, (sent, tracks_counting.masks_of(truth, sent)), TRACKS_PROTOCOLS[protocol], {"neg": [], "loose": []}
        )
        assert both.compare(2)[0].similarity.tolist() == [[close(number)]]


def test_burst_counts_false_alarms_where_the_category_is_known_to_be_absent() -> None:
    other, alarm = (1, 9, 0, 4), (7, 2, 10, 4, 1.0)
    assert clear_in("burst", [([other], [alarm])]) == [0, 0, 0]
    assert clear_in("burst", [([other], [alarm])], neg=[2]) == [0, 0, 1]
    assert clear_in("burst", [([other], [alarm])], neg=[2], loose=[2]) == [0, 0, 0]
    assert clear_in("burst-exemplar-guided", [([other], [alarm])]) == [0, 0, 1]
    assert clear_in("burst", [([], [alarm])], neg=[2]) == [0, 0, 0]
    assert clear_in("burst", [([other, (2, 2, 0, 2)], [alarm])]) == [0, 1, 1]
    found = [([(2, 2, 0, 4)], [(8, 2, 0, 4, 1.0), alarm])]
    assert clear_in("burst", found) == [1, 0, 1]
    assert clear_in("burst", found, loose=[2]) == [1, 0, 0]
    assert clear_in("burst", [([(2, 2, 0, 4)], [(8, 2, 0, 8, 1.0)])], loose=[2]) == [1, 0, 0]
    assert clear_in("burst", [([(2, 2, 0, 4)], [(8, 2, 0, 9, 1.0)])], loose=[2]) == [0, 1, 0]


def bits_of(one: tracks_counting.ComparedSequence, category: int = 2) -> Any:
    """Return score and the number of thresholds matched of each track."""
    return [(score, f"{int(bits):b}".count("1")) for _, score, bits, _ in one.match_tracks(0, category).tolist()]


def test_a_track_matches_at_its_iou_over_all_frames() -> None:
    frames = [([(1, 2, 0, 10)], [(7, 2, 0, 10, 0.9)]), ([(1, 2, 0, 4)], [(7, 2, 0, 9, 0.5)]), ([], [(7, 2, 0, 1, 0.1)])]
    # 14 pixels of 20 in common: .50 to .70, the last one included
    one = sequence("burst", frames, neg=[2])
    assert bits_of(one) == [(close(0.5), 5)]
    assert one.match_tracks(3, 2).tolist() == [[3, close(0.5), 31, 0]]
    assert sequence("burst", frames, loose=[2]).match_tracks(0, 2)[0, 3] == 1
    tables = one.tables([("x", 9), ("y", 2)])
    assert (tables["classes"].tolist(), tables["objects"].tolist()) == ([1], [1])
    assert tables["tracks"][:, 0].tolist() == [1]


def test_the_best_scored_track_takes_its_object_and_of_equal_objects_the_last_is_taken() -> None:
    frames = [([(1, 2, 0, 10)], [(7, 2, 0, 10, 0.3), (8, 2, 0, 5, 0.8), (9, 9, 0, 4, 1.0)])]
    assert bits_of(sequence("burst", frames)) == [(0.8, 1), (0.3, 9)]
    assert tracks_counting._find_best_object(np.array([0.6, 0.6, 0.5]), np.ones(3, bool), 0.5) == 1
    assert tracks_counting._find_best_object(np.array([0.6, 0.7, 0.6]), np.array([True, False, True]), 0.5) == 2
    assert tracks_counting._find_best_object(np.array([0.4, 0.7]), np.array([True, False]), 0.5) == -1
    assert tracks_counting._find_best_object(np.array([0.9, 0.6]), np.ones(2, bool), 0.5) == 0
    assert tracks_counting._find_best_object(np.array([1 - 1e-10]), np.ones(1, bool), 1.0) == 0


def test_tracks_of_a_category_that_is_neither_there_nor_known_to_be_absent_do_not_count() -> None:
    frames = [([(1, 9, 0, 10)], [(7, 2, 0, 10, 0.3)])]
    assert bits_of(sequence("burst", frames)) == []
    assert bits_of(sequence("burst", frames, neg=[2])) == [(0.3, 0)]


def test_scores_of_tracks_are_means_over_their_own_masks_and_ties_stay_in_order() -> None:
    sent = [(5, 2, 12, 2, 0.2), (4, 9, 16, 2, 1.0), (3, 2, 0, 4, 0.4)]
    frames: Any = [([(1, 2, 0, 4)], sent), ([], [(5, 2, 12, 2, 0.6)])]
    assert bits_of(sequence("burst", frames)) == [(0.4, 0), (0.4, 10)]


def test_the_first_frame_in_which_predictions_share_pixels_is_named() -> None:
    frames = [TruthFrame(name, (1, WIDTH), [], no_pixels) for name in ("00", "07", "09")]
    sent = [
        [[1, 2, bar(0, 5)], [2, 2, bar(5, 5)]],
        [[3, 2, bar(0, 4)], [4, 2, bar(4, 4)], [5, 2, bar(7, 4)]],
        [[6, 2, bar(0, 5)], [7, 2, bar(0, 5)]],
    ]
    problems = Problems()
    masks = tracks_counting.masks_of(frames, sent)
    tracks_counting.check_disjoint("walk", frames, sent, masks, problems)
    assert [str(one) for one in problems] == [
        "walk, frame 07: tracks 4 and 5 share pixels. Give each pixel to one track."
    ]
    fine = Problems()
    tracks_counting.check_disjoint("walk", frames[:1], sent[:1], tracks_counting.masks_of(frames[:1], sent[:1]), fine)
    assert not fine


# ── semantic segmentation ───────────────────────────────────────────────────

FEW = SemanticProtocol("few", "", classes=4, refused_from=4, windows=(2, 3))


def clip(seed: int, frames: int = 6) -> list[tuple[Any, Any]]:
    """Return frames whose labels often stay as they are; 9 and 4 are void."""
    rng, found = np.random.default_rng(seed), []
    real, sent = rng.choice([0, 1, 2, 9], (4, 6)), rng.integers(0, 4, (4, 6))
    for _ in range(frames):
        found.append((real.astype(np.uint8), sent.astype(np.uint8)))
        real = np.where(rng.random((4, 6)) < 0.7, real, rng.choice([0, 1, 2, 4, 9], (4, 6)))
        sent = np.where(rng.random((4, 6)) < 0.7, sent, rng.integers(0, 4, (4, 6)))
    return found


@pytest.mark.parametrize("without_last", [False, True])
def test_consistency_and_accuracy_are_what_their_words_say(without_last: bool) -> None:
    protocol = SemanticProtocol("few", "", classes=4, refused_from=4, windows=(2, 3), without_last=without_last)
    clips = [clip(seed) for seed in range(4)]
    total = accumulated(protocol, {}, *(semantic.count_maps(iter(one), len(one), protocol) for one in clips))
    expected: dict[str, Any] = {}
    for length in (2, 3):
        ratios = []
        for one in clips:
            real, sent = (np.stack(side) for side in zip(*one))
            for start in range(len(one) - length + 1 - without_last):
                same, both = ((side[start : start + length] == side[start]).all(0) for side in (real, sent))
                ratios.append((same & both).sum() / same.sum())
        expected[f"VC{length}"] = float(np.mean(ratios))
    real, sent = (np.concatenate([frame[side].ravel() for one in clips for frame in one]) for side in (0, 1))
    known = real < 4
    real, sent = real[known], sent[known]
    assert 3 not in real
    hit = [np.count_nonzero((real == k) & (sent == k)) for k in range(3)]
    union = [np.count_nonzero((real == k) | (sent == k)) for k in range(4)]
    ious, shares = [a / b for a, b in zip(hit, union)], [np.mean(real == k) for k in range(3)]
    expected["mIoU"], expected["Acc"] = np.mean(ious), np.mean(real == sent)
    expected["Acc_class"] = np.mean([a / np.count_nonzero(real == k) for k, a in enumerate(hit)])
    expected["fwIoU"] = np.sum(np.multiply(ious, shares))
    assert semantic.values(total) == {name: close(value) for name, value in expected.items()}
    rows = semantic.tables(total)["categories"]
    assert rows[:-1] == [{"id": k, "name": str(k), "IoU": close(iou)} for k, iou in enumerate(ious)]
    assert rows[-1] == {"id": 3, "name": "3", "IoU": None}


def test_a_clip_as_long_as_a_window_has_one_and_a_shorter_one_none() -> None:
    label = np.ones((1, 1), np.uint8)
    for frames, found in ((1, (0, 0)), (2, (1, 0)), (3, (2, 1)), (4, (3, 2))):
        tables = semantic.count_maps([(label, label)] * frames, frames, FEW)
        assert (len(tables["VC2"]), len(tables["VC3"])) == found
        assert tables["VC2"].tolist() == [[1, 1]] * found[0]


def test_what_has_no_class_or_no_window_has_no_value() -> None:
    void = np.full((1, 2), 9, np.uint8)
    found = semantic.values(accumulated(FEW, {}, semantic.count_maps([(void, void)] * 2, 2, FEW)))
    assert found == {"mIoU": None, "VC2": 1.0, "VC3": None, "Acc": None, "Acc_class": None, "fwIoU": None}
    moving = [(np.full((1, 1), k, np.uint8), void[:, :1]) for k in (1, 2)]
    still = [(void[:, :1], np.full((1, 1), k, np.uint8)) for k in (1, 2)]
    tables = [semantic.count_maps(one, 2, FEW) for one in (moving, still)]
    assert [one["VC2"].tolist() for one in tables] == [[[0, 0]], [[0, 1]]]
    total = UnitAccumulator(FEW, {}, ["a"])
    total.update(UnitCounts("a", tables[1]))
    assert semantic.values(total)["VC2"] == 0


def test_a_pixel_that_stays_for_more_frames_than_a_byte_counts_still_stays() -> None:
    steps, label = semantic._LabelAges(), np.array([[3, 4]], np.uint8)
    kept = []
    for _ in range(300):
        steps.add(label)
        kept.append(steps.ages.tolist())
    assert kept == [[[min(k, 255)] * 2] for k in range(1, 301)]
    steps.add(np.array([[3, 5]], np.uint8))
    assert steps.ages.tolist() == [[255, 1]]
    steps.add(np.array([[3]], np.uint8))
    assert steps.ages.tolist() == [[1]]


def test_labels_that_are_no_classes_are_refused_where_they_would_be_scored() -> None:
    for real, sent, wrong in ((3, 3, False), (4, 4, False), (9, 7, False), (3, 4, True), (0, 9, True)):
        labels, truth = np.array([[sent, 0]], np.uint8), np.array([[real, 0]], np.uint8)
        if wrong:
            with pytest.raises(Flaw, match=f"holds the label {sent} where the truth is not void"):
                semantic.check_labels(labels, truth, FEW)
        else:
            semantic.check_labels(labels, truth, FEW)


# ── panoptic segmentation ───────────────────────────────────────────────────

THINGS = [True, True, False]
PQ_FACTS = {"categories": [(10, "dog", True), (20, "cat", True), (30, "sky", False)]}
#: Ids of each side: their category, and whether they are a crowd.
REAL = {5: (0, 0), 6: (0, 0), 7: (1, 0), 8: (2, 0), 9: (0, 1), 11: (0, 1)}
SENT = {5: 0, 6: 0, 7: 1, 8: 2, 9: 0, 12: 1}


def painted(seed: int, frames: int = 4) -> list[tuple[Any, Any]]:
    """Return maps of blocks; the prediction is the truth of other ids in some places."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(frames):
        real = rng.choice([0, 5, 6, 7, 8, 9, 11], (4, 4)).repeat(3, 0).repeat(3, 1)
        sent = np.where(rng.random((4, 4)) < 0.8, real[::3, ::3], rng.choice([0, *SENT], (4, 4)))
        sent = np.where(sent == 11, 9, sent).repeat(3, 0).repeat(3, 1)
        found.append((real, np.where(rng.random((12, 12)) < 0.9, sent, 0)))
    return found


def framed(real: Any, sent: Any, *, boundary: bool = False) -> panoptic_counting.FrameTable:
    """Return the table of a frame, whose truth lists segments from the largest id down."""
    rows = [[k, *REAL[k], int((real == k).sum())] for k in sorted(REAL, reverse=True) if (real == k).any()]
    frame = TruthFrame("0", real.shape, rows, lambda: LabelMap(real.astype(np.uint32)))
    listed = PredictedFrame("0.png", {k: SENT[k] for k in np.unique(sent).tolist() if k})
    return panoptic_counting.count_frame(frame, listed, sent.astype(np.uint32), boundary=boundary)


def edge_of(labels: Any) -> Any:
    """Return pixels with another label, or the border, at most one pixel away."""
    wide = np.pad(labels, 1, constant_values=-1)
    near = [wide[1 + y : 13 + y, 1 + x : 13 + x] for y, x in itertools.product((-1, 0, 1), repeat=2)]
    return (np.stack(near) != labels).any(0)


def quality_of(maps: list[tuple[Any, Any]], *, boundary: bool = False) -> Any:
    """Return sum of IoUs, matched, surplus and missed of each category of stacked maps, segment by segment."""
    real, sent = (np.stack(side) for side in zip(*maps))
    counts = np.zeros((3, 4))
    met: tuple[set[int], set[int]] = (set(), set())
    edges = [np.stack([edge_of(one) for one in side]) for side in (real, sent)]

    def iou(i: int, j: int, inside: Any = (True, True)) -> float:
        one, two = (real == i) & inside[0], (sent == j) & inside[1]
        void = (real == 0) & inside[0]
        return float((one & two).sum() / ((one | two).sum() - (two & void).sum()))

    for i, j in itertools.product(REAL, SENT):
        if not ((real == i) & (sent == j)).any() or REAL[i] != (SENT[j], 0):
            continue
        share = min(iou(i, j), iou(i, j, edges)) if boundary else iou(i, j)
        if share > 0.5:
            counts[SENT[j], :2] += share, 1
            met[0].add(i)
            met[1].add(j)
    for i, (category, crowd) in REAL.items():
        counts[category, 3] += bool((real == i).any() and not crowd and i not in met[0])
    last = 9 if (real == 9).any() else 11  # listed from the largest down
    for j, category in SENT.items():
        mine = sent == j
        excused = (real == 0) | ((real == last) & (category == 0))
        counts[category, 2] += bool(mine.any() and j not in met[1] and (mine & excused).sum() / mine.sum() <= 0.5)
    return counts


@pytest.mark.parametrize("seed", range(12))
def test_segments_match_and_are_excused_as_the_official_rules_say(seed: int) -> None:
    ((real, sent),) = painted(seed, 1)
    found = panoptic_counting._count_segments(framed(real, sent), 3)
    assert found.tolist() == [close(row) for row in quality_of([(real, sent)]).tolist()]
    bounded = panoptic_counting._count_segments(framed(real, sent, boundary=True), 3)
    assert bounded.tolist() == [close(row) for row in quality_of([(real, sent)], boundary=True).tolist()]


def lasting(seed: int) -> list[tuple[Any, Any]]:
    """Return a video in which not all ids are in all frames."""
    maps = painted(seed, 1)
    for more in painted(seed + 100, 3):
        place = np.arange(12) < 6
        maps.append((np.where(place, maps[-1][0], more[0]), np.where(place, maps[-1][1], more[1])))
    return maps


@pytest.mark.parametrize("seed", range(6))
def test_windows_are_scored_as_stacked_pixels(seed: int) -> None:
    protocol = PanopticProtocol("x", "", windows=(1, 2, 4, 5), video=True)
    maps = lasting(seed)
    # one crowd in the whole video: which of two is listed last depends on the window
    maps = [(np.where(real == 11, 9, real), sent) for real, sent in maps]
    found = panoptic_counting.count_frames((framed(*one) for one in maps), protocol, THINGS)["quality"]
    for row, length in enumerate((1, 2, 4)):
        expected = sum(quality_of(maps[at : at + length]) for at in range(5 - length))
        assert found[row].tolist() == [close(one) for one in expected.tolist()]
    assert not found[3].any()


def stq_of(videos: list[list[tuple[Any, Any]]], *, without_first: bool) -> tuple[float, float]:
    """Return the association and the segmentation quality, tube by tube."""
    tubes, total = 0, 0.0
    pairs: dict[tuple[int, int], int] = {}
    for maps in videos:
        real, sent = (np.stack(side) for side in zip(*maps))
        kind, other = (np.vectorize(lambda k, of=of: of.get(k, 3))(side) for side, of in (
            (real, {k: one for k, (one, _) in REAL.items()}), (sent, SENT),
        ))  # fmt: skip
        first = max(np.unique(real[0])) if without_first else -1
        crowd = (real == first) & (kind < 2)
        for g in [k for k in np.unique(real) if k in REAL and REAL[k][0] < 2 and (k != first)]:
            mine = (real == g) & ~crowd
            tubes += 1
            for p in [k for k in np.unique(sent[mine]) if k and SENT[k] < 2]:
                its = (sent == p) & ~crowd
                both = (mine & its).sum()
                total += both * both / (mine | its).sum() / mine.sum()
        for i, j in zip(kind.ravel().tolist(), other.ravel().tolist()):
            pairs[i, j] = pairs.get((i, j), 0) + (i != 3)
    ious = []
    for k in range(4):
        union = sum(count for (i, j), count in pairs.items() if k in (i, j))
        ious += [pairs.get((k, k), 0) / union] if union else []
    return total / tubes, sum(ious) / len(ious)


@pytest.mark.parametrize("name", ["vipseg", "vipseg-official"])
def test_stq_is_what_its_words_say(name: str) -> None:
    protocol = PANOPTIC_PROTOCOLS[name]
    for seed in range(3):
        videos = [lasting(seed), painted(seed + 50)]
        counts = [panoptic_counting.count_frames((framed(*one) for one in maps), protocol, THINGS) for maps in videos]
        total = accumulated(protocol, PQ_FACTS, *counts)
        found = panoptic.values(total)
        quality, iou = stq_of(videos, without_first=name == "vipseg-official")
        assert (found["AQ"], found["IoU"], found["STQ"]) == (
            close(quality),
            close(iou),
            close(math.sqrt(quality * iou)),
        )
        assert list(found) == list(protocol.metrics)
        assert found["VPQ8"] is None
        assert found["VPQ"] is None
        assert found["VPQ4"] is not None


def test_a_video_without_any_thing_has_an_association_of_nothing() -> None:
    sky = np.full((12, 12), 8)
    protocol = PANOPTIC_PROTOCOLS["vipseg"]
    counts = panoptic_counting.count_frames([framed(sky, sky)], protocol, THINGS)
    found = panoptic.values(accumulated(protocol, PQ_FACTS, counts))
    assert (found["STQ"], found["AQ"], found["IoU"], found["VPQ1"]) == (0, 0, 1, 1)
    void = panoptic_counting.count_frames([framed(sky * 0, sky)], protocol, THINGS)
    found = panoptic.values(accumulated(protocol, PQ_FACTS, void))
    assert (found["STQ"], found["AQ"], found["IoU"], found["VPQ1"]) == (None, None, None, None)


def test_qualities_follow_from_the_counts_and_are_averaged_by_group() -> None:
    counts = np.array([[[1.5, 2, 1, 3], [0, 0, 0, 1], [0, 0, 0, 0]]])
    total = accumulated(PANOPTIC_PROTOCOLS["coco-panoptic"], PQ_FACTS, {"quality": counts}, {"quality": counts})
    assert panoptic.values(total) == {
        "PQ": 0.1875, "SQ": 0.375, "RQ": 0.25, "PQ-Things": 0.1875, "SQ-Things": 0.375, "RQ-Things": 0.25,
        "PQ-Stuff": None, "SQ-Stuff": None, "RQ-Stuff": None,
    }  # fmt: skip
    assert panoptic.tables(total)["categories"] == [
        {"id": 10, "name": "dog", "PQ": 0.375, "SQ": 0.75, "RQ": 0.5, "matched": 4, "surplus": 2, "missed": 6},
        {"id": 20, "name": "cat", "PQ": 0, "SQ": 0, "RQ": 0, "matched": 0, "surplus": 0, "missed": 2},
        {"id": 30, "name": "sky", "PQ": None, "SQ": None, "RQ": None, "matched": 0, "surplus": 0, "missed": 0},
    ]
    stuff = accumulated(PANOPTIC_PROTOCOLS["coco-panoptic"], PQ_FACTS, {"quality": counts[:, ::-1]})
    found = panoptic.values(stuff)
    assert (found["PQ"], found["PQ-Things"], found["PQ-Stuff"]) == (0.1875, 0, 0.375)


def test_a_mean_over_all_windows_or_subsets_is_one_of_all_or_nothing() -> None:
    assert mean_of_all([0.5, 1.0, 0.0]) == 0.5
    assert mean_of_all([0.5, None]) is None


def test_half_is_no_match_and_half_in_void_is_no_excuse() -> None:
    real, sent = np.zeros((12, 12), int), np.zeros((12, 12), int)
    real[0, :4], sent[0, :2] = 5, 5
    real[2, :2], sent[2, :4] = 6, 7
    real[2, 2:4] = 8
    sent[4, :4], real[4, :2] = 12, 8
    found = panoptic_counting._count_segments(framed(real, sent), 3)
    assert found.tolist() == [[0, 0, 1, 2], [0, 0, 2, 0], [0, 0, 0, 1]]
    real[4, 1] = 0
    assert panoptic_counting._count_segments(framed(real, sent), 3)[1, 2] == 1


def test_the_area_of_the_truth_is_the_one_that_it_lists() -> None:
    maps = LabelMap(np.full((2, 2), 5, np.uint32))
    for area, iou in ((4, 1.0), (5, 4 / 5), (8, 0.0), (0, 0.0)):
        frame = TruthFrame("0", (2, 2), [[5, 0, 0, area]], lambda: maps)
        table = panoptic_counting.count_frame(
            frame, PredictedFrame("0.png", {9: 0}), np.full((2, 2), 9), boundary=False
        )
        counts = panoptic_counting._count_segments(table, 1)
        assert counts.tolist() == ([[iou, 1, 0, 0]] if iou else [[0, 0, 1, 1]])


@pytest.mark.parametrize("size", [(1, 1), (2, 9), (3, 3), (90, 120), (4, 5), (5, 4)])
def test_inner_pixels_have_a_whole_square_of_their_own_label(size: tuple[int, int]) -> None:
    labels = np.random.default_rng(3).integers(0, 2, (9, 12)).repeat(10, 0).repeat(10, 1)[: size[0], : size[1]]
    labels = labels if size[0] > 9 else labels * 0
    reach = max(1, round(0.02 * math.hypot(*size)))
    wide, side = np.pad(labels, reach, constant_values=-1), 2 * reach + 1
    expected = np.ones(size, bool)
    for y, x in itertools.product(range(side), repeat=2):
        expected &= wide[y : y + size[0], x : x + size[1]] == labels
    bounds = panoptic_counting._keep_boundaries(LabelMap(labels.astype(np.uint32) + 1)).numbers
    assert bounds.tolist() == np.where(expected, 1 << 24, labels + 1).tolist()
    assert panoptic_counting._keep_boundaries(LabelMap(labels * 0, np.array([0]))).numbers.max() == 0


# ── overlaps of masks and boxes ─────────────────────────────────────────────


def text_of(mask: Any) -> str:
    """Return the run lengths of a mask, down its columns."""
    flat = np.append(False, mask.ravel(order="F"))
    return rle.compress(np.diff(np.append(np.append(0, np.flatnonzero(flat[1:] != flat[:-1])), mask.size)).tolist())


def masks_of(masks: list[Any]) -> Masks:
    area, sizes = np.array([one.sum() for one in masks]), np.array([one.shape for one in masks])
    return Masks(pack_texts([text_of(one) for one in masks]), area, sizes)


def two_groups(seed: int) -> tuple[list[Any], list[Any], Pairs]:
    """Return blots of two sizes on each side, and the pairs of those of one size."""
    rng = np.random.default_rng(seed)

    def blots(size: tuple[int, int], count: int) -> list[Any]:
        found = []
        for _ in range(count):
            one, (y, x) = np.zeros(size, bool), rng.integers(0, 6, 2)
            one[y : y + rng.integers(4, 12), x : x + rng.integers(4, 12)] = True
            found.append(one & (rng.random(size) < 0.97))
        return found

    sent, real = blots((15, 20), 3) + blots((60, 80), 2), blots((15, 20), 2) + blots((60, 80), 2)
    one, two = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], [0, 1, 0, 1, 0, 1, 2, 3, 2, 3]
    return sent, real, Pairs(np.array(one), np.array(two), np.array([0, 0, 6, 10]))


CROWD = np.array([False, True, False, True])


def overlap_of(one: Any, two: Any, crowd: bool = False) -> float:
    return float((one & two).sum() / (one.sum() if crowd else (one | two).sum()))


@pytest.mark.parametrize("compiled", [False, True])
def test_masks_share_their_intersection_over_union_and_in_crowds_over_the_detection(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, real, pairs = two_groups(1)
    if compiled:
        shared = np.array([(sent[i] & real[j]).sum() for i, j in zip(pairs.prediction, pairs.truth)])
        use(monkeypatch, CompiledBackend(SimpleNamespace(overlaps=lambda *_: shared)))  # type: ignore[arg-type]
    found = backend().mask_overlaps(pairs, masks_of(sent), masks_of(real), CROWD)
    expected = [overlap_of(sent[i], real[j], CROWD[j]) for i, j in zip(pairs.prediction, pairs.truth)]
    assert found.tolist() == expected


def test_empty_masks_share_nothing() -> None:
    pair, nothing = Pairs(np.array([0]), np.array([0]), np.array([0, 1])), masks_of([np.zeros((3, 4), bool)])
    kernel: Any = SimpleNamespace(overlaps=lambda *_: np.array([0]))
    for counting in (NumpyBackend(), CompiledBackend(kernel)):
        assert counting.mask_overlaps(pair, nothing, nothing, CROWD).tolist() == [0]


def test_empty_runs_are_joined_for_pycocotools() -> None:
    for runs, plain in (
        ([3, 0, 2, 4, 3], [5, 4, 3]), ([0, 2, 0, 3, 7], [0, 5, 7]), ([0, 12], [0, 12]), ([12, 0], [12]),
        ([2, 3, 0, 0, 0, 4, 3], [2, 7, 3]), ([0, 0, 0, 12], [0, 12]), ([4, 1, 0, 7, 0], [4, 8]),
    ):  # fmt: skip
        assert rle._drop_empty_runs(np.array(runs)).tolist() == plain
        masks = Masks(pack_texts([rle.compress([12]), rle.compress(runs)]), np.zeros(2), np.array([[3, 4]] * 2), True)
        assert rle.encode_masks(masks, np.array([1])) == [{"size": [3, 4], "counts": rle.compress(plain)}]


def test_boxes_that_only_touch_share_nothing() -> None:
    sent = np.array([[0, 0, 4, 2], [4, 0, 4, 2], [1, 1, 4, 4], [0, 2, 4, 2], [9, 9, 1, 1]], float)
    real = np.array([[0, 0, 4, 2], [2, 0, 4, 2]], float)
    pairs = Pairs(np.array([0, 1, 2, 3, 4, 0, 2]), np.array([0, 0, 0, 0, 0, 1, 1]), np.array([0, 7]))
    found = instance_overlaps.box_overlaps(pairs, sent, real, np.array([False, True]))
    assert found.tolist() == close([1, 0, 3 / 21, 0, 0, 4 / 8, 3 / 16])


def test_boxes_without_any_area_share_nothing() -> None:
    point, pair = np.array([[2, 2, 0, 0]], float), Pairs(np.array([0]), np.array([0]), np.array([0, 1]))
    assert instance_overlaps.box_overlaps(pair, point, point, CROWD).tolist() == [0]


def edges(mask: Any, reach: int) -> Any:
    """Return the pixels of a mask that have one outside it, or outside the image, within reach."""
    wide, side = np.pad(mask, reach), 2 * reach + 1
    near = [wide[y : y + mask.shape[0], x : x + mask.shape[1]] for y, x in itertools.product(range(side), repeat=2)]
    return mask & ~np.stack(near).all(0)


@pytest.mark.parametrize("seed", range(4))
def test_boundaries_lower_the_iou_where_it_is_wanted(seed: int) -> None:
    sent, real, pairs = two_groups(seed)
    for one in (sent[2], sent[4], real[1], real[2]):
        one[...] = False
        one[: one.shape[0] - seed, seed // 2 :] = True
    for one in (sent[0], real[0]):
        one[...] = False
        one[0, 3 + seed : 9] = True
    ious = np.array([overlap_of(sent[i], real[j]) for i, j in zip(pairs.prediction, pairs.truth)])
    wanted = np.array([True] * 5 + [False] + [True] * 4)
    found = instance_overlaps.smaller_of_both(pairs, masks_of(sent), masks_of(real), ious, wanted, 0.02)
    expected = []
    for i, j, iou, flag in zip(pairs.prediction, pairs.truth, ious, wanted):
        reach = {15: 1, 60: 2}[len(sent[i])]
        expected.append(min(iou, overlap_of(edges(sent[i], reach), edges(real[j], reach))) if flag else iou)
    assert found.tolist() == expected
    assert ious.tolist() != expected


def test_boundaries_of_masks_that_lie_apart_share_nothing() -> None:
    left, right, below = (np.zeros((12, 14), bool) for _ in range(3))
    left[:3, :3], right[:3, 6:], below[6:, :3] = True, True, True
    pairs = Pairs(np.array([0, 0, 0]), np.array([0, 1, 2]), np.array([0, 3]))
    real = masks_of([right, below, left])
    found = instance_overlaps.smaller_of_both(pairs, masks_of([left]), real, np.full(3, 0.9), np.ones(3, bool), 0.02)
    assert found.tolist() == [0, 0, 0.9]


def test_masks_of_frames_are_one_wide_mask() -> None:
    rng = np.random.default_rng(4)
    frames = [rng.random((3, 4)) < share for share in (0.5, 0.0, 1.0, 0.4, 0.6, 0.5, 1.0)]
    shown = np.array([True, False, True, True, True, True, True])
    frames[5][:] = False
    tube = np.array([0, 0, 0, 2, 2, 2, 2])
    texts = pack_texts([text_of(one) for one, flag in zip(frames, shown) if flag])
    found = join_frames(texts, shown, tube, np.full(7, 12), 4)
    for index in range(4):
        parts = [one for one, its in zip(frames, tube) if its == index]
        runs = rle.runs_of(found.masks[index], 12 * len(parts)) if parts else np.zeros(0, int)
        flat = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
        assert flat.tolist() == [flag for one in parts for flag in one.ravel(order="F").tolist()]
        areas = [int(one.sum()) for one in parts if one.any()]
        assert found.pixels[index] == sum(areas)
        assert found.mean_area[index] == (np.mean(areas) if areas else 0)
    with pytest.raises(ValueError):  # without words: the caller finds the mask
        join_frames(texts, shown, tube, np.full(7, 13), 4)


def test_the_upper_half_of_the_labels_says_how_much_is_hidden() -> None:
    no, slight, severe = LABELS
    for labels, hidden in (
        ([no], 0.0), ([slight], 0.25), ([severe, no], 0.75), ([severe, None, no, slight], 0.5), (None, -1.0),
        ([None], -1.0), ([no, no, slight, severe], 0.5), ([severe, no, no, no, slight], (0.75 + 0.25) / 3),
    ):  # fmt: skip
        assert mean_occlusion(labels) == hidden


# ── objects in video, and means over them ───────────────────────────────────


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 10, 11, 99, 256, 700])
def test_decay_compares_the_first_and_the_last_of_four_parts(count: int) -> None:
    values = np.random.default_rng(count).random(count)
    early = math.floor(1 + (count - 1) / 4 + 0.5 + 1e-9)
    late = math.floor(1 + (count - 1) * 3 / 4 + 0.5 + 1e-9)
    expected = values[:early].mean() - values[late - 1 :].mean()
    assert sequence_metrics._decay(values) == close(expected)


def test_a_series_of_nothing_has_no_value() -> None:
    nothing = np.zeros(0)
    for of in ("mean", "recall", "_decay", "consistency"):
        assert getattr(sequence_metrics, of)(nothing) is None
    assert sequence_metrics.mean(np.array([np.nan])) is None
    assert sequence_metrics.mean(np.array([np.nan, 1, 0.5])) == 0.75
    assert sequence_metrics.average([None, 0.5, 1.0]) == 0.75
    assert sequence_metrics.average([None]) is None
    assert sequence_metrics.recall(np.array([0.5, 0.6, np.nan, 0.4])) == 0.25
    assert sequence_metrics.consistency(np.array([0.1, 0.4, 0.4])) == math.sqrt(0.02)


def counts_of(*frames: tuple[int, ...]) -> Counts:
    return Counts(*np.array(frames).reshape(-1, 7).T)


def test_our_own_statistics_can_be_worked_out_by_hand() -> None:
    counts = counts_of((4, 2, 2, 4, 4, 2, 4), (6, 8, 4, 6, 4, 2, 0), (0, 3, 0, 0, 4, 0, 0), (0, 0, 0, 0, 0, 0, 0))
    precision, recall = 4 / 12, 4 / 10
    assert sequence_metrics._own_statistics(counts, np.array([0.5, 0.4, 0, 1]), np.array([0.6, 0.2, 0, 1])) == {
        "J-Volume": 6 / 17, "F-Volume": close(2 * precision * recall / (precision + recall)),
        "J-Visible": close(0.45), "F-Visible": close(0.4), "False-Alarm": 0.5,
    }  # fmt: skip
    always = sequence_metrics._own_statistics(counts.at(np.array([0])), np.ones(1), np.ones(1))
    assert (always["False-Alarm"], always["J-Visible"]) == (None, 1)
    nowhere = sequence_metrics._own_statistics(counts.at(np.zeros(0, int)), np.zeros(0), np.zeros(0))
    assert set(nowhere.values()) == {None}


def test_each_protocol_names_its_metrics_of_an_object() -> None:
    j, f = np.array([0.9, 0.7, 0.4, 0.2, 0.8]), np.array([0.5, 0.6, 0.6, 0.2, 0.1])
    seen = counts_of(*[(4, 2, 2, 4, 4, 2, 4)] * 5)
    davis = sequence_metrics.summary(seen, j, f, SEQUENCE_PROTOCOLS["davis2017"])
    expected = [0.5, 0.6, 0.6, 0.3, 0.4, 0.4, 0.4]
    assert list(davis.items()) == list(zip(SEQUENCE_PROTOCOLS["davis2017"].metrics, [close(one) for one in expected]))
    vost = sequence_metrics.summary(seen, j, f, SEQUENCE_PROTOCOLS["vost"])
    assert [vost[f"J_last-{kind}"] for kind in ("Mean", "Recall", "Decay")] == [close(0.5), 0.5, close(-0.6)]
    spread = np.round(np.var((j + f) / 2), 4) ** 0.5
    for name in ("lvos", "lvos-unsupervised-single"):
        assert sequence_metrics.summary(seen, j, f, SEQUENCE_PROTOCOLS[name])["V-Mean"] == spread


def test_an_expression_without_a_target_is_right_when_nothing_is_predicted() -> None:
    one, protocol = np.ones(2), SEQUENCE_PROTOCOLS["mevis-v2"]
    for truth, prediction, right in ((0, 0, 1), (0, 3, 0), (3, 3, 1), (3, 0, 0)):
        counts = counts_of((0,) * 7, (truth, prediction, 0, 0, 0, 0, 0))
        found = sequence_metrics.summary(counts, one, one * 0, protocol)
        named = ("T-acc", "N-acc") if truth else ("N-acc", "T-acc")
        assert [found[name] for name in named] == [right, None]


def test_one_pixel_is_added_in_mosev2_and_two_empty_masks_agree() -> None:
    counts = counts_of((4, 3, 2, 0, 0, 0, 0), (0, 4, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0))
    assert sequence_metrics._smooth_similarity(counts).tolist() == [3 / 6, 1 / 5, 1]


@pytest.mark.parametrize("radius", [0.3, 1.5, 2.2, 7.837, 7.2, 3.0])
def test_a_disk_of_a_broken_radius_has_the_points_of_its_grid(radius: float) -> None:
    grid = [k - radius for k in range(math.ceil(2 * radius + 1))]
    centre = len(grid) // 2
    points = {
        (i - centre, k - centre)
        for (i, x), (k, y) in itertools.product(enumerate(grid), repeat=2)
        if x * x + y * y <= radius * radius
    } or {(-centre, -centre)}
    found = _fractional_disk(radius)
    assert {(dx, dy) for dx, low, high in found for dy in range(low, high + 1)} == points


def scored(sequence: str, unseen: bool, **values: Any) -> ObjectScore:
    named = {name.replace("_", "-"): value for name, value in values.items()}
    return ObjectScore(sequence, "1", named, [], np.zeros(0), np.zeros(0), unseen)


def test_means_without_each_sequence_are_those_of_the_others() -> None:
    scores = [
        scored("a", False, J_Mean=0.2, F_Mean=0.4), scored("a", True, J_Mean=0.6, F_Mean=0.5),
        scored("b", False, J_Mean=0.9, F_Mean=None), scored("c", True, J_Mean=0.1, F_Mean=0.7),
    ]  # fmt: skip
    protocol = SEQUENCE_PROTOCOLS["youtube-vos"]
    table = _ScoreTable(scores, protocol)
    found, without = table.means(), table.means_without_each()
    assert list(found) == [*protocol.metrics, *BESIDE]
    expected = {
        "J-seen-Mean": 0.55, "J-unseen-Mean": 0.35, "J-Mean": 0.45, "F-seen-Mean": 0.4, "F-unseen-Mean": 0.6,
        "F-Mean": 0.5, "J&F-Mean": 0.475, "J-Volume": None,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == {
        name: None if value is None else close(value) for name, value in expected.items()
    }
    for place, name in enumerate("abc"):
        rest = _ScoreTable([one for one in scores if one.sequence != name], protocol).means()
        for metric, value in rest.items():
            assert without[metric][place] == (pytest.approx(math.nan, nan_ok=True) if value is None else close(value))
    sums, counts = table.sums("F-Mean")
    assert (sums.tolist(), counts.tolist()) == ([close(0.9), 0, 0.7], [2, 0, 1])
    assert [table.cases(name) for name in ("J-seen-Mean", "J-unseen-Mean", "J-Mean", "J-Volume")] == [2, 2, 2, 3]
    for unseen in (False, True):
        alone = _ScoreTable([scored(name, unseen, J_Mean=0.5) for name in "xyz"], protocol)
        assert [alone.cases(name) for name in ("J-Mean", "J-seen-Mean")] == [3, 0 if unseen else 3]
    assert _ScoreTable(scores[:2], protocol).means_without_each() == {}


def test_the_final_value_of_mevis_is_the_mean_of_three_means() -> None:
    targets = [
        ObjectScore("a", "1", {"J-Mean": 0.5, "F-Mean": 0.7, "T-acc": 1.0}, [], np.zeros(0), np.zeros(0)),
        ObjectScore("a", "2", {"J-Mean": 0.3, "F-Mean": 0.1, "T-acc": 0.0}, [], np.zeros(0), np.zeros(0)),
        ObjectScore("b", "3", {"J-Mean": 1.0, "F-Mean": 1.0, "N-acc": 1.0}, [], np.zeros(0), np.zeros(0)),
    ]
    protocol = SEQUENCE_PROTOCOLS["mevis-v2"]
    assert _ScoreTable(targets, protocol).means()["Final"] == close((0.6 + 1 + 0.5) / 3)
    assert _ScoreTable(targets[:2], protocol).means()["Final"] == close((0.4 + 0.5) / 2)


def test_rounds_of_a_video_are_one_case() -> None:
    scores = [scored(f"anno_{k}/a", False, J_Mean=k / 4) for k in range(3)] + [scored("anno_0/b", False, J_Mean=1.0)]
    table = _ScoreTable(scores, SEQUENCE_PROTOCOLS["ref-davis17"])
    assert table.cases("J-Mean") == 2
    assert table.means_without_each()["J-Mean"].tolist() == [1, 0.25]
    rows = sequence_metrics._by_sequence([*scores, scored("anno_0/b", False, J_Mean=0.5)], ["J-Mean"])
    assert list(rows) == ["anno_0/a", "anno_1/a", "anno_2/a", "anno_0/b"]
    assert rows["anno_0/b"] == {"J-Mean": 0.75}


@pytest.mark.parametrize(
    ("visible", "absent", "back"),
    [("1100", [(2, 4)], []), ("0110", [(3, 4)], [(1, 3)]), ("1010", [(1, 2), (3, 4)], [(2, 3)]), ("1111", [], [])],
)
def test_absences_and_returns_are_scored_over_their_own_frames(visible: str, absent: Any, back: Any) -> None:
    flags, j, f_new = np.array([one == "1" for one in visible]), np.arange(1.0, 5), np.arange(4.0, 0, -1)
    found = sequence_metrics.reappearance(j, f_new, j / 2, flags)
    assert (found["J-Mean"], found["F_new-Mean"], found["F-Mean"]) == (2.5, 2.5, 1.25)
    for name, parts in (("disappear", absent), ("reappear", back)):
        for metric, series in (("J", j), ("F_new", f_new)):
            means = [series[start:stop].mean() for start, stop in parts]
            assert found[f"{name}_{metric}-Mean"] == (np.mean(means) if means else None)


# ── one unit, as a worker counts it ─────────────────────────────────────────


def test_predictions_may_share_pixels_in_burst_alone() -> None:
    truth = [TruthFrame("1", (1, WIDTH), [[1, 2, bar(0, 5)]], no_pixels)]
    sent = [[[3, 2, bar(0, 5), 1.0], [4, 2, bar(4, 4), 1.0]]]
    unit = Unit("a", 1, lambda: truth, {"neg": [], "loose": []})
    for protocol, problems in (("mots", 1), ("burst", 0)):
        submission: Any = SimpleNamespace(
            protocol=TRACKS_PROTOCOLS[protocol], classes=[("x", 2)], masks=lambda *_: (sent, np.array([5, 4]))
        )
        counts = tracks_counting.count(unit, submission)
        assert (counts.name, counts.problem_count, len(counts.tables)) == ("a", problems, 0 if problems else 5)


def test_a_packed_truth_is_compared_by_its_labels() -> None:
    packed = LabelMap(np.array([[0, 1, 1]], np.uint8), np.array([3, 255]))
    plain = LabelMap(np.array([[3, 255, 255]], np.uint8))
    for truth in (packed, plain):
        unit = Unit("a", 1, lambda truth=truth: [TruthFrame("0", (1, 3), [], lambda: truth)])
        for sent, problems in ((np.array([[3, 1, 1]], np.uint8), 0), (None, 1)):

            def read(_name: str, _frame: Any, _labels: Any, found: Problems, sent: Any = sent) -> Any:
                if sent is None:
                    found.add(Problem("a", "is odd", "Send another"))
                return sent

            counts = semantic.count(unit, SimpleNamespace(protocol=FEW, read=read))  # type: ignore[arg-type]
            assert counts.problem_count == problems
            assert counts.tables == {} if problems else counts.tables["cells"].tolist() == [[(3 << 25) | 3], [1]]


@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 300])
def test_a_map_of_any_number_of_labels_is_read_as_it_was_packed(count: int, tmp_path: Path) -> None:
    labels = 7 * np.arange(2 * count, dtype=np.uint16).reshape(2, count) % (7 * count)
    unit = Unit("a", 1, lambda: [TruthFrame("0", labels.shape, [], lambda: LabelMap(labels))])
    (unit_read,) = pack_units(UnitTruth("semantic", "vspw", {}, [unit]), tmp_path).units
    (frame,) = unit_read.load()
    assert frame.size == labels.shape
    assert np.array_equal(frame.read().at(np.arange(labels.size)), labels.reshape(-1))


def test_videos_are_folders_of_pictures_or_hold_a_folder_of_masks(tmp_path: Path) -> None:
    for name in ("data/one/mask/0.png", "data/one/mask/1.png", "mask/0.png", "two/0.png", "odd.png", "two/a.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(png(np.zeros((1, 1), np.uint8)))
    truth = semantic.read_truth(str(tmp_path), "")
    assert {unit.name: unit.cost for unit in truth.units} == {"one": 2, "mask": 1, "two": 1}
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "test.txt").write_text("two\none")
    assert [unit.name for unit in semantic.read_truth(str(tmp_path), "test").units] == ["two", "one"]
    assert len(semantic.read_truth(str(tmp_path), "").units) == 3
    (tmp_path / "val.txt").write_text("two three\n")
    with pytest.raises(HostError, match="has no frames of three"):
        semantic.read_truth(str(tmp_path), "")
    (tmp_path / "val.txt").write_text("")
    with pytest.raises(HostError, match="has no frames of any video"):
        semantic.read_truth(str(tmp_path), "")
