"""J and F written from their definitions, without optimisation, for comparison."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def boundary(mask: Array) -> Array:
    """Return the pixels that differ from their right, lower or diagonal neighbour; the frame's border does not count."""
    padded = np.pad(mask, ((0, 1), (0, 1)), mode="edge")
    return (mask != padded[:-1, 1:]) | (mask != padded[1:, :-1]) | (mask != padded[1:, 1:])


def grown(edge: Array, radius: int) -> Array:
    """Return the pixels within a distance of any boundary pixel."""
    height, width = edge.shape
    out = np.zeros((height + 2 * radius, width + 2 * radius), bool)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            if dx * dx + dy * dy <= radius * radius:
                out[radius + dy : radius + dy + height, radius + dx : radius + dx + width] |= edge
    return out[radius : radius + height, radius : radius + width]


def region_similarity(truth: Array, prediction: Array) -> float:
    """Return J."""
    union = np.count_nonzero(truth | prediction)
    return np.count_nonzero(truth & prediction) / union if union else 1.0


def boundary_similarity(truth: Array, prediction: Array) -> float:
    """Return F."""
    radius = math.ceil(0.008 * math.hypot(*truth.shape))
    edges = boundary(truth), boundary(prediction)
    sizes = [np.count_nonzero(edge) for edge in edges]
    if not all(sizes):
        return float(sizes[0] == sizes[1])
    precision = np.count_nonzero(edges[1] & grown(edges[0], radius)) / sizes[1]
    recall = np.count_nonzero(edges[0] & grown(edges[1], radius)) / sizes[0]
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
