"""The losses of frames and objects by kind of failure, computed by hand, or by short formulas on plain arrays."""

from __future__ import annotations

import base64
import itertools
import json
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.sequences.losses import KINDS as FAILURES
from segjudge.evaluation_script.families.sequences.losses import (
    SHARED,
    ComparedBlock,
    ObjectLosses,
    ScoredSequence,
    SequenceLosses,
    _Entries,
    _mark_late,
    _ObjectWindow,
    _SequenceView,
    _share_tracked_loss,
    _states_of,
    _window_of,
    kinds_sum_to_loss,
    mean_shares,
    prepare_blocks,
    read_losses,
    shares_of,
    view_sequence,
)
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, SequenceReport
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.families.sequences.truth import VOID, Block, ObjectFacts, Sequence
from segjudge.evaluation_script.files import Problems
from segjudge.evaluation_script.masks.files import MaskFiles
from segjudge.evaluation_script.masks.stack import Size, Stacks, empty_labels, pack, unpack
from segjudge.scoring import score
from segjudge.scoring.request import find_protocol
from tests.builders import drawn, label_zip, stack_of

# ── kinds of failure of a frame ─────────────────────────────────────────────


def state(truth: str, prediction: str, **others: str) -> str:
    """Return the state of an object in one frame of a single row, beside other objects of the truth."""
    side = {"1": stack_of(drawn(truth)), **{label[1:]: stack_of(drawn(row)) for label, row in others.items()}}
    (state,) = _states_of("1", ComparedBlock(["0"], (1, len(truth)), side, {"1": stack_of(drawn(prediction))}))
    return state


@pytest.mark.parametrize(
    ("truth", "prediction", "kind"),
    [
        ("....", "....", "right"),
        ("....", ".#..", "ghost"),
        ("##..", "....", "miss"),
        ("##..", "..##", "drift"),
        ("#.........", "##########", "tracked"),  # J is .1, the least
        ("#..........", "###########", "drift"),  # J is 1/11
    ],
)
def test_the_state_of_a_lone_object(truth: str, prediction: str, kind: str) -> None:
    assert state(truth, prediction) == kind


@pytest.mark.parametrize(
    ("truth", "prediction", "other", "kind"),
    [
        ("####....", "..####..", "....##..", "swap"),  # half of it is there, IoU 1/2 and not 2/6
        ("#......", ".#####.", ".##....", "drift"),  # less than half is there
        ("####....", "..####..", "....####", "tracked"),  # as close to both
        ("####....", "..####..", "....#...", "tracked"),  # a quarter alone
        ("#...", "#...", "#...", "tracked"),  # one place, two objects
        ("##..", "#...", "#...", "swap"),
        ("....", "..##", "..##", "ghost"),  # absence goes before
        ("##..", "....", "..##", "miss"),
    ],
)
def test_a_swap_is_half_on_another_object_and_closer_to_it(truth: str, prediction: str, other: str, kind: str) -> None:
    assert state(truth, prediction, _2=other) == kind


def test_void_is_no_object_to_be_on() -> None:
    assert state("##...", "...##", _255="...##") == "drift"
    assert state("##...", "...##", _7="...##") == "swap"


@pytest.mark.parametrize(
    ("states", "visible", "kinds"),
    [
        ("miss miss", "11", "miss miss"),  # there from the first frame: nothing to come back from
        ("miss right", "10", "miss right"),
        ("right miss", "01", "right late"),
        ("right swap drift miss", "0111", "right late late late"),
        ("right miss tracked miss", "0111", "right late tracked miss"),
        ("ghost miss ghost drift tracked", "01011", "ghost late ghost late tracked"),
        ("tracked ghost miss tracked", "1011", "tracked ghost late tracked"),
    ],
)
def test_late_is_what_is_not_found_again_since_its_return(states: str, visible: str, kinds: str) -> None:
    assert _mark_late(states.split(), [item == "1" for item in visible]) == kinds.split()


# ── how the loss of a tracked frame is shared ───────────────────────────────


def packed(mask: Any) -> Any:
    block = empty_labels(len(mask), mask.shape[1:], bool)
    block[:, :, : mask.shape[2]] = mask
    return pack(block)


