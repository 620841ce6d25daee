"""A server of sessions (`docs/interactive-protocol.md`)."""

from linejudge.interactive.remote import RemoteConnector

__all__ = ["RemoteConnector"]
