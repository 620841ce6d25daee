"""Suspicions about records that seem to follow another convention."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from ...files import inflect, quantity
from ...masks.backend import backend
from ...masks.run_lengths import MaskTexts, join_texts
from ...masks.stack import Array
from ..base.readings import ENCODE_COLUMNS
from ..base.suspicions import ScoreRange, judge_matches, judge_one_class
from .category_suspicions import ADDED, FROM_0, FROM_1, SUBTRACTED, judge_exchanged_categories
from .point_suspicions import find_other_sides, judge_moved_boxes, judge_points, judge_stretched_boxes
from .protocols import InstanceProtocol
from .records import Category, Examples, KnownImages, RecordColumns

if TYPE_CHECKING:
    from .truth import InstanceTruth

#: The minimum number of boxes, points or detections for recognising their notation.
_FEWEST = 10
#: The distance in pixels beyond which a coordinate lies outside its image, and the maximum of normalized coordinates.
_SLACK, _NORMALIZED = 2.0, 1.5
#: Orders in which boxes and points may be written.
_BOX_ORDERS = ("[x1, y1, x2, y2]", "[center x, center y, width, height]", "[y, x, height, width]")
_POINT_ORDERS = ("y and x",)
#: The share that counts as nearly all, and the share above which boxes beyond their images are too many.
_NEARLY_ALL, _TOO_MANY = 0.99, 0.05
#: What to do about positions.
_REMEDY = "Write pixels of the image that image_id names"
#: A box ends far outside its image if it exceeds this part of the image's side.
_FAR = 1.1


class RecordForm:
    """The form of a submission's records, counted or not."""

    def __init__(self) -> None:
        #: The numbers of boxes or points: all, those outside their images, those whose coordinates may be shares, those
        #: far outside, and those that each other order would put inside.
        self._counts = np.zeros(4 + len(_BOX_ORDERS), np.int64)
        #: The images, categories, scores, boxes, points and masks of records in or beside the images of examples.
        self._near: List[Tuple[Array, Array, Array, Array, Array, MaskTexts]] = []
        #: The images, categories, scores and masks of records in the videos of examples.
        self._tubes: List[Tuple[Array, Array, Array, MaskTexts]] = []

    def add(self, columns: RecordColumns, images: KnownImages) -> None:
        """Count signs of mistakes in records."""
        if columns.points is not None:
            self._add_points(columns.points, images.sizes[columns.image])
        elif columns.boxes.any():
            self._add_boxes(columns.boxes, images.sizes[columns.image])

    def _add_boxes(self, boxes: Array, sizes: Array) -> None:
        # Columns, since numpy is slow for rows of two.
        (x, y, width, height), (tall, wide) = boxes.T, (sizes + _SLACK).T
        x_end, y_end = x + width, y + height
        starts_inside = (x >= -_SLACK) & (y >= -_SLACK)
        outside = (x_end > wide) | (y_end > tall) | ~starts_inside
        far = (x_end > _FAR * wide) | (y_end > _FAR * tall)
        normalized = (x <= _NORMALIZED) & (y <= _NORMALIZED) & (width <= _NORMALIZED) & (height <= _NORMALIZED)
        as_corners = starts_inside & (width >= x) & (height >= y) & (width <= wide) & (height <= tall)
        half_width, half_height = width / 2, height / 2
        as_centers = (x - half_width >= -_SLACK) & (y - half_height >= -_SLACK)
        as_centers &= (x + half_width <= wide) & (y + half_height <= tall)
        as_exchanged = starts_inside & (x_end <= tall) & (y_end <= wide)
        self._note(outside, normalized, far, as_corners, as_centers, as_exchanged)

    def _add_points(self, points: Array, sizes: Array) -> None:
        x, y = (np.ascontiguousarray(points[:, axis::2]) for axis in range(2))
        tall, wide = (sizes[:, axis, None] + _SLACK for axis in range(2))
        chosen = (x != 0) | (y != 0)
        starts_inside = (x >= -_SLACK) & (y >= -_SLACK)
        outside = (x > wide) | (y > tall) | ~starts_inside
        normalized = (x <= _NORMALIZED) & (y <= _NORMALIZED) & chosen
        as_exchanged = starts_inside & (x <= tall) & (y <= wide) & chosen
        self._note(outside & chosen, normalized, outside & False, as_exchanged, count=int(np.count_nonzero(chosen)))

    def _note(self, outside: Any, *flags: Any, count: Optional[int] = None) -> None:
        counts = [outside.size if count is None else count, *map(np.count_nonzero, (outside, *flags))]
        self._counts[: len(counts)] += np.array(counts, np.int64)

    def join(self, form: RecordForm) -> None:
        """Add the counts of another form."""
        self._counts += form._counts
        self._near += form._near
        self._tubes += form._tubes

    def judge(self, *, points: bool) -> List[str]:
        """Return warnings about the form of the records."""
        count, outside, normalized, far, *otherwise = self._counts.tolist()
        noun = "keypoint" if points else "box"
        nouns = "keypoints" if points else "boxes"
        due = "x, y and a flag for each point" if points else "[x, y, width, height]"
        if count < _FEWEST:
            return []
        if normalized >= _NEARLY_ALL * count:
            few = count - normalized
            who = (
                f"of {count:,} {nouns} only {few:,} {inflect(few, 'reaches', 'reach')}" if few else f"no {noun} reaches"
            )
            reach = f"{who} beyond {_NORMALIZED:g} pixels, as if coordinates were fractions of the image size"
            return [f"{reach}: write {due} in pixels"]
        if outside < _TOO_MANY * count:
            return []
        leave = f"{outside:,} of {count:,} {nouns} reach beyond their images"
        for order, inside in zip(_POINT_ORDERS if points else _BOX_ORDERS, otherwise):
            if inside >= _NEARLY_ALL * count:
                return [f"{leave}, and read as {order} {inside:,} lie inside: write {due}"]
        return [f"{leave}: write {due} in pixels of the image"] if far >= _TOO_MANY * count else []

    def keep_near(self, columns: RecordColumns, masks: MaskTexts, images: KnownImages) -> None:
        """Keep the records of the images of examples and of their neighbours."""
        if images.examples is None or sum(len(image) for image, *_ in self._near) >= _MOST_NEAR:
            return
        if images.examples.tubes is not None:
            chosen = np.flatnonzero(np.isin(columns.image, images.examples.image))
            if len(chosen):
                tubes = masks.take(chosen).compact()
                self._tubes.append((columns.image[chosen], columns.category[chosen], columns.score[chosen], tubes))
            return
        is_near = np.zeros(len(images.ids) + 2, bool)
        for step in (0, 1, 2):
            is_near[images.examples.image + step] = True
        chosen = np.flatnonzero(is_near[1:-1][columns.image])[:_MOST_NEAR]
        points = np.zeros((len(chosen), 0)) if columns.points is None else columns.points[chosen]
        boxes = columns.boxes[chosen] if columns.points is None else _box_points(points)
        texts = masks.take(chosen).compact()
        labels = columns.image[chosen], columns.category[chosen], columns.score[chosen]
        self._near.append((*labels, boxes, points, texts))

    def keep_boxes(self, image: int, category: Array, score: Array, boxes: Array) -> None:
        """Keep the boxes of an image of examples, whose masks are not kept."""
        count = len(boxes)
        texts = MaskTexts(b"", np.zeros(count, np.int64), np.zeros(count, np.int64))
        self._near.append((np.full(count, image), category, score, boxes, np.zeros((count, 0)), texts))

    def judge_twins(self, noun: str) -> List[str]:
        """Return a warning if nearly all of the records kept have a twin, also if all scores are equal."""
        parts = self._near or self._tubes
        if not parts:
            return []
        columns = list(map(np.concatenate, list(zip(*parts))[:-1]))
        total, order = len(columns[0]), np.lexsort(columns[:3])
        alike = np.logical_and.reduce([column[order][1:] == column[order][:-1] for column in columns[:3]])
        if total < _FEWEST or 2 * np.count_nonzero(alike) < _TWINS * total:
            return []
        masks, extents = join_texts([texts for *_, texts in parts]), columns[3:]
        twins: Dict[Tuple[Any, ...], int] = {}
        for row, labels in enumerate(zip(*(column.tolist() for column in columns[:3]))):
            text = masks[row]
            if len(text) >= _TELLING or any(extent[row].any() for extent in extents):
                record = (*labels, text, *(extent[row].tobytes() for extent in extents))
                twins[record] = twins.get(record, 0) + 1
        repeated = sum(count for count in twins.values() if count > 1)
        if repeated < _TWINS * total:
            return []
        holder, content = ("image", "keypoints" if noun == "keypoint" else noun) if self._near else ("video", "masks")
        have = f"{repeated:,} of {total:,} detections tried have the {holder}, category, score and {content}"
        return [f"{have} of {SENT_AGAIN}"]

    def judge_orders(self, images: KnownImages) -> List[str]:
        """Return a warning if records of videos seem exchanged, or to have another order of frames or pixels."""
        if images.examples is None or not self._tubes:
            return []
        from .exchanged_tubes import judge_exchanged_tubes  # for videos alone
        from .moved_tubes import judge_moved_tubes
        from .orders import Painters, count_orders_in, judge_orders, judge_pixel_orders

        image, category, score = (np.concatenate(columns) for columns in list(zip(*self._tubes))[:3])
        tubes = join_texts([texts for *_, texts in self._tubes])

        def take_video(video: int) -> Tuple[Tuple[Array, MaskTexts], Array]:
            rows = np.flatnonzero(image == video)
            return (category[rows], tubes.take(rows)), score[rows]

        videos, painters = dict.fromkeys(images.examples.image.tolist()), Painters(images, take_video)
        in_order = judge_orders(
            count_orders_in(images, video, *take_video(video), partial(painters.load, video)) for video in videos
        )
        return (
            in_order
            or judge_pixel_orders(images, take_video, painters)
            or judge_exchanged_tubes(images, take_video, painters)
            or judge_moved_tubes(images, take_video, painters)
        )

    def judge_places(self, images: KnownImages, noun: str, remedy: str = _REMEDY) -> List[str]:
        """Return a warning if the records seem to have wrong positions or images."""
        if images.examples is None:
            return []
        holders, boxes = images.examples.image, images.examples.boxes
        if not self._near:
            return _describe_elsewhere(0, len(holders)) if noun == "keypoint" else []
        image, category, score, predicted, points = (np.concatenate(column) for column in list(zip(*self._near))[:5])
        masks = join_texts([texts for *_, texts in self._near])
        has_masks = noun == "mask" and bool(masks.text)
        reached = _REACHED_BY_POINTS if noun == "keypoint" else _REACHED

        def count_found(rows: Array, reading: _Place, reached: float) -> int:
            _, step, change = reading
            places = change(predicted[rows].T, images.sizes[image[rows]].T)
            return int(_find_examples(image[rows] + step, places, (holders, boxes), reached).sum())

        def draw_boxes(rows: Array, *, by_rows: bool = False) -> Array:
            """Give records that have a mask the box around it, of its runs along columns or along rows."""
            sizes = images.sizes[image[rows]]
            if has_masks:
                around = backend().mask_boxes(masks.take(rows), sizes[:, ::-1] if by_rows else sizes)
                predicted[rows] = around[:, [1, 0, 3, 2]] if by_rows else around
            return rows

        rows = draw_boxes(np.flatnonzero(np.isin(image, holders, kind="table")))
        near = right = count_found(rows, _AS_MEANT, reached)
        if _TIMES_AS_MANY * right <= len(holders):  # another place could be better
            draw_boxes(np.flatnonzero(~np.isin(image, holders, kind="table")))
            rows, readings = np.arange(len(image)), _PLACES
        else:  # some boxes overlap even by a wrong reading, but they do not fit
            readings, reached = (_RESHAPED, _PADDED, _CORNERED), _FITTING
            if noun == "keypoint":
                boxes = _box_marked(images.examples)
            right = count_found(rows, _AS_MEANT, reached)
        counts = [count_found(rows, reading, reached) for reading in readings]
        if has_masks and _TIMES_AS_MANY * right <= len(holders):
            counts, readings = (
                [count_found(draw_boxes(rows, by_rows=True), _BY_ROWS, reached), *counts],
                (_BY_ROWS, *readings),
            )
        found_count, reading = max(counts), readings[int(np.argmax(counts))]
        nouns = "boxes" if noun == "box" else f"{noun}s"
        if found_count < max(_TIMES_AS_MANY * right, _WOULD_FIND * len(holders)):
            rows = draw_boxes(rows)
            categories = images.categories, image[rows], category[rows], score[rows], predicted[rows]
            elsewhere = _describe_elsewhere(near, len(holders)) if noun == "keypoint" else []
            moved = (
                judge_points(images.examples, image, points)
                if noun == "keypoint"
                else judge_moved_boxes(images.examples, image[rows], predicted[rows], nouns)
            )
            stretched = []
            if not moved and _TIMES_AS_MANY * right <= len(holders):
                records = image[rows], predicted[rows], score[rows], images.sizes[image[rows]]
                true = _box_marked(images.examples) if noun == "keypoint" else boxes
                stretched = judge_stretched_boxes(images.examples, true, records, nouns)
            return moved or stretched or judge_exchanged_categories(images.examples, *categories) or elsewhere
        tried = f"{quantity(found_count, 'instance', len(holders))} tried"
        gain = f"corrected, {tried} would be found instead of {right:,}"
        return [f"{nouns} {reading[0]}: {gain}. {ENCODE_COLUMNS if reading is _BY_ROWS else remedy}"]


