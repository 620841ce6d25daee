"""The loss of mask sequences by kind of failure; kinds sum to 1 - J&F (`docs/ranking.md`).

Each frame has a loss; the worst frames also have small masks, for pictures.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from ...files import Problems
from ...masks.backend import backend
from ...masks.files import MaskFiles, SalientImages
from ...masks.similarity import Region, count_shared, disk, grow, reach
from ...masks.stack import Array, Size, Stack, Stacks, add_stacks, empty_stack, join_stacks, ones
from ...masks.stream import MaskStream, width_for
from ...runner.parallel import results_of_processes
from ...values.arithmetic import mean
from .counting import is_one_mask, prepare_masks
from .metrics import ObjectScore, SequenceReport
from .protocols import SequenceProtocol
from .truth import VOID, Sequence, SequencePair

_Words = NDArray[np.uint64]
#: The kinds of failure; those of a whole frame come first. The last four share the loss of a frame in which the object
#: is tracked.
KINDS = ("ghost", "late", "miss", "swap", "drift", "confused", "part", "leak", "edge")
SHARED = KINDS[-4:]
#: The states of frames without a kind of failure.
RIGHT, TRACKED = "right", "tracked"
#: An object with a lower J is lost.
_LOST = 0.1


@dataclass(frozen=True)
class ComparedBlock:
    """Consecutive frames; predictions carry the names of the objects that they are compared with."""

    frames: List[str]
    size: Size
    truth: Stacks
    predicted: Stacks


@dataclass(frozen=True)
class _ObjectWindow:
    """An object in some frames: truth, prediction, boundaries and other objects, in one window."""

    truth: _Words
    prediction: _Words
    truth_boundary: _Words
    prediction_boundary: _Words
    #: The pixels of other true and of other predicted objects.
    other_truths: _Words
    other_predictions: _Words
    #: The tolerance of boundaries, in pixels.
    radius: int


def _count_pixels(words: _Words) -> Array:
    """Return the number of pixels in each frame."""
    return ones(np.ascontiguousarray(words).reshape(len(words), -1))


def _states_of(name: str, block: ComparedBlock) -> List[str]:
    """Return each frame's own kind of failure, or that it is correct or tracked."""
    truth, prediction = _stack_of(block.truth, name, block), _stack_of(block.predicted, name, block)
    in_truth, predicted, shared = truth.area, prediction.area, count_shared(truth, prediction)
    j = shared / np.maximum(in_truth + predicted - shared, 1)
    swapped = np.zeros(len(j), bool)
    for label, stack in block.truth.items():
        if label not in (name, VOID):
            overlap = count_shared(stack, prediction)
            swapped |= (2 * overlap >= predicted) & (overlap / np.maximum(stack.area + predicted - overlap, 1) > j)
    empty = predicted == 0
    conditions = [(in_truth == 0) & empty, in_truth == 0, empty, swapped, j < _LOST]
    return [str(state) for state in np.select(conditions, [RIGHT, "ghost", "miss", "swap", "drift"], TRACKED)]


def _count_sides(name: str, block: ComparedBlock, rows: Array) -> Array:
    """Return the pixels of an object in some frames: of the truth, of the prediction, and of both."""
    truth, prediction = (_stack_of(side, name, block).frames(rows) for side in (block.truth, block.predicted))
    return np.array([truth.area.sum(), prediction.area.sum(), count_shared(truth, prediction).sum()], np.int64)


def _stack_of(side: Stacks, name: str, block: ComparedBlock) -> Stack:
    return side[name] if name in side else empty_stack(len(block.frames), block.size)


