"""Scoring without a command line: requests, addresses, parts and their merging, masks in memory, `Scores`."""
