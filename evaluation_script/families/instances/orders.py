"""The order of frames and pixels of video instances: a few are compared with their records in another order."""

from __future__ import annotations

from functools import partial
from math import gcd
from typing import TYPE_CHECKING, Callable, Dict, FrozenSet, Iterable, List, Optional, Tuple

import numpy as np

from ...files import quantity
from ...masks.backend import backend
from ...masks.run_lengths import MaskTexts, runs_of
from ...masks.stack import Array, measure_iou
from ..base.frame_order import REVERSED, REVERSED_SLIP, compare_orders, is_telling
from ..base.readings import ENCODE_COLUMNS, HALVED, PLACES, RESIZE, describe_neighbour, spread_evenly
from .records import Examples, KnownImages

if TYPE_CHECKING:
    from .truth import InstanceTruth

#: The maximum number of videos that are examined, of instances of each, and of records compared with each; the number
#: of samples of a frame, and of all frames of a short video.
_MOST_VIDEOS, _MOST_INSTANCES, _MOST_RECORDS, _SAMPLES, _SAMPLES_OF_ALL = 8, 3, 6, 144, 6000
#: The characters from which a mask is painted, which then takes less time than to read its runs, and the maximum
#: number of pixels that are painted.
_LONG_TEXT, _MOST_PAINTED = 1 << 16, 1 << 26
#: The characters of the records compared with an instance, painted or read: noise makes masks a thousand times as long.
_MOST_PAINTED_TEXT, _MOST_TEXT = 1 << 21, 1 << 18
#: The memory of the masks that are kept drawn.
_MOST_KEPT = 64 << 20
#: The minimum IoU, in the best order, of the record of an instance, and the IoU above which no other record is tried.
_FITTING, _BEST = 0.5, 0.8
#: The minimum number of instances that another order explains, and the reverse one if it does not in each video; their
#: minimum share.
_FEWEST, _FEWEST_REVERSED, _MOST = 2, 4, 0.6
_ORDERS = {
    **{side: (describe_neighbour("each mask", "frame", side), "in that frame") for side in ("before", "after")},
    REVERSED: (REVERSED_SLIP, "in reverse order"),
}


def choose_videos(count: int) -> FrozenSet[int]:
    """Return the indices of the videos to examine, evenly spread."""
    return frozenset(spread_evenly(min(_MOST_VIDEOS, count), count))


def choose_tubes(truth: InstanceTruth) -> Examples:
    """Return the largest instances of some videos."""
    counted = np.flatnonzero((truth.pixels > 0) & ~truth.crowd & (truth.category >= 0))
    indices = [np.zeros(0, np.int64)]
    for video in sorted(choose_videos(len(truth.images.ids))):
        within = counted[truth.image[counted] == video]
        indices.append(within[np.argsort(-truth.pixels[within], kind="stable")[:_MOST_INSTANCES]])
    chosen = np.concatenate(indices)
    boxes = np.zeros((len(chosen), 4))
    return Examples(truth.image[chosen], boxes, category=truth.category[chosen], tubes=truth.masks.take(chosen))


#: The categories and masks of a video's instances or records.
Tubes = Tuple[Array, MaskTexts]
#: Returns the records of a video and their scores.
TakeVideo = Callable[[int], Tuple[Tubes, Array]]
#: Draws samples of a mask, given their places.
Painter = Callable[[Array], Array]


class Painters:
    """What draws the records of videos, kept because several judges draw the same ones."""

    def __init__(self, images: KnownImages, take_video: TakeVideo) -> None:
        self._images, self._take_video = images, take_video
        self._kept: Dict[Tuple[int, int], Painter] = {}
        self._room = _MOST_KEPT

    def load(self, video: int, record: int) -> Painter:
        """Return what draws a record of a video, given its number there."""
        if (video, record) in self._kept:
            return self._kept[video, record]
        height, width = self._images.sizes[video].tolist()
        (_, masks), _ = self._take_video(video)
        text, pixels = masks[record], height * width
        painter = load_painter(text, pixels)
        size = pixels // 8 if is_painted(text, pixels) else 8 * len(text)
        if size <= self._room:
            self._kept[video, record] = painter
            self._room -= size
        return painter


