"""Panoptic maps in memory: the overlaps of a frame's segments are kept, not its pixels."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.units import TruthFrame, UnitCounts, decode_unit
from segjudge.evaluation_script.families.panoptic.counting import FrameTable, count_frame, count_frames
from segjudge.evaluation_script.families.panoptic.files import MOST_ID, PredictedFrame
from segjudge.evaluation_script.families.panoptic.protocols import PanopticProtocol
from segjudge.evaluation_script.files.problems import Flaw, SubmissionError
from segjudge.evaluation_script.masks.overlaps import LabelMap, LabelPairs
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.frame_masks import label_map
from segjudge.families.base.memory import (
    CountedFrames,
    KeptFrames,
    MemoryDoor,
    UnitsInMemory,
    check_no_map,
    in_order,
    one_size,
    refused,
)
from segjudge.system.errors import UsageError

Segment = dict[str, Any]


class PanopticInMemory(UnitsInMemory):
    """Counts ids (height, width), each with the category of every id."""

    protocol: PanopticProtocol

    def __init__(self, protocol: PanopticProtocol, categories: Sequence[Mapping[str, Any]]) -> None:
        if not categories:
            raise UsageError(f"{protocol.name} needs categories, each with id, name and isthing")
        self.protocol = protocol
        self._categories = [[one["id"], one.get("name", str(one["id"])), bool(one["isthing"])] for one in categories]
        self._places = {one[0]: place for place, one in enumerate(self._categories)}

    def sequences_of(self, masks: object) -> dict[str, object]:
        """Return images or videos by name; one video alone is called video."""
        return super().sequences_of(masks) if self.protocol.video else MemoryDoor.sequences_of(self, masks)

    def frames_of(self, masks: object, where: str) -> list[tuple[object, object]]:
        return super().frames_of(masks, where) if self.protocol.video else [(None, masks)]

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        where = f"{sequence}, frame {frame}" if frame else sequence
        real, listed = self._segments(truth, f"truth of {where}")
        sent, segments = self._segments(prediction, f"prediction of {where}")
        one_size((real.shape, sent.shape), "maps", where)
        rows = [[one["id"], one["place"], int(one.get("iscrowd", 0)), one["area"]] for one in _measured(real, listed)]
        known = TruthFrame(frame, real.shape, rows, lambda: LabelMap(real))
        try:
            named = PredictedFrame("", {one["id"]: one["place"] for one in segments})
            table = count_frame(known, named, sent, boundary=self.protocol.boundary)
        except Flaw as flaw:
            raise SubmissionError.of(flaw.at(f"prediction of {where}")) from None
        tables = {"truth": table.truth, "prediction": table.prediction, "pairs": _stacked(table.pairs)}
        if table.boundaries is not None:
            tables["boundaries"] = _stacked(table.boundaries)
        return UnitCounts("", tables).encode()

    def _segments(self, side: object, where: str) -> tuple[Array, list[Segment]]:
        """Return the ids of the pixels, and each segment with the place of its category."""
        check_no_map(side, self.protocol.name, "the ids of pixels and the segments, as (ids, segments)")
        if not isinstance(side, (tuple, list)) or len(side) != 2:
            raise refused(where, "is not a map of ids and its segments", "Give (ids, segments)")
        ids, listed = label_map(side[0], where), side[1]
        if isinstance(listed, Mapping):
            listed = [{"id": number, "category_id": category} for number, category in listed.items()]
        segments = []
        for one in listed:
            place = self._places.get(one["category_id"])
            if place is None:
                raise refused(where, f"has the category {one['category_id']}", "Use the ids of the categories")
            segments.append({**one, "id": int(one["id"]), "place": place})
        if ids.max() > MOST_ID:
            raise refused(where, f"has the id {ids.max()}", f"Use ids up to {MOST_ID}")
        return ids, segments

    def check(self, data: bytes) -> None:
        _frame_table(data)

    def sort_names(self, names: Iterable[str]) -> list[str]:
        return in_order(names)

    def units(self, frames: CountedFrames) -> dict[str, KeptFrames]:
        units = super().units(frames)
        if self.protocol.video:
            return units
        listed = [(name, frame, data) for name, kept in units.items() for frame, data in kept.items()]
        return {f"{name}/{frame}" if frame else name: {frame: data} for name, frame, data in listed}

    def facts(self, units: Mapping[str, KeptFrames]) -> dict[str, Any]:
        del units
        return {"categories": self._categories}

    def tables(self, frames: KeptFrames, facts: Mapping[str, Any]) -> dict[str, Array]:
        things = [one[2] for one in facts["categories"]]
        return count_frames(map(_frame_table, frames.values()), self.protocol, things)


def _measured(ids: Array, segments: list[Segment]) -> list[Segment]:
    """Return segments with their areas: as the truth says, or the pixels that they have."""
    if all("area" in one for one in segments):
        return segments
    numbers, counts = np.unique(ids, return_counts=True)
    areas = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    return [{"area": areas.get(one["id"], 0), **one} for one in segments]


def _stacked(pairs: LabelPairs) -> Array:
    return np.stack((pairs.truth, pairs.prediction, pairs.pixels))


def _frame_table(data: bytes) -> FrameTable:
    tables = decode_unit(data).tables
    try:
        boundaries = LabelPairs(*tables["boundaries"]) if "boundaries" in tables else None
        return FrameTable(tables["truth"], tables["prediction"], LabelPairs(*tables["pairs"]), boundaries)
    except (KeyError, TypeError) as error:
        raise ValueError(f"is not the table of a frame ({error})") from None
