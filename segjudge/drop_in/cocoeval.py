"""A stand-in for `pycocotools.cocoeval`: the same verbs and the same numbers, sooner."""

import contextlib
import copy
import datetime
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from pycocotools import cocoeval as incumbent

from segjudge.evaluation_script.families.instances.matching import (
    ImageBlock,
    InstanceCounts,
    cut_into_blocks,
    match_block,
    merge_counts,
)
from segjudge.evaluation_script.families.instances.metrics import RECALLS, MatchedDetections
from segjudge.evaluation_script.families.instances.protocols import (
    AREAS,
    INSTANCE_PROTOCOLS,
    THRESHOLDS,
    InstanceProtocol,
)
from segjudge.evaluation_script.families.instances.submission import check_records
from segjudge.evaluation_script.families.instances.truth import truth_of
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks.backend import backend
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.memory import read_run_lengths
from segjudge.system.errors import UsageError

#: Its classes, whose attributes programs set to anything.
_Incumbent: Any = incumbent.COCOeval
_IncumbentParams: Any = incumbent.Params
#: Who replaces one of these has pycocotools call it.
_OWN_RULES = ("_prepare", "computeIoU", "evaluateImg")
#: Our row for each kind of comparison.
_KINDS = {"segm": "coco", "bbox": "coco-box", "boundary": "coco-boundary"}


class _Coco(Protocol):
    """The attributes of `pycocotools.coco.COCO` that are read."""

    dataset: dict[str, Any]


class Params(_IncumbentParams):  # type: ignore[misc]
    """The parameters of a comparison, as pycocotools has them; `boundary` is compared like `segm`."""

    def __init__(self, iouType: str = "segm") -> None:
        if iouType not in (*_KINDS, "keypoints"):
            raise UsageError(f"iouType {iouType!r} is not scored, only {', '.join((*_KINDS, 'keypoints'))}")
        super().__init__("segm" if iouType == "boundary" else iouType)
        self.iouType = iouType


class COCOeval(_Incumbent):  # type: ignore[misc]
    """Precision and recall of detections: `evaluate`, `accumulate`, `summarize`, then `stats` and `eval`.

    It is pycocotools' own class, so that programs may use, replace and inherit all of it; with COCO's thresholds,
    four ranges of areas and three caps `evaluate` and `accumulate` are ours.  `evalImgs` and `ious` are made when
    they are first read.
    """

    def __init__(self, cocoGt: _Coco | None = None, cocoDt: _Coco | None = None, iouType: str = "segm") -> None:
        self._counts: InstanceCounts | None = None
        self.eval: Any
        self._paramsEval: Any
        super().__init__(None, cocoDt, "segm")
        self.cocoGt: Any = cocoGt
        self.params: Any = Params(iouType)
        if cocoGt is not None:
            images, categories = (sorted(row["id"] for row in cocoGt.dataset[key]) for key in ("images", "categories"))
            self.params.imgIds, self.params.catIds = images, categories

    @property
    def evalImgs(self) -> Any:
        """What was matched in each image, by categories and ranges of areas; it may be replaced."""
        self._match_as_pycocotools()
        return self._images

    @evalImgs.setter
    def evalImgs(self, images: Any) -> None:
        self._images, self._counts = images, None

    @property
    def ious(self) -> Any:
        """The overlaps of each image and category."""
        self._match_as_pycocotools()
        return self._overlaps

    @ious.setter
    def ious(self, overlaps: Any) -> None:
        self._overlaps = overlaps

    def _match_as_pycocotools(self) -> None:
        """Have pycocotools match the images as well, if we did until now."""
        counts = self._counts
        if counts is None or self._images is not None:
            return
        if self.params.iouType == "boundary":
            raise UsageError("of boundaries there is precision and recall, without evalImgs and ious")
        accumulated, params = self.eval, self.params
        self.params = copy.deepcopy(self._paramsEval)
        with contextlib.redirect_stdout(io.StringIO()):
            super().evaluate()
        self.eval, self.params, self._counts = accumulated, params, counts

    def evaluate(self) -> None:
        """Match the detections of every image with the truth."""
        if self.cocoGt is None or self.cocoDt is None:
            raise UsageError("give the truth and the detections, when it is made or as cocoGt and cocoDt")
        params = self.params
        if params.useSegm is not None:
            params.iouType = "segm" if params.useSegm == 1 else "bbox"
        params.imgIds, params.maxDets = list(np.unique(params.imgIds)), sorted(params.maxDets)
        if params.useCats:
            params.catIds = list(np.unique(params.catIds))
        self._counts = None
        try:
            if any(getattr(type(self), name) is not getattr(_Incumbent, name) for name in _OWN_RULES):
                raise UsageError("a subclass has rules of its own")
            blocks = self._open_blocks(_find_protocol(params))
        except (UsageError, SubmissionError, HostError, ArithmeticError, LookupError, TypeError, ValueError):
            # What is not ours to match, or not as COCO has it: pycocotools takes it, or raises its own error.
            if params.iouType == "boundary":
                raise
            super().evaluate()
            return
        self.eval, self._paramsEval = {}, copy.deepcopy(params)
        self._images = self._overlaps = None
        self._counts = merge_counts(list(map(match_block, blocks)))

    def _open_blocks(self, protocol: InstanceProtocol) -> list[ImageBlock]:
        """Cut what is matched into blocks; raises whatever truth and detections that are not COCO's lead to."""
        params = self.params
        images, categories = set(params.imgIds), list(params.catIds)
        listed_images = [row for row in self.cocoGt.dataset["images"] if row["id"] in images]
        document = {
            "images": sorted(listed_images, key=lambda row: row["id"]),
            "categories": [row for row in self.cocoGt.dataset["categories"] if row["id"] in categories],
            "annotations": self._select_annotations(self.cocoGt),
        }
        if not params.useCats:
            document["categories"] = [{"id": -1, "name": "all"}]
        truth, detections = truth_of(document, "cocoGt"), self._select_annotations(self.cocoDt)
        area = np.array([row["area"] for row in detections], float)  # as `loadRes` says, be it of a box
        records = replace(check_records(detections, truth.images, protocol), area=area)
        return cut_into_blocks(records, truth, protocol, np.arange(len(truth.images.ids)), 1)

    def _select_annotations(self, coco: _Coco) -> list[dict[str, Any]]:
        """The annotations of the images and categories that are compared, in the order of the categories."""
        order = {number: index for index, number in enumerate(self.params.catIds)}
        images = set(self.params.imgIds)
        rows = [row for row in coco.dataset["annotations"] if row["image_id"] in images and row["category_id"] in order]
        if not self.params.useCats:
            rows = [{**row, "category_id": -1} for row in sorted(rows, key=lambda row: order[row["category_id"]])]
        if self.params.iouType == "bbox":
            sizes = {image["id"]: (image["height"], image["width"]) for image in self.cocoGt.dataset["images"]}
            nothing = {
                size: {"size": list(size), "counts": compress([size[0] * size[1]])} for size in {*sizes.values()}
            }
            # `loadRes` makes arrays of masks' boxes.
            boxes = [np.asarray(row["bbox"], float).tolist() for row in rows]
            return [
                {**row, "bbox": box, "segmentation": nothing[sizes[row["image_id"]]]}
                for row, box in zip(rows, boxes, strict=True)
            ]
        masks = [row["segmentation"] for row in rows]
        texts = [read_run_lengths(mask, "a mask") if isinstance(mask, dict) else mask for mask in masks]
        return [{**row, "segmentation": text} for row, text in zip(rows, texts, strict=True)]

    def accumulate(self, p: Any = None) -> None:
        """Draw the curves of every category, range of areas and cap, into `eval`."""
        if self._counts is None or p is not None or not _are_equal(self.params, self._paramsEval):
            if self._counts is None and not len(self._images):
                raise UsageError("call evaluate() first")
            with contextlib.redirect_stdout(io.StringIO()):
                super().accumulate(p)
            return
        if not self.params.useCats:
            self.params.catIds = [-1]  # as pycocotools leaves them
        caps, categories = self.params.maxDets, len(self.params.catIds)
        pairs = [(area, cap) for area in range(len(AREAS)) for cap in range(len(caps))]
        curves = MatchedDetections(self._counts, categories, caps).curves(pairs)
        self.eval = {
            "params": self.params,
            "counts": list(curves.precision.shape),
            "date": datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%d %H:%M:%S"),
            "precision": curves.precision,
            "recall": curves.recall,
            "scores": _find_scores(self._counts, curves.precision, caps),
        }

    def summarize(self) -> None:
        """Print twelve means, and keep them as `stats`; -1 where there is nothing to average."""
        if not self.eval:
            raise UsageError("call accumulate() first")
        kind, params = self.params.iouType, self.params
        if kind != "keypoints" and len(params.maxDets) < 3:
            number = len(params.maxDets)
            raise UsageError(
                f"the summary has three numbers of detections, and maxDets {number}; the curves are in eval"
            )
        params.iouType = "segm" if kind == "boundary" else kind  # its lines are the same for whatever is compared
        try:
            super().summarize()
        finally:
            params.iouType = kind


