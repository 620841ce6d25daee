"""A drop-in replacement of `pycocotools.cocoeval`: the same methods and numbers, faster."""

import copy
import datetime
import os
import time
from collections import defaultdict
from dataclasses import replace
from inspect import getattr_static
from typing import Any

import numpy as np

from segjudge.drop_in.coco import (
    COCO,
    NOT_OURS,
    PROTOCOLS,
    Inherited,
    clear_masks,
    find_incumbent,
    hold_output,
    read_rows,
    truth_of_points,
)
from segjudge.drop_in.summaries import SIZES, summarize
from segjudge.drop_in.tables import average_present, confuse, trace_f_measures
from segjudge.evaluation_script.families.instances.keypoints import COCO_SIGMAS, TrueKeypoints
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
    PER_IMAGE,
    THRESHOLDS,
    InstanceProtocol,
)
from segjudge.evaluation_script.families.instances.submission import InstanceRecords, check_records
from segjudge.evaluation_script.families.instances.truth import InstanceTruth, truth_of
from segjudge.evaluation_script.masks.stack import places_of
from segjudge.evaluation_script.runner.tuning import without_collector
from segjudge.system.errors import UsageError

#: The methods that pycocotools calls if a program replaces them.
_OWN_RULES = ("_prepare", "computeIoU", "evaluateImg")
#: The protocol of each kind of comparison.
_KINDS = {"segm": "coco", "bbox": PROTOCOLS["bbox"], "boundary": "coco-boundary", "keypoints": PROTOCOLS["keypoints"]}
#: pycocotools' names of the ranges of AREAS.
_AREA_NAMES = ("all", *SIZES)
#: An area that no detection has, for ranges that a program does not use.
_NO_RANGE = (-1.0, -1.0)


class Params:
    """The parameters of a comparison, as pycocotools has them; `boundary` is compared like `segm`."""

    setDetParams, setKpParams = Inherited(), Inherited()

    def __init__(self, iouType: str = "segm") -> None:
        if iouType not in _KINDS:
            raise UsageError(f"iouType {iouType!r} is not scored, only {', '.join(_KINDS)}")
        points = iouType == "keypoints"
        self.imgIds: Any = []
        self.catIds: Any = []
        self.iouThrs: Any = np.array(THRESHOLDS)
        self.recThrs: Any = np.array(RECALLS)
        self.maxDets: Any = [20] if points else [1, 10, 100]
        self.areaRng: Any = [[float(low), float(high)] for low, high in AREAS.values()]
        self.areaRngLbl: Any = [*_AREA_NAMES]
        if points:
            del self.areaRng[1], self.areaRngLbl[1]  # no small people
            self.kpt_oks_sigmas: Any = np.round(np.array(COCO_SIGMAS) * 10, 2) / 10  # with pycocotools' last bits
        self.useCats: Any = 1
        self.iouType: Any = iouType
        self.useSegm: Any = None


