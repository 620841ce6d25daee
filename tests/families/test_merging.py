"""Counts of parts of a sequence, and of single images, merge in any order and repeated; contradictions are rejected."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families import report_of
from segjudge.evaluation_script.families.base import unit_counts
from segjudge.evaluation_script.families.base.unit_counts import tabulate_groups
from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitCounts, decode_unit
from segjudge.evaluation_script.families.instances import metrics
from segjudge.evaluation_script.families.instances.matching import decode_counts as decode_instances
from segjudge.evaluation_script.families.sequences.counting import FIELDS, CountedObject, SequenceCounts
from segjudge.evaluation_script.families.sequences.counting import decode_counts as decode_sequence
from segjudge.evaluation_script.files.problems import HostError, Problem, SubmissionError
from segjudge.evaluation_script.masks.stack import Array
from segjudge.testing.checks import describe_counts, empty_like
from tests.families.contract import examples
from tests.scoring.shares import IMAGES, TRUTH, write_instances, write_sequences
from tests.scoring.test_parts import scorer_of


@pytest.mark.parametrize("protocol", examples("frames"))
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
    with pytest.raises(ValueError, match=f"^{counts.name} has two different descriptions$"):
        total.update(replace(counts, frames=[*counts.frames, "more"]))
    beyond, before = counts.rows + len(counts.frames) - counts.rows[-1], counts.rows - counts.rows[0] - 1
    for rows in (beyond, before, counts.rows[::-1], np.maximum(counts.rows, counts.rows[1])):
        with pytest.raises(ValueError, match="^has rows out of order$"):
            decode_sequence(replace(counts, rows=rows).encode())
    if counts.strict.size:  # an object that cannot be judged strictly is not a contradiction
        unknown, partial = replace(counts, strict=np.full_like(counts.strict, np.nan)), empty_like(whole)
        for _ in range(2):
            partial.update(unknown)
        with pytest.raises(ValueError, match="counted twice, with different results"):
            partial.update(counts)
    partial = empty_like(whole)
    partial.update(counts)
    with pytest.raises(HostError, match="^6 sequences not counted yet: "):
        report_of("val", partial)


@pytest.mark.parametrize("at_once", [1, 7, 1 << 15])
def test_cells_are_added_up_as_they_arrive(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of cells are equal in whatever order units arrive, also if they arrive twice."""
    monkeypatch.setattr(unit_counts, "_CELLS_AT_ONCE", at_once)
    random, names = np.random.default_rng(5), [f"unit {number}" for number in range(30)]
    tables = [random.integers(0, 6, (2, random.integers(0, 9))) * [[(1 << 33) + 1], [1]] for _ in names]
    tables[4] = np.array([[5, 5, 5], [1, 2, 3]])
    units = [UnitCounts(name, {"cells": table}).detach() for name, table in zip(names, tables)]

    def split(keys: Array) -> tuple[Array, Array]:
        return keys >> 33, keys & 7

    def describe(accumulator: UnitAccumulator[str]) -> list[Any]:
        counts = np.zeros(len(names), int)
        for batch in accumulator.cells():
            np.add.at(counts, batch.numbers[batch.rows()], 1)
        sums = accumulator.without_groups(lambda part: {"sum": float((part.add_up_cells(split, (6, 8)) ** 2).sum())})
        return [counts.tolist(), accumulator.add_up_cells(split, (6, 8)).tolist(), sums["sum"].tolist()]

    def fill(numbers: Iterable[int]) -> UnitAccumulator[str]:
        accumulator = UnitAccumulator("rules", {}, names)
        for number in numbers:
            accumulator.add(units[number])
        return accumulator

    single = fill(range(30))
    expected = describe(single)
    assert expected[0] == [table.shape[1] for table in tables]
    assert np.sum(expected[1]) == sum(table[1].sum() for table in tables)
    for numbers in ([*range(20, 30), *range(20)], [*range(15), *range(10, 30)]):
        merged = fill(numbers)
        assert describe(merged) == expected
        assert merged.state_dict() == single.state_dict()
    with pytest.raises(HostError, match="1 unit not counted yet: unit 29"):
        next(fill(range(29)).cells())
    with pytest.raises(ValueError, match="has counted a label that is rejected"):
        single.add_groups("few", lambda all_: tabulate_groups(all_.cells(), all_.groups(), split, (5, 8)))


