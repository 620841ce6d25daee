"""What users and workers do on the server, and who may do it: every rule and every permission.

Functions over `Services`, one module for each kind of caller.
"""

__all__ = ["hosting", "reading", "submitting"]
