"""Agents: what runs in a participant's container."""
