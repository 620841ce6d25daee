"""The faults of detections in small scenes, and the drawings of their images, as one text.

Letters, of which every machine has its own, are not drawn: their words and places are noted.
"""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

import segjudge
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS
from segjudge.families.instances import pictures, players
from segjudge.families.instances.diagnosis import (
    count_confusions,
    diagnose,
    measure_calibration,
    measure_localisation_error,
)
from segjudge.families.instances.keypoints import list_keypoints
from segjudge.families.instances.published import open_instances, read_predictions
from segjudge.families.truths import TruthSource
from segjudge.masks.run_lengths import runs_of_mask
from segjudge.report.page import PageOptions
from tests.pages import digest, round_numbers

FILE = Path(__file__).with_suffix(".txt")
_SIZES = ((40, 60), (60, 40), (500, 700), (9, 9), (48, 64), (40, 60))
_NAMES = ("cat", "dog", "owl", "ant")


def write_images() -> str:
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder, pytest.MonkeyPatch.context() as patch:
        message = list[str]()
        patch.setattr(
            ImageDraw.ImageDraw,
            "text",
            lambda _, place, text, **ink: message.append(f"{text!r} {_fix(place)} {ink['fill']}"),
        )
        patch.setattr(
            ImageDraw.ImageDraw,
            "textbbox",
            lambda _, place, text, **__: (*_fix(place), place[0] + 7 * len(text), place[1] + 11),
        )
        for protocol in ("coco", "coco-box", "coco-keypoints", "ovis"):
            made = Path(folder, protocol)
            made.mkdir()
            lines += [f"# {protocol}", *_diagnose(made, protocol, message)]
    return round_numbers("\n".join(lines)) + "\n"


def _fix(place: Any) -> tuple[float, ...]:
    return tuple(float(side) for side in place)


def _diagnose(folder: Path, protocol: str, arguments: list[str]) -> Iterator[str]:
    """Describe the report of two methods, and its drawings over pictures, of which two exist."""
    truth, first, second = _write_scene(folder, protocol)
    (folder / "pictures").mkdir()
    for name, size in (("1.png", (60, 40)), ("3.jpg", (70, 50))):
        Image.new("RGB", size, (200, 90, 10)).save(folder / "pictures" / name, quality=95)
    matches = []
    for results in (first, second):
        scores = segjudge.score(results, truth, protocol)
        (report,) = scores.reports
        matches.append(diagnose(scores.open_inputs(), report))
        if results == second or protocol == "coco":
            yield from _say(matches[-1])
    given = PageOptions(str(folder / "pictures"))
    for shown in ({"": matches[0]}, dict(zip("ab", matches, strict=True))):
        for options in (given, PageOptions(budget=4))[: 2 if protocol == "coco" else 1]:
            section = players.draw_worst(shown, "val", options)
            if section is not None:
                yield f"player of {len(shown)}, at most {options.budget}: {section.looked_at} of {section.units}"
                yield from (f"  {moment['sequence']}: {moment['text']}" for moment in section.player.values["moments"])
                streams = section.player.streams.items()
                yield f"  {[(name, digest(zlib.decompress(data))) for name, data in streams if '#' not in name]}"
                yield f"  pictures of {[name for name, _ in streams if '#' in name]}"
    if protocol != "coco":
        return
    opened = open_instances(TruthSource(str(truth))).splits["val"]
    records = read_predictions(str(first), opened, INSTANCE_PROTOCOLS["coco"], LOCAL_LIMITS)
    for view in (pictures.View(), pictures.View(str(folder / "pictures"), 0.8, 0.4)):
        for sent in (records, None):
            arguments.clear()
            drawn = pictures.draw_images(opened, sent, str(folder / "out"), view, lambda *_: None)
            yield f"{view.iou} {view.score} {bool(sent)}: {len(arguments)} words, {digest(repr(arguments).encode())}; {arguments[:6]}"
            for image in drawn:
                with Image.open(folder / "out" / image.picture) as picture:
                    yield f"  {list(vars(image).values())} {picture.size} {digest(picture.tobytes())}"


