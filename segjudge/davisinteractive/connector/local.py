"""A service of this process."""

from segjudge.interactive.connectors import LocalConnector

__all__ = ["LocalConnector"]
