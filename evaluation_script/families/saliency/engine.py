"""The scoring of grey maps: means over images, and maxima and means of curves over thresholds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Dict, List

import numpy as np

from ...masks.overlaps import LabelMap
from ...masks.stack import Array
from ...values.arithmetic import mean
from ..base.family import Values
from ..base.image_order import PLACES, judge_stacked_order
from ..base.readings import FirstMaps, Reading, open_changed, read_neighbours, read_rearranged
from ..base.suspicions import is_nearly_none, judge_blank, judge_cover
from ..base.units import Shapes, Unit, UnitAccumulator, count_by_image, unit_engine
from . import counting
from .counting import E_CURVE, F_CURVE, VALUES, count_map
from .files import SaliencySubmission, read_truth
from .protocols import METRICS, SaliencyProtocol


def read_object(pixels: LabelMap) -> Array:
    """Return the pixels of the object."""
    flags: Array = pixels.numbers > 0 if pixels.labels is None else (pixels.labels > 0)[pixels.numbers]
    return flags


def _tabulate(unit: Unit, truth: LabelMap, values: Array, protocol: SaliencyProtocol) -> Dict[str, Array]:
    return count_map(unit.facts["group"], read_object(truth), values, protocol)


def find_scored(images: Array, protocol: SaliencyProtocol) -> Array:
    """Return the images that the means include."""
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
        "E_mean": mean(steps[E_CURVE]),
        "F_adp": float(means[counting.F_ADAPTIVE]),
        "F_max": float(steps[F_CURVE].max()),
        "F_mean": mean(steps[F_CURVE]),
        "wF": float(means[counting.WEIGHTED_F]),
        "MAE": float(means[counting.ABSOLUTE_ERROR]),
    }


def _compute_metrics(accumulator: UnitAccumulator[SaliencyProtocol]) -> Values:
    """Return the means over all images."""
    images, curves = accumulator.stack("image"), accumulator.stack("curves")
    scored = find_scored(images, accumulator.protocol)
    return _measure_images(images[scored], curves[scored])


def _tables(accumulator: UnitAccumulator[SaliencyProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row per data set, and one of images without an object if the means exclude them."""
    images, curves = accumulator.stack("image"), accumulator.stack("curves")
    scored, rows = find_scored(images, accumulator.protocol), []
    for index, (name,) in enumerate(accumulator.facts["subsets"]):
        members = scored & (images[:, counting.GROUP] == index)
        rows.append({"name": name, **_measure_images(images[members], curves[members]), "images": int(members.sum())})
    lists: Dict[str, List[Dict[str, Any]]] = {"datasets": rows}
    if not scored.all():
        empty = images[~scored, counting.MAP_AREA] == 0
        lists["empty"] = [{"name": "no object", "predicted empty": mean(empty), "images": len(empty)}]
    return lists


def _shapes(_protocol: SaliencyProtocol, _facts: Dict[str, Any]) -> Shapes:
    return {"image": (counting.COLUMNS,), "curves": (2, VALUES), "places": (2, *PLACES)}


#: The minimum S of maps read in another way, and the minimum ratio, also of mirrored ones: background alone scores
#: about half, and symmetric objects that are moved fit better if mirrored.
_LEAST_S, _TIMES_S, _TIMES_MIRRORED = 0.75, 1.25, 1.4
#: Maps are inverted if objects are at most this bright, and the error is at least this large.
_MOST_BRIGHT, _LEAST_ERROR = 0.25, 2 / 3
#: The Dice above which maps belong to their images.
_MOST_DICE = 0.8


def _suspect(accumulator: UnitAccumulator[SaliencyProtocol]) -> List[str]:
    whole = accumulator.stack("image")
    images = whole[whole[:, counting.TRUTH_AREA] > 0]
    area, bright, shared = images[:, [counting.TRUTH_AREA, counting.MAP_AREA, counting.SHARED]].sum(axis=0).tolist()
    if not len(images):
        return []
    if not bright:
        return [f"no map has a value above {counting.MIDDLE}: check that values reach from 0 to {VALUES - 1}"]
    error = mean(whole[find_scored(whole, accumulator.protocol), counting.ABSOLUTE_ERROR])
    if shared < _MOST_BRIGHT * area and error > _LEAST_ERROR:
        better = f"inverted, MAE would be {1 - error:.2f} instead of {error:.2f}"
        return [f"maps are dark on objects and bright elsewhere; {better}: write objects bright, on black"]
    if 2 * shared < _MOST_DICE * (area + bright):
        exchanged = judge_stacked_order(accumulator, "places", "the places of objects")
        if exchanged:
            return exchanged
    if is_nearly_none(shared, area):
        few = f"only {shared:,.0f} of {area:,.0f} pixels of objects are" if shared else "no pixel of an object is"
        return [f"{few} bright in its map: check which image each map belongs to, and that objects are bright"]
    covering = judge_cover("bright pixels of maps", area, bright, shared)
    names = [unit.name for unit in accumulator.complete_counts()]
    flags = whole[:, counting.TRUTH_AREA] > 0, whole[:, counting.MAP_AREA] == 0
    return covering or judge_blank("image", names, flags, "an object", f"no value above {counting.MIDDLE}")


def _unwrap(values: Array) -> Array:
    """Return a map in which each pixel differs from its left neighbour by the shorter way round 256."""
    steps = np.diff(values, axis=1, prepend=values[:, :1]).view(np.int8)
    heights = np.cumsum(steps, axis=1, dtype=np.int16) + values[:, :1]
    return np.clip(heights, 0, VALUES - 1).astype(np.uint8)


def _are_wrapped(maps: FirstMaps) -> bool:
    """Return whether some neighbours in a row are bright and black, but fewer than the pixels between both."""
    values = maps.prediction
    if values is None or values.ndim != 2 or values.dtype != np.uint8:
        return False
    between = np.count_nonzero((values > _BLACK) & (values < VALUES - 1 - _BLACK))
    jumps = np.count_nonzero(np.abs(np.diff(values.astype(np.int16), axis=1)) > VALUES - 1 - _BLACK)
    return bool(jumps and between > jumps)


#: The greys at both ends that count as black and white, and the minimum ratio of S: other maps lose by this change.
_BLACK, _TIMES_UNWRAPPED = 32, 1.05
_WRAPPED = Reading(
    "wrapped",
    "bright values of maps look wrapped round to 0, as after * 256 and a cast to 8 bits",
    "Multiply by 255, and clip to 0 and 255 before the cast",
    "image",
    partial(open_changed, _unwrap),
    _LEAST_S,
    _TIMES_UNWRAPPED,
    fits=_are_wrapped,
)


ENGINE = unit_engine(
    read_truth,
    SaliencySubmission,
    count_by_image(_tabulate),
    _compute_metrics,
    _tables,
    _shapes,
    _suspect,
    facts={"subsets": (str,)},
    added=("places",),
    readings=lambda _protocol: [
        _WRAPPED,
        *(
            replace(reading, least=_LEAST_S)
            for reading in (*read_rearranged("image", "maps", _TIMES_MIRRORED), *read_neighbours("maps", _TIMES_S))
        ),
    ],
)
