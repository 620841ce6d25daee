"""Datasets and results in files: `compression` writes results in their smallest form, `demo` makes videos and images
from a seed.
"""

__all__ = ["DEMO_SEED", "compression", "demo"]

#: What the demo is made from, where nothing else is said.
DEMO_SEED = 2017
