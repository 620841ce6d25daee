"""A stand-in for `pycocotools.cocoeval`: the same verbs and the same numbers, sooner."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

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
#: Lines of the summary: precision or recall, threshold (None: all), range of areas, place among the caps (None: 100).
LINES = (
    (1, None, "all", None), (1, 0.5, "all", 2), (1, 0.75, "all", 2), (1, None, "small", 2), (1, None, "medium", 2),
    (1, None, "large", 2), (0, None, "all", 0), (0, None, "all", 1), (0, None, "all", 2), (0, None, "small", 2),
    (0, None, "medium", 2), (0, None, "large", 2),
)  # fmt: skip


class Coco(Protocol):
    """What is read of `pycocotools.coco.COCO`."""

    dataset: dict[str, Any]


@dataclass
class Params:
    """What is compared: `imgIds`, `catIds`, `maxDets`, `areaRng` and `useCats` may be changed."""

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
        self.stats = np.array([self._mean(*line) for line in LINES])
        for value, (precision, threshold, area, cap) in zip(self.stats.tolist(), LINES, strict=True):
            name = "Average Precision  (AP)" if precision else "Average Recall     (AR)"
            ious = "0.50:0.95" if threshold is None else f"{threshold:0.2f}"
            most = 100 if cap is None else self.params.maxDets[cap]
            print(f" {name} @[ IoU={ious:<9} | area={area:>6s} | maxDets={most:>3d} ] = {value:0.3f}")

    def _mean(self, precision: int, threshold: float | None, area: str, cap: int | None) -> float:
        """Return the mean of what is known, or -1."""
        caps = [place for place, most in enumerate(self.params.maxDets) if most == 100] if cap is None else [cap]
        table: Array = self.eval["precision" if precision else "recall"][..., self.params.areaRngLbl.index(area), :]
        table = table[..., caps]
        if threshold is not None:
            table = table[np.isclose(self.params.iouThrs, threshold)]
        known = table[table > -1]
        return float(np.mean(known)) if known.size else -1.0


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
