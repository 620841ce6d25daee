"""Scoring without a command line: what `segjudge.score` does, here or on a cluster, of files or of masks in memory.

`requests` opens and checks what is to be scored, `scores` scores it, `parts` writes and merges counts, `sharing` has
them counted elsewhere, `arrays` counts masks in memory.  All of them count through the Scorer of the upload.  Other
rooms use these modules; nothing is imported here, since each needs more than a command that uses another.
"""

__all__ = ["arrays", "parts", "requests", "scores", "sharing"]
