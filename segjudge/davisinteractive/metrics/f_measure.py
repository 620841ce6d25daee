"""The measure F."""

from segjudge.interactive.metrics import batched_f_measure, f_measure

__all__ = ["batched_f_measure", "f_measure"]
