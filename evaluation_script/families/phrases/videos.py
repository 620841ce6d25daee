"""Truth and submissions of SA-Co/VEval: pairs of a video and a noun phrase, whose objects are tracks of masks.

A truth is YouTube-VIS' JSON with `video_np_pairs`, the list of pairs; in a pair without annotations, the object is
absent. A submission is a list of tracks.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Tuple

import numpy as np

from ...files import ArchiveLimits, Flaw, Problem, Problems, TruthFlaw, printable, quantity
from ...masks import run_lengths as rle
from ...masks.backend import backend
from ...masks.run_lengths import Masks, MaskTexts, pack_texts
from ...masks.stack import Array, Size
from ..base.units import Rows, TruthFrame, Unit, UnitTruth, no_pixels
from ..instances.records import is_finite
from .protocols import LEAST_SCORE, VIDEOS_LAYOUT, PhraseProtocol
from .records import MOST_PROBLEMS, PairSubmission, RecordReader

_EXAMPLE = (
    '[{"video_id": 1, "category_id": 2, "score": 0.9, '
    '"segmentations": [{"size": [h, w], "counts": "..."}, null, ...]}, ...]'
)
_SEND = f"Send one JSON with a list of records, one for each track: {_EXAMPLE}"
#: The maximum number of unlisted pairs under the script's rules.
_MOST_STRAYS = 10_000
#: The columns of a true mask: the index of its track, its run lengths, its area.
TRACK, MASK, AREA = range(3)


@dataclass(frozen=True)
class Tracks:
    """One side of a pair: its masks by frame, each with the index of its track."""

    count: int
    frame: Array
    track: Array
    masks: Masks
    #: The masks that HOTA compares: the script trusts the areas and boxes of a submission.
    shown: Array


# ── the truth ──


def open_truth(path: str, document: Dict[str, Any]) -> UnitTruth:
    """Return the truth in a JSON."""
    if "video_np_pairs" not in document:
        raise TruthFlaw("has no video_np_pairs", "Use the file that lists the phrases of each video")
    videos = {video["id"]: video for video in document["videos"]}
    phrases = {_pair_of(entry): str(entry.get("noun_phrase", "")) for entry in document["video_np_pairs"]}
    if len(phrases) != len(document["video_np_pairs"]):
        raise TruthFlaw("lists a pair twice in video_np_pairs", "List each pair once")
    masks = _read_masks(document, videos, phrases)
    crowds: Dict[Tuple[int, int], List[int]] = {pair: [] for pair in phrases}
    numbers: Dict[Tuple[int, int], List[int]] = {pair: [] for pair in phrases}
    track_of: List[int] = []
    for number, annotation in enumerate(document["annotations"]):
        pair_crowds = crowds[_pair_of(annotation)]
        track_of.append(len(pair_crowds))
        pair_crowds.append(int(annotation.get("iscrowd", 0)))
        numbers[_pair_of(annotation)].append(number)
    rows: Dict[Tuple[int, int], Dict[int, Rows]] = {pair: {} for pair in phrases}
    visible = set()
    for index, frame, text, area in masks:
        visible.add(index)
        own_rows = rows[_pair_of(document["annotations"][index])]
        own_rows.setdefault(frame, []).append([track_of[index], text, area])
    notes = []
    unseen = len(document["annotations"]) - len(visible)
    if unseen:
        notes.append(f"{quantity(unseen, 'object')} without pixels in any frame, which have no effect")
    if all(rows.values()) or not any(rows.values()):
        notes.append("every pair has objects, or none has, so IL_MCC and cgF1 are not defined")
    # The script names videos by the folder of their files, so that only the last of several has a TETA.
    by_folder = {str(video["file_names"][0]).split("/")[0]: number for number, video in videos.items()}
    hidden = videos.keys() - set(by_folder.values())
    units = []
    for pair, text in phrases.items():
        facts = {
            "text": text, "crowds": crowds[pair], "numbers": numbers[pair], "hidden": pair[0] in hidden,
        }  # fmt: skip
        units.append(_make_unit(pair, videos[pair[0]], rows[pair], facts))
    listed = [[0, int(category["id"])] for category in document["categories"]]
    truth_facts = {"subsets": [[os.path.splitext(os.path.basename(path))[0]]], "listed": listed}
    return UnitTruth(PhraseProtocol.family, VIDEOS_LAYOUT, truth_facts, units, notes)


def _read_masks(
    document: Dict[str, Any], videos: Dict[int, Dict[str, Any]], phrases: Dict[Tuple[int, int], str]
) -> List[Tuple[int, int, str, int]]:
    """Return the annotation index, frame, run lengths and area of each non-empty mask."""
    texts: List[str] = []
    pixels: List[int] = []
    masks: List[Tuple[int, int]] = []  # the annotation's index, and the frame
    for index, annotation in enumerate(document["annotations"]):
        subject = f"annotation {annotation['id']}"
        if _pair_of(annotation) not in phrases:
            raise TruthFlaw(f"{subject} belongs to a pair that video_np_pairs lacks", "List every pair")
        video = videos[annotation["video_id"]]
        if len(annotation["segmentations"]) != len(video["file_names"]):
            raise TruthFlaw(
                f"{subject} does not have one mask for each frame of its video", "Give a mask or null for each frame"
            )
        for frame, mask in enumerate(annotation["segmentations"]):
            if mask is not None:
                size = _size_of(video)
                if list(mask["size"]) != list(size):
                    raise TruthFlaw(f"{subject} has a mask whose size differs from its video's", "Encode it again")
                texts.append(rle.text_of(mask["counts"], size[0] * size[1]))
                pixels.append(size[0] * size[1])
                masks.append((index, frame))
    checked = backend().check_masks(texts, np.array(pixels, np.int64))
    for number in np.flatnonzero(checked.fault).tolist():
        annotation = document["annotations"][masks[number][0]]
        fault = rle.FAULTS[int(checked.fault[number])]
        raise Flaw(f"annotation {annotation['id']}, frame {masks[number][1]} {fault}", rle.WRITE_AGAIN)
    areas = checked.area.tolist()
    return [(*owner, text, area) for owner, text, area in zip(masks, texts, areas) if area]


def _size_of(video: Dict[str, Any]) -> Size:
    return video["height"], video["width"]


def _pair_of(entry: Dict[str, Any]) -> Tuple[int, int]:
    """Return the video and the phrase of an entry."""
    return int(entry["video_id"]), int(entry["category_id"])


def _pair_name(video: int, category: int) -> str:
    """Return the name of a pair, as in the benchmark's script."""
    return f"{video}_{category}"


