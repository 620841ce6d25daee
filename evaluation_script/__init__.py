"""Scores the submissions of this challenge; EvalAI's worker imports this package and calls `evaluate`."""

from . import tuning  # noqa: F401 - it comes before numpy
from .main import evaluate

__all__ = ["evaluate"]
