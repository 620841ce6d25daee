"""The losses of frames and objects by kind of failure, computed by hand, or by short formulas on plain arrays."""

from __future__ import annotations

import base64
import itertools
import json
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.sequences.losses import KINDS as FAILURES
from segjudge.evaluation_script.families.sequences.losses import (
    SHARED,
    ScoredSequence,
    SequenceLosses,
    _Entries,
    _mark_late,
    _ObjectWindow,
    _share_tracked_loss,
    mean_shares,
    read_losses,
    shares_of,
    view_sequence,
)
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, SequenceReport
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.families.sequences.truth import Block, ObjectFacts, Sequence
from segjudge.evaluation_script.files import Problems
from segjudge.evaluation_script.masks.files import MaskFiles
from segjudge.evaluation_script.masks.stack import Size, Stacks, empty_labels, pack
from segjudge.scoring import score
from segjudge.scoring.request import find_protocol
from tests.builders import drawn, label_zip, stack_of

# ── kinds of failure of a frame ─────────────────────────────────────────────


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


def losses(protocol: str = "vos-benchmark", rows: dict[str, dict[str, str]] | None = SENT) -> SequenceLosses:
    return view_sequence(scored(rows), SEQUENCE_PROTOCOLS[protocol], "s", 0).losses


def test_classes_count_the_same_where_the_protocol_tells_them_apart() -> None:
    kinds = len(FAILURES)
    objects = [([0.3] * kinds, "seen"), ([0.6] * kinds, "seen"), ([0.9] * kinds, "unseen")]
    assert shares_of(objects, SEQUENCE_PROTOCOLS["davis2017"]) == pytest.approx([0.6] * kinds)
    assert shares_of(objects, SEQUENCE_PROTOCOLS["lvos"]) == pytest.approx([(0.45 + 0.9) / 2] * kinds)
    assert shares_of(objects[:2], SEQUENCE_PROTOCOLS["lvos"]) == pytest.approx([0.45] * kinds)
    rising = [float(kind) for kind in range(kinds)]
    assert mean_shares([(rising, 1.0), ([1.0] * kinds, 3.0)]) == pytest.approx([(item + 3) / 4 for item in rising])
    assert mean_shares([]) == [0.0] * kinds


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
