"""What a storage can do."""

from linejudge.interactive.storage import AbstractStorage

__all__ = ["AbstractStorage"]
