"""A service of this process."""

from linejudge.interactive.connectors import LocalConnector

__all__ = ["LocalConnector"]
