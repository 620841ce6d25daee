"""A stand-in for EvalAI's worker: folder, interpreter, packages, process and limits.

The contract is the modules: `process` starts the one child program that scores (`program`) and asks it, for this worker
and for the remote one; `folder`, `interpreter` and `requirements` are what it finds.
"""

__all__ = ["folder", "interpreter", "process", "requirements"]