def _find_protocol(params: Any) -> InstanceProtocol:
    """Find the rules; raises UsageError for those that are not ours to score."""
    if params.iouType not in _KINDS:
        raise UsageError(f"iouType {params.iouType!r} is scored by pycocotools alone")
    if not np.array_equal(params.iouThrs, THRESHOLDS) or not np.array_equal(params.recThrs, RECALLS):
        raise UsageError("boundaries have the iouThrs and recThrs of COCO; others are not scored")
    if len(params.areaRng) != len(AREAS) or len(params.maxDets) != 3:
        raise UsageError("of boundaries areaRng has four ranges and maxDets three numbers; others are not scored")
    return replace(
        INSTANCE_PROTOCOLS[_KINDS[params.iouType]],
        detections=tuple(map(int, params.maxDets)),
        areas=tuple((float(low), float(high)) for low, high in params.areaRng),
        id_zero_quirk=True,
    )


def _are_equal(params: Any, params_before: Any) -> bool:
    """Whether parameters ask for the same."""
    names = ("imgIds", "catIds", "maxDets", "iouThrs", "recThrs", "areaRng")
    same = all(np.array_equal(getattr(params, name), getattr(params_before, name)) for name in names)
    return same and (params.iouType, bool(params.useCats)) == (params_before.iouType, bool(params_before.useCats))


def _find_scores(counts: InstanceCounts, precision: Array, caps: Sequence[int]) -> Array:
    """The score of the detection with which each recall is reached; 0 where none is, -1 without instances."""
    scores = np.where(precision < 0, -1.0, 0.0)
    order = backend().order_by_score(counts.detections["score"], counts.detections["category"])
    detections = counts.detections[order]
    for category, area, cap in np.argwhere(precision[0, 0] >= 0).tolist():
        members = detections[(detections["category"] == category) & (detections["rank"] < caps[cap])]
        instances = counts.truth["counted"][counts.truth["category"] == category, area].sum()
        true = members["matched"] & ~members["ignored"]
        for threshold in range(len(THRESHOLDS)):
            bit = np.uint64(area * len(THRESHOLDS) + threshold)
            rows = np.searchsorted(np.cumsum(true >> bit & np.uint64(1)) / instances, RECALLS)
            reached = rows < len(members)
            scores[threshold, reached, category, area, cap] = members["score"][rows[reached]]
    return scores
