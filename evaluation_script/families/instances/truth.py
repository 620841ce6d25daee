"""The truth of instances: COCO's JSON, alone or packed with other datasets as splits.

Videos of YouTube-VIS and OVIS are read as images as wide as all of their frames.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple, Union

import numpy as np

from ...files.packed import (
    MANIFEST,
    add_member,
    family_of,
    list_damages,
    make_manifest,
    open_packed,
    replace_file,
    splits_of,
)
from ...files.problems import Flaw, HostError, TruthFlaw, explain_damage, name_list, quantity
from ...masks import run_lengths as rle
from ...masks.backend import backend
from ...masks.polygons import polygon_masks
from ...masks.run_lengths import MaskTexts, pack_texts
from ...masks.stack import Array, places_of
from ...runner.tuning import without_collector
from ...values.arithmetic import mean
from ..base.truth import SplitTruth
from .annotation_columns import AnnotationColumns, compress_nothing, read_annotations
from .keypoints import TrueKeypoints, join_true_keypoints, read_true_keypoints
from .protocols import InstanceProtocol
from .records import UNUSUAL, Category, KnownImages, check_tube, read_tubes

_FAMILY_NAME = "instances"
#: How a zip begins.
_ZIP = b"PK\3\4"
#: The hidden share of an instance in a frame, by OVIS's label.
LABELS = {"no_occlusion": 0.0, "slight_occlusion": 0.25, "severe_occlusion": 0.75}


@dataclass(frozen=True)
class Coverage:
    """Pairs of image and category, each as one number, that are known to be absent or incomplete."""

    #: Categories that the truth lists as absent; None if it lists none for any image.
    negative: Optional[Array] = None
    #: Categories whose objects are not all annotated.
    inexhaustive: Array = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True)
class InstanceTruth(SplitTruth):
    """The annotated images of one dataset."""

    images: KnownImages
    categories: List[Category]
    #: One entry per annotation.
    ids: Array
    image: Array
    category: Array
    #: The annotated areas, and the pixels of the masks.
    area: Array
    pixels: Array
    crowd: Array
    masks: MaskTexts
    boxes: Array
    #: The file names of images by id, if the document has them.
    names: Dict[int, str] = field(default_factory=dict)
    notes: List[str] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)
    #: The hidden share of each instance, -1 if unknown.
    occlusion: Array = field(default_factory=lambda: np.zeros(0))
    #: The keypoints of all annotations, or the reason why they cannot be scored.
    keypoints: Optional[TrueKeypoints] = None
    keypoint_fault: str = ""
    #: Whether every annotation has a mask.
    masked: bool = True
    #: For each annotation, its distance in metres and the share of its pixels with a measured distance.
    distances: Optional[Array] = None
    family: str = _FAMILY_NAME

    @property
    def form(self) -> str:
        return "images" if self.images.frames is None else "videos"

    def find_fault(self, protocol: InstanceProtocol) -> str:
        if not protocol.keypoints:
            lacks_masks = not self.masked and not protocol.boxes
            return f"has annotations without masks, which {protocol.name} compares" if lacks_masks else ""
        if self.keypoints is None:
            return self.keypoint_fault or f"holds no keypoints, which {protocol.name} compares"
        return "" if protocol.boxes_give_areas else self.keypoints.find_miscounted(self.ids)

    def list_oddities(self, protocol: InstanceProtocol) -> List[str]:
        return [*self.notes, *(self.keypoints.notes if protocol.keypoints and self.keypoints else [])]

    def read_through(self) -> str:
        """Return the size of the truth in words; it is already read."""
        return quantity(len(self.images.ids), self.form[:-1])


def read(path: str, split: str = "val") -> Dict[str, InstanceTruth]:
    """Open an annotation file: packed, or a COCO-format document (plain, gzipped or zipped) as one split."""
    try:
        if family_of(path):
            packed, manifest = open_packed(path, _FAMILY_NAME)
            names = manifest["splits"]
            return {name: read_document(bytes(packed.read(_member(name))), f"{path}, {name}") for name in names}
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as file:
                names = [name for name in file.namelist() if name.endswith(".json")]
                if len(names) != 1:
                    content = f"{len(names)} JSON files" if names else "no JSON file"
                    raise HostError(f"{path}: holds {content}; an annotation file has one")
                return {split: read_document(file.read(names[0]), path)}
        with open(path, "rb") as plain:
            data = plain.read()
        if data.startswith(_ZIP):
            raise HostError(f"{path}: is a zip that was cut off: its table of contents is missing. Create it again")
        if data.startswith(b"\x1f\x8b"):
            import gzip  # few truths are compressed so

            data = gzip.decompress(data)
        return {split: read_document(data, path)}
    except list_damages() as error:
        raise HostError(
            f"{path}: cannot be read ({getattr(error, 'strerror', None) or explain_damage(error)})"
        ) from None


def documents(path: str) -> Dict[str, bytes]:
    """Return the documents of a packed file, by split."""
    if family_of(path) != _FAMILY_NAME:
        raise HostError(f"{path}: holds no packed instance masks, so no split can be added")
    with zipfile.ZipFile(path) as file:
        return {name: file.read(_member(name)) for name in splits_of(path)}


def write(path: str, splits: Dict[str, bytes]) -> None:
    """Pack COCO-format documents as splits; the same documents give the same bytes."""
    manifest = make_manifest(_FAMILY_NAME, {name: _count_entries(data) for name, data in splits.items()})
    with replace_file(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in splits.items():
            add_member(out, _member(name), data)
        add_member(out, MANIFEST, json.dumps(manifest, indent=1).encode())


def _count_entries(data: bytes) -> Dict[str, int]:
    document = json.loads(data)
    return {key: len(document[key]) for key in ("images", "videos", "categories", "annotations") if key in document}


def _member(split: str) -> str:
    return f"instances/{split}.json"


def read_document(data: bytes, name: str) -> InstanceTruth:
    """Return the truth of a COCO-format document."""
    try:
        with without_collector():
            return _read_by_kernel(data, name) or truth_of(json.loads(data), name)
    except (ValueError, OverflowError) as error:
        raise HostError(f"{name}: is not an annotation file in COCO's format ({_explain_error(error)})") from None


#: The sources of values that annotations lack.
_FROM_MASK, _NO_CROWD = "from the mask", "to be 0"


def _read_by_kernel(data: bytes, name: str) -> Optional[InstanceTruth]:
    """Return the truth of a document whose annotations have the usual form; None for unusual or invalid ones."""
    try:
        parts = read_annotations(data)
        return None if parts is None else truth_of_columns(*parts, name)
    except (*UNUSUAL, HostError):
        return None


def truth_of_columns(
    document: Dict[str, Any], columns: AnnotationColumns, name: str, *, masked: bool = True
) -> InstanceTruth:
    """Return the truth of a document and its annotations, with empty masks if not `masked`; raises one of `UNUSUAL`."""
    return _Document({**document, "annotations": []}, name, []).join(columns, masked=masked)


def truth_of(document: Any, name: str) -> InstanceTruth:
    """Return the truth of a parsed document in COCO's format."""
    try:
        if not isinstance(document, dict):
            raise HostError(f"{name}: is JSON, but not an annotation file in COCO's format: not an object")
        notes: List[str] = []
        if "videos" in document and "images" not in document:
            document = _videos_as_images(document, notes)
        return _Document(document, name, notes).truth()
    except HostError:
        raise
    except Flaw as flaw:
        raise HostError(f"{name}: {flaw}") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise HostError(f"{name}: is not an annotation file in COCO's format ({_explain_error(error)})") from None


