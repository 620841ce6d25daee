"""Truth and submissions of SA-Co: COCO JSON whose images are pairs of a picture and a noun phrase.

A truth is one JSON file or a folder of them. Files whose names differ only in the annotator's letter
(`…_a_release_test.json`) hold the same pairs; each other name is a subset. A submission is one list of COCO results per
subset.
"""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from ...files import (
    HOST_LIMITS,
    ArchiveLimits,
    Flaw,
    HostError,
    Problems,
    SubmissionError,
    TruthFlaw,
    printable,
    quantity,
)
from ...files.archive import open_files, truth_error
from ...masks import polygons
from ...masks import run_lengths as rle
from ...masks.backend import backend
from ...masks.run_lengths import Masks, MaskTexts, pack_texts
from ...masks.stack import Array, Size
from ...runner.tuning import without_collector
from ..base.units import TruthFrame, Unit, UnitTruth, no_pixels
from ..instances.records import is_finite
from .protocols import LEAST_SCORE, PICTURES_LAYOUT, PhraseProtocol
from .records import MOST_PROBLEMS, PairSubmission, RecordReader
from .videos import open_truth as open_videos

_EXAMPLE = '[{"image_id": 10000000, "segmentation": {"size": [h, w], "counts": "..."}, "score": 0.9}, ...]'
_SEND = f"Send one JSON with a list of records {_EXAMPLE}; for several subsets, send a zip with a SUBSET.json for each"
#: The name of a truth: its subset, and the letter of its annotator.
_NAME = re.compile(
    r"(?:(?:gold|silver)_)?(?P<subset>.+?)(?:_merged)?(?P<annotator>[._-](?:truth_)?[a-z])?(?:_release)?(?:_test)?(?:\.truth)?"
)
#: The maximum number of pixels of a mask whose size differs from its pair's, which the script accepts.
_MOST_PIXELS = 1 << 26


# ── the truth ──


def read_truth(path: str, subset: str = "") -> UnitTruth:
    """Read a published truth: a JSON of videos or of one annotator, or a folder or archive with all annotators."""
    try:
        if path.endswith(".json"):
            with open(path, "rb") as file:
                document = _parse(file.read())
            if "videos" in document:
                return open_videos(path, document)
            return _open_truth({_subset_of(path): [_open_annotator(path, document)]})
        files = open_files(path, HOST_LIMITS)
        names: Dict[str, List[str]] = {}
        for name in sorted(files.sizes):
            if name.endswith(".json") and (not subset or subset in name):
                names.setdefault(_subset_of(name), []).append(name)
        if not names:
            raise TruthFlaw("holds no JSON", "Name the JSON of SA-Co, or the folder that holds it")
        file_names = [name for subset_names in names.values() for name in subset_names]
        first_document = _parse(files.read(file_names[0]))
        if "videos" in first_document:
            if len(file_names) > 1:
                raise TruthFlaw(
                    f"holds {len(file_names)} JSON files", "Name one file of SA-Co/VEval; each is scored separately"
                )
            return open_videos(file_names[0], first_document)
        documents = {file_names[0]: first_document}
        return _open_truth(
            {
                subset: [
                    _open_annotator(name, documents.pop(name, {}) or _parse(files.read(name))) for name in subset_names
                ]
                for subset, subset_names in names.items()
            }
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Flaw, SubmissionError) as error:
        raise truth_error(path, error, "cannot be read as the truth of SA-Co") from None


def _parse(data: bytes) -> Dict[str, Any]:
    with without_collector():
        document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("is not a JSON object")
    return document


def _subset_of(path: str) -> str:
    match = _NAME.fullmatch(os.path.splitext(os.path.basename(path))[0])
    return match["subset"] if match else path


#: The size and completeness of each pair, and its rows of crowd flag, mask and area.
_Pairs = Dict[int, Tuple[Size, bool]]
_Rows = Dict[int, List[Tuple[int, str, int]]]


@dataclass(frozen=True)
class _Annotator:
    """One annotator's data for each pair."""

    name: str
    pairs: _Pairs
    phrases: Dict[int, str]
    rows: _Rows
    categories: List[int]


def _open_annotator(name: str, document: Dict[str, Any]) -> _Annotator:
    pairs = {
        image["id"]: ((image["height"], image["width"]), bool(image["is_instance_exhaustive"]))
        for image in document["images"]
    }
    if len(pairs) != len(document["images"]):
        raise TruthFlaw("lists a pair twice", "List each pair once")
    phrases = {image["id"]: str(image.get("text_input", "")) for image in document["images"]}
    categories = [category["id"] for category in document["categories"]]
    return _Annotator(name, pairs, phrases, _read_rows(document, pairs), categories)


