"""The interface of a storage."""

from segjudge.interactive.storage import AbstractStorage

__all__ = ["AbstractStorage"]