#: The minimum share of records with a twin, and the minimum length of a mask that is not empty.
_TWINS, _TELLING = 0.9, 8
#: The end of the sentence on records sent twice.
SENT_AGAIN = "another: send each once"
#: The share of examples below which few have keypoints at their place, and that of detections and of instances up to
#: which almost none match; the end of the sentence on them, which is true only then.
_AT_PLACE, _FEW_MATCHED = 0.25, 0.05
ELSEWHERE = "and almost none were matched: check image_id, and write x and y in pixels of the image that it names"
#: The maximum number of records that are kept for comparison with examples.
_MOST_NEAR = 10_000
#: The share of examples that another reading must find, and the minimum ratio to those found without it.
_WOULD_FIND, _TIMES_AS_MANY = 0.6, 1.5
#: The maximum number of examples from the truth, and the share that spreads them over its images.
_MOST_EXAMPLES, _GOLDEN = 24, 0.618
#: The minimum IoU of boxes for an example to be found, and to fit. Boxes around keypoints are smaller than
#: those around instances.
_REACHED, _REACHED_BY_POINTS, _FITTING = 0.5, 0.3, 0.75


def _cut_padding(boxes: Array, sizes: Array) -> Array:
    """Return boxes without the bars of images that were padded to squares and then had their own size again."""
    longest, sides = sizes.max(axis=0), sizes[::-1]
    starts = boxes[:2] * longest / sides - (longest - sides) / 2
    return np.concatenate((starts, boxes[2:] * longest / sides))