def test_what_parts_say_of_a_sequence_is_joined() -> None:
    """Unknown objects are joined by first frame in the truth's order; problems count once per frame."""

    def part(*rows: int, **more: Any) -> SequenceCounts:
        tables = np.zeros((1, 1, FIELDS, len(rows)), np.int64), np.zeros((1, 2, 0))
        return SequenceCounts(
            "v", ["b", "a", "c"], [CountedObject("1", [(0, 3)], False)], np.array(rows), *tables, **more
        )

    def joined(one: SequenceCounts, other: SequenceCounts) -> Any:
        both = [one.union(other), other.union(one)]
        assert both[0].encode() == both[1].encode() or both[0].problems != both[1].problems
        return both[0]

    assert part(1, unknown={"9": "a"}).union(part(1, unknown={"9": "a"})).rows.tolist() == [1]
    whole = joined(part(0, unknown={"9": "b", "70": "b"}), part(1, 2, unknown={"9": "a", "8": "a", "6": "c"}))
    assert list(whole.unknown.items()) == [("70", "b"), ("9", "b"), ("8", "a"), ("6", "c")]
    assert whole.rows.tolist() == [0, 1, 2]
    assert joined(part(1), part(1, unknown={"9": "a"})).unknown == {"9": "a"}
    assert joined(part(0, proposals=["2", "1"]), part(0, proposals=["3", "1"])).proposals == ["1", "2", "3"]
    assert joined(part(0, shaded=["2", "1"]), part(1, shaded=["3", "1"])).shaded == ["1", "2", "3"]
    first, second, third = (Problem(name, "is empty", "Send it again") for name in "xyz")
    mine = part(0, problems=[first, second], problem_count=5)
    for rows, count in (((1, 2), 12), ((0, 1), 7), ((0,), 7)):
        both = joined(mine, part(*rows, problems=[second, third], problem_count=7))
        assert (both.problems, both.problem_count) == ([first, second, third], count)
    twice = part(0, problems=[third], problem_count=1), part(0, problems=[first, second], problem_count=2)
    assert joined(*twice).problem_count == 3


def test_images_merge_in_any_order_and_with_repeats_and_contradictions_are_refused(tmp_path: Path) -> None:
    files = write_instances(tmp_path)
    whole = scorer_of(files, "coco").count(files.results)
    expected, total = describe_counts(whole), empty_like(whole)
    (counts,) = map(decode_instances, whole.state_dict().values())
    updates = [
        counts.select_images(np.array(chosen)) for chosen in ([3], [0, 3, 7], *([image] for image in range(IMAGES)))
    ] * 2
    random.Random(5).shuffle(updates)
    for update in updates:
        total.update(update)
    assert describe_counts(total) == expected
    assert any("were dropped" in line for line in report_of("val", total).warnings)
    changed = counts.detections.copy()
    changed["score"][0] += 0.5
    with pytest.raises(ValueError, match="matched twice, with different results"):
        total.update(counts._replace(detections=changed))
    dropped = counts.images.copy()
    dropped["dropped"][0] += 1
    with pytest.raises(ValueError, match="matched twice, with different results"):
        total.update(counts._replace(images=dropped))
    changed["category"][-1] = 3
    for part, fault in (
        (counts._replace(detections=changed), "it is for images or categories that this split lacks"),
        (counts._replace(images=counts.images[:0]), "has rows for images that it does not hold"),
    ):
        with pytest.raises(ValueError, match=f"^{fault}$"):
            empty_like(whole).load_state_dict({"0": part.encode()})
    partial = empty_like(whole)
    partial.update(updates[0])
    with pytest.raises(HostError, match="^22 images not counted yet: "):
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
    with pytest.raises(ValueError, match="^block 1 holds other images$"):
        loaded.load_state_dict({"1": state["0"]})
    with pytest.raises(ValueError, match="^has 3 bytes of tables, not 0$"):
        decode_instances(bytes(15))
    with pytest.raises(ValueError, match="^has no header$"):
        decode_instances(bytes(11))
    counts = decode_instances(state["1"])
    for rows in (counts.detections[::-1], np.repeat(counts.detections, 2)):
        with pytest.raises(ValueError, match="^has rows out of order$"):
            loaded.load_state_dict({"1": counts._replace(detections=rows).encode()})
    endless = counts.detections.copy()
    endless["score"][0] = np.inf
    with pytest.raises(ValueError, match="^has scores that are not finite$"):
        loaded.load_state_dict({"1": counts._replace(detections=endless).encode()})


