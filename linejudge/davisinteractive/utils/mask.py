"""Masks of several objects."""

from linejudge.interactive.utils.mask import combine_masks

__all__ = ["combine_masks"]