def _cut_corner(boxes: Array, sizes: Array) -> Array:
    """Return boxes without the bars at the right or the bottom of such images."""
    scales = sizes.max(axis=0) / sizes[::-1]
    return np.concatenate((boxes[:2] * scales, boxes[2:] * scales))


#: A reading of the places of records: the slip, the step to their image, and the change of boxes (x, y, width, height)
#: in images (height, width).
_Place = Tuple[str, int, Callable[[Array, Array], Array]]
_AS_MEANT: _Place = ("", 0, lambda boxes, _: boxes)
_BY_ROWS: _Place = ("look encoded row by row", 0, lambda boxes, _: boxes)
_PADDED: _Place = ("look as if their images had been padded to squares", 0, _cut_padding)
_CORNERED: _Place = ("look as if their images had been padded to squares at one side", 0, _cut_corner)
_RESHAPED: _Place = ("look as if width and height were exchanged", 0, lambda b, _: b[[0, 1, 3, 2]])
_PLACES: Tuple[_Place, ...] = (
    ("look mirrored, with left and right exchanged", 0, lambda b, size: np.stack((size[1] - b[0] - b[2], *b[1:]))),
    ("look upside down", 0, lambda b, size: np.stack((b[0], size[0] - b[1] - b[3], b[2], b[3]))),
    ("look rotated by 180 degrees", 0, lambda b, size: np.stack((*(size[::-1] - b[:2] - b[2:]), *b[2:]))),
    ("look as if x and y were exchanged", 0, lambda b, _: b[[1, 0, 3, 2]]),
    _RESHAPED,
    _PADDED,
    _CORNERED,
    ("look as if in images of half the size", 0, lambda b, _: b * 2),
    ("look as if in images of twice the size", 0, lambda b, _: b / 2),
    ("look as if each belonged to the image before its own", -1, lambda b, _: b),
    ("look as if each belonged to the image after its own", 1, lambda b, _: b),
)


