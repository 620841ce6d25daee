"""The session."""

from linejudge.interactive.session import DavisInteractiveSession

__all__ = ["DavisInteractiveSession"]
