"""Published truths of instances: COCO's JSON, Places-style PNGs (red: category, green: instance), `streets`.

The official converter of such PNGs to COCO's JSON fails on every current Python. `pack` writes the same annotations,
numbered from 0 in the same order, and lists oddities.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any, TypedDict

from segjudge.evaluation_script.families.base.family import Progress, ignore_progress
from segjudge.evaluation_script.families.base.truth import DEFAULT_SPLIT, AnnotationFile
from segjudge.evaluation_script.families.instances import truth
from segjudge.evaluation_script.families.instances.protocols import InstanceProtocol
from segjudge.evaluation_script.families.instances.submission import InstanceRecords, read_records
from segjudge.evaluation_script.files.archive import open_files
from segjudge.evaluation_script.files.limits import HOST_LIMITS, ArchiveLimits
from segjudge.evaluation_script.files.problems import HostError, inflect, name_list, quantity
from segjudge.evaluation_script.scoring.scorer import is_packed
from segjudge.families.base.published import PackedTruth, TruthSource, check_subset
from segjudge.system.addresses import RemoteFolder
from segjudge.system.errors import UsageError
from segjudge.system.files import ARCHIVES, make_folder


def open_instances(source: TruthSource, *, progress: Progress = ignore_progress) -> AnnotationFile[truth.InstanceTruth]:
    """Open instance masks: COCO's JSON, a packed file, or Places-style PNGs if a list of categories is named."""
    path, split = source.path, source.subset or DEFAULT_SPLIT
    if not is_packed(path):
        check_subset(source)
    if isinstance(path, RemoteFolder):
        raise UsageError(f"{path}: a folder of PNGs must be on this machine; copy it, or pack it")
    streets = _convert_streets(source, progress)
    if streets is not None:
        return AnnotationFile({split: truth.read_document(json.dumps(streets).encode(), path)})
    if not os.path.isdir(path):
        if source.categories:
            raise UsageError(f"categories do not apply to {path}, which is not a folder of PNGs")
        return AnnotationFile(truth.read(path, split))
    if not source.categories:
        raise UsageError(
            f"{path}: is a folder. The truth of instances is COCO's JSON, a packed file, Cityscapes' gtFine, or with "
            "--categories FILE a folder of Places-style PNGs"
        )
    document, oddities = convert(path, source.categories, progress)
    return AnnotationFile({split: truth.read_document(json.dumps(document).encode(), path)}, oddities)


def _convert_streets(source: TruthSource, progress: Progress, split: str = DEFAULT_SPLIT) -> dict[str, Any] | None:
    """Return the document of a folder or an archive of Cityscapes; None for anything else."""
    if (
        source.categories
        or not (os.path.isdir(source.path) or source.path.endswith(ARCHIVES))
        or is_packed(source.path)
    ):
        return None
    from .streets import convert_streets, holds_streets  # other benchmarks do not need it

    if not holds_streets(source.path):
        return None
    return convert_streets(source.path, source.subset or split, progress)


def read_predictions(
    path: str, instances: truth.InstanceTruth, protocol: InstanceProtocol, limits: ArchiveLimits
) -> InstanceRecords:
    """Read all detections of a submission; raises SubmissionError with every problem."""
    if protocol.streets:
        from segjudge.evaluation_script.families.instances.mask_files import read_mask_files  # others do not need it

        return read_mask_files(path, instances, protocol, limits)
    return read_records(path, instances.images, protocol, limits)


def pack(source: TruthSource, out: str, split: str = "", progress: Progress = ignore_progress) -> PackedTruth:
    """Write COCO's JSON or Places-style PNGs as an annotation file; with `split`, add it to one under that name."""
    streets = _convert_streets(source, progress, split)
    if streets is not None or os.path.isdir(source.path):
        notes: list[str] = []
        document: _CocoDocument | dict[str, Any]
        if streets is not None:
            document = streets
        elif not any(name.lower().endswith(".png") for name in os.listdir(source.path)):
            raise HostError(f"{source.path}: holds neither PNGs nor the files of Cityscapes, and is not COCO's JSON")
        elif not source.categories:
            raise UsageError(f"{source.path}: is a folder of PNGs, which needs --categories FILE")
        else:
            document, notes = convert(source.path, source.categories, progress)
        data = json.dumps(document, separators=(",", ":")).encode()
        images, instances = len(document["images"]), len(document["annotations"])
    else:
        if is_packed(source.path):
            raise UsageError(f"{source.path}: is already packed")
        (annotated,) = truth.read(source.path).values()  # reports the fault
        files = open_files(source.path, HOST_LIMITS)
        (data,) = (_draw_polygons(files.read(name), annotated) for name in files.sizes if name.endswith(".json"))
        images, instances, notes = len(annotated.images.ids), len(annotated.ids), annotated.notes
    splits = {split or DEFAULT_SPLIT: data}
    if split and os.path.exists(out):
        splits = {**truth.documents(out), **splits}
    make_folder(os.path.dirname(out) or ".")
    truth.write(out, splits)
    about = f"{images:,} {inflect(images, 'image or video', 'images or videos')}, {quantity(instances, 'instance')}"
    return PackedTruth(split or DEFAULT_SPLIT, about, notes)