def _share_tracked_loss(window: _ObjectWindow, *, boundaries: bool = True) -> NDArray[np.float64]:
    """Return the shares of the last four kinds in the loss of tracked frames.

    Without boundaries, only the loss of J counts.
    """
    truth, prediction = window.truth, window.prediction
    near = _grow(window.truth_boundary, window.radius)
    lacking, surplus = truth & ~prediction & ~near, prediction & ~truth & ~near
    far = {"part": _count_pixels(lacking), "leak": _count_pixels(surplus)}
    mixed = {
        "part": _count_pixels(lacking & window.other_predictions),
        "leak": _count_pixels(surplus & window.other_truths),
    }
    shares = np.stack([
        mixed["part"] + mixed["leak"], far["part"] - mixed["part"], far["leak"] - mixed["leak"],
        _count_pixels((truth ^ prediction) & near),
    ]) / np.maximum(_count_pixels(truth | prediction), 1)  # fmt: skip
    if not boundaries:
        return shares.T
    shares /= 2
    for row, (kind, missed) in enumerate(zip(("part", "leak"), _boundary_losses(window, near)), 1):
        of_others = missed / 2 * mixed[kind] / np.maximum(far[kind], 1)
        shares[0] += of_others
        shares[row] += np.where(far[kind] > 0, missed / 2 - of_others, 0)
        shares[3] += np.where(far[kind] > 0, 0, missed / 2)
    return shares.T


def _boundary_losses(window: _ObjectWindow, near: _Words) -> Tuple[Array, Array]:
    """Return the two halves of 1 - F: boundary for which the prediction is too small, and too large."""
    of_truth, of_prediction = _count_pixels(window.truth_boundary), _count_pixels(window.prediction_boundary)
    open_truth = window.truth_boundary & ~_grow(window.prediction_boundary, window.radius)
    open_prediction = window.prediction_boundary & ~near
    true_pixels, predicted_pixels = np.maximum(of_truth, 1), np.maximum(of_prediction, 1)
    recall, precision = (
        1 - _count_pixels(open_truth) / true_pixels,
        1 - _count_pixels(open_prediction) / predicted_pixels,
    )
    both = precision + recall
    weight = np.where(both > 0, precision / np.where(both > 0, both, 1), 0.5)
    weight = np.where((of_truth > 0) & (of_prediction > 0), weight, of_truth > 0)
    truth_share, prediction_share = weight / true_pixels, (1 - weight) / predicted_pixels
    within = _count_pixels(open_truth & window.prediction), _count_pixels(open_prediction & window.truth)
    under = truth_share * (_count_pixels(open_truth) - within[0]) + prediction_share * within[1]
    over = truth_share * within[0] + prediction_share * (_count_pixels(open_prediction) - within[1])
    return under, over


def _grow(words: _Words, radius: int) -> _Words:
    """Return the pixels within a radius of any set pixel; each row spreads by the disk's width."""
    halves = [math.isqrt(radius * radius - distance * distance) for distance in range(radius + 1)]
    kernel = backend().kernel
    by_kernel = kernel.grow(words, np.array(halves)) if kernel is not None else None
    if by_kernel is not None:
        return by_kernel
    window = Stack(np.zeros_like(words), 0, 0, (0, 0))
    return add_stacks(window, [grow(window._replace(words=words), disk(radius))]).words


def _mark_late(states: List[str], visible: List[bool]) -> List[str]:
    """Return the states of an object's frames; frames in which it is not found after its return become late."""
    kinds, waiting = [], False
    for number, (state, seen) in enumerate(zip(states, visible)):
        if not seen:
            waiting = False
        elif number and not visible[number - 1]:
            waiting = True
        waiting = waiting and state != TRACKED
        kinds.append("late" if waiting and state in ("miss", "swap", "drift") else state)
    return kinds


def _window_of(name: str, block: ComparedBlock, rows: Array) -> _ObjectWindow:
    """Return an object in some frames of a block, in the window of its truth and prediction."""
    mine, predicted_stack = (_stack_of(side, name, block).frames(rows) for side in (block.truth, block.predicted))
    stacks = [mine, predicted_stack, Region(mine).boundary, Region(predicted_stack).boundary]
    window = join_stacks(stacks, len(rows), block.size)

    def draw_in_window(*those: Stack) -> _Words:
        return add_stacks(Stack(np.zeros_like(window.words), window.top, window.column, block.size), those).words

    truth, prediction, *boundaries = map(draw_in_window, stacks)
    other_truths, other_predictions = (
        draw_in_window(*(stack.frames(rows) for label, stack in side.items() if label not in (name, hidden)))
        for side, hidden in ((block.truth, VOID), (block.predicted, name))
    )
    return _ObjectWindow(
        truth, prediction, boundaries[0], boundaries[1], other_truths, other_predictions, reach(block.size)
    )


