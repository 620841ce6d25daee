"""Panoptic truth and submissions as published: JSON that lists segments, and RGB PNGs whose colours are their ids.

COCO lists images, each with the name of its PNG; VIPSeg lists videos, whose PNGs are `VIDEO/FRAME.png`.
"""

from __future__ import annotations

import json
import os
from typing import AbstractSet, Any, Dict, List, Optional

from ...files.archive import UPLOAD, open_files, truth_error
from ...files.limits import ArchiveLimits, Files, read_json
from ...files.problems import Flaw, Problem, Problems, SubmissionError, name_list, printable, quantity
from ...masks import png
from ...masks.backend import backend
from ...masks.stack import Array, Size
from ...values import dataclass
from ..base.units import (
    HOST_LIMITS,
    PictureFiles,
    TruthFrame,
    Unit,
    UnitSubmission,
    UnitTruth,
    guard_reading,
    png_frame,
)
from .protocols import IMAGE_LAYOUT, VIDEO_LAYOUT, PanopticProtocol

#: Ids are colours of 24 bits; 0 is void.
MOST_ID = (1 << 24) - 1
#: Segments that a prediction may list in a frame.
_MOST_SEGMENTS = 2_000
EXAMPLE = (
    '{"annotations": [{"image_id": 1, "file_name": "1.png", "segments_info": [{"id": 7, "category_id": 1}, …]}, …]}, '
    'of videos {"annotations": [{"video_id": "a", "annotations": [as for images]}, …]}'
)
SEND = "Send one zip with a JSON file that lists segments, and the PNGs whose colours are their ids"


