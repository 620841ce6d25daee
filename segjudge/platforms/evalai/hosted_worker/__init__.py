"""EvalAI's own worker, played: its folder, its interpreter and packages, its process and its limits.

The contract is the modules: `process` starts the one child program that scores (`program`) and asks it, for this worker
and for the remote one; `folder`, `interpreter` and `requirements` are what it finds.
"""

__all__ = ["folder", "interpreter", "process", "requirements"]