def choose_examples(truth: InstanceTruth, protocol: InstanceProtocol) -> Optional[Examples]:
    """Return some instances of images throughout the truth; None if they are too few."""
    if truth.images.frames is not None:
        from .orders import choose_tubes  # for videos alone

        return choose_tubes(truth)
    has_extent = truth.boxes[:, 2:].all(axis=1) if protocol.boxes or protocol.keypoints else truth.pixels > 0
    indices = np.flatnonzero(has_extent & ~truth.crowd & (truth.category >= 0))
    if len(indices) < _FEWEST:
        return None
    totals = np.bincount(truth.image[indices])
    images = np.flatnonzero(totals)  # `np.unique` imports much
    strides = np.argsort((np.arange(len(images)) * _GOLDEN) % 1, kind="stable")
    some = images[strides]
    some = some[: int(np.searchsorted(np.cumsum(totals[some]), _MOST_EXAMPLES)) + 1]
    chosen = indices[np.isin(truth.image[indices], some)][:_MOST_EXAMPLES]
    keypoints = truth.keypoints if protocol.keypoints else None
    if keypoints is not None:
        points, marked, other_sides = (
            keypoints.points[chosen],
            keypoints.marked[chosen],
            find_other_sides(keypoints.names),
        )
        boxes, names = truth.boxes[chosen].astype(float), tuple(map(str, keypoints.names))
        category = truth.category[chosen]
        return Examples(truth.image[chosen], boxes, points, marked, other_sides, category, names=names)
    if protocol.boxes:
        return Examples(truth.image[chosen], truth.boxes[chosen].astype(float), category=truth.category[chosen])
    boxes = backend().mask_boxes(truth.masks.take(chosen), truth.images.sizes[truth.image[chosen]])
    return Examples(truth.image[chosen], boxes.astype(float), category=truth.category[chosen])


