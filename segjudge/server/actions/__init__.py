"""The actions of users and workers on the server, and their rules; `accounts` has the rights.

Functions over `Services`, one module for each kind of caller.
"""

__all__ = ["hosting", "reading", "submitting"]
