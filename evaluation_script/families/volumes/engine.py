"""The scoring of volumes: measure each region of a case, average over cases, then over regions."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set, Tuple

import numpy as np

from ...doctor import Examination, Sample, choose_sampled, find_step, fit_flags, fit_masks, thin_by
from ...files.problems import Flaw, Problem, Problems, name_list, quantity
from ...masks.stack import Array
from ...runner.tuning import release_memory
from ...values.arithmetic import mean
from ..base.family import Values
from ..base.units import Shapes, Unit, UnitAccumulator, UnitCounts, unit_engine
from .boxes import Box, Boxes, cover, find_boxes
from .files import VolumeSubmission, decode_geometry, read_labels, read_truth
from .headers import ODDITIES
from .lesions import LesionCache
from .measures import RegionOfCase
from .overlaps import Overlap, count_pairs, find_overlap
from .places import Spacing
from .protocols import COMPONENTS, LabelRegion, VolumeProtocol
from .voxels import LABELS_END, Volume

#: The maximum number of predicted labels that the truth lacks, and of voxels that are searched for their components.
_MOST_FALSE_LABELS, _MOST_SEARCHED = 1_000, 1 << 31
#: The number of voxels above which freed memory is returned to the system after each region.
_LARGE = 1 << 24
#: The number of voxels of a case above which the doctor examines every third one along each axis, or fewer.
_MOST_EXAMINED = 1 << 22
#: The maximum number of rows in tables for labels that no truth has; with more, tables have none.
_MOST_FALSE_ROWS = 20_000


def _count(unit: Unit, submission: VolumeSubmission) -> UnitCounts:
    """Count a case."""
    problems, (frame,), protocol = Problems(), unit.load(), submission.protocol
    geometry = decode_geometry(frame.rows)
    volume = submission.read_volume(unit.name, geometry, problems)
    if volume is None:
        return UnitCounts(unit.name, {}, problems.first, problems.count)
    truth = Volume(geometry, read_labels(frame).reshape(volume.labels.shape), ())
    return count_pair(unit.name, truth, volume, protocol)


def count_pair(name: str, truth: Volume, volume: Volume, protocol: VolumeProtocol) -> UnitCounts:
    """Count a case whose predicted volume is in the truth's grid."""
    boxes = find_boxes(truth.labels, LABELS_END), find_boxes(volume.labels, LABELS_END)
    problem = _check_labels(name, *boxes, protocol)
    if problem is not None:
        return UnitCounts(name, {}, [problem], 1)
    try:
        tables = count_case(truth.labels, volume.labels, truth.geometry.spacing, protocol, boxes)
    except Flaw as flaw:
        return UnitCounts(name, {}, [flaw.as_problem(f"case {name}")], 1)
    tables["oddities"] = np.array(volume.oddities, np.int64)
    return UnitCounts(name, tables)


def list_labels_of(protocol: VolumeProtocol) -> Set[int]:
    """Return the labels that volumes of a protocol with regions may have."""
    return {0, *protocol.unscored, *(label for region in protocol.regions for label in region.labels)}


def _check_labels(name: str, truth: Boxes, prediction: Boxes, protocol: VolumeProtocol) -> Optional[Problem]:
    """Return the problem of a prediction with labels that belong to no region and are not in this truth."""
    if not protocol.regions:
        return _check_false_labels(name, truth, prediction, protocol)
    allowed = list_labels_of(protocol)
    odd = sorted(prediction.labels - allowed - truth.labels)
    if not odd:
        return None
    counts = name_list([f"{label} in {quantity(int(prediction.voxels[label]), 'voxel')}" for label in odd])
    labels = ", ".join(map(str, sorted(allowed)))
    return Problem(f"case {name}", f"has labels that are not in the table: {counts}", f"Write the labels {labels}")


def _check_false_labels(name: str, truth: Boxes, prediction: Boxes, protocol: VolumeProtocol) -> Optional[Problem]:
    """Return the problem of a prediction with too many labels that its truth lacks, or labels scattered too widely."""
    false = sorted(prediction.labels - truth.labels)
    names = name_list(list(map(str, false)))
    remedy = f"Write the labels {name_list(list(map(str, sorted(truth.labels))), 20)}, not the number of each object"
    if len(false) > _MOST_FALSE_LABELS:
        count = f"{len(false):,} labels that its truth lacks: {names}; the limit is {_MOST_FALSE_LABELS:,}"
        return Problem(f"case {name}", f"has {count}", remedy)
    if COMPONENTS.intersection(protocol.measures):
        ends = prediction.sides[false].reshape(-1, 3, 2)
        if int(np.prod(ends[:, :, 1] - ends[:, :, 0], axis=1).sum()) > _MOST_SEARCHED:
            fault = f"has {quantity(len(false), 'label')} that its truth lacks, scattered over the volume: {names}"
            return Problem(f"case {name}", fault, remedy)
    return None


