"""The causes of instances' losses: counts of instances and kept detections by cause, and a sentence about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pycocotools.mask as coco

from segjudge.evaluation_script.families.instances.protocols import THRESHOLDS
from segjudge.evaluation_script.files.problems import inflect, quantity
from segjudge.evaluation_script.masks.run_lengths import flags
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.causes import (
    CauseCounts,
    Match,
    measure_ious,
)
from segjudge.families.base.pictures import SeenFrame, Side
from segjudge.families.base.segments import (
    FAULTS,
    RIGHT,
    SPLIT,
    SURPLUS,
    SWAPPED,
    JudgedSegments,
    judge_segments,
)
from segjudge.families.instances.diagnosis import InstanceDiagnosis

from .keypoints import KeypointFault, list_faults

#: The maximum number of examined images; the ones with the most mistakes come first.
_MOST_IMAGES = 1000
#: The maximum number of videos whose identities are examined, and of decoded mask pixels per video.
_MOST_VIDEOS, _MOST_PIXELS = 40, 60_000_000
#: The minimum IoU at which a detection shows an instance in a frame, or repeats it.
_HALF = 0.5
#: The area of each set of keypoints.
_AREA = 100.0
#: A track is briefly on an object if at least this share of its pixels lies on the object.
_BRIEFLY = 0.05
#: The weight of the missing IoU of a match that reaches all thresholds.
_LEAST_WEIGHT = 0.001
#: False detections count if their scores are higher than those of one of these shares of the correct ones.
_SHARES = {0.5: "half", 0.1: "a tenth"}


def describe_causes(diagnosis: InstanceDiagnosis) -> str:
    """Describe the most expensive causes; "" if every instance is detected exactly."""
    if diagnosis.protocol.keypoints:
        return _describe_keypoints(diagnosis)
    images = diagnosis.rank_images(_MOST_IMAGES)
    unit = "video" if diagnosis.protocol.tubes else "image"
    counts, scope = CauseCounts("instance", unit, edge_weight=2.0, one_to_one=True, whole_tracks=True), ""
    if len(images) < len(diagnosis.counts.right):
        scope = f"In the {len(images):,} {unit}s with most mistakes, "
    for number, scene in enumerate(list_scenes(diagnosis, images)):
        _count_scene(counts, scene, diagnosis, follows=diagnosis.protocol.tubes and number < _MOST_VIDEOS)
    sentence = counts.describe(scope)
    surplus = counts.counts[FAULTS[SURPLUS].name]
    return f"{sentence} {_describe_scores(diagnosis) if surplus else ''}".rstrip()


class JudgedScene:
    """The instances and the kept detections of an image or a video, with the pixels that they share."""

    def __init__(self, diagnosis: InstanceDiagnosis, image: int, rows: Array, columns: Array, pairs: Array) -> None:
        judged = diagnosis.judged
        self.image, self.name = image, diagnosis.name_image(image)
        self._size = judged.truth.images.sizes[image].tolist()
        #: Indices of the diagnosis' instances and detections.
        self.rows, self.columns = rows, columns
        self.annotations, self.records = judged.annotation[rows], judged.record[columns]
        areas = (
            _measure(diagnosis.judged.truth, self.annotations, diagnosis),
            _measure(diagnosis.judged.records, self.records, diagnosis),
        )
        shared = np.zeros((len(rows), len(columns)))
        row, column = (
            np.searchsorted(rows, judged.pairs.truth[pairs]),
            np.searchsorted(columns, judged.pairs.prediction[pairs]),
        )
        iou = judged.pairs.iou[pairs]
        if diagnosis.protocol.boundary:  # pairs have the smaller IoU of masks and of their borders
            iou = self._compare_masks(diagnosis)[row, column]
        #: The IoU that is compared with the thresholds of AP.
        self.compared = np.zeros((len(rows), len(columns)))
        self.compared[row, column] = judged.pairs.iou[pairs]
        shared[row, column] = iou * (areas[0][row] + areas[1][column]) / (1 + iou)
        classes = judged.instance_category[rows], judged.category[columns]
        truth, prediction = (
            Side(list(range(len(kinds))), _name(diagnosis, kinds), area, kinds, np.ones(len(kinds), bool))
            for kinds, area in zip(classes, areas, strict=True)
        )
        self.seen = SeenFrame(truth, prediction, shared, np.zeros(len(columns), bool), None)

    def weigh(self, match: Match, lacking_iou: float) -> float:
        """Return the share of AP's thresholds that a match does not reach, and a little of what its IoU lacks."""
        unreached = float(np.mean(np.array(THRESHOLDS) > self.compared[match.row, match.column]))
        return unreached + _LEAST_WEIGHT * lacking_iou

    def _compare_masks(self, diagnosis: InstanceDiagnosis) -> Array:
        """Return the IoU of all masks: instances (rows) and detections."""
        judged = diagnosis.judged
        sides = [
            [{"size": self._size, "counts": side.masks[number].encode()} for number in numbers.tolist()]
            for side, numbers in ((judged.truth, self.annotations), (judged.records, self.records))
        ]
        ious: Array = coco.iou(*sides, [0] * len(sides[1]))  # type: ignore[call-arg, arg-type, assignment]
        return ious


