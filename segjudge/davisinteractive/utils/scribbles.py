"""Scribbles."""

from segjudge.interactive.utils.scribbles import (
    annotated_frames,
    annotated_frames_object,
    fuse_scribbles,
    is_empty,
    scribbles2mask,
    scribbles2points,
)

__all__ = [
    "annotated_frames",
    "annotated_frames_object",
    "fuse_scribbles",
    "is_empty",
    "scribbles2mask",
    "scribbles2points",
]
