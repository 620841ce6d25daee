"""The worst images in the player: instances and kept detections, coloured by their faults."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from PIL import Image, ImageDraw

from segjudge.evaluation_script.families.base.units import TruthFrame, Unit, UnitTruth
from segjudge.evaluation_script.families.instances.submission import InstanceRecords
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.masks.overlaps import LabelMap
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.families.base.drawing import RankedUnits, UnitPictures, draw_units
from segjudge.families.base.pictures import SeenFrame, Side, UnitPainter, fit_width, paint_mask, side_of_labels
from segjudge.families.base.segments import MISSED, RIGHT, SPLIT, SURPLUS, JudgedSegments, judge_segments
from segjudge.families.instances.causes import JudgedScene, find_repeated, list_scenes
from segjudge.families.instances.diagnosis import InstanceDiagnosis
from segjudge.report.page import PageOptions

#: The maximum number of drawn images with the most mistakes; further images are the worst of a category.
_MOST_MISTAKES = 27
#: The thickness of lines between keypoints, as a share of the picture's diagonal.
_LINE = 0.006
#: The width of video frames whose masks are compared.
_JUDGED = 320
#: The radius of a point, in widths of a line.
_DOT = 1.5


class InstancePainter(UnitPainter):
    """A painter of images with instances and the detections that are kept."""

    segment = "instance"

    def __init__(self, diagnosis: InstanceDiagnosis) -> None:
        self._diagnosis = diagnosis
        self.outlined = not diagnosis.protocol.keypoints
        self.threshold = "" if diagnosis.protocol.keypoints else "IoU"

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        diagnosis = self._diagnosis
        scene = next(list_scenes(diagnosis, [unit.facts["index"]]), None)
        if scene is None:
            nothing = side_of_labels("", np.zeros(0, np.int64), np.zeros(0, np.int64))
            maps = np.zeros((2, *drawn[0]), np.uint16) if drawn else None
            yield SeenFrame(nothing, nothing, np.zeros((0, 0)), np.zeros(0, bool), maps)
            return
        seen = scene.seen
        judged = self._judge(scene)
        classes, scores = seen.prediction.classes.tolist(), diagnosis.judged.records.score[scene.records].tolist()
        names = [f"{diagnosis.names[kind]} {score:.2f}" for kind, score in zip(classes, scores, strict=True)]
        seen = seen._replace(prediction=seen.prediction._replace(names=names), judged=judged, scores=scores)
        yield seen._replace(maps=self._paint(scene, judged.partner, frames[0].size, drawn[0])) if drawn else seen

    def _judge(self, scene: JudgedScene) -> JudgedSegments:
        """Return the faults of an image, in which the metric's matches are correct."""
        seen, detections = scene.seen, self._diagnosis.judged
        judged = judge_segments(
            seen.shared, (seen.truth.areas, seen.prediction.areas), (seen.truth.classes, seen.prediction.classes)
        )
        repeated = find_repeated(seen, judged)
        judged.truth[judged.truth == RIGHT] = MISSED
        wrong = judged.prediction == RIGHT
        judged.prediction[wrong], judged.partner[wrong] = SURPLUS, -1
        for column in repeated:
            judged.prediction[column], judged.partner[column] = SPLIT, int(seen.shared[:, column].argmax())
        right = np.flatnonzero(detections.right[scene.columns])
        matched = np.searchsorted(scene.rows, detections.partner[scene.columns[right]])
        judged.prediction[right], judged.partner[right], judged.truth[matched] = RIGHT, matched, RIGHT
        return judged

    def _paint(self, scene: JudgedScene, partner: Array, size: Size, small: Size) -> Array:
        """Paint both sides of an image, smaller masks over larger ones.

        Only points that are marked on the matched instance are drawn, because only those count.
        """
        truth, records, keypoints = self._diagnosis.judged.truth, self._diagnosis.judged.records, None
        if self._diagnosis.protocol.keypoints:
            keypoints = truth.keypoints
        maps = np.zeros((2, *small), np.uint16)
        for index in np.argsort(-scene.seen.truth.areas, kind="stable").tolist():
            number = int(scene.annotations[index])
            if keypoints is not None:
                self._draw_points(maps[0], keypoints.points[number], keypoints.marked[number], size, index + 1)
            else:
                self._paint_shape(maps[0], truth, number, size, index + 1)
        for index in np.argsort(-scene.seen.prediction.areas, kind="stable").tolist():
            number, row = int(scene.records[index]), int(partner[index])
            if keypoints is not None:
                points = records.points[number].reshape(-1, 2)
                marked = keypoints.marked[scene.annotations[row]] if row >= 0 else points.any(axis=1)
                self._draw_points(maps[1], points, marked, size, index + 1)
            else:
                self._paint_shape(maps[1], records, number, size, index + 1)
        return maps

    def _paint_shape(
        self, image: Array, side: InstanceTruth | InstanceRecords, number: int, size: Size, label: int
    ) -> None:
        """Paint a mask or a box as a number."""
        if not self._diagnosis.protocol.boxes:
            paint_mask(image, side.masks[number], size, label)
            return
        x, top, across, down = side.boxes[number].tolist()
        scales = image.shape[0] / size[0], image.shape[1] / size[1]
        rows, columns = (
            slice(max(0, round(start * scale)), max(0, round((start + length) * scale)))
            for start, length, scale in ((top, down, scales[0]), (x, across, scales[1]))
        )
        image[rows, columns] = label

    def _draw_points(self, image: Array, points: Array, marked: Array, size: Size, label: int) -> None:
        """Paint points, and the lines of the skeleton between them, as a number."""
        picture, keypoints = Image.new("1", (image.shape[1], image.shape[0])), self._diagnosis.judged.truth.keypoints
        draw, width = ImageDraw.Draw(picture), max(1, round(_LINE * float(np.hypot(*image.shape))))
        scale = image.shape[1] / size[1], image.shape[0] / size[0]
        places = np.clip(points * scale, -max(image.shape), 2 * max(image.shape)).tolist()
        for start, stop in keypoints.skeleton if keypoints else ():
            if marked[start] and marked[stop]:
                draw.line([*places[start], *places[stop]], fill=1, width=width)
        for x, y in itertools.compress(places, marked):
            draw.ellipse((x - _DOT * width, y - _DOT * width, x + _DOT * width, y + _DOT * width), fill=1)
        image[np.asarray(picture)] = label


