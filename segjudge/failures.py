"""Where the loss of mask sequences comes from: kinds of failure, which sum to 1 - J&F (`docs/ranking.md`)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from segjudge.errors import UsageError
from segjudge.evaluation_script.answer import SequenceReport
from segjudge.evaluation_script.main import beside_others
from segjudge.evaluation_script.mask_files import MaskFiles, Stacks
from segjudge.evaluation_script.masks import Stack, joined, nothing, unpack
from segjudge.evaluation_script.sequence_metrics import ObjectScore
from segjudge.evaluation_script.sequence_protocols import ObjectRule, SequenceProtocol
from segjudge.evaluation_script.sequence_truth import VOID, Sequence, Split
from segjudge.evaluation_script.sequences import OpenedSequences
from segjudge.evaluation_script.similarity import Region, reach
from segjudge.prepared import ScoreRequest, prepared

Pixels = NDArray[np.bool_]
#: The kinds, those of a whole frame first; the last four share the loss of a frame in which the object is tracked.
KINDS = ("ghost", "late", "miss", "swap", "drift", "confused", "part", "leak", "edge")
#: What frames without any loss of a kind of their own are.
RIGHT, TRACKED = "right", "tracked"
#: Below this J an object is lost.
LOST = 0.1


@dataclass(frozen=True)
class FramePixels:
    """An object in one frame: truth, prediction, their boundaries, and who else is there, all in one window."""

    truth: Pixels
    prediction: Pixels
    truth_boundary: Pixels
    prediction_boundary: Pixels
    #: Each other object of the truth in the window, and how many pixels it has in the frame.
    others: list[tuple[Pixels, int]]
    #: What other objects are predicted at.
    other_predictions: Pixels
    #: The tolerance of boundaries, in pixels.
    radius: int


def state_of(pixels: FramePixels) -> str:
    """Return the kind of a frame by itself, or that it is right, or that the object is tracked."""
    truth, prediction = np.count_nonzero(pixels.truth), np.count_nonzero(pixels.prediction)
    if not truth:
        return "ghost" if prediction else RIGHT
    if not prediction:
        return "miss"
    shared = np.count_nonzero(pixels.truth & pixels.prediction)
    j = shared / (truth + prediction - shared)
    for other, area in pixels.others:
        mine = np.count_nonzero(other & pixels.prediction)
        if 2 * mine >= prediction and mine / (area + prediction - mine) > j:
            return "swap"
    return "drift" if j < LOST else TRACKED


def tracked_parts(pixels: FramePixels) -> dict[str, float]:
    """Return how the loss of a frame in which the object is tracked is shared among the last four kinds."""
    truth, prediction = pixels.truth, pixels.prediction
    near = _grown(pixels.truth_boundary, pixels.radius)
    lacking, surplus = truth & ~prediction & ~near, prediction & ~truth & ~near
    union = np.count_nonzero(truth | prediction)
    neighbours = np.logical_or.reduce([other for other, _ in pixels.others], axis=0, initial=False)
    counts = {
        "confused": np.count_nonzero(lacking & pixels.other_predictions) + np.count_nonzero(surplus & neighbours),
        "part": np.count_nonzero(lacking & ~pixels.other_predictions),
        "leak": np.count_nonzero(surplus & ~neighbours),
        "edge": np.count_nonzero((truth ^ prediction) & near),
    }
    parts: dict[str, float] = {kind: count / (2 * union) for kind, count in counts.items()}
    under, over = _boundary_losses(pixels, near)
    for kind, missed, far, mixed_with in (
        ("part", under, lacking, pixels.other_predictions),
        ("leak", over, surplus, neighbours),
    ):
        total, mixed = np.count_nonzero(far), np.count_nonzero(far & mixed_with)
        if total:
            parts["confused"] += missed / 2 * mixed / total
            parts[kind] += missed / 2 * (total - mixed) / total
        else:
            parts["edge"] += missed / 2
    return parts


def _boundary_losses(pixels: FramePixels, near: Pixels) -> tuple[float, float]:
    """Return the two halves of 1 - F: boundary for which the prediction is too small, and too large."""
    of_truth, of_prediction = (int(side.sum()) for side in (pixels.truth_boundary, pixels.prediction_boundary))
    if not of_truth and not of_prediction:
        return 0.0, 0.0
    open_truth = pixels.truth_boundary & ~_grown(pixels.prediction_boundary, pixels.radius)
    open_prediction = pixels.prediction_boundary & ~near
    recall = 1 - open_truth.sum() / of_truth if of_truth else 0.0
    precision = 1 - open_prediction.sum() / of_prediction if of_prediction else 0.0
    if of_truth and of_prediction:
        weight = precision / (precision + recall) if precision + recall else 0.5
    else:
        weight = float(of_truth > 0)
    truth_share, prediction_share = weight / max(of_truth, 1), (1 - weight) / max(of_prediction, 1)
    under = truth_share * np.count_nonzero(open_truth & ~pixels.prediction)
    under += prediction_share * np.count_nonzero(open_prediction & pixels.truth)
    over = truth_share * np.count_nonzero(open_truth & pixels.prediction)
    over += prediction_share * np.count_nonzero(open_prediction & ~pixels.truth)
    return under, over


def _grown(boundary: Pixels, radius: int) -> Pixels:
    """Return what lies within the radius of a boundary."""
    if not boundary.any():
        return boundary
    from scipy.ndimage import distance_transform_edt

    near: Pixels = np.asarray(distance_transform_edt(~boundary)) <= radius
    return near


def with_lateness(states: list[str], visible: list[bool]) -> list[str]:
    """Return the states of an object's frames in order; what is not found again since its return is late."""
    kinds, waiting = [], False
    for number, (state, seen) in enumerate(zip(states, visible, strict=True)):
        if not seen:
            waiting = False
        elif number and not visible[number - 1]:
            waiting = True
        waiting = waiting and state != TRACKED
        kinds.append("late" if waiting and state in ("miss", "swap", "drift") else state)
    return kinds


