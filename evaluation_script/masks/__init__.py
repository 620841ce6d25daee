"""Masks in memory: packed bits, PNG, run lengths, polygons, and the similarity of two masks.

The most frequent operations have two implementations, numpy and the compiled kernel, with identical results:
`backend()` returns the chosen one. The contract is the modules, imported by name, because the first one loads numpy.
`stack` has packed masks, the common type; `files` reads a sequence's masks; `png`, `tiff`, `run_lengths` and `polygons`
are file formats; `similarity` compares masks (J and F), `overlaps` pairs of masks, boxes and labels (IoU, with
assignment), `distances` masks with grey maps; `detections` matches detections with instances; `stream`
encodes masks for pages.
"""

__all__ = [
    "backend",
    "detections",
    "distances",
    "files",
    "overlaps",
    "png",
    "polygons",
    "run_lengths",
    "similarity",
    "stack",
    "stream",
    "tiff",
]