def _explain_error(error: Exception) -> str:
    """Return the reason why a document could not be read."""
    if isinstance(error, json.JSONDecodeError):
        cause = explain_damage(error)
        return f"not JSON: {error}" if cause == str(error) else cause
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return f"{type(error).__name__}: {error}"


class _Document:
    """Reads a COCO-format document."""

    def __init__(self, document: Dict[str, Any], name: str, notes: List[str]) -> None:
        self._name = name
        self._images = sorted(document["images"], key=lambda image: image["id"])
        self._categories = sorted(document["categories"], key=lambda category: category["id"])
        self._annotations = document["annotations"]
        #: The keys that at least one annotation has.
        self._keys: Set[str] = set().union(*self._annotations)
        self._notes = notes

    def truth(self) -> InstanceTruth:
        """Return the truth as arrays; raises HostError, or the error of a malformed document."""
        ids = np.array([image["id"] for image in self._images], np.int64)
        sizes = self._measure_sizes()
        categories = np.array([category["id"] for category in self._categories], np.int64)
        frames = [image["frames"] for image in self._images if "frames" in image]
        keypoints, keypoint_fault = self._read_keypoints()
        images = KnownImages(
            ids,
            sizes,
            categories,
            np.array(frames, np.int64) if frames else None,
            0 if keypoints is None else keypoints.points.shape[1],
        )
        annotation_ids = [annotation["id"] for annotation in self._annotations]
        self._check_unique(ids.tolist(), "images")
        self._check_unique(categories.tolist(), "categories")
        self._check_unique(annotation_ids, "annotations")
        image = images.image_indices([annotation["image_id"] for annotation in self._annotations])
        unlisted = [annotation_ids[index] for index in np.flatnonzero(image < 0)]
        if unlisted:
            raise HostError(f"{self._name}: annotations of images that are not listed: {name_list(unlisted)}")
        category = images.category_indices([annotation["category_id"] for annotation in self._annotations])
        masks = self._read_masks(sizes[image])
        checked = backend().check_masks(masks, sizes[image, 0] * sizes[image, 1])
        faulty = np.flatnonzero(checked.fault)
        if len(faulty):
            fault = rle.FAULTS[int(checked.fault[faulty[0]])]
            raise HostError(f"{self._name}: annotation {annotation_ids[faulty[0]]} {fault}")
        return InstanceTruth(
            images=images,
            categories=[
                Category(int(category["id"]), str(category["name"]), str(category.get("frequency", "")))
                for category in self._categories
            ],
            ids=np.array(annotation_ids, np.int64),
            image=image,
            category=category,
            area=np.array(self._values_of("area", checked.area.tolist(), _FROM_MASK), float),
            pixels=checked.area,
            crowd=np.array(list(map(bool, self._values_of("iscrowd", repeat(0), _NO_CROWD))), bool),
            masks=pack_texts(masks),
            boxes=self._read_column("bbox", (0, 0, 0, 0)).reshape(-1, 4),
            names={int(image["id"]): str(image["file_name"]) for image in self._images if "file_name" in image},
            notes=self._notes,
            coverage=self._read_coverage(images),
            occlusion=self._read_column("hidden", -1),
            keypoints=keypoints,
            keypoint_fault=keypoint_fault,
            masked=not any(map(_lacks_mask, self._annotations)),
            distances=self._read_distances(),
        )

    def join(self, columns: AnnotationColumns, *, masked: bool) -> InstanceTruth:
        """Return the truth with annotations read as columns; raises an error if any is unusual."""
        truth = self.truth()
        image = places_of(truth.images.ids, columns.image_id)
        if (image < 0).any():
            raise ValueError
        keypoints, images = None, truth.images
        if columns.points is not None:
            keypoints = join_true_keypoints(columns.points, self._categories)
            images = replace(images, keypoints=keypoints.points.shape[1])
        elif truth.keypoints is not None or truth.keypoint_fault:
            raise ValueError
        ids = np.sort(columns.ids)  # np.unique would load numpy.ma
        if (ids[1:] == ids[:-1]).any():
            raise ValueError
        masks, pixels = columns.draw(truth.images.sizes[image]) if masked else columns.leave_empty()
        self._note_lacking("area", int(np.count_nonzero(~columns.has_area)), _FROM_MASK)
        self._note_lacking("iscrowd", int(np.count_nonzero(~columns.has_crowd)), _NO_CROWD)
        return replace(
            truth,
            images=images,
            ids=columns.ids,
            image=image,
            category=places_of(truth.images.categories, columns.category_id),
            area=np.where(columns.has_area, columns.area, pixels),
            pixels=pixels,
            crowd=columns.crowd,
            masks=masks,
            boxes=columns.boxes,
            occlusion=np.full(len(image), -1.0),
            keypoints=keypoints,
            keypoint_fault="",
            masked=bool(columns.has_mask.all()),
        )

    def _read_keypoints(self) -> Tuple[Optional[TrueKeypoints], str]:
        """Return the keypoints, or the reason why they cannot be scored, which mask protocols ignore."""
        if self._keys.union(*self._categories).isdisjoint(("keypoints", "sigmas")):
            return None, ""
        try:
            return read_true_keypoints(self._annotations, self._categories), ""
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            return None, f"has keypoints that cannot be read ({_explain_error(error)})"
        except Flaw as flaw:
            return None, f"{flaw.fault}. {flaw.remedy}"

    def _read_distances(self) -> Optional[Array]:
        """Return distances; unmeasured ones count as far away."""
        if not any("distance" in annotation for annotation in self._annotations):
            return None
        pairs = [(annotation.get("distance", -1), annotation.get("density", 0)) for annotation in self._annotations]
        return np.array(pairs, float)

    def _read_coverage(self, images: KnownImages) -> Coverage:
        states_negatives = any("neg_category_ids" in image for image in self._images)
        negative = self._pair_categories(images, "neg_category_ids") if states_negatives else None
        return Coverage(negative, self._pair_categories(images, "not_exhaustive_category_ids"))

    def _pair_categories(self, images: KnownImages, key: str) -> Array:
        """Return images with each of the categories that they list, as one number."""
        listed_ids = [image.get(key) or [] for image in self._images]
        if not any(listed_ids):
            return np.zeros(0, np.int64)
        image = np.repeat(np.arange(len(listed_ids)), list(map(len, listed_ids)))
        category = images.category_indices([number for ids in listed_ids for number in ids])
        pairs: Array = (image * len(images.categories) + category)[category >= 0]
        return pairs

    def _measure_sizes(self) -> Array:
        lacking = [image["id"] for image in self._images if not {"height", "width"} <= image.keys()]
        if lacking:
            raise HostError(f"{self._name}: images without height and width: {name_list(lacking)}")
        return np.array([(image["height"], image["width"]) for image in self._images], np.int64).reshape(-1, 2)

    def _check_unique(self, ids: List[Any], kind: str) -> None:
        if len(set(ids)) < len(ids):
            ordered = sorted(ids)
            repeated = [following for number, following in zip(ordered, ordered[1:]) if number == following]
            raise HostError(f"{self._name}: {kind} with the same id: {name_list(repeated)}")

    def _read_masks(self, sizes: Array) -> List[str]:
        """Return the run lengths of all annotations as text; polygons are rasterised together, which is faster."""
        texts: List[str] = []
        outlines: Dict[int, List[Any]] = {}
        for annotation, size in zip(self._annotations, sizes.tolist()):
            if _lacks_mask(annotation):
                texts.append(compress_nothing(size[0] * size[1]))
                continue
            segmentation = annotation["segmentation"]
            if isinstance(segmentation, list):
                outlines[len(texts)] = segmentation
                texts.append("")
                continue
            if list(segmentation["size"]) != size:
                problem = f"has the size {segmentation['size']} but its image is {size}"
                raise HostError(f"{self._name}: the mask of annotation {annotation['id']} {problem}")
            counts = segmentation["counts"]
            texts.append(
                counts if isinstance(counts, str) else rle.compress(rle.runs_of(counts, size[0] * size[1]).tolist())
            )
        for index, text in zip(outlines, polygon_masks(list(outlines.values()), sizes[list(outlines)])):
            texts[index] = text
        return texts

    def _values_of(self, key: str, missing: Iterable[float], origin: str) -> List[Any]:
        """Return a field of all annotations, with a computed value for missing ones."""
        self._note_lacking(key, sum(key not in annotation for annotation in self._annotations), origin)
        return [annotation.get(key, default) for annotation, default in zip(self._annotations, missing)]

    def _note_lacking(self, key: str, lacking: int, origin: str) -> None:
        if lacking:
            self._notes.append(f"{quantity(lacking, 'annotation')} without {key}: it is taken {origin}")

    def _read_column(self, key: str, missing: Union[float, Tuple[float, ...]]) -> Array:
        """Return a field of all annotations, with a default for missing ones."""
        if key not in self._keys:
            return np.tile(np.array(missing, float), len(self._annotations))
        return np.array([annotation.get(key, missing) for annotation in self._annotations], float)