def _measure(side: object, numbers: Array, diagnosis: InstanceDiagnosis) -> Array:
    """Return the areas of masks, or of boxes where these are compared; sets of keypoints all have the same."""
    areas: Array
    if diagnosis.protocol.keypoints:
        return np.full(len(numbers), _AREA)  # so that their IoU is their OKS
    if diagnosis.protocol.boxes:
        areas = side.boxes[numbers][:, 2:].prod(axis=1).astype(float)  # type: ignore[attr-defined]
    else:
        areas = side.pixels[numbers].astype(float)  # type: ignore[attr-defined]
    return np.maximum(areas, 1)


def _name(diagnosis: InstanceDiagnosis, kinds: Array) -> list[str]:
    numbers = Counter[int]()
    names = []
    for kind in kinds.tolist():
        numbers[kind] += 1
        names.append(f"{diagnosis.names[kind]} {numbers[kind]}")
    return names


def list_scenes(diagnosis: InstanceDiagnosis, images: list[int]) -> Iterator[JudgedScene]:
    """Yield the scenes of images, those with the most mistakes first."""
    judged, chosen = diagnosis.judged, diagnosis.selection
    rows, columns = np.flatnonzero(~judged.crowd), np.flatnonzero(chosen)
    pairs = np.flatnonzero(chosen[judged.pairs.prediction] & ~judged.crowd[judged.pairs.truth])
    sides = [
        (numbers[order], owners[order])
        for numbers, owners in (
            (rows, judged.instance_image[rows]),
            (columns, judged.image[columns]),
            (pairs, judged.image[judged.pairs.prediction[pairs]]),
        )
        for order in (np.argsort(owners, kind="stable"),)
    ]
    for image in images:
        bounds = [np.searchsorted(owners, [image, image + 1]).tolist() for _, owners in sides]
        own_numbers = [numbers[start:stop] for (numbers, _), (start, stop) in zip(sides, bounds, strict=True)]
        if len(own_numbers[0]) or len(own_numbers[1]):
            yield JudgedScene(diagnosis, image, np.sort(own_numbers[0]), np.sort(own_numbers[1]), own_numbers[2])


def _count_scene(counts: CauseCounts, scene: JudgedScene, diagnosis: InstanceDiagnosis, *, follows: bool) -> None:
    seen, names = scene.seen, tuple(diagnosis.names)
    names = names if len(names) > 1 else ()
    judged = judge_segments(
        seen.shared, (seen.truth.areas, seen.prediction.areas), (seen.truth.classes, seen.prediction.classes)
    )
    for column in find_repeated(seen, judged):
        judged.prediction[column], judged.partner[column] = 0, -1
        counts.add_repeated(names[int(seen.prediction.classes[column])] if names else "")
    if follows:
        name = f"video {scene.name}" if scene.name.isdigit() else scene.name
        counts.add_swaps(name, _find_exchanges(scene, judged, diagnosis))
    counts.weigh = scene.weigh
    counts.add(scene.name, seen, judged, names)


def find_repeated(seen: SeenFrame, judged: JudgedSegments) -> list[int]:
    """Return the detections of instances that another detection matches."""
    if not seen.shared.size:
        return []
    matched_ious = measure_ious(seen)[judged.truth == RIGHT]
    repeats = np.isin(judged.prediction, (SURPLUS, SPLIT)) & (matched_ious > _HALF).any(axis=0)
    return np.flatnonzero(repeats).tolist()