def _find_document(files: Files, subset: str = "") -> str:
    """Return the name of the JSON file: the only one, that of the subset, or the one that has a folder of its name."""
    names = [name for name in files.sizes if name.lower().endswith(".json")]
    if len(names) > 1:
        folders = {folder for name in files.sizes for folder in name.split("/")[:-1]}
        names = [name for name in names if (_stem(name) == subset if subset else _stem(name) in folders)]
    if len(names) != 1:
        raise Flaw(f"holds {quantity(len(names), 'JSON file')} that could list the segments", SEND)
    return names[0]


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def read_truth(path: str, subset: str = "") -> UnitTruth:
    """Read a published truth: its JSON beside the folder of its PNGs, or a folder or archive with both."""
    try:
        if path.endswith(".json"):
            own = os.path.splitext(path)[0]
            files = open_files(own if os.path.isdir(own) else os.path.dirname(path) or ".", HOST_LIMITS)
            name = path
            with open(path, "rb") as file:
                document = json.loads(file.read())
        else:
            files = open_files(path, HOST_LIMITS)
            name = _find_document(files, subset)
            document = json.loads(files.read(name))
        return _open_truth(document, PictureFiles(files, _stem(name)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Flaw, SubmissionError) as error:
        raise truth_error(path, error, "is not a panoptic truth that can be read") from None


def _open_truth(document: Dict[str, Any], pictures: PictureFiles) -> UnitTruth:
    categories = [[entry["id"], entry["name"], bool(entry["isthing"])] for entry in document["categories"]]
    index = {category: position for position, (category, _, _) in enumerate(categories)}
    video = "videos" in document

    def unit(entry: Dict[str, Any]) -> Unit:
        name = str(entry["video_id" if video else "image_id"])
        listed_frames = entry["annotations"] if video else [entry]

        def load() -> List[TruthFrame]:
            return [_open_frame(frame, pictures, name if video else "", index) for frame in listed_frames]

        return Unit(name, len(listed_frames), guard_reading(name, load))

    units = [unit(entry) for entry in document["annotations"]]
    return UnitTruth(
        PanopticProtocol.family, VIDEO_LAYOUT if video else IMAGE_LAYOUT, {"categories": categories}, units
    )


def _open_frame(entry: Dict[str, Any], pictures: PictureFiles, folder: str, index: Dict[int, int]) -> TruthFrame:
    member = pictures.find(os.path.basename(entry["file_name"]), folder)
    segments = {segment["id"]: segment for segment in entry["segments_info"]}
    rows = [
        [segment["id"], index[segment["category_id"]], int(segment.get("iscrowd", 0)), segment["area"]]
        for segment in segments.values()
    ]
    return png_frame(pictures.files, member, rows, backend().read_codes)


@dataclass(frozen=True)
class PredictedFrame:
    """One frame of a submission: its PNG, and the category of each segment, as an index into the truth's."""

    member: str
    segments: Dict[int, int]


class PanopticSubmission(UnitSubmission):
    """The units of a submission, by the names that the truth gives them."""

    def __init__(self, path: str, truth: UnitTruth, protocol: PanopticProtocol, limits: ArchiveLimits) -> None:
        self.protocol = protocol
        self.noun = "video" if protocol.video else "image"
        #: Whether each category has instances.
        self.things = [bool(entry[2]) for entry in truth.facts["categories"]]
        self._categories = {entry[0]: position for position, entry in enumerate(truth.facts["categories"])}
        super().__init__(path, truth, limits, SEND)
        try:
            name = _find_document(self.files)
            self._units = self._read_entries(read_json(self.files.read(name), limits, EXAMPLE))
            self._pictures = PictureFiles(self.files, _stem(name))
        except Flaw as flaw:
            raise SubmissionError.of(flaw.at(UPLOAD)) from None

    def _read_entries(self, document: object) -> Dict[str, Dict[str, Any]]:
        """Return the entries of images or videos by name."""
        entries = document.get("annotations") if isinstance(document, dict) else None
        key = f"{self.noun}_id"
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise Flaw("has no list of annotations in its JSON", f"Write {EXAMPLE}")
        units: Dict[str, Dict[str, Any]] = {}
        for entry in entries:
            name = entry.get(key)
            if type(name) not in (int, str):
                raise Flaw(f"has an annotation without {key}", f"Write {EXAMPLE}")
            if units.setdefault(self.truth_names.respell(str(name)), entry) is not entry:
                raise Flaw(f"lists {self.noun} {printable(name)} twice", f"List each {self.noun} once")
        return units

    def names(self) -> AbstractSet[str]:
        return self._units.keys()

    def frames(self, unit: str, truth: List[TruthFrame], problems: Problems) -> List[PredictedFrame]:
        """Return the frames of a unit as many as the truth has, or none where there are problems."""
        entry = self._units[unit]
        entries = entry.get("annotations") if self.protocol.video else [entry]
        if not isinstance(entries, list) or len(entries) != len(truth):
            content = f"{len(entries)} frames" if isinstance(entries, list) else "no list of annotations"
            problems.add(Problem(unit, f"has {content} in the JSON, not {len(truth)}", "List every frame, in order"))
            return []
        order = {frame.name: position for position, frame in enumerate(truth)}
        checked = [self._check_frame(unit, frame, listed, order, problems) for frame, listed in zip(truth, entries)]
        return [frame for frame in checked if frame is not None] if None not in checked else []

    def _check_frame(
        self, unit: str, frame: TruthFrame, entry: object, order: Dict[str, int], problems: Problems
    ) -> Optional[PredictedFrame]:
        """Return a frame, or None where there is a problem with its entry."""
        try:
            if self.protocol.video and isinstance(entry, dict):
                named = _stem(str(entry.get("file_name", "")))
                if order.get(named, order[frame.name]) != order[frame.name]:
                    raise Flaw(f"is {printable(named)} in the JSON", "List the frames in the order of the truth")
            return self._read_frame(entry, frame.name if self.protocol.video else "", unit)
        except Flaw as flaw:
            problems.add(flaw.at(f"{unit}, frame {frame.name}" if self.protocol.video else f"image {unit}"))
            return None

    def _read_frame(self, entry: object, frame: str, unit: str) -> PredictedFrame:
        """Return an entry of the JSON, checked; the PNG of a video's frame has the name that the truth gives it."""
        if not isinstance(entry, dict) or not isinstance(entry.get("segments_info"), list):
            raise Flaw("has no list segments_info", f"Write {EXAMPLE}")
        file = entry.get("file_name")
        if not frame and not isinstance(file, str):
            raise Flaw("has no file_name", f"Write {EXAMPLE}")
        member = (
            self._pictures.find(f"{frame}.png", unit) if frame else self._pictures.find(os.path.basename(str(file)))
        )
        rows = entry["segments_info"]
        if len(rows) > _MOST_SEGMENTS:
            raise Flaw(f"lists {len(rows):,} segments; {_MOST_SEGMENTS:,} is the limit", "Send fewer segments")
        return PredictedFrame(member, dict(map(self._read_segment, rows)))

    def _read_segment(self, row: object) -> "tuple[int, int]":
        number, category = (row.get("id"), row.get("category_id")) if isinstance(row, dict) else (None, None)
        if type(number) is not int or type(category) is not int or not 0 < number <= MOST_ID:
            raise Flaw("lists a segment without an id from 1 to 16,777,215 and a category_id", f"Write {EXAMPLE}")
        if category not in self._categories:
            raise Flaw(f"segment {number} has the category {category}, which the truth does not have", "Remove it")
        return number, self._categories[category]

    def read(self, frame: PredictedFrame, size: Size) -> Array:
        """Return the id of every pixel; a Flaw where it cannot be read."""
        png.check_length(self.files.sizes[frame.member], size)
        return backend().read_codes(self.files.read(frame.member), size)


def check_ids(frame: PredictedFrame, ids: AbstractSet[int]) -> None:
    """Raise a Flaw where the PNG holds other ids than the JSON lists."""
    for problem, remedy, odd in (
        ("holds ids that the JSON does not list", "List every segment", ids - frame.segments.keys() - {0}),
        ("does not hold ids that the JSON lists", "List the segments of the PNG alone", frame.segments.keys() - ids),
    ):
        if odd:
            raise Flaw(f"{problem}: {name_list([str(number) for number in sorted(odd)])}", remedy)
