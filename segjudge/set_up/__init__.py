"""Make the environments of this checkout with uv, then replace this process with the program that needs them.

An environment is a folder of `.environments/`, named by a digest of its contents, and complete if it has the file
`stamp`: `uv sync` would change an environment under running programs. `.venv`, `.venv-client` and `.venv-worker` link
to the current ones. Every process in an environment holds a lock on its file `in-use`; an environment that is neither
current nor in use is removed later.

It needs only Python 3.11 or newer: `run.sh` and `tests/everything.py` call `main`.
"""

__all__ = ["main"]
