"""The best assignment of proposals to objects."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Callable, List, Tuple

from .stack import Array


@lru_cache(maxsize=1)
def _solver() -> Callable[[Array], Tuple[Array, Array]]:
    """Return SciPy's function alone: to import all of `scipy.optimize` takes up to 0.3 s."""
    package = find_spec("scipy")
    folder = os.path.join(os.path.dirname(package.origin or ""), "optimize") if package else ""
    found = PathFinder.find_spec("_lsap", [folder])
    if found is None or found.loader is None:  # another version of SciPy
        from scipy.optimize import linear_sum_assignment

        return linear_sum_assignment
    module = module_from_spec(found)
    found.loader.exec_module(module)
    solver: Callable[[Array], Tuple[Array, Array]] = module.linear_sum_assignment
    return solver


def best_assignment(quality: Array) -> Tuple[Array, Array]:
    """Return rows and columns so that the sum of quality is largest.

    Ties fall as they do in the official evaluators, which call the same function.
    """
    return _solver()(-quality)


def best_proposals(quality: Array) -> List[int]:
    """Return for each object (column) its proposal (row), so that the sum of quality is largest."""
    chosen = [0] * quality.shape[1]
    for row, column in zip(*best_assignment(quality)):
        chosen[int(column)] = int(row)
    return chosen
