"""Label maps as COCO-Stuff writes them: one JSON, with run lengths for each label of each image."""

from __future__ import annotations

import json
from typing import AbstractSet, Any, Dict, List, Optional, Tuple

import numpy as np

from ...files.archive import open_files, truth_error
from ...files.limits import HOST_LIMITS, read_json
from ...files.problems import Flaw, HostError, Problems, SubmissionError, TruthFlaw, printable, quantity
from ...masks import run_lengths as rle
from ...masks.backend import backend
from ...masks.overlaps import LabelMap
from ...masks.stack import Array, Size
from ..base.truth import DEFAULT_SPLIT
from ..base.units import TruthFrame, Unit, UnitSubmission, UnitTruth, guard_reading
from .protocols import STUFF, SemanticProtocol

_EXAMPLE = '[{"image_id": 1, "category_id": 92, "segmentation": {"size": [h, w], "counts": "..."}}, ...]'
_SEND = "Send one JSON with the run lengths of each label of each image"

#: The number of bad records after which reading ends.
_MOST_PROBLEMS = 1_000
#: The number of 8-bit labels.
_LABELS = 256
#: Labels of an image, each with the run lengths of its pixels in one of COCO's forms.
_Masks = List[Tuple[int, object]]


def read_stuff(path: str, subset: str = "") -> UnitTruth:
    """Read a JSON of COCO-Stuff; in a folder with several, the split's."""
    try:
        files = open_files(path, HOST_LIMITS)
        names = [name for name in files.sizes if name.endswith(".json")] or list(files.sizes)
        if len(names) > 1:
            names = [name for name in names if f"stuff_{subset or DEFAULT_SPLIT}" in name]
        if len(names) != 1:
            raise TruthFlaw(f"has {quantity(len(names), 'JSON file')} of this split", "Name the file")
        return _open_truth(json.loads(files.read(names[0])))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Flaw, SubmissionError) as error:
        raise truth_error(path, error, "cannot be read as the truth of COCO-Stuff") from None


def _open_truth(document: Dict[str, Any]) -> UnitTruth:
    categories = [
        [int(entry["id"]), str(entry["name"]), str(entry.get("supercategory", ""))] for entry in document["categories"]
    ]
    masks: Dict[int, _Masks] = {}
    if any(not 0 < annotation["category_id"] < _LABELS for annotation in document["annotations"]):
        raise TruthFlaw(f"has labels outside 1 to {_LABELS - 1}", "Use the categories of COCO-Stuff")
    for annotation in document["annotations"]:
        if not annotation.get("iscrowd"):
            mask = int(annotation["category_id"]), annotation["segmentation"]
            masks.setdefault(annotation["image_id"], []).append(mask)
    images = {image["id"]: (int(image["height"]), int(image["width"])) for image in document["images"]}
    if not images:
        raise HostError("the truth has no images")
    units = [_make_unit(str(image), size, masks.get(image, [])) for image, size in images.items()]
    return UnitTruth(SemanticProtocol.family, STUFF, {"categories": categories}, units)


def _make_unit(name: str, size: Size, masks: _Masks) -> Unit:
    read = guard_reading(f"image {name}", lambda: LabelMap(_paint_labels(masks, size)))
    return Unit(name, 1, lambda: [TruthFrame(name, size, [], read)])


def _paint_labels(masks: _Masks, size: Size) -> Array:
    """Return the label of each pixel, 0 for none; raises a Flaw for malformed or overlapping masks."""
    texts = [_find_text(mask, size) for _, mask in masks]
    pixels = None
    if texts and all(texts):
        pixels = backend().paint_masks(texts, np.array([label for label, _ in masks], np.uint8), size[0] * size[1])
    if pixels is None:
        pixels = _paint_each(masks, size)
    labels: Array = np.ascontiguousarray(pixels.reshape(size[1], size[0]).T)
    return labels


def _find_text(mask: object, size: Size) -> str:
    """Return the unchecked run lengths of a mask of this size as text; "" for other masks and forms."""
    if not isinstance(mask, dict) or not isinstance(mask.get("counts"), str):
        return ""
    sides = mask.get("size")
    fits = isinstance(sides, list) and sides == [*size] and list(map(type, sides)) == [int, int]
    return mask["counts"] if fits else ""


def _paint_each(masks: _Masks, size: Size) -> Array:
    """Return the label of each pixel of masks of any form, as `_paint_labels` does, in the order of their runs."""
    height, width = size
    borders, labels = [np.zeros((0, 2), np.int64)], [np.zeros(0, np.uint8)]
    for label, mask in masks:
        own_size, counts = rle.read_encoding(mask, _EXAMPLE)
        if own_size != size:
            raise rle.other_size(own_size, size)
        ends = np.cumsum(rle.runs_of(counts, height * width))
        spans = ends[: len(ends) // 2 * 2].reshape(-1, 2)
        borders.append(spans[spans[:, 1] > spans[:, 0]])
        labels.append(np.full(len(borders[-1]), label, np.uint8))
    spans, label_of_span = np.concatenate(borders), np.concatenate(labels)
    order = np.argsort(spans[:, 0], kind="stable")
    spans = spans[order]
    both = np.flatnonzero(spans[1:, 0] < spans[:-1, 1])
    if len(both):
        x, y = divmod(int(spans[both[0] + 1, 0]), height)
        raise Flaw(f"has pixels with several labels, such as ({x}, {y})", "Give each pixel one label")
    return rle.paint_spans(spans, label_of_span[order], height * width)


class StuffSubmission(UnitSubmission):
    """The records of a JSON by image."""

    noun, send = "image", _SEND
    protocol: SemanticProtocol

    def read_upload(self) -> None:
        self._masks: Dict[str, _Masks] = {}
        problems = Problems()
        records = read_json(self.files.read(self.find_json()), self.limits, _EXAMPLE)
        if not isinstance(records, list):
            raise Flaw("is not a list of records", f"Write {_EXAMPLE}")
        for number, record in enumerate(records):
            self._add_record(number, record, problems)
            if problems.places >= _MOST_PROBLEMS:
                problems.stop()
                break
        problems.raise_if_any()

    def _add_record(self, number: int, record: object, problems: Problems) -> None:
        keys = ("image_id", "category_id", "segmentation")
        image, label, mask = (record.get(key) for key in keys) if isinstance(record, dict) else (None, None, None)
        if type(image) is not int or type(label) is not int or mask is None:
            flaw = Flaw("lacks image_id, category_id or segmentation", f"Write {_EXAMPLE}")
            problems.add(flaw.as_problem(f"record {number}"))
        elif label not in self.protocol.labels:
            label_range = f"{self.protocol.labels[0]} to {self.protocol.labels[-1]}"
            problems.add(
                Flaw(f"has the label {printable(label)}", f"Write labels from {label_range}").as_problem(
                    f"record {number}"
                )
            )
        else:
            self._masks.setdefault(str(image), []).append((label, mask))

    def names(self) -> AbstractSet[str]:
        return self._masks.keys()

    def read(self, image: str, frame: TruthFrame, truth: Array, problems: Problems) -> Optional[Array]:
        """Return the labels of an image; None if it has problems."""
        try:
            return _paint_labels(self._masks[image], frame.size)
        except Flaw as flaw:
            problems.add(flaw.as_problem(f"image {image}"))
            return None
