"""Suspicions about records of videos whose masks are all moved by the same pixels, as after a crop or padding.

The frame in which an instance is largest is drawn, with the record that fits it best.
"""

from __future__ import annotations

from typing import Dict, List, Tuple

import numpy as np

from ...masks.backend import backend
from ...masks.run_lengths import MaskTexts, runs_of
from ...masks.stack import Array, measure_iou
from ..base.displacement import EXACT, MOST_PIXELS, STILL, compare_covers, judge_moved_masks, may_be_moved
from ..base.readings import ReadingScores
from .orders import Painter, Painters, TakeVideo, choose_records, choose_samples, draw_samples, is_painted
from .records import KnownImages

#: The height of frames, their pixels and their number.
_Shape = Tuple[int, int, int]


def judge_moved_tubes(images: KnownImages, take_video: TakeVideo, painters: Painters) -> List[str]:
    """Return a warning if most videos' masks are moved alike."""
    examples = images.examples
    if examples is None or examples.tubes is None or images.frames is None:
        return []
    scores: Dict[str, ReadingScores] = {}
    videos = dict.fromkeys(examples.image.tolist())
    for video in videos:
        records, confidences = take_video(video)
        frames, (height, width) = int(images.frames[video]), images.sizes[video].tolist()
        shape = height, height * width // frames, frames
        name = str(images.ids[video])
        scores[name] = {}
        for index in np.flatnonzero(examples.image == video).tolist():
            alike = choose_records(records, confidences, int(examples.category[index]), height * width)
            drawn = {row: painters.load(video, row) for row in alike.tolist()}
            scores[name] = _compare(examples.tubes[index], records[1], drawn, shape)
            if scores[name]:
                break
        if not may_be_moved([*scores.values()], len(videos)):
            return []
    return judge_moved_masks(scores, "video", len(images.ids))


def _compare(truth: str, masks: MaskTexts, drawn: Dict[int, Painter], shape: _Shape) -> ReadingScores:
    """Return the IoU of an instance with its record in one frame, as sent and moved back; empty without a record."""
    height, area, frames = shape
    ends = np.cumsum(runs_of(truth, area * frames))
    places = choose_samples(ends, height, area, frames)
    if not drawn or not len(places) or area > MOST_PIXELS:
        return {}
    frame = int(np.argmax(np.diff(_count_before(ends, np.arange(frames + 1) * area))))
    labels = draw_samples(ends, places[frame])
    fits = [measure_iou(labels, painter(places[frame])) for painter in drawn.values()]
    if max(fits) >= EXACT:
        return STILL
    best = masks[[*drawn][int(np.argmax(fits))]]
    return compare_covers(*(_draw(text, shape, frame) for text in (truth, best)))


def _count_before(ends: Array, places: Array) -> Array:
    """Return the number of pixels of a mask before each place, given the ends of its runs."""
    lengths = np.diff(ends, prepend=0)
    lengths[::2] = 0
    counted: Array = np.interp(places, np.append(0, ends), np.append(0, np.cumsum(lengths)))
    return counted


def _draw(text: str, shape: _Shape, frame: int) -> Array:
    """Return the pixels (columns, rows) of one frame of a mask."""
    height, area, frames = shape
    start, stop = frame * area, (frame + 1) * area
    if is_painted(text, area * frames):
        packed = backend().draw_mask(text, area * frames)[start >> 3 : (stop + 7) >> 3]
        pixels = np.unpackbits(packed, bitorder="little")[start & 7 :][:area].view(bool)
    else:
        ends = np.cumsum(runs_of(text, area * frames))
        begin, end = np.searchsorted(ends, (start, stop), side="right").tolist()
        lengths = np.diff(ends[begin:end], prepend=start, append=stop)
        pixels = np.repeat((np.arange(begin, end + 1) & 1).astype(bool), lengths)
    return pixels.reshape(-1, height)