#: The factor from values to the whole numbers of a stream.
SCALE = 1000
#: The codes of a stream for frames without a kind.
STATES = {RIGHT: -1, TRACKED: -2, **{kind: index for index, kind in enumerate(KINDS)}}


@dataclass(frozen=True)
class ScoredSequence:
    """A sequence, its masks (None if missing), and the scores of its objects."""

    truth: Sequence
    masks: Optional[MaskFiles]
    scores: List[ObjectScore]


def prepare_blocks(scored: ScoredSequence, protocol: SequenceProtocol) -> Iterator[ComparedBlock]:
    """Yield the masks of a sequence as the protocol compares them; missing frames are empty."""
    sequence, masks = scored.truth, scored.masks
    frames_sent = masks.frames() if masks is not None else set()
    for index, block in enumerate(sequence.blocks):
        names = sequence.frames[block.start : block.stop]
        rows = np.flatnonzero([name in frames_sent for name in names])
        truth = sequence.read_block(index)
        stacks = (
            masks.read_stacks([names[row] for row in rows], block.size, Problems())
            if masks is not None and len(rows)
            else {}
        )
        predicted = {label: _fill_frames(stack, rows, len(names)) for label, stack in (stacks or {}).items()}
        truth, predicted = prepare_masks(truth, predicted, protocol, empty_stack(len(names), block.size))
        if is_one_mask(protocol):
            predicted = {score.name: predicted[SalientImages.NAME] for score in scored.scores}
        elif protocol.proposals:
            matched = {str(score.proposal): score.name for score in scored.scores}
            predicted = {matched.get(label, f"proposal {label}"): stack for label, stack in predicted.items()}
        yield ComparedBlock(names, block.size, truth, predicted)


def _fill_frames(stack: Stack, rows: Array, frames: int) -> Stack:
    """Return a stack of some frames extended to all frames of a block."""
    if len(rows) == frames:
        return stack
    words = np.zeros((frames, *stack.words.shape[1:]), np.uint64)
    words[rows] = stack.words
    return Stack(words, stack.top, stack.column, stack.size)


@dataclass(frozen=True)
class ObjectLosses:
    """The loss of an object in each frame that counts, by kind."""

    score: ObjectScore
    #: For each frame a kind of failure, or RIGHT or TRACKED.
    kinds: List[str]
    #: (frames, kinds)
    parts: NDArray[np.float64]
    #: The share of the object's loss that each kind causes.
    shares: List[float]
    #: The mean share of the frame that the present object covers in the truth.
    area: float
    #: Whether it is absent in some frames.
    absent: bool
    #: The pixels of inexact tracking: of the truth, of the prediction, of both; zeros if not counted.
    pixels: Tuple[int, int, int] = (0, 0, 0)


def kinds_sum_to_loss(protocol: SequenceProtocol) -> bool:
    """Return whether the kinds sum to the loss of a protocol's mean."""
    return not (protocol.reappearance or protocol.grey) and bool({"J&F-Mean", "J-Mean"} & set(protocol.metrics))


