"""The connector to an evaluation service of this process."""

from segjudge.interactive.local_connector import LocalConnector

__all__ = ["LocalConnector"]
