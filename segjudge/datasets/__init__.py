"""Datasets and results in files: truths that are opened and packed, results made smaller, and synthetic ones.

`opening` asks the families how their truths are published, `compression` writes results in their smallest form, `demo`
makes videos and images from a seed.
"""

__all__ = ["DEMO_SEED", "compression", "demo", "opening"]

#: What the demo is made from, where nothing else is said.
DEMO_SEED = 2017
