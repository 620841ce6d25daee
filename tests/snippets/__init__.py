"""The snippets of README and docs: commands, Python and files, as shown."""
