"""Panoptic maps in memory, kept as the overlaps of segments instead of pixels."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, UnitCounts, decode_unit
from segjudge.evaluation_script.families.panoptic.counting import FrameTable, count_frame, count_frames
from segjudge.evaluation_script.families.panoptic.files import MOST_ID, VOID, PredictedFrame, blank_frame, join_ids
from segjudge.evaluation_script.families.panoptic.protocols import PanopticProtocol
from segjudge.evaluation_script.masks.overlaps import LabelMap, LabelPairs
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.memory import (
    CountedFrames,
    UnitFrames,
    UnitsInMemory,
    common_size,
    read_labels,
    refusal,
    refuse_flaws,
    refuse_label_map,
    sort_by_number,
)
from segjudge.system.errors import UsageError

_Segment = dict[str, Any]
#: The maximum number of an object, of 16 bits.
_MOST_NUMBER = (1 << 16) - 1


class PanopticInMemory(UnitsInMemory):
    """A counter of id maps (height, width) with each id's category."""

    protocol: PanopticProtocol

    def __init__(self, protocol: PanopticProtocol, categories: Sequence[Mapping[str, Any]]) -> None:
        self.protocol, self.in_videos = protocol, protocol.video
        if not categories and not protocol.classes:
            raise UsageError(f"{protocol.name} needs categories, each with id, name and isthing")
        categories = categories or [
            {"id": number, "name": name, "isthing": is_thing} for number, name, is_thing in protocol.categories
        ]
        self._categories = [
            [category["id"], category.get("name", str(category["id"])), bool(category["isthing"])]
            for category in categories
        ]
        self._places = {category[0]: index for index, category in enumerate(self._categories)}

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        location = f"{sequence}, frame {frame}" if frame else sequence
        true_ids, listed = self._read_segments(truth, f"truth of {location}")
        predicted_ids, segments = self._read_segments(prediction, f"prediction of {location}")
        common_size((true_ids.shape, predicted_ids.shape), "maps", location)
        rows = [
            [segment["id"], segment["place"], int(segment.get("iscrowd", 0)), segment["area"]]
            for segment in _measure_areas(true_ids, listed)
        ]
        truth_frame = TruthFrame(frame, true_ids.shape, rows, lambda: LabelMap(true_ids))
        with refuse_flaws(f"prediction of {location}"):
            predicted_frame = blank_frame(self.protocol, [category[2] for category in self._categories])
            if not self.protocol.classes:
                predicted_frame = PredictedFrame("", {segment["id"]: segment["place"] for segment in segments})
            table = count_frame(truth_frame, predicted_frame, predicted_ids, boundary=self.protocol.boundary)
        tables = {"truth": table.truth, "prediction": table.prediction, "pairs": _stack_pairs(table.pairs)}
        if table.boundaries is not None:
            tables["boundaries"] = _stack_pairs(table.boundaries)
        return UnitCounts("", tables).encode()

    def _read_segments(self, side: object, location: str) -> tuple[Array, list[_Segment]]:
        """Return the ids of the pixels, and each segment with its category's index."""
        if self.protocol.classes:
            refuse_label_map(side, self.protocol.name, "classes and the numbers of objects, as (classes, numbers)")
            return self._read_classes(side, location), []
        refuse_label_map(side, self.protocol.name, "the ids of pixels and the segments, as (ids, segments)")
        if not isinstance(side, (tuple, list)) or len(side) != 2:
            raise refusal(location, "is not a map of ids and its segments", "Give (ids, segments)")
        ids, rows = read_labels(side[0], location), side[1]
        if isinstance(rows, Mapping):
            rows = [{"id": number, "category_id": category} for number, category in rows.items()]
        segments = []
        for segment in rows:
            category = self._places.get(segment["category_id"])
            if category is None:
                raise refusal(location, f"has the category {segment['category_id']}", "Use the ids of the categories")
            segments.append({**segment, "id": int(segment["id"]), "place": category})
        if ids.max() > MOST_ID:
            raise refusal(location, f"has the id {ids.max()}", f"Use ids up to {MOST_ID}")
        return ids, segments

    def _read_classes(self, side: object, location: str) -> Array:
        """Return ids combined from a map of classes and a map of object numbers."""
        if not isinstance(side, (tuple, list)) or len(side) != 2:
            raise refusal(location, "is not a pair of maps, of classes and of objects", "Give (classes, numbers)")
        classes, numbers = (read_labels(labels, location) for labels in side)
        common_size((classes.shape, numbers.shape), "maps", location)
        if classes.max() > VOID or numbers.max() > _MOST_NUMBER:
            fault = f"has the class {classes.max()}, or the number {numbers.max()}"
            raise refusal(location, fault, f"Use classes up to {VOID}, which is void, and numbers up to {_MOST_NUMBER}")
        with refuse_flaws(location):
            return join_ids(classes.astype(np.uint32) | numbers.astype(np.uint32) << 8, len(self._categories))

    def check(self, data: bytes) -> None:
        _decode_frame(data)

    def units(self, frames: CountedFrames) -> dict[str, UnitFrames]:
        units = super().units(frames)
        if self.in_videos:
            return units
        listed = [
            (name, frame, data) for name, frames_of_unit in units.items() for frame, data in frames_of_unit.items()
        ]
        return {f"{name}/{frame}" if frame else name: {frame: data} for name, frame, data in listed}

    def sort_names(self, names: Iterable[str]) -> list[str]:
        return sort_by_number(names)

    def facts(self, units: Mapping[str, UnitFrames]) -> dict[str, Any]:
        return {"categories": self._categories}

    def tables(self, frames: UnitFrames, facts: Mapping[str, Any]) -> dict[str, Array]:
        things = [category[2] for category in facts["categories"]]
        return count_frames(map(_decode_frame, frames.values()), self.protocol, things)


def _measure_areas(ids: Array, segments: list[_Segment]) -> list[_Segment]:
    """Add the areas of segments: as the truth says, or the pixels that they have."""
    if all("area" in segment for segment in segments):
        return segments
    numbers, counts = np.unique(ids, return_counts=True)
    areas = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    return [{"area": areas.get(segment["id"], 0), **segment} for segment in segments]


def _stack_pairs(pairs: LabelPairs) -> Array:
    return np.stack((pairs.truth, pairs.prediction, pairs.pixels))


def _decode_frame(data: bytes) -> FrameTable:
    tables = decode_unit(data).tables
    try:
        boundaries = LabelPairs(*tables["boundaries"]) if "boundaries" in tables else None
        return FrameTable(tables["truth"], tables["prediction"], LabelPairs(*tables["pairs"]), boundaries)
    except (KeyError, TypeError) as error:
        raise ValueError(f"is not the table of one frame ({error})") from None
