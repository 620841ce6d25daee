"""Scores the submissions of this challenge; EvalAI's worker imports this package and calls `evaluate`."""

from .main import evaluate

__all__ = ["evaluate"]
