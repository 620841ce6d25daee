"""The robot's lines, written from the specification with scikit-image and networkx, for comparison."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
from scipy import ndimage, sparse
from scipy.spatial import cKDTree
from scipy.special import comb
from skimage.morphology import medial_axis

from segjudge.evaluation_script.masks.stack import Array


def lines(missing: Array, kernel_size: float = 0.2, min_nodes: int = 4, samples: int = 1000) -> list[Array]:
    """Return curves through a region, as rows of x and y in pixels."""
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
    pixels = np.argwhere(thin)
    if not len(pixels):
        return []
    pairs = cKDTree(pixels).query_pairs(math.sqrt(2) + 1e-6, output_type="ndarray")
    far = np.linalg.norm(pixels[pairs[:, 0]] - pixels[pairs[:, 1]], axis=1)
    matrix = sparse.coo_matrix((far, (pairs[:, 0], pairs[:, 1])), shape=(len(pixels), len(pixels)))
    graph = nx.from_scipy_sparse_array(matrix)
    curves = []
    for nodes in list(nx.connected_components(graph)):
        acyclic = without_cycles(graph.subgraph(nodes).copy())
        if len(acyclic) >= min_nodes:
            curves.append(bezier(pixels[longest(acyclic)][:, ::-1].astype(float), samples))
    return curves


def disk(radius: float) -> Array:
    """Return a disk of a fractional radius."""
    along = np.arange(math.ceil(2 * radius + 1)) - radius
    return (along[:, None] ** 2 + along[None] ** 2 <= radius**2).astype(np.uint8)


def without_cycles(graph: nx.Graph) -> nx.Graph:
    """Cut each cycle at its first heaviest edge."""
    while True:
        try:
            cycle = nx.find_cycle(graph)
        except nx.NetworkXNoCycle:
            return graph
        graph.remove_edge(*max(cycle, key=lambda edge: graph.edges[edge]["weight"]))


def longest(acyclic: nx.Graph) -> list[int]:
    """Return the path with the most edges, found by two searches."""
    start = next(iter(acyclic))
    for _ in range(2):
        paths = nx.single_source_shortest_path(acyclic, start)
        path = max(paths.values(), key=len)
        start = path[-1]
    return path


def bezier(points: Array, samples: int) -> Array:
    """Return one curve with all points as control points."""
    if len(points) > samples:
        return points
    degree, index, t = len(points) - 1, np.arange(len(points)), np.linspace(0, 1, samples)[:, None]
    return (comb(degree, index) * t ** (degree - index) * (1 - t) ** index) @ points
