"""The session."""

from segjudge.interactive.session import DavisInteractiveSession

__all__ = ["DavisInteractiveSession"]
