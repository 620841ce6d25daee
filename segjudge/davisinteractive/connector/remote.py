"""The connector to a server of sessions (`docs/interactive-protocol.md`)."""

from segjudge.interactive.remote_connector import RemoteConnector

__all__ = ["RemoteConnector"]