def near(mask: Any, radius: int) -> Any:
    """Return the pixels within a radius of a mask, by measuring each distance."""
    grid, results = np.indices(mask.shape), np.zeros(mask.shape, bool)
    for row, column in zip(*np.nonzero(mask), strict=True):
        results |= (grid[0] - row) ** 2 + (grid[1] - column) ** 2 <= radius**2
    return results


def share_of(part: Any, whole: Any) -> float:
    return float(part.sum() / whole.sum()) if whole.any() else 0.0


def defined_parts(masks: Any, radius: int, *, boundaries: bool) -> list[float]:
    """Return the shares of one frame by definition, from truth, prediction, boundaries and the other objects."""
    g, p, bg, bp, go, po = masks
    around = near(bg, radius)
    lacking, surplus = g & ~p & ~around, p & ~g & ~around
    mixed = {"part": (lacking & po).sum(), "leak": (surplus & go).sum()}
    far = {"part": lacking.sum(), "leak": surplus.sum()}
    parts = {"confused": sum(mixed.values()), **{kind: far[kind] - mixed[kind] for kind in far}}
    parts["edge"] = ((g ^ p) & around).sum()
    parts = {kind: count / max((g | p).sum(), 1) for kind, count in parts.items()}
    if boundaries:
        parts = {kind: share / 2 for kind, share in parts.items()}
        ug, up = bg & ~near(bp, radius), bp & ~around
        precision, recall = (share_of(b, b) - share_of(u, b) for u, b in ((up, bp), (ug, bg)))
        weight = precision / (precision + recall) if precision + recall else 0.5
        if not (bg.any() and bp.any()):
            weight = float(bg.any())
        missed = {
            "part": weight * share_of(ug & ~p, bg) + (1 - weight) * share_of(up & g, bp),
            "leak": weight * share_of(ug & p, bg) + (1 - weight) * share_of(up & ~g, bp),
        }
        for kind, loss in missed.items():
            if far[kind]:
                parts["confused"] += loss / 2 * mixed[kind] / far[kind]
                parts[kind] += loss / 2 * (1 - mixed[kind] / far[kind])
            else:
                parts["edge"] += loss / 2
    return [parts[kind] for kind in SHARED]


@pytest.mark.parametrize("radius", [0, 1, 2, 5, 9, 70])
@pytest.mark.parametrize("boundaries", [True, False])
def test_tracked_frames_are_shared_as_defined(radius: int, boundaries: bool) -> None:
    rng = np.random.default_rng(radius)
    masks = np.zeros((6, 12, 7, 150), bool)  # three words across
    for frame in range(12):
        dense, sparse = rng.choice([0.02, 0.3, 0.9], 4), rng.choice([0, 0.002, 0.02], 2)
        for number, share in zip((0, 1, 4, 5, 2, 3), (*dense, *sparse), strict=True):
            masks[number, frame] = rng.random((7, 150)) < share
    masks[2:4, 0] = masks[3, 1] = masks[2, 2] = False
    masks[2, 1, 3, 64] = masks[3, 2, 0, 63] = True
    window = _ObjectWindow(*map(packed, masks), radius)
    share_tracked_loss = _share_tracked_loss(window, boundaries=boundaries)
    for frame, shares in enumerate(share_tracked_loss.tolist()):
        assert shares == pytest.approx(defined_parts(masks[:, frame], radius, boundaries=boundaries), abs=1e-12)


def test_a_row_that_lacks_its_end_is_a_part_of_it() -> None:
    g, p = drawn("##########"), drawn("####......")
    bg, bp = drawn("#.......##"), drawn("#..#......")
    window = _ObjectWindow(*(packed(mask[None]) for mask in (g, p, bg, bp, g & False, drawn("......##.."))), 1)
    # Of 6 pixels that lack, 3 are near the end; of the others 1 of 3 is a neighbour's (4 to 6 are far).
    pixels = np.array([1, 2, 0, 3]) / 10
    assert _share_tracked_loss(window, boundaries=False)[0] == pytest.approx(pixels)
    # Two of three pixels of the truth's boundary are open, outside of the prediction, and one of two inside the truth.
    recall, precision = 1 / 3, 1 / 2
    under = (precision * 2 / 3 + recall * 1 / 2) / (precision + recall)
    assert _share_tracked_loss(window)[0] == pytest.approx(pixels / 2 + under / 2 * np.array([1 / 3, 2 / 3, 0, 0]))


