"""The DAVIS dataset."""

from segjudge.interactive.dataset import Davis

__all__ = ["Davis"]