def _find_exchanges(
    scene: JudgedScene, judged: JudgedSegments, diagnosis: InstanceDiagnosis
) -> list[tuple[str, str, str]]:
    """Find tracks that are on one object first and on another one later; mark these objects as swapped.

    A track that is mostly on its object matches it, and is on the other one for a few frames.
    """
    seen, truth = scene.seen, diagnosis.judged.truth
    matched = judged.truth == RIGHT
    several = (seen.shared >= _BRIEFLY * seen.truth.areas[:, None]).sum(axis=1) > 1
    columns = np.flatnonzero((seen.shared[~matched | several] > 0).any(axis=0))
    partners = judged.partner[columns]  # its own overlap with the track may be too small to be listed
    rows = np.union1d(np.flatnonzero(~matched | several), partners[partners >= 0])
    if truth.images.frames is None or len(rows) < 1 or len(columns) < 2:
        return []
    height, width = truth.images.sizes[scene.image].tolist()
    frames = int(truth.images.frames[scene.image])
    if height * width * (len(rows) + len(columns)) > _MOST_PIXELS:
        return []
    masks = [
        _decode([side.masks[number] for number in numbers.tolist()], (height, width), frames)
        for side, numbers in ((truth, scene.annotations[rows]), (diagnosis.judged.records, scene.records[columns]))
    ]
    shared = np.einsum("rfp,cfp->rcf", *masks, optimize=True)
    areas = [mask.sum(axis=2) for mask in masks]
    union = areas[0][:, None] + areas[1][None] - shared
    ious = shared / np.maximum(union, 1)
    tracks = np.where(ious.max(axis=1) > _HALF, ious.argmax(axis=1), -1)  # the detection of each object in each frame
    first_tracks = {
        row: next((track for track in of_row if track >= 0), -1) for row, of_row in enumerate(tracks.tolist())
    }
    owners = {track: row for row, track in reversed(first_tracks.items()) if track >= 0}
    swaps = []
    for row, of_row in enumerate(tracks.tolist()):
        frame = next((index for index, track in enumerate(of_row) if track not in (-1, first_tracks[row])), -1)
        if frame < 0:
            continue
        owner = owners.get(of_row[frame], row)
        if matched[rows[row]] and owner == row:
            continue  # a second detection of the object
        judged.truth[rows[row]] = SWAPPED
        names = seen.truth.names
        if owner != row:
            swaps.append((names[rows[row]], names[rows[owner]], str(frame)))
        for track in {first_tracks[row], of_row[frame]}:
            judged.prediction[columns[track]] = SWAPPED
    return swaps


def _decode(texts: list[str], size: tuple[int, int], frames: int) -> Array:
    """Return masks of frames side by side as numbers: masks, frames, pixels."""
    height, width = size
    masks = np.stack([flags({"size": [height, width], "counts": text}, size)[0, :, :width] for text in texts])
    frames_apart = masks.astype(np.float32).reshape(len(texts), height, frames, width // frames)
    return frames_apart.swapaxes(1, 2).reshape(len(texts), frames, -1)


def _describe_scores(diagnosis: InstanceDiagnosis) -> str:
    """Describe how many false detections score higher than half of the correct ones, or than a tenth if none does."""
    judged, chosen = diagnosis.judged, diagnosis.selection
    right, wrong = judged.score[chosen & judged.right], judged.score[chosen & (diagnosis.errors.kind >= 0)]
    for share, named in _SHARES.items() if len(right) else ():
        if above := int((wrong > np.quantile(right, share)).sum()):
            noun = quantity(above, "false detection")
            return (
                f"{noun} {inflect(above, 'has a higher score', 'have higher scores')} than {named} of the correct ones."
            )
    return ""


# ── keypoints ───────────────────────────────────────────────────────────────


def _describe_keypoints(diagnosis: InstanceDiagnosis) -> str:
    """Describe the faults of keypoints."""
    faults = list_faults(diagnosis)
    people = int((~diagnosis.judged.crowd).sum())
    missed, costs = people - faults.people, {_describe_points(faults): faults.lost}
    if missed > 0:
        costs[f"{missed:,} of {people:,} people {inflect(missed, 'is', 'are')} missed"] = missed
    if faults.surplus > 0:
        total = quantity(int(diagnosis.selection.sum()), "detection")
        costs[f"{faults.surplus:,} of {total} {inflect(faults.surplus, 'shows', 'show')} nobody"] = faults.surplus
    sentences = sorted(filter(None, costs), key=lambda text: -costs[text])[:2]
    if not sentences:
        return ""
    text = "; ".join(sentences)
    above = _describe_scores(diagnosis) if faults.surplus > 0 else ""
    return f"{text[0].upper()}{text[1:]}. {above}".rstrip()


def _name_pairs(point_pairs: list[tuple[str, str]]) -> str:
    """Name the first two pairs of points, and count the others."""
    pairs = [f"{a} and {b}" for a, b in point_pairs]
    named = ", and ".join(pairs[:2])
    return f"{named}, and {quantity(len(pairs) - 2, 'more pair')}," if len(pairs) > 2 else named


def _count_people(count: int, total: int) -> str:
    return f"all {total:,} people" if count == total else f"{count:,} of {total:,} people"


def _describe_points(faults: KeypointFault) -> str:
    """Describe exchanged and inexact points of detected people."""
    if not faults.exchanged and not faults.points:
        return ""
    if faults.exchanged:
        count = faults.exchanged[0][1]
        named = _name_pairs([pair for pair, number in faults.exchanged if number >= count / 2])
        return f"{named} are exchanged in {count:,} of {faults.people:,} people"
    point, cost = faults.points[0]
    mean = sum(cost for _, cost in faults.points) / len(faults.points)
    if len(faults.points) > 1 and cost < 2 * mean:
        return f"{_count_people(faults.inexact, faults.people)} found have inexact points, {point} most of all"
    share = 100 * cost / sum(cost for _, cost in faults.points)
    return f"{point} is misplaced and costs {share:.0f} % of the OKS lost"
