"""Which connector a host needs."""

from segjudge.interactive.remote_connector import ServerConnectionFabric

__all__ = ["ServerConnectionFabric"]