def _read_rows(document: Dict[str, Any], pairs: _Pairs) -> _Rows:
    """Return the rows of each pair."""
    texts: List[str] = []
    for annotation in document["annotations"]:
        mask, (size, _) = annotation["segmentation"], pairs[annotation["image_id"]]
        if list(mask["size"]) != list(size):
            raise TruthFlaw(
                f"annotation {annotation['id']} has a mask whose size differs from its pair's", "Encode it again"
            )
        texts.append(rle.text_of(mask["counts"], size[0] * size[1]))
    sizes = (pairs[annotation["image_id"]][0] for annotation in document["annotations"])
    pixels = np.array([height * width for height, width in sizes], np.int64)
    checked = backend().check_masks(texts, pixels)
    for index in np.flatnonzero(checked.fault).tolist():
        raise Flaw(
            f"annotation {document['annotations'][index]['id']} {rle.FAULTS[int(checked.fault[index])]}",
            rle.WRITE_AGAIN,
        )
    rows: _Rows = {}
    for annotation, text, area in zip(document["annotations"], texts, checked.area.tolist()):
        rows.setdefault(annotation["image_id"], []).append((int(annotation.get("iscrowd", 0)), text, area))
    return rows


def _open_truth(subsets: Dict[str, List[_Annotator]]) -> UnitTruth:
    units: List[Unit] = []
    elsewhere: List[str] = []
    notes: List[str] = []
    categories: List[List[Any]] = []
    for index, (subset, annotators) in enumerate(subsets.items()):
        sizes: Dict[int, Size] = {}
        for annotator in annotators:
            for pair, (size, _) in annotator.pairs.items():
                if sizes.setdefault(pair, size) != size:
                    raise HostError(f"{annotator.name}: pair {pair} has a different size in another file")
        lacking = sum(not all(pair in annotator.pairs for annotator in annotators) for pair in sizes)
        if lacking:
            notes.append(
                f"{subset}: {quantity(lacking, 'pair')} not listed by every annotator; annotators are skipped for "
                "pairs that they do not list"
            )
        categories += [[index, category] for category in sorted(set(annotators[0].categories))]
        empty = sum(not area for annotator in annotators for rows in annotator.rows.values() for _, _, area in rows)
        if empty:
            notes.append(f"{subset}: {quantity(empty, 'mask')} without pixels, which have no effect")
        if not any(annotator.rows.keys() != annotator.pairs.keys() for annotator in annotators):
            notes.append(f"{subset}: every pair has objects, so IL_MCC and cgF1 are not defined")
        for pair, size in sizes.items():
            name = _unit_name(subset, pair, len(subsets))
            asked = [annotator for annotator in annotators if pair in annotator.pairs]
            if not all(annotator.pairs[pair][1] for annotator in asked):
                elsewhere.append(name)
                continue
            rows = [annotator.rows.get(pair, []) for annotator in asked]
            units.append(_make_unit(name, size, rows, index, asked[0].phrases[pair]))
    facts = {"subsets": [[subset] for subset in subsets], "listed": categories}
    return UnitTruth(PhraseProtocol.family, PICTURES_LAYOUT, facts, units, notes, frozenset(elsewhere))


def _unit_name(subset: str, pair: int, subsets: int) -> str:
    return f"{subset}/{pair}" if subsets > 1 else str(pair)


def _make_unit(name: str, size: Size, rows: List[List[Tuple[int, str, int]]], subset: int, phrase: str) -> Unit:
    facts: Dict[str, Any] = {"subset": subset, "size": size, "annotators": len(rows)}
    if phrase:
        facts["text"] = phrase
    return Unit(name, 1 + sum(map(len, rows)), lambda: [TruthFrame(name, size, rows, no_pixels)], facts)


# ── a submission ──


@dataclass(frozen=True)
class _Predictions:
    """The counted predictions, sorted by pair: starts of pairs, masks, and flags of wrong sizes."""

    starts: Dict[str, Tuple[int, int]]
    masks: MaskTexts
    area: Array
    other_size: Array