class COCOeval:
    """Precision and recall of detections: `evaluate`, `accumulate`, `summarize`, then `stats` and `eval`.

    It has all methods of pycocotools' class, so programs may use, replace and inherit them. `evaluate` and `accumulate`
    are ours for up to ten rising `iouThrs`, `recThrs` from 0, any `maxDets` and up to four ranges in `areaRng`; other
    parameters run pycocotools.  `evalImgs` and `ious` are made when they are first read.
    """

    _prepare, computeIoU, computeOks, evaluateImg, __str__ = (Inherited() for _ in range(5))

    def __init__(self, cocoGt: Any = None, cocoDt: Any = None, iouType: str = "segm") -> None:
        self._counts: InstanceCounts | None = None
        self.eval: Any
        self.stats: Any
        self._paramsEval: Any
        self._gts: Any
        self._dts: Any
        truth: Any = COCO(cocoGt) if isinstance(cocoGt, str | os.PathLike | dict) else cocoGt
        detections: Any = cocoDt
        if isinstance(cocoDt, dict):
            detections = COCO(cocoDt)
        elif isinstance(cocoDt, str | os.PathLike | list | np.ndarray):
            detections = COCO.loadRes(truth, cocoDt)
        self.cocoGt: Any = truth
        self.cocoDt: Any = detections
        self.evalImgs = defaultdict(list)
        self.ious = {}
        self.eval, self.stats = {}, []
        self._paramsEval, self._gts, self._dts = {}, defaultdict(list), defaultdict(list)
        self.params: Any = Params(iouType)
        if truth is not None:
            lists = map(self._list_truth, ("images", "categories"))
            self.params.imgIds, self.params.catIds = (sorted(row["id"] for row in rows) for rows in lists)

    def _list_truth(self, key: str) -> list[dict[str, Any]]:
        """Return the truth's `images` or `categories`."""
        rows: list[dict[str, Any]] = (
            self.cocoGt.list_rows(key) if isinstance(self.cocoGt, COCO) else self.cocoGt.dataset[key]
        )
        return rows

    @property
    def evalImgs(self) -> Any:
        """Return the matches of each image by category and range of areas; assignable."""
        self._match_as_pycocotools()
        return self._images

    @evalImgs.setter
    def evalImgs(self, images: Any) -> None:
        self._images, self._counts = images, None

    @property
    def ious(self) -> Any:
        """Return the overlaps of each image and category."""
        self._match_as_pycocotools()
        return self._overlaps

    @ious.setter
    def ious(self, overlaps: Any) -> None:
        self._overlaps = overlaps

    def _match_as_pycocotools(self) -> None:
        """Repeat the matching with pycocotools, if Segjudge did it before."""
        counts = self._counts
        if counts is None or self._images is not None:
            return
        if self.params.iouType == "boundary":
            raise UsageError("boundaries have precision and recall, but no evalImgs and ious")
        accumulated, params = self.eval, self.params
        self.params = copy.deepcopy(self._paramsEval)
        with hold_output():
            self._call("evaluate")
        self.eval, self.params, self._counts = accumulated, params, counts

    def evaluate(self) -> None:
        """Match the detections of every image with the truth."""
        if self.cocoGt is None or self.cocoDt is None:
            raise UsageError("give the truth and the detections to the constructor, or set cocoGt and cocoDt")
        params = self.params
        if params.useSegm is not None:
            params.iouType = "segm" if params.useSegm == 1 else "bbox"
        begun = time.time()
        params.imgIds, params.maxDets = _list_unique(params.imgIds), sorted(params.maxDets)
        if params.useCats:
            params.catIds = _list_unique(params.catIds)
        self._counts = None
        try:
            if not all(isinstance(getattr_static(type(self), name), Inherited) for name in _OWN_RULES):
                raise UsageError("only pycocotools runs a subclass with its own rules")
            with without_collector():
                blocks = self._open_blocks(_find_protocol(params))
        except NOT_OURS:
            # Kinds that we do not match, or data unlike COCO's: pycocotools accepts them, or raises its own error.
            if params.iouType == "boundary":
                raise
            self._call("evaluate")
            return
        self._say("Running per image evaluation...")
        if params.useSegm is not None:
            self._say(f"useSegm (deprecated) is not None. Running {params.iouType} evaluation")
        self._say(f"Evaluate annotation type *{params.iouType}*")
        # Thousands of numbers need no copies of their own.
        self.eval, self._paramsEval = {}, copy.deepcopy(params, {id(params.imgIds): [*params.imgIds]})
        self._images = self._overlaps = None
        self._counts = merge_counts(list(map(match_block, blocks)))
        self._say(f"DONE (t={time.time() - begun:0.2f}s).")

    def _say(self, *lines: str) -> None:
        """Print lines that pycocotools prints."""
        print(*lines, sep="\n")

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a method of pycocotools' class."""
        getattr(find_incumbent("COCOeval"), name)(self, *arguments)

    def _open_blocks(self, protocol: InstanceProtocol) -> list[ImageBlock]:
        """Return the images in blocks; raises the errors of inputs that are not COCO's."""
        truth, records = self._find_sides() or self._read_sides(protocol)
        if protocol.keypoints:
            truth = replace(truth, keypoints=self._set_sigmas(truth))
        places = places_of(truth.images.ids, np.array([*self.params.imgIds], np.int64))
        compared = np.zeros(len(truth.images.ids), bool)  # np.isin would load numpy.ma for ids with gaps
        compared[places[places >= 0]] = True
        thresholds = np.minimum(self.params.iouThrs, 1 - 1e-10)  # as in pycocotools
        reached = np.append(thresholds, [thresholds[-1]] * (len(THRESHOLDS) - len(thresholds)))
        blocks = cut_into_blocks(records, truth, protocol, np.flatnonzero(compared), 1)
        return [block._replace(reached=reached) for block in blocks]

    @property
    def _compared(self) -> str:
        """The compared kind of shape: segm, bbox or keypoints."""
        return "segm" if self.params.iouType == "boundary" else str(self.params.iouType)

    def _set_sigmas(self, truth: InstanceTruth) -> TrueKeypoints:
        """Return the keypoints of a truth with the sigmas of the parameters, which are those of all categories."""
        sigmas, keypoints = np.asarray(self.params.kpt_oks_sigmas, float), truth.keypoints
        if keypoints is None or sigmas.shape != keypoints.points.shape[1:2] or not (sigmas > 0).all():
            raise UsageError("kpt_oks_sigmas needs a number above 0 for each keypoint")
        return replace(keypoints, sigmas=np.tile(sigmas, (len(truth.categories), 1)))

    def _find_sides(self) -> tuple[InstanceTruth, InstanceRecords] | None:
        """Return both sides with the compared categories, if no program has the annotations of the truth."""
        truth_side, kind = self.cocoGt, self._compared
        truth = truth_side.find_truth(kind) if isinstance(truth_side, COCO) and self.params.useCats else None
        if truth is None:
            return None
        records = self.cocoDt.find_records(truth_side, kind) if isinstance(self.cocoDt, COCO) else None
        if records is None:
            records = read_rows(self.cocoDt.dataset["annotations"], truth.images, kind)
        if records is None:
            return None
        chosen = truth.images.category_indices(self.params.catIds)
        if (chosen < 0).any():
            return None
        places = np.full(len(truth.categories) + 1, -1)  # the last is that of -1
        places[chosen] = np.arange(len(chosen))
        names = [truth.categories[index] for index in chosen.tolist()]
        return (
            replace(truth, categories=names, category=places[truth.category]),
            replace(records, category=places[records.category]),
        )

    def _read_sides(self, protocol: InstanceProtocol) -> tuple[InstanceTruth, InstanceRecords]:
        """Return both sides, read from Python's annotations."""
        params, kind = self.params, self._compared
        images, rows = set(params.imgIds), self._select_annotations(self.cocoGt)
        listed_images = [row for row in self.cocoGt.dataset["images"] if row["id"] in images]
        document = {
            "images": sorted(listed_images, key=lambda row: row["id"]),
            "categories": [{"id": number, "name": ""} for number in params.catIds],
        }
        if not params.useCats:
            document["categories"] = [{"id": -1, "name": "all"}]
        if kind == "keypoints":
            truth = truth_of_points(document, rows, len(params.kpt_oks_sigmas))
        else:
            annotations = clear_masks(rows, listed_images) if kind == "bbox" else _decode_masks(rows)
            truth = truth_of({**document, "annotations": annotations}, "cocoGt")
        detections = self._select_annotations(self.cocoDt)
        records = read_rows(detections, truth.images, kind)
        if records is None:
            area = np.array([row["area"] for row in detections], float)  # as `loadRes` states, even for a box
            records = replace(check_records(_decode_masks(detections), truth.images, protocol), area=area)
        return truth, records

    def _select_annotations(self, coco: Any) -> list[dict[str, Any]]:
        """Return the annotations of the compared images and categories, by category."""
        order = {number: index for index, number in enumerate(self.params.catIds)}
        images = set(self.params.imgIds)
        rows = [row for row in coco.dataset["annotations"] if row["image_id"] in images and row["category_id"] in order]
        if not self.params.useCats:
            rows = [{**row, "category_id": -1} for row in sorted(rows, key=lambda row: order[row["category_id"]])]
        return rows

    def accumulate(self, p: Any = None) -> None:
        """Compute the curves of every category, range of areas and cap into `eval`."""
        if self._counts is None or p is not None or not _are_equal(self.params, self._paramsEval):
            if not self._paramsEval:
                raise UsageError("call evaluate() first")
            self._call("accumulate", p)
            return
        self._say("Accumulating evaluation results...")
        params, begun = self.params, time.time()
        if not params.imgIds or not params.catIds:
            self._say("Please run evaluate() first")  # pycocotools prints it here, too
        if not params.useCats:
            params.catIds = [-1]  # as pycocotools leaves them
        caps, categories, areas = params.maxDets, len(params.catIds), len(params.areaRng)
        pairs = [(area, cap) for area in range(areas) for cap in range(len(caps))]
        curves = MatchedDetections(self._counts, categories, caps, scored=True, recalls=np.asarray(params.recThrs))
        precision, recall, scores = (table[: len(params.iouThrs), ..., :areas, :] for table in curves.curves(pairs))
        self.eval = {
            "params": params,
            "counts": list(precision.shape),
            "date": datetime.datetime.now(tz=datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
            "precision": precision,
            "recall": recall,
            "scores": scores,
        }
        self._say(f"DONE (t={time.time() - begun:0.2f}s).")

    def summarize(self) -> None:
        """Print twelve means and store them as `stats`; -1 for empty means."""
        if not self.eval:
            raise UsageError("call accumulate() first")
        kind, params = self.params.iouType, self.params
        if kind != "keypoints" and len(params.maxDets) < 3:
            number = len(params.maxDets)
            raise UsageError(
                f"the summary needs three numbers of detections, but maxDets has {number}; the curves are in eval"
            )
        self.stats, lines = summarize(self.eval, params)
        self._say(*lines)

    def per_class(self) -> list[dict[str, Any]]:
        """Return AP, AP50, AP75 and AR of each class, its best F1 at IoU 0.5 and the score that reaches it.

        -1 without truth.
        """
        half, three_quarters = self._find_thresholds()
        precision, recall, scores = (self.eval[name][..., 0, -1] for name in ("precision", "recall", "scores"))
        f1 = trace_f_measures(precision, self.params.recThrs, 1)[half]
        best = f1.argmax(axis=0)
        return [
            {
                "class": name,
                "AP": average_present(precision[..., index]),
                "AP50": average_present(precision[half, :, index]),
                "AP75": average_present(precision[three_quarters, :, index]),
                "AR": average_present(recall[:, index]),
                "F1": float(f1[best[index], index]),
                "score": float(scores[half, best[index], index]),
            }
            for index, name in enumerate(self._name_classes())
        ]

    def f_scores(self, beta: float = 1.0) -> dict[str, float]:
        """Return the mean over classes of the best F-measure: over all IoU, at 0.50 and at 0.75, as hotcoco does."""
        indices = [slice(None), *self._find_thresholds()]
        measures = trace_f_measures(self.eval["precision"][..., 0, -1], self.params.recThrs, beta).max(axis=1)
        name = f"F{beta:.1f}".removesuffix(".0")
        return {
            f"{name}{end}": average_present(measures[index])
            for end, index in zip(("", "_50", "_75"), indices, strict=True)
        }

    def confusion_matrix(
        self, iou_thr: float = 0.5, max_det: int | None = None, min_score: float | None = None
    ) -> dict[str, Any]:
        """Return how often each class (rows) was detected as each (columns), as hotcoco; the last is background."""
        if self.params.iouType == "keypoints" or not self.params.useCats:
            raise UsageError("a confusion matrix needs masks or boxes, and useCats=1")
        cap = self.params.maxDets[-1] if max_det is None else max_det
        protocol = replace(_find_protocol(self.params), detections=(cap,), cap=PER_IMAGE)
        names = self._name_classes()
        matrix = confuse(self._open_blocks(protocol), iou_thr, -np.inf if min_score is None else min_score, len(names))
        return {
            "matrix": matrix,
            "normalized": matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1),
            "cat_ids": [*self.params.catIds],
            "cat_names": names,
            "num_cats": len(names),
            "iou_thr": iou_thr,
        }

    def _name_classes(self) -> list[str]:
        names = {row["id"]: str(row["name"]) for row in self._list_truth("categories")}
        return [names.get(number, "all") for number in self.params.catIds]

    def _find_thresholds(self) -> tuple[int, int]:
        """Return the indices of IoU 0.50 and 0.75."""
        indices = [np.flatnonzero(np.asarray(self.params.iouThrs) == iou) for iou in (0.5, 0.75)]
        if not self.eval or not all(map(len, indices)):
            raise UsageError("call accumulate() first, with 0.5 and 0.75 among iouThrs")
        return int(indices[0][0]), int(indices[1][0])