def _say(found: Any) -> Iterator[str]:
    judged, least = found.judged, found.least
    yield f"best {found.best_threshold}, kinds {[(row['kind'], row['count'], row['cost']) for row in found.list_kinds()]}"
    yield from (f"  {row}" for row in (*found.list_categories(), *found.list_images()[:4], *found.list_suspects()[:4]))
    yield f"  worst {found.rank_images(3)} {found.find_worst_of_categories()}, profiles {found.counts.profiles()}"
    yield f"  confusions {count_confusions(judged).tolist()} {count_confusions(judged, least).tolist()}"
    for from_score in (-np.inf, least):
        gaps = measure_calibration(judged, from_score)
        shown = [side.round(4).tolist() for side in (gaps.counts, gaps.scores, gaps.shares)]
        yield f"  calibration {gaps.error} {gaps.largest_gap} {measure_localisation_error(judged, from_score)} {shown}"
    curves = {iou: round(float(curve.mean()), 5) for iou, curve in found.average_curves().items()}
    yield f"  curves {curves} {[[side.round(4).tolist()[:5] for side in found.trace_curve(category)] for category in range(3)]}"
    yield f"  keypoints {list_keypoints(found)}"


def _write_scene(folder: Path, protocol: str) -> tuple[Path, Path, Path]:
    """Write a truth and two results: boxes that are correct, moved, confused, repeated, or on the background."""
    draw, frames = np.random.RandomState(7), 3 if protocol == "ovis" else 0
    unit = "video" if frames else "image"
    images = [{"id": number, "width": width, "height": height, "file_name": f"{number}.jpg", "length": frames}
              for number, (height, width) in enumerate(_SIZES, 1)]  # fmt: skip
    if frames:
        images = [
            {**image, "file_names": [f"{image['id']}/{frame}.jpg" for frame in range(frames)]} for image in images
        ]
    annotations: list[dict[str, Any]] = []
    results: list[list[dict[str, Any]]] = [[], []]
    for image, (height, width) in enumerate(_SIZES, 1):
        for number in range((5, 12, 3, 1, 0, 30)[image - 1]):
            category, box = int(draw.randint(1, 4)), _draw_box(draw, height, width)
            more = {"id": len(annotations) + 1, "iscrowd": int(number == 4 and protocol != "coco-keypoints")}
            annotations.append(
                {**_shape(box, height, width, protocol, frames), f"{unit}_id": image, "category_id": category, **more}
            )
            for sent, worse in zip(results, (0.4, 0.7), strict=True):
                fault = int(draw.randint(1, 6)) if draw.rand() < worse else 0
                place = [box[0] + (box[2] // 3 if fault == 1 else 0), *box[1:]]
                named = category % 3 + 1 if fault == 2 else category
                copies = {3: 0, 4: 2}.get(fault, 1)
                places = [place] * copies + ([_draw_box(draw, height, width)] if fault == 5 else [])
                sent += [{**_shape(place, height, width, protocol, frames), f"{unit}_id": image, "category_id": named,
                          "score": round(0.05 * int(draw.randint(1, 20)), 2)} for place in places]  # fmt: skip
    categories = [{"id": number, "name": name, "keypoints": list("abcd"), "skeleton": [[1, 2], [2, 4]], "sigmas": [0.1] * 4}
                  for number, name in enumerate(_NAMES, 1)]  # fmt: skip
    truth = {f"{unit}s": images, "categories": categories, "annotations": annotations}
    for record in (record for sent in results for record in sent):
        del record["area"], record["num_keypoints"]
        if protocol in ("coco-box", "coco-keypoints"):
            del record["segmentation"]
    paths = [folder / name for name in ("truth.json", "first.json", "second.json")]
    for path, document in zip(paths, (truth, *results), strict=True):
        path.write_text(json.dumps(document))
    return paths[0], paths[1], paths[2]


def _draw_box(draw: Any, height: int, width: int) -> list[int]:
    x, y = int(draw.randint(0, width // 2)), int(draw.randint(0, height // 2))
    return [x, y, int(draw.randint(3, width // 2)), int(draw.randint(3, height // 2))]


def _shape(box: list[int], height: int, width: int, protocol: str, frames: int) -> dict[str, Any]:
    x, y, across, down = box
    mask = np.zeros((height, width), bool)
    mask[y : y + down, x : x + across] = True
    if protocol == "coco":
        mask[y : y + down // 3, x : x + across // 3] = False
    runs = {"size": [height, width], "counts": [int(run) for run in runs_of_mask(mask)]}
    points = [x, y, 2, x + across, y, 1, x, y + down, 0 if across % 3 == 0 else 2, x + across, y + down, 2]
    shape = {"segmentations": [runs, None, runs][:frames]} if frames else {"segmentation": runs}
    if protocol == "coco-keypoints":
        shape |= {"keypoints": points}
    marked = sum(flag > 0 for flag in points[2::3])
    return {**shape, "bbox": box, "area": across * down, "num_keypoints": marked}


if __name__ == "__main__":
    FILE.write_text(write_images())
