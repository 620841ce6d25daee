"""Places-style PNGs (red: category, green: instance) → a COCO-format document, as the official converter makes it.

The official converter fails on every current Python; this gives the same
annotations, numbered from 0 in the same order, and a list of what was odd.
"""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, TypedDict

import numpy as np
from PIL import Image

from segjudge.evaluation_script.families.base.engine import Progress
from segjudge.evaluation_script.files.problems import HostError, name_list
from segjudge.masks.run_lengths import encoded


class CocoDocument(TypedDict):
    """Annotations in COCO's format."""

    images: list[dict[str, Any]]
    categories: list[dict[str, Any]]
    annotations: list[dict[str, Any]]


#: The size of a PNG (height, width), its instances, and what is odd about them.
ReadImage = tuple[tuple[int, int], list[dict[str, Any]], list[str]]


def convert(root: str, categories: str, progress: Progress) -> tuple[CocoDocument, list[str]]:
    """Return the document of a folder of PNGs, and what was odd about them."""
    listing = _listing(categories)
    files = sorted(os.listdir(root)) if os.path.isdir(root) else []
    names = [name for name in files if name.lower().endswith(".png") and not name.startswith(".")]
    if not names:
        raise HostError(f"{root}: holds no PNGs")
    known = {image["file_name"]: image for image in listing["images"]}
    unlisted = [name for name in names if known and _picture(name) not in known]
    if unlisted:
        raise HostError(f"{categories}: does not list the images of {name_list(unlisted)}")
    numbers = {category["id"] for category in listing["categories"]}
    document: CocoDocument = {"images": [], "categories": listing["categories"], "annotations": []}
    oddities = [] if known else [f"{categories} lists no images: names and numbers are taken from the sorted PNGs"]
    for index, (name, (size, instances, odd)) in enumerate(_read_all(root, names, numbers, progress)):
        height, width = size
        fresh = {"file_name": _picture(name), "width": width, "height": height, "id": index}
        image = known.get(_picture(name), fresh)
        if (image["height"], image["width"]) != size:
            oddities.append(f"{name}: is {width}×{height} but listed as {image['width']}×{image['height']}")
        document["images"].append(image)
        oddities += [f"{name}: {line}" for line in odd]
        for instance in instances:
            number = len(document["annotations"])
            document["annotations"].append({"id": number, "image_id": image["id"], "iscrowd": 0, **instance})
    return document, oddities


def _listing(path: str) -> CocoDocument:
    """Return the categories and images that a file lists."""
    try:
        with open(path, encoding="utf-8") as file:
            listing = json.load(file)
        for category in listing["categories"]:
            int(category["id"])
            str(category["name"])
        images = listing.get("images", [])
        if any({"file_name", "id", "width", "height"} - image.keys() for image in images):
            raise KeyError("file_name, id, width or height of an image")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HostError(
            f"{path}: is not a list of categories ({getattr(error, 'strerror', None) or error!r})"
        ) from None
    return {"images": images, "categories": listing["categories"], "annotations": []}


def _picture(name: str) -> str:
    return name.replace(".png", ".jpg").replace(".PNG", ".jpg")


def _read_all(root: str, names: list[str], categories: set[int], progress: Progress) -> Iterator[tuple[str, ReadImage]]:
    """Yield the instances of every PNG, read on all cores."""
    with ProcessPoolExecutor() as pool:
        paths = [os.path.join(root, name) for name in names]
        images = pool.map(partial(read_png, categories=categories), paths, chunksize=4)
        for done, (name, image) in enumerate(zip(names, images, strict=True)):
            progress(name, done, len(names))
            yield name, image


def read_png(path: str, categories: set[int]) -> ReadImage:
    """Return the instances of one PNG, by rising number."""
    try:
        with Image.open(path) as image:
            pixels = np.asarray(image)
    except (OSError, SyntaxError, ValueError) as error:
        raise HostError(f"{path}: cannot be read ({error})") from None
    if pixels.ndim != 3 or pixels.shape[2] < 2:
        raise HostError(f"{path}: is not a colour PNG with categories in red and instances in green")
    red, green = pixels[:, :, 0], pixels[:, :, 1]
    size = (pixels.shape[0], pixels.shape[1])
    instances, oddities = [], []
    for number, counts in encoded(green).items():
        inside = red[green == number]
        category = int(inside[0])  # of the first pixel, as in the official converter
        others = sorted(set(np.unique(inside).tolist()) - {category})
        if others:
            names = name_list([str(other) for other in others])
            oddities.append(f"instance {number} has the categories {category} and {names}")
        if category not in categories:
            oddities.append(
                f"instance {number} has the category {category}, which is not in the list: it is kept, and never scored"
            )
        segmentation = {"size": list(size), "counts": counts}
        instances.append({"category_id": category, "segmentation": segmentation, "area": len(inside)})
    return size, instances, oddities
