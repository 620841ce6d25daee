"""What the doctor sees of instances: categories painted into maps, boxes or keypoints, in some images or videos."""

from __future__ import annotations

from typing import Callable, List, Optional, Sequence, Tuple

import numpy as np

from ...doctor import Examination, PictureBoxes, Points, Sample, choose_frames, fit_boxes, fit_masks, fit_points
from ...masks.run_lengths import MaskTexts, runs_of
from ...masks.stack import Array
from .protocols import InstanceProtocol
from .submission import InstanceRecords
from .truth import InstanceTruth

#: Returns the records of an image; None if they are not kept or cannot be read.
ReadImage = Callable[[int], Optional[InstanceRecords]]
#: The maximum number of records of an image that are shown.
_MOST_RECORDS = 256


def list_images(truth: InstanceTruth, protocol: InstanceProtocol) -> List[int]:
    """Return the images or videos with instances that count."""
    images: List[int] = np.flatnonzero(np.bincount(truth.image[_flag_counted(truth, protocol)])).tolist()
    return images


def _flag_counted(truth: InstanceTruth, protocol: InstanceProtocol) -> Array:
    extents = truth.keypoints.count if protocol.keypoints and truth.keypoints else truth.pixels
    if protocol.boxes:
        extents = truth.boxes[:, 2:].min(axis=1, initial=np.inf)
    flags: Array = (truth.category >= 0) & ~truth.crowd & (extents > 0)
    return flags


def examine(truth: InstanceTruth, protocol: InstanceProtocol, read: ReadImage) -> Examination:
    """Return a submission as the doctor examines it."""
    images, is_counted = list_images(truth, protocol), _flag_counted(truth, protocol)
    has_masks = not (protocol.boxes or protocol.keypoints)
    ids, shift = truth.images.categories, max(0, 1 - int(truth.images.categories.min(initial=1)))

    def sample(number: int) -> List[Sample]:
        image = images[number]
        records, annotations = read(image), np.flatnonzero(truth.image == image)
        true = annotations[is_counted[annotations]]
        if records is None:
            return []
        chosen = _choose_records(records, len(true))
        is_dropped = (records.pixels[chosen] > 0) & (records.masks.stops == records.masks.starts)[chosen]
        if not len(chosen) or (has_masks and is_dropped.any()):
            return []
        name, (height, width) = str(truth.images.ids[image]), truth.images.sizes[image].tolist()
        labels, written = ids[truth.category[true]] + shift, ids[records.category[chosen]] + shift
        if protocol.keypoints and truth.keypoints:
            sides, size = _find_other_sides(truth.keypoints.names), (height, width)
            people = Points(truth.keypoints.points[true], truth.keypoints.marked[true], labels, size, sides)
            places = records.points[chosen].reshape(-1, len(sides), 2)
            marked = np.ones(places.shape[:2], bool)
            return [Sample(number, name, [people], [Points(places, marked, written, size, sides)])]
        if protocol.boxes:
            predicted_boxes = PictureBoxes(records.boxes[chosen], written, (height, width))
            return [Sample(number, name, [PictureBoxes(truth.boxes[true], labels, (height, width))], [predicted_boxes])]
        count = 1 if truth.images.frames is None else int(truth.images.frames[image])
        frames, shape = choose_frames(count), (height, width // count, count)
        void = np.full(len(annotations), -1)
        void[is_counted[annotations]] = labels
        true_maps, predicted_maps = (
            _paint(texts, painted, areas, shape, frames)
            for texts, painted, areas in (
                (truth.masks.take(annotations), void, truth.pixels[annotations]),
                (records.masks.take(chosen), written, records.pixels[chosen]),
            )
        )
        return [Sample(number, name, true_maps, predicted_maps, frames, count)]

    traits = {"pictures", "places", "units", "labels"}
    fit, content, agreement = fit_masks, "masks", "the IoU over all pixels"
    if protocol.keypoints:
        fit, content, agreement = fit_points, "keypoints", "the mean similarity of keypoints"
        traits -= {"labels"}
    elif protocol.boxes:
        fit, content, agreement = fit_boxes, "boxes", "the mean IoU of the true boxes"
    else:
        traits |= {"masks"} | ({"frames"} if protocol.tubes else set()) | (set() if protocol.streets else {"runs"})
    names = [str(truth.images.ids[image]) for image in images]
    return Examination(
        names, sample, frozenset(traits), protocol.form[:-1], content, "category ids", fit, agreement=agreement,
        classes=ids.tolist(), label_shift=shift,
    )  # fmt: skip


def _choose_records(records: InstanceRecords, count: int) -> Array:
    """Return about so many records of known categories with the highest scores."""
    candidates = np.flatnonzero(records.category >= 0)
    scores = np.sort(records.score[candidates])[::-1]
    chosen: Array = (
        candidates[records.score[candidates] >= scores[min(count, len(scores)) - 1]] if len(candidates) else candidates
    )
    return chosen[:_MOST_RECORDS]


def _paint(
    masks: MaskTexts, labels: Array, areas: Array, shape: Tuple[int, int, int], frames: Sequence[int]
) -> List[Array]:
    """Return some frames of masks (height, width, all frames), in which small ones lie on top, and void below."""
    height, width, count = shape
    area = height * width
    maps = np.zeros((len(frames), area), np.min_scalar_type(-1 - int(labels.max(initial=0))))
    for row in np.lexsort((-areas, labels > 0)).tolist():
        ends = np.cumsum(runs_of(masks[row], area * count))
        for drawn, frame in zip(maps, frames):
            start, stop = frame * area, (frame + 1) * area
            begin, end = np.searchsorted(ends, (start, stop), side="right").tolist()
            lengths = np.diff(ends[begin:end], prepend=start, append=stop)
            drawn[np.repeat(np.arange(begin, end + 1) % 2 == 1, lengths)] = labels[row]
    return [drawn.reshape(width, height).T for drawn in maps]


def _find_other_sides(names: List[str]) -> Array:
    """Return for each point the one whose name has left instead of right or the reverse; itself without any."""
    other_sides = list(range(len(names)))
    for point, name in enumerate(map(str, names)):
        opposite = name.replace("left", "right")
        if opposite != name and opposite in names:
            other_sides[point] = names.index(opposite)
            other_sides[other_sides[point]] = point
    return np.array(other_sides, np.int64)
