"""Draw the pictures of docs/metrics.md: `python docs/site/pictures.py [FOLDER]` (default: docs/metrics).

Every number in them is what Segjudge's scorers say about the masks that are drawn.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from drawing import BOTH, PALE, PREDICTION, TRUTH, Drawing, Mask
from PIL import Image
from track_pictures import panoptic, tracks

import segjudge
from segjudge.evaluation_script.families.sequences.losses import KINDS
from segjudge.evaluation_script.masks.similarity import Region, reach
from segjudge.evaluation_script.masks.stack import crop, pack, unpack

FOLDER = Path(__file__).resolve().parents[1] / "metrics"
SIDES = {"truth alone": TRUTH, "prediction alone": PREDICTION, "both": BOTH}


def ellipse(size: tuple[int, int], centre: tuple[float, float], radii: tuple[float, float]) -> Mask:
    """Return the pixels of an ellipse; centres and radii are (row, column)."""
    y, x = np.mgrid[: size[0], : size[1]]
    inside: Mask = ((y - centre[0]) / radii[0]) ** 2 + ((x - centre[1]) / radii[1]) ** 2 <= 1
    return inside


def frame_scores(prediction: Mask, truth: Mask) -> dict[str, float]:
    """Return J and F of one frame; DAVIS skips the first and the last."""
    sides = [np.repeat(side[None], 3, axis=0).astype(np.uint8) for side in (prediction, truth)]
    metrics = segjudge.score_arrays(*sides, "davis2017").metrics["all"]
    return {"J": metrics["J-Mean"] or 0.0, "F": metrics["F-Mean"] or 0.0}


def pair() -> tuple[Mask, Mask]:
    """Return the truth and the prediction of the first pictures."""
    size = (60, 80)
    truth = ellipse(size, (30, 36), (20, 24))
    prediction = ellipse(size, (30, 37), (19, 24)) & ~ellipse(size, (16, 58), (11, 14)) | ellipse(
        size, (50, 66), (4, 8)
    )
    return truth, prediction


def region() -> Drawing:
    """Draw J: the pixels in both masks, divided by the pixels in either."""
    truth, prediction = pair()
    drawing = Drawing(560, 270, "J is the intersection of truth and prediction, divided by their union")
    for mask, colour in ((truth & ~prediction, TRUTH), (prediction & ~truth, PREDICTION), (truth & prediction, BOTH)):
        drawing.mask(mask, colour, (15, 15), 4)
    drawing.box((15, 15), (320, 240))
    drawing.legend(SIDES, 355, 40)
    shared, union = np.count_nonzero(truth & prediction), np.count_nonzero(truth | prediction)
    drawing.text(f"J = {shared:,} / {union:,}", 355, 130, size=18)
    drawing.text(f"= {frame_scores(prediction, truth)['J']:.3f}", 374, 155, size=18)
    return drawing


def boundary_of(mask: Mask) -> Mask:
    """Return the boundary as the scorers compute it."""
    stack = Region(crop(pack(np.pad(mask[None], ((0, 0), (0, 0), (0, -mask.shape[1] % 64)))), mask.shape)).boundary
    found = np.zeros((mask.shape[0], 64 * (-(-mask.shape[1] // 64))), bool)
    rows, words = stack.words.shape[1:]
    bits = unpack(np.ascontiguousarray(stack.words[0]), 64 * words)
    found[stack.top : stack.top + rows, 64 * stack.column : 64 * (stack.column + words)] = bits
    return found[:, : mask.shape[1]]


def near(mask: Mask, radius: int) -> Mask:
    """Return the pixels within a distance of a mask."""
    rows, columns = np.nonzero(mask)
    y, x = np.mgrid[: mask.shape[0], : mask.shape[1]]
    distances = (y[..., None] - rows) ** 2 + (x[..., None] - columns) ** 2
    found: Mask = distances.min(axis=-1) <= radius**2
    return found


def boundary() -> Drawing:
    """Draw F: the boundary pixels of each side near the other boundary."""
    truth, prediction = pair()
    sides = boundary_of(truth), boundary_of(prediction)
    radius = reach(truth.shape)
    matched = [side & near(other, radius) for side, other in (sides, sides[::-1])]
    drawing = Drawing(560, 270, "F is the harmonic mean of how much of each boundary is near the other")
    drawing.mask(sides[0] & ~matched[0], TRUTH, (15, 15), 4)
    drawing.mask(sides[1] & ~matched[1], PREDICTION, (15, 15), 4)
    drawing.mask(matched[0] | matched[1], BOTH, (15, 15), 4)
    drawing.box((15, 15), (320, 240))
    drawing.legend({"truth, missed": TRUTH, "prediction, too far": PREDICTION, f"within {radius} pixel": BOTH}, 355, 40)
    recall, precision = (np.count_nonzero(hit) / np.count_nonzero(side) for hit, side in zip(matched, sides))
    drawing.text(f"recall {recall:.3f}", 355, 125, size=15)
    drawing.text(f"precision {precision:.3f}", 355, 147, size=15)
    value = frame_scores(prediction, truth)["F"]
    if abs(value - 2 * precision * recall / (precision + recall)) > 1e-9:
        raise AssertionError("the picture is not what is scored")
    drawing.text(f"F = {value:.3f}", 355, 180, size=18)
    return drawing


def over_time() -> Drawing:
    """Draw J of each frame, with mean, recall and decay."""
    size, frames = (60, 80), 26
    truth = np.array([ellipse(size, (30, 20 + 1.5 * k), (14, 12)) for k in range(frames)])
    lost = [0.35 * k + (9 if 14 <= k < 18 else 0) for k in range(frames)]
    prediction = np.array([ellipse(size, (30, 20 + 1.5 * k + off), (14, 12)) for k, off in enumerate(lost)])
    metrics = segjudge.score_arrays(prediction.astype(np.uint8), truth.astype(np.uint8), "davis2017").metrics["all"]
    values = [frame_scores(*sides)["J"] for sides in zip(prediction[1:-1], truth[1:-1])]
    drawing = Drawing(560, 270, "J over the frames of a video: mean, recall and decay")
    left, top, step, height = 40, 20, 15, 180
    for first, colour in ((0, "#dcefe9"), (18, "#fbeecd")):
        drawing.box((left + first * step, top), (6 * step, height), colour)
    for place, value in enumerate(values):
        colour = BOTH if value > 0.5 else TRUTH
        drawing.box((left + place * step + 2, top + height * (1 - value)), (step - 4, height * value), colour)
    drawing.line([(left, top + height / 2), (left + 24 * step, top + height / 2)], dash="4 3")
    for value in (0, 0.5, 1):
        drawing.text(f"{value:g}", left - 8, top + height * (1 - value) + 4, anchor="end")
    drawing.text("first quarter", left + 45, top + height + 18, anchor="middle", size=12)
    drawing.text("last quarter", left + 315, top + height + 18, anchor="middle", size=12)
    for row, (name, meaning) in enumerate(
        {
            "J-Mean": "of all frames", "J-Recall": "frames above ½", "J-Decay": "first less last quarter",
        }.items()
    ):  # fmt: skip
        drawing.text(f"{name} {metrics[name]:.3f}", 415, 60 + 55 * row, size=15)
        drawing.text(meaning, 415, 78 + 55 * row, size=11)
    return drawing


def kinds() -> Drawing:
    """Draw the nine kinds of failure, each in a small frame."""
    size = (40, 56)
    truth, nobody = ellipse(size, (20, 18), (12, 11)), np.zeros(size, bool)
    neighbour = ellipse(size, (20, 42), (12, 11))
    merged = ellipse(size, (20, 30), (12, 23))
    # The meaning of a picture, then truth, prediction and another object's truth.
    rows: list[tuple[str, Mask, Mask, Mask]] = [
        ("ghost", nobody, truth, nobody),
        ("late", truth, nobody, nobody),
        ("miss", truth, nobody, nobody),
        ("swap", truth, neighbour, neighbour),
        ("drift", truth, ellipse(size, (32, 42), (6, 9)), nobody),
        ("confused", truth, (truth | neighbour) & merged, neighbour),
        ("part", truth, truth & (np.arange(size[0])[:, None] < 19), nobody),
        ("leak", truth, truth | ellipse(size, (26, 34), (5, 14)), nobody),
        ("edge", truth, ellipse(size, (20.6, 18), (12, 11)), nobody),
    ]
    drawing = Drawing(560, 500, "The nine kinds of failure")
    for number, (kind, mine, other, rest) in enumerate(rows):
        if kind_of((mine, other, rest), returned=kind == "late") != kind:
            raise AssertionError(f"this is no {kind}")
        corner = (20 + 182 * (number % 3), 15 + 150 * (number // 3))
        drawing.mask(rest & ~other, PALE, corner, 3)
        for mask, colour in ((mine & ~other, TRUTH), (other & ~mine, PREDICTION), (mine & other, BOTH)):
            drawing.mask(mask, colour, corner, 3)
        drawing.box(corner, (168, 120))
        drawing.text(kind, corner[0] + 84, corner[1] + 136, anchor="middle", size=14)
    for number, (words, colour) in enumerate({**SIDES, "another object": PALE}.items()):
        drawing.legend({words: colour}, 20 + 135 * number, 486)
    return drawing


def kind_of(frame: tuple[Mask, Mask, Mask], *, returned: bool) -> str:
    """Return the costliest kind in a frame: the second of a video, or the third after an absence."""
    truth, prediction, other = (side.astype(np.uint8) for side in frame)
    labels = np.where(truth, truth, 2 * other), np.where(prediction, prediction, 2 * other)
    first = np.where(ellipse(truth.shape, (20, 18), (12, 11)), np.uint8(1), 2 * other)
    between = [np.zeros_like(first)] if returned else []
    with tempfile.TemporaryDirectory() as name:
        paths = [Path(name, "truth.zip"), Path(name, "results.zip")]
        for path, middle in zip(paths, labels):
            with zipfile.ZipFile(path, "w") as archive:
                for number, image in enumerate([first, *between, middle, first]):
                    data = io.BytesIO()
                    Image.fromarray(image).save(data, "PNG")
                    archive.writestr(f"video/{number:05d}.png", data.getvalue())
        scores = segjudge.score(paths[1], paths[0], "davis2017", layout="davis2017")
        losses: dict[str, float] = scores.kinds[list(KINDS)].iloc[0].to_dict()
    return max(losses, key=lambda kind: losses[kind])


def precision() -> Drawing:
    """Draw AP: the area under precision over recall."""
    hits = [True, True, False, True, True, False, False, True, False, True]
    instances = 7
    side = 20.0
    squares = [[40.0 * k, 0.0, 40.0 * k + side, 0.0, 40.0 * k + side, side, 40.0 * k, side] for k in range(instances)]
    record = {"image_id": 1, "category_id": 1}
    annotations = [
        {**record, "id": k + 1, "area": side**2, "bbox": [40.0 * k, 0, side, side], "iscrowd": 0, "segmentation": [one]}
        for k, one in enumerate(squares)
    ]
    image = {"id": 1, "height": 100, "width": 400}
    found, score = iter(squares), 0.98
    detections = []
    for hit in hits:
        shape = next(found) if hit else [300.0, 50.0, 320.0, 50.0, 320.0, 70.0, 300.0, 70.0]
        detections.append({**record, "score": round(score, 2), "segmentation": [shape]})
        score -= 0.07
    document = {"images": [image], "categories": [{"id": 1, "name": "thing"}], "annotations": annotations}
    with tempfile.TemporaryDirectory() as name:
        paths = Path(name, "found.json"), Path(name, "truth.json")
        for path, content in zip(paths, (detections, document)):
            path.write_text(json.dumps(content), encoding="utf-8")
        value = segjudge.score(str(paths[0]), str(paths[1]), "coco").metrics["val"]["AP50"]
    return curve(hits, instances, value or 0.0)


def curve(hits: list[bool], instances: int, value: float) -> Drawing:
    """Draw precision over recall."""
    matched = np.cumsum(hits)
    precisions, recalls = matched / np.arange(1, len(hits) + 1), matched / instances
    highest = np.maximum.accumulate(precisions[::-1])[::-1]
    points = [highest[recalls >= level].max(initial=0) for level in np.linspace(0, 1, 101)]
    if abs(np.mean(points) - value) > 1e-9:
        raise AssertionError("the picture is not what is scored")
    drawing = Drawing(560, 270, "AP is the mean of the highest precision at 101 values of recall")
    left, top, width, height = 45, 20, 290, 200

    def at(recall: float, share: float) -> tuple[float, float]:
        return left + width * recall, top + height * (1 - share)

    for place, share in enumerate(points):
        x, y = at(place / 101, share)
        drawing.box((x, y), (width / 101, height * share), "#dcefe9")
    drawing.box((left, top), (width, height))
    drawing.line([at(0, 1), *map(at, recalls, precisions)], PALE)
    for hit, recall, share in zip(hits, recalls, precisions):
        x, y = at(recall, share)
        drawing.box((x - 4, y - 4), (8, 8), BOTH if hit else PREDICTION)
    drawing.text("recall", left + width / 2, top + height + 34, anchor="middle")
    drawing.text("precision ↑", left, top - 6, size=12)
    for one in (0, 0.5, 1):
        drawing.text(f"{one:g}", left + width * one, top + height + 16, anchor="middle", size=11)
        drawing.text(f"{one:g}", left - 6, top + height * (1 - one) + 4, anchor="end", size=11)
    drawing.legend({"matches an instance": BOTH, "matches none": PREDICTION}, 355, 40)
    drawing.text(f"{instances} instances,", 355, 105)
    drawing.text(f"{len(hits)} detections by falling score", 355, 123)
    drawing.text(f"AP50 = {value:.3f}", 355, 165, size=18)
    return drawing


PICTURES = {
    "region": region,
    "boundary": boundary,
    "time": over_time,
    "kinds": kinds,
    "precision": precision,
    "panoptic": panoptic,
    "tracks": tracks,
}


def main(arguments: list[str]) -> None:
    """Draw all pictures."""
    folder = Path(arguments[0]) if arguments else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
