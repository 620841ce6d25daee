"""The robot's lines, straight from the specification with scikit-image and networkx: the yardstick of ours."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
from scipy import ndimage, sparse
from scipy.spatial import cKDTree
from scipy.special import comb
from skimage.morphology import medial_axis


def lines(missing: Any, kernel_size: float = 0.2, min_nodes: int = 4, samples: int = 1000) -> list[Any]:
    """Curves through a region, as rows of x and y in pixels."""
    if not missing.any():
        return []
    radius = min(kernel_size * math.sqrt(missing.sum()) / 2, 16)
    region = missing
    while radius > 1:
        footprint = disk(radius)
        region = ndimage.maximum_filter(
            ndimage.minimum_filter(missing.astype(np.uint8), footprint=footprint, mode="constant", cval=1),
            footprint=footprint,
            mode="constant",
            cval=0,
        ).astype(bool)
        if region.any():
            break
        radius *= 0.9
    thin = medial_axis(np.pad(region, 1), rng=0)[1:-1, 1:-1]
    places = np.argwhere(thin)
    if not len(places):
        return []
    pairs = cKDTree(places).query_pairs(math.sqrt(2) + 1e-6, output_type="ndarray")
    far = np.linalg.norm(places[pairs[:, 0]] - places[pairs[:, 1]], axis=1)
    matrix = sparse.coo_matrix((far, (pairs[:, 0], pairs[:, 1])), shape=(len(places), len(places)))
    graph = nx.from_scipy_sparse_array(matrix)
    found = []
    for nodes in list(nx.connected_components(graph)):
        tree = without_cycles(graph.subgraph(nodes).copy())
        if len(tree) >= min_nodes:
            found.append(bezier(places[longest(tree)][:, ::-1].astype(float), samples))
    return found


def disk(radius: float) -> Any:
    """A disk of a radius that need not be whole."""
    along = np.arange(math.ceil(2 * radius + 1)) - radius
    return (along[:, None] ** 2 + along[None] ** 2 <= radius**2).astype(np.uint8)


def without_cycles(graph: Any) -> Any:
    """Cut each cycle at its first heaviest edge."""
    while True:
        try:
            cycle = nx.find_cycle(graph)
        except nx.NetworkXNoCycle:
            return graph
        graph.remove_edge(*max(cycle, key=lambda edge: graph.edges[edge]["weight"]))


def longest(tree: Any) -> list[int]:
    """The longest way by number of edges, as two searches find it."""
    start = next(iter(tree))
    for _ in range(2):
        ways = nx.single_source_shortest_path(tree, start)
        path = max(ways.values(), key=len)
        start = path[-1]
    return path


def bezier(points: Any, samples: int) -> Any:
    """One curve with all points as control points."""
    if len(points) > samples:
        return points
    degree, place, t = len(points) - 1, np.arange(len(points)), np.linspace(0, 1, samples)[:, None]
    return (comb(degree, place) * t ** (degree - place) * (1 - t) ** place) @ points
