"""Suspicions about records of videos that lie where instances are: of another category, or in another video."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

import numpy as np

from ...masks.run_lengths import MaskTexts, runs_of
from ...masks.stack import Array, measure_iou
from ...values.arithmetic import mean
from ..base.readings import LOW_FIT, find_fit, judge_moved, least_fit
from .category_suspicions import judge_pairs
from .orders import Painter, Painters, TakeVideo, choose_records, choose_samples, draw_samples
from .records import KnownImages

#: The minimum IoU of the record of an instance.
_REACHED = 0.5


class _Comparison:
    """The examples of the truth and the records of their videos, of any category."""

    def __init__(
        self, shapes: Array, examples: Tuple[Array, Array, MaskTexts], take_video: TakeVideo, painters: Painters
    ) -> None:
        self._shapes, self._take_video, self._load = shapes, take_video, painters.load
        self._video, self._category, self._tubes = examples
        #: What draws a record, by its video and its number there.
        self._painters: Dict[Tuple[int, int], Painter] = {}
        #: Places in the box around an instance, and its samples there.
        self._samples: Dict[int, Tuple[Array, Array]] = {}

    def list_alike(self, video: int, videos: List[int]) -> List[int]:
        """Return the other videos whose frames have the size and number of a video's."""
        shape = self._shapes[video].tolist()
        return [number for number in videos if number != video and self._shapes[number].tolist() == shape]

    def reaches(self, video: int) -> bool:
        """Return whether a record of its category lies where the largest instance of a video is."""
        index = int(np.flatnonzero(self._video == video)[0])
        return any(fit >= _REACHED for _, fit in self._overlap(index, video, int(self._category[index])))

    def compare(self, video: int, source: int) -> List[Tuple[int, int, float]]:
        """Return for each instance of a video its category, and the category and IoU of a source's best record."""
        results = []
        for index in np.flatnonzero(self._video == video).tolist():
            category, best = max(self._overlap(index, source), key=lambda fit: fit[1], default=(-1, 0.0))
            results.append((int(self._category[index]), category, best))
        return results

    def _overlap(self, index: int, source: int, category: Optional[int] = None) -> Iterator[Tuple[int, float]]:
        """Yield the categories of a video's records with the highest scores, and their IoU with an instance."""
        height, width, frames = self._shapes[source].tolist()
        pixels = height * width
        if index not in self._samples:  # frames of all sources have one size and number
            ends = np.cumsum(runs_of(self._tubes[index], pixels))
            places = choose_samples(ends, height, pixels // frames, frames)
            self._samples[index] = places, draw_samples(ends, places)
        places, labels = self._samples[index]
        if not places.size:
            return
        records, scores = self._take_video(source)
        for row in choose_records(records, scores, category, pixels).tolist():
            if (source, row) not in self._painters:
                self._painters[source, row] = self._load(source, row)
            yield int(records[0][row]), measure_iou(labels, self._painters[source, row](places))


def judge_exchanged_tubes(images: KnownImages, take_video: TakeVideo, painters: Painters) -> List[str]:
    """Return a warning if records have categories or videos that are exchanged for each other."""
    examples = images.examples
    if examples is None or examples.tubes is None or images.frames is None:
        return []
    shapes = np.column_stack((images.sizes, images.frames))
    comparison = _Comparison(shapes, (examples.image, examples.category, examples.tubes), take_video, painters)
    videos = list(dict.fromkeys(examples.image.tolist()))
    doubtful = [video for video in videos if not comparison.reaches(video)]
    are_categories_doubtful = 2 * len(doubtful) >= len(videos)
    fits = {video: comparison.compare(video, video) for video in (videos if are_categories_doubtful else doubtful)}
    if are_categories_doubtful:
        pairs = [(true, category) for its in fits.values() for true, category, fit in its if fit >= _REACHED]
        lines = judge_pairs(images.categories, pairs)
        if lines:
            return lines
    as_sent = {video: _average(fits[video]) for video in doubtful}
    return _judge_videos(images.ids, comparison, videos, as_sent)


def _judge_videos(ids: Array, comparison: _Comparison, videos: List[int], as_sent: Dict[int, float]) -> List[str]:
    """Return a warning if records of other videos fit doubtful ones, whose IoU with their own records is given."""
    moved: List[Tuple[str, str, Tuple[float, float]]] = []
    for video, before in as_sent.items():
        if before < LOW_FIT:
            alike = comparison.list_alike(video, videos)
            shares = {number: _average(comparison.compare(video, number)) for number in alike}
            source = find_fit(shares, least_fit(before))
            if source is not None:
                moved.append((str(ids[source]), str(ids[video]), (before, shares[source])))
    metric = "the IoU of the instances tried"
    return judge_moved(moved, "records look exchanged among videos", metric, "Check video_id")


def _average(fits: List[Tuple[int, int, float]]) -> float:
    return mean(np.array([fit for *_, fit in fits])) if fits else 0.0
