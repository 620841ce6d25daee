"""`segjudge new`: a small repository with a challenge that uses the installed scorers.

`new_challenge` writes it; `lock` pins the Segjudge that scores and checks the requirements. `continued_board` writes a
board for the challenge of an archive, and `new_family` a plug-in's repository. `benchmarks` describes a benchmark, and
`demo` makes the annotation files and samples of a checkout's own challenge.
"""

__all__ = ["benchmarks", "continued_board", "demo", "lock", "new_challenge", "new_family"]
