"""Grand-challenge.org: each phase as an evaluation method, the context of an image with its truth and settings.

`build` writes the folders from the bundle that EvalAI takes; `evaluate` is the program in them.
"""

__all__ = ["build"]