class VideoInstancePainter(UnitPainter):
    """A painter of videos with instances and the detections that are kept, frame by frame."""

    segment, follows = "instance", True

    def __init__(self, diagnosis: InstanceDiagnosis) -> None:
        self._diagnosis = diagnosis

    def read_frames(self, unit: Unit, frames: Sequence[TruthFrame], drawn: Mapping[int, Size]) -> Iterator[SeenFrame]:
        scene, size, count = (
            next(list_scenes(self._diagnosis, [unit.facts["index"]]), None),
            frames[0].size,
            len(frames),
        )
        coarse = fit_width(size, _JUDGED)
        whole = size[0], count * size[1]
        flags = [self._sample(scene, side, whole, (coarse[0], count * coarse[1])) for side in range(2)]
        apart = [side.reshape(len(side), coarse[0], count, coarse[1]).transpose(2, 0, 1, 3) for side in flags]
        scale = size[0] * size[1] / (coarse[0] * coarse[1])
        painted = None
        if drawn:
            small = next(iter(drawn.values()))
            painted = np.stack([self._paint(scene, side, whole, (small[0], count * small[1])) for side in range(2)])
        for index in range(count):
            masks = [side[index].reshape(side.shape[1], coarse[0] * coarse[1]).astype(np.float32) for side in apart]
            present = [np.flatnonzero(side.any(axis=1)) for side in masks]
            truth, prediction = (
                self._make_side(scene, number, rows, scale * side[rows].sum(axis=1))
                for number, (rows, side) in enumerate(zip(present, masks, strict=True))
            )
            shared = scale * (masks[0][present[0]] @ masks[1][present[1]].T)
            maps = None
            if index in drawn and painted is not None:
                width = drawn[index][1]
                own_maps = painted[:, :, index * width : (index + 1) * width]
                maps = np.stack([_renumber(own_map, rows) for own_map, rows in zip(own_maps, present, strict=True)])
            yield SeenFrame(truth, prediction, shared, np.zeros(len(present[1]), bool), maps)

    def _list_masks(self, scene: JudgedScene | None, side: int) -> list[str]:
        """Return the masks of a side, whose frames lie beside each other."""
        if scene is None:
            return []
        judged = self._diagnosis.judged
        if side:
            return [judged.records.masks[number] for number in scene.records.tolist()]
        return [judged.truth.masks[number] for number in scene.annotations.tolist()]

    def _sample(self, scene: JudgedScene | None, side: int, whole: Size, small: Size) -> Array:
        """Return whether each mask of a side has each pixel of all frames, at another size."""
        texts = self._list_masks(scene, side)
        flags = np.zeros((len(texts), *small), np.uint8)
        for image, text in zip(flags, texts, strict=True):
            paint_mask(image, text, whole, 1)
        return flags

    def _paint(self, scene: JudgedScene | None, side: int, whole: Size, small: Size) -> Array:
        """Paint all frames of a side at another size, smaller masks over larger ones."""
        image, texts = np.zeros(small, np.uint16), self._list_masks(scene, side)
        areas = (scene.seen.prediction if side else scene.seen.truth).areas if scene else np.zeros(0)
        for number in np.argsort(-areas, kind="stable").tolist():
            paint_mask(image, texts[number], whole, number + 1)
        return image

    def _make_side(self, scene: JudgedScene | None, side: int, rows: Array, areas: Array) -> Side:
        """Return the segments of a frame, given their numbers and areas."""
        if scene is None:
            return side_of_labels("", np.zeros(0, np.int64), np.zeros(0, np.int64))
        seen = scene.seen.prediction if side else scene.seen.truth
        names = [f"track of {seen.names[row]}" if side else seen.names[row] for row in rows.tolist()]
        return Side(rows.tolist(), names, areas, seen.classes[rows], np.ones(len(rows), bool))


