"""Counts of less than a sequence, and of single images, merge in any order and with repeats; contradictions are refused."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from segjudge.evaluation_script.families import report_of
from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitCounts
from segjudge.evaluation_script.families.instances import metrics
from segjudge.evaluation_script.families.instances.matching import decode_counts as decode_instances
from segjudge.evaluation_script.families.sequences.counting import decode_counts as decode_sequence
from segjudge.evaluation_script.files.problems import HostError
from segjudge.testing.checks import describe_counts, empty_like
from tests.scoring.shares import IMAGES, TRUTH, write_instances, write_sequences
from tests.scoring.test_parts import scorer_of


@pytest.mark.parametrize("protocol", ["davis2017", "mosev2"])
def test_the_frames_of_a_sequence_merge_in_any_order_and_with_repeats(protocol: str, tmp_path: Path) -> None:
    files = write_sequences(tmp_path, TRUTH)
    whole = scorer_of(files, protocol).count(files.results)
    expected, total = describe_counts(whole), empty_like(whole)
    updates = []
    for data in whole.state_dict().values():
        counts = decode_sequence(data)
        for row in range(len(counts.rows)):
            strict = counts.strict[..., [row]] if counts.strict.size else counts.strict
            part = replace(counts, rows=counts.rows[[row]], counts=counts.counts[..., [row]], strict=strict)
            updates += [part, part]
        if not len(counts.rows):
            updates.append(counts)
    random.Random(3).shuffle(updates)
    for update in updates:
        total.update(update)
    assert describe_counts(total) == expected
    counts = next(counts for counts in map(decode_sequence, whole.state_dict().values()) if len(counts.rows))
    with pytest.raises(ValueError, match="counted twice, with different results"):
        total.update(replace(counts, counts=counts.counts + 1))
    with pytest.raises(ValueError, match="described in two ways"):
        total.update(replace(counts, frames=[*counts.frames, "more"]))
    beyond, before = counts.rows + len(counts.frames) - counts.rows[-1], counts.rows - counts.rows[0] - 1
    for rows in (beyond, before, counts.rows[::-1], np.maximum(counts.rows, counts.rows[1])):
        with pytest.raises(ValueError, match="rows that are not in order"):
            decode_sequence(replace(counts, rows=rows).encode())
    partial = empty_like(whole)
    partial.update(counts)
    with pytest.raises(HostError, match="6 sequences not counted yet"):
        report_of("val", partial)


def test_images_merge_in_any_order_and_with_repeats_and_contradictions_are_refused(tmp_path: Path) -> None:
    files = write_instances(tmp_path)
    whole = scorer_of(files, "coco").count(files.results)
    expected, total = describe_counts(whole), empty_like(whole)
    (counts,) = map(decode_instances, whole.state_dict().values())
    updates = [counts.of(np.array(chosen)) for chosen in ([3], [0, 3, 7], *([image] for image in range(IMAGES)))] * 2
    random.Random(5).shuffle(updates)
    for update in updates:
        total.update(update)
    assert describe_counts(total) == expected
    assert any("were dropped" in line for line in report_of("val", total).warnings)
    changed = counts.detections.copy()
    changed["score"][0] += 0.5
    with pytest.raises(ValueError, match="matched twice, with different results"):
        total.update(replace(counts, detections=changed))
    dropped = counts.images.copy()
    dropped["dropped"][0] += 1
    with pytest.raises(ValueError, match="matched twice, with different results"):
        total.update(replace(counts, images=dropped))
    changed["category"][0] = 3
    for part in (replace(counts, detections=changed), replace(counts, images=counts.images[:0])):
        with pytest.raises(ValueError, match=r"."):
            empty_like(whole).load_state_dict({"0": part.encode()})
    partial = empty_like(whole)
    partial.update(updates[0])
    with pytest.raises(HostError, match="22 images not counted yet"):
        report_of("val", partial)


def test_blocks_of_images_are_loaded_as_they_were_saved_and_their_detections_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "BLOCK", 10)
    files = write_instances(tmp_path)
    whole = scorer_of(files, "coco").count(files.results)
    state, loaded = whole.state_dict(), empty_like(whole)
    assert list(state) == ["0", "1", "2"]
    loaded.load_state_dict(state)
    assert describe_counts(loaded) == describe_counts(whole)
    with pytest.raises(ValueError, match=r"."):
        loaded.load_state_dict({"1": state["0"]})
    counts = decode_instances(state["1"])
    for rows in (counts.detections[::-1], np.repeat(counts.detections, 2)):
        with pytest.raises(ValueError, match="not in order"):
            loaded.load_state_dict({"1": replace(counts, detections=rows).encode()})
    endless = counts.detections.copy()
    endless["score"][0] = np.inf
    with pytest.raises(ValueError, match="not finite"):
        loaded.load_state_dict({"1": replace(counts, detections=endless).encode()})


def test_a_score_after_other_counts_came_is_of_these() -> None:
    """What was stacked for one score is not kept for the next."""

    def counted(*numbers: int) -> UnitAccumulator[str]:
        accumulator = UnitAccumulator("rules", {}, ["a", "b"])
        for name, number in zip("ab", numbers):
            accumulator.update(UnitCounts(name, {"table": np.full(3, number, np.int64)}))
        return accumulator

    accumulator = counted(1)
    with pytest.raises(HostError, match="not counted yet"):
        accumulator.stack("table")
    accumulator.merge(counted(1, 2))
    assert accumulator.stack("table").tolist() == [[1] * 3, [2] * 3]
    accumulator.load_state_dict(counted(3, 4).state_dict())
    assert accumulator.stack("table").tolist() == [[3] * 3, [4] * 3]
    accumulator.load_state_dict({})
    with pytest.raises(HostError, match="not counted yet"):
        accumulator.stack("table")
    sums = counted(5, 7).without_groups(lambda counts: {"sum": float(counts.stack("table").sum())})
    assert sorted(sums["sum"].tolist()) == [15.0, 21.0]
