"""Places-style PNGs (red: category, green: instance) → a COCO-format document, as the official converter makes it.

The official converter fails on every current Python; this gives the same
annotations, numbered from 0 in the same order, and a list of what was odd.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pycocotools.mask as coco
from PIL import Image

from segjudge.evaluation_script.errors import HostError, listed

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Found:
    """The instances of one picture."""

    size: tuple[int, int]
    instances: list[dict[str, Any]]
    odd: list[str]


def convert(root: str, categories: str, progress: Progress) -> tuple[dict[str, Any], list[str]]:
    """The document of a folder of PNGs, and what was odd about them."""
    listing = _listing(categories)
    names = (
        sorted(name for name in os.listdir(root) if name.lower().endswith(".png") and not name.startswith("."))
        if os.path.isdir(root)
        else []
    )
    if not names:
        raise HostError(f"{root}: holds no PNGs")
    known = {image["file_name"]: image for image in listing.get("images", [])}
    unlisted = [name for name in names if known and _picture(name) not in known]
    if unlisted:
        raise HostError(f"{categories}: does not list the images of {listed(unlisted)}")
    numbers = {category["id"] for category in listing["categories"]}
    document: dict[str, Any] = {"images": [], "categories": listing["categories"], "annotations": []}
    odd = [] if known else [f"{categories} lists no images: names and numbers are taken from the sorted PNGs"]
    for place, (name, found) in enumerate(_all(root, names, numbers, progress)):
        height, width = found.size
        fresh = {"file_name": _picture(name), "width": width, "height": height, "id": place}
        image = known.get(_picture(name), fresh)
        if (image["height"], image["width"]) != found.size:
            odd.append(f"{name}: is {width}×{height} but listed as {image['width']}×{image['height']}")
        document["images"].append(image)
        odd += [f"{name}: {line}" for line in found.odd]
        for instance in found.instances:
            number = len(document["annotations"])
            document["annotations"].append({"id": number, "image_id": image["id"], "iscrowd": 0, **instance})
    return document, odd


def _listing(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            listing = json.load(file)
        for category in listing["categories"]:
            int(category["id"])
            str(category["name"])
        for image in listing.get("images", []):
            known = {"file_name", "id", "width", "height"} & image.keys()
            if len(known) < 4:
                raise KeyError("file_name, id, width or height of an image")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HostError(
            f"{path}: is not a list of categories ({getattr(error, 'strerror', None) or error!r})"
        ) from None
    return dict(listing)


def _picture(name: str) -> str:
    return name.replace(".png", ".jpg").replace(".PNG", ".jpg")


def _all(root: str, names: list[str], numbers: set[int], progress: Progress) -> list[tuple[str, Found]]:
    """Every picture's instances, on all cores."""
    found: list[tuple[str, Found]] = []
    with ProcessPoolExecutor() as pool:
        work = partial(instances_of, categories=numbers)
        paths = (os.path.join(root, name) for name in names)
        for name, one in zip(names, pool.map(work, paths, chunksize=4), strict=True):
            progress(name, len(found), len(names))
            found.append((name, one))
    return found


def instances_of(path: str, categories: set[int]) -> Found:
    """The instances of one PNG, by rising number."""
    try:
        with Image.open(path) as image:
            pixels = np.asarray(image)
    except (OSError, SyntaxError, ValueError) as error:
        raise HostError(f"{path}: cannot be read ({error})") from None
    if pixels.ndim != 3 or pixels.shape[2] < 2:
        raise HostError(f"{path}: is not a colour PNG with categories in red and instances in green")
    red, green = pixels[:, :, 0], pixels[:, :, 1]
    instances, odd = [], []
    for number in np.unique(green).tolist():
        if number == 0:
            continue
        mask = green == number
        inside = red[mask]
        category = int(inside[0])  # of the first pixel, as in the official converter
        others = sorted(set(np.unique(inside).tolist()) - {category})
        if others:
            odd.append(f"instance {number} has the categories {category} and {listed([str(one) for one in others])}")
        if category not in categories:
            odd.append(
                f"instance {number} has the category {category}, which is not in the list: it is kept, and never scored"
            )
        encoded = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
        counts = encoded["counts"]
        instances.append(
            {
                "category_id": category,
                "segmentation": {
                    "size": [int(side) for side in encoded["size"]],
                    "counts": counts if isinstance(counts, str) else counts.decode("ascii"),
                },
                "area": int(mask.sum()),
            }
        )
    return Found((pixels.shape[0], pixels.shape[1]), instances, odd)
