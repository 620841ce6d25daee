"""Connectors of a session: to an evaluation service of this process, or to a server."""

from . import fabric, local, remote

__all__ = ["fabric", "local", "remote"]