def test_the_window_of_an_object_holds_what_is_around_it() -> None:
    size = (40, 200)
    boxes = {"truth": (5, 60, 20, 70), "sent": (10, 100, 30, 140), "other": (0, 90, 15, 110), "void": (8, 60, 9, 200)}
    masks = {}
    for name, (top, left, bottom, right) in boxes.items():
        masks[name] = np.zeros((3, *size), bool)
        masks[name][1:, top:bottom, left:right] = True
    masks["other"][1, 14] = False
    block = ComparedBlock(
        ["0", "1", "2"], size,
        {"1": stack_of(*masks["truth"]), "2": stack_of(*masks["other"]), VOID: stack_of(*masks["void"])},
        {"1": stack_of(*masks["sent"]), "2": stack_of(*masks["truth"]), VOID: stack_of(*masks["other"])},
    )  # fmt: skip
    window = _window_of("1", block, np.array([1, 2]))
    assert window.radius == 2  # .008 of the diagonal, rounded up
    rows, columns = slice(4, 30), slice(0, 192)  # whole words; the boundary begins a row above
    expected = {
        "truth": masks["truth"], "prediction": masks["sent"], "other_truths": masks["other"],
        "other_predictions": masks["truth"] | masks["other"],
    }  # fmt: skip
    for name, mask in expected.items():
        assert np.array_equal(unpack(getattr(window, name), 192), mask[1:, rows, columns]), name
    for boundary, mask in ((window.truth_boundary, masks["truth"]), (window.prediction_boundary, masks["sent"])):
        near = mask[1:, :-1, :-1]
        steps = (mask[1:, 1:, :-1], mask[1:, :-1, 1:], mask[1:, 1:, 1:])
        changes = np.any([near != step for step in steps], axis=0)
        assert np.array_equal(unpack(boundary, 192), changes[:, rows, columns])
    assert _window_of("9", block, np.array([0])).truth.size == 0


# ── losses of sequences ─────────────────────────────────────────────────────


class SentMasks(MaskFiles):
    """Masks by frame and object, as rows of text."""

    def __init__(self, rows: dict[str, dict[str, str]]) -> None:
        self._rows = rows

    def frames(self) -> set[str]:
        return set(self._rows)

    def read_stacks(self, frames: list[str], size: Size, problems: Problems) -> Stacks:
        return stacks_from(self._rows, frames, size)


def stacks_from(rows: dict[str, dict[str, str]], frames: list[str], size: Size) -> Stacks:
    labels = sorted({label for frame in frames for label in rows[frame]})
    empty = "." * size[1]
    return {label: stack_of(*(drawn(rows[frame].get(label, empty)) for frame in frames)) for label in labels}


TRUTH = {
    "a": {"1": "####......", "2": ".......###"},
    "b": {"1": "##........"},
    "c": {"1": "####......"},
    "d": {"2": "........##"},
    "e": {"1": "####......"},
}
SENT = {
    "a": {"1": "##........", "2": ".......###"},
    "b": {"2": "##........"},
    "d": {"1": ".......##.", "2": ".#........"},
    "e": {"2": "...#######"},
}


def sequence(names: str = "12") -> Sequence:
    blocks = [Block(0, 3, (1, 10)), Block(3, 5, (1, 10))]
    frames = list(TRUTH)

    def read_block(index: int) -> Stacks:
        return stacks_from(TRUTH, frames[blocks[index].start : blocks[index].stop], (1, 10))

    facts = {name: ObjectFacts([], category="dog" if name == "1" else None) for name in names}
    return Sequence("v", frames, blocks, facts, read_block)


def scores() -> list[ObjectScore]:
    j = [[0.5, 0, 0, 0, 0], [1, 0, 0]]
    f = [[0.25, 0, 0, 0, 0], [1, 0, 0.5]]
    return [
        ObjectScore("v", "1", {}, list("abcde"), np.array(j[0]), np.array(f[0]), proposal=2),
        ObjectScore("v", "2", {}, list("ade"), np.array(j[1]), np.array(f[1]), proposal=7),
    ]


