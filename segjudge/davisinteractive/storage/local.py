"""The storage in memory."""

from segjudge.interactive.storage import LocalStorage

__all__ = ["LocalStorage"]
