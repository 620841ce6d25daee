"""Scores the submissions of this challenge; EvalAI's worker imports this package and calls `evaluate`."""

from typing import TYPE_CHECKING

__all__ = ["evaluate"]

if TYPE_CHECKING or not __name__.startswith("segjudge."):  # EvalAI's worker reports failures here
    from .main import evaluate, load_scorers

    load_scorers()
else:  # many commands score nothing

    def __getattr__(name: str) -> object:
        if name != "evaluate":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from .main import evaluate

        return evaluate