def _count_orders(
    truth: Tubes,
    records: Tubes,
    scores: Array,
    size: Tuple[int, int],
    frames: int,
    load: Callable[[int], Painter],
) -> Array:
    """Return the number of instances of a video whose record can tell orders apart, and how many fit each other order.

    `size` is the height and width of all frames side by side, and `load` returns what draws a record. Counting ends if
    too few fit another order.
    """
    counts: Array = np.zeros(1 + len(_ORDERS), np.int64)
    pixels = size[0] * size[1]
    painters: Dict[int, Painter] = {}
    for index, category in enumerate(truth[0].tolist()):
        alike = choose_records(records, scores, category, pixels)
        if not len(alike):
            continue
        ends = np.cumsum(runs_of(truth[1][index], pixels))
        places = choose_samples(ends, size[0], pixels // frames, frames)
        if not len(places):
            continue
        labels = draw_samples(ends, places)
        best, best_labels = _FITTING, None
        for record in alike.tolist():
            if record not in painters:
                painters[record] = load(record)
            drawn = painters[record](places)
            share = max(measure_iou(*sides) for sides in _pair_frames(labels, drawn))
            if share >= best:
                best, best_labels = share, drawn
            if best >= _BEST:
                break
        if best_labels is not None and is_telling(labels, best_labels):
            orders = compare_orders(labels, best_labels)
            counts += [1, *(order in orders for order in _ORDERS)]
            if not _explains(counts):
                break
    return counts


def count_orders_in(
    images: KnownImages,
    video: int,
    records: Tubes,
    scores: Array,
    load: Optional[Callable[[int], Painter]] = None,
) -> Array:
    """Return how many examples of a video have a record that tells orders apart, and how many fit each other order."""
    examples = images.examples
    if examples is None or examples.tubes is None or images.frames is None:
        return np.zeros(4, np.int64)
    within, (height, width) = np.flatnonzero(examples.image == video), images.sizes[video].tolist()
    truth = examples.category[within], examples.tubes.take(within)

    def load_record(record: int) -> Painter:
        return load_painter(records[1][record], height * width)

    return _count_orders(truth, records, scores, (height, width), int(images.frames[video]), load or load_record)


def _explains(counts: Array) -> bool:
    return bool(counts[1:].max() >= _MOST * counts[0])


def judge_orders(counts_of_videos: Iterable[Array]) -> List[str]:
    """Return a warning if another order of frames explains the masks in each video, or the reverse one in most."""
    total: Array = np.zeros(1 + len(_ORDERS), np.int64)
    of_each = True
    for counts in counts_of_videos:
        total += counts
        of_each &= _explains(counts)
        if not _explains(total):
            return []
    tried, *explained = total.tolist()
    maximum = max(explained)
    # Results of a method that lags fit a neighbouring frame in some videos, but seldom the reverse order.
    if maximum < (_FEWEST if of_each else _FEWEST_REVERSED) or not (of_each or maximum == explained[-1]):
        return []
    slip, scope = list(_ORDERS.values())[explained.index(maximum)]
    line = f"{slip}: {quantity(maximum, 'instance', tried)} tried fit the truth better {scope}"
    return [f"{line}. Write one mask for each frame, in the order of the video's frames"]


def choose_records(records: Tubes, scores: Array, category: Optional[int], pixels: int) -> Array:
    """Return the records of a category, or of any, with the highest scores, as many as are read quickly."""
    alike: Array = np.flatnonzero(records[0] >= 0 if category is None else records[0] == category)
    alike = alike[np.argsort(-scores[alike], kind="stable")[:_MOST_RECORDS]]
    lengths = np.cumsum((records[1].stops - records[1].starts)[alike])
    limit = _MOST_PAINTED_TEXT if pixels <= _MOST_PAINTED else _MOST_TEXT
    return alike[: np.searchsorted(lengths, limit, side="right")]


def choose_samples(ends: Array, height: int, area: int, frames: int) -> Array:
    """Return places (frames, samples) in the box around an instance of all frames, given the ends of its runs."""
    borders = ends[:-1] % area
    if len(borders) < 2:
        return np.zeros((0, 0), np.int64)
    columns, rows = np.divmod(borders, height)
    start, top = int(columns.min()), int(rows.min())
    across, down = int(columns.max()) + 1 - start, int(rows.max()) + 1 - top
    step = max(1, across * down // max(_SAMPLES, _SAMPLES_OF_ALL // frames))
    while gcd(step, down) > 1:
        step += 1
    numbers = np.arange(0, across * down, step)
    places = (start + numbers // down) * height + top + numbers % down
    return np.arange(frames)[:, None] * area + places


def is_painted(text: str, pixels: int) -> bool:
    """Return whether a mask takes less time to paint than to read."""
    return len(text) >= _LONG_TEXT and pixels <= _MOST_PAINTED


def load_painter(text: str, pixels: int) -> Painter:
    """Return a function that draws samples of a mask at their places."""
    if is_painted(text, pixels):
        packed = backend().draw_mask(text, pixels)
        return lambda places: packed[places >> 3] >> (places & 7).astype(np.uint8) & 1
    return partial(draw_samples, np.cumsum(runs_of(text, pixels)))


def draw_samples(ends: Array, places: Array) -> Array:
    """Return the samples of a mask at their places, given the ends of its runs."""
    drawn: Array = np.searchsorted(ends, places.reshape(-1), side="right").reshape(places.shape) % 2
    return drawn


def _pair_frames(truth: Array, predicted: Array) -> List[Tuple[Array, Array]]:
    return [
        (truth, predicted), (truth[:-1], predicted[1:]), (truth[1:], predicted[:-1]), (truth, predicted[::-1]),
    ]  # fmt: skip


#: Another order of a frame's pixels: its slip, remedy, the minimum number of instances that it explains, and the places
#: of pixels (row, column) of frames (height, width) in it. Objects of symmetric videos may fit mirrored ones by chance.
_Places = Tuple[str, str, int, Callable[[Array, Array, int, int], Array]]
_FLIPPED = "Undo the flip before you encode masks"
_PLACES: Tuple[_Places, ...] = (
    ("look encoded row by row", ENCODE_COLUMNS, 2, PLACES["rows"]),
    ("look mirrored, with left and right exchanged", _FLIPPED, 4, PLACES["mirrored"]),
    ("look upside down", _FLIPPED, 4, PLACES["upside down"]),
    ("look rotated by 180 degrees", _FLIPPED, 4, PLACES["rotated"]),
    (HALVED, RESIZE, 4, PLACES["halved"]),
)  # fmt: skip
#: The minimum share of the instances tried, and the minimum ratio of those found by another order to those found.
_WOULD_FIND, _TIMES_AS_MANY = 0.6, 2.0


def judge_pixel_orders(images: KnownImages, take_video: TakeVideo, painters: Painters) -> List[str]:
    """Return a warning if another order of pixels explains the masks."""
    examples = images.examples
    if examples is None or examples.tubes is None or images.frames is None:
        return []
    hits: Array = np.zeros(1 + len(_PLACES), np.int64)
    tried = 0
    for video in dict.fromkeys(examples.image.tolist()):
        within, (records, scores) = np.flatnonzero(examples.image == video), take_video(video)
        (height, width), frames = images.sizes[video].tolist(), int(images.frames[video])
        truth = examples.category[within], examples.tubes.take(within)
        shape, load = (height, width // frames, frames), partial(painters.load, video)
        counts = _count_places(truth, records, scores, shape, load)
        tried, hits = tried + len(within), hits + counts
        if _TIMES_AS_MANY * hits[0] > tried:
            return []
    right, *explained = hits.tolist()
    maximum = max(explained)
    slip, remedy, fewest, _ = _PLACES[explained.index(maximum)]
    if maximum < max(fewest, _WOULD_FIND * tried, _TIMES_AS_MANY * right):
        return []
    gain = f"corrected, {quantity(maximum, 'instance', tried)} tried would be found instead of {right:,}"
    return [f"masks {slip}: {gain}. {remedy}"]


def _count_places(
    truth: Tubes, records: Tubes, scores: Array, size: Tuple[int, int, int], load: Callable[[int], Painter]
) -> Array:
    """Return how many instances of a video are found by their records as sent, and in each other order of pixels.

    `size` is the height and width of a frame, and the number of frames; `load` returns what draws a record.
    """
    height, width, frames = size
    area, counts = height * width, np.zeros(1 + len(_PLACES), np.int64)  # type: int, Array
    for index, category in enumerate(truth[0].tolist()):
        alike = choose_records(records, scores, category, area * frames)
        if not len(alike):
            continue
        ends = np.cumsum(runs_of(truth[1][index], area * frames))
        places = choose_samples(ends, height, area, frames)
        if not len(places):
            continue
        labels, (column, row) = draw_samples(ends, places), np.divmod(places % area, height)
        starts = places - places % area
        by_order = [places, *(starts + order(row, column, height, width) for *_, order in _PLACES)]
        best: Array = np.zeros(len(by_order))
        for record in alike.tolist():
            draw = load(record)
            best = np.maximum(best, [measure_iou(labels, draw(order)) for order in by_order])
            if best[0] >= _FITTING:
                break
        counts += best >= _FITTING
    return counts