def _renumber(image: Array, rows: Array) -> Array:
    """Return an image of mask numbers (from 1), renumbered by the positions of some masks; 0 for others."""
    numbers = np.zeros(max(int(image.max(initial=0)), int(rows.max(initial=0)) + 1) + 1, np.uint16)
    numbers[rows + 1] = np.arange(1, len(rows) + 1)
    renumbered: Array = numbers[image]
    return renumbered


def draw_worst(diagnoses: Mapping[str, InstanceDiagnosis], split: str, options: PageOptions) -> UnitPictures | None:
    """Draw the images or videos with most mistakes; for two methods, those where the second adds the most mistakes."""
    first_diagnosis, *_ = diagnoses.values()
    truth = first_diagnosis.judged.truth
    units = [_make_unit(first_diagnosis, index) for index in range(len(truth.images.ids))]
    costs = np.stack([diagnosis.image_costs for diagnosis in diagnoses.values()], axis=1)
    order = (costs[:, 0] - costs[:, -1]).argsort(kind="stable").tolist()
    if len(diagnoses) == 1:
        ranked = first_diagnosis.rank_images(len(units))
        order = list(dict.fromkeys([*ranked[:_MOST_MISTAKES], *first_diagnosis.find_worst_of_categories(), *ranked]))
    ranked_units = RankedUnits(
        split,
        UnitTruth("instances", "images", {}, units),
        [(index, costs[index].tolist()) for index in order],
        "videos" if first_diagnosis.protocol.tubes else "images",
        are_losses=False,
    )
    painter: type[InstancePainter | VideoInstancePainter] = InstancePainter
    if first_diagnosis.protocol.tubes:
        painter = VideoInstancePainter
        if not any(os.path.isdir(os.path.join(options.images, unit.name)) for unit in units):
            options = replace(options, images="")  # truths do not name pictures of videos
    return draw_units({name: painter(diagnosis) for name, diagnosis in diagnoses.items()}, ranked_units, options)


def _make_unit(diagnosis: InstanceDiagnosis, index: int) -> Unit:
    name, images = diagnosis.name_image(index), diagnosis.judged.truth.images
    count = 1 if images.frames is None else int(images.frames[index])

    def load() -> list[TruthFrame]:
        height, width = images.sizes[index].tolist()
        size = height, width // max(count, 1)
        names = [name] if images.frames is None else [f"{frame:05d}" for frame in range(count)]
        return [TruthFrame(frame, size, [], lambda: LabelMap(np.zeros(size, np.uint16))) for frame in names]

    return Unit(name, count, load, {"index": index})
