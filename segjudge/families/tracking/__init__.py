"""Tracks of masks in memory, counted as those in files are."""
