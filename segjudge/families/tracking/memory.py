"""Tracks of masks in memory; how they go together is seen in all frames, so run lengths wait until those are there."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from segjudge.evaluation_script.families.base.units import Rows, TruthFrame, no_pixels
from segjudge.evaluation_script.families.tracking.counting import ComparedSequence, check_disjoint, masks_of
from segjudge.evaluation_script.families.tracking.files import CATEGORY, SCORE, TRACK_ID, check_masks, keep_best_rows
from segjudge.evaluation_script.families.tracking.protocols import DISTRACTORS, TracksProtocol
from segjudge.evaluation_script.files.problems import Flaw, Problems, SubmissionError
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.families.base.frame_masks import label_map, run_lengths
from segjudge.families.base.memory import KeptFrames, UnitsInMemory, check_no_map, one_size, refused
from segjudge.masks.run_lengths import encode_labels

#: What a truth of BURST says of a whole sequence, and how the scorer calls it.
SEQUENCE_FACTS = {"neg_category_ids": "neg", "not_exhaustive_category_ids": "loose"}
#: In MOTS' label maps an object is its class times this, plus its number.
CLASS_STEP = 1000


class TracksInMemory(UnitsInMemory):
    """Counts masks that carry the number of their track."""

    protocol: TracksProtocol

    def __init__(self, protocol: TracksProtocol, categories: Sequence[Mapping[str, Any]] = ()) -> None:
        self.protocol = protocol
        self._names = {int(one["id"]): str(one["name"]) for one in categories}
        self._merged = {int(other["id"]): int(one["id"]) for one in categories for other in one.get("merged", [])}

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        where, sizes, problems = f"{sequence}, frame {frame}", list[Size](), Problems()
        real = [row[:SCORE] for row in self._rows(truth, sizes, f"truth of {where}")]
        sent = self._rows(prediction, sizes, f"prediction of {where}")
        sent = keep_best_rows(sent) if self.protocol.burst and not self.protocol.exemplar else sent
        known = TruthFrame(frame, one_size(sizes, "masks", where) or (0, 0), real, no_pixels)
        try:
            check_masks([known, known], [real, sent])
        except Flaw as flaw:
            raise SubmissionError.of(flaw.at(sequence)) from None
        if not self.protocol.burst:
            check_disjoint(sequence, [known], [sent], masks_of([known], [sent]), problems)
        problems.raise_if_any()
        facts = {key: list(truth[key]) for key in SEQUENCE_FACTS if key in truth} if isinstance(truth, Mapping) else {}
        return json.dumps([known.size, real, sent, facts], separators=(",", ":")).encode()

    def _rows(self, side: object, sizes: list[Size], where: str) -> Rows:
        """Return the masks of a frame: number, category, run lengths, score."""
        rows: Rows = []
        for one in self._records(side, where):
            mask, category = run_lengths(one["segmentation"], where), int(one["category_id"])
            sizes.append((int(mask["size"][0]), int(mask["size"][1])))
            score = float(one.get("score", 1))
            rows.append([int(one["track_id"]), self._merged.get(category, category), mask["counts"], score])
        return rows

    def _records(self, side: object, where: str) -> Sequence[Mapping[str, Any]]:
        """Return a record for each mask, of records or of a map of MOTS' numbers."""
        listed = side["annotations"] if isinstance(side, Mapping) and "annotations" in side else side
        if self.protocol.burst:
            check_no_map(listed, self.protocol.name, "a list of track_id, category_id and segmentation for each frame")
        if not isinstance(listed, (list, tuple)):
            labels = label_map(listed, where)
            masks = {number: {"size": labels.shape, "counts": text} for number, text in encode_labels(labels).items()}
            return [
                {"track_id": number, "category_id": number // CLASS_STEP, "segmentation": mask}
                for number, mask in masks.items()
            ]
        if not all(
            isinstance(one, Mapping) and {"track_id", "category_id", "segmentation"} <= one.keys() for one in listed
        ):
            raise refused(where, "has no masks", "Give a list of track_id, category_id and segmentation")
        return listed

    def check(self, data: bytes) -> None:
        _kept(data)

    def facts(self, units: Mapping[str, KeptFrames]) -> dict[str, Any]:
        if not self.protocol.burst:
            return {}
        seen = {row[CATEGORY] for frames in units.values() for data in frames.values() for row in _kept(data)[0].rows}
        return {"classes": [[self._names.get(one, str(one)), one] for one in sorted(seen - DISTRACTORS)]}

    def tables(self, frames: KeptFrames, facts: Mapping[str, Any]) -> dict[str, Array]:
        kept = list(map(_kept, frames.values()))
        known = [frame for frame, _, _ in kept]
        sent = [rows for _, rows, _ in kept]
        if self.protocol.exemplar:  # a prediction is of the category of the object that it follows
            category = {row[TRACK_ID]: row[CATEGORY] for frame in known for row in frame.rows}
            sent = [
                keep_best_rows([[one, category[one], mask, score] for one, _, mask, score in rows if one in category])
                for rows in sent
            ]
        of_unit = {key: kept[0][2].get(long, []) for long, key in SEQUENCE_FACTS.items()}
        classes = [(name, one) for name, one in self.protocol.classes or facts["classes"]]
        return ComparedSequence(known, (sent, masks_of(known, sent)), self.protocol, of_unit).tables(classes)


def _kept(data: bytes) -> tuple[TruthFrame, Rows, dict[str, Any]]:
    """Return a frame's truth, what was predicted, and what the truth says of the sequence."""
    try:
        (height, width), real, sent, facts = json.loads(data)
        return TruthFrame("", (int(height), int(width)), list(real), no_pixels), list(sent), dict(facts)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"is not the tracks of a frame ({error})") from None
