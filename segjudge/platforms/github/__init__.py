"""GitHub: a board whose submissions are issues, scored by a workflow of the board's repository.

`build` writes the public repository beside the private one with the challenge, and `check` holds both against it.
`worker` is what the workflow runs: it reads `forms` by `issues`, scores with the challenge's own rules (`challenge`,
`scoring`) and writes the ledger. What participants write reaches neither a shell nor a file's name.
"""

__all__ = ["build", "check", "worker"]
