"""A phase as an evaluation method of grand-challenge.org."""
