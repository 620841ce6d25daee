"""A server of sessions (`docs/interactive-protocol.md`)."""

from segjudge.interactive.remote import RemoteConnector

__all__ = ["RemoteConnector"]
