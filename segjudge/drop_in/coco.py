"""A drop-in replacement of `pycocotools.coco`: the same class, which creates annotations on first use."""

import contextlib
import copy
import io
import json
import os
import threading
import time
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from types import MethodType
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.instances.annotation_columns import AnnotationColumns, read_annotations
from segjudge.evaluation_script.families.instances.keypoints import extract_coordinates
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.families.instances.records import LARGEST_SIDE, UNUSUAL, KnownImages
from segjudge.evaluation_script.families.instances.submission import InstanceRecords, check_json
from segjudge.evaluation_script.families.instances.truth import InstanceTruth, truth_of, truth_of_columns
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.run_lengths import compress, pack_texts
from segjudge.evaluation_script.masks.stack import Array, places_of
from segjudge.evaluation_script.runner.tuning import without_collector
from segjudge.system.errors import UsageError

#: The lock of each process: a forked child cannot release one that a thread of its parent holds.
_LOCKS: dict[int, threading.RLock] = {}
#: Attributes that are created when they are first read.
_LATE = ("dataset", "anns", "imgToAnns", "catToImgs", "imgs", "cats")
#: The protocols that read detections, by what is compared.
PROTOCOLS = {"segm": "coco-official", "bbox": "coco-box", "keypoints": "coco-keypoints-official"}
#: The keys of what is compared.
_SHAPES = (b'"keypoints"', b'"bbox"', b'"segmentation"')
#: The number of keypoints of COCO's people.
_COCO_POINTS = 17
#: The number of leading bytes of a file in which a key belongs to the first record.
_FIRST_RECORD = 1 << 16
#: The exceptions for annotations that pycocotools itself accepts or explains.
NOT_OURS = (*UNUSUAL, UsageError, SubmissionError, HostError, ArithmeticError)


def _lock() -> threading.RLock:
    """Return the lock to hold while creating attributes or holding back what pycocotools prints on its one stream."""
    return _LOCKS.setdefault(os.getpid(), threading.RLock())


@contextlib.contextmanager
def hold_output() -> Iterator[None]:
    """Discard what is printed, for one thread at a time: the stream of two would not return to its place."""
    with _lock(), contextlib.redirect_stdout(io.StringIO()):
        yield


@cache
def find_incumbent(name: str) -> Any:
    """Return pycocotools' class of this name, as it was before `install`; only unusual calls import it."""
    from pycocotools import coco, cocoeval

    return getattr(coco if name == "COCO" else cocoeval, name)


