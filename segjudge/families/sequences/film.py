"""Films: frames of a sequence side by side in full resolution, with truth, predictions or errors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.sequences.engine import OpenedSequences
from segjudge.evaluation_script.families.sequences.losses import ComparedBlock, pair_with_scores, prepare_blocks
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, SequenceReport
from segjudge.evaluation_script.families.sequences.truth import VOID, label_order
from segjudge.evaluation_script.files.problems import HostError, name_hint
from segjudge.evaluation_script.masks.stack import Array, Stacks
from segjudge.families.base.tools import Film, FilmCell, FilmChoice, ScoredMethod
from segjudge.report.colours import GROUND, MISSING, OBJECTS, OTHER, RIGHT, SURPLUS
from segjudge.report.player import read_picture
from segjudge.system.errors import UsageError

from .published import frame_images_of

#: The opacity of a mask over its picture, and over a plain ground; correct pixels are lighter.
_COVER, _PLAIN_COVER, _LIGHT = 0.6, 0.9, 0.6


def draw_film(methods: Sequence[ScoredMethod], choice: FilmChoice) -> Film:
    """Draw one row for the truth (unless errors are drawn) and for each method, with a column per frame."""
    reports = [_report_of(method.report) for method in methods]
    name = choice.sequence or _find_worst_sequence(reports[-1])
    scores = [score for score in reports[-1].scores if score.sequence == name]
    if not scores:
        names = sorted({score.sequence for score in reports[-1].scores})
        raise UsageError(f"there is no sequence {name!r}{name_hint(name, names)}")
    frames = list(choice.frames) or _choose_frames(scores, choice.columns)
    rows: dict[str, list[FilmCell]] = {}
    for method, report in zip(methods, reports, strict=True):
        truths, cells = _draw_row(method, report, name, frames, choice)
        if not choice.errors:
            rows.setdefault("truth", truths)
        rows[method.name] = cells
    return Film(name, rows, frames)


def _report_of(report: Report) -> SequenceReport:
    if not isinstance(report, SequenceReport):
        raise UsageError("filmstrips need mask sequences that were scored from files")
    return report


def _measure_losses(score: ObjectScore, protocol: Any) -> Array:
    return 1 - ((score.j + score.f) / 2 if "J&F-Mean" in protocol.metrics else score.j)


def _find_worst_sequence(report: SequenceReport) -> str:
    losses = {score.sequence: 0.0 for score in report.scores}
    for score in report.scores:
        loss = float(np.nan_to_num(_measure_losses(score, report.protocol)).mean()) if len(score.frames) else 0.0
        losses[score.sequence] = max(losses[score.sequence], loss)
    if not losses:
        raise UsageError("there is no sequence to draw")
    return max(losses, key=losses.__getitem__)


def _choose_frames(scores: list[ObjectScore], columns: int) -> list[str]:
    """Return frames at equal steps, with the nearest one replaced by the worst."""
    longest = max(scores, key=lambda score: len(score.frames))
    frames = longest.frames
    lost = np.zeros(len(frames))
    places = {frame: index for index, frame in enumerate(frames)}
    for score in scores:
        rows = [index for index, frame in enumerate(score.frames) if frame in places]
        values = np.nan_to_num(1 - (score.j + score.f) / 2)
        lost[[places[score.frames[index]] for index in rows]] += values[rows]
    chosen = np.unique(np.linspace(0, len(frames) - 1, max(1, min(columns, len(frames)))).round().astype(int))
    worst = int(lost.argmax())
    chosen[np.abs(chosen - worst).argmin()] = worst
    return [frames[index] for index in sorted(set(chosen.tolist()))]


def _draw_row(
    method: ScoredMethod, report: SequenceReport, name: str, frames: list[str], choice: FilmChoice
) -> tuple[list[FilmCell], list[FilmCell]]:
    """Draw a row: the truth of the frames, or the prediction or its errors."""
    cells: dict[str, tuple[FilmCell, FilmCell]] = {}
    with closing(method.inputs.scorers[report.split].open(method.inputs.results)) as opened:
        if not isinstance(opened, OpenedSequences):
            raise UsageError(f"filmstrips of {report.protocol.name} are not supported")
        sequence = next(pair for pair in pair_with_scores(opened.pairs, report) if pair.truth.name == name)
        unknown = [frame for frame in frames if frame not in sequence.truth.frames]
        if unknown:
            raise UsageError(f"{name} has no frame {unknown[0]}{name_hint(unknown[0], sequence.truth.frames, 12)}")
        paths = dict(zip(sequence.truth.frames, _find_images(choice.images, name, sequence.truth.frames), strict=False))
        labels = sorted({score.name for score in sequence.scores}, key=label_order)
        for block in prepare_blocks(sequence, report.protocol):
            for frame in set(frames) & set(block.frames):
                cells[frame] = _draw_cells(block, block.frames.index(frame), labels, paths.get(frame, ""), choice)
    return [cells[frame][0] for frame in frames], [cells[frame][1] for frame in frames]


def _find_images(folder: str, name: str, frames: list[str]) -> list[str]:
    paths = frame_images_of(folder, name, frames) if folder else []
    if folder and not paths:
        raise HostError(f"{folder}: has no pictures of all frames of {name}")
    return paths


def _draw_cells(
    block: ComparedBlock, row: int, labels: list[str], path: str, choice: FilmChoice
) -> tuple[FilmCell, FilmCell]:
    height, width = block.size
    sides = [_masks_of(side, row, labels, block.size) for side in (block.truth, block.predicted)]
    ground = np.full((height, width, 3), GROUND, np.uint8)
    if path:
        ground = np.asarray(read_picture(path).resize((width, height)))
    share = _COVER if path else _PLAIN_COVER
    truth = _paint_objects(ground, sides[0], share)
    return truth, _paint_errors(ground, sides[0], sides[1], share) if choice.errors else _paint_objects(
        ground, sides[1], share
    )


def _masks_of(side: Stacks, row: int, labels: list[str], size: tuple[int, int]) -> dict[str, Array]:
    """Return the masks of a frame by label: scored ones first, in order."""
    names = [*labels, *(label for label in side if label not in labels and label != VOID)]
    return {label: side[label].draw(row) if label in side else np.zeros(size, bool) for label in names}


def _paint_objects(ground: Array, masks: dict[str, Array], share: float) -> FilmCell:
    pixels = ground.astype(np.float64)
    outlines = []
    for number, mask in enumerate(masks.values()):
        colour = OBJECTS[number % len(OBJECTS)]
        _blend_colour(pixels, mask, colour, share)
        outlines.append((colour, mask))
    return FilmCell(pixels.round().astype(np.uint8), outlines)


def _paint_errors(ground: Array, truth: dict[str, Array], predicted: dict[str, Array], share: float) -> FilmCell:
    """Return missing, surplus, confused and correct pixels as the page paints them, with the true outline."""
    empty = np.zeros(ground.shape[:2], bool)
    is_there = np.logical_or.reduce([empty, *truth.values()])
    is_predicted = np.logical_or.reduce([empty, *predicted.values()])
    names = dict.fromkeys([*truth, *predicted])
    differs = np.logical_or.reduce([empty, *(truth.get(name, empty) ^ predicted.get(name, empty) for name in names)])
    pixels = ground.astype(np.float64)
    _blend_colour(pixels, is_there & is_predicted & ~differs, RIGHT, share * _LIGHT)
    _blend_colour(pixels, is_there & is_predicted & differs, OTHER, share)
    _blend_colour(pixels, is_there & ~is_predicted, MISSING, share)
    _blend_colour(pixels, is_predicted & ~is_there, SURPLUS, share)
    return FilmCell(pixels.round().astype(np.uint8), [((255, 255, 255), mask) for mask in truth.values()])


def _blend_colour(pixels: Array, mask: Array, colour: tuple[int, int, int], share: float) -> None:
    pixels[mask] += share * (np.array(colour) - pixels[mask])