def install() -> None:
    """Make pycocotools' `COCO`, `COCOeval` and `Params` ours, for programs that import pycocotools afterwards."""
    from pycocotools import coco, cocoeval

    for module, replacement in ((cocoeval, COCOeval), (cocoeval, Params), (coco, COCO)):
        find_incumbent(replacement.__name__)  # the original stays known
        setattr(module, replacement.__name__, replacement)


def _list_unique(ids: Any) -> list[Any]:
    """Return the sorted unique ids, like np.unique but without loading numpy.ma."""
    ordered = np.sort(np.asarray(ids).reshape(-1))
    return list(ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]])


def _decode_masks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return annotations whose run lengths are text."""
    from segjudge.families.base.memory import read_run_lengths  # most have text

    masks = [row["segmentation"] for row in rows]
    texts = [read_run_lengths(mask, "a mask") if isinstance(mask, dict) else mask for mask in masks]
    return [{**row, "segmentation": text} for row, text in zip(rows, texts, strict=True)]


def _find_protocol(params: Any) -> InstanceProtocol:
    """Return the protocol of the parameters; raises UsageError for unsupported ones."""
    if params.iouType not in _KINDS:
        raise UsageError(f"only pycocotools scores iouType {params.iouType!r}")
    caps = [*map(int, params.maxDets)]
    areas = [(float(low), float(high)) for low, high in params.areaRng]
    if not (0 < len(areas) <= len(AREAS) and caps and np.isfinite(areas).all()):
        raise UsageError(f"maxDets needs a number, and areaRng up to {len(AREAS)} ranges")
    for name, numbers, limit in (("iouThrs", params.iouThrs, len(THRESHOLDS)), ("recThrs", params.recThrs, 1 << 16)):
        if not (0 < len(numbers) <= limit and (np.diff(numbers) > 0).all() and 0 <= numbers[0] <= numbers[-1] <= 1):
            raise UsageError(f"{name} needs up to {limit} numbers that rise from 0 to 1")
    if params.iouThrs[0] <= 0 or params.recThrs[0] != 0:
        raise UsageError("iouThrs needs numbers above 0, and recThrs begins with 0")
    if not params.useCats and params.iouType == "keypoints":
        raise UsageError("pycocotools compares no keypoints without categories")
    if not params.useCats and len({*params.catIds}) < len(params.catIds):
        raise UsageError("pycocotools compares the annotations of a category as often as catIds has it")
    return replace(
        INSTANCE_PROTOCOLS[_KINDS[params.iouType]],
        detections=tuple(caps),
        areas=(*areas, *[_NO_RANGE] * (len(AREAS) - len(areas))),
        id_zero_quirk=True,
    )


def _are_equal(params: Any, params_before: Any) -> bool:
    """Return whether two parameters are equal."""
    names = ("imgIds", "catIds", "maxDets", "iouThrs", "recThrs", "areaRng", "kpt_oks_sigmas")
    same = all(np.array_equal(getattr(params, name, ()), getattr(params_before, name, ())) for name in names)
    return same and (params.iouType, bool(params.useCats)) == (params_before.iouType, bool(params_before.useCats))
