"""The measures J and F."""

from . import f_measure, jaccard
from .jaccard import batched_f_measure, batched_jaccard

__all__ = ["batched_f_measure", "batched_jaccard", "f_measure", "jaccard"]
