"""What users and workers do on the server, by which rules; what a user may see and do at all is in `accounts`.

Functions over `Services`, one module for each kind of caller.
"""

__all__ = ["hosting", "reading", "submitting"]
