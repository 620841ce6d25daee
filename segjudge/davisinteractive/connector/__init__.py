"""What a session asks: a service here, or a server."""

from . import fabric, local, remote

__all__ = ["fabric", "local", "remote"]
