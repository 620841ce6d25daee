"""How cells are scored: each sequence by itself, then the mean over sequences of each metric."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np

from ...files.problems import name_list
from ...masks.stack import Array
from ..base.family import Values, mean_of_all
from ..base.reports import judge_matches
from ..base.units import Shapes, UnitAccumulator, unit_engine
from .counting import EA, EC, ED, EDGES, FN, FP, IOU, MARKERS, NS, OUTLINED, count
from .files import CellSubmission, read_truth
from .lineage import (
    CCA,
    CELLS,
    CHOTA,
    COMPLETE,
    FOUND,
    FRACTIONS,
    HITS,
    HOTA,
    IN_TRUTH,
    KNOWN,
    MISSED,
    PREDICTED,
    SURPLUS,
)
from .protocols import TOLERANCES, CellProtocol

#: What an operation on the graph costs, by column of `graph`.
WEIGHTS = {NS: 5.0, FN: 10.0, FP: 1.0, ED: 1.0, EA: 1.5, EC: 1.0}
_VERTICES, _LINKS = (NS, FN, FP), (ED, EA, EC)
#: Precision and recall that sum to less than this are none.
_LEAST = 1e-4


def _measure_graph(graph: Array, *operations: int) -> Optional[float]:
    """Return what mending by these operations saves beside making the graph anew; None where nothing is to be made."""
    anew = sum(WEIGHTS[lack] * graph[total] for lack, total in ((FN, MARKERS), (EA, EDGES)) if lack in operations)
    cost = sum(WEIGHTS[operation] * graph[operation] for operation in operations)
    return float(1 - min(cost, anew) / anew) if anew else None


def measure_sequence(tables: Dict[str, Array], protocol: CellProtocol) -> Values:
    """Return the metrics of a sequence, by name; None where there is nothing to measure."""
    graph, cells, tracks = tables["graph"], tables["cells"], tables["tracks"]
    metrics: Values = {
        "SEG": float(cells[IOU] / cells[OUTLINED]) if cells[OUTLINED] else None,
        "DET": _measure_graph(graph, *_VERTICES),
        "TRA": _measure_graph(graph, *_VERTICES, *_LINKS),
        "LNK": _measure_graph(graph, *_LINKS),
        "CT": float(2 * tracks[COMPLETE] / max(tracks[IN_TRUTH] + tracks[PREDICTED], 1)) if tracks[IN_TRUTH] else None,
        "TF": float(tracks[FRACTIONS] / max(tracks[FOUND], 1)) if tracks[IN_TRUTH] else None,
        "TF-all": float(tracks[FRACTIONS] / tracks[IN_TRUTH]) if tracks[IN_TRUTH] else None,
        "CCA": float(tables["cycles"][CCA]) if tables["cycles"][KNOWN] else None,
    }
    metrics["OP_CSB"] = mean_of_all([metrics["DET"], metrics["SEG"]])
    metrics["OP_CTB"] = mean_of_all([metrics["SEG"], metrics["TRA"]])
    for frames, divisions in zip(TOLERANCES, tables["divisions"]):
        branching = _measure_divisions(divisions, protocol)
        defined = [value for value in (metrics["CT"], metrics["TF"], branching, metrics["CCA"]) if value is not None]
        metrics[f"BC({frames})"], metrics[f"BIO({frames})"] = branching, mean_of_all(defined)
        metrics[f"OP_CLB({frames})"] = mean_of_all([metrics["LNK"], metrics[f"BIO({frames})"]])
    association = tables["association"]
    for metric, column in (("HOTA", HOTA), ("CHOTA", CHOTA)):
        metrics[metric] = float(np.sqrt(association[column] / association[CELLS])) if association[CELLS] else None
    return {metric: metrics[metric] for metric in protocol.metrics}


def _measure_divisions(divisions: Array, protocol: CellProtocol) -> Optional[float]:
    """Return F1 of divisions; without any on both sides None, or 0 for the script."""
    hits, surplus, missed = (int(divisions[column]) for column in (HITS, SURPLUS, MISSED))
    if not hits + surplus + missed and not protocol.as_script:
        return None
    precision, recall = hits / max(hits + surplus, 1), hits / max(hits + missed, 1)
    return 2 * precision * recall / max(precision + recall, _LEAST)


def _values(accumulator: UnitAccumulator[CellProtocol]) -> Values:
    """Return the means over the sequences that have a value."""
    rows = [measure_sequence(unit.tables, accumulator.protocol) for unit in accumulator.complete_counts()]
    return {
        metric: mean_of_all([row[metric] for row in rows if row[metric] is not None])
        for metric in accumulator.protocol.metrics
    }


def _tables(accumulator: UnitAccumulator[CellProtocol]) -> Dict[str, List[Dict[str, Any]]]:
    """Return a row for each sequence, with its metrics, and with the operations that mend its graph."""
    operations = {"NS": NS, "FN": FN, "FP": FP, "ED": ED, "EA": EA, "EC": EC}
    rows = []
    for unit in accumulator.complete_counts():
        graph = unit.tables["graph"]
        counts = {name: int(graph[column]) for name, column in operations.items()}
        rows.append({"name": unit.name, **measure_sequence(unit.tables, accumulator.protocol), **counts})
    return {"videos": rows}


def _shapes(_protocol: CellProtocol, _facts: Dict[str, Any]) -> Shapes:
    """Return the shapes of what is counted in a sequence."""
    return {
        "graph": (EDGES + 1,),
        "cells": (IOU + 1,),
        "tracks": (FOUND + 1,),
        "divisions": (len(TOLERANCES), MISSED + 1),
        "cycles": (CCA + 1,),
        "association": (CELLS + 1,),
    }


def _oddities(accumulator: UnitAccumulator[CellProtocol]) -> List[str]:
    """Return what is odd about all sequences together."""
    units = accumulator.complete_counts()
    missed, surplus, markers, merged = (
        int(sum(unit.tables["graph"][column] for unit in units)) for column in (FN, FP, MARKERS, NS)
    )
    matched = markers - missed
    notes = judge_matches("cell", markers, max(matched - merged, 0) + surplus, matched)
    without = [unit.name for unit in units if not unit.tables["graph"][EDGES]]
    if without:
        notes.append(f"LNK is undefined, since no cell of the truth is in two frames: {name_list(without)}")
    return notes


ENGINE = unit_engine(read_truth, CellSubmission, count, _values, _tables, _shapes, _oddities, facts={})