class _LossCounter:
    """A counter that splits the losses of a sequence's objects, block by block."""

    def __init__(self, scored: ScoredSequence, protocol: SequenceProtocol) -> None:
        self._scored, self._boundaries = scored, "J&F-Mean" in protocol.metrics
        self._places = [{frame: index for index, frame in enumerate(score.frames)} for score in scored.scores]
        self._states = [[RIGHT] * len(score.frames) for score in scored.scores]
        self._areas = [np.zeros(len(score.frames)) for score in scored.scores]
        self._parts = [np.zeros((len(score.frames), len(KINDS))) for score in scored.scores]
        self._pixels = [np.zeros(3, np.int64) for _ in scored.scores]

    def add(self, block: ComparedBlock) -> None:
        """Add the frames of a block."""
        for number, places in enumerate(self._places):
            rows = np.array([row for row, frame in enumerate(block.frames) if frame in places], int)
            if not len(rows):
                continue
            frame_places = [places[block.frames[row]] for row in rows]
            name = self._scored.scores[number].name
            block_states = _states_of(name, block)
            states = [block_states[row] for row in rows]
            tracked = [index for index, state in enumerate(states) if state == TRACKED]
            if tracked:
                shared = _share_tracked_loss(_window_of(name, block, rows[tracked]), boundaries=self._boundaries)
                self._parts[number][[frame_places[index] for index in tracked], -len(SHARED) :] = shared
                inexact = rows[tracked][shared.any(axis=1)]
                if len(inexact):
                    self._pixels[number] += _count_sides(name, block, inexact)
            if name in block.truth:
                self._areas[number][frame_places] = block.truth[name].area[rows] / (block.size[0] * block.size[1])
            for index, state in zip(frame_places, states):
                self._states[number][index] = state

    def losses(self) -> List[ObjectLosses]:
        """Return the loss of each object, in the order of the scores."""
        losses = []
        for score, states, areas, parts, pixels in zip(
            self._scored.scores, self._states, self._areas, self._parts, self._pixels
        ):
            lost = 1 - ((score.j + score.f) / 2 if self._boundaries else score.j)
            kinds = _mark_late(states, (areas > 0).tolist())
            if self._scored.masks is None:  # scores 0 in every frame
                kinds, lost = ["miss"] * len(kinds), np.ones(len(kinds))
            for frame, kind in enumerate(kinds):
                if kind in KINDS:
                    parts[frame, KINDS.index(kind)] = lost[frame]
            shares: List[float] = (parts.sum(axis=0) / max(len(parts), 1)).tolist()
            visible = areas[areas > 0]
            area = mean(visible) if len(visible) else 0.0
            absent, (true, predicted, both) = bool((areas == 0).any()), pixels.tolist()
            losses.append(ObjectLosses(score, kinds, parts, shares, area, absent, (true, predicted, both)))
        return losses


@dataclass(frozen=True)
class SequenceLosses:
    """The losses of a sequence's objects."""

    name: str
    frames: List[str]
    objects: List[ObjectLosses]
    #: The categories of objects, if the dataset has them.
    categories: Dict[str, str]
    #: The width of frames.
    width: int
    #: The truth's stream; the streams of predictions append the number of the method.
    stream: str

    @property
    def shares(self) -> List[float]:
        """Return the loss by kind, averaged over the objects."""
        return mean_shares((losses.shares, 1.0) for losses in self.objects)

    @property
    def loss(self) -> float:
        """Return the loss averaged over the objects."""
        return math.fsum(self.shares)


def mean_shares(weighted: Iterable[Tuple[List[float], float]]) -> List[float]:
    """Return the weighted mean of losses by kind."""
    rows = list(weighted)
    total = math.fsum(weight for _, weight in rows) or 1.0
    return [math.fsum(shares[kind] * weight for shares, weight in rows) / total for kind in range(len(KINDS))]


def shares_of(objects: List[Tuple[List[float], str]], protocol: SequenceProtocol) -> List[float]:
    """Return the loss by kind, averaged as the protocol does, from each object's loss and group.

    If the protocol averages by group, groups weigh equally; seen and unseen classes are an example.
    """
    counts = Counter(group for _, group in objects)
    equal = [group for group in protocol.equal_groups if group in counts]
    weights = {group: float(not equal) for group in counts}
    weights.update({group: 1 / counts[group] for group in equal})
    return mean_shares((shares, weights[group]) for shares, group in objects)