SEQUENCE = SequenceCounts(
    "v", list("abc"), [CountedObject("1", [(0, 2), (2, 3)], False)], np.array([1]), np.zeros((1, 1, FIELDS, 1), np.int64), np.zeros((1, 2, 0))
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, ""),
        ({"rows": 4}, "impossible numbers of rows or labels"),
        ({"rows": 3}, "has 64 bytes of numbers, not 192"),
        ({"rows": -1}, "impossible numbers of rows or labels"),
        ({"rows": "1"}, "impossible numbers of rows or labels"),
        ({"labels": -1}, "impossible numbers of rows or labels"),
        ({"labels": 0}, "has 64 bytes of numbers, not 8"),
        ({"labels": 1.0}, "impossible numbers of rows or labels"),
        ({"labels": 1 << 17}, "impossible numbers of rows or labels"),
        ({"labels": (1 << 17) - 1}, "has 64 bytes of numbers, not 7339984"),
        ({"objects": [["1", [[0, 4]], False]]}, "an object outside its frames"),
        ({"objects": [["1", [[-1, 3]], False]]}, "an object outside its frames"),
        ({"objects": [["1", [[2, 2]], False]]}, "an object outside its frames"),
        ({"objects": [["1", [[0, 1], [3, 2]], False]]}, "an object outside its frames"),
        ({"objects": [["1", [], False]]}, ""),
    ],
)
def test_counts_of_a_sequence_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    data = SEQUENCE.encode()
    (length,) = struct.unpack_from("<I", data)
    text = json.dumps({**json.loads(data[4 : 4 + length]), **changes}).encode()
    changed = struct.pack("<I", len(text)) + text + data[4 + length :]
    if message:
        with pytest.raises(ValueError, match=message):
            decode_sequence(changed)
    else:
        assert decode_sequence(changed).frames == SEQUENCE.frames


# ── what counts of a unit may say of themselves ─────────────────────────────


def encoded(header: dict[str, Any], numbers: int = 0) -> bytes:
    text = json.dumps({"name": "a", "tables": {}, "problems": [], "problem_count": 0, **header}).encode()
    return struct.pack("<I", len(text)) + text + bytes(8 * numbers)


@pytest.mark.parametrize(
    ("header", "numbers", "message"),
    [
        ({"tables": {"cells": ["<i8", 2, 3]}}, 5, "fewer numbers than its tables"),
        ({"tables": {"cells": ["<i8", 2, 3]}}, 7, "more numbers than tables"),
        ({"tables": {"cells": ["<i8", 1 << 20, 1 << 20]}}, 7, "fewer numbers than its tables"),
        ({"tables": {"cells": ["<i4", 2, 3]}}, 6, "unknown form"),
        ({"tables": {"cells": ["<i8", -2, -3]}}, 6, "unknown form"),
        ({"tables": {"cells": ["<i8", 0, 1 << 31]}}, 0, "unknown form"),
        ({"tables": {"cells": ["<i8", 2.0, 3]}}, 6, "unknown form"),
        ({"tables": {"cells": ["<i8", True, 6]}}, 6, "unknown form"),
        ({"tables": {"cells": []}}, 0, "cannot be read"),
        ({"tables": {"cells": 3}}, 0, "cannot be read"),
        ({"tables": [3]}, 0, "cannot be read"),
        ({"problems": [["a", "b"]]}, 0, "expected 3"),
        ({"problems": [3]}, 0, "cannot be read"),
        ({"problem_count": 1}, 0, "problems that cannot be counted"),
        ({"problems": [["a", "b", "c"]]}, 0, "problems that cannot be counted"),
        ({"problems": [["a", "b", "c"]] * 2, "problem_count": 1}, 0, "problems that cannot be counted"),
        ({"problems": [["a", "b", "c"]], "problem_count": True}, 0, "problems that cannot be counted"),
        ({"problem_count": -1}, 0, "problems that cannot be counted"),
    ],
)
def test_counts_that_cannot_be_are_refused(header: dict[str, Any], numbers: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_unit(encoded(header, numbers))


@pytest.mark.parametrize("data", [b"", bytes(4), bytes(9), b"\3\0\0\0{}", b"\xff\xff\xff\xff{}"])
def test_counts_without_a_header_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="has no header"):
        decode_unit(data)


def test_units_are_counted_once_by_the_names_of_the_split() -> None:
    problem = Problem("a/1.png", "is empty", "Send it again")
    accumulator = UnitAccumulator("rules", {}, ["b", "a"])
    data = UnitCounts("a", {}, [problem] * 2, 5).encode()
    for _ in range(2):
        accumulator.add(data)
    assert (accumulator.missing(), list(accumulator.state_dict())) == (["b"], ["a"])
    with pytest.raises(SubmissionError) as caught:
        accumulator.refuse_problems()
    assert "5 problems found" in str(caught.value)
    with pytest.raises(ValueError, match="a was counted twice, with different results"):
        accumulator.update(UnitCounts("a", {}, [problem] * 2, 6))
    with pytest.raises(ValueError, match="c is not a unit of this split"):
        accumulator.update(UnitCounts("c", {}))
    with pytest.raises(ValueError, match="b holds a"):
        accumulator.load_state_dict({"b": data})
    with pytest.raises(ValueError, match="a unit's name occurs twice"):
        UnitAccumulator("rules", {}, ["a", "b", "a"])
    for others in (UnitAccumulator("other rules", {}, ["b", "a"]), UnitAccumulator("rules", {}, ["a", "b"])):
        with pytest.raises(ValueError, match="different splits, protocols or submissions"):
            accumulator.merge(others)
