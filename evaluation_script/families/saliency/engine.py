"""The scoring of grey maps: means over images, and maxima and means of curves over thresholds."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, List

import numpy as np

from ...doctor import Examination, Sample, fit_greys
from ...files.problems import Problems
from ...masks.overlaps import LabelMap
from ...masks.stack import Array
from ...values.arithmetic import mean
from ..base.family import Values
from ..base.units import Shapes, Unit, UnitAccumulator, count_by_image, score_samples, unit_engine
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
    return {"image": (counting.COLUMNS,), "curves": (2, VALUES)}


def _examine(submission: SaliencySubmission) -> Examination:
    """Return a submission as the doctor examines it."""
    units, protocol, facts = submission.truth.units, submission.protocol, submission.truth.facts

    def sample(number: int) -> List[Sample]:
        unit, (frame,) = units[number], units[number].load()
        values = submission.read(unit.name, frame.size, Problems())
        return (
            [] if values is None else [Sample(number, unit.name, [read_object(frame.read()).view(np.uint8)], [values])]
        )

    def tabulate(sample: Sample) -> Dict[str, Array]:
        values = np.clip(sample.prediction[0], 0, VALUES - 1).astype(np.uint8)
        return count_map(units[sample.unit].facts["group"], sample.truth[0] > 0, values, protocol)

    return Examination(
        submission.truth.item_names, sample, frozenset({"pictures", "places", "units", "greys"}), "image", "maps",
        "values", fit_greys, partial(score_samples, protocol, facts, _compute_metrics, tabulate),
        protocol.metrics[0], "the soft IoU",
    )  # fmt: skip


ENGINE = unit_engine(
    read_truth,
    SaliencySubmission,
    count_by_image(_tabulate),
    _compute_metrics,
    _tables,
    _shapes,
    facts={"subsets": (str,)},
    examine=_examine,
)
