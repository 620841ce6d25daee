"""Truth and submissions of tracks on masks: a text file for each sequence (MOTS), or JSON of sequences (BURST).

A line is `frame id class height width run-lengths`. In the JSON, each sequence lists its frames, and each frame the run
lengths of its tracks.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from dataclasses import replace
from typing import AbstractSet, Any, Callable, Dict, List, Match, Optional, Set, Tuple

import numpy as np

from ...files.archive import open_files, truth_error
from ...files.limits import HOST_LIMITS, Files
from ...files.problems import Flaw, Problems, SubmissionError, TruthFlaw, printable, quantity
from ...masks import run_lengths as rle
from ...masks.backend import backend
from ...masks.stack import Array, Size
from ..base.units import Rows, TruthFrame, Unit, UnitSubmission, UnitTruth, guard_reading, no_pixels
from .protocols import BURST_LAYOUT, DISTRACTORS, MERGED, MOTS_LAYOUT, TracksProtocol

#: Columns of a mask: the number of its track, its category, its run lengths, its score.
TRACK_ID, CATEGORY, MASK, SCORE = range(4)
#: The class of regions that are not scored.
IGNORED = 10
#: The maximum numbers of tracks and masks in a sequence, of masks in a frame, and of counted masks in BURST's.
_MOST_TRACKS, _MOST_MASKS, _MOST_IN_FRAME, _BURST_MASKS = 20_000, 200_000, 500, 300
#: The maximum number of lines of a text file.
_MOST_LINES = 1_000_000
_LINE = "frame id class height width run-lengths"
#: A line with its fields, or any other non-blank line from its first character.
_LINES = re.compile(r"(\d{1,12}) (\d{1,12}) (\d{1,12}) (\d{1,12}) (\d{1,12}) (.*)|\S.*", re.ASCII | re.MULTILINE)
#: A whole number in `seqinfo.ini`; importing configparser would take a tenth of a start.
_SETTING = re.compile(r"^[ \t]*(\w+)[ \t]*[=:][ \t]*(\d+)[ \t\r]*$", re.MULTILINE)
_SEND_TEXTS = f"Send one zip with a text file SEQUENCE.txt for each sequence, with lines `{_LINE}`"
_SEND_JSON = "Send one JSON file, plain, gzipped or zipped, with all sequences"
#: The maximum number of pixels of a mask if the truth does not state the size of frames.
_MOST_PIXELS = 1 << 26
_EXAMPLE = (
    '{"sequences": [{"dataset": "...", "seq_name": "...", "annotated_image_paths": [...], '
    '"track_category_ids": {"1": 5}, "segmentations": [{"1": {"rle": "...", "score": 0.9}, ...}, ...]}, ...]}'
)


def read_truth(path: str, subset: str = "") -> UnitTruth:
    """Read a published truth: folders with the texts of MOTS20 or KITTI-MOTS, or BURST's JSON."""
    del subset
    try:
        if path.endswith(".json"):
            with open(path, "rb") as file:
                return _open_burst_truth(json.loads(file.read()))
        files = open_files(path, HOST_LIMITS)
        documents = [name for name in files.sizes if name.endswith(".json")]
        return _open_burst_truth(json.loads(files.read(documents[0]))) if documents else _open_mots_truth(files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Flaw, SubmissionError) as error:
        raise truth_error(path, error, "cannot be read as the truth of tracks") from None


def _open_mots_truth(files: Files) -> UnitTruth:
    extents, texts = _read_extents(files), {}
    for name in sorted(files.sizes):
        parts = name.split("/")
        if name.endswith("/gt/gt.txt"):
            texts[parts[-3]] = name
        elif name.endswith(".txt") and parts[-2:-1] in (["instances_txt"], []):
            texts[os.path.splitext(parts[-1])[0]] = name
    if not texts:
        raise TruthFlaw(
            "holds neither gt/SEQUENCE/gt/gt.txt nor instances_txt/SEQUENCE.txt",
            "Name the folder that holds gt or instances_txt",
        )

    def make_unit(name: str) -> Unit:
        def load() -> List[TruthFrame]:
            start, stop, size = extents.get(name, (-1, -1, None))
            rows, size = _read_lines(files.read(texts[name]).decode(), size)
            if start < 0:
                start, stop = min(rows, default=0), max(rows, default=0)
            return [
                TruthFrame(str(frame), size or (0, 0), rows.get(frame, []), no_pixels)
                for frame in range(start, stop + 1)
            ]

        return Unit(name, files.sizes[texts[name]], guard_reading(texts[name], load))

    return UnitTruth(TracksProtocol.family, MOTS_LAYOUT, {}, [make_unit(name) for name in texts])


