"""The snippets of README and docs: commands, Python and files, as they stand there."""
