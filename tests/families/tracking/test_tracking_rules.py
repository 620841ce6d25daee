"""Rules of tracks, compared with short formulas and values computed by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.units import TruthFrame, Unit, no_pixels
from segjudge.evaluation_script.families.tracking import counting as tracks_counting
from segjudge.evaluation_script.families.tracking import engine as tracks
from segjudge.evaluation_script.families.tracking.counting import ComparedFrame
from segjudge.evaluation_script.families.tracking.protocols import TRACKS_PROTOCOLS
from segjudge.evaluation_script.files.problems import Problems
from segjudge.evaluation_script.masks import run_lengths as rle
from tests.families.unit_counts import accumulated, close

pytestmark = pytest.mark.usefixtures("without_kernel")


def compared(*frames: tuple[list[int], list[int], Any]) -> list[ComparedFrame]:
    return [
        ComparedFrame(np.array(item, int), np.array(two, int), np.array(table, float).reshape(len(item), len(two)))
        for item, two, table in frames
    ]


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


def filled(category: list[int], hota: list[Any], clear: list[Any], **more: Any) -> Any:
    table = np.tile(np.array(hota, float).reshape(-1, 7, 1), 19)
    table = np.concatenate([table, np.zeros((len(table), 3, 19))], axis=1)
    return {"classes": np.array(category), "hota": table, "clear": np.array(clear, float).reshape(-1, 6), **more}


def track(place: int, score: float, hits: int, loose: int = 0) -> list[float]:
    """Return a predicted track that matches at this many thresholds, from the lowest."""
    return [place, score, (1 << hits) - 1, loose]


def test_burst_averages_common_and_uncommon_categories_apart() -> None:
    nothing = [[0] * 7] * 2, [[0] * 6] * 2
    first = filled(
        [0, 1], *nothing, objects=np.array([1, 1]), tracks=np.array([track(0, 1, 10), track(1, 1, 5)], float)
    )
    second = filled(
        [0, 2], *nothing, objects=np.array([1, 1]), tracks=np.array([track(2, 1, 4), track(0, 1, 10)], float)
    )
    facts = {"classes": [("a", 4), ("b", 5), ("c", 6)]}
    results = tracks.values(accumulated(TRACKS_PROTOCOLS["burst"], facts, first, second))
    assert list(results) == list(TRACKS_PROTOCOLS["burst"].metrics)
    assert [results[f"AP{group}"] for group in ("", "-common", "-uncommon")] == [
        pytest.approx(value) for value in (1.9 / 3, 1, 0.45)
    ]
    common = tracks.values(accumulated(TRACKS_PROTOCOLS["burst"], {"classes": facts["classes"][:1]}, {
        **filled([0], [[0] * 7], [[0] * 6]), "objects": np.array([1]), "tracks": np.zeros((0, 4)),
    }))  # fmt: skip
    assert (common["AP"], common["AP-common"], common["AP-uncommon"]) == (0, 0, None)


WIDTH = 20


def bar(start: int, length: int) -> str:
    """Return the run lengths of adjacent pixels in an image of one row."""
    return rle.compress([start, length, WIDTH - start - length])


def sequence(protocol: str, frames: list[tuple[Any, Any]], **facts: list[int]) -> tracks_counting.ComparedSequence:
    """Return a sequence of frames with rows (number, category, start, length[, score]) of both sides."""

    def rows(side: Any) -> Any:
        return [[number, kind, bar(start, length), *score] for number, kind, start, length, *score in side]

    truth = [TruthFrame(str(position), (1, WIDTH), rows(real), no_pixels) for position, (real, _) in enumerate(frames)]
    sent = [rows(side) for _, side in frames]
    given = {"neg": [], "loose": [], **facts}
    return tracks_counting.ComparedSequence(
        truth, (sent, tracks_counting.measure_masks(truth, sent)), TRACKS_PROTOCOLS[protocol], given
    )


def clear_in(protocol: str, frames: list[tuple[Any, Any]], category: int = 2, **facts: list[int]) -> Any:
    """Return matched, missed and surplus."""
    item = sequence(protocol, frames, **facts).compare(category)
    return tracks_counting._count_clear(item)[:3].tolist()


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
        (item,) = sequence(protocol, frames).compare(2)
        assert item.similarity.tolist() == [[close(number)]]
    hollow = rle.compress([0, 2, 16, 2])
    truth = [TruthFrame("0", (1, WIDTH), [[1, 2, hollow]], no_pixels)]
    sent = [[[1, 2, bar(0, WIDTH), 1.0]]]
    for protocol, number in (("burst", 0.2), ("burst-official", 1.0)):
        both = tracks_counting.ComparedSequence(
            truth,
            (sent, tracks_counting.measure_masks(truth, sent)),
            TRACKS_PROTOCOLS[protocol],
            {"neg": [], "loose": []},
        )
        assert both.compare(2)[0].similarity.tolist() == [[close(number)]]


def test_burst_counts_false_alarms_where_the_category_is_known_to_be_absent() -> None:
    second, alarm = (1, 9, 0, 4), (7, 2, 10, 4, 1.0)
    assert clear_in("burst", [([second], [alarm])]) == [0, 0, 0]
    assert clear_in("burst", [([second], [alarm])], neg=[2]) == [0, 0, 1]
    assert clear_in("burst", [([second], [alarm])], neg=[2], loose=[2]) == [0, 0, 0]
    assert clear_in("burst-exemplar-guided", [([second], [alarm])]) == [0, 0, 1]
    assert clear_in("burst", [([], [alarm])], neg=[2]) == [0, 0, 0]
    assert clear_in("burst", [([second, (2, 2, 0, 2)], [alarm])]) == [0, 1, 1]
    # Neither a frame without annotation nor one of other categories ends a sequence.
    assert clear_in("burst", [([], [alarm]), ([second], []), ([second, (2, 2, 0, 2)], [alarm])]) == [0, 1, 1]
    results = [([(2, 2, 0, 4)], [(8, 2, 0, 4, 1.0), alarm])]
    assert clear_in("burst", results) == [1, 0, 1]
    assert clear_in("burst", results, loose=[2]) == [1, 0, 0]
    assert clear_in("burst", [([(2, 2, 0, 4)], [(8, 2, 0, 8, 1.0)])], loose=[2]) == [1, 0, 0]
    assert clear_in("burst", [([(2, 2, 0, 4)], [(8, 2, 0, 9, 1.0)])], loose=[2]) == [0, 1, 0]


def bits_of(one: tracks_counting.ComparedSequence, category: int = 2) -> Any:
    """Return score and the number of thresholds matched of each track."""
    return [(score, f"{int(bits):b}".count("1")) for _, score, bits, _ in one.match_tracks(0, category).tolist()]


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
    assert sequence("burst", frames).match_tracks(0, 2).shape == (0, 4)
    assert bits_of(sequence("burst", frames, neg=[2])) == [(0.3, 0)]


def test_the_first_frame_in_which_predictions_share_pixels_is_named() -> None:
    frames = [TruthFrame(name, (1, WIDTH), [], no_pixels) for name in ("00", "07", "09")]
    sent = [
        [[1, 2, bar(0, 5)], [2, 2, bar(5, 5)]],
        [[3, 2, bar(0, 4)], [4, 2, bar(4, 4)], [5, 2, bar(7, 4)]],
        [[6, 2, bar(0, 5)], [7, 2, bar(0, 5)]],
    ]
    problems = Problems()
    areas = tracks_counting.measure_masks(frames, sent)
    tracks_counting.check_disjoint("walk", frames, sent, areas, problems)
    assert [str(problem) for problem in problems] == [
        "walk, frame 07: tracks 4 and 5 share pixels. Give each pixel to one track."
    ]
    fine = Problems()
    tracks_counting.check_disjoint("walk", frames[:1], sent[:1], areas[:2], fine)
    assert not fine


def test_predictions_may_share_pixels_in_burst_alone() -> None:
    truth = [TruthFrame("1", (1, WIDTH), [[1, 2, bar(0, 5)]], no_pixels)]
    sent = [[[3, 2, bar(0, 5), 1.0], [4, 2, bar(4, 4), 1.0]]]
    unit = Unit("a", 1, lambda: truth, {"neg": [], "loose": []})
    for protocol, problems in (("mots", 1), ("burst", 0)):
        submission: Any = SimpleNamespace(
            protocol=TRACKS_PROTOCOLS[protocol],
            classes=[("x", 2)],
            size_frames=lambda _, frames: frames,
            masks=lambda *_: (sent, np.array([5, 4])),
        )
        counts = tracks_counting.count(unit, submission)
        assert (counts.name, counts.problem_count, len(counts.tables)) == ("a", problems, 0 if problems else 5)


@pytest.mark.parametrize("protocol", ["mots", "burst", "burst-official"])
def test_frames_compared_a_few_at_a_time_give_the_same_counts(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(5)
    frames: list[tuple[Any, Any]] = []
    for _ in range(7):
        real = [(number, 2, 4 * number, int(draw.integers(1, 5))) for number in range(1, int(draw.integers(1, 5)))]
        sent = [
            (9 - number, 2, 4 * number, int(draw.integers(1, 5)), 0.5) for number in range(1, int(draw.integers(1, 5)))
        ]
        frames.append((real, sent))
    whole, few = sequence(protocol, frames), []
    for characters in (1, 12, 30):
        monkeypatch.setattr(tracks_counting, "_CHARACTERS", characters)
        few.append(sequence(protocol, frames))
    for other in few:
        for mine, theirs in zip(whole.compare(2), other.compare(2)):
            np.testing.assert_array_equal(mine.similarity, theirs.similarity)
