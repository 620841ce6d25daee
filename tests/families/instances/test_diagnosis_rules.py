"""Rules of the diagnosis, one by one: values worked out by hand, or by short formulas on plain arrays."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitCounts
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.families.panoptic.counting import IOU, MATCHED, MISSED, SURPLUS
from segjudge.evaluation_script.families.panoptic.protocols import PANOPTIC_PROTOCOLS
from segjudge.evaluation_script.families.semantic.protocols import SEMANTIC_PROTOCOLS
from segjudge.evaluation_script.families.sequences.losses import KINDS as FAILURES
from segjudge.evaluation_script.families.sequences.losses import (
    SHARED,
    ComparedBlock,
    ObjectLosses,
    ScoredSequence,
    SequenceLosses,
    _mark_late,
    _ObjectWindow,
    _SequenceView,
    _share_tracked_loss,
    _states_of,
    _window_of,
    has_kinds,
    mean_shares,
    prepare_blocks,
    shares_of,
    view_sequence,
)
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.families.sequences.truth import VOID, Block, ObjectFacts, Sequence
from segjudge.evaluation_script.families.tracking.counting import ALPHAS, HOTA_FIELDS
from segjudge.evaluation_script.families.tracking.protocols import TRACKS_PROTOCOLS
from segjudge.evaluation_script.files import Problems
from segjudge.evaluation_script.masks.detections import OverlappingPairs
from segjudge.evaluation_script.masks.files import MaskFiles
from segjudge.evaluation_script.masks.overlaps import SHIFT
from segjudge.evaluation_script.masks.stack import Size, Stacks, empty_labels, pack, unpack
from segjudge.families import tools_of
from segjudge.families.base.tools import UnitLosses
from segjudge.families.instances.diagnosis import (
    _TIDE_RECALLS,
    KINDS,
    InstanceDiagnosis,
    _assign_partners,
    _count_by_image,
    _CurvePoints,
    _DetectionErrors,
    _find_best_threshold,
    _find_errors,
    _ImageCounts,
    count_confusions,
    diagnose,
    measure_calibration,
    measure_localisation_error,
)
from segjudge.report.confusion import list_pairs
from segjudge.scoring import score
from segjudge.scoring.scores import Scores, find_protocol
from segjudge.system.errors import UsageError
from tests.builders import drawn, label_zip, stack_of
from tests.families.instances.test_error_kinds import made_up
from tests.families.test_unit_losses import losses_of

# ── kinds of failure of a frame ─────────────────────────────────────────────


def state(truth: str, prediction: str, **others: str) -> str:
    """The state of an object in one frame of a single row, beside other objects of the truth."""
    side = {"1": stack_of(drawn(truth)), **{label[1:]: stack_of(drawn(row)) for label, row in others.items()}}
    (found,) = _states_of("1", ComparedBlock(["0"], (1, len(truth)), side, {"1": stack_of(drawn(prediction))}))
    return found


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
    assert _mark_late(states.split(), [one == "1" for one in visible]) == kinds.split()


# ── how the loss of a tracked frame is shared ───────────────────────────────


def packed(mask: Any) -> Any:
    block = empty_labels(len(mask), mask.shape[1:], bool)
    block[:, :, : mask.shape[2]] = mask
    return pack(block)


def near(mask: Any, radius: int) -> Any:
    """Pixels within a radius of those of one frame, each distance measured."""
    grid, found = np.indices(mask.shape), np.zeros(mask.shape, bool)
    for row, column in zip(*np.nonzero(mask), strict=True):
        found |= (grid[0] - row) ** 2 + (grid[1] - column) ** 2 <= radius**2
    return found


def share_of(part: Any, whole: Any) -> float:
    return float(part.sum() / whole.sum()) if whole.any() else 0.0


def defined_parts(masks: Any, radius: int, *, boundaries: bool) -> list[float]:
    """The shares of one frame as they are defined: truth, prediction, their boundaries, and the others of both."""
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
    found = _share_tracked_loss(window, boundaries=boundaries)
    for frame, shares in enumerate(found.tolist()):
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
        here = mask[1:, :-1, :-1]
        steps = (mask[1:, 1:, :-1], mask[1:, :-1, 1:], mask[1:, 1:, 1:])
        changes = np.any([here != one for one in steps], axis=0)
        assert np.array_equal(unpack(boundary, 192), changes[:, rows, columns])
    assert _window_of("9", block, np.array([0])).truth.size == 0


# ── losses of sequences ─────────────────────────────────────────────────────


class SentMasks(MaskFiles):
    """Masks by frame and object, as rows of text."""

    def __init__(self, rows: dict[str, dict[str, str]]) -> None:
        self._rows = rows

    def frames(self) -> set[str]:
        return set(self._rows)

    def stacks(self, frames: list[str], size: Size, problems: Problems) -> Stacks:
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
    found = []
    for frame in range(len(stack.words)):
        row = np.zeros(64, bool)
        if stack.words.size:
            row = unpack(stack.words[frame, 0], 64)
        found.append("".join("#" if one else "." for one in row[:10]))
    return found


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
    found = losses()
    first, second = found.objects
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
    assert found.shares == pytest.approx(np.mean([first.shares, second.shares], axis=0))
    assert found.loss == pytest.approx(sum(first.shares + second.shares) / 2)
    assert (found.name, found.frames, found.width, found.stream) == ("v", list("abcde"), 10, "s")
    assert found.categories == {"1": "dog", "2": ""}


def test_j_alone_is_lost_where_f_does_not_count() -> None:
    first, second = losses("vost").objects
    assert first.parts[0, -4:] == pytest.approx([0, 0, 0, 1 / 2])  # both that lack are near the boundary
    assert second.parts[2].sum() == 1


def test_what_was_not_sent_misses_everything() -> None:
    for one in losses(rows=None).objects:
        assert set(one.kinds) == {"miss"}
        assert one.shares == [float(kind == "miss") for kind in FAILURES]


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
    unknown = {name for name, protocol in SEQUENCE_PROTOCOLS.items() if not has_kinds(protocol)}
    assert {"davis2017", "vost", "lvos"}.isdisjoint(unknown)
    assert "mosev2" in unknown


def test_classes_count_the_same_where_the_protocol_tells_them_apart() -> None:
    kinds = len(FAILURES)
    objects = [([0.3] * kinds, "seen"), ([0.6] * kinds, "seen"), ([0.9] * kinds, "unseen")]
    assert shares_of(objects, SEQUENCE_PROTOCOLS["davis2017"]) == pytest.approx([0.6] * kinds)
    assert shares_of(objects, SEQUENCE_PROTOCOLS["lvos"]) == pytest.approx([(0.45 + 0.9) / 2] * kinds)
    assert shares_of(objects[:2], SEQUENCE_PROTOCOLS["lvos"]) == pytest.approx([0.45] * kinds)
    rising = [float(kind) for kind in range(kinds)]
    assert mean_shares([(rising, 1.0), ([1.0] * kinds, 3.0)]) == pytest.approx([(one + 3) / 4 for one in rising])
    assert mean_shares([]) == [0.0] * kinds


def header_of(stream: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(stream).split(b"\n")[0])
    return found


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


# ── detections ──────────────────────────────────────────────────────────────

BOX, FAR = [0, 0, 20, 20], [60, 60, 20, 20]
#: Parts of BOX by their IoU with it.
HALF, TENTH, THIRD, MOST = [0, 0, 20, 10], [0, 0, 20, 2], [0, 0, 20, 6], [0, 0, 20, 18]


def kinds_found(instances: list[list[Any]], detections: list[list[Any]], folder: Path) -> list[str]:
    kind = _find_errors(made_up(instances, detections, folder)).kind.tolist()
    return ["right" if one < 0 else [*KINDS][one] for one in kind]


@pytest.mark.parametrize(
    ("instances", "detections", "kinds"),
    [
        ([[1, 1, BOX, 0]], [[1, 1, HALF, 0.9]], "right"),
        ([[1, 1, BOX, 0]], [[1, 1, BOX, 0.9], [1, 1, HALF, 0.8]], "right Loc"),  # up to a half it is no double
        ([[1, 1, BOX, 0]], [[1, 1, BOX, 0.9], [1, 1, MOST, 0.8]], "right Dupe"),
        ([[1, 1, BOX, 0]], [[1, 1, TENTH, 0.9]], "Loc"),
        ([[1, 2, BOX, 0]], [[1, 1, TENTH, 0.9]], "Bkg"),
        ([[1, 2, BOX, 0]], [[1, 1, THIRD, 0.9]], "Both"),
        ([[1, 2, BOX, 0]], [[1, 1, HALF, 0.9]], "Cls"),
        ([[1, 1, BOX, 0], [1, 2, MOST, 0]], [[1, 1, THIRD, 0.9]], "Loc"),  # its own category goes before
        ([[1, 1, BOX, 0], [1, 2, BOX, 0]], [[1, 1, BOX, 0.9], [1, 1, MOST, 0.8]], "right Cls"),
        ([[1, 1, BOX, 1], [1, 2, FAR, 0]], [[1, 2, BOX, 0.9]], "Bkg"),  # a crowd is nothing to take it for
        ([[1, 1, [40, 0, 20, 20], 0], [1, 2, BOX, 0]], [[1, 1, [0, 0, 41, 20], 0.9]], "Both"),
    ],
)
def test_each_error_has_the_first_kind_that_holds(
    instances: list[list[Any]], detections: list[list[Any]], kinds: str, tmp_path: Path
) -> None:
    assert kinds_found(instances, detections, tmp_path) == kinds.split()


def test_an_instance_is_missed_unless_an_error_is_about_it(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [1, 2, FAR, 0], [2, 1, BOX, 0], [2, 1, FAR, 1], [3, 2, BOX, 0]]
    found = made_up(instances, [[1, 1, THIRD, 0.9], [1, 1, FAR, 0.8], [3, 2, BOX, 0.7]], tmp_path)
    errors = _find_errors(found)
    assert errors.target.tolist() == [0, 1, -1]
    assert errors.missed.tolist() == [False, False, True, False, False]


def half_up_to(recalls: int, precision: float = 1.0) -> float:
    """AP of a precision up to a recall of so many hundredths, and nothing beyond."""
    return precision * (recalls + 1) / 101


def test_each_kind_costs_what_repairing_it_gains(tmp_path: Path) -> None:
    # Dogs: two instances, a Loc above the one that is right. Cats: two instances; one is taken for a dog, one missed.
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0], [1, 2, FAR, 0], [3, 2, FAR, 0]]
    detections = [[1, 1, THIRD, 0.9], [1, 1, FAR, 0.6], [2, 1, BOX, 0.8], [2, 2, FAR, 0.5], [3, 1, BOX, 0.4]]
    errors = _find_errors(made_up(instances, detections, tmp_path))
    before = (half_up_to(50, 1 / 2) + 0) / 2
    assert errors.precision == pytest.approx([half_up_to(50, 1 / 2), 0])
    after = {
        "Cls": (half_up_to(50, 1 / 2) + half_up_to(50)) / 2,
        "Loc": (1 + 0) / 2,
        "Both": before,
        "Dupe": before,
        "Bkg": before,
        "Miss": before,
        "FalsePos": (half_up_to(50) + 0) / 2,
        "FalseNeg": (1 / 2 + 0) / 2,  # a category with false alarms alone still counts
    }
    found = errors.costs()
    assert found == pytest.approx({kind: value - before for kind, value in after.items()})


def test_false_alarms_cost_what_dropping_them_gains(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0]]
    detections = [[3, 1, FAR, 0.9], [1, 1, BOX, 0.8], [1, 1, MOST, 0.7], [2, 1, BOX, 0.6]]
    costs = _find_errors(made_up(instances, detections, tmp_path)).costs()
    before = (51 * 1 / 2 + 50 * 1 / 2) / 101  # the envelope is 2/4 throughout
    assert costs["Bkg"] == pytest.approx((51 + 50 * 2 / 3) / 101 - before)
    assert costs["Dupe"] == pytest.approx((101 * 2 / 3) / 101 - before)
    assert costs["FalsePos"] == pytest.approx(1 - before)


def test_the_best_of_equals_is_the_first_and_takes_the_place(tmp_path: Path) -> None:
    # Both are about one dog: the cat above it is moved there, the dog below it is dropped.
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0]]
    detections = [[1, 2, BOX, 0.9], [1, 1, THIRD, 0.7], [2, 1, BOX, 0.8]]
    costs = _find_errors(made_up(instances, detections, tmp_path)).costs()
    before = half_up_to(50)
    assert costs["Cls"] == pytest.approx(1 - before)
    assert costs["Loc"] == 0


def test_tide_counts_categories_that_the_truth_lacks(tmp_path: Path) -> None:
    found = made_up([[1, 1, BOX, 0]], [[1, 1, BOX, 0.9], [1, 2, FAR, 0.8]], tmp_path)
    for as_tide, average, gain in ((False, 1, 0), (True, 0.5, 0.5)):
        errors = _find_errors(found, as_tide=as_tide)
        assert errors.average(errors.precision) == average
        assert errors.costs()["Bkg"] == pytest.approx(gain)
    assert _TIDE_RECALLS.tolist() == [hundredth / 100 for hundredth in range(101)]


def test_a_cost_below_zero_is_none_but_for_the_totals() -> None:
    one, nothing = np.ones(1), np.zeros(1)
    errors = _DetectionErrors(nothing, nothing, nothing, one > 0, one, {"Miss": one / 2, "FalseNeg": one / 2})
    assert errors.costs() == {"Miss": 0, "FalseNeg": -0.5}
    assert _DetectionErrors(nothing, nothing, nothing, one < 0, one, {}).average(one) == 0


def test_precision_is_the_best_from_a_recall_on() -> None:
    category, score = np.array([1, 0, 0, 0, 0, 1]), np.array([0.5, 0.9, 0.2, 0.8, 0.7, 0.6])
    right = np.array([True, True, True, False, True, False])
    points = _CurvePoints(category, score, right, np.array([4, 1, 0, 1, 0]), np.array([0.25, 0.3, 0.5, 0.75, 1.0]))
    points = replace(points, category=np.append(category, 4), score=np.append(score, 1), right=np.append(right, False))
    found = points.curves()
    assert found[0] == pytest.approx([1, 3 / 4, 3 / 4, 3 / 4, 0])
    assert found[1] == pytest.approx([1 / 2] * 5)
    assert np.isnan(found[2]).all()
    assert found[3].tolist() == found[4].tolist() == [0] * 5
    fewer = points.without(np.array([0]))
    assert fewer.instances.tolist() == [3, 1, 0, 1, 0]
    assert fewer.curves()[0] == pytest.approx([1, 1, 3 / 4, 3 / 4, 3 / 4])
    assert points.of(points.category == 1).score.tolist() == [0.5, 0.6]
    assert np.isnan(points.of(points.category == 1).precision()[4])
    assert points.precision()[0] == pytest.approx(3.25 / 5)


def test_a_crowd_takes_what_lies_in_it_by_more_than_half(tmp_path: Path) -> None:
    crowd, half, more = [0, 0, 40, 40], [30, 0, 20, 20], [29, 0, 20, 20]
    found = made_up([[1, 1, crowd, 1]], [[1, 1, half, 0.9], [1, 1, more, 0.8], [1, 2, more, 0.7]], tmp_path)
    assert found.ignored.tolist() == [False, True, False]
    assert found.select(0.8).tolist() == [True, False, False]
    assert found.select(0.95).tolist() == [False] * 3
    assert found.at(0.55).ignored.tolist() == [False, False, False]
    own = made_up([[1, 1, crowd, 1], [1, 1, more, 0]], [[1, 1, more, 0.8]], tmp_path)
    assert (own.ignored.tolist(), own.right.tolist(), own.hits.tolist()) == ([False], [True], [False, True])
    assert own.instances.tolist() == [1, 0]


def test_detections_are_judged_again_at_another_threshold(tmp_path: Path) -> None:
    found = made_up(
        [[1, 1, BOX, 0], [2, 1, BOX, 0]], [[1, 1, HALF, 0.9], [1, 1, MOST, 0.8], [2, 1, BOX, 0.7]], tmp_path
    )
    assert found.foreground == 0.5
    assert found.partner.tolist() == [0, -1, 1]
    assert found.at(0.9).partner.tolist() == [-1, 0, 1]
    assert found.at(0.95).partner.tolist() == [-1, -1, 1]
    quirk = replace(found, id_zero_quirk=True, truth=replace(found.truth, ids=found.truth.ids - 1))
    assert (quirk.right.tolist(), quirk.hits.tolist()) == ([False, False, True], [True, True])


def test_an_instance_is_taken_once() -> None:
    pairs = OverlappingPairs(np.array([0, 0, 1, 1, 3]), np.array([1, 0, 1, 2, 2]), np.ones(5))
    assert _assign_partners(pairs, 5).tolist() == [1, 2, -1, -1, -1]


def test_of_equals_confusion_takes_the_own_category(tmp_path: Path) -> None:
    both = [[1, 1, BOX, 0], [1, 2, BOX, 0]]
    assert count_confusions(made_up(both, [[1, 2, BOX, 0.9]], tmp_path)).tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 0]]
    closer = [[1, 1, MOST, 0], [1, 2, BOX, 0]]
    assert count_confusions(made_up(closer, [[1, 2, MOST, 0.9]], tmp_path)).tolist() == [
        [0, 1, 0],
        [0, 0, 1],
        [0, 0, 0],
    ]
    assert count_confusions(made_up(both[:1], [[1, 2, HALF, 0.9]], tmp_path)).tolist() == [
        [0, 1, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]
    assert count_confusions(made_up(both[:1], [[1, 2, THIRD, 0.9]], tmp_path)).tolist() == [
        [0, 0, 1],
        [0, 0, 0],
        [0, 1, 0],
    ]
    assert count_confusions(made_up(both[:1], [[1, 1, BOX, 0.5]], tmp_path), 0.5).tolist() == [
        [1, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]


# ── what scores are worth ───────────────────────────────────────────────────


def test_calibration_is_the_gap_between_score_and_what_is_right(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0], [3, 2, [0, 0, 90, 90], 1]]
    detections = [[1, 1, BOX, 1.0], [1, 1, FAR, 0.92], [2, 1, MOST, 0.3], [3, 2, FAR, 0.31], [2, 2, FAR, 0.05]]
    found = made_up(instances, detections, tmp_path)
    bins = measure_calibration(found)
    assert bins.counts.tolist() == [1, 0, 0, 1, 0, 0, 0, 0, 0, 2]
    assert bins.scores[[0, 3, 9]] == pytest.approx([0.05, 0.3, 0.96])
    assert bins.shares[[0, 3, 9]] == pytest.approx([0, 1, 0.5])
    assert bins.error == pytest.approx((0.05 + 0.7 + 2 * 0.46) / 4)
    assert bins.largest == pytest.approx(0.7)
    assert measure_calibration(found, 0.3).counts.sum() == 3
    # Dogs: 25 bins part 1 and .92 from .3, which lies at .9; cats: .05 for nothing.
    assert measure_localisation_error(found) == pytest.approx(((2 * abs(0.96 - 0.5) + 0.6) / 3 + 0.05) / 2)
    assert measure_localisation_error(found, 0.2) == pytest.approx((2 * 0.46 + 0.6) / 3)


def test_bins_of_located_errors_are_a_twenty_fifth_wide(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0]]
    together = made_up(instances, [[1, 1, BOX, 0.85], [2, 1, FAR, 0.87]], tmp_path)
    assert measure_localisation_error(together) == pytest.approx(abs(0.86 - 0.5))
    apart = made_up(instances, [[1, 1, BOX, 0.87], [2, 1, FAR, 0.89]], tmp_path)  # .88 is the border
    assert measure_localisation_error(apart) == pytest.approx((0.13 + 0.89) / 2)
    of_zero = replace(apart, id_zero_quirk=True, truth=replace(apart.truth, ids=apart.truth.ids - 1))
    assert measure_localisation_error(of_zero) == pytest.approx((0.87 + 0.89) / 2)


def test_of_equal_f1_the_highest_score_is_the_threshold(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0], [3, 1, BOX, 0], [3, 1, [0, 0, 90, 90], 1]]
    detections = [[1, 1, BOX, 0.9], [1, 1, FAR, 0.5], [2, 1, FAR, 0.45], [2, 1, BOX, 0.4], [3, 1, FAR, 0.95]]
    found = made_up(instances, detections, tmp_path)
    for category in (None, 0):  # 2/4 from .9 on, 4/7 from .4 on
        best = _find_best_threshold(found, category)
        assert best is not None
        assert (best.score, best.f1, best.precision, best.recall) == pytest.approx((0.4, 4 / 7, 1 / 2, 2 / 3))
    assert _find_best_threshold(found, 1) is None
    equal = _find_best_threshold(made_up(instances[:2], [*detections[:3], [3, 1, FAR, 0.42], detections[3]], tmp_path))
    assert equal is not None  # 2/3 from .9 on, 4/7 from .4 on
    assert (equal.score, equal.f1, equal.precision, equal.recall) == pytest.approx((0.9, 2 / 3, 1, 1 / 2))


@pytest.mark.parametrize("right_first", [True, False])
@pytest.mark.parametrize("category", [None, 0])
def test_equal_scores_are_kept_together(right_first: bool, category: int | None, tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [2, 1, BOX, 0]]
    for one, other in ((1, 2), (2, 1), (1, 1)):
        equal = [[one, 1, BOX, 0.5], [other, 1, FAR, 0.5]]
        found = made_up(instances, equal if right_first else equal[::-1], tmp_path)
        best = _find_best_threshold(found, category)
        assert best is not None  # 2/3 if the right one of both could be kept alone
        assert (best.score, best.f1, best.precision, best.recall) == pytest.approx((0.5, 1 / 2, 1 / 2, 1 / 2))


def test_images_are_counted_by_their_mistakes(tmp_path: Path) -> None:
    found = made_up(
        [[1, 1, BOX, 0], [1, 1, FAR, 0], [2, 1, BOX, 0], [2, 1, FAR, 1]],
        [[1, 1, BOX, 0.9], [1, 2, FAR, 0.8], [2, 1, BOX, 0.7], [3, 1, BOX, 0.6]], tmp_path,
    )  # fmt: skip
    counts = _count_by_image(found, 0.0)
    assert [one.tolist() for one in (counts.right, counts.wrong, counts.missed)] == [[1, 1, 0], [1, 0, 1], [1, 0, 0]]
    assert counts.f1.tolist() == [2 / 4, 1, 0]
    assert counts.profiles() == {"perfect": 1, "false alarms": 1, "misses": 0, "mixed": 1}
    zero, three = np.zeros(1, int), np.full(1, 3)
    assert _ImageCounts(zero, zero, zero).f1.tolist() == [1]
    assert _ImageCounts(zero, zero, three).profiles()["misses"] == 1


PROTOCOL = INSTANCE_PROTOCOLS["coco-box"]

# ── all tables of detections ────────────────────────────────────────────────


def diagnosis(folder: Path) -> InstanceDiagnosis:
    """Two dogs and three cats; the best threshold is .5, above a false alarm."""
    instances = [
        [1, 1, BOX, 0],
        [2, 1, BOX, 0],
        [1, 2, FAR, 0],
        [3, 2, FAR, 0],
        [2, 2, FAR, 0],
        [3, 1, [20, 0, 20, 20], 1],
    ]
    detections = [
        [1, 1, BOX, 0.9], [1, 1, FAR, 0.8], [2, 1, BOX, 0.7], [2, 2, FAR, 0.6], [2, 2, [0, 40, 9, 9], 0.5],
        [3, 2, FAR, 0.5], [3, 2, [0, 40, 9, 9], 0.4], [3, 1, [20, 0, 20, 20], 0.95],
    ]  # fmt: skip
    return InstanceDiagnosis(made_up(instances, detections, folder), PROTOCOL)


def test_kinds_are_counted_beside_what_they_cost(tmp_path: Path) -> None:
    found = diagnosis(tmp_path)
    rows = {row["kind"]: (row["count"], row["cost"]) for row in found.list_kinds()}
    assert {kind: count for kind, (count, _) in rows.items()} == {
        "Cls": 1, "Loc": 0, "Both": 0, "Dupe": 0, "Bkg": 3, "Miss": 0
    }  # fmt: skip
    # A cat that is detected as a dog lies between the two dogs; the cats have 2 of 3, a false alarm below the first.
    dogs, cats = (51 + 50 * 2 / 3) / 101, (34 + 33 * 2 / 3) / 101
    assert found.errors.precision == pytest.approx([dogs, cats])
    assert rows["Bkg"][1] == pytest.approx(67 / 101 / 2 - cats / 2)
    fixed = (67 + 34 * 3 / 4) / 101  # cats: right, right, wrong, right
    assert rows["Cls"][1] == pytest.approx((1 + fixed - dogs - cats) / 2)
    (dog, cat) = found.list_categories()
    assert (dog["name"], dog["instances"], dog["detections"], dog["threshold"]) == ("dog", 2, 4, 0.7)
    assert (dog["AP50"], dog["F1"], dog["Bkg"], dog["Cls"]) == pytest.approx((dogs, 4 / 5, 0, 1 - dogs))
    assert (cat["name"], cat["instances"], cat["detections"], cat["threshold"]) == ("cat", 3, 4, 0.5)
    assert (cat["AP50"], cat["F1"], cat["Bkg"]) == pytest.approx((cats, 4 / 6, 67 / 101 - cats))


def test_a_category_without_anything_right_has_no_threshold(tmp_path: Path) -> None:
    found = InstanceDiagnosis(made_up([[1, 2, BOX, 0]], [[1, 1, BOX, 0.9]], tmp_path), PROTOCOL)
    (cat,) = found.list_categories()
    assert (cat["threshold"], cat["F1"], cat["detections"]) == (None, 0, 0)
    assert (found.least, found.selection.tolist()) == (-np.inf, [True])


def test_steps_are_precision_and_recall_after_each_detection(tmp_path: Path) -> None:
    recall, precision, score = diagnosis(tmp_path).trace_curve(0)
    assert recall.tolist() == [1 / 2, 1 / 2, 1]
    assert precision.tolist() == pytest.approx([1, 1 / 2, 2 / 3])
    assert score.tolist() == [0.9, 0.8, 0.7]  # without what lies in the crowd


def test_curves_are_means_over_the_categories_of_the_truth(tmp_path: Path) -> None:
    protocol = PROTOCOL
    one = InstanceDiagnosis(
        made_up([[1, 1, BOX, 0]], [[1, 1, [0, 0, 20, 15], 0.9], [1, 2, FAR, 0.9]], tmp_path), protocol
    )
    curves = {iou: curve.tolist() for iou, curve in one.average_curves().items()}
    assert list(curves) == pytest.approx([0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95])
    assert [set(curve) for curve in curves.values()] == [{1}] * 6 + [{0}] * 4
    none = InstanceDiagnosis(made_up([], [[1, 1, BOX, 0.9]], tmp_path), protocol)
    assert none.average_curves()[0.5].tolist() == [0] * 101
    average = diagnosis(tmp_path)
    assert average.average_curves()[0.5].mean() == pytest.approx(average.errors.precision.mean())


def test_confusions_are_those_of_two_categories_most_frequent_first(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [1, 2, FAR, 0], [2, 2, BOX, 0], [3, 2, BOX, 0], [3, 1, FAR, 0]]
    detections = [[1, 2, BOX, 0.9], [1, 1, FAR, 0.8], [2, 1, BOX, 0.7], [3, 1, FAR, 0.6], [3, 2, [0, 50, 9, 9], 0.5]]
    found = InstanceDiagnosis(made_up(instances, detections, tmp_path), PROTOCOL)
    assert found.least == 0.6
    table = count_confusions(found.judged, found.least)
    categories = [row for row in list_pairs([*found.names, "nothing"], table, "count") if row["taken for"] != "nothing"]
    assert [row for row in categories if row["truth"] != "nothing"] == [
        {"truth": "cat", "taken for": "dog", "count": 2, "share": pytest.approx(2 / 3)},
        {"truth": "dog", "taken for": "cat", "count": 1, "share": 1 / 2},
    ]


def test_images_with_most_mistakes_are_first(tmp_path: Path) -> None:
    found = diagnosis(tmp_path)
    assert found.least == 0.5
    assert found.misses.tolist() == [
        one == 1 for one in found.judged.instance_category - (found.judged.instance_image > 0)
    ]
    rows = [tuple(row[key] for key in ("right", "wrong", "missed")) for row in found.list_images()]
    assert rows == [(1, 1, 1), (2, 1, 0), (1, 0, 0)]
    assert [row["image"] for row in found.list_images()] == ["1", "2", "3"]
    assert [row["F1"] for row in found.list_images()] == pytest.approx([1 / 2, 4 / 5, 1])
    assert found.rank_images(2) == [0, 1]
    assert found.find_worst_of_categories() == [
        0,
        0,
    ]  # both categories have one mistake in the first, which is the first
    named = replace(found.judged, truth=replace(found.judged.truth, names={2: "b.jpg"}))
    assert replace(found, judged=named).name_image(1) == "b.jpg"


def test_the_worst_images_of_categories_begin_with_the_lowest_precision(tmp_path: Path) -> None:
    instances = [[1, 1, BOX, 0], [3, 1, FAR, 0], [1, 2, BOX, 0], [2, 2, FAR, 0], [2, 2, BOX, 0]]
    detections = [[1, 1, BOX, 0.9], [3, 1, BOX, 0.8], [3, 1, FAR, 0.7]]
    found = InstanceDiagnosis(made_up(instances, detections, tmp_path), PROTOCOL)
    assert found.find_worst_of_categories() == [1, 2]
    perfect = InstanceDiagnosis(made_up(instances[:1], detections[:1], tmp_path), PROTOCOL)
    assert perfect.find_worst_of_categories() == []


def test_suspected_errors_of_the_truth_are_confident(tmp_path: Path) -> None:
    rows = diagnosis(tmp_path).list_suspects()
    assert rows == [
        {"image": "1", "detected": "dog", "score": 0.8, "truth": "cat"},
        {"image": "2", "detected": "cat", "score": 0.5, "truth": "nothing"},
    ]
    many = [[1, 1, BOX, 0.9], *([1 + k % 3, 2, [30, 30 + k, 5, 5], 0.9 + k / 1000] for k in range(55))]
    found = InstanceDiagnosis(made_up([[1, 1, BOX, 0]], many, tmp_path), PROTOCOL)
    scores_listed = [row["score"] for row in found.list_suspects()]
    assert len(scores_listed) == 50
    assert scores_listed == sorted(scores_listed, reverse=True)


# ── losses by unit ──────────────────────────────────────────────────────────


def counted(protocol: Any, tables: list[dict[str, Any]], facts: Any = None) -> UnitAccumulator[Any]:
    names = [f"unit {number}" for number in range(len(tables))]
    found: UnitAccumulator[Any] = UnitAccumulator(protocol, facts or {}, names)
    for name, one in zip(names, tables, strict=True):
        found.update(UnitCounts(name, {key: np.asarray(table) for key, table in one.items()}))
    return found


def quality(windows: list[list[tuple[float, int, int, int]]]) -> dict[str, Any]:
    table = np.zeros((len(windows), len(windows[0]), 4))
    for place, rows in enumerate(windows):
        for category, (iou, matched, surplus, missed) in enumerate(rows):
            table[place, category, [IOU, MATCHED, SURPLUS, MISSED]] = iou, matched, surplus, missed
    return {"quality": table}


def test_units_lose_their_share_of_panoptic_quality() -> None:
    first = quality([[(1.5, 2, 1, 0), (0, 0, 0, 0), (0, 0, 0, 0)]])
    second = quality([[(0.5, 1, 1, 2), (0, 0, 0, 1), (0, 0, 0, 0)]])
    found = losses_of("panoptic", counted(PANOPTIC_PROTOCOLS["coco-panoptic"], [first, second]))
    # Category 0: IoU 2 of 3 + 2/2 + 2/2 = 5; category 1: half a segment, missed; category 2 is nowhere.
    assert found.by_unit == pytest.approx(np.array([[0.5 / 5, 0.5 / 5, 0], [0.5 / 5, 0.5 / 5, 1 / 5 + 1]]) / 2)
    assert found.by_category == pytest.approx(np.array([[1 / 5, 1 / 5, 1 / 5], [0, 0, 1], [0, 0, 0]]) / 2)
    assert found.totals() == pytest.approx({"inexact": 0.1, "surplus": 0.1, "missed": 0.6})
    assert sum(found.totals().values()) == pytest.approx(1 - (2 / 5 + 0) / 2)


def test_windows_of_panoptic_quality_count_the_same() -> None:
    video = quality([[(1, 2, 0, 0), (0, 0, 1, 0)], [(1, 1, 2, 0), (0, 0, 0, 0)]])
    found = losses_of("panoptic", counted(PANOPTIC_PROTOCOLS["vipseg"], [video]))
    # First window: means over two categories, 1/2 inexact, 1 surplus; second over one, 1 of 2 surplus.
    assert found.totals() == pytest.approx({"inexact": 1 / 8, "surplus": 1 / 4 + 1 / 4, "missed": 0})


def test_units_lose_their_share_of_mean_iou() -> None:
    def cells(*rows: tuple[int, int, int]) -> dict[str, Any]:
        return {"cells": np.array([[real << SHIFT | sent for real, sent, _ in rows], [pixels for *_, pixels in rows]])}

    protocol = replace(SEMANTIC_PROTOCOLS["semantic"], classes=4)
    found = losses_of(
        "semantic", counted(protocol, [cells((0, 0, 5), (0, 1, 3)), cells((1, 1, 4), (1, 0, 2), (1, 2, 1))])
    )
    # Unions: 10 of class 0, 10 of class 1, 1 of class 2, which the truth lacks, as class 3.
    assert found.by_unit == pytest.approx(np.array([[3 / 10, 3 / 10], [3 / 10, 2 / 10]]) / 2)
    assert found.by_category == pytest.approx(np.array([[3 / 10, 2 / 10], [3 / 10, 3 / 10], [0, 0]]) / 2)
    assert sum(found.totals().values()) == pytest.approx(1 - (5 / 10 + 4 / 10) / 2)
    assert found.by_category.shape == (3, 2)


def test_sequences_lose_their_share_of_detection_and_association() -> None:
    def tables(classes: list[int], **fields: list[list[float]]) -> dict[str, Any]:
        hota = np.zeros((len(classes), len(HOTA_FIELDS), len(ALPHAS)))
        for name, rows in fields.items():
            for place, (first, rest) in enumerate(rows):
                hota[place, HOTA_FIELDS.index(name), 0], hota[place, HOTA_FIELDS.index(name), 1:] = first, rest
        return {"classes": np.array(classes, np.int64), "hota": hota}

    some = tables(
        [0, 1], matched=[[8, 8], [1, 1]], missed=[[2, 2], [0, 0]], surplus=[[0, 0], [3, 3]], AssA=[[6, 6], [1, 1]]
    )
    more = tables([1], matched=[[4, 4]], missed=[[2, 2]], surplus=[[0, 0]], AssA=[[1, 1]])
    for protocol, facts in (("kitti-mots", {}), ("burst", {"classes": [["a", 1], ["b", 2]]})):
        found = losses_of("tracks", counted(TRACKS_PROTOCOLS[protocol], [some, more], facts))
        # Class 0: 10 in all, class 1: 10 in all; of matches 8 and 5.
        assert found.by_unit == pytest.approx(np.array([[2 / 10, 3 / 10, 2 / 8], [2 / 10, 0, 3 / 5]]) / 2)
        assert found.by_category == pytest.approx(np.array([[2 / 10, 0, 2 / 8], [2 / 10, 3 / 10, 3 / 5]]) / 2)
    share = len(ALPHAS)
    uneven = tables([0], matched=[[1, 0]], missed=[[0, 1]], AssA=[[1, 0]])
    one = losses_of("tracks", counted(TRACKS_PROTOCOLS["mots"], [uneven]))
    assert one.totals() == pytest.approx({"missed": (share - 1) / share, "surplus": 0, "swapped": 0})
    none = losses_of("tracks", counted(TRACKS_PROTOCOLS["mots"], []))
    assert none.totals() == {"missed": 0, "surplus": 0, "swapped": 0}


def test_rows_of_losses_begin_with_what_costs_most() -> None:
    losses_by_unit = np.array([[0.1, 0.1], [0.3, 0.0], [0.1, 0.1]])
    rows = UnitLosses({"a": "", "b": ""}, losses_by_unit, losses_by_unit).rows(["x", "y", "z"], losses_by_unit)
    assert [(row["name"], row["a"], row["b"]) for row in rows] == [("y", 0.3, 0), ("x", 0.1, 0.1), ("z", 0.1, 0.1)]
    assert [row["costs"] for row in rows] == pytest.approx([0.3, 0.2, 0.2])


class ReportOfUnits:
    """What tables of kinds need of a report."""

    def __init__(self, held: Any, protocol: Any) -> None:
        self.counts, self.protocol, self.split = held, protocol, "val"


def test_kinds_of_units_need_their_counts_alone() -> None:
    protocol = PANOPTIC_PROTOCOLS["coco-panoptic"]
    report: Any = ReportOfUnits(counted(protocol, [quality([[(0.5, 1, 1, 2)]]), quality([[(0, 0, 0, 0)]])]), protocol)
    lost = {"inexact": 0.5 / 2.5, "surplus": 0.5 / 2.5, "missed": 1 / 2.5}
    first, second = Scores([report]).kinds.to_dict("records")
    assert first == pytest.approx({"split": "val", "name": "unit 0", **lost})
    assert second == {"split": "val", "name": "unit 1", "inexact": 0, "surplus": 0, "missed": 0}
    assert tools_of("panoptic").sum_failures(report, report) == pytest.approx(lost)
    other: Any = ReportOfUnits(None, INSTANCE_PROTOCOLS["coco"])
    with pytest.raises(UsageError, match="read from files"):
        _ = Scores([other]).kinds


def test_right_detections_below_the_threshold_leave_their_instances_missed(tmp_path: Path) -> None:
    detections = [[1, 1, BOX, 0.9], *([1, 1, FAR, 0.5 - k / 100] for k in range(3)), [2, 1, BOX, 0.4]]
    found = InstanceDiagnosis(made_up([[1, 1, BOX, 0], [2, 1, BOX, 0]], detections, tmp_path), PROTOCOL)
    assert (found.least, found.misses.tolist()) == (0.9, [False, True])
    assert found.selection.tolist() == [True, False, False, False, False]
    assert [(row["image"], row["missed"]) for row in found.list_images()] == [("2", 1), ("1", 0), ("3", 0)]
    # A category that the truth lacks has no worst image, whatever is wrong in it.
    more = [[1, 1, BOX, 0.9], [1, 2, FAR, 0.95]]
    assert InstanceDiagnosis(made_up([[1, 1, BOX, 0]], more, tmp_path), PROTOCOL).find_worst_of_categories() == []


def test_one_pixel_and_one_match_are_the_whole() -> None:
    cells = {"cells": np.array([[3 << SHIFT], [1]])}
    lone = losses_of("semantic", counted(replace(SEMANTIC_PROTOCOLS["semantic"], classes=4), [cells]))
    assert lone.totals() == {"missed": 1, "surplus": 0}
    hota = np.zeros((1, len(HOTA_FIELDS), len(ALPHAS)))
    hota[:, HOTA_FIELDS.index("matched")] = 1
    swapped = losses_of("tracks", counted(TRACKS_PROTOCOLS["mots"], [{"classes": np.zeros(1, np.int64), "hota": hota}]))
    assert swapped.totals() == pytest.approx({"missed": 0, "surplus": 0, "swapped": 1})


def test_other_tracks_have_no_diagnosis_of_detections() -> None:
    job: Any = SimpleNamespace(scorers={"val": SimpleNamespace(truth=None)})
    with pytest.raises(UsageError, match="no kinds"):
        diagnose(job, ReportOfUnits(None, PROTOCOL))  # type: ignore[arg-type]


def test_an_object_on_the_other_side_of_its_edge_loses_j_alone(tmp_path: Path) -> None:
    truth, sent = np.zeros((3, 20, 20), np.uint8), np.zeros((3, 20, 20), np.uint8)
    truth[:, :10], sent[:, 10:] = 1, 1
    for name, labels in (("truth", truth), ("sent", sent)):
        (tmp_path / f"{name}.zip").write_bytes(label_zip({"video": list(labels)}))
    protocol = find_protocol("vos-benchmark")
    paths = [tmp_path / "sent.zip", tmp_path / "truth.zip"]
    found = score(*paths, protocol, layout="davis2017")
    (row,) = found.kinds.to_dict("records")
    assert (row["sequence"], row["object"], row["split"]) == ("video", "1", found.reports[0].split)
    assert {kind: row[kind] for kind in FAILURES} == {kind: (kind == "drift") / 2 for kind in FAILURES}


def test_one_far_pixel_takes_what_its_boundary_costs() -> None:
    g, p = drawn("##########"), drawn("#######...")
    bg, bp = drawn("#........#"), drawn("......#...")
    window = _ObjectWindow(*(packed(mask[None]) for mask in (g, p, bg, bp, g & False, g & False)), 1)
    # Neither boundary is met: too little costs 1/4 and 1/2, too much 1/4, which has no far pixels.
    assert _share_tracked_loss(window)[0] == pytest.approx([0, (0.1 + 3 / 4) / 2, 0, (0.2 + 1 / 4) / 2])