def _describe_elsewhere(near: int, count: int) -> List[str]:
    """Return the sentence on keypoints that lie where no instance is."""
    if near >= _AT_PLACE * count:
        return []
    few = f"only {quantity(near, 'instance', count)}" if near else f"none of {quantity(count, 'instance')}"
    return [f"keypoints lie at the place of {few} tried, {ELSEWHERE}"]


def _box_points(points: Array) -> Array:
    """Return the box around the points of each record, without those at the origin, which stand for none."""
    x, y = points[:, ::2], points[:, 1::2]
    has_place: Array = (x > 1) | (y > 1)
    has_place = has_place | ~has_place.any(axis=1, keepdims=True)
    starts = [np.where(has_place, axis, np.inf).min(axis=1) for axis in (x, y)]
    ends = [np.where(has_place, axis, -np.inf).max(axis=1) for axis in (x, y)]
    return np.stack((*starts, ends[0] - starts[0], ends[1] - starts[1]), axis=1)


def _box_marked(examples: Examples) -> Array:
    """Return the box around the marked points of each example."""
    marked = np.where(examples.marked[..., None], examples.points, 0.0)
    return _box_points(marked.reshape(len(marked), -1))


def _find_examples(image: Array, boxes: Array, examples: Tuple[Array, Array], reached: float) -> Array:
    """Return whether a box (by column) of the same image as each example has at least this IoU with it."""
    rows, index = np.nonzero(image[:, None] == examples[0])
    (x, y, width, height), (start, top, across, down) = examples[1].T[:, index], boxes[:, rows]
    shared = np.maximum(np.minimum(start + across, x + width) - np.maximum(start, x), 0)
    shared *= np.maximum(np.minimum(top + down, y + height) - np.maximum(top, y), 0)
    union = across * down + width * height - shared
    reaches, has_extent = (
        np.bincount(index[flags], minlength=len(examples[0])) for flags in (shared >= reached * union, union != 0)
    )
    return (reaches > 0) & (has_extent > 0)


