"""Masks as COCO run lengths."""

from . import mask_api

__all__ = ["mask_api"]
