"""Panoptic segments in memory: the maps of frames, counted as those in files are."""