def _lacks_mask(annotation: Dict[str, Any]) -> bool:
    """Return whether an annotation has a box or keypoints with an area instead of a mask."""
    has_shape = "keypoints" in annotation or bool(annotation.get("bbox"))
    return has_shape and "area" in annotation and annotation.get("segmentation", []) == []


def _videos_as_images(document: Dict[str, Any], notes: List[str]) -> Dict[str, Any]:
    """Return a document of videos as a document of images; raises Flaw or KeyError if that is impossible."""
    if document["annotations"] is None:
        raise TruthFlaw("holds no annotations (null), as in the files of unpublished test sets", "Use another file")
    videos = {video["id"]: video for video in document["videos"]}
    images = [
        {**video, "width": video["width"] * video["length"], "frames": video["length"]} for video in videos.values()
    ]
    if len(images) < len(document["videos"]):
        raise TruthFlaw("holds videos with the same id", "Give each video its own id")
    empty = [image["id"] for image in images if image["width"] < 1 or image["height"] < 1]
    if empty:
        raise TruthFlaw(f"holds videos without pixels: {empty}", "Remove them")
    annotations = _convert_video_annotations(document["annotations"], videos)
    unseen = sum(not annotation["area"] for annotation in annotations)
    if unseen:
        notes.append(f"{quantity(unseen, 'annotation')} without area in any frame, which no prediction can match")
    unlabelled = sum(annotation["hidden"] < 0 for annotation in annotations)
    if 0 < unlabelled < len(annotations):
        notes.append(f"{quantity(unlabelled, 'annotation')} without occlusion, which belong to no occlusion range")
    return {**document, "images": images, "annotations": annotations}