def failures(request: ScoreRequest, reports: list[SequenceReport]) -> list[dict[str, float]]:
    """Return of each scored object, in the order of the reports, how much of 1 - J&F each kind takes."""
    job, losses = prepared(request), []
    for report in reports:
        truth = job.splits[report.split]
        if not isinstance(truth, Split):
            raise UsageError(f"failures of {report.protocol.name} have no kinds")
        opened = OpenedSequences(job.path, beside_others(truth, job.known), report.protocol, job.rules)
        try:
            for sequence, masks in opened.pairs:
                scores = [score for score in report.scores if score.sequence == sequence.name]
                losses += loss_by_kind(sequence, masks, scores, report.protocol)
        finally:
            opened.close()
    return losses


def loss_by_kind(
    sequence: Sequence, masks: MaskFiles | None, scores: list[ObjectScore], protocol: SequenceProtocol
) -> list[dict[str, float]]:
    """Return of each scored object of a sequence how much of 1 - J&F each kind takes."""
    if protocol.proposals or protocol.salient or protocol.reappearance or "J&F-Mean" not in protocol.metrics:
        raise UsageError(f"failures of {protocol.name} have no kinds: it matches proposals, or J&F is not its mean")
    lost = {score.name: dict(zip(score.frames, 1 - (score.j + score.f) / 2, strict=True)) for score in scores}
    found: dict[str, list[_FrameLoss]] = {name: [] for name in lost}
    for frame, truth, predicted in _frames(sequence, masks, protocol):
        for name, losses in lost.items():
            if frame in losses:
                pixels = _window(name, truth, predicted)
                state = state_of(pixels)
                parts = tracked_parts(pixels) if state == TRACKED else {}
                found[name].append(_FrameLoss(state, bool(pixels.truth.any()), float(losses[frame]), parts))
    return [_mean_loss(found[score.name]) for score in scores]


@dataclass(frozen=True)
class _FrameLoss:
    """What an object lost in a frame, and how; it is shared where the object is tracked."""

    state: str
    visible: bool
    loss: float
    parts: dict[str, float]


