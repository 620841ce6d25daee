"""Make the environments of this checkout, then become the program that needs them.

Each environment lies in `.environments/` under a name of what it is made from, and is made under one lock; `.venv`,
`.venv-client` and `.venv-worker` are links that are switched when theirs is whole. Every process that runs in an
environment holds a lock on its file `in-use`, and one that nothing uses and nothing needs is removed later.

Runs with Python 3.11 or newer and nothing installed: `run.sh` is its only caller.
"""
