"""The interactive session."""

from . import session
from .session import DavisInteractiveSession

__all__ = ["DavisInteractiveSession", "session"]
