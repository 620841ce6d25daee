"""Masks as COCO run lengths."""

from segjudge.interactive.utils.mask import decode_batch_masks, decode_mask, encode_batch_masks, encode_mask

__all__ = ["decode_batch_masks", "decode_mask", "encode_batch_masks", "encode_mask"]
