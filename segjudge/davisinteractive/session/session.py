"""The interactive session."""

from segjudge.interactive.davis_session import DavisInteractiveSession

__all__ = ["DavisInteractiveSession"]
