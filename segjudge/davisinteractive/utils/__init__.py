"""Small tools that interactive methods use."""

from . import mask, operations, scribbles, visualization

__all__ = ["mask", "operations", "scribbles", "visualization"]