def _convert_video_annotations(annotations: List[Dict[str, Any]], videos: Dict[int, Any]) -> List[Dict[str, Any]]:
    """Return annotations of videos as annotations of images."""
    try:
        listed = [videos[annotation["video_id"]] for annotation in annotations]
        wide = [[video["height"], video["width"] * video["length"]] for video in listed]
        frames = np.array([video["length"] for video in listed], np.int64)
        masks = [annotation["segmentations"] for annotation in annotations]
        tubes = read_tubes(masks, np.array(wide, np.int64).reshape(-1, 2), frames)
    except UNUSUAL:
        for annotation in annotations:
            _check_tube_annotation(annotation, videos)
        raise
    return [
        {
            "id": annotation["id"],
            "image_id": annotation["video_id"],
            "category_id": annotation["category_id"],
            "iscrowd": annotation.get("iscrowd", 0),
            "area": _area_of_video(annotation, float(tubes.mean_area[index])),
            "segmentation": {"size": wide[index], "counts": tubes.masks[index]},
            "hidden": mean_occlusion(annotation.get("occlusion")),
        }
        for index, annotation in enumerate(annotations)
    ]


def _check_tube_annotation(annotation: Dict[str, Any], videos: Dict[int, Any]) -> None:
    """Raise a Flaw if an annotation is invalid."""
    video = videos.get(annotation["video_id"])
    if video is None:
        problem = f"annotation {annotation['id']} names the video {annotation['video_id']}, which is not listed"
        raise TruthFlaw(problem, "List it")
    try:
        check_tube(annotation["segmentations"], (video["height"], video["width"]), video["length"])
    except Flaw as flaw:
        raise Flaw(f"annotation {annotation['id']} {flaw.fault}", flaw.remedy) from None


def _area_of_video(annotation: Dict[str, Any], shown: float) -> float:
    """Return a video's mean area, from the annotation or else from its masks."""
    areas = [area for area in annotation.get("areas") or [] if area]
    return mean(areas) if areas else 0.0 if "areas" in annotation else shown


def mean_occlusion(labels: object) -> float:
    """Return the occlusion of an instance: the mean of the upper half of its labels, or -1 without labels."""
    values = sorted(LABELS[label] for label in (labels if isinstance(labels, list) else []) if label is not None)
    return mean(values[len(values) // 2 :]) if values else -1.0
