"""Curves and lines."""

from segjudge.interactive.utils.operations import bezier_curve, bresenham

__all__ = ["bezier_curve", "bresenham"]
