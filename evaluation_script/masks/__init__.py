"""Masks in memory: packed bits, PNG, run lengths, polygons, and the similarity of two masks.

What is counted most often has two implementations, numpy and the compiled kernel, which give the same bits: `backend`
chooses once, and whoever counts calls `backend()`.  The contract is the modules, each imported by its name: numpy is
loaded with the first of them.  `stack` has the packed masks that all others work on; `files` reads those of a sequence;
`png`, `tiff`, `run_lengths` and `polygons` are the forms they are written in; `similarity` compares masks (J and F),
`overlaps` pairs of masks, boxes and labels (IoU) and assigns by that, `distances` masks with grey maps; `detections`
matches with instances; `stream` shows masks in a page.
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
