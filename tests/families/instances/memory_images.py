"""Images with instances in memory, and the same as COCO's records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pycocotools.mask as coco

SIZE = (60, 80)


def runs(mask: Any) -> Any:
    encoded = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": list(encoded["size"]), "counts": encoded["counts"].decode()}


def box(mask: Any) -> list[float]:
    return coco.toBbox(coco.encode(np.asfortranarray(mask.astype(np.uint8)))).tolist()


def images(seed: int, count: int = 9) -> list[Any]:
    """Return masks, labels and scores of both sides; the first image has no instance, the last no detection."""
    draw = np.random.default_rng(seed)
    results = []
    for image in range(count):
        sides = []
        for least in (0 if image == 0 else 1, 0 if image == count - 1 else 1):
            number = int(draw.integers(2, 6)) if least else 0
            masks = np.zeros((number, *SIZE), bool)
            for mask in masks:
                top, left = draw.integers(0, 30, 2)
                mask[top : top + draw.integers(8, 30), left : left + draw.integers(8, 45)] = True
            sides.append(
                {"masks": masks, "labels": draw.integers(1, 4, number), "scores": draw.random(number).round(1)}
            )
        truth, prediction = sides
        truth.pop("scores")
        truth["iscrowd"] = draw.random(len(truth["labels"])) < 0.2
        if len(truth["labels"]) and len(prediction["labels"]):  # found, though not exactly
            prediction["masks"][0], prediction["labels"][0] = np.roll(truth["masks"][0], 2, 1), truth["labels"][0]
        results.append((prediction, truth))
    return results


def records(side: Any, image: int, start: int = 0) -> list[dict[str, Any]]:
    """Return the images as records of COCO's files."""
    results = [{"image_id": image, "category_id": int(label)} for label in side["labels"]]
    for number, (record, mask) in enumerate(zip(results, side["masks"]), start=start):
        record |= {"segmentation": runs(mask), "bbox": box(mask), "area": int(mask.sum()), "id": number}
        if "scores" in side:
            record["score"] = float(side["scores"][number - start])
        else:
            record["iscrowd"] = int(side["iscrowd"][number - start])
    return results
