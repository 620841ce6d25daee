"""A stand-in for EvalAI's worker: folder, interpreter, packages, process and limits.

The contract is the modules: `process` starts the child program that scores (`program`) and sends it requests, for this
worker and the remote one; `folder`, `interpreter` and `requirements` are its surroundings.
"""

__all__ = ["folder", "interpreter", "process", "requirements"]