def scored(rows: dict[str, dict[str, str]] | None = SENT) -> ScoredSequence:
    return ScoredSequence(sequence(), None if rows is None else SentMasks(rows), scores())


def rows_of(stack: Any) -> list[str]:
    results = []
    for frame in range(len(stack.words)):
        row = np.zeros(64, bool)
        if stack.words.size:
            row = unpack(stack.words[frame, 0], 64)
        results.append("".join("#" if item else "." for item in row[:10]))
    return results


def test_blocks_are_compared_with_empty_masks_where_none_were_sent() -> None:
    first, second = prepare_blocks(scored(), SEQUENCE_PROTOCOLS["vos-benchmark"])
    assert (first.frames, second.frames, first.size) == (["a", "b", "c"], ["d", "e"], (1, 10))
    assert rows_of(first.predicted["1"]) == ["##........", "..........", ".........."]
    assert rows_of(first.predicted["2"]) == [".......###", "##........", ".........."]
    assert rows_of(second.predicted["2"]) == [".#........", "...#######"]
    assert rows_of(second.truth["1"]) == ["..........", "####......"]
    late = dict(list(SENT.items())[2:])
    assert [list(block.predicted) for block in prepare_blocks(scored(late), SEQUENCE_PROTOCOLS["mose"])] == [
        [],
        ["1", "2"],
    ]
    assert all(not block.predicted for block in prepare_blocks(scored(None), SEQUENCE_PROTOCOLS["mose"]))


def test_proposals_have_the_names_of_the_objects_that_they_were_matched_with() -> None:
    first, _ = prepare_blocks(scored(), SEQUENCE_PROTOCOLS["davis2017-unsupervised"])
    assert {name: rows_of(stack)[0] for name, stack in first.predicted.items()} == {
        "proposal 1": "##........", "1": ".......###"
    }  # fmt: skip


def test_one_mask_is_compared_with_each_object() -> None:
    first, _ = prepare_blocks(scored(), SEQUENCE_PROTOCOLS["davis2016"])
    rows = ["##.....###", "##........", ".........."]
    assert {name: rows_of(stack) for name, stack in first.predicted.items()} == {"1": rows, "2": rows}


def losses(protocol: str = "vos-benchmark", rows: dict[str, dict[str, str]] | None = SENT) -> SequenceLosses:
    return view_sequence(scored(rows), SEQUENCE_PROTOCOLS[protocol], "s", 0).losses


def test_objects_lose_in_each_frame_what_their_kind_says() -> None:
    results = losses()
    first, second = results.objects
    assert first.kinds == ["tracked", "miss", "miss", "ghost", "late"]
    assert second.kinds == ["tracked", "drift", "ghost"]
    whole = {kind: place for place, kind in enumerate(FAILURES)}
    assert first.parts[1:].sum(axis=1) == pytest.approx(np.ones(4))
    assert [first.parts[frame, whole[kind]] for frame, kind in ((1, "miss"), (3, "ghost"), (4, "late"))] == [1, 1, 1]
    assert [second.parts[1, whole["drift"]], second.parts[2, whole["ghost"]]] == [1, 0.75]
    assert first.parts[0, : -len(SHARED)].sum() == 0
    # The prediction lacks two of four pixels: half of the J half, beside what its boundary costs.
    assert first.parts[0].sum() >= 0.25
    assert first.shares == pytest.approx(first.parts.mean(axis=0))
    assert second.shares[whole["ghost"]] == pytest.approx(0.25)
    assert (first.area, first.absent) == (pytest.approx((0.4 + 0.2 + 0.4 + 0.4) / 4), True)
    assert (second.area, second.absent) == (pytest.approx(0.25), True)
    assert results.shares == pytest.approx(np.mean([first.shares, second.shares], axis=0))
    assert results.loss == pytest.approx(sum(first.shares + second.shares) / 2)
    assert (results.name, results.frames, results.width, results.stream) == ("v", list("abcde"), 10, "s")
    assert results.categories == {"1": "dog", "2": ""}


