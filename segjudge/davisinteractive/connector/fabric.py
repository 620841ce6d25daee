"""Which connector a host needs."""

from segjudge.interactive.remote import ServerConnectionFabric

__all__ = ["ServerConnectionFabric"]
