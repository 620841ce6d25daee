"""The measures J and F."""

from segjudge.interactive.metrics import batched_f_measure, batched_jaccard, f_measure

__all__ = ["batched_f_measure", "batched_jaccard", "f_measure"]
