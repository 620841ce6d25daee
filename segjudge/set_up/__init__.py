"""Make the environments of this checkout with uv, then replace this process by the program that needs them.

An environment is a folder of `.environments/`, named by a digest of what it is made from, and complete when it has the
file `stamp`.  `.venv`, `.venv-client` and `.venv-worker` are links to the current ones.  Every process in one holds a
lock on its file `in-use`; an environment that is neither current nor in use is removed later.

Needs Python 3.11 or newer and nothing installed: `run.sh` and `tests/everything.py` call `main`.
"""

__all__ = ["main"]
