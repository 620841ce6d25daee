"""Sequences whose masks belong elsewhere: to another sequence, to the mirrored picture, to another frame, or beside.

A sequence is misplaced only if its masks fit there far better than where they were submitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from segjudge.evaluation_script.families.sequences.counting import is_one_mask
from segjudge.evaluation_script.families.sequences.losses import ScoredSequence, SequenceLosses, prepare_blocks
from segjudge.evaluation_script.families.sequences.protocols import SequenceProtocol
from segjudge.evaluation_script.families.sequences.truth import VOID
from segjudge.evaluation_script.masks.similarity import count_shared
from segjudge.evaluation_script.masks.stack import WORD, Array, Size, Stack, Stacks, unpack, words_across
from segjudge.families.base.mirrored import CERTAIN, TOP_AND_BOTTOM, WAYS
from segjudge.families.base.moves import Edges, compare_edges, find_boxes, find_move

#: The offsets in frames at which masks are compared with the truth.
_OFFSETS = range(-4, 5)
#: The maximum IoU of masks where they were submitted, the minimum where they belong, and the maximum ratio of the
#: missing IoU there to that where they were submitted.
_ILL, _FITS, _CLOSER = 0.5, 0.7, 0.5
#: The maximum ratio of the missing IoU in another frame to that in the masks' own frame, and the minimum of the latter.
_LEFT, _LACKING = 0.3, 0.02
#: The maximum relative difference of the areas of truth and prediction if only frames are shifted.
_BALANCED = 0.15
#: The maximum number of examined sequences, the number of frames in their first blocks, and the minimum number of
#: frames.
_MOST_SEQUENCES, _ENOUGH_FRAMES, _FEWEST_FRAMES = 16, 12, 3
#: The step of compared frames, and the maximum width of their reduced pictures.
_EVERY, _COLUMNS = 3, 160

#: Masks by object, or all together if objects have no numbers.
_Masks = dict[str, Array]


@dataclass(frozen=True)
class Placement:
    """The sequence, mirrored picture or frames to which a sequence's masks belong, or how far they are displaced."""

    owner: str = ""
    #: The exchanged sides of a mirrored picture.
    mirrored: str = ""
    #: The number of frames; negative for late masks.
    offset: int = 0
    #: By how many pixels the edges of displaced masks differ, as `compare_edges` returns them.
    edges: tuple[Edges, ...] = ()


@dataclass
class _Sample:
    """The first frames of a sequence: small masks, and how well they fit three frames."""

    #: Truth and prediction by frame.
    frames: dict[str, tuple[_Masks, _Masks]] = field(default_factory=dict)
    #: By offset, the pixels shared with the truth that many frames later, and the pixels of either.
    fits: dict[int, Array] = field(default_factory=lambda: {offset: np.zeros(2) for offset in _OFFSETS})
    #: The differences of the masks' edges in sampled frames.
    edges: list[Edges] = field(default_factory=list)

    def measure_fit(self, target: _Sample, mirrored: str = "") -> float:
        """Return the IoU of the predictions over all pixels, with the truth of another sequence; 0 if unknown."""
        common = self.frames.keys() & target.frames.keys()
        shared = total = 0
        for frame in common if 2 * len(common) >= len(self.frames) and len(common) >= _FEWEST_FRAMES else ():
            truth, prediction = target.frames[frame][0], self.frames[frame][1]
            for name in self.frames[frame][0]:
                mask = prediction[name]
                if mirrored:
                    mask = np.flip(mask, 0 if mirrored == TOP_AND_BOTTOM else 1)
                of_truth = truth.get(name, np.zeros_like(mask))
                if of_truth.shape != mask.shape:
                    return 0.0
                shared, total = shared + int((mask & of_truth).sum()), total + int((mask | of_truth).sum())
        return shared / total if total else 0.0

    def find_offset(self) -> int:
        """Return by how many frames the predictions are certainly early, or late if negative; 0 if neither."""
        lacks = {offset: 1 - float(shared / max(either, 1)) for offset, (shared, either) in self.fits.items()}
        best = min(lacks, key=lambda offset: (lacks[offset], abs(offset)))
        is_certain = lacks[best] <= _LEFT * lacks[0] and lacks[-best] > lacks[0] >= _LACKING
        return best if is_certain and len(self.frames) >= _FEWEST_FRAMES else 0


