"""What a storage can do."""

from segjudge.interactive.storage import AbstractStorage

__all__ = ["AbstractStorage"]
