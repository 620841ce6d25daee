"""Instance masks in memory: matching in each image or video, and the scores of all of them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.instances.matching import (
    InstanceCounts,
    cut_into_blocks,
    decode_counts,
    match_block,
    merge_counts,
)
from segjudge.evaluation_script.families.instances.metrics import InstanceAccumulator
from segjudge.evaluation_script.families.instances.protocols import InstanceProtocol
from segjudge.evaluation_script.families.instances.records import Category
from segjudge.evaluation_script.families.instances.submission import check_records, describe_records
from segjudge.evaluation_script.families.instances.truth import truth_of
from segjudge.evaluation_script.files.problems import HostError
from segjudge.families.base.memory import (
    CountedFrames,
    MemoryDoor,
    read_array,
    read_run_lengths,
    refusal,
    refuse_label_map,
    sort_by_number,
)
from segjudge.system.errors import UsageError

from .streets import CATEGORIES

_Record = dict[str, Any]
#: Columns of detection models, by COCO's keys.
_COLUMNS = {"labels": "category_id", "scores": "score", "iscrowd": "iscrowd", "area": "area", "ids": "id"}
#: The numbers of categories, of records with unknown categories, and of records.
_HEAD = "<III"
#: The facts of a truth about a whole image.
_IMAGE_FACTS = ("height", "width", "neg_category_ids", "not_exhaustive_category_ids")


class InstancesInMemory(MemoryDoor):
    """A counter that matches the instances of images or videos."""

    def __init__(self, protocol: InstanceProtocol, categories: Sequence[Mapping[str, Any]] = ()) -> None:
        self.protocol, self._categories = protocol, sorted(map(dict, categories), key=lambda category: category["id"])
        self._shape = "segmentations" if protocol.tubes else "keypoints" if protocol.keypoints else "segmentation"

    def sequences_of(self, masks: object, side: str) -> dict[str, object]:
        """Return images or videos by name; a single one is named 1."""
        is_single = isinstance(masks, Mapping) and ("labels" in masks or "annotations" in masks)
        return {"1": masks} if is_single else super().sequences_of(masks, side)

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        if frame and self.protocol.tubes:
            raise UsageError(
                f"{self.protocol.name} compares whole videos: the frame is None, and masks are of all frames"
            )
        location = f"{sequence}, frame {frame}" if frame else sequence
        annotations = self._read_records(truth, f"truth of {location}")
        records = self._read_records(prediction, f"prediction of {location}")
        if self.protocol.boxes and not all("bbox" in record for record in annotations):
            raise refusal(f"truth of {location}", "has no boxes", "Give boxes, or records with a bbox")
        facts = {key: truth[key] for key in _IMAGE_FACTS if key in truth} if isinstance(truth, Mapping) else {}
        instances = truth_of(self._make_document([*annotations, *records], annotations, facts), f"truth of {location}")
        fault = instances.find_fault(self.protocol)
        if fault:
            raise HostError(f"truth of {location}: {fault}")
        keys = {"video_id" if self.protocol.tubes else "image_id": 1}
        detections = check_records([{**record, **keys} for record in records], instances.images, self.protocol)
        ids = [category.id for category in instances.categories]
        unknown = int((detections.category < 0).sum())
        head = struct.pack(f"{_HEAD}{len(ids)}q", len(ids), unknown, len(records), *ids)
        (block,) = cut_into_blocks(detections, instances, self.protocol, np.arange(1), 1)
        return head + match_block(block).encode()

    def _read_records(self, side: object, location: str) -> list[_Record]:
        """Return COCO records from columns, or from records with masks in any form."""
        refuse_label_map(side, self.protocol.name, "COCO's records, or labels, scores and masks")
        if isinstance(side, Mapping) and "annotations" not in side:
            side = self._read_columns(side, location)
        rows = side["annotations"] if isinstance(side, Mapping) else side
        if not isinstance(rows, Iterable) or not all(isinstance(record, Mapping) for record in rows):
            raise refusal(
                location, "is neither records nor columns", "Give COCO's records, or labels, scores and masks"
            )
        records = [dict(record) for record in rows]
        for record in records:
            mask = record.get(self._shape)
            if self.protocol.tubes and mask is not None:
                record[self._shape] = [None if frame is None else read_run_lengths(frame, location) for frame in mask]
            elif self.protocol.keypoints and mask is not None:
                record[self._shape] = read_array(mask, location).reshape(-1).tolist()
            elif mask is not None and not isinstance(mask, list):  # polygons stay
                record[self._shape] = read_run_lengths(mask, location)
        return records

    def _read_columns(self, side: Mapping[str, Any], location: str) -> list[_Record]:
        """Read labels, scores, masks and boxes (left, top, right, bottom)."""
        columns = {key: read_array(side[name], location).tolist() for name, key in _COLUMNS.items() if name in side}
        shapes = "keypoints" if self.protocol.keypoints else "masks"
        if shapes in side:
            columns[self._shape] = list(side[shapes])
        if "boxes" in side:
            boxes = read_array(side["boxes"], location).astype(float).reshape(-1, 4)
            columns["bbox"] = np.hstack((boxes[:, :2], boxes[:, 2:] - boxes[:, :2])).tolist()
        if len({len(column) for column in columns.values()}) > 1:
            lengths = ", ".join(f"{len(column)} {key}" for key, column in columns.items())
            raise refusal(location, f"has {lengths}", "Give as many of each")
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def _make_document(self, records: list[_Record], annotations: list[_Record], facts: Mapping[str, Any]) -> _Record:
        """Write a truth of one image or video in COCO's form."""
        size, length = self._find_size(records)
        size = facts.get("height", size[0]), facts.get("width", size[1])
        kind = "video" if self.protocol.tubes else "image"
        numbers = [record.get("category_id", 0) for record in records]
        ids = sorted({int(number) for number in numbers if isinstance(number, (int, float, np.number))})
        nothing = {"size": list(size), "counts": [size[0] * size[1]]}
        completed = []
        for number, record in enumerate(annotations, start=1):
            defaults: _Record = {"id": number, f"{kind}_id": 1}
            if self.protocol.boxes:
                defaults |= {"segmentation": nothing, "area": float(np.prod(record["bbox"][2:]))}
            completed.append({**defaults, **record, f"{kind}_id": 1})
            if self.protocol.keypoints and "area" in record:
                completed[-1].pop("segmentation", None)  # it would be drawn in vain
        skeleton = {}
        if self.protocol.keypoints:
            lengths = [len(record[self._shape]) for record in records if self._shape in record]
            skeleton = {"keypoints": list(map(str, range(1, max(lengths, default=0) // 3 + 1)))}
        categories = self._list_categories() or [{"id": number, "name": str(number), **skeleton} for number in ids]
        return {
            f"{kind}s": [{"id": 1, "length": length, **facts, "height": size[0], "width": size[1]}],
            "categories": categories,
            "annotations": completed,
        }

    def _list_categories(self) -> list[_Record]:
        """Return the given categories, or Cityscapes'."""
        streets = [{"id": number, "name": name} for number, name in CATEGORIES.items()]
        return self._categories or (streets if self.protocol.streets else [])

    def _find_size(self, records: list[_Record]) -> tuple[tuple[int, int], int]:
        """Return the size and number of an image's or video's frames."""
        if self.protocol.keypoints:
            return (1, 1), 1
        shapes = [record[self._shape] for record in records if self._shape in record]
        length = max(map(len, shapes), default=1) if self.protocol.tubes else 1
        for masks in shapes:
            for mask in masks or [] if self.protocol.tubes else [masks]:
                if isinstance(mask, Mapping):
                    height, width = mask["size"]
                    return (int(height), int(width)), length
        return (1, 1), length

    def check(self, data: bytes) -> None:
        if _decode_image(data).counts.images["image"].tolist() != [0]:
            raise ValueError("is not the matching of one image")

    def accumulate(self, frames: CountedFrames) -> InstanceAccumulator:
        # Files have images in the order of their ids, whatever the order of their list.
        image_tables = [_decode_image(data) for name in sort_by_number(frames) for data in frames[name].values()]
        rows = self._list_categories() or [
            {"id": number, "name": str(number)}
            for number in sorted({number for image_counts in image_tables for number in image_counts.ids})
        ]
        categories = [Category(entry["id"], str(entry["name"]), str(entry.get("frequency", ""))) for entry in rows]
        index_of = {category.id: number for number, category in enumerate(categories)}
        merged = []
        for image, image_counts in enumerate(image_tables):
            positions = [
                index_of[number] + aspect * len(index_of) for aspect in range(2) for number in image_counts.ids
            ]
            tables = [table.copy() for table in image_counts.counts.tables]
            for table in tables:
                table["image"] = image
            for table in tables[1:]:
                table["category"] = np.array(positions, np.int64)[table["category"]]
            merged.append(InstanceCounts(*tables))
        notes = describe_records(
            sum(image_counts.unknown for image_counts in image_tables),
            sum(image_counts.records for image_counts in image_tables),
        )
        accumulator = InstanceAccumulator(self.protocol, list(range(len(image_tables))), categories, notes)
        accumulator.update(merge_counts(merged))
        return accumulator


@dataclass(frozen=True)
class _ImageCounts:
    """The matches of one image, with the ids of its categories."""

    ids: tuple[int, ...]
    unknown: int
    records: int
    counts: InstanceCounts


def _decode_image(data: bytes) -> _ImageCounts:
    try:
        length, unknown, records = struct.unpack_from(_HEAD, data)
        ids = struct.unpack_from(f"<{length}q", data, struct.calcsize(_HEAD))
    except struct.error as error:
        raise ValueError(f"has no categories ({error})") from None
    return _ImageCounts(ids, unknown, records, decode_counts(data[struct.calcsize(_HEAD) + 8 * length :]))
