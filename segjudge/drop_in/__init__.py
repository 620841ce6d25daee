"""Stand-ins for other evaluators, with their names, arguments and results."""
