"""The summaries of comparisons: the lines and numbers that pycocotools prints."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

_Array = np.ndarray[Any, Any]


#: pycocotools' names of the ranges of areas.
SIZES = ("small", "medium", "large")
_PRECISION, _RECALL = ("precision", "Average Precision  (AP)"), ("recall", "Average Recall     (AR)")


class _Line(NamedTuple):
    """A mean of precision or recall: of one IoU or all, a range of areas, and a cap or its index in `maxDets`."""

    table: tuple[str, str]
    iou: float | None = None
    area: str = "all"
    number: int | None = 2
    cap: int = 100


_BY_IOU = (None, 0.5, 0.75)
#: The lines of masks and boxes, and those of keypoints.
DETECTION_LINES = (
    _Line(_PRECISION, number=None),  # as in pycocotools, of 100 detections whatever `maxDets` is
    *(_Line(_PRECISION, iou) for iou in _BY_IOU[1:]),
    *(_Line(_PRECISION, area=size) for size in SIZES),
    *(_Line(_RECALL, number=number) for number in range(3)),
    *(_Line(_RECALL, area=size) for size in SIZES),
)
KEYPOINT_LINES = tuple(
    line
    for table in (_PRECISION, _RECALL)
    for line in (
        *(_Line(table, iou, number=None, cap=20) for iou in _BY_IOU),
        *(_Line(table, area=size, number=None, cap=20) for size in SIZES[1:]),
    )
)


def list_faster_lines(params: Any) -> dict[str, _Line]:
    """Return the lines that faster-coco-eval prints, by its names, up to the last of `maxDets`."""
    caps, points = [*params.maxDets], params.iouType == "keypoints"
    names = ["all", "second", "third"] if caps == [1, 10, 100] else caps
    lines = {}
    for kind, table in (("AP", _PRECISION), ("AR", _RECALL)):
        by_iou = {f"{kind}_{round(100 * iou)}": _Line(table, iou, number=-1) for iou in (0.5, 0.75)}
        by_area = {f"{kind}_{name}": _Line(table, area=name, number=-1) for name in params.areaRngLbl if name != "all"}
        if kind == "AP" or points:
            lines.update({f"{kind}_all": _Line(table, number=-1), **by_iou, **by_area})
        else:
            by_cap = {f"AR_{name}": _Line(table, number=number) for number, name in enumerate(names)}
            lines.update({**by_cap, **by_area, **by_iou})
    return lines


def summarize(tables: dict[str, Any], params: Any, lines: Iterable[_Line] = ()) -> tuple[_Array, list[str]]:
    """Return the means of the curves and their lines, by default pycocotools'; -1 for empty means."""
    means, texts = [], []
    for line in lines or (KEYPOINT_LINES if params.iouType == "keypoints" else DETECTION_LINES):
        cap = line.cap if line.number is None else params.maxDets[line.number]
        name, title = line.table
        table = tables[name]
        if line.iou is not None:
            table = table[np.where(line.iou == params.iouThrs)[0]]
        areas = [index for index, name in enumerate(params.areaRngLbl) if name == line.area]
        caps = [index for index, number in enumerate(params.maxDets) if number == cap]
        table = table[..., areas, caps]
        present = table[table > -1]
        mean = np.mean(present) if len(present) else -1
        ious = f"{params.iouThrs[0]:0.2f}:{params.iouThrs[-1]:0.2f}" if line.iou is None else f"{line.iou:0.2f}"
        texts.append(f" {title} @[ IoU={ious:<9} | area={line.area:>6s} | maxDets={cap:>3d} ] = {mean:0.3f}")
        means.append(mean)
    return np.array(means, float), texts