def _mean_loss(frames: list[_FrameLoss]) -> dict[str, float]:
    kinds = with_lateness([one.state for one in frames], [one.visible for one in frames])
    loss = dict.fromkeys(KINDS, 0.0)
    for kind, one in zip(kinds, frames, strict=True):
        for name, share in (one.parts if kind == TRACKED else {} if kind == RIGHT else {kind: one.loss}).items():
            loss[name] += share / len(frames)
    return loss


def _frames(
    sequence: Sequence, masks: MaskFiles | None, protocol: SequenceProtocol
) -> Iterator[tuple[str, Stacks, Stacks]]:
    """Yield each frame that was sent, with its masks as the protocol compares them."""
    sent = masks.frames() if masks is not None else set(sequence.frames)
    for index, block in enumerate(sequence.blocks):
        stacks = sequence.read_block(index)
        for place, frame in enumerate(sequence.frames[block.start : block.stop]):
            if frame not in sent:
                continue
            truth = {label: stack.frames(np.array([place])) for label, stack in stacks.items()}
            predicted = (masks.stacks([frame], block.size) if masks is not None else None) or {}
            if protocol.void and VOID in truth:
                predicted = {label: stack.without(truth[VOID]) for label, stack in predicted.items()}
            if protocol.objects is ObjectRule.FOREGROUND:
                truth, predicted = ({"1": joined(list(side.values()), 1, block.size)} for side in (truth, predicted))
            yield frame, truth, predicted


def _window(name: str, truth: Stacks, predicted: Stacks) -> FramePixels:
    """Return an object of a frame in the window that holds its truth, its prediction, and what is near."""
    size = next(iter([*truth.values(), *predicted.values()])).size if truth or predicted else (1, 1)
    mine, other = (side.get(name, nothing(1, size)) for side in (truth, predicted))
    regions = Region(mine), Region(other)
    radius = reach(size)
    window = _around([mine, other, regions[0].boundary, regions[1].boundary], radius)
    others = {label: stack for label, stack in truth.items() if label not in (name, VOID)}
    rest = [_cut(stack, window) for label, stack in predicted.items() if label != name]
    return FramePixels(
        _cut(mine, window),
        _cut(other, window),
        _cut(regions[0].boundary, window),
        _cut(regions[1].boundary, window),
        [(_cut(stack, window), int(stack.area[0])) for stack in others.values()],
        np.logical_or.reduce(rest, axis=0) if rest else np.zeros_like(_cut(mine, window)),
        radius,
    )


#: Top, bottom, left and right, in pixels.
Window = tuple[int, int, int, int]


def _around(stacks: list[Stack], margin: int) -> Window:
    """Return the window that holds some stacks of a frame, with a margin inside the frame."""
    known = [stack for stack in stacks if stack.words.size]
    if not known:
        return 0, 1, 0, 1
    height, width = known[0].size
    return (
        max(0, min(stack.top for stack in known) - margin),
        min(height, max(stack.top + stack.words.shape[1] for stack in known) + margin),
        max(0, 64 * min(stack.left for stack in known) - margin),
        min(width, 64 * max(stack.left + stack.words.shape[2] for stack in known) + margin),
    )


def _cut(stack: Stack, window: Window) -> Pixels:
    """Return the pixels of a stack of one frame that lie in a window."""
    top, bottom, left, right = window
    pixels = np.zeros((bottom - top, right - left), bool)
    _, rows, words = stack.words.shape
    low, high = max(top, stack.top), min(bottom, stack.top + rows)
    start, stop = max(left, 64 * stack.left), min(right, 64 * (stack.left + words), stack.size[1])
    if low < high and start < stop:
        bits = unpack(np.ascontiguousarray(stack.words[0, low - stack.top : high - stack.top]), 64 * words)
        pixels[low - top : high - top, start - left : stop - left] = bits[
            :, start - 64 * stack.left : stop - 64 * stack.left
        ]
    return pixels