class PhraseSubmission(PairSubmission):
    """The predictions of all pairs of pictures."""

    predicted, send = "prediction", _SEND

    def read_upload(self) -> None:
        truth, problems = self.truth, Problems()
        subsets = [subset for (subset,) in truth.facts["subsets"]]
        lists = {(unit.facts["subset"], unit.facts["annotators"]) for unit in truth.units}
        if self.protocol.official and len(lists) > len(subsets):
            raise HostError("not every annotator lists every pair, which stops SA-Co's script: use the other protocol")
        members = self._find_members(subsets)
        self._reader = reader = _Reader(truth, self.limits, official=self.protocol.official)
        for index, (subset, member) in enumerate(members.items()):
            reader.begin_subset(index, subset if len(subsets) > 1 else "")
            reader.read(self.files.read_chunks(member), member, problems)
        problems.raise_if_any()
        self._predictions = reader.sort()

    def _find_members(self, subsets: Sequence[str]) -> Dict[str, str]:
        """Return the JSON of each subset, found by its file name or folder if there are several."""
        if len(subsets) == 1:
            return {subsets[0]: self.find_json()}
        names = [name for name in self.files.sizes if name.lower().endswith(".json")]
        if not names:
            raise Flaw(self.describe_files("JSON file"), _SEND)
        members: Dict[str, str] = {}
        for subset in subsets:
            subset_members = [
                name for name in names if subset in {_subset_of(component) for component in name.split("/")}
            ]
            if len(subset_members) != 1:
                raise Flaw(
                    f"holds {quantity(len(subset_members), 'JSON file')} for the subset {printable(subset)}", _SEND
                )
            members[subset] = subset_members[0]
        self.used_files = set(members.values())
        return members

    def list_masks(self, pair: str) -> List[Tuple[int, str]]:
        start, stop = self._predictions.starts.get(pair, (0, 0))
        return [(0, self._predictions.masks[number]) for number in range(start, stop)]

    def masks(self, pair: str, size: Size) -> Tuple[Masks, Array]:
        """Return the masks of a pair, and flags of those with a different size."""
        predictions = self._predictions
        start, stop = predictions.starts.get(pair, (0, 0))
        records, sizes = slice(start, stop), np.array([size] * (stop - start), np.int64).reshape(-1, 2)
        return Masks(predictions.masks.take(records), predictions.area[records], sizes), predictions.other_size[records]


class _PairMask(NamedTuple):
    """A record's mask for a pair."""

    #: The index of the record in its part.
    record: int
    pair: int
    size: Size
    #: Whether its score is high enough to count.
    counts: bool


