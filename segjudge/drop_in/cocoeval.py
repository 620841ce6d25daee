"""A stand-in for `pycocotools.cocoeval`: the same verbs and the same numbers, sooner."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from pycocotools.cocoeval import COCOeval as Incumbent

from segjudge.errors import UsageError
from segjudge.evaluation_script.instance_counts import InstanceCounts, by_falling_score, joined
from segjudge.evaluation_script.instance_precision import RECALLS, MatchedDetections
from segjudge.evaluation_script.instance_protocols import AREAS, INSTANCE_PROTOCOLS, THRESHOLDS, InstanceProtocol
from segjudge.evaluation_script.instance_records import checked_records
from segjudge.evaluation_script.instance_truth import truth_of
from segjudge.evaluation_script.instances import blocks_of, matched
from segjudge.evaluation_script.masks import Array
from segjudge.evaluation_script.rle import compressed
from segjudge.in_memory.frame_masks import run_lengths

#: Our row for each kind of comparison.
KINDS = {"segm": "coco", "bbox": "coco-box", "boundary": "coco-boundary"}


class Coco(Protocol):
    """The attributes of `pycocotools.coco.COCO` that are read."""

    dataset: dict[str, Any]


@dataclass
class Params:
    """The parameters of a comparison: `imgIds`, `catIds`, `maxDets`, `areaRng` and `useCats` may be changed."""

    iouType: str = "segm"
    imgIds: Sequence[int] = ()
    catIds: Sequence[int] = ()
    iouThrs: Array = field(default_factory=lambda: np.array(THRESHOLDS))
    recThrs: Array = field(default_factory=lambda: RECALLS)
    maxDets: Sequence[int] = (1, 10, 100)
    areaRng: Sequence[Sequence[float]] = tuple(AREAS.values())
    areaRngLbl: Sequence[str] = ("all", "small", "medium", "large")
    useCats: int = 1

    def protocol(self) -> InstanceProtocol:
        """Return the rules; raises UsageError for those that cannot be changed."""
        if self.iouType not in KINDS:
            raise UsageError(f"iouType {self.iouType!r} is not scored, only {', '.join(KINDS)}")
        if not np.allclose(self.iouThrs, THRESHOLDS) or not np.array_equal(self.recThrs, RECALLS):
            raise UsageError("iouThrs and recThrs are those of COCO; others are not scored")
        if len(self.areaRng) != len(AREAS) or len(self.maxDets) != 3:
            raise UsageError("areaRng has four ranges and maxDets three numbers; others are not scored")
        return replace(
            INSTANCE_PROTOCOLS[KINDS[self.iouType]],
            detections=tuple(map(int, self.maxDets)),
            areas=tuple((float(low), float(high)) for low, high in self.areaRng),
            id_zero_quirk=True,
        )


class COCOeval:
    """Precision and recall of detections: `evaluate`, `accumulate`, `summarize`, then `stats` and `eval`."""

    def __init__(self, cocoGt: Coco, cocoDt: Coco, iouType: str = "segm") -> None:
        self.cocoGt, self.cocoDt = cocoGt, cocoDt
        images, categories = (sorted(one["id"] for one in cocoGt.dataset[key]) for key in ("images", "categories"))
        self.params = Params(iouType, images, categories)
        self.eval: dict[str, Any] = {}
        self.stats: Array = np.zeros(0)
        self._counts: InstanceCounts | None = None

    def evaluate(self) -> None:
        """Match the detections of every image with the truth."""
        protocol, params = self.params.protocol(), self.params
        images, categories = set(params.imgIds), list(params.catIds)
        document = {
            "images": [one for one in self.cocoGt.dataset["images"] if one["id"] in images],
            "categories": [one for one in self.cocoGt.dataset["categories"] if one["id"] in categories],
            "annotations": self._chosen(self.cocoGt),
        }
        if not params.useCats:
            document["categories"] = [{"id": -1, "name": "all"}]
        truth, listed = truth_of(document, "cocoGt"), self._chosen(self.cocoDt)
        records = checked_records(listed, truth.images, protocol)
        records.area = np.array([one["area"] for one in listed], float)  # as `loadRes` says, be it of a box
        blocks = blocks_of(records, truth, protocol, np.arange(len(truth.images.ids)), 1)
        self._counts = joined([matched(block) for block in blocks])

    def _chosen(self, coco: Coco) -> list[dict[str, Any]]:
        """Return the annotations of the images and categories that are compared, in the order of the categories."""
        place = {number: index for index, number in enumerate(self.params.catIds)}
        images = set(self.params.imgIds)
        chosen = [
            one for one in coco.dataset["annotations"] if one["image_id"] in images and one["category_id"] in place
        ]
        if not self.params.useCats:
            chosen = [{**one, "category_id": -1} for one in sorted(chosen, key=lambda one: place[one["category_id"]])]
        if self.params.iouType == "bbox":
            sizes = {one["id"]: (one["height"], one["width"]) for one in self.cocoGt.dataset["images"]}
            nothing = {
                size: {"size": list(size), "counts": compressed([size[0] * size[1]])} for size in {*sizes.values()}
            }
            boxes = [
                np.asarray(one["bbox"], float).tolist() for one in chosen
            ]  # `loadRes` makes arrays of masks' boxes
            return [
                {**one, "bbox": box, "segmentation": nothing[sizes[one["image_id"]]]}
                for one, box in zip(chosen, boxes, strict=True)
            ]
        masks = [one["segmentation"] for one in chosen]
        texts = [run_lengths(mask, "a mask") if isinstance(mask, dict) else mask for mask in masks]
        return [{**one, "segmentation": text} for one, text in zip(chosen, texts, strict=True)]

    def accumulate(self) -> None:
        """Draw the curves of every category, range of areas and cap, into `eval`."""
        if self._counts is None:
            raise UsageError("call evaluate() first")
        caps, categories = self.params.maxDets, len(self.params.catIds) if self.params.useCats else 1
        pairs = [(area, cap) for area in range(len(AREAS)) for cap in range(len(caps))]
        curves = MatchedDetections(self._counts, categories, caps).curves(pairs)
        self.eval = {
            "params": self.params,
            "counts": list(curves.precision.shape),
            "date": datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%d %H:%M:%S"),
            "precision": curves.precision,
            "recall": curves.recall,
            "scores": _scores(self._counts, curves.precision, caps),
        }

    def summarize(self) -> None:
        """Print twelve means, and keep them as `stats`; -1 where there is nothing to average."""
        if not self.eval:
            raise UsageError("call accumulate() first")
        theirs: Any = Incumbent(iouType="segm")  # its lines are the same for whatever is compared
        theirs.eval = self.eval
        theirs.params = replace(self.params, iouType="segm", iouThrs=np.array(THRESHOLDS))
        theirs.summarize()
        self.stats = theirs.stats


def _scores(counts: InstanceCounts, precision: Array, caps: Sequence[int]) -> Array:
    """Return the score of the detection with which each recall is reached; 0 where none is, -1 without instances."""
    scores = np.where(precision < 0, -1.0, 0.0)
    found = counts.detections[by_falling_score(counts.detections["score"], counts.detections["category"])]
    for category, area, cap in np.argwhere(precision[0, 0] >= 0).tolist():
        members = found[(found["category"] == category) & (found["rank"] < caps[cap])]
        instances = counts.truth["counted"][counts.truth["category"] == category, area].sum()
        true = members["matched"] & ~members["ignored"]
        for threshold in range(len(THRESHOLDS)):
            bit = np.uint64(area * len(THRESHOLDS) + threshold)
            places = np.searchsorted(np.cumsum(true >> bit & np.uint64(1)) / instances, RECALLS)
            reached = places < len(members)
            scores[threshold, reached, category, area, cap] = members["score"][places[reached]]
    return scores
