"""Panoptic truth and submissions as published: JSON that lists segments, and RGB PNGs whose colours are their ids.

COCO lists images with the names of their PNGs; VIPSeg lists videos with PNGs `VIDEO/FRAME.png`. STEP has no list: its
PNGs, `SEQUENCE/FRAME.png`, hold the class in red (255 is void) and the object's number in green and blue. Ids of STEP
are the colour plus one, and 0 for void, so that different pixels have different ids.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import AbstractSet, Any, Dict, List, Optional, Tuple, Union

import numpy as np

from ...files.archive import open_files, truth_error
from ...files.limits import HOST_LIMITS, ArchiveLimits, Files
from ...files.problems import Flaw, HostError, Problem, Problems, SubmissionError, name_list, printable, quantity
from ...masks import png
from ...masks.backend import backend
from ...masks.overlaps import LabelPairs, sum_by_key
from ...masks.stack import Array, Size
from ..base.truth import DEFAULT_SPLIT
from ..base.units import (
    PictureFiles,
    Rows,
    TruthFrame,
    Unit,
    UnitSubmission,
    UnitTruth,
    guard_reading,
    open_dataset,
    png_frame,
)
from .protocols import CODED_LAYOUT, IMAGE_LAYOUT, PANOPTIC_PROTOCOLS, VIDEO_LAYOUT, PanopticProtocol

#: The largest id: ids are colours of 24 bits, and 0 is void.
MOST_ID = (1 << 24) - 1
#: The maximum number of segments that a prediction lists in a frame.
_MOST_SEGMENTS = 2_000
_EXAMPLE = (
    '{"annotations": [{"image_id": 1, "file_name": "1.png", "segments_info": [{"id": 7, "category_id": 1}, ...]}, ...]'
    '}, for videos {"annotations": [{"video_id": "a", "annotations": [as for images]}, ...]}'
)
_SEND = "Send one zip with a JSON file that lists segments, and the PNGs whose colours are their ids"
_SEND_CODED = (
    "Send one zip with a folder of PNGs for each sequence: red is the class, green and blue the object's number"
)
#: The remedy if red and blue seem exchanged.
SAVE_RGB = "save the PNGs as RGB; cv2.imwrite expects BGR"
#: The red value of unlabelled pixels in STEP's PNGs.
VOID = 255
#: The folder of panoptic maps in a dataset, next to its images.
_MAP_FOLDER = "panoptic_maps"


def _find_document(files: Files, subset: str = "") -> str:
    """Return the name of the JSON file: the only one, the subset's, or the one with a folder of the same name."""
    names = [name for name in files.sizes if name.lower().endswith(".json")]
    if len(names) > 1:
        folders = {folder for name in files.sizes for folder in name.split("/")[:-1]}
        names = [name for name in names if (_stem(name) == subset if subset else _stem(name) in folders)]
    if len(names) != 1:
        raise Flaw(f"holds {quantity(len(names), 'JSON file')} that could list the segments", _SEND)
    return names[0]


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def read_truth(path: str, subset: str = "") -> UnitTruth:
    """Read a published truth: its JSON beside the folder of its PNGs, or a folder or archive with both."""
    try:
        if path.endswith(".json"):
            folder = os.path.splitext(path)[0]
            files = open_files(folder if os.path.isdir(folder) else os.path.dirname(path) or ".", HOST_LIMITS)
            name = path
            with open(path, "rb") as file:
                document = json.loads(file.read())
        else:
            files = open_files(path, HOST_LIMITS)
            name = _find_document(files, subset)
            document = json.loads(files.read(name))
        return _open_truth(document, PictureFiles(files, _stem(name)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Flaw, SubmissionError) as error:
        raise truth_error(path, error, "cannot be read as a panoptic truth") from None


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


def read_coded_truth(path: str, layout: str, subset: str = "") -> UnitTruth:
    """Read STEP's maps, `SEQUENCE/FRAME.png`, of the only or the chosen split."""
    categories = [list(row) for row in PANOPTIC_PROTOCOLS[layout].categories]
    files = open_dataset(path)
    names = [name for name in sorted(files.sizes) if name.endswith(".png") and "/" in name]
    names = [name for name in names if _MAP_FOLDER in name.split("/")[:-2]] or names
    of_split = [name for name in names if (subset or DEFAULT_SPLIT) in name.split("/")[:-2]]
    sequences: Dict[str, List[str]] = {}
    for name in of_split if of_split or subset else names:
        sequences.setdefault(name.split("/")[-2], []).append(name)
    if not sequences:
        raise HostError(f"{path}: has no PNG SEQUENCE/FRAME.png{f' in a folder {subset}' if subset else ''}")
    for sequence, members in sequences.items():
        if len({member.rpartition("/")[0] for member in members}) > 1:
            raise HostError(f"{path}: has several folders named {sequence}; name the folder of one split")

    def unit(sequence: str, members: List[str]) -> Unit:
        def read(data: bytes, size: Size) -> Array:
            return _read_coded(data, size, len(categories))

        return Unit(sequence, len(members), lambda: [png_frame(files, member, [], read) for member in members])

    units = [unit(*item) for item in sequences.items()]
    return UnitTruth(PanopticProtocol.family, CODED_LAYOUT, {"categories": categories}, units)


def _read_coded(data: bytes, size: Size, classes: int) -> Array:
    """Return the id of every pixel of a PNG of STEP; raises a Flaw for unknown classes."""
    return join_ids(backend().read_codes(data, size), classes)


def _exchange_channels(codes: Array) -> Array:
    """Return colours with red and blue swapped."""
    exchanged: Array = (codes & 0xFF) << 16 | codes & 0xFF00 | codes >> 16 & 0xFF
    return exchanged


_RESIZE_RIGHT = "resize by nearest neighbour, and save as PNG"
#: The remedy where blended or compressed pixels have impossible colours.
_RESIZE = f". These classes look like an effect of resizing with interpolation or of JPEG: {_RESIZE_RIGHT}"
#: The minimum number of unlisted ids that suggests blended colours.
_FEWEST_BLENDED = 20


#: The number of rows in which specks are counted, and the maximum length of a speck.
_ROWS, _SPECK = 64, 3
#: The minimum number of borders, the minimum share of specks among runs in a map full of them, and the minimum share of
#: odd pixels in short runs if these come from borders.
_FEWEST_BORDERS, _SPECKLED, _NEARLY_ALL = 50, 0.25, 0.9


def _is_damaged(pixels: Array, is_odd: Array) -> bool:
    """Return whether odd values occur only along borders, as where colours blend, or in a map full of specks."""
    if is_odd.all():
        return False
    starts, lengths = _find_runs(pixels)
    odd_lengths = lengths[is_odd.reshape(-1)[starts]]
    short = odd_lengths[odd_lengths <= _SPECK]
    if len(short) >= _FEWEST_BORDERS and short.sum() >= _NEARLY_ALL * odd_lengths.sum():
        return True
    rows = np.ascontiguousarray(pixels[:: max(1, len(pixels) // _ROWS)])
    starts, lengths = _find_runs(rows)
    if len(starts) - len(rows) < _FEWEST_BORDERS:
        return False
    return bool(np.count_nonzero(lengths <= _SPECK) >= _SPECKLED * len(starts))


def _find_runs(pixels: Array) -> Tuple[Array, Array]:
    """Return the starts and lengths of the runs of rows."""
    is_start = np.ones(pixels.shape, bool)
    np.not_equal(pixels[:, 1:], pixels[:, :-1], out=is_start[:, 1:])
    starts = np.flatnonzero(is_start)
    return starts, np.diff(starts, append=pixels.size)


def join_ids(codes: Array, classes: int) -> Array:
    """Return ids that hold the class in their lowest 8 bits and the object number above."""
    pixel_classes = codes.astype(np.uint8)
    labelled = pixel_classes != VOID
    is_beyond = labelled & (pixel_classes >= classes)
    beyond = pixel_classes[is_beyond]
    if beyond.size:
        remedy = f"Write classes from 0 to {classes - 1}, or 255 for void"
        blues = _exchange_channels(codes).astype(np.uint8)
        if _is_damaged(pixel_classes, is_beyond):
            remedy += _RESIZE
        elif blues.any() and ((blues < classes) | (blues == VOID)).all():
            remedy += ". Only blue holds valid classes: check the channel order; cv2.imwrite expects BGR"
        raise Flaw(f"holds the class {beyond.max()} in red", remedy)
    ids: Array = (codes + 1) * labelled
    return ids


@dataclass(frozen=True)
class PredictedFrame:
    """One frame of a submission: its PNG, and the category of each segment, as an index into the truth's."""

    member: str
    segments: Dict[int, int]

    def list_segments(self, frame: TruthFrame, pairs: LabelPairs) -> Tuple[Rows, Rows]:
        """Return the id, category, crowd and area of each segment of the truth and of the prediction."""
        ids, areas = (column.tolist() for column in sum_by_key(pairs.prediction, pairs.pixels))
        _check_ids(self, set(ids))
        return frame.rows, [[number, self.segments[number], 0, area] for number, area in zip(ids, areas) if number]


@dataclass(frozen=True)
class _CodedFrame(PredictedFrame):
    """A frame whose ids hold the category in their lowest 8 bits, less one."""

    things: List[bool]

    def list_segments(self, frame: TruthFrame, pairs: LabelPairs) -> Tuple[Rows, Rows]:
        sides: List[Rows] = []
        for side in (pairs.truth, pairs.prediction):
            ids, areas = (column.tolist() for column in sum_by_key(side, pairs.pixels))
            segments = [(number, (number & VOID) - 1, area) for number, area in zip(ids, areas) if number]
            sides.append([
                [number, category, int(self.things[category] and is_unnumbered(number)), area]
                for number, category, area in segments
            ])  # fmt: skip
        if len(sides[1]) > _MOST_SEGMENTS:
            raise Flaw(f"has {len(sides[1]):,} segments; the limit is {_MOST_SEGMENTS:,}", "Send fewer segments")
        return sides[0], sides[1]


def is_unnumbered(number: Any) -> Any:
    """Return whether ids hold only a class; true things of this kind are crowds."""
    return number <= VOID


def blank_frame(protocol: PanopticProtocol, things: List[bool]) -> PredictedFrame:
    """Return a frame without any listed segment."""
    return _CodedFrame("", {}, things) if protocol.classes else PredictedFrame("", {})


def _look_up(ids: Array, categories: Dict[int, int]) -> Array:
    """Return the category of each id, as an index; -1 without one."""
    unique, places = np.unique(ids, return_inverse=True)
    indices = np.array([categories.get(number, -1) for number in unique.tolist()], np.int64)
    return indices[places.reshape(ids.shape)]


class _PanopticSubmission(UnitSubmission):
    """The units of a submission, by the names that the truth gives them."""

    send = _SEND
    protocol: PanopticProtocol

    def read_upload(self) -> None:
        self.noun = "video" if self.protocol.video else "image"
        categories = self.truth.facts["categories"]
        #: Whether each category has instances.
        self.things = [bool(entry[2]) for entry in categories]
        self._categories = {entry[0]: position for position, entry in enumerate(categories)}
        if not any(name.lower().endswith(".json") for name in self.files.sizes):
            raise Flaw(self.describe_files("JSON file"), _SEND)
        name = _find_document(self.files)
        self._units = self._read_entries(self.read_document(name, _EXAMPLE))
        self._pictures = PictureFiles(self.files, _stem(name))
        if not self._pictures.members():
            raise Flaw(self.describe_files("PNG"), _SEND)
        self.used_files = {name, *self._pictures.members()}

    def _read_entries(self, document: object) -> Dict[str, Dict[str, Any]]:
        """Return the entries of images or videos by name."""
        entries = document.get("annotations") if isinstance(document, dict) else None
        key = f"{self.noun}_id"
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise Flaw("has no list of annotations in its JSON", f"Write {_EXAMPLE}")
        units: Dict[str, Dict[str, Any]] = {}
        for entry in entries:
            name = entry.get(key)
            if type(name) not in (int, str):
                raise Flaw(f"has an annotation without {key}", f"Write {_EXAMPLE}")
            if units.setdefault(self.truth_names.respell(str(name)), entry) is not entry:
                raise Flaw(f"lists {self.noun} {printable(name)} twice", f"List each {self.noun} once")
        return units

    def names(self) -> AbstractSet[str]:
        return self._units.keys()

    def frames(self, unit: str, truth: List[TruthFrame], problems: Problems) -> List[Optional[PredictedFrame]]:
        """Return the frames of a unit, as many as the truth has; empty if there are problems."""
        entry = self._units[unit]
        entries = entry.get("annotations") if self.protocol.video else [entry]
        if not isinstance(entries, list) or len(entries) != len(truth):
            content = quantity(len(entries), "frame") if isinstance(entries, list) else "no list of annotations"
            problems.add(Problem(unit, f"has {content} in the JSON, not {len(truth)}", "List every frame, in order"))
            return []
        order = {frame.name: position for position, frame in enumerate(truth)}
        checked = [self._check_frame(unit, frame, listed, order, problems) for frame, listed in zip(truth, entries)]
        return checked if None not in checked else []

    def _check_frame(
        self, unit: str, frame: TruthFrame, entry: object, order: Dict[str, int], problems: Problems
    ) -> Optional[PredictedFrame]:
        """Return a frame; None if its entry has a problem."""
        try:
            if self.protocol.video and isinstance(entry, dict):
                named = _stem(str(entry.get("file_name", "")))
                if order.get(named, order[frame.name]) != order[frame.name]:
                    raise Flaw(f"is {printable(named)} in the JSON", "List the frames in the order of the truth")
            return self._read_frame(entry, frame.name if self.protocol.video else "", unit)
        except Flaw as flaw:
            problems.add(flaw.as_problem(f"{unit}, frame {frame.name}" if self.protocol.video else f"image {unit}"))
            return None

    def _read_frame(self, entry: object, frame: str, unit: str) -> PredictedFrame:
        """Return a checked entry of the JSON; a video's PNGs have the truth's frame names."""
        if not isinstance(entry, dict) or not isinstance(entry.get("segments_info"), list):
            raise Flaw("has no list segments_info", f"Write {_EXAMPLE}")
        file = entry.get("file_name")
        if not frame and not isinstance(file, str):
            raise Flaw("has no file_name", f"Write {_EXAMPLE}")
        member = (
            self._pictures.find(f"{frame}.png", unit) if frame else self._pictures.find(os.path.basename(str(file)))
        )
        rows = entry["segments_info"]
        if len(rows) > _MOST_SEGMENTS:
            raise Flaw(f"lists {len(rows):,} segments; the limit is {_MOST_SEGMENTS:,}", "Send fewer segments")
        return PredictedFrame(member, dict(map(self._read_segment, rows)))

    def _read_segment(self, row: object) -> "tuple[int, int]":
        number, category = (row.get("id"), row.get("category_id")) if isinstance(row, dict) else (None, None)
        if type(number) is not int or type(category) is not int or not 0 < number <= MOST_ID:
            raise Flaw("lists a segment without an id from 1 to 16,777,215 and a category_id", f"Write {_EXAMPLE}")
        if category not in self._categories:
            raise Flaw(f"segment {number} has the category {category}, which the truth does not have", "Remove it")
        return number, self._categories[category]

    def read(self, frame: PredictedFrame, size: Size) -> Array:
        """Return the id of every pixel; raises a Flaw if it cannot be read."""
        png.check_length(self.files.sizes[frame.member], size)
        return backend().read_codes(self.files.read(frame.member), size)

    def map_truth(self, frame: TruthFrame) -> Array:
        """Return the category of each true pixel, as an index; -1 without one."""
        pixels = frame.read()
        return _look_up(
            pixels.labels_of(pixels.numbers), {int(row[0]): int(row[1]) for row in frame.rows if not row[2]}
        )

    def map_labels(self, frame: PredictedFrame, size: Size, ids: Array) -> Array:
        """Return the id of the category of each predicted pixel."""
        labels: Array = ids[_look_up(self.read(frame, size), frame.segments)]
        return np.where(labels < 0, MOST_ID, labels)


class _CodedSubmission(UnitSubmission):
    """The sequences of a submission, `SEQUENCE/FRAME.png`, under any other folders."""

    noun, send = "sequence", _SEND_CODED
    protocol: PanopticProtocol

    def read_upload(self) -> None:
        self._pictures = PictureFiles(self.files, lone_unit=self.lone_unit)
        self.used_files = self._pictures.members()
        #: Whether each category has instances.
        self.things = [bool(entry[2]) for entry in self.truth.facts["categories"]]
        self._names = set(map(self.truth_names.respell, self._pictures.folders()))

    def names(self) -> AbstractSet[str]:
        return self._names

    def frames(self, unit: str, truth: List[TruthFrame], problems: Problems) -> List[Optional[PredictedFrame]]:
        """Return the frames of a sequence; None for missing frames."""
        return [self._find_frame(unit, frame.name, problems) for frame in truth]

    def _find_frame(self, unit: str, name: str, problems: Problems) -> Optional[PredictedFrame]:
        try:
            return _CodedFrame(self._pictures.find(f"{name}.png", unit), {}, self.things)
        except Flaw as flaw:
            problems.add(flaw.as_problem(f"{unit}, frame {name}"))
            return None

    def read(self, frame: PredictedFrame, size: Size) -> Array:
        """Return the id of every pixel; raises a Flaw if it cannot be read."""
        return join_ids(self._read_codes(frame, size), len(self.things))

    def _read_codes(self, frame: PredictedFrame, size: Size) -> Array:
        png.check_length(self.files.sizes[frame.member], size)
        return backend().read_codes(self.files.read(frame.member), size)

    def map_truth(self, frame: TruthFrame) -> Array:
        """Return the category of each true pixel, as an index; -1 without one."""
        pixels = frame.read()
        numbers = pixels.labels_of(pixels.numbers).astype(np.int64)
        return np.where(numbers > 0, (numbers & VOID) - 1, -1)

    def map_labels(self, frame: PredictedFrame, size: Size, ids: Array) -> Array:
        """Return the colour of each predicted pixel, whose red is its class."""
        del ids
        return self._read_codes(frame, size).astype(np.int64)


AnySubmission = Union[_PanopticSubmission, _CodedSubmission]


def open_submission(path: str, truth: UnitTruth, protocol: PanopticProtocol, limits: ArchiveLimits) -> AnySubmission:
    """Open a submission of the form that a protocol has."""
    return (_CodedSubmission if protocol.classes else _PanopticSubmission)(path, truth, protocol, limits)


def _check_ids(frame: PredictedFrame, ids: AbstractSet[int]) -> None:
    """Raise a Flaw if the ids of the PNG and of the JSON differ."""
    for problem, remedy, odd in (
        ("holds ids that the JSON does not list", "List every segment", ids - frame.segments.keys() - {0}),
        ("lacks ids that the JSON lists", "List only the segments of the PNG", frame.segments.keys() - ids),
    ):
        if odd:
            exchanged = set(_exchange_channels(np.array(sorted(ids), np.int64)).tolist()) - {0}
            fits = exchanged == frame.segments.keys()
            hint = f". With red and blue swapped, both agree: {SAVE_RGB}" if fits else ""
            if not fits and len(odd - frame.segments.keys()) >= max(_FEWEST_BLENDED, 2 * len(frame.segments)):
                hint = f". So many ids suggest resizing with interpolation or JPEG: {_RESIZE_RIGHT}"
            raise Flaw(f"{problem}: {name_list([str(number) for number in sorted(odd)])}", f"{remedy}{hint}")
