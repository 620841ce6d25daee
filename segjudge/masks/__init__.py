"""Masks that the toolkit stores, draws or writes.

The contract is the modules: `run_lengths` turns label images into COCO's run lengths and back with numpy alone, so that
an agent can have it; `tiff` writes label images as TIFF, and `compression` as the smallest PNGs; `demo` draws videos
and images from a seed.
"""

__all__ = ["DEMO_SEED", "compression", "demo", "run_lengths", "tiff"]

#: What the demo is made from, where nothing else is said.
DEMO_SEED = 2017
