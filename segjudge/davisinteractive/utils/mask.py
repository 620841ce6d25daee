"""Masks of several objects."""

from segjudge.interactive.utils.mask import combine_masks

__all__ = ["combine_masks"]
