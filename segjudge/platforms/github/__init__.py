"""GitHub: a board whose submissions are issues, scored by a workflow of the board's repository.

`build` writes the public repository beside the private one with the challenge, and `check` holds both against it.
`worker` is what the workflow runs: the ledger's evaluator, whose queue reads `forms` by `issues`, with the challenge's
own rules (`challenge`). What participants write reaches neither a shell nor a file's name.
"""

__all__ = ["build", "challenge", "check", "worker"]
