"""Tracks in memory score the same bits as files, in parts, in any order and with repetitions."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge import FrameAccumulator, SubmissionError
from tests.data import TRACKS_DATA
from tests.scoring.memory_parts import of_parts, refuse_state, same
from tests.shared import needs_shared


def lines(path: Path) -> dict[int, list[dict[str, Any]]]:
    """Return the masks of each frame in a text file of MOTS."""
    frames: dict[int, list[dict[str, Any]]] = {}
    for line in path.read_text().splitlines():
        frame, track, category, height, width, text = line.split(" ")
        segmentation = {"size": [int(height), int(width)], "counts": text}
        record = {"track_id": int(track), "category_id": int(category), "segmentation": segmentation}
        frames.setdefault(int(frame), []).append(record)
    return frames


@needs_shared
@pytest.mark.parametrize("protocol", ["mots", "kitti-mots"])
def test_tracks_in_memory_score_as_files_do(protocol: str) -> None:
    folder = TRACKS_DATA / "mots"
    truths, sent = folder / "gt", folder / "trackers/ours/data"
    updates = []
    for path in sorted(truths.glob("*/gt/gt.txt")):
        name = path.parent.parent.name
        real, predicted = lines(path), lines(sent / f"{name}.txt")
        length = int((path.parent.parent / "seqinfo.ini").read_text().lower().split("seqlength=")[1].split()[0])
        updates += [(name, index, predicted.get(index, []), real.get(index, [])) for index in range(1, length + 1)]
    same(of_parts(protocol, updates, 5), segjudge.score(str(sent), str(truths), protocol))


@needs_shared
@pytest.mark.parametrize("guided", ["class-guided", "exemplar-guided"])
def test_burst_in_memory_scores_as_files_do(guided: str) -> None:
    folder = TRACKS_DATA / "burst"
    truth, sent = (json.loads((folder / name).read_text()) for name in ("truth.json", f"{guided}.json"))
    of_sequence = {(item["dataset"], item["seq_name"]): item for item in sent["sequences"]}
    updates = []
    for first in truth["sequences"]:
        second = of_sequence[first["dataset"], first["seq_name"]]
        size = [first["height"], first["width"]]
        masks = dict(zip(second["annotated_image_paths"], second["segmentations"]))
        for position, (name, real) in enumerate(zip(first["annotated_image_paths"], first["segmentations"])):
            sides = []
            for side, categories in ((masks[name], second), (real, first)):
                sides.append([
                    {"track_id": int(track), "category_id": categories["track_category_ids"][track],
                     "segmentation": {"size": size, "counts": mask["rle"]}, "score": mask.get("score", 1.0)}
                    for track, mask in side.items()
                ])  # fmt: skip
            facts = {key: first[key] for key in ("neg_category_ids", "not_exhaustive_category_ids")}
            updates.append(
                (f"{first['dataset']}/{first['seq_name']}", position, sides[0], {"annotations": sides[1], **facts})
            )
    for protocol in ("burst", "burst-official") if guided[0] == "c" else ("burst-exemplar-guided",):
        expected = segjudge.score(str(folder / f"{guided}.json"), str(folder / "truth.json"), protocol)
        same(of_parts(protocol, updates, 4, categories=truth["categories"]), expected)


@pytest.mark.long
def test_a_map_of_many_labels_is_refused_soon() -> None:
    labels = np.arange(1000, 1000 + 265 * 265).reshape(265, 265)
    started = time.process_time()
    with pytest.raises(SubmissionError, match="has 70,225 masks in frame 00000. Send at most 500"):
        FrameAccumulator("mots").update("a", 0, labels, labels)
    assert time.process_time() - started < 15


def test_a_state_that_cannot_have_been_counted_makes_no_scores() -> None:
    refuse_state("mots", "00000", b"[[4,6],[[1]],[],{}]")