def test_j_alone_is_lost_where_f_does_not_count() -> None:
    first, second = losses("vost").objects
    assert first.parts[0, -4:] == pytest.approx([0, 0, 0, 1 / 2])  # both that lack are near the boundary
    assert second.parts[2].sum() == 1


def test_what_was_not_sent_misses_everything() -> None:
    for item in losses(rows=None).objects:
        assert set(item.kinds) == {"miss"}
        assert item.shares == [float(kind == "miss") for kind in FAILURES]


def test_an_object_that_is_never_there_has_no_area_and_no_frames_no_losses() -> None:
    absent = ObjectScore("v", "3", {}, ["a", "b"], np.ones(2), np.ones(2))
    nowhere = ObjectScore("v", "1", {}, [], np.zeros(0), np.zeros(0))
    always = ObjectScore("v", "1", {}, ["a"], np.ones(1), np.ones(1))
    some = ScoredSequence(sequence(), SentMasks(SENT), [absent, nowhere, always])
    first, second, third = view_sequence(some, SEQUENCE_PROTOCOLS["mose"], "", 0).losses.objects
    assert (first.kinds, first.area, first.absent, sum(first.shares)) == (["right", "right"], 0, True, 0)
    assert (second.kinds, sum(second.shares), second.absent) == ([], 0, False)
    assert (third.area, third.absent) == (pytest.approx(0.4), False)


def test_kinds_are_known_where_they_sum_to_the_mean() -> None:
    unknown = {name for name, protocol in SEQUENCE_PROTOCOLS.items() if not kinds_sum_to_loss(protocol)}
    assert {"davis2017", "vost", "lvos"}.isdisjoint(unknown)
    assert "mosev2" in unknown


def test_classes_count_the_same_where_the_protocol_tells_them_apart() -> None:
    kinds = len(FAILURES)
    objects = [([0.3] * kinds, "seen"), ([0.6] * kinds, "seen"), ([0.9] * kinds, "unseen")]
    assert shares_of(objects, SEQUENCE_PROTOCOLS["davis2017"]) == pytest.approx([0.6] * kinds)
    assert shares_of(objects, SEQUENCE_PROTOCOLS["lvos"]) == pytest.approx([(0.45 + 0.9) / 2] * kinds)
    assert shares_of(objects[:2], SEQUENCE_PROTOCOLS["lvos"]) == pytest.approx([0.45] * kinds)
    rising = [float(kind) for kind in range(kinds)]
    assert mean_shares([(rising, 1.0), ([1.0] * kinds, 3.0)]) == pytest.approx([(item + 3) / 4 for item in rising])
    assert mean_shares([]) == [0.0] * kinds


