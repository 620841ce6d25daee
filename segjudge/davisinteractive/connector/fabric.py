"""The choice of a connector for a host."""

from segjudge.interactive.remote_connector import ServerConnectionFabric

__all__ = ["ServerConnectionFabric"]
