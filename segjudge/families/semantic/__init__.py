"""Label maps in memory, counted as those in files are."""