def object_group(score: ObjectScore, protocol: SequenceProtocol) -> str:
    """Return the group of an object's score: seen or unseen, or its kind."""
    return ("unseen" if score.unseen else "seen") if protocol.by_class else score.kind


def pair_with_scores(pairs: List[SequencePair], report: SequenceReport) -> List[ScoredSequence]:
    """Return the sequences of a submission with their scores."""
    scores: Dict[str, List[ObjectScore]] = {}
    for score in report.scores:
        scores.setdefault(score.sequence, []).append(score)
    return [ScoredSequence(sequence, masks, scores.get(sequence.name, [])) for sequence, masks in pairs]


@dataclass(frozen=True)
class _SequenceView:
    """The losses of a sequence and its masks, for a page."""

    losses: SequenceLosses
    truth: Optional[MaskStream]
    predicted: Optional[MaskStream]

    def truth_stream(self, *, bare: bool = False) -> bytes:
        """Return the stream of the truth, without masks if bare."""
        return b"" if self.truth is None else self.truth.pack({"frames": self.losses.frames}, bare=bare)

    def prediction_stream(self, *, bare: bool = False) -> bytes:
        """Return the stream of the prediction and of its numbers, without masks if bare."""
        places = {frame: index for index, frame in enumerate(self.losses.frames)}
        entries = [_object_entry(losses, places) for losses in self.losses.objects]
        return b"" if self.predicted is None else self.predicted.pack({"objects": entries}, bare=bare)


def view_sequence(
    scored: ScoredSequence,
    protocol: SequenceProtocol,
    stream: str,
    width: int,
    *,
    with_truth: bool = True,
    most_runs: float = math.inf,
) -> _SequenceView:
    """Read a sequence with masks of limited width; no masks if the width is 0 or a mask has more than `most` runs."""
    sequence, counter = scored.truth, _LossCounter(scored, protocol)
    size = sequence.blocks[0].size if sequence.blocks else (1, 1)
    names = [score.name for score in scored.scores]
    predicted = MaskStream(names, size, width, most_runs) if width else None
    truth = MaskStream(names, size, width, most_runs) if width and with_truth else None
    for block in prepare_blocks(scored, protocol):
        counter.add(block)
        for side, masks in ((predicted, block.predicted), (truth, block.truth)):
            if side is not None:
                side.add(masks, len(block.frames), block.size)
    categories = {label: facts.category or "" for label, facts in sequence.objects.items()}
    widest = max((block.size[1] for block in sequence.blocks), default=1)
    losses = SequenceLosses(sequence.name, sequence.frames, counter.losses(), categories, widest, stream)
    return _SequenceView(losses, truth, predicted)


def _object_entry(losses: ObjectLosses, places: Dict[str, int]) -> Dict[str, object]:
    """Return a page's data for an object's frames, without the masks."""
    tracked = [kind == TRACKED for kind in losses.kinds]
    return {
        "name": losses.score.name,
        "at": [places[frame] for frame in losses.score.frames],
        "j": _round_to_thousandths(losses.score.j),
        "f": _round_to_thousandths(losses.score.f),
        "kinds": [STATES[kind] for kind in losses.kinds],
        "parts": _round_to_thousandths(losses.parts[tracked][:, -len(SHARED) :].reshape(-1)),
    }


def _round_to_thousandths(values: np.ndarray) -> List[int]:
    numbers: List[int] = np.round(values * SCALE).astype(int).tolist()
    return numbers


#: The maximum mean number of runs per frame and pixel of width for masks on a page; noisier masks are omitted.
_MOST_RUNS = 40


