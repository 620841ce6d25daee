"""What each track counts of masks in memory."""