class Inherited:
    """A method of pycocotools' class with the names of this one, which is imported when the method is used."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner.__name__, name

    def __get__(self, item: Any, owner: type | None = None) -> Any:
        method = getattr(find_incumbent(self._owner), self._name)
        return method if item is None else MethodType(method, item)


class COCO:
    """A dataset from a path or a dictionary, as pycocotools has it.

    The file that `loadRes` gets becomes Python objects only if `dataset`, `anns`, `imgToAnns` or `catToImgs` is read;
    `COCOeval` compares it without them.
    """

    createIndex, info, getAnnIds, getImgIds, loadAnns = (Inherited() for _ in range(5))
    loadCats, loadImgs, showAnns, download = (Inherited() for _ in range(4))
    loadNumpyAnnotations, annToRLE, annToMask = (Inherited() for _ in range(3))

    def __init__(self, annotation_file: str | os.PathLike[str] | dict[str, Any] | None = None) -> None:
        #: The dataset or detections, as JSON or as records with boxes, and the dataset of the detections, until
        #: `dataset` is read.
        self._document: dict[str, Any] = {}
        self._detections: tuple[COCO, bytes | list[dict[str, Any]]] | None = None
        #: The dataset's annotations as columns, and the rest of its JSON, until the document has the annotations.
        self._annotations: tuple[AnnotationColumns, bytes] | None = None
        #: The columns that were read, by what is compared.
        self._columns: dict[str, Any] = {}
        self.dataset: Any = annotation_file if isinstance(annotation_file, dict) else {}
        self.anns: Any = {}
        self.cats: Any = {}
        self.imgs: Any = {}
        self.imgToAnns: Any = defaultdict(list)
        self.catToImgs: Any = defaultdict(list)
        if isinstance(annotation_file, dict):
            self.createIndex()
        if annotation_file is None or isinstance(annotation_file, dict):
            return
        with (
            self._announce("loading annotations into memory...", "Done"),
            open(annotation_file, "rb") as file,
            without_collector(),
        ):
            data = file.read()
            parts = read_annotations(data)
            if parts is not None:
                self._document, self._annotations = parts[0], (parts[1], data)
            else:
                self._document = json.loads(data)
            if not isinstance(self._document, dict):
                raise AssertionError(f"annotation file format {type(self._document)} not supported")
        self._forget()
        self._announce_index()

    def _say(self, *lines: str) -> None:
        """Print lines that pycocotools prints."""
        print(*lines, sep="\n")

    @contextlib.contextmanager
    def _announce(self, line: str, end: str) -> Iterator[None]:
        self._say(line)
        begun = time.time()
        yield
        self._say(f"{end} (t={time.time() - begun:0.2f}s)")

    def _announce_index(self) -> None:
        """Print that the annotations are indexed, which they are on first use."""
        self._say("creating index...", "index created!")

    def _forget(self) -> None:
        for name in _LATE:
            delattr(self, name)

    def __getattr__(self, name: str) -> Any:
        """Create an attribute on first use."""
        if name not in _LATE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with _lock():
            if name not in vars(self):  # another thread may have created it meanwhile
                self._create(name)
        return vars(self)[name]

    def _create(self, name: str) -> None:
        if name == "dataset":
            self.dataset = (
                self._make_dataset() if self._detections is None else self._make_detections(*self._detections)
            )
            self._document, self._detections, self._annotations = {}, None, None
        elif name in ("imgs", "cats"):
            key = "images" if name == "imgs" else "categories"
            setattr(self, name, {row["id"]: row for row in self.list_rows(key)})
        else:
            with hold_output():
                self.createIndex()

    def _make_dataset(self) -> Any:
        if self._annotations is None:
            return self._document
        with without_collector():
            annotations = json.loads(self._annotations[1])["annotations"]
        return {**self._document, "annotations": annotations}

    def _make_detections(self, truth: "COCO", data: bytes | list[dict[str, Any]]) -> Any:
        with hold_output(), without_collector():
            bare = truth.hide_annotations()
            if isinstance(data, bytes):
                return find_incumbent("COCO").loadRes(bare, json.loads(data)).dataset
            _complete_boxes(data)
            info, categories = (copy.deepcopy(bare.dataset.get(key, {})) for key in ("info", "categories"))
            images = list(bare.dataset["images"])
            return {"info": info, "images": images, "categories": categories, "annotations": data}

    def hide_annotations(self) -> Any:
        """Return all but the annotations, for pycocotools."""
        bare = find_incumbent("COCO")()
        with _lock():
            source = vars(self).get("dataset", self._document)
        bare.dataset, bare.imgs = {key: rows for key, rows in source.items() if key != "annotations"}, self.imgs
        return bare

    def list_rows(self, key: str) -> list[dict[str, Any]]:
        """Return the dataset's `images` or `categories`."""
        with _lock():
            if "dataset" in vars(self):
                rows: list[dict[str, Any]] = self.dataset[key]
                return rows
            return self._document[key] if self._detections is None else self._detections[0].list_rows(key)

    def getCatIds(self, catNms: Any = (), supNms: Any = (), catIds: Any = ()) -> list[int]:
        """Return the ids of categories with these names, supercategories or ids, or of all."""
        bare = find_incumbent("COCO")()
        bare.dataset = {"categories": self.list_rows("categories")}
        ids: list[int] = bare.getCatIds(catNms, supNms, catIds)
        return ids

    def loadRes(self, resFile: Any) -> Any:
        """Return detections of this dataset: a path, a list of records or an array with seven columns."""
        loaded: COCO = self._make_empty() if isinstance(self, COCO) else COCO()
        announcing: COCO = self if isinstance(self, COCO) else loaded
        with announcing._announce("Loading and preparing results...", "DONE"):
            loaded._load_results(self, resFile)
        loaded._announce_index()
        return loaded

    def _make_empty(self) -> "COCO":
        return COCO()

    def _load_results(self, truth: Any, results: Any) -> None:
        if not isinstance(truth, COCO) or not isinstance(results, str | os.PathLike):
            if isinstance(truth, COCO) and isinstance(results, list) and results and _are_boxes(results, truth.imgs):
                self._detections = truth, [*results]  # programs may fill their list anew
                self._forget()
                return
            bare = truth.hide_annotations() if isinstance(truth, COCO) else truth
            if isinstance(results, np.ndarray):
                results = self.loadNumpyAnnotations(results)
            with hold_output(), without_collector():
                vars(self).update(vars(find_incumbent("COCO").loadRes(bare, results)))
            return
        with open(results, "rb") as file:
            data = file.read()
        self._detections = truth, data
        self._forget()
        has_points, has_boxes, has_masks = (key in data[:_FIRST_RECORD] for key in _SHAPES)
        if has_points and self.find_records(truth, "keypoints") is not None:
            return
        if has_boxes and self.find_records(truth, "bbox") is not None:
            return  # their masks are read on comparison
        if self.find_records(truth, "segm" if has_masks else "bbox") is None:
            _ = self.dataset  # or pycocotools says why it is invalid

    def find_truth(self, kind: str) -> InstanceTruth | None:
        """Return the annotations as arrays, with empty masks unless masks are compared.

        Return None if a program has seen them. Raises one of `NOT_OURS` if pycocotools must read keypoints.
        """
        with _lock():
            if "dataset" in vars(self) or self._detections is not None:
                return None
            if kind not in self._columns:
                self._columns[kind] = self._read_truth(kind)
            truth: InstanceTruth = self._columns[kind]
            return truth

    def _read_truth(self, kind: str) -> InstanceTruth:
        document = self._document
        if self._annotations is not None:
            columns, points = self._annotations[0], self._annotations[0].points
            if kind == "keypoints":
                if points is None or not (points.states & points.has_box & columns.has_area).all():
                    raise ValueError
                document = set_sigmas(document, points.numbers.shape[1] // 3)
            with contextlib.suppress(*NOT_OURS):
                return truth_of_columns(document, columns, "cocoGt", masked=kind == "segm")
            document = self._make_dataset()
        if kind == "keypoints":
            rows = document["annotations"]
            return truth_of_points(document, rows, len(rows[0]["keypoints"]) // 3 if rows else _COCO_POINTS)
        if kind == "bbox":
            document = {**document, "annotations": clear_masks(document["annotations"], document["images"])}
        return truth_of(document, "cocoGt")

    def find_records(self, truth: Any, kind: str) -> InstanceRecords | None:
        """Return the detections as arrays; None if the program has changed or seen them, or Python must read them."""
        with _lock():
            return self._find_records(truth, kind)

    def _find_records(self, truth: Any, kind: str) -> InstanceRecords | None:
        if self._detections is None or self._detections[0] is not truth:
            return None
        data = self._detections[1]
        if isinstance(data, list):  # a program may have changed them meanwhile
            annotations = truth.find_truth(kind) if kind != "segm" else None
            return None if annotations is None else read_rows(data, annotations.images, kind, complete=False)
        if kind not in self._columns:
            try:
                if kind == "keypoints" and _SHAPES[2] in data[:_FIRST_RECORD]:
                    raise UsageError("pycocotools takes the areas of detections from their masks")
                annotations = truth.find_truth(kind)
                protocol = INSTANCE_PROTOCOLS[PROTOCOLS[kind]]
                self._columns[kind] = annotations and check_json(data, annotations.images, protocol)
            except NOT_OURS:
                self._columns[kind] = None
        records: InstanceRecords | None = self._columns[kind]
        return records


def _are_boxes(rows: list[dict[str, Any]], images: dict[int, Any]) -> bool:
    """Return whether records are boxes, to which pycocotools only adds fields."""
    first_row = rows[0]
    if (
        not isinstance(first_row, dict)
        or "caption" in first_row
        or not isinstance(first_row.get("bbox"), list)
        or not first_row["bbox"]
    ):
        return False
    try:
        is_whole = {*map(len, map(itemgetter("bbox"), rows))} == {4}
        return is_whole and {*map(itemgetter("image_id"), rows)} <= images.keys()
    except (TypeError, KeyError):
        return False


def _complete_boxes(rows: list[dict[str, Any]]) -> None:
    """Complete records with boxes as pycocotools does."""
    for number, row in enumerate(rows, 1):
        x, y, width, height = row["bbox"]
        if "segmentation" not in row:
            right, bottom = x + width, y + height
            row["segmentation"] = [[x, y, x, bottom, right, bottom, right, y]]
        row["area"], row["id"], row["iscrowd"] = width * height, number, 0


def clear_masks(rows: Sequence[dict[str, Any]], images: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return annotations with empty masks, which are read faster."""
    sizes = {image["id"]: (image["height"], image["width"]) for image in images}
    nothing = {size: {"size": list(size), "counts": compress([size[0] * size[1]])} for size in {*sizes.values()}}
    return [{**row, "segmentation": nothing[sizes[row["image_id"]]]} for row in rows]


def set_sigmas(document: dict[str, Any], count: int) -> dict[str, Any]:
    """Return a document whose categories have this number of sigmas; `COCOeval` replaces them with its own."""
    return {**document, "categories": [{**row, "sigmas": [1.0] * count} for row in document["categories"]]}


def truth_of_points(document: dict[str, Any], rows: Sequence[dict[str, Any]], count: int) -> InstanceTruth:
    """Return annotations with this number of keypoints, without masks; raises one of `NOT_OURS` for others."""
    keys = ("id", "image_id", "category_id", "area", "keypoints", "num_keypoints", "bbox")
    rows = [{**{key: row[key] for key in keys}, "iscrowd": row.get("iscrowd", 0)} for row in rows]
    return truth_of({**set_sigmas(document, count), "annotations": rows}, "cocoGt")


def read_rows(
    rows: Sequence[dict[str, Any]], images: KnownImages, kind: str, *, complete: bool = True
) -> InstanceRecords | None:
    """Return detections as arrays; None if a mask is not compressed, or raises one of `NOT_OURS`.

    Masks have counts as text or bytes; detections of images that the truth lacks are left out. If they are not
    `complete`, they have boxes, from which their areas are computed.
    """
    image = places_of(images.ids, _read_numbers([row["image_id"] for row in rows], "q"))
    if (image < 0).any():
        listed = np.flatnonzero(image >= 0)
        rows, image = [rows[index] for index in listed.tolist()], image[listed]
    category = places_of(images.categories, _read_numbers([row["category_id"] for row in rows], "q"))
    score = _read_numbers([row["score"] for row in rows], "d")
    sides, texts, points = np.zeros((len(rows), 4)), [""] * len(rows), np.zeros((len(rows), 0))
    area = pixels = np.zeros(len(rows))
    if kind == "bbox" or not complete:
        sides = _read_lists([row["bbox"] for row in rows], 4)
        area = pixels = sides[:, 2] * sides[:, 3]
        if not (np.abs(sides) <= LARGEST_SIDE).all() or (sides[:, 2:] < 0).any():
            raise ValueError
    if kind == "keypoints":
        points = _read_lists([row["keypoints"] for row in rows], 3 * images.keypoints)
        points = extract_coordinates(points, images.keypoints)
    if kind == "segm":
        masks = [row["segmentation"] for row in rows]
        if not all(isinstance(mask, dict) and isinstance(mask["counts"], str | bytes) for mask in masks):
            return None
        counts = [mask["counts"] for mask in masks]
        texts = [text if isinstance(text, str) else text.decode("ascii") for text in counts]
        if not np.array_equal(np.array([mask["size"] for mask in masks]).reshape(-1, 2), images.sizes[image]):
            raise ValueError
        checked = backend().check_masks(texts, images.pixels(image))
        area = pixels = checked.area
        if checked.fault.any() or not all(map(str.isascii, texts)):
            raise ValueError
    if complete:
        area = _read_numbers([row["area"] for row in rows], "d")
    if not np.isfinite(score).all():
        raise ValueError
    dropped = np.zeros(len(images.ids), np.int64)
    return InstanceRecords(image, category, score, area, pixels, pack_texts(texts), sides, points, dropped, [])


def _read_lists(lists: list[Any], length: int) -> Array:
    """Return lists of this length as rows; raises ValueError for others."""
    if not {*map(len, lists)} <= {length} or str in {*map(type, lists)}:
        raise ValueError
    return np.fromiter(chain.from_iterable(lists), float, length * len(lists)).reshape(len(lists), length)


def _read_numbers(values: list[Any], kind: str) -> Array:
    """Return whole numbers (q) or any (d) as an array; raises TypeError, ValueError or OverflowError for others."""
    return np.frombuffer(array(kind, values), kind) if values else np.zeros(0, kind)
