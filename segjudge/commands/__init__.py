"""The commands, thin; with `cli.py` the only place that prints."""
