"""What users and workers do on the server, and who may do it: every rule and every permission.

Each module holds what one kind of caller does; all of them are in `Services`.
"""

__all__ = ["hosting", "permissions", "reading", "submitting"]
