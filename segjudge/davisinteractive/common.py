"""Names of the standard library that programs import from the framework."""

from pathlib import Path

__all__ = ["Path"]