def _draw_polygons(data: bytes, annotated: truth.InstanceTruth) -> bytes:
    """Return a document with polygons converted to run lengths, which saves time at each scoring."""
    document, sizes = json.loads(data), annotated.images.sizes[annotated.image].tolist()
    annotations = document["annotations"]
    outlined = [index for index, mask in enumerate(annotations) if isinstance(mask.get("segmentation"), list)]
    for index in outlined:
        annotations[index]["segmentation"] = {"size": sizes[index], "counts": annotated.masks[index]}
    return json.dumps(document, separators=(",", ":")).encode() if outlined else data


# ── Places-style PNGs ───────────────────────────────────────────────────────


class _CocoDocument(TypedDict):
    images: list[dict[str, Any]]
    categories: list[dict[str, Any]]
    annotations: list[dict[str, Any]]


#: The size of a PNG (height, width), its instances, and its oddities.
_ReadImage = tuple[tuple[int, int], list[dict[str, Any]], list[str]]


def convert(root: str, categories: str, progress: Progress) -> tuple[_CocoDocument, list[str]]:
    """Convert a folder of PNGs; return its document, and notes about oddities of the PNGs."""
    listing = _read_listing(categories)
    files = sorted(os.listdir(root)) if os.path.isdir(root) else []
    names = [name for name in files if name.lower().endswith(".png") and not name.startswith(".")]
    if not names:
        raise HostError(f"{root}: holds no PNGs")
    listed_images = {image["file_name"]: image for image in listing["images"]}
    unlisted = [name for name in names if listed_images and _name_picture(name) not in listed_images]
    if unlisted:
        raise HostError(f"{categories}: does not list the images of {name_list(unlisted)}")
    numbers = {category["id"] for category in listing["categories"]}
    document: _CocoDocument = {"images": [], "categories": listing["categories"], "annotations": []}
    oddities = (
        [] if listed_images else [f"{categories} lists no images: names and numbers are taken from the sorted PNGs"]
    )
    for index, (name, (size, instances, faults)) in enumerate(_read_all(root, names, numbers, progress)):
        height, width = size
        unlisted_image = {"file_name": _name_picture(name), "width": width, "height": height, "id": index}
        image = listed_images.get(_name_picture(name), unlisted_image)
        if (image["height"], image["width"]) != size:
            oddities.append(f"{name}: is {width}x{height} but listed as {image['width']}x{image['height']}")
        document["images"].append(image)
        oddities += [f"{name}: {line}" for line in faults]
        for instance in instances:
            number = len(document["annotations"])
            document["annotations"].append({"id": number, "image_id": image["id"], "iscrowd": 0, **instance})
    return document, oddities


def _read_listing(path: str) -> _CocoDocument:
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


def _name_picture(name: str) -> str:
    return name.replace(".png", ".jpg").replace(".PNG", ".jpg")


def _read_all(
    root: str, names: list[str], categories: set[int], progress: Progress
) -> Iterator[tuple[str, _ReadImage]]:
    """Yield the instances of every PNG, read on all cores where processes can be forked."""
    from concurrent.futures import ProcessPoolExecutor

    paths, read = [os.path.join(root, name) for name in names], partial(_read_png, categories=categories)
    with ProcessPoolExecutor() if hasattr(os, "fork") else nullcontext() as pool:
        images = pool.map(read, paths, chunksize=4) if pool else map(read, paths)
        for done, (name, image) in enumerate(zip(names, images, strict=True)):
            progress(name, done, len(names))
            yield name, image


def _read_png(path: str, categories: set[int]) -> _ReadImage:
    """Read the instances of one PNG, by rising number."""
    import numpy as np
    from PIL import Image

    from segjudge.masks.run_lengths import encode_labels

    try:
        with Image.open(path) as image:
            pixels = np.asarray(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise HostError(f"{path}: cannot be read ({error})") from None
    if pixels.ndim != 3 or pixels.shape[2] < 2:
        raise HostError(f"{path}: is not a colour PNG with categories in red and instances in green")
    red, green = pixels[:, :, 0], pixels[:, :, 1]
    size = (pixels.shape[0], pixels.shape[1])
    instances, oddities = [], []
    for number, counts in encode_labels(green).items():
        inside = red[green == number]
        category = int(inside[0])  # of the first pixel, as in the official converter
        surplus = sorted(set(np.unique(inside).tolist()) - {category})
        if surplus:
            names = name_list(list(map(str, surplus)))
            oddities.append(f"instance {number} has the categories {category} and {names}")
        if category not in categories:
            oddities.append(
                f"instance {number} has the category {category}, which is not in the list: it is kept but never scored"
            )
        segmentation = {"size": list(size), "counts": counts}
        instances.append({"category_id": category, "segmentation": segmentation, "area": len(inside)})
    return size, instances, oddities
