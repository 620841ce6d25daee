"""J and F."""

from linejudge.interactive.metrics import batched_f_measure, batched_jaccard, f_measure

__all__ = ["batched_f_measure", "batched_jaccard", "f_measure"]