def list_regions(labels: Array, protocol: VolumeProtocol) -> List[LabelRegion]:
    """Return the regions of a case; some may be labels that the case has."""
    if protocol.regions:
        return list(protocol.regions)
    tolerances = dict(protocol.tolerances)
    return [LabelRegion(str(label), (label,), tolerances.get(label, protocol.tolerance)) for label in labels.tolist()]


def count_case(
    truth: Array,
    prediction: Array,
    spacing: Spacing,
    protocol: VolumeProtocol,
    boxes: Optional[Tuple[Boxes, Boxes]] = None,
) -> Dict[str, Array]:
    """Return the tables of a case (z, y, x): for each region voxels, measures, and which have a value.

    The table `strays` lists labels of the truth that no region has; `oddities` is empty, since it concerns files.
    """
    sides = boxes or (find_boxes(truth, LABELS_END), find_boxes(prediction, LABELS_END))
    labels = np.array(sorted(sides[0].labels | sides[1].labels), np.int64)
    regions = list_regions(labels, protocol)
    strays = np.zeros(0, np.int64)
    if protocol.regions:
        strays = np.array(sorted(sides[0].labels - list_labels_of(protocol)), np.int64)
        labels = np.arange(len(regions))
    voxels = np.zeros((len(regions), 3), np.int64)
    rows: List[List[Optional[float]]] = []
    tissues = {tissue.name: tissue for tissue in protocol.tissues}
    keys = [(_keep_labels(region, sides), tissues.get(region.name)) for region in regions]
    pairs = count_pairs(truth, prediction, sides)
    cache = LesionCache()
    for index, region in enumerate(regions):
        same = keys.index(keys[index])
        if same < index:
            voxels[index] = voxels[same]
            rows.append(rows[same])
            continue
        sizes = [int(side.voxels[list(region.labels)].sum()) for side in sides]
        is_false = not protocol.regions and not all(sizes) and not COMPONENTS.intersection(protocol.measures)
        box = (slice(0, 0),) * 3 if is_false else find_region_box(region, sides, truth.shape, protocol)
        overlap = Overlap(sizes[0], sizes[1], 0) if is_false else None
        if pairs is not None and not region.is_cropped:
            overlap = find_overlap(pairs, sides, region.labels)
        case = RegionOfCase((truth[box], prediction[box]), spacing, protocol, region, truth.shape, overlap)
        case.box, case.cache = box, cache
        voxels[index] = case.overlap
        rows.append([case.measure(measure) for measure in protocol.measures])
        del case  # with its surfaces, before the next region makes its own
        if truth.size > _LARGE:
            release_memory()
    flags = np.array([[value is not None for value in row] for row in rows], np.int64)
    values = np.array([[value or 0.0 for value in row] for row in rows], np.float64)
    shape = (len(regions), len(protocol.measures))
    return {
        "labels": labels,
        "voxels": voxels,
        "values": values.reshape(shape),
        "known": flags.reshape(shape),
        "strays": strays,
        "oddities": np.zeros(0, np.int64),
    }


def _keep_labels(region: LabelRegion, sides: Tuple[Boxes, Boxes]) -> LabelRegion:
    """Return a region without its name and the labels that neither side has; equal ones have the same measures."""
    labels = tuple(label for label in region.labels if any(side.voxels[label] for side in sides))
    return region._replace(name="", labels=labels)


def find_region_box(
    region: LabelRegion, sides: Tuple[Boxes, Boxes], shape: Tuple[int, ...], protocol: VolumeProtocol
) -> Box:
    """Return the box in which a region is measured: around its labels and the growth of lesions that decide it."""
    if protocol.has_open_ends:
        return tuple(slice(0, end) for end in shape)
    tissues = protocol.tissues_of(region)
    labels = set(region.labels).union(*(tissue.labels for tissue in tissues))
    box = cover(side.box_of(label) for side in sides for label in labels)
    steps = max((tissue.lesions.steps for tissue in tissues), default=0)
    return tuple(slice(max(0, extent.start - steps), min(end, extent.stop + steps)) for extent, end in zip(box, shape))


