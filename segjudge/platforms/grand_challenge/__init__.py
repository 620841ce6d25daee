"""Grand-challenge.org: each phase as an evaluation method, an image's context with truth and settings.

`build` writes the folders from EvalAI's bundle; `evaluate` is the program in them.
"""

__all__ = ["build"]