#: The minimum ratio of the detections whose category occurs in their image, by another numbering and by their own.
_MORE_PRESENT = 1.5


def _judge_categories(truth: Array, detections: Array, categories: List[Category]) -> List[str]:
    """Return a warning if the categories of detections seem to be numbered differently from the truth's."""
    ids = np.array([category.id for category in categories], np.int64)
    total = len(detections)
    if total < _FEWEST or (detections["category"] == detections["category"][0]).all():
        return []
    count = len(ids)
    true = (truth["image"].astype(np.int64) * count + truth["category"])[truth["counted"][:, 0] > 0]
    image, category = detections["image"].astype(np.int64) * count, detections["category"].astype(np.int64)

    def count_present(coding: Array) -> int:
        """Count the detections whose image has a true instance of the category that a coding gives for theirs."""
        coded = coding[category]
        return int(np.count_nonzero(np.isin((image + coded)[coded >= 0], true)))

    right = count_present(np.arange(count))
    if _MORE_PRESENT * right > total:  # no other coding could be better
        return []
    codings = _places(ids, ids - 1), _places(ids, ids + 1), _within(ids, count), _within(ids - 1, count)
    for name, coding in zip((ADDED, SUBTRACTED, FROM_0, FROM_1), codings):
        present = count_present(coding)
        if 2 * present > total and present >= _MORE_PRESENT * right:
            share = f"{quantity(present, 'detection', total)} would have a category in their image, not {right:,}"
            return [f"categories look as if {name}: with the truth's ids {share}. Write the ids of the truth"]
    return []


def _places(ids: Array, wanted: Array) -> Array:
    places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[places] == wanted, places, -1)


def _within(places: Array, count: int) -> Array:
    return np.where((places >= 0) & (places < count), places, -1)


def _find_hits(detections: Array) -> Array:
    """Return which detections match an instance of any size, at the lowest threshold."""
    hits: Array = detections["matched"] & ~detections["ignored"] & np.uint64(1)
    return hits


