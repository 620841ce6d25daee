"""Pictures of phrases: the objects of a pair and the predicted masks, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, Unit
from segjudge.evaluation_script.families.phrases.files import PhraseSubmission
from segjudge.evaluation_script.families.phrases.protocols import LEAST_SCORE
from segjudge.evaluation_script.families.phrases.videos import AREA, MASK, TRACK, VideoPhraseSubmission
from segjudge.evaluation_script.masks.run_lengths import Masks, pack_texts
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.families.base.pictures import SeenFrame, Side, UnitPainter, paint_masks, share_of_masks
from segjudge.families.base.segments import RIGHT, judge_segments

#: The minimum share of a prediction on a crowd that makes it ignored.
_ON_CROWD = 0.5


class PhrasePainter(UnitPainter):
    """A painter of picture pairs, for the annotator who agrees most with the prediction."""

    threshold = "IoU"
    edge_weight, one_to_one = 2.0, True
    open_submission = PhraseSubmission
    _submission: PhraseSubmission | None

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        for index, frame in enumerate(frames):
            predictions = _pack([], frame.size)
            if self._submission is not None:
                masks, other_size = self._submission.masks(unit.name, frame.size)
                predictions = _pack(
                    [(masks.texts[k], int(masks.area[k])) for k in np.flatnonzero(~other_size).tolist()], frame.size
                )
            views = [_see(rows, predictions, frame.size) for rows in frame.rows]
            agreeing = max(range(len(views)), key=lambda number: _count_right(views[number]))
            seen, texts = views[agreeing], [text for crowd, text, _ in frame.rows[agreeing] if not crowd]
            if index in drawn:
                frame_texts = [predictions.texts[k] for k in range(len(predictions.area))]
                maps = np.stack([paint_masks(side, frame.size, drawn[index]) for side in (texts, frame_texts)])
                seen = seen._replace(maps=maps)
            yield seen


class VideoPhrasePainter(UnitPainter):
    """A painter of video pairs; tracks that follow an object get its number."""

    follows, threshold = True, "IoU"
    edge_weight, one_to_one = 2.0, True

    open_submission = VideoPhraseSubmission
    _submission: VideoPhraseSubmission | None

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        crowds, predicted = unit.facts["crowds"], self._list_predictions(unit, len(frames))
        for index, (frame, frame_texts) in enumerate(zip(frames, predicted, strict=True)):
            rows = [(crowds[row[TRACK]], row[MASK], row[AREA]) for row in frame.rows]
            tracks = [row[TRACK] for row in frame.rows if not crowds[row[TRACK]]]
            seen = _see(rows, _pack([(text, area) for _, text, area in frame_texts], frame.size), frame.size)
            seen = seen._replace(
                truth=_number_side(seen.truth, "object", tracks),
                prediction=_number_side(seen.prediction, "track", [track for track, _, _ in frame_texts]),
            )
            if index in drawn:
                sides = [text for crowd, text, _ in rows if not crowd], [text for _, text, _ in frame_texts]
                maps = np.stack([paint_masks(side, frame.size, drawn[index]) for side in sides])
                seen = seen._replace(maps=maps)
            yield seen

    def _list_predictions(self, unit: Unit, frames: int) -> list[list[tuple[int, str, int]]]:
        """List the masks of each frame that count: the track, the run lengths, the area."""
        listed: list[list[tuple[int, str, int]]] = [[] for _ in range(frames)]
        if self._submission is not None:
            tracks, scores = self._submission.tracks(unit.name, unit.facts["size"])
            for number in np.flatnonzero(scores[tracks.track] >= LEAST_SCORE).tolist():
                mask = tracks.masks.texts[number], int(tracks.masks.area[number])
                listed[tracks.frame[number]].append((int(tracks.track[number]), *mask))
        return listed


def _number_side(side: Side, noun: str, tracks: Sequence[int]) -> Side:
    """Number the segments of a frame by their tracks."""
    names = [f"{noun} {track + 1}" for track in tracks]
    return side._replace(keys=tracks, names=names, things=np.ones(len(tracks), bool))


def _see(rows: Sequence[tuple[int, str, int]], predictions: Masks, size: Size) -> SeenFrame:
    """Return the content of a pair according to one annotator."""
    objects = _pack([(text, area) for crowd, text, area in rows if not crowd], size)
    crowds = _pack([(text, area) for crowd, text, area in rows if crowd], size)
    on_crowds = share_of_masks(crowds, predictions).max(axis=0, initial=0)
    return SeenFrame(
        _make_side("object", objects.area),
        _make_side("prediction", predictions.area),
        share_of_masks(objects, predictions),
        on_crowds / np.maximum(predictions.area, 1) >= _ON_CROWD,
        None,
    )


def _count_right(seen: SeenFrame) -> int:
    """Return the number of correct segments minus the wrong ones."""
    kinds = judge_segments(
        seen.shared, (seen.truth.areas, seen.prediction.areas), (seen.truth.classes, seen.prediction.classes)
    )
    return sum(2 * int((side == RIGHT).sum()) - len(side) for side in kinds[:2])


def _make_side(noun: str, areas: Array) -> Side:
    count = len(areas)
    names = [f"{noun} {number}" for number in range(1, count + 1)]
    return Side(names, names, areas, np.zeros(count, np.int64), np.zeros(count, bool))


def _pack(masks: Sequence[tuple[str, int]], size: Size) -> Masks:
    areas = np.array([area for _, area in masks], np.int64)
    return Masks(pack_texts([text for text, _ in masks]), areas, np.array([size] * len(masks), np.int64).reshape(-1, 2))