def _make_unit(pair: Tuple[int, int], video: Dict[str, Any], rows: Dict[int, Rows], facts: Dict[str, Any]) -> Unit:
    size, names = _size_of(video), [str(name) for name in video["file_names"]]

    def load() -> List[TruthFrame]:
        return [TruthFrame(name, size, rows.get(frame, []), no_pixels) for frame, name in enumerate(names)]

    facts = {**facts, "video": pair[0], "category": pair[1], "size": size, "frames": len(names)}
    return Unit(_pair_name(*pair), len(names) + sum(map(len, rows.values())), load, facts)


def truth_tracks(frames: List[TruthFrame], count: int) -> Tracks:
    """Return the objects of a pair."""
    rows = [row for frame in frames for row in frame.rows]
    index = np.repeat(np.arange(len(frames)), np.array([len(frame.rows) for frame in frames], np.int64))
    sizes = np.array([frames[0].size for _ in rows], np.int64).reshape(-1, 2)
    area = np.array([row[AREA] for row in rows], np.int64)
    masks = Masks(pack_texts([row[MASK] for row in rows]), area, sizes)
    return Tracks(count, index, np.array([row[TRACK] for row in rows], np.int64), masks, np.ones(len(rows), bool))


# ── a submission ──


class VideoPhraseSubmission(PairSubmission):
    """The tracks of all pairs of videos."""

    predicted, send = "track", _SEND

    def read_upload(self) -> None:
        truth, name, problems = self.truth, self.find_json(), Problems()
        self._reader = reader = _Reader(truth, self.limits, official=self.protocol.official)
        reader.read(self.files.read_chunks(name), name, problems)
        problems.raise_if_any()
        self._tracks, self._strays = reader.sort(), reader.strays
        self._units: Dict[int, List[Unit]] = {}
        for unit in truth.units:
            self._units.setdefault(unit.facts["video"], []).append(unit)
        #: The phrases of the truth's objects.
        self.phrases = {unit.facts["category"] for unit in truth.units if unit.facts["crowds"]}

    def list_masks(self, pair: str) -> List[Tuple[int, str]]:
        tracks, scores = self.tracks(pair, (0, 0))
        counted = np.flatnonzero(scores[tracks.track] >= LEAST_SCORE).tolist()
        return [(int(tracks.frame[number]), tracks.masks.texts[number]) for number in counted]

    def tracks(self, pair: str, size: Size) -> Tuple[Tracks, Array]:
        """Return the tracks of a pair in their order, and their scores."""
        every = self._tracks
        start, stop = every.track_bounds[pair]
        tubes = slice(*every.mask_bounds[pair])
        sizes = np.array([size] * len(every.area[tubes]), np.int64).reshape(-1, 2)
        masks = Masks(every.masks.take(tubes), every.area[tubes], sizes)
        return Tracks(stop - start, every.frame[tubes], every.track[tubes], masks, every.shown[tubes]), every.score[
            start:stop
        ]

    def track_numbers(self, pair: str) -> Array:
        """Return the index of each track of a pair among all tracks that were read."""
        start, stop = self._tracks.track_bounds[pair]
        return self._tracks.number[start:stop]

    def list_video(self, unit: Unit) -> Tuple[List[Unit], List[Tuple[str, int]]]:
        """Return a video's pairs and its unasked phrases, if this pair is the video's first."""
        units = self._units[unit.facts["video"]]
        return (units, self._strays.get(unit.facts["video"], [])) if units[0].name == unit.name else ([], [])


