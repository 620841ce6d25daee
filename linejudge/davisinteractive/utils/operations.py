"""Curves and lines."""

from linejudge.interactive.utils.operations import bezier_curve, bresenham

__all__ = ["bezier_curve", "bresenham"]
