"""Masks that the toolkit stores, draws or writes.

The contract is the modules: `run_lengths` converts label images to and from COCO's run lengths with numpy only, so
agents can use it; `tiff` writes label images as TIFF, `compression` writes the smallest PNGs, `demo` draws videos and
images from a seed, and `photographs` draws them as photographs.
"""

__all__ = ["DEMO_SEED", "compression", "demo", "photographs", "run_lengths", "tiff"]

#: The default seed of the demo.
DEMO_SEED = 2017
