"""The dataset of DAVIS."""

from linejudge.interactive.dataset import Davis

__all__ = ["Davis"]