def header_of(stream: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(zlib.decompress(stream).split(b"\n")[0])
    return document


def test_a_page_has_the_numbers_of_each_frame_in_thousandths() -> None:
    view = view_sequence(scored(), SEQUENCE_PROTOCOLS["vos-benchmark"], "s", 5)
    header = header_of(view.prediction_stream())
    first, second = header["objects"]
    assert (first["name"], first["at"], second["at"]) == ("1", [0, 1, 2, 3, 4], [0, 3, 4])
    assert (first["j"], first["f"], second["f"]) == ([500, 0, 0, 0, 0], [250, 0, 0, 0, 0], [1000, 0, 500])
    assert (first["kinds"], second["kinds"]) == ([-2, 2, 2, 0, 1], [-2, 4, 0])
    parts = view.losses.objects[0].parts[0, -4:]
    assert first["parts"] == [round(1000 * share) for share in parts.tolist()]
    assert second["parts"] == [0, 0, 0, 0]
    assert header["runs"] > 0
    assert header["size"] == [1, 5]
    truth = header_of(view.truth_stream())
    assert (truth["frames"], truth["runs"] > 0) == (list("abcde"), True)
    assert header_of(view.prediction_stream())["runs"] > 0
    assert header_of(view.truth_stream(bare=True))["runs"] == header_of(view.prediction_stream(bare=True))["runs"] == 0


def test_masks_are_left_out_of_a_page_that_has_no_room_for_them() -> None:
    protocol = SEQUENCE_PROTOCOLS["vos-benchmark"]
    none = view_sequence(scored(), protocol, "s", 0)
    assert (none.truth_stream(), none.prediction_stream()) == (b"", b"")
    hidden = view_sequence(scored(), protocol, "s", 5, with_truth=False)
    assert (hidden.truth_stream(), bool(hidden.prediction_stream())) == (b"", True)
    assert header_of(view_sequence(scored(), protocol, "s", 1, most_runs=1).prediction_stream())["runs"] == 0
    empty = sequence()._replace(frames=[], blocks=[])
    nothing = view_sequence(ScoredSequence(empty, SentMasks({}), []), protocol, "s", 5)
    assert nothing.losses.width == 1
    assert header_of(nothing.truth_stream())["size"] == [1, 1]
    assert isinstance(nothing, _SequenceView)
    right = ObjectLosses(
        scores()[1]._replace(frames=["b"], j=np.ones(1), f=np.ones(1)), ["right"], np.zeros((1, 9)), [], 0, True
    )
    shown = replace(none, losses=replace(none.losses, objects=[right]), predicted=hidden.predicted)
    assert header_of(shown.prediction_stream())["objects"][0]["kinds"] == [-1]


def test_an_object_on_the_other_side_of_its_edge_loses_j_alone(tmp_path: Path) -> None:
    truth, sent = np.zeros((3, 20, 20), np.uint8), np.zeros((3, 20, 20), np.uint8)
    truth[:, :10], sent[:, 10:] = 1, 1
    for name, labels in (("truth", truth), ("sent", sent)):
        (tmp_path / f"{name}.zip").write_bytes(label_zip({"video": list(labels)}))
    protocol = find_protocol("vos-benchmark")
    paths = [tmp_path / "sent.zip", tmp_path / "truth.zip"]
    scores = score(*paths, protocol, layout="davis2017")
    (row,) = scores.kinds.to_dict("records")
    assert (row["sequence"], row["object"], row["split"]) == ("video", "1", scores.reports[0].split)
    assert {kind: row[kind] for kind in FAILURES} == {kind: (kind == "drift") / 2 for kind in FAILURES}


def test_one_far_pixel_takes_what_its_boundary_costs() -> None:
    g, p = drawn("##########"), drawn("#######...")
    bg, bp = drawn("#........#"), drawn("......#...")
    window = _ObjectWindow(*(packed(mask[None]) for mask in (g, p, bg, bp, g & False, g & False)), 1)
    # Neither boundary is met: too little costs 1/4 and 1/2, too much 1/4, which has no far pixels.
    assert _share_tracked_loss(window)[0] == pytest.approx([0, (0.1 + 3 / 4) / 2, 0, (0.2 + 1 / 4) / 2])


def left_of(folder: Path, name: str, room: int, across: int = 1300) -> dict[str, Any]:
    """Return the data that a phase stores of two videos, with streams as headers and lengths."""
    small, wide = np.zeros((4, 6, 8), np.uint8), np.zeros((4, 4, across), np.uint8)
    small[:, 1:4, 1:5], wide[:, 1:3, 10:900], wide[2:, 3, 1000:] = 1, 1, 2
    sent = {"a": list(np.roll(small, 1, 2)), "b": list(wide * (wide == 1))}
    (folder / "truth.zip").write_bytes(label_zip({"a": list(small), "b": list(wide)}))
    (folder / "sent.zip").write_bytes(label_zip(sent))
    scores = score(folder / "sent.zip", folder / "truth.zip", find_protocol(name), layout="davis2017")
    inputs, (report,) = scores.open_inputs(), scores.reports
    assert isinstance(report, SequenceReport)
    with closing(inputs.scorers[report.split].open(inputs.results)) as opened:
        losses = read_losses(opened.pairs, report, room, 1)
    for row in losses["sequences"]:
        lines = [zlib.decompress(base64.b64decode(stream)).partition(b"\n") for stream in row["streams"]]
        row["streams"] = [
            (json.loads(head)["size"], json.loads(head)["runs"], len(rest) > 0) for head, _, rest in lines
        ]
    return losses


def test_a_phase_leaves_of_all_sequences_their_losses_and_of_the_worst_their_masks(tmp_path: Path) -> None:
    left = left_of(tmp_path, "vos-benchmark", 10**6)
    missed = [float(kind == "miss") for kind in FAILURES]
    right, still = np.zeros(9).tolist(), {"category": "", "unseen": False, "absent": False}
    # The first and the last frame do not count; what nobody predicted starts in the third one.
    assert left == {
        "metric": "J&F", "exact": True, "shares": pytest.approx([0, 0, 1 / 3, 0, 0, 0, 0, 0, 0.2 / 3]), "smaller": True,
        "sequences": [
            {"name": "b", "masks": True, "streams": [([3, 854], 14, True), ([3, 854], 12, True)], "objects": [
                {"name": "1", "frames": 2, "area": pytest.approx(2 * 890 / 5200), "shares": right, **still},
                {"name": "2", "frames": 1, "area": pytest.approx(300 / 5200), "shares": missed, **still},
            ]},
            {"name": "a", "masks": True, "streams": [([6, 8], 28, True), ([6, 8], 28, True)], "objects": [
                {"name": "1", "frames": 2, "area": 0.25, "shares": pytest.approx([*right[1:], 0.2]), **still},
            ]},
        ],
    }  # fmt: skip
    assert left_of(tmp_path, "vost", 0) == {
        **left_of(tmp_path, "vost", -1),
        "metric": "J",
        "smaller": True,
        "sequences": [],
    }
    assert not left_of(tmp_path, "mosev2", 10**6)["exact"]
    # Eight frames of two sides, 640 pixels wide, of 1.2 bytes each, may take nine tenths of the room.
    fitting = left_of(tmp_path, "vost", 13_654)["sequences"][1]["streams"]
    assert [size for size, *_ in fitting] == [[2, 640], [2, 640]]
    assert not left_of(tmp_path, "vost", 1, 160)["smaller"]  # the narrowest that masks are drawn


def test_the_worst_sequences_keep_their_masks_as_far_as_there_is_room() -> None:
    """Sequences in upper case keep their masks. After one without room, all with a smaller loss lose theirs."""
    lost = {"a": (0.5, 10, 2), "b": (0.3, 8, 2), "c": (0.3, 3, 1)}
    rows = {21: "ABC", 20: "ABc", 19: "ABc", 18: "Abc", 13: "Abc", 12: "abc", 5: "abc"}
    for room, order in itertools.product((*rows, 4), itertools.permutations("abc")):
        entries = _Entries(room)
        for name in order:
            share, whole, bare = lost[name]
            streams = {"streams": ["-" * (whole - 1), "-"], "bare": ["", "=" * bare]}
            entries.add({"name": name, "lost": share, "objects": [name], "noise": False, **streams})
        shown = [(row["name"], row["objects"], row["masks"], "".join(row["streams"])) for row in entries.rows()]
        kept = rows.get(room, "abc")
        assert entries.fit is (room in rows)
        assert "".join(name.upper() if masks else name for name, _, masks, _ in shown) == kept
        assert [entry[1] for entry in shown] == [["a"], ["b"], ["c"]]
        assert [entry[3] for entry in shown] == [
            "=" * lost[name][2] if name in kept else "-" * lost[name][1] for name in "abc"
        ]


def test_masks_of_too_many_runs_are_left_out(tmp_path: Path) -> None:
    """Frames may have 40 runs per pixel of width: here 1,280, with eight in each row."""
    for rows, is_noise in ((53, False), (54, True)):
        stripes, path = (np.indices((rows, 8))[1] % 2).astype(np.uint8), tmp_path / f"{rows}.zip"
        path.write_bytes(label_zip({"a": [stripes, stripes, stripes.repeat(2, axis=1)]}))
        scores = score(path, path, find_protocol("vos-benchmark"), layout="davis2017")
        inputs, (report,) = scores.open_inputs(), scores.reports
        assert isinstance(report, SequenceReport)
        with closing(inputs.scorers[report.split].open(inputs.results)) as opened:
            (row,) = read_losses(opened.pairs, report, 10**6, 1)["sequences"]
        assert row["masks"] is not is_noise
