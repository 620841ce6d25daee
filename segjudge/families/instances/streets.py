"""Published truths of Cityscapes' instances as COCO documents; the demo, and samples.

Instances become annotations, groups crowds. Unlabelled regions and numbered caravans and trailers become annotations of
unlisted categories.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.family import Progress
from segjudge.evaluation_script.families.base.truth import DEFAULT_SPLIT
from segjudge.evaluation_script.families.instances.mask_files import name_of
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.files.archive import open_files, truth_error
from segjudge.evaluation_script.files.limits import HOST_LIMITS, Files
from segjudge.evaluation_script.files.problems import Flaw, HostError, SubmissionError
from segjudge.evaluation_script.masks import png
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.run_lengths import flags, runs_of
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.challenges import QUICK
from segjudge.families.base.tools import Content, Members
from segjudge.masks.run_lengths import encode_labels

CATEGORIES = {
    24: "person", 25: "rider", 26: "car", 27: "truck", 28: "bus", 31: "train", 32: "motorcycle", 33: "bicycle",
}  # fmt: skip
#: Labels that no task of Cityscapes scores; the last two have numbered instances, as classes do.
_VOID = (0, 1, 2, 3, 4, 5, 6, 9, 10, 14, 15, 16, 18, 29, 30)
_NUMBERED_VOID = (29, 30)
#: The factor of the label in an instance's number, which also counts from there.
_LABEL = 1000
_ENDING = "_instanceIds.png"
#: The files of distances, in the format of Cityscapes' script.
_DISTANCES = ("distances.json", "gtInstances.json")
_FOLDERS = {DEFAULT_SPLIT: ("val", "validation")}
_DEMO_ROAD = 7


def holds_streets(path: str) -> bool:
    """Return whether a folder or an archive has maps of numbered objects."""
    try:
        files = open_files(path, HOST_LIMITS)
    except (OSError, Flaw, SubmissionError):
        return False
    try:
        return any(name.endswith(_ENDING) for name in files.sizes)
    finally:
        files.close()


def convert_streets(path: str, subset: str, progress: Progress) -> dict[str, Any]:
    """Return the document of Cityscapes' folder `gtFine`, of the split of this name if there are several."""
    categories = [{"id": label, "name": name} for label, name in CATEGORIES.items()]
    document: dict[str, Any] = {"images": [], "annotations": [], "categories": categories}
    try:
        files = open_files(path, HOST_LIMITS)
        try:
            names = sorted(name for name in files.sizes if name.endswith(_ENDING))
            folders = set(_FOLDERS.get(subset or DEFAULT_SPLIT, (subset,)))
            names = [name for name in names if folders & set(name.split("/")[:-1])] or names
            distances = _read_distances(files)
            for number, name in enumerate(names, 1):
                progress(name, number - 1, len(names))
                _add_image(document, files, name, distances.get(name.rpartition("/")[2], {}))
        finally:
            files.close()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Flaw, SubmissionError) as error:
        raise truth_error(path, error, "cannot be read") from None
    if len({image["file_name"] for image in document["images"]}) < len(names):
        raise HostError(f"{path}: has several maps for one image; name one folder")
    return document


def _read_distances(files: Files) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the known distances of instances, by map and number."""
    names = [name for name in files.sizes if name.rpartition("/")[2] in _DISTANCES]
    if not names:
        return {}
    return {
        name.rpartition("/")[2]: {int(entry["instID"]): entry for entries in by_class.values() for entry in entries}
        for name, by_class in json.loads(files.read(names[0])).items()
    }


@lru_cache
def _choose_numbers() -> Array:
    """Return the replacement of each number: itself, a common void label, or 0."""
    chosen = np.zeros(1 << 16, np.uint16)
    chosen[list(_VOID)] = _VOID[1]
    chosen[list(CATEGORIES)] = list(CATEGORIES)
    for label in (*CATEGORIES, *_NUMBERED_VOID):
        chosen[_LABEL * label : _LABEL * (label + 1)] = np.arange(_LABEL * label, _LABEL * (label + 1))
    return chosen


def _add_image(document: dict[str, Any], files: Files, name: str, distances: dict[int, dict[str, Any]]) -> None:
    try:
        data = files.read(name)
        size = png.size_of(data)
        numbers = backend().read_labels(data, size)
    except Flaw as flaw:
        raise HostError(f"{name}: {flaw.fault}") from None
    image = len(document["images"]) + 1
    picture = f"{name_of(name)}_leftImg8bit.png"
    document["images"].append({"id": image, "file_name": picture, "height": size[0], "width": size[1]})
    for number, counts in encode_labels(numbers, _choose_numbers()).items():
        label, crowd = number if number < _LABEL else number // _LABEL, int(number < _LABEL)
        area = int(runs_of(counts, numbers.size)[1::2].sum())
        entry = distances.get(number, {}) if label in CATEGORIES else {}
        annotation = {
            "id": len(document["annotations"]) + 1, "image_id": image, "category_id": label, "iscrowd": crowd,
            "segmentation": {"size": list(size), "counts": counts}, "area": area,
        }  # fmt: skip
        if entry:
            annotation |= {"distance": float(entry["medDist"]), "density": float(entry["distConf"])}
        document["annotations"].append(annotation)


def make_street_sample(truth: InstanceTruth, share: float) -> Members:
    """Yield a text file per image, and a mask per instance, moved by a share of the width."""
    from segjudge.masks.compression import label_png  # Pillow, which scoring does not need

    for image, number in enumerate(truth.images.ids.tolist()):
        name, lines = name_of(truth.names.get(number, str(number))), []
        for index in np.flatnonzero((truth.image == image) & ~truth.crowd & (truth.category >= 0)).tolist():
            size = tuple(truth.images.sizes[image].tolist())
            mask = flags({"size": list(size), "counts": truth.masks[index]}, size)[0, :, : size[1]]
            member = f"{name}_{index}.png"
            yield member, label_png(_move(mask, share).astype(np.uint8), QUICK)
            lines.append(f"{member} {truth.categories[int(truth.category[index])].id} {1 - share:.3f}\n")
        yield f"{name}.txt", "".join(lines).encode()


def _move(mask: Array, share: float) -> Array:
    steps = round(mask.shape[1] * share)
    moved = np.zeros_like(mask)
    moved[:, steps:] = mask[:, : mask.shape[1] - steps]
    return moved


def publish_streets() -> Content:
    """Yield the demo's objects as street objects, one of them a group."""
    from segjudge.masks.compression import grey_png
    from segjudge.masks.demo import first_scenes, still_images

    labels_of_demo = np.array([_DEMO_ROAD, *CATEGORIES])
    for image, labels in still_images(first_scenes()):
        classes = labels_of_demo[np.minimum(labels, len(labels_of_demo) - 1)]
        grouped = list(CATEGORIES)[2] if image % 4 == 0 else 0
        numbers = np.where((classes >= min(CATEGORIES)) & (classes != grouped), _LABEL * classes, classes)
        yield f"gtFine/val/demo/demo_{image:06d}_000019_gtFine{_ENDING}", grey_png(numbers, QUICK)
