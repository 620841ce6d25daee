"""Masks for the parts of the toolkit that hold, draw or write them.

The contract is the modules: `run_lengths` turns label images into COCO's run lengths and back with numpy alone, so that
an agent can have it; `comparison` has the objects of label images, and how similar they are to those of a truth; `tiff`
writes label images as TIFF, and `compression` writes results in their smallest form; `demo` draws videos and images
from a seed.
"""

__all__ = ["DEMO_SEED", "comparison", "compression", "demo", "run_lengths", "tiff"]

#: What the demo is made from, where nothing else is said.
DEMO_SEED = 2017
