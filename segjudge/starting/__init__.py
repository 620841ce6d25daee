"""`segjudge new`: a small repository with a challenge, whose scorers are the installed package's.

`new_challenge` writes it, `lock` says which Segjudge scores it, and checks what its requirements name; `new_family`
writes the repository of a plug-in.
"""

__all__ = ["lock", "new_challenge", "new_family"]
