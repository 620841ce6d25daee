"""What programs take from the framework beside its own names."""

from pathlib import Path

__all__ = ["Path"]