def find_placements(
    scored: Iterable[ScoredSequence], losses: Sequence[SequenceLosses], protocol: SequenceProtocol
) -> dict[str, Placement]:
    """Return where the masks of misplaced sequences belong, reading sequences again if `losses` suggest it."""
    suspects = [sequence for sequence in losses if _is_suspect(sequence)]
    names = {sequence.name for sequence in sorted(suspects, key=lambda sequence: -sequence.loss)[:_MOST_SEQUENCES]}
    if not names:
        return {}
    together = is_one_mask(protocol) or bool(protocol.proposals)
    samples = {
        sequence.truth.name: _sample_sequence(sequence, protocol, together=together)
        for sequence in scored
        if sequence.truth.name in names and sequence.masks is not None
    }
    fits = {name: sample.measure_fit(sample) for name, sample in samples.items()}
    ill = {name: samples[name] for name, fit in fits.items() if fit <= _ILL}
    certain: dict[str, Placement] = {}
    for way in WAYS:
        righted_fits = {name: sample.measure_fit(sample, way) for name, sample in ill.items()}
        mirrored = [name for name, fit in righted_fits.items() if _fits_better(fit, fits[name])]
        if 2 * len(mirrored) > len(ill):
            return {name: Placement(mirrored=way) for name in mirrored}
        certain |= {name: Placement(mirrored=way) for name in mirrored if righted_fits[name] >= CERTAIN}
    places = {name: Placement(owner) for name, owner in _find_owners(ill, fits)}
    offsets = {name: sample.find_offset() for name, sample in samples.items() if name not in places}
    offset, count = max(Counter(offsets.values()).items(), key=lambda item: item[1], default=(0, 0))
    if offset and 2 * count > len(offsets):
        places |= {name: Placement(offset=offset) for name, shift in offsets.items() if shift == offset}
    moved = {name: Placement(edges=tuple(sample.edges)) for name, sample in samples.items() if find_move(sample.edges)}
    return moved | places | certain


def _is_suspect(sequence: SequenceLosses) -> bool:
    """Return whether a sequence's masks fit poorly, or have the areas of the truth but other pixels."""
    j = [value for losses in sequence.objects for value in losses.score.j.tolist()]
    true, predicted, shared = (sum(losses.pixels[side] for losses in sequence.objects) for side in range(3))
    larger, union = max(true, predicted), true + predicted - shared
    is_balanced = abs(true - predicted) <= _BALANCED * larger and union - shared >= _LACKING * union
    return bool(j) and (float(np.mean(j)) <= _ILL or (bool(union) and is_balanced))


def _fits_better(fit: float, present: float) -> bool:
    return fit >= _FITS and 1 - fit <= _CLOSER * (1 - present)


def _find_owners(samples: Mapping[str, _Sample], fits: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Yield sequences with the sequence whose masks each has, if exactly one fits."""
    for name, sample in samples.items():
        candidates = ((owner, sample.measure_fit(samples[owner])) for owner in samples if owner != name)
        owners = [owner for owner, fit in candidates if _fits_better(fit, fits[name])]
        if len(owners) == 1:
            yield name, owners[0]


def _sample_sequence(scored: ScoredSequence, protocol: SequenceProtocol, *, together: bool) -> _Sample:
    sample, names, count = _Sample(), [score.name for score in scored.scores], 0
    for block in prepare_blocks(scored, protocol):
        for name in names:
            _add_fits(sample.fits, block.truth.get(name), block.predicted.get(name))
        rows = np.arange(-count % _EVERY, len(block.frames), _EVERY)
        for name in names if not together else ():
            sample.edges += _compare_masks(block.truth.get(name), block.predicted.get(name), rows)
        sides = [_shrink(side, block.size, rows, names, together=together) for side in (block.truth, block.predicted)]
        for row, number in enumerate(rows.tolist()):
            truth, prediction = ({name: masks[row] for name, masks in side.items()} for side in sides)
            if any(mask.any() for mask in (*truth.values(), *prediction.values())):
                sample.frames[block.frames[number]] = truth, prediction
        count += len(block.frames)
        if count >= _ENOUGH_FRAMES:
            break
    return sample


def _add_fits(fits: dict[int, Array], truth: Stack | None, prediction: Stack | None) -> None:
    """Add the pixels of an object in the frames of a block."""
    if truth is None or prediction is None:
        return
    frames = len(truth.words)
    for offset in (offset for offset in fits if abs(offset) < frames):
        indices = np.arange(max(0, -offset), frames - max(0, offset))
        later, predicted = truth.frames(indices + offset), prediction.frames(indices)
        shared = count_shared(later, predicted)
        fits[offset] += int(shared.sum()), int((later.area + predicted.area - shared).sum())


def _compare_masks(truth: Stack | None, prediction: Stack | None, rows: Array) -> Iterator[Edges]:
    """Yield the differences of an object's edges in the frames of a block that have it on both sides."""
    if truth is None or prediction is None:
        return
    for row in rows.tolist():
        masks = truth.draw(row), prediction.draw(row)
        if all(mask.any() for mask in masks):
            boxes = [find_boxes(mask.astype(np.uint8), 1)[0] for mask in masks]
            yield compare_edges(boxes[0], boxes[1], masks[0].shape)


def _shrink(side: Stacks, size: Size, frames: Array, names: Sequence[str], *, together: bool) -> _Masks:
    """Return small pictures (frames, rows, columns) of objects, or of all objects together."""
    step = max(1, -(-size[1] // _COLUMNS))
    objects = {"": [label for label in side if label != VOID]} if together else {name: [name] for name in names}
    pictures: _Masks = {}
    for name, labels in objects.items():
        picture = np.zeros((len(frames), -(-size[0] // step), words_across(size[1]) * WORD), bool)
        for stack in (side[label] for label in labels if label in side):
            skipped, height = -stack.top % step, stack.words.shape[1]
            lines = np.ascontiguousarray(stack.words[frames, skipped::step])
            top, start, pixels = (stack.top + skipped) // step, stack.column * WORD, stack.words.shape[2] * WORD
            if height > skipped:
                picture[:, top : top + lines.shape[1], start : start + pixels] |= unpack(lines, pixels)
        pictures[name] = picture[..., : size[1] : step]
    return pictures
