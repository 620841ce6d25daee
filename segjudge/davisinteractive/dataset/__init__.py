"""The DAVIS dataset."""

from . import davis
from .davis import Davis

__all__ = ["Davis", "davis"]
