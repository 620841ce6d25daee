"""Masks in memory, for the parts of the toolkit that hold them.

The contract is the modules: `run_lengths` turns label images into COCO's run lengths and back with numpy alone, so that
an agent can have it; `comparison` has the objects of label images, and how similar they are to those of a truth; `tiff`
writes label images as TIFF.
"""

__all__ = ["comparison", "run_lengths", "tiff"]
