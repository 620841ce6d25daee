"""Which connector a host needs."""

from linejudge.interactive.remote import ServerConnectionFabric

__all__ = ["ServerConnectionFabric"]
