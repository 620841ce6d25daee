"""Run lengths."""

from . import mask_api

__all__ = ["mask_api"]
