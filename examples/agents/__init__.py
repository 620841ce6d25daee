"""Example agents, which run in a participant's container."""
