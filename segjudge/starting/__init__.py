"""`segjudge new`: a small repository with a challenge, whose scorers are the installed package's.

`new_challenge` writes it, `lock` says which Segjudge scores it, and checks what its requirements name; `new_family`
writes the repository of a plug-in, `benchmarks` describes a benchmark, `demo` makes the annotation files and samples of
a checkout's own challenge.
"""

__all__ = ["benchmarks", "demo", "lock", "new_challenge", "new_family"]