def judge_detections(
    truth: Array, detections: Array, categories: List[Category], protocol: InstanceProtocol, *, explained: bool = False
) -> List[str]:
    """Return warnings about all detections: their scores, and categories and matches unless these are explained."""
    truth, detections = (table[table["category"] < len(categories)] for table in (truth, detections))
    if not len(detections):
        return []
    scores = ScoreRange()
    scores.add(detections["score"])
    matched = _find_hits(detections)
    hits = int(np.count_nonzero(matched))
    counted = truth[truth["counted"][:, 0] > 0]
    unmatched: List[str] = []
    if not explained:
        # Keypoints of a poor method match nobody; those elsewhere were found among the records.
        unmatched = (
            _judge_categories(truth, detections, categories)
            or ([] if protocol.keypoints else judge_matches("detection", int(counted["counted"][:, 0].sum()), 1, hits))
            or judge_one_class("detection", np.bincount(counted["category"]), np.bincount(detections["category"]))
        )
    return [
        *scores.judge(),
        *unmatched,
        *_judge_duplicates(detections, matched),
        *([] if explained or unmatched else _judge_one_score(detections, hits)),
        *_judge_missing(counted, detections, protocol),
    ]


def match_few(truth: Array, detections: Array) -> bool:
    """Return whether few detections, if there are any, match an instance, and few instances are matched."""
    hits = int(np.count_nonzero(_find_hits(detections)))
    return len(detections) > 0 and hits <= _FEW_MATCHED * min(len(detections), int(truth["counted"][:, 0].sum()))


def judge_unchecked(truth: Array, detections: Array, protocol: InstanceProtocol) -> List[str]:
    """Return a warning if no record counts, although records were sent and instances were to be found."""
    if not protocol.federated or len(detections) or not truth["counted"][:, 0].any():
        return []
    cause = "all have empty masks, or categories that are not checked in their images"
    return [f"no record counts, since {cause}: check the masks, and the numbers of the classes and images"]


#: The share of matched detections with a twin from which all seem to be sent twice, the minimum share of different
#: scores (rounded ones often coincide), and the share of keys that even numbers of detections have.
_TWICE, _DIFFERENT, _EVEN = 0.5, 0.25, 0.95


def _judge_duplicates(detections: Array, matched: Array) -> List[str]:
    """Return a warning if detections, by image, category and rank, seem to be repeated."""
    keys = ("image", "category", "score")
    repeats = np.logical_and.reduce([detections[key][1:] == detections[key][:-1] for key in keys])
    hits, total = int(np.count_nonzero(matched)), len(detections)
    twins = int(np.count_nonzero(repeats & ((matched[1:] > 0) != (matched[:-1] > 0))))
    sizes = np.diff(np.flatnonzero(np.concatenate(([True], ~repeats, [True]))))
    are_pairs = len(sizes) >= _FEWEST and np.count_nonzero(sizes % 2 == 0) >= _EVEN * len(sizes)
    are_twins = hits >= _FEWEST and twins >= _TWICE * hits
    if not (are_pairs or are_twins):
        return []
    scores = np.sort(detections["score"])  # np.unique would import numpy.ma
    if np.count_nonzero(scores[1:] != scores[:-1]) + 1 < _DIFFERENT * total:
        return []
    count = int(np.count_nonzero(repeats))
    return [f"{count:,} of {total:,} detections have the image, category and score of {SENT_AGAIN}"]


def _judge_one_score(detections: Array, hits: int) -> List[str]:
    """Return a warning if no score ranks detections, some of which are wrong."""
    scores, total = detections["score"], len(detections)
    if total < _FEWEST or hits >= total or (scores != scores[0]).any():
        return []
    return [f"all {total:,} detections have the score {scores[0]:g}, which ranks none: write the confidence of each"]


#: The share of images with instances but no detection above which results look incomplete.
_WITHOUT = 1 / 3


def _judge_missing(counted: Array, detections: Array, protocol: InstanceProtocol) -> List[str]:
    """Return a warning if many images or videos with instances lack detections."""
    images = np.flatnonzero(np.bincount(counted["image"]))
    missing = int(np.count_nonzero(~np.isin(images, detections["image"])))
    if len(images) < _FEWEST or missing < _WITHOUT * len(images):
        return []
    scope = f"{missing:,} of {len(images):,} {'videos' if protocol.tubes else 'images'} with instances"
    return [f"{scope} have no detection: check that the results are of the whole split"]
