"""Compare the scoring of keypoints, of as many people as in COCO val2017, with pycocotools and others.

    python -m benchmarks.keypoints [--images 5000] [--repeat N] [--peer-python PYTHON] [--folder FOLDER]

The set is made by a seeded generator: 11,004 people in 5,000 images, of whom 4 in 10 have no marked point, and 20
detections of an image with people, with boxes.  Everything runs on one core; every peer's AP is compared with ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.instances import PEERS, compare_with_peers
from benchmarks.measuring import Table

#: The protocol that scores them.
PROTOCOL = "coco-keypoints-official"
POINTS = 17
#: Of COCO val2017: images, people, and the share of the images that shows any.
_IMAGES, _PEOPLE, _SHOWING = 5000, 11_004, 0.54
_UNMARKED = 0.42


def _compare_keypoints(code: str) -> str:
    """Return a peer's program for keypoints, which have one cap."""
    lines = code.replace('"segm"', '"keypoints"').replace("[:, :, :, 0, 2]", "[:, :, :, 0, 0]").splitlines()
    return "\n".join(line for line in lines if "[1, 50, 255]" not in line)


def people(generator: np.random.Generator, number: int) -> list[dict[str, Any]]:
    """Return the people of an image as COCO annotates them."""
    annotations = []
    for _ in range(number):
        corner, sides = generator.uniform(0, 400, 2), generator.lognormal(4.3, 0.8, 2).clip(8, 400)
        marks = generator.choice([0, 1, 2], POINTS, p=[0.25, 0.1, 0.65]) * int(generator.random() > _UNMARKED)
        points = (generator.uniform(0, 1, (POINTS, 2)) * sides + corner).round() * (marks > 0)[:, None]
        annotations.append({
            "iscrowd": int(generator.random() < 0.015), "category_id": 1, "num_keypoints": int((marks > 0).sum()),
            "keypoints": np.column_stack((points, marks)).astype(int).reshape(-1).tolist(),
            "area": float((sides.prod() * 0.55).round(4)), "bbox": [*corner.round(2).tolist(), *sides.round(2).tolist()],
        })  # fmt: skip
    return annotations


def poses(generator: np.random.Generator, truths: list[dict[str, Any]], number: int) -> Iterator[dict[str, Any]]:
    """Yield detections of an image: mostly a person with moved points, else a false detection."""
    for _ in range(number):
        points = generator.uniform(0, 1, (POINTS, 2)) * generator.lognormal(4.3, 0.8) + generator.uniform(0, 400, 2)
        if truths and generator.random() < 0.6:
            person = truths[int(generator.integers(len(truths)))]
            flagged = np.reshape(person["keypoints"], (POINTS, 3))
            off = generator.choice([0.02, 0.05, 0.15]) * np.sqrt(person["area"])
            points = np.where(flagged[:, 2:] > 0, flagged[:, :2], points) + generator.normal(0, off, (POINTS, 2))
        points = points.round(2)
        numbers = np.column_stack((points, np.ones(POINTS))).reshape(-1).tolist()
        box = [*points.min(axis=0).tolist(), *np.ptp(points, axis=0).round(2).tolist()]
        yield {"category_id": 1, "keypoints": numbers, "bbox": box, "score": round(float(generator.random()), 3)}


def write_set(folder: Path, images: int, seed: int = 2017) -> tuple[int, int]:
    """Write truth and detections; return their numbers."""
    generator = np.random.default_rng(seed)
    names = [f"point {number}" for number in range(1, POINTS + 1)]
    categories = [{"id": 1, "name": "person", "keypoints": names, "skeleton": []}]
    truth: dict[str, Any] = {"images": [], "categories": categories, "annotations": []}
    records: list[dict[str, Any]] = []
    for image in range(1, images + 1):
        truth["images"].append({"id": image, "file_name": f"{image:012d}.jpg", "height": 480, "width": 640})
        mean = _PEOPLE / _IMAGES / _SHOWING
        drawn = people(generator, int(generator.geometric(1 / mean))) if generator.random() < _SHOWING else []
        for annotation in drawn:
            truth["annotations"].append({"id": len(truth["annotations"]) + 1, "image_id": image, **annotation})
        records += [{"image_id": image, **pose} for pose in poses(generator, drawn, 20 * bool(drawn))]
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "records.json").write_text(json.dumps(records))
    return len(truth["annotations"]), len(records)


def main(arguments: Sequence[str] | None = None) -> Table:
    peers = {name: _compare_keypoints(code) for name, code in PEERS.items()}
    return compare_with_peers(__doc__, PROTOCOL, peers, write_set, _IMAGES, arguments)


if __name__ == "__main__":
    main()
