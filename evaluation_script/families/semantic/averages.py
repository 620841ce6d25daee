"""What follows from how many pixels have which class: means over classes, groups of them, and weighted objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

import numpy as np

from ...masks.overlaps import SHIFT
from ...masks.stack import Array
from ..base.units import UnitCounts
from .protocols import SemanticProtocol

#: An object of the truth is the label of its class times this, and its number among those of the image.
_NUMBERS = 1000
#: Labels that a map of 8 bits can hold.
_LABELS = 256
#: Labels of numbered objects take so many bits.
_OBJECT_BITS = 16


def describe_classes(protocol: SemanticProtocol, facts: Mapping[str, Any]) -> SemanticProtocol:
    """Return a protocol with names and groups of classes, where these are what the truth says."""
    if not protocol.grouping or protocol.groups:
        return protocol
    entries = {label: (name, group) for label, name, group in facts.get("categories", []) if label in protocol.labels}
    members: Dict[str, List[int]] = {}
    for label, (_, group) in entries.items():
        members.setdefault(group, []).append(label)
    names = [entries.get(label, (f"class {label}", ""))[0].replace(", ", " ") for label in protocol.labels]
    groups = tuple((group, tuple(labels)) for group, labels in sorted(members.items()))
    return replace(protocol, names=", ".join(names), groups=groups)


def drop_numbers(labels: Array, protocol: SemanticProtocol) -> Array:
    """Return the classes of labels that may be those of numbered objects."""
    may_have_numbers = bool(protocol.sizes) and labels.itemsize > 1
    return np.where(labels < _NUMBERS, labels, labels // _NUMBERS) if may_have_numbers else labels


def class_indices(labels: Array, protocol: SemanticProtocol) -> Array:
    """Return which class each label is, by its place among them; as many as there are for what is none."""
    end = protocol.labels[-1] + 1
    table = np.full(end + 1, protocol.classes)
    table[np.array(protocol.labels)] = np.arange(protocol.classes)
    indices: Array = table[np.minimum(drop_numbers(labels, protocol), end)]
    return indices


def join_cells(units: Iterable[UnitCounts]) -> Tuple[Array, Array, Array]:
    """Return the labels of the truth and of the prediction that lie over each other in all units, and their pixels."""
    keys, pixels = np.concatenate([counts.tables["cells"] for counts in units], axis=1)
    return keys >> SHIFT, keys & ((1 << SHIFT) - 1), pixels


def sum_confusion(units: Iterable[UnitCounts], protocol: SemanticProtocol) -> Array:
    """Return how many pixels have which class in the truth (rows) and in the prediction (columns); the last is none."""
    truth, prediction, pixels = join_cells(units)
    if (prediction >= protocol.refused_from).any():
        raise ValueError("has counted a label that is refused")
    table = np.zeros((protocol.classes + 1,) * 2, np.int64)
    np.add.at(table, (class_indices(truth, protocol), class_indices(prediction, protocol)), pixels)
    return table


def group_table(table: Array, protocol: SemanticProtocol) -> Array:
    """Return the confusion of groups; what is no class is of no group."""
    groups = np.append(_groups_of_labels(protocol)[np.array(protocol.labels)], len(protocol.groups))
    grouped = np.zeros((len(protocol.groups) + 1,) * 2, np.int64)
    np.add.at(grouped, (groups[:, None], groups), table)
    return grouped


def _groups_of_labels(protocol: SemanticProtocol) -> Array:
    groups = np.full(_LABELS, len(protocol.groups))
    for index, (_, labels) in enumerate(protocol.groups):
        groups[list(labels)] = index
    return groups


def measure_classes(table: Array, classes: int) -> Dict[str, Optional[float]]:
    """Return the means over the first classes of a table; None where the truth has none of them."""
    rows, hits, columns = (numbers[:classes] for numbers in (table.sum(1), np.diagonal(table), table.sum(0)))
    present, union = rows > 0, rows + columns - hits
    names = ("mIoU", "IoU", "Acc", "Acc_class", "fwIoU", "Precision", "mIoU-official", "Score")
    if not present.any():
        return dict.fromkeys(names)
    ious = hits[present] / union[present]
    accuracy, over_all = float(hits.sum() / rows.sum()), float(ious.sum() / classes)
    means = (
        float(ious.mean()),
        float(ious.sum() / np.count_nonzero(union)),
        accuracy,
        float((hits[present] / rows[present]).mean()),
        float((rows[present] / rows.sum() * ious).sum()),
        float((hits[present] / np.maximum(columns[present], 1)).mean()),
        over_all,
        (over_all + accuracy) / 2,
    )
    return dict(zip(names, means))


def weigh_objects(units: List[UnitCounts], protocol: SemanticProtocol) -> List[List[Optional[float]]]:
    """Return the IoU of each class and of each group where every object weighs as one of its class's average size.

    Pixels of an object that have any label of its group are right for the group, also labels that are no classes.  What
    is surplus has no weight.  None is what has no objects, or nothing to average.
    """
    truth, prediction, pixels = join_cells(units)
    groups, label = _groups_of_labels(protocol), np.minimum(drop_numbers(truth, protocol), _LABELS - 1)
    sizes = np.zeros(_LABELS)
    for sized_label, size in protocol.sizes:
        sizes[sized_label] = size
    unit = np.repeat(np.arange(len(units)), [counts.tables["cells"].shape[1] for counts in units])
    _, objects = np.unique(unit << _OBJECT_BITS | truth, return_inverse=True)
    weight = pixels * sizes[label] / np.bincount(objects, pixels)[objects] * (truth >= _NUMBERS)
    lists = []
    for kinds, scored in ((np.arange(_LABELS), protocol.labels), (groups, range(len(protocol.groups)))):
        own, predicted = kinds[label], kinds[prediction]
        hits, total = (np.bincount(own, weights, _LABELS) for weights in (weight * (own == predicted), weight))
        union = total + np.bincount(predicted, pixels * (own != predicted), _LABELS)
        sized = set(kinds[sizes > 0].tolist())
        lists.append([float(hits[kind] / union[kind]) if kind in sized and union[kind] else None for kind in scored])
    return lists