def list_labels(accumulator: UnitAccumulator[VolumeProtocol]) -> List[int]:
    """Return the keys of all regions: indices of the protocol's, or labels that a truth has."""
    protocol = accumulator.protocol
    if protocol.regions:
        return list(range(len(protocol.regions)))
    true = [unit.tables["labels"][unit.tables["voxels"][:, 0] > 0] for unit in accumulator.complete_counts()]
    return sorted({label for labels in true for label in labels.tolist()})


def _collect(accumulator: UnitAccumulator[VolumeProtocol]) -> Dict[Tuple[int, str], List[float]]:
    """Return the values of all cases by region and measure."""
    labels = set(list_labels(accumulator))
    values: Dict[Tuple[int, str], List[float]] = {}
    for unit in accumulator.complete_counts():
        for label, row, flags in zip(*(unit.tables[key].tolist() for key in ("labels", "values", "known"))):
            for measure, value, has_value in zip(accumulator.protocol.measures, row, flags):
                if has_value and label in labels:
                    values.setdefault((label, measure), []).append(value)
    return values


def _measure_regions(accumulator: UnitAccumulator[VolumeProtocol]) -> Dict[int, Values]:
    """Return the measures of each region over all cases; None if no case has a value."""
    protocol, labels = accumulator.protocol, list_labels(accumulator)
    if protocol.is_aggregated:
        voxels = np.sum([unit.tables["voxels"] for unit in accumulator.complete_counts()], axis=0).tolist()
        return {label: dict.fromkeys(protocol.measures, Overlap(*voxels[label]).dice) for label in labels}
    values = _collect(accumulator)
    return {
        label: {
            measure: mean(values[label, measure]) if (label, measure) in values else None
            for measure in protocol.measures
        }
        for label in labels
    }


def _compute_metrics(accumulator: UnitAccumulator[VolumeProtocol]) -> Values:
    """Return the mean of each measure over regions with a value, then those of each region."""
    protocol, regions = accumulator.protocol, _measure_regions(accumulator)
    metrics = _average_cases(accumulator) if protocol.averages_cases else _average(protocol, regions)
    for measure in protocol.measures:
        for region, row in zip(protocol.regions, regions.values()):
            metrics[f"{measure}_{region.name}"] = row[measure]
    return {metric: metrics[metric] for metric in protocol.metrics}


def _average(protocol: VolumeProtocol, regions: Dict[int, Values]) -> Values:
    """Return the mean of each measure over the regions that have a value and are not in `protocol.beside`."""
    beside = {index for index, region in enumerate(protocol.regions) if region.name in protocol.beside}
    metrics: Values = {}
    for measure in protocol.measures:
        numbers = [row[measure] for label, row in regions.items() if label not in beside]
        present = [number for number in numbers if number is not None]
        metrics[measure] = mean(present) if present else None
    return metrics


def _average_cases(accumulator: UnitAccumulator[VolumeProtocol]) -> Values:
    """Return the mean of each measure over the regions of a case, then over cases."""
    protocol = accumulator.protocol
    values: Dict[str, List[float]] = {measure: [] for measure in protocol.measures}
    for unit in accumulator.complete_counts():
        rows = zip(*(unit.tables[key].tolist() for key in ("values", "known")))
        regions = {
            label: {measure: value if has_value else None for measure, value, has_value in zip(protocol.measures, *row)}
            for label, row in enumerate(rows)
        }
        for measure, value in _average(protocol, regions).items():
            if value is not None:
                values[measure].append(value)
    return {measure: mean(numbers) if numbers else None for measure, numbers in values.items()}


def _name(label: int, protocol: VolumeProtocol) -> str:
    return protocol.regions[label].name if protocol.regions else str(label)


