"""Mask sequences: masks in memory, kinds of failure, sections of the report and its player."""