def _read_extents(files: Files) -> Dict[str, Tuple[int, int, Optional[Size]]]:
    """Return the first frame, last frame and size of sequences, from MOTS20's ini or KITTI's seqmap."""
    extents: Dict[str, Tuple[int, int, Optional[Size]]] = {}
    for name in files.sizes:
        if name.endswith("/seqinfo.ini"):
            facts = dict(_SETTING.findall(files.read(name).decode().lower()))
            extents[name.split("/")[-2]] = (1, int(facts["seqlength"]), (int(facts["imheight"]), int(facts["imwidth"])))
        elif ".seqmap" in name:
            rows = [line.split() for line in files.read(name).decode().splitlines()]
            extents.update({row[0]: (int(row[2]), int(row[3]) - 1, None) for row in rows if len(row) == 4})
    return extents


def _read_lines(text: str, size: Optional[Size]) -> Tuple[Dict[int, Rows], Optional[Size]]:
    """Return the masks of each frame in a text file, and their size, which all lines share."""
    frames: Dict[int, Rows] = {}
    if text.count("\n") > _MOST_LINES:
        raise Flaw(f"has more than {_MOST_LINES:,} lines", f"Write lines of `{_LINE}`")
    sides: Tuple[str, str] = ("", "")
    for line in _LINES.finditer(re.sub(r"\r+$", "", text, flags=re.MULTILINE) if "\r" in text else text):
        frame, track, category, height, width, mask = line.groups()
        if mask is None or " " in mask or "\r" in mask:
            problem = f"line {_number(line)} is not `{_LINE}`: {_name_odd_field(line.group())}"
            raise Flaw(problem, "Write whole numbers, and compressed run lengths")
        if (height, width) != sides:
            sides = height, width
            size = size or (int(height), int(width))
            if (int(height), int(width)) != size:
                problem = f"has the size {int(height)} x {int(width)}, but the frames have {size[0]} x {size[1]}"
                raise Flaw(f"line {_number(line)} {problem}", "Write masks at the size of the frames")
        frames.setdefault(int(frame), []).append([int(track), int(category), mask])
    return frames, size


def _name_odd_field(line: str) -> str:
    """Return the sentence about the malformed field of a line."""
    names, fields = _LINE.split(), line.split(" ")
    if len(fields) != len(names):
        return f"it has {quantity(len(fields), 'field')} with a space between them, not {len(names)}"
    for name, field in zip(names[:-1], fields):
        if not re.fullmatch(r"\d{1,12}", field, re.ASCII):
            return f"its {name} is {printable(field) or 'empty'}, which is not a whole number of at most 12 digits"
    return f"its {names[-1]} hold a line feed"


def _number(line: Match[str]) -> int:
    return line.string.count("\n", 0, line.start()) + 1


def _open_burst_truth(document: Dict[str, Any]) -> UnitTruth:
    merged = dict(MERGED)
    for category in document["categories"]:
        merged.update({int(category_part["id"]): int(category["id"]) for category_part in category.get("merged", [])})
    names = {str(category["id"]): category["name"] for category in document["categories"]}
    categories_present: Set[int] = set()

    def make_unit(entry: Dict[str, Any]) -> Unit:
        categories = {int(key): category for key, category in entry["track_category_ids"].items()}
        # as officially: distractors are removed before categories are merged, so a frame with only distractors has no
        # annotation
        distracting = {key for key, category in categories.items() if category in DISTRACTORS}
        categories = {key: merged.get(category, category) for key, category in categories.items()}
        # as officially: a listed track without masks adds no class
        shown = {int(key) for masks in entry["segmentations"] for key in masks} - distracting
        categories_present.update(categories[key] for key in shown)
        size = (entry["height"], entry["width"])

        def load() -> List[TruthFrame]:
            frames = []
            for name, masks in zip(entry["annotated_image_paths"], entry["segmentations"]):
                rows = [[int(key), categories[int(key)], mask["rle"]] for key, mask in masks.items()]
                scored_rows = [row for row in rows if row[TRACK_ID] not in distracting]
                frames.append(TruthFrame(name, size, scored_rows, no_pixels))
            return frames

        facts = {"neg": entry["neg_category_ids"], "loose": entry["not_exhaustive_category_ids"]}
        name = f"{entry['dataset']}/{entry['seq_name']}"
        return Unit(name, len(entry["segmentations"]), guard_reading(name, load), facts)

    units = [make_unit(entry) for entry in document["sequences"]]
    classes = [
        [names.get(str(category_part), str(category_part)), category_part]
        for category_part in sorted(categories_present)
    ]
    return UnitTruth(
        TracksProtocol.family,
        BURST_LAYOUT,
        {"classes": classes, "merged": [list(pair) for pair in sorted(merged.items())]},
        units,
    )


