"""Masks in memory, for the parts of the toolkit that hold them: run lengths and comparison."""