def _tables(accumulator: UnitAccumulator[VolumeProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row for each region, and one for each region of each case, but not for a flood of false labels."""
    protocol = accumulator.protocol
    is_listed = None if _count_unlisted_labels(accumulator) <= _MOST_FALSE_ROWS else set(list_labels(accumulator))
    regions = [{"name": _name(label, protocol), **row} for label, row in _measure_regions(accumulator).items()]
    cases = []
    for unit in accumulator.complete_counts():
        tables = [unit.tables[key].tolist() for key in ("labels", "voxels", "values", "known")]
        for label, voxels, values, flags in zip(*tables):
            if is_listed is not None and label not in is_listed:
                continue
            row: Dict[str, Any] = {"name": unit.name, "region": _name(label, protocol)}
            for measure, value, has_value in zip(protocol.measures, values, flags):
                row[measure] = value if has_value else None
            cases.append({**row, **dict(zip(("truth", "prediction", "both"), voxels))})
    return {"regions": regions, "cases": cases}


def _count_unlisted_labels(accumulator: UnitAccumulator[VolumeProtocol]) -> int:
    """Return the number of predicted labels, over all cases, that no truth has."""
    if accumulator.protocol.regions:
        return 0
    labels = list_labels(accumulator)
    return sum(int((~np.isin(unit.tables["labels"], labels)).sum()) for unit in accumulator.complete_counts())


def _shapes(protocol: VolumeProtocol, _facts: Dict[str, Any]) -> Shapes:
    """Return the shapes of a case's tables."""
    measures = len(protocol.measures)
    return {
        "labels": ("n",),
        "voxels": ("n", 3),
        "values": ("n", measures),
        "known": ("n", measures),
        "strays": ("labels",),
        "oddities": ("oddities",),
    }


def _note(accumulator: UnitAccumulator[VolumeProtocol]) -> List[str]:
    """Return notes about odd headers, values that no mean includes, and labels that no truth has."""
    protocol, units, notes = accumulator.protocol, accumulator.complete_counts(), []
    for number, oddity in enumerate(ODDITIES):
        odd = [unit.name for unit in units if number in unit.tables["oddities"]]
        if odd:
            notes.append(f"{quantity(len(odd), 'case')} {oddity}: {name_list(odd)}")
    empty = [unit.name for unit in units if not unit.tables["known"].all()]
    if empty and not protocol.is_aggregated:
        cases = quantity(len(empty), "case")
        notes.append(f"{cases} without a region on one or both sides, not in every mean: {name_list(empty)}")
    strays = sorted({label for unit in units for label in unit.tables["strays"].tolist()})
    if strays:
        notes.append(
            f"the truth has labels of no region, which are scored as background: {name_list(list(map(str, strays)))}"
        )
    notes += _note_missing(accumulator)
    if not protocol.regions:
        labels = {label for unit in units for label in unit.tables["labels"].tolist()}
        false = sorted(labels - set(list_labels(accumulator)))
        if false:
            subject = "no mean" if _count_unlisted_labels(accumulator) <= _MOST_FALSE_ROWS else "no mean and no table"
            notes.append(
                f"no truth has these predicted labels, which {subject} includes: {name_list(list(map(str, false)))}"
            )
    return notes


def _note_missing(accumulator: UnitAccumulator[VolumeProtocol]) -> List[str]:
    """Return a note about labels or regions of truths that no prediction has."""
    cases: Dict[int, int] = {}
    predicted: Set[int] = set()
    for unit in accumulator.complete_counts():
        for label, (true_size, size, _) in zip(unit.tables["labels"].tolist(), unit.tables["voxels"].tolist()):
            cases[label] = cases.get(label, 0) + (true_size > 0)
            predicted.update([label] if size else [])
    protocol, missing = accumulator.protocol, sorted(cases.keys() - predicted)
    names = [f"{_name(label, protocol)} (in {quantity(cases[label], 'case')})" for label in missing if cases[label]]
    noun = "regions" if protocol.regions else "labels"
    return [f"no prediction has these {noun} of the truth: {name_list(names)}"] if names else []


# ── the doctor ──────────────────────────────────────────────────────────────


def _examine(submission: VolumeSubmission) -> Examination:
    """Return a submission as the doctor examines it: label maps, thinned if any of those sampled is large."""
    units, protocol = submission.truth.units, submission.protocol
    sizes = [units[number].load()[0].size for number in choose_sampled(len(units))]
    step = find_step(max(height * width for height, width in sizes), 3, _MOST_EXAMINED)

    def sample(number: int) -> List[Sample]:
        unit = units[number]
        (frame,) = unit.load()
        volume = submission.read_volume(unit.name, decode_geometry(frame.rows), Problems())
        if volume is None:
            return []
        sides = read_labels(frame).reshape(volume.labels.shape), volume.labels
        truth, prediction = (thin_by(side, step) for side in sides)
        return [Sample(number, unit.name, [truth], [prediction])]

    classes = sorted(list_labels_of(protocol)) if protocol.regions else []
    traits = {"voxels", "places", "units", "masks", "binary" if classes == [0, 1] else "labels"}
    return Examination(
        submission.truth.item_names, sample, frozenset(traits), submission.noun, "volumes",
        fit=fit_flags if "binary" in traits else fit_masks, agreement="the IoU over all voxels", classes=classes,
        step=step,
    )  # fmt: skip


ENGINE = unit_engine(
    read_truth,
    VolumeSubmission,
    _count,
    _compute_metrics,
    _tables,
    _shapes,
    facts={},
    notes=_note,
    examine=_examine,
)
