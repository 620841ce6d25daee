"""Draw the pictures of docs/metrics.md about whole images and tracks."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from drawing import INK, PALE, Drawing
from numpy.typing import NDArray
from PIL import Image

import segjudge
from segjudge.evaluation_script.families.panoptic.protocols import PANOPTIC_PROTOCOLS
from segjudge.evaluation_script.families.tracking.protocols import TRACKS_PROTOCOLS
from segjudge.masks.run_lengths import encode_labels
from segjudge.report.colours import METHODS

Labels = NDArray[np.int64]
COLOURS = METHODS[:4]


def scored(prediction: Path, truth: Path, protocol: str) -> dict[str, float | None]:
    """Return the metrics of results."""
    (metrics,) = segjudge.score(str(prediction), str(truth), protocol).metrics.values()
    return metrics


def panoptic() -> Drawing:
    """Draw PQ: the fit of matched segments, and how many match."""
    size = (60, 90)
    y, x = np.mgrid[: size[0], : size[1]]
    truth, prediction = np.ones(size, np.int64), np.ones(size, np.int64)
    for labels, shift in ((truth, 0), (prediction, 4)):
        labels[(y - 32) ** 2 + (x - 22 - shift) ** 2 < 18**2] = 2
        labels[(abs(y - 34) < 14) & (abs(x - 62 - 3 * shift) < 14)] = 3
    prediction[(y < 12) & (x > 60)] = 4
    with tempfile.TemporaryDirectory() as name:
        metrics = scored(*panoptic_files(Path(name), truth, prediction))
    drawing = Drawing(560, 260, "PQ of an image: the mean IoU of matched segments, times an F1 of matching")
    for labels, left, words in ((truth, 15, "truth"), (prediction, 205, "prediction")):
        for number, colour in enumerate(("#f0f0f0", *COLOURS[:2], COLOURS[3]), 1):
            drawing.mask(labels == number, colour, (left, 35), 2)
        drawing.box((left, 35), (180, 120))
        drawing.text(words, left + 90, 26, anchor="middle")
    for number, what in ((1, "ground"), (2, "disk"), (3, "square")):
        shared = np.count_nonzero((truth == number) & (prediction == number))
        union = np.count_nonzero((truth == number) | (prediction == number))
        fits = "matches" if shared > union / 2 else "no match: one missed, one too many"
        drawing.text(f"{what}: IoU {shared / union:.2f}, {fits}", 15, 158 + 20 * number)
    drawing.text("patch, taken for a disk: one too many", 15, 238)
    for row, name in enumerate(("SQ", "RQ", "PQ")):
        drawing.text(f"{name} = {metrics[name]:.3f}", 420, 60 + 28 * row, size=16)
    drawing.text("means over categories", 420, 140, size=11)
    return drawing


def id_png(labels: Labels) -> bytes:
    """Return a PNG whose red is the id."""
    data = io.BytesIO()
    Image.fromarray(np.stack([labels, 0 * labels, 0 * labels], axis=-1).astype(np.uint8)).save(data, "PNG")
    return data.getvalue()


def panoptic_files(folder: Path, truth: Labels, prediction: Labels) -> tuple[Path, Path, str]:
    """Write an image of segments, numbered by category, in COCO's form; one patch is predicted as a disk."""
    categories = [{"id": number, "name": str(number), "isthing": int(number > 1)} for number in (1, 2, 3)]
    documents: list[dict[str, Any]] = []
    for labels in (prediction, truth):
        numbers, areas = np.unique(labels, return_counts=True)
        segments = [
            {"id": int(number), "category_id": int(number) % 4 or 2, "iscrowd": 0, "area": int(area)}
            for number, area in zip(numbers, areas)
        ]
        documents.append({"annotations": [{"image_id": 1, "file_name": "1.png", "segments_info": segments}]})
    results = folder / "results.zip"
    with zipfile.ZipFile(results, "w") as archive:
        archive.writestr("results.json", json.dumps(documents[0]))
        archive.writestr("1.png", id_png(prediction))
    listing = {"images": [{"id": 1, "file_name": "1.png"}], "categories": categories}
    (folder / "truth.json").write_text(json.dumps({**documents[1], **listing}), encoding="utf-8")
    (folder / "truth").mkdir()
    (folder / "truth/1.png").write_bytes(id_png(truth))
    return results, folder / "truth.json", next(iter(PANOPTIC_PROTOCOLS))


def tracks() -> Drawing:
    """Draw HOTA: two objects; one changes its track, the other is lost for some frames."""
    frames = 20
    identities = [[1 if k < 10 else 3 for k in range(frames)], [0 if 6 <= k < 11 else 2 for k in range(frames)]]
    with tempfile.TemporaryDirectory() as name:
        metrics = scored(*track_files(Path(name), identities))
    drawing = Drawing(560, 230, "HOTA of two tracks: detection and association")
    for row, (words, found) in enumerate(zip(("person A", "person B"), identities)):
        top = 40 + 70 * row
        drawing.text(words, 15, top + 24)
        for frame, track in enumerate(found):
            colour = COLOURS[track] if track else "#ffffff"
            drawing.box((90 + 15 * frame, top), (13, 36), colour)
    drawing.line([(90, 170), (90 + 15 * frames, 170)], PALE)
    drawing.text("frames →", 90, 186, size=11)
    drawing.text("a colour is a predicted track; white: nothing predicted", 90, 212, size=12)
    for row, key in enumerate(("DetA", "AssA", "HOTA", "IDF1", "MOTSA")):
        drawing.text(f"{key} = {metrics[key]:.3f}", 420, 50 + 28 * row, size=16, colour=INK)
    return drawing


def track_files(folder: Path, identities: list[list[int]]) -> tuple[Path, Path, str]:
    """Write two people who stand still, and their predicted tracks, in MOTS's form."""
    lines: dict[str, list[str]] = {"truth": [], "results": []}
    for frame in range(len(identities[0])):
        for person, found in enumerate(identities):
            labels = np.zeros((40, 60), np.uint8)
            labels[10:30, 10 + 25 * person : 22 + 25 * person] = 1
            counts = encode_labels(labels)[1]
            lines["truth"].append(f"{frame + 1} {2001 + person} 2 40 60 {counts}")
            if found[frame]:
                lines["results"].append(f"{frame + 1} {2000 + found[frame]} 2 40 60 {counts}")
    (folder / "truth/one/gt").mkdir(parents=True)
    (folder / "truth/one/gt/gt.txt").write_text("\n".join(lines["truth"]) + "\n", encoding="utf-8")
    info = f"[Sequence]\nname=one\nseqLength={len(identities[0])}\nimHeight=40\nimWidth=60\n"
    (folder / "truth/one/seqinfo.ini").write_text(info, encoding="utf-8")
    results = folder / "results.zip"
    with zipfile.ZipFile(results, "w") as archive:
        archive.writestr("one.txt", "\n".join(lines["results"]) + "\n")
    return results, folder / "truth", next(iter(TRACKS_PROTOCOLS))
