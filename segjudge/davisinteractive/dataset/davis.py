"""The dataset of DAVIS."""

from segjudge.interactive.dataset import Davis

__all__ = ["Davis"]
