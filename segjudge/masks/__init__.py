"""Masks that the toolkit stores, draws or writes.

The contract is the modules: `run_lengths` converts label images to and from COCO's run lengths with numpy only, so
agents can use it; `tiff` writes label images as TIFF, `compression` writes the smallest PNGs, and `demo` draws videos
and images from a seed.
"""

__all__ = ["DEMO_SEED", "compression", "demo", "run_lengths", "tiff"]

#: What the demo is made from, where nothing else is said.
DEMO_SEED = 2017
