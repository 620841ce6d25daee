"""Tracks of masks in memory; run lengths wait, since association needs all frames."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from segjudge.evaluation_script.families.base.units import Rows, TruthFrame, no_pixels
from segjudge.evaluation_script.families.tracking.counting import ComparedSequence, check_disjoint, measure_masks
from segjudge.evaluation_script.families.tracking.files import CATEGORY, SCORE, TRACK_ID, check_masks, keep_best_rows
from segjudge.evaluation_script.families.tracking.protocols import DISTRACTORS, TracksProtocol
from segjudge.evaluation_script.files.problems import Problems
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.families.base.memory import (
    UnitFrames,
    UnitsInMemory,
    common_size,
    read_checked_mask,
    read_labels,
    read_run_lengths,
    refusal,
    refuse_flaws,
    refuse_label_map,
)
from segjudge.masks.run_lengths import encode_labels

#: The facts of BURST's truth about a sequence, and their names in the scorer.
_SEQUENCE_FACTS = {"neg_category_ids": "neg", "not_exhaustive_category_ids": "loose"}
#: In MOTS' label maps, an object is its class times this, plus its number.
_CLASS_STEP = 1000
_FORM = "Give a list of track_id, category_id and segmentation"


class TracksInMemory(UnitsInMemory):
    """A counter of masks that carry their track number."""

    protocol: TracksProtocol

    def __init__(self, protocol: TracksProtocol, categories: Sequence[Mapping[str, Any]] = ()) -> None:
        self.protocol = protocol
        self._names = {int(category["id"]): str(category["name"]) for category in categories}
        self._merged = {
            int(merged["id"]): int(category["id"]) for category in categories for merged in category.get("merged", [])
        }

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        location, sizes, problems = f"{sequence}, frame {frame}", list[Size](), Problems()
        true_rows = [row[:SCORE] for row in self._read_rows(truth, sizes, f"truth of {location}")]
        predicted_rows = self._read_rows(prediction, sizes, f"prediction of {location}")
        predicted_rows = (
            keep_best_rows(predicted_rows) if self.protocol.burst and not self.protocol.exemplar else predicted_rows
        )
        truth_frame = TruthFrame(frame, common_size(sizes, "masks", location) or (0, 0), true_rows, no_pixels)
        with refuse_flaws(sequence):
            check_masks([truth_frame, truth_frame], [true_rows, predicted_rows])
        if not self.protocol.burst:
            areas = measure_masks([truth_frame], [predicted_rows])
            check_disjoint(sequence, [truth_frame], [predicted_rows], areas, problems)
        problems.raise_if_any()
        facts = {key: list(truth[key]) for key in _SEQUENCE_FACTS if key in truth} if isinstance(truth, Mapping) else {}
        return json.dumps([truth_frame.size, true_rows, predicted_rows, facts], separators=(",", ":")).encode()

    def _read_rows(self, side: object, sizes: list[Size], location: str) -> Rows:
        """Read the masks of a frame: number, category, run lengths, score."""
        rows: Rows = []
        for record in self._read_records(side, location):
            mask, category = read_run_lengths(record["segmentation"], location), int(record["category_id"])
            text, size = mask["counts"], (int(mask["size"][0]), int(mask["size"][1]))
            if not isinstance(text, str):
                text, _, size = read_checked_mask(mask, location, _FORM)
            sizes.append(size)
            score = float(record.get("score", 1))
            rows.append([int(record["track_id"]), self._merged.get(category, category), text, score])
        return rows

    def _read_records(self, side: object, location: str) -> Sequence[Mapping[str, Any]]:
        """Return a record per mask, from records or a map of MOTS' numbers."""
        rows = side["annotations"] if isinstance(side, Mapping) and "annotations" in side else side
        if self.protocol.burst:
            refuse_label_map(
                rows, self.protocol.name, "a list of track_id, category_id and segmentation for each frame"
            )
        if not isinstance(rows, (list, tuple)):
            labels = read_labels(rows, location)
            masks = {number: {"size": labels.shape, "counts": text} for number, text in encode_labels(labels).items()}
            return [
                {"track_id": number, "category_id": number // _CLASS_STEP, "segmentation": mask}
                for number, mask in masks.items()
            ]
        if not all(
            isinstance(record, Mapping) and {"track_id", "category_id", "segmentation"} <= record.keys()
            for record in rows
        ):
            raise refusal(location, "has no masks", _FORM)
        return rows

    def check(self, data: bytes) -> None:
        _read_frame(data)

    def facts(self, units: Mapping[str, UnitFrames]) -> dict[str, Any]:
        if not self.protocol.burst:
            return {}
        categories = {
            row[CATEGORY] for frames in units.values() for data in frames.values() for row in _read_frame(data)[0].rows
        }
        return {
            "classes": [[self._names.get(number, str(number)), number] for number in sorted(categories - DISTRACTORS)]
        }

    def tables(self, frames: UnitFrames, facts: Mapping[str, Any]) -> dict[str, Array]:
        frames_read = list(map(_read_frame, frames.values()))
        truths = [frame for frame, _, _ in frames_read]
        predictions = [rows for _, rows, _ in frames_read]
        if self.protocol.exemplar:  # a prediction has the category of its object
            category = {row[TRACK_ID]: row[CATEGORY] for frame in truths for row in frame.rows}
            predictions = [
                keep_best_rows(
                    [[number, category[number], mask, score] for number, _, mask, score in rows if number in category]
                )
                for rows in predictions
            ]
        of_unit = {key: frames_read[0][2].get(long, []) for long, key in _SEQUENCE_FACTS.items()}
        classes = [(name, number) for name, number in self.protocol.classes or facts["classes"]]
        areas = measure_masks(truths, predictions)
        return ComparedSequence(truths, (predictions, areas), self.protocol, of_unit).tables(classes)


def _read_frame(data: bytes) -> tuple[TruthFrame, Rows, dict[str, Any]]:
    """Return a frame's truth and prediction, and the truth's facts about the sequence."""
    try:
        (height, width), true_rows, predicted_rows, facts = json.loads(data)
        return TruthFrame("", (int(height), int(width)), list(true_rows), no_pixels), list(predicted_rows), dict(facts)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"does not hold the tracks of one frame ({error})") from None
