"""What families share here: masks in memory, and losses by unit such as an image."""
