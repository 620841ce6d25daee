"""Make the environments of this checkout, then replace this process by the program that needs them.

Each environment is a folder of `.environments/`, named by a digest of what it is made from, and made under one lock.
`.venv`, `.venv-client` and `.venv-worker` are links, switched when their environment is complete.  Every process in an
environment holds a lock on its file `in-use`; environments that are neither current nor in use are removed later.

Needs Python 3.11 or newer and nothing installed: `run.sh` is its only caller.
"""