def _explain_beyond(numbers: AbstractSet[int], frames: List[int]) -> str:
    """Return the remedy for numbers of frames beyond the truth's, which one step may explain."""
    for step, end in ((1, frames[0]), (-1, frames[-1])):
        if (
            2 * len(numbers) >= len(frames)
            and end not in numbers
            and {number - step for number in numbers} <= set(frames)
        ):
            return f"Number the first frame {frames[0]}: all numbers look 1 too {'high' if step > 0 else 'low'}"
    return "Omit the other frames"


class TracksSubmission(UnitSubmission):
    """The sequences of a submission."""

    noun = "sequence"
    protocol: TracksProtocol

    @property
    def send(self) -> str:
        return _SEND_JSON if self.protocol.burst else _SEND_TEXTS

    def read_upload(self) -> None:
        facts = self.truth.facts
        #: Names and numbers of the scored categories.
        self.classes: List[Tuple[str, int]] = [
            (name, number) for name, number in self.protocol.classes or facts["classes"]
        ]
        self._merged = dict(facts.get("merged", []))
        self._sequences = self._read_documents() if self.protocol.burst else self._find_texts()

    def names(self) -> AbstractSet[str]:
        return self._sequences.keys()

    def _find_texts(self) -> Dict[str, Any]:
        members: Dict[str, Any] = {}
        for name in self.files.sizes:
            if name.lower().endswith(".txt"):
                member = members.setdefault(self.truth_names.respell(os.path.basename(name)[:-4]), name)
                if member != name:
                    raise Flaw(f"holds {printable(member)} and {printable(name)}", "Send each sequence once")
        self.used_files = set(members.values())
        return members

    def _read_documents(self) -> Dict[str, Any]:
        document = self.read_document(self.find_json("Send one, with all sequences"), _EXAMPLE)
        entries = document.get("sequences") if isinstance(document, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise Flaw("has no list of sequences in its JSON", f"Write {_EXAMPLE}")
        sequences: Dict[str, Any] = {}
        for entry in entries:
            name = self.truth_names.respell(f"{entry.get('dataset')}/{entry.get('seq_name')}")
            if sequences.setdefault(name, entry) is not entry:
                raise Flaw(f"lists the sequence {printable(name)} twice", "Send each sequence once")
        return sequences

    def masks(self, name: str, frames: List[TruthFrame], problems: Problems) -> Tuple[List[Rows], Array]:
        """Return the checked masks of each frame of the truth, and their areas; records problems."""
        try:
            rows = self.read_rows(name, frames)
            if sum(map(len, rows)) > _MOST_MASKS:
                raise Flaw(f"has more than {_MOST_MASKS:,} masks", "Send fewer masks")
            if len({row[TRACK_ID] for frame_rows in rows for row in frame_rows}) > _MOST_TRACKS:
                raise Flaw(f"has more than {_MOST_TRACKS:,} tracks", "Send fewer tracks")
            area = check_masks(frames, rows)
        except Flaw as flaw:
            problems.add(flaw.as_problem(name if self.protocol.burst else self._sequences[name]))
            return [[] for _ in frames], np.zeros(0, np.int64)
        return rows, area

    def read_rows(self, name: str, frames: List[TruthFrame]) -> List[Rows]:
        """Return the masks of each frame of the truth, unchecked."""
        read: Callable[..., List[Rows]] = self._read_burst_masks if self.protocol.burst else self._read_mots_masks
        return read(self._sequences[name], frames)

    def size_frames(self, name: str, frames: List[TruthFrame]) -> List[TruthFrame]:
        """Return the frames of a sequence at their size, which a truth of KITTI without masks leaves to predictions."""
        if self.protocol.burst or all(frames[0].size) or name not in self._sequences:
            return frames
        try:
            _, size = _read_lines(self._read_text(self._sequences[name]), None)
        except Flaw:  # reported with the masks
            return frames
        if size is None or size[0] * size[1] > _MOST_PIXELS:
            return frames
        return [replace(frame, size=size) for frame in frames]

    def _read_text(self, member: str) -> str:
        data = self.files.read(member)
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise Flaw("is UTF-16 text", "Save it in ASCII or UTF-8")
        try:
            return data.removeprefix(codecs.BOM_UTF8).decode("ascii")
        except UnicodeDecodeError:
            raise Flaw("has characters that do not belong to run lengths", f"Write lines of `{_LINE}`") from None

    def _read_mots_masks(self, member: str, frames: List[TruthFrame]) -> List[Rows]:
        rows, size = _read_lines(self._read_text(member), frames[0].size if all(frames[0].size) else None)
        if size and size[0] * size[1] > _MOST_PIXELS:
            problem = f"has masks of {size[0]} x {size[1]} pixels"
            raise Flaw(problem, f"Write masks at the size of the frames, at most {_MOST_PIXELS:,} pixels")
        beyond = rows.keys() - {int(frame.name) for frame in frames}
        if beyond:
            problem = f"has the frame {min(beyond)}; the frames are {frames[0].name} to {frames[-1].name}"
            raise Flaw(problem, _explain_beyond(set(rows), [int(frame.name) for frame in frames]))
        return [rows.get(int(frame.name), []) for frame in frames]

    def _read_burst_masks(self, entry: Dict[str, Any], frames: List[TruthFrame]) -> List[Rows]:
        paths, lists = entry.get("annotated_image_paths"), entry.get("segmentations")
        categories = entry.get("track_category_ids")
        if not (isinstance(paths, list) and isinstance(lists, list) and isinstance(categories, dict)):
            raise Flaw("lacks annotated_image_paths, segmentations or track_category_ids", f"Write {_EXAMPLE}")
        if len(paths) != len(lists) or not all(isinstance(path, str) for path in paths):
            raise Flaw(
                f"has {quantity(len(paths), 'path')} of frames and {quantity(len(lists), 'list')} of masks",
                "Give one for each frame",
            )
        of_frame = dict(zip(paths, lists))
        truth_categories = {row[TRACK_ID]: row[CATEGORY] for frame in frames for row in frame.rows}
        missing = [frame.name for frame in frames if frame.name not in of_frame]
        if missing:
            raise Flaw(
                f"lacks the frame {printable(missing[0])}", "Give a list for each frame, empty if it has no masks"
            )
        return [self._read_burst_rows(of_frame[frame.name], categories, truth_categories) for frame in frames]

    def _read_burst_rows(self, masks: object, categories: Dict[str, Any], truth_categories: Dict[int, int]) -> Rows:
        if not isinstance(masks, dict):
            raise Flaw("has a frame whose masks are not an object with a mask for each track", f"Write {_EXAMPLE}")
        rows: Rows = []
        for key, mask in masks.items():
            if not (key.isascii() and key.isdigit() and len(key) < 13 and isinstance(mask, dict)):
                raise Flaw(f"has the track {printable(key)}, which is not a number with a mask", f"Write {_EXAMPLE}")
            category = truth_categories.get(int(key)) if self.protocol.exemplar else categories.get(key)
            score, counts = mask.get("score", 1.0), mask.get("rle")
            if type(score) not in (int, float) or not np.isfinite(score) or not isinstance(counts, str):
                raise Flaw(f"track {key} has a mask that lacks an rle or a finite score", f"Write {_EXAMPLE}")
            if category is None and self.protocol.exemplar:
                continue  # a track that the truth lacks
            if type(category) is not int:
                raise Flaw(f"track {key} has no category in track_category_ids", f"Write {_EXAMPLE}")
            rows.append([int(key), self._merged.get(category, category), counts, float(score)])
        return keep_best_rows(rows)


def keep_best_rows(rows: Rows) -> Rows:
    """Return the masks of a frame that BURST counts."""
    return sorted(rows, key=lambda row: -row[SCORE])[:_BURST_MASKS] if len(rows) > _BURST_MASKS else rows


def check_masks(frames: List[TruthFrame], rows_of_frames: List[Rows]) -> Array:
    """Return the areas of all masks; raises a Flaw for unreadable masks and repeated tracks."""
    counts = list(map(len, rows_of_frames))
    for frame, rows in zip(frames, rows_of_frames):
        if len(rows) > _MOST_IN_FRAME:
            raise Flaw(f"has {len(rows):,} masks in frame {printable(frame.name)}", f"Send at most {_MOST_IN_FRAME}")
    pixels = np.repeat([frame.size[0] * frame.size[1] for frame in frames], counts)
    checked = backend().check_masks([row[MASK] for rows in rows_of_frames for row in rows], pixels)
    for frame, rows, fault in zip(frames, rows_of_frames, np.split(checked.fault, np.cumsum(counts)[:-1])):
        _check_frame(frame, rows, fault)
    return checked.area


def _check_frame(frame: TruthFrame, rows: Rows, fault: Array) -> None:
    numbers = [row[TRACK_ID] for row in rows]
    if len(set(numbers)) < len(rows):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        raise Flaw(
            f"has the track {twice} twice in frame {printable(frame.name)}", "Give each track one mask per frame"
        )
    for index in np.flatnonzero(fault)[:1].tolist():
        problem = f"track {rows[index][TRACK_ID]} in frame {printable(frame.name)} {rle.FAULTS[int(fault[index])]}"
        raise Flaw(problem, rle.WRITE_AGAIN)
