"""What units must hold that a part brings: its numbers come from a file, so nothing is taken for granted."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.evaluation_script.accumulator import Accumulator, NamedAccumulator
from segjudge.evaluation_script.panoptic_protocols import PanopticProtocol
from segjudge.evaluation_script.semantic_protocols import SemanticProtocol
from segjudge.evaluation_script.tracks_metrics import ALPHAS, CLEAR_FIELDS, HOTA_FIELDS
from segjudge.evaluation_script.tracks_protocols import TracksProtocol
from segjudge.evaluation_script.unit_counts import UnitAccumulator

#: The shapes of a unit's tables by name; a number that may be any has a letter, the same one for the same number.
Shapes = dict[str, tuple[int | str, ...]]
#: What a row of the truth's facts holds, by its key.
FACTS: dict[str, tuple[type, ...]] = {"categories": (int, str, bool), "classes": (str, int)}


def check_forms(part: Accumulator[Any, Any]) -> None:
    """Raise ValueError where what is counted by name holds what no counting gives."""
    if isinstance(part, NamedAccumulator) and len(set(part.names)) != len(part.names):
        raise ValueError("a name stands twice")
    if not isinstance(part, UnitAccumulator):
        return
    for key, rows in part.facts.items():
        if key not in FACTS or any(tuple(map(type, row)) != FACTS[key] for row in rows):
            raise ValueError("the truth is described in a way that is not known")
    shapes = _shapes(part.protocol, part.facts)
    for unit in part.held():
        if not unit.problem_count:
            _check_tables(unit.tables, shapes)


def _shapes(protocol: PanopticProtocol | SemanticProtocol | TracksProtocol, facts: dict[str, Any]) -> Shapes:
    if isinstance(protocol, PanopticProtocol):
        quality: Shapes = {"quality": (len(protocol.windows), len(facts["categories"]), 4)}
        return {**quality, "cells": (2, "n"), "association": (2,)} if protocol.video else quality
    if isinstance(protocol, SemanticProtocol):
        return {"cells": (2, "n"), **{f"VC{length}": (str(length), 2) for length in protocol.windows}}
    found: Shapes = {"classes": ("n",), "hota": ("n", len(HOTA_FIELDS), len(ALPHAS)), "clear": ("n", len(CLEAR_FIELDS))}
    return {**found, "objects": ("n",), "tracks": ("t", 4)} if protocol.burst else found


def _check_tables(tables: dict[str, Any], shapes: Shapes) -> None:
    if tables.keys() != shapes.keys():
        raise ValueError(f"a unit has other tables than {', '.join(shapes)}")
    lengths: dict[int | str, int] = {}
    for key, shape in shapes.items():
        found = tables[key].shape
        fits = len(found) == len(shape) and all(
            real == (wanted if isinstance(wanted, int) else lengths.setdefault(wanted, real))
            for real, wanted in zip(found, shape, strict=True)
        )
        counts = key != "tracks"  # which have scores
        if not fits or not np.isfinite(tables[key]).all() or (counts and (tables[key] < 0).any()):
            raise ValueError(f"a unit has numbers as {key} that are no counts")