def read_losses(pairs: List[SequencePair], report: SequenceReport, room: int, jobs: int) -> Dict[str, Any]:
    """Return the losses of a split for a page; only sums if masks do not fit.

    This many processes read the frames once more.
    """
    protocol, entries = report.protocol, _Entries(room)
    sequences = pair_with_scores(pairs, report)
    frames = sum(len(sequence.truth.frames) for sequence in sequences)
    width = width_for(frames, 1, room, pictures=False) if room > 0 else 0

    def work(number: int) -> bytes:
        return json.dumps(_describe_losses(sequences[number], protocol, width), allow_nan=False).encode()

    costs = [sequence.truth.cost for sequence in sequences]
    for data in results_of_processes(work, costs, jobs, lambda _: None):
        entries.add(json.loads(data))
    rows = entries.rows()
    groups = {(score.sequence, score.name): object_group(score, protocol) for score in report.scores}
    objects = [
        (entry["shares"], groups[row["name"], entry["name"]])
        for row in rows
        for entry in row["objects"]
        if entry["frames"]
    ]
    return {
        "metric": "J&F" if "J&F-Mean" in protocol.metrics else "J",
        "exact": kinds_sum_to_loss(protocol),
        "shares": shares_of(objects, protocol),
        "smaller": any(block.size[1] > width for sequence in sequences for block in sequence.truth.blocks),
        "sequences": rows if width and entries.fit else [],
    }


def _describe_losses(scored: ScoredSequence, protocol: SequenceProtocol, width: int) -> Dict[str, Any]:
    """Return the losses of a sequence with its streams, and with mask-free streams."""
    across = sum(min(width, block.size[1]) * (block.stop - block.start) for block in scored.truth.blocks)
    view = view_sequence(scored, protocol, "", width, most_runs=_MOST_RUNS * across)
    objects = [
        {
            "name": losses.score.name,
            "category": view.losses.categories.get(losses.score.name, ""),
            "unseen": losses.score.unseen,
            "frames": len(losses.score.frames),
            "area": losses.area,
            "absent": losses.absent,
            "shares": losses.shares,
        }
        for losses in view.losses.objects
    ]
    return {
        "name": view.losses.name,
        "lost": view.losses.loss,
        "objects": objects,
        "noise": any(side is not None and side.is_full for side in (view.truth, view.predicted)),
        "streams": _encode_sides(view, bare=False),
        "bare": _encode_sides(view, bare=True),
    }


def _encode_sides(view: _SequenceView, *, bare: bool) -> List[str]:
    """Return the streams of the truth and of the prediction as text."""
    streams = view.truth_stream(bare=bare), view.prediction_stream(bare=bare)
    return [base64.b64encode(stream).decode("ascii") for stream in streams]


class _Entries:
    """The entries of all sequences, with the masks of the worst ones as far as room allows."""

    def __init__(self, room: int) -> None:
        self._room, self._used = room, 0
        #: Streams with and without masks, in the page's order; the last ones lose their masks first.
        self._whole: Dict[Tuple[float, str], Dict[str, Any]] = {}
        self._bare: Dict[Tuple[float, str], Dict[str, Any]] = {}

    @property
    def fit(self) -> bool:
        """Return whether the numbers of all frames fit."""
        return self._used <= self._room

    def add(self, entry: Dict[str, Any]) -> None:
        """Add a sequence."""
        self._whole[-entry["lost"], entry["name"]] = entry
        self._used += _count_bytes(entry["streams"])
        while self._whole and (not self.fit or max(self._whole) > min(self._bare, default=(1.0, ""))):
            last = max(self._whole)
            bare = self._bare[last] = self._whole.pop(last)
            self._used += _count_bytes(bare["bare"]) - _count_bytes(bare["streams"])
            bare["streams"] = bare["bare"]

    def rows(self) -> List[Dict[str, Any]]:
        """Return the entries of all sequences, the worst first."""
        entries = {**self._whole, **self._bare}
        return [
            {
                "name": entries[key]["name"],
                "objects": entries[key]["objects"],
                "masks": key in self._whole and not entries[key]["noise"],
                "streams": entries[key]["streams"],
            }
            for key in sorted(entries)
        ]


def _count_bytes(streams: List[str]) -> int:
    return sum(map(len, streams))
