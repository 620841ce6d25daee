"""The storage in memory."""

from linejudge.interactive.storage import LocalStorage

__all__ = ["LocalStorage"]
