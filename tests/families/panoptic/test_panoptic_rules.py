"""Rules of panoptic segmentation, compared with short formulas and values computed by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.units import TruthFrame
from segjudge.evaluation_script.families.panoptic import counting as panoptic_counting
from segjudge.evaluation_script.families.panoptic import engine as panoptic
from segjudge.evaluation_script.families.panoptic.files import PredictedFrame
from segjudge.evaluation_script.families.panoptic.protocols import PANOPTIC_PROTOCOLS, PanopticProtocol
from segjudge.evaluation_script.masks.overlaps import LabelMap
from tests.families.unit_counts import accumulated, close

pytestmark = pytest.mark.usefixtures("without_kernel")

THINGS = [True, True, False]
PQ_FACTS = {"categories": [(10, "dog", True), (20, "cat", True), (30, "sky", False)]}
#: Ids of each side: their category, and whether they are a crowd.
REAL = {5: (0, 0), 6: (0, 0), 7: (1, 0), 8: (2, 0), 9: (0, 1), 11: (0, 1)}
SENT = {5: 0, 6: 0, 7: 1, 8: 2, 9: 0, 12: 1}


def painted(seed: int, frames: int = 4) -> list[tuple[Any, Any]]:
    """Return maps of blocks; the prediction is the truth of other ids in some places."""
    rng, results = np.random.default_rng(seed), []
    for _ in range(frames):
        real = rng.choice([0, 5, 6, 7, 8, 9, 11], (4, 4)).repeat(3, 0).repeat(3, 1)
        sent = np.where(rng.random((4, 4)) < 0.8, real[::3, ::3], rng.choice([0, *SENT], (4, 4)))
        sent = np.where(sent == 11, 9, sent).repeat(3, 0).repeat(3, 1)
        results.append((real, np.where(rng.random((12, 12)) < 0.9, sent, 0)))
    return results


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
    edges = [np.stack([edge_of(item) for item in side]) for side in (real, sent)]

    def iou(i: int, j: int, inside: Any = (True, True)) -> float:
        item, two = (real == i) & inside[0], (sent == j) & inside[1]
        void = (real == 0) & inside[0]
        return float((item & two).sum() / ((item | two).sum() - (two & void).sum()))

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


@pytest.mark.parametrize("seed", range(3))
def test_segments_match_and_are_excused_as_the_official_rules_say(seed: int) -> None:
    ((real, sent),) = painted(seed, 1)
    segments = panoptic_counting._count_segments(framed(real, sent), 3)
    assert segments.tolist() == [close(row) for row in quality_of([(real, sent)]).tolist()]
    bounded = panoptic_counting._count_segments(framed(real, sent, boundary=True), 3)
    assert bounded.tolist() == [close(row) for row in quality_of([(real, sent)], boundary=True).tolist()]


def lasting(seed: int) -> list[tuple[Any, Any]]:
    """Return a video in which not all ids are in all frames."""
    maps = painted(seed, 1)
    for more in painted(seed + 100, 3):
        place = np.arange(12) < 6
        maps.append((np.where(place, maps[-1][0], more[0]), np.where(place, maps[-1][1], more[1])))
    return maps


@pytest.mark.parametrize("seed", range(2))
def test_windows_are_scored_as_stacked_pixels(seed: int) -> None:
    protocol = PanopticProtocol("x", "", windows=(1, 2, 4, 5), video=True)
    maps = lasting(seed)
    # one crowd in the whole video: which of two is listed last depends on the window
    maps = [(np.where(real == 11, 9, real), sent) for real, sent in maps]
    quality = panoptic_counting.count_frames((framed(*item) for item in maps), protocol, THINGS)["quality"]
    for row, length in enumerate((1, 2, 4)):
        expected = sum(quality_of(maps[index : index + length]) for index in range(5 - length))
        assert quality[row].tolist() == [close(item) for item in expected.tolist()]
    assert not quality[3].any()


def stq_of(videos: list[list[tuple[Any, Any]]], *, without_first: bool) -> tuple[float, float]:
    """Return the association and the segmentation quality, tube by tube."""
    tubes, total = 0, 0.0
    pairs: dict[tuple[int, int], int] = {}
    for maps in videos:
        real, sent = (np.stack(side) for side in zip(*maps))
        kind, second = (np.vectorize(lambda k, of=of: of.get(k, 3))(side) for side, of in (
            (real, {k: item for k, (item, _) in REAL.items()}), (sent, SENT),
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
        for i, j in zip(kind.ravel().tolist(), second.ravel().tolist()):
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
        counts = [panoptic_counting.count_frames((framed(*item) for item in maps), protocol, THINGS) for maps in videos]
        total = accumulated(protocol, PQ_FACTS, *counts)
        results = panoptic.values(total)
        quality, iou = stq_of(videos, without_first=name == "vipseg-official")
        assert (results["AQ"], results["IoU"], results["STQ"]) == (
            close(quality),
            close(iou),
            close(math.sqrt(quality * iou)),
        )
        assert list(results) == list(protocol.metrics)
        assert results["VPQ8"] is None
        assert results["VPQ"] is None
        assert results["VPQ4"] is not None


def test_half_is_no_match_and_half_in_void_is_no_excuse() -> None:
    real, sent = np.zeros((12, 12), int), np.zeros((12, 12), int)
    real[0, :4], sent[0, :2] = 5, 5
    real[2, :2], sent[2, :4] = 6, 7
    real[2, 2:4] = 8
    sent[4, :4], real[4, :2] = 12, 8
    segments = panoptic_counting._count_segments(framed(real, sent), 3)
    assert segments.tolist() == [[0, 0, 1, 2], [0, 0, 2, 0], [0, 0, 0, 1]]
    real[4, 1] = 0
    assert panoptic_counting._count_segments(framed(real, sent), 3)[1, 2] == 1