@dataclass(frozen=True)
class _SortedTracks:
    """All tracks sorted by pair, and all masks by pair and frame, with the bounds of each pair."""

    track_bounds: Dict[str, Tuple[int, int]]
    mask_bounds: Dict[str, Tuple[int, int]]
    score: Array
    number: Array
    frame: Array
    track: Array
    masks: MaskTexts
    area: Array
    shown: Array


class _Reader(RecordReader):
    """A reader of track records that keeps the non-empty ones."""

    most_predictions, counted, send_fewer = 300, "tracks", "Send those with the highest scores"
    send_fewer_records = "Send fewer tracks"

    def __init__(self, truth: UnitTruth, limits: ArchiveLimits, *, official: bool) -> None:
        super().__init__(truth, limits, official=official)
        #: For each video, the unlisted phrases with the names of their pairs.
        self.strays: Dict[int, List[Tuple[str, int]]] = {}
        self._extent_of = {
            unit.facts["video"]: (tuple(unit.facts["size"]), unit.facts["frames"]) for unit in truth.units
        }
        self._asked = len(self._names)
        self._unit = {(unit.facts["video"], unit.facts["category"]): index for index, unit in enumerate(truth.units)}
        self._extents: List[Tuple[Size, int]] = [
            (tuple(unit.facts["size"]), unit.facts["frames"]) for unit in truth.units
        ]
        #: For each track its pair and score, part by part; for each mask its track and frame.
        self._pairs: List[Array] = []
        self._scores: List[Array] = []
        self._tracks: List[Array] = []
        self._frames: List[Array] = []
        self._shown: List[Array] = []
        self._kept = 0

    def read(self, parts: Iterable[bytes], member: str, problems: Problems) -> None:
        super().read(parts, member, problems)
        if self._official and not self._count and not problems.places:
            problems.add(Problem(member, "holds no record, which stops SA-Co/VEval's script", _SEND))

    def _read_part(self, records: List[Any], member: str, problems: Problems) -> None:
        texts: List[str] = []
        pixels: List[int] = []
        shown: List[bool] = []
        owners: List[Tuple[int, int]] = []  # the record and the frame of each mask
        tracks: Dict[int, Tuple[int, float]] = {}  # the pair and the score of each record
        faulty: List[Tuple[int, Problem]] = []  # by record, wherever a part ends
        for index, record in enumerate(records):
            try:
                pair = self._pair_of(record)
                if pair is None:
                    continue
                masks = self._masks_of(record, pair)
                shown += self._list_shown(record, [frame for frame, _ in masks], self._extents[pair][1])
            except Flaw as flaw:
                pair_text = self._name_pair(record) if isinstance(record, dict) else "?"
                subject = f"{member}, record {self._count + index} (pair {pair_text})"
                faulty.append((index, Problem(subject, flaw.fault, flaw.remedy)))
                if problems.places + len(faulty) >= MOST_PROBLEMS:
                    break
                continue
            tracks[index] = pair, float(record["score"])
            (height, width), _ = self._extents[pair]
            texts += [text for _, text in masks]
            owners += [(index, frame) for frame, _ in masks]
            pixels += [height * width] * len(masks)
        self.scores.add([score for _, score in tracks.values()])
        checked = backend().check_masks(texts, np.array(pixels, np.int64))
        for number in np.flatnonzero(checked.fault).tolist():
            index, frame = owners[number]
            subject = f"{member}, record {self._count + index} (pair {self._names[tracks[index][0]]}), frame {frame}"
            faulty.append((index, Problem(subject, rle.FAULTS[int(checked.fault[number])], rle.WRITE_AGAIN)))
        for _, problem in sorted(faulty, key=lambda entry: entry[0]):
            problems.add(problem)
        says_something = (checked.area > 0) | (np.array(shown, bool) & self._official)
        has_pixels = np.flatnonzero(says_something).tolist()
        seen = dict.fromkeys(tracks if self._official else [owners[number][0] for number in has_pixels])
        self.empty += len(tracks) - len(seen)
        places = {index: self._kept + rank for rank, index in enumerate(seen)}
        pairs = np.array([tracks[index][0] for index in seen], np.int64)
        self._kept += len(pairs)
        self._check_counts(pairs, problems)
        self._pairs.append(pairs)
        self._scores.append(np.array([tracks[index][1] for index in seen]))
        self._tracks.append(np.array([places[owners[number][0]] for number in has_pixels], np.int64))
        self._frames.append(np.array([owners[number][1] for number in has_pixels], np.int64))
        self._areas.append(checked.area[has_pixels])
        self._shown.append(np.array(shown, bool)[has_pixels])
        self._masks.append(pack_texts([texts[number] for number in has_pixels]))

    @staticmethod
    def _name_pair(record: Dict[str, Any]) -> str:
        return printable(_pair_name(record.get("video_id", "?"), record.get("category_id", "?")))

    def _pair_of(self, record: Any) -> Optional[int]:
        """Return the pair of a record; None if it belongs to another split."""
        if not isinstance(record, dict) or not {"video_id", "category_id", "score", "segmentations"} <= record.keys():
            raise Flaw("lacks video_id, category_id, score or segmentations", f"Write {_EXAMPLE}")
        if type(record["video_id"]) is not int or type(record["category_id"]) is not int:
            raise Flaw("has a video_id or category_id that is not a whole number", "Write the truth's ids as numbers")
        if not is_finite(record["score"]):
            raise Flaw(
                f"has the score {printable(repr(record['score']))}, which is not a finite number", "Write a number"
            )
        pair = self._unit.get((record["video_id"], record["category_id"]))
        if pair is None and self._official:
            return self._add_stray(record["video_id"], record["category_id"])
        if pair is None and _pair_name(record["video_id"], record["category_id"]) not in self._elsewhere:
            raise Flaw("belongs to a pair that the truth does not list", "Send only the pairs of video_np_pairs")
        return pair

    def _add_stray(self, video: int, category: int) -> Optional[int]:
        """Return a new pair for an unasked phrase; None if it belongs to another split."""
        name = _pair_name(video, category)
        if name in self._elsewhere:
            return None
        if video not in self._extent_of or abs(category) >= 1 << 53:
            raise Flaw(
                "belongs to a video that the truth lacks, which stops SA-Co/VEval's script", "Use the truth's ids"
            )
        if len(self._names) >= self._asked + _MOST_STRAYS:
            raise Flaw(
                f"has records of more than {quantity(_MOST_STRAYS, 'pair')} that video_np_pairs lacks",
                "Send only the pairs of video_np_pairs",
            )
        pair = self._unit[video, category] = len(self._names)
        self._names.append(name)
        self._extents.append(self._extent_of[video])
        self.strays.setdefault(video, []).append((name, category))
        return pair

    def _list_shown(self, record: Dict[str, Any], masks: List[int], frames: int) -> List[bool]:
        """Return whether HOTA uses each mask; the script decides by the record's areas and boxes."""
        if not self._official:
            return [True] * len(masks)
        areas, boxes = (self._read_list(record, key, frames) for key in ("areas", "bboxes"))
        if not all(area is None or is_finite(area) for area in areas):
            raise Flaw("has areas that are not finite numbers", "Write numbers")
        if not all(box is None or (isinstance(box, list) and all(map(is_finite, box))) for box in boxes):
            raise Flaw("has bboxes that are not [x, y, width, height]", "Write four numbers, or null")
        return [bool(areas[frame]) and any(boxes[frame] or []) for frame in masks]

    @staticmethod
    def _read_list(record: Dict[str, Any], key: str, frames: int) -> List[Any]:
        values = record.get(key)
        if not isinstance(values, list) or len(values) != frames:
            problem = f"lacks {key} for {quantity(frames, 'frame')}, without which SA-Co/VEval's script stops"
            raise Flaw(problem, "Write an area and a box for each frame, or 0 and null if the object is absent")
        return values

    def _masks_of(self, record: Dict[str, Any], pair: int) -> List[Tuple[int, str]]:
        """Return the frames and compressed runs of a track, unchecked."""
        masks, (size, frames) = record["segmentations"], self._extents[pair]
        if not isinstance(masks, list):
            raise Flaw("has segmentations that are not a list", f"Write {_EXAMPLE}")
        if len(masks) != frames:
            problem = f"has {quantity(len(masks), 'mask')} but the video has {quantity(frames, 'frame')}"
            raise Flaw(problem, "Give one for each frame, or null if the object is absent")
        record_masks = []
        for frame, mask in enumerate(masks):
            if mask is None:
                continue
            try:
                mask_size, counts = rle.read_encoding(mask, _EXAMPLE)
                if mask_size != size:
                    raise rle.other_size(mask_size, size)
                record_masks.append((frame, rle.text_of(counts, size[0] * size[1])))
            except Flaw as flaw:
                raise Flaw(f"{flaw.fault} (frame {frame})", flaw.remedy) from None
        return record_masks

    def sort(self) -> _SortedTracks:
        """Return the tracks by pair."""
        nothing = np.zeros(0, np.int64)
        pairs, tracks, frames, areas = (
            np.concatenate([nothing, *parts]) for parts in (self._pairs, self._tracks, self._frames, self._areas)
        )
        order = np.argsort(pairs, kind="stable")
        counts = np.bincount(pairs, minlength=len(self._names))
        starts = np.cumsum(counts) - counts
        places = np.zeros(len(pairs), np.int64)
        places[order] = np.arange(len(pairs)) - starts[pairs[order]]
        mask_order = np.lexsort((places[tracks], frames, pairs[tracks]))
        mask_counts = np.bincount(pairs[tracks], minlength=len(self._names))
        return _SortedTracks(
            self._cut_by_pair(counts),
            self._cut_by_pair(mask_counts),
            np.concatenate([np.zeros(0), *self._scores])[order],
            order,
            frames[mask_order],
            places[tracks][mask_order],
            rle.join_texts(self._masks).take(mask_order),
            areas[mask_order],
            np.concatenate([np.zeros(0, bool), *self._shown])[mask_order],
        )

    def _cut_by_pair(self, counts: Array) -> Dict[str, Tuple[int, int]]:
        stops = np.cumsum(counts)
        return dict(zip(self._names, zip((stops - counts).tolist(), stops.tolist())))
