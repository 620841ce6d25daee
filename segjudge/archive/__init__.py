"""The archive of a finished challenge: its bundle, boards, submissions and files, taken home from a platform.

`event` reads and writes the format, which `docs/leaving.md` describes.
"""

__all__ = ["event"]
