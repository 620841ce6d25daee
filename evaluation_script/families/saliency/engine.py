"""How grey maps are scored: means over images, and of curves over thresholds their highest and mean values."""

from __future__ import annotations

from typing import Any, Dict, List

from ...files.problems import Problems
from ...masks.overlaps import LabelMap
from ...masks.stack import Array
from ..base.family import Values
from ..base.units import Shapes, Unit, UnitAccumulator, UnitCounts, unit_engine
from . import counting
from .counting import E_CURVE, F_CURVE, VALUES, count_map
from .files import SaliencySubmission, read_truth
from .protocols import METRICS, SaliencyProtocol


def read_object(pixels: LabelMap) -> Array:
    """Return which pixels are of the object."""
    flags: Array = pixels.numbers > 0 if pixels.labels is None else (pixels.labels > 0)[pixels.numbers]
    return flags


def _count(unit: Unit, submission: SaliencySubmission) -> UnitCounts:
    """Count an image."""
    problems, (frame,) = Problems(), unit.load()
    values = submission.read(unit.name, frame.size, problems)
    if values is None:
        return UnitCounts(unit.name, {}, problems.first, problems.count)
    truth = read_object(frame.read())
    return UnitCounts(unit.name, count_map(unit.facts["group"], truth, values, submission.protocol))


def find_scored(images: Array, protocol: SaliencyProtocol) -> Array:
    """Return which images the means are over."""
    scored: Array = (images[:, counting.TRUTH_AREA] > 0) | protocol.as_script
    return scored


def _measure_images(images: Array, curves: Array) -> Values:
    if not len(images):
        return dict.fromkeys(METRICS)
    means, steps = images.mean(axis=0), curves.mean(axis=0)
    return {
        "S": float(means[counting.S]),
        "E_adp": float(means[counting.E_ADAPTIVE]),
        "E_max": float(steps[E_CURVE].max()),
        "E_mean": float(steps[E_CURVE].mean()),
        "F_adp": float(means[counting.F_ADAPTIVE]),
        "F_max": float(steps[F_CURVE].max()),
        "F_mean": float(steps[F_CURVE].mean()),
        "wF": float(means[counting.WEIGHTED_F]),
        "MAE": float(means[counting.ABSOLUTE_ERROR]),
    }


def _values(accumulator: UnitAccumulator[SaliencyProtocol]) -> Values:
    """Return the means over all images."""
    images, curves = accumulator.stack("image"), accumulator.stack("curves")
    scored = find_scored(images, accumulator.protocol)
    return _measure_images(images[scored], curves[scored])


def _tables(accumulator: UnitAccumulator[SaliencyProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row for each data set, and one of the images without an object, where these are not in the means."""
    images, curves = accumulator.stack("image"), accumulator.stack("curves")
    scored, rows = find_scored(images, accumulator.protocol), []
    for index, (name,) in enumerate(accumulator.facts["subsets"]):
        members = scored & (images[:, counting.GROUP] == index)
        rows.append({"name": name, **_measure_images(images[members], curves[members]), "images": int(members.sum())})
    lists: Dict[str, List[Dict[str, Any]]] = {"datasets": rows}
    if not scored.all():
        empty = images[~scored, counting.MAP_AREA] == 0
        lists["empty"] = [{"name": "no object", "predicted empty": float(empty.mean()), "images": len(empty)}]
    return lists


def _shapes(_protocol: SaliencyProtocol, _facts: Dict[str, Any]) -> Shapes:
    return {"image": (counting.COLUMNS,), "curves": (2, VALUES)}


def _oddities(accumulator: UnitAccumulator[SaliencyProtocol]) -> List[str]:
    totals = (accumulator.stack("image") > 0).sum(axis=0)
    if not totals[counting.TRUTH_AREA] or totals[counting.SHARED]:
        return []
    if not totals[counting.MAP_AREA]:
        return [f"no map has a value above {counting.MIDDLE}: check that values reach from 0 to {VALUES - 1}"]
    return ["not one map overlaps its object: check which image each belongs to, and that objects are bright"]


ENGINE = unit_engine(
    read_truth, SaliencySubmission, _count, _values, _tables, _shapes, _oddities, facts={"subsets": (str,)}
)