class _Reader(RecordReader):
    """A reader of records, subset by subset, that keeps the counted ones."""

    most_predictions, counted, send_fewer = 1_000, "predictions with a score of at least 0.5", "Send fewer"
    send_fewer_records = "Send only predictions with a score of at least 0.5"

    def __init__(self, truth: UnitTruth, limits: ArchiveLimits, *, official: bool) -> None:
        super().__init__(truth, limits, official=official)
        self._unit = dict(zip(self._names, range(len(self._names))))
        self._sizes: List[Size] = [tuple(unit.facts["size"]) for unit in truth.units]
        self._several = any(unit.facts["annotators"] > 1 for unit in truth.units[:1])
        self._listed = {(index, category) for index, category in truth.facts["listed"]}
        #: For each counted record: its pair, and whether its size differs.
        self._pairs: List[Array] = []
        self._other_size: List[Array] = []
        #: Whether the first record of a pair has a box, which the script reads.
        self._boxed: Dict[int, bool] = {}

    def begin_subset(self, subset: int, folder: str) -> None:
        """Start the records of a subset; `folder` is the prefix of its pairs' names."""
        self._subset, self._folder, self._count_before = subset, folder, self._count

    def _read_part(self, records: List[Any], member: str, problems: Problems) -> None:
        records_before = self._count - self._count_before

        def add_problem(index: int, pair_text: str, flaw: Flaw) -> None:
            problems.add(flaw.as_problem(f"{member}, record {records_before + index} (pair {pair_text})"))

        texts, rows, scores = self._read_masks(records, add_problem, problems)
        self.scores.add(scores)
        pixels = [math.prod(row.size) for row in rows]
        checked = backend().check_masks(texts, np.array(pixels, np.int64))
        for number in np.flatnonzero(checked.fault).tolist():
            row = rows[number]
            add_problem(
                row.record, self._names[row.pair], Flaw(rle.FAULTS[int(checked.fault[number])], rle.WRITE_AGAIN)
            )
        other_size = np.array([row.size != self._sizes[row.pair] for row in rows], bool)
        for number in np.flatnonzero(other_size).tolist():  # whose runs do not fill the pair's pixels
            texts[number] = rle.compress([math.prod(self._sizes[rows[number].pair])])
        pairs, is_counted = np.array([row.pair for row in rows], np.int64), np.array([row.counts for row in rows], bool)
        # An empty mask has no effect here; in the script it is a prediction, and a mask of another size overlaps
        # nothing.
        if not self._official:
            self.empty += int(np.count_nonzero(is_counted & (checked.area == 0)))
            is_counted &= checked.area > 0
        self._check_counts(pairs[is_counted], problems)
        self._pairs.append(pairs[is_counted])
        self._other_size.append(other_size[is_counted])
        self._masks.append(pack_texts([texts[number] for number in np.flatnonzero(is_counted).tolist()]))
        self._areas.append(checked.area[is_counted])

    def _read_masks(
        self, records: List[Any], add_problem: Callable[[int, str, Flaw], None], problems: Problems
    ) -> Tuple[List[str], List[_PairMask], List[float]]:
        """Return the masks of valid records as text, their pairs and their scores, up to the limit of problems."""
        texts: List[str] = []
        rows: List[_PairMask] = []
        scores: List[float] = []
        for index, record in enumerate(records):
            try:
                pair = self._pair_of(record)
                if pair is None or (self._official and not self._is_listed(record, pair)):
                    continue
                size, text = self._mask_of(record, pair)
                score = record["score"]
                if not is_finite(score):
                    raise Flaw(
                        f"has the score {printable(repr(score))}, which is not a finite number", "Write a number"
                    )
            except Flaw as flaw:
                add_problem(index, printable(record.get("image_id", "?") if isinstance(record, dict) else "?"), flaw)
                if problems.places >= MOST_PROBLEMS:
                    break
                continue
            texts.append(text)
            rows.append(_PairMask(index, pair, size, score >= LEAST_SCORE))
            scores.append(score)
        return texts, rows, scores

    def _pair_of(self, record: Any) -> "int | None":
        """Return the pair of a record; None if the record is not scored."""
        if not isinstance(record, dict) or not {"image_id", "score"} <= record.keys():
            raise Flaw("lacks image_id or score", f"Write {_EXAMPLE}")
        if type(record["image_id"]) is not int:
            raise Flaw("has an image_id that is not a whole number", "Write the id of the pair as a number")
        name = f"{self._folder}/{record['image_id']}" if self._folder else str(record["image_id"])
        pair = self._unit.get(name)
        if pair is None and not self._official and name not in self._elsewhere:
            raise Flaw(
                "belongs to a pair that the truth lacks", "Use the ids under `images` in the truth, one per pair"
            )
        return pair

    def _is_listed(self, record: Dict[str, Any], pair: int) -> bool:
        """Return whether the script would use a record; raises a Flaw if the script would stop."""
        if "category_id" not in record:
            raise Flaw(
                "lacks category_id, without which SA-Co's script stops", f'Write "category_id": 1 too: {_EXAMPLE}'
            )
        boxed = bool(record.get("bbox"))
        if (self._boxed.setdefault(pair, boxed) and not boxed) or (self._several and not boxed):
            raise Flaw("lacks a bbox, without which SA-Co's script stops", "Write a bbox in every record, or in none")
        category = record["category_id"]
        return type(category) is int and (self._subset, category) in self._listed

    def _mask_of(self, record: Dict[str, Any], pair: int) -> Tuple[Size, str]:
        """Return the size and the compressed runs of a record's mask, unchecked."""
        height, width = self._sizes[pair]
        mask = record.get("segmentation")
        if mask is None and self._official and record.get("bbox"):
            return (height, width), polygons.polygon_mask([_outline_box(record["bbox"])], height, width)
        size, counts = rle.read_encoding(mask, _EXAMPLE)
        is_taken = self._official and min(size) >= 1 and size[0] * size[1] <= _MOST_PIXELS
        if size != (height, width) and not is_taken:
            raise rle.other_size(size, (height, width))
        return size, rle.text_of(counts, size[0] * size[1])

    def sort(self) -> _Predictions:
        """Return the predictions by pair."""
        pairs = np.concatenate([np.zeros(0, np.int64), *self._pairs])
        order = np.argsort(pairs, kind="stable")
        numbers, starts, counts = np.unique(pairs[order], return_index=True, return_counts=True)
        bounds = {
            self._names[number]: (start, start + count)
            for number, start, count in zip(numbers.tolist(), starts.tolist(), counts.tolist())
        }
        area = np.concatenate([np.zeros(0, np.int64), *self._areas])[order]
        other_size = np.concatenate([np.zeros(0, bool), *self._other_size])[order]
        return _Predictions(bounds, rle.join_texts(self._masks).take(order), area, other_size)


def _outline_box(box: object) -> List[float]:
    """Return the corners of a box, each x and y in turn."""
    if not isinstance(box, list) or len(box) != 4 or not all(map(is_finite, box)):
        raise Flaw("has a bbox that is not [x, y, width, height]", "Write four numbers")
    x, y, width, height = box
    return [x, y, x, y + height, x + width, y + height, x + width, y]
