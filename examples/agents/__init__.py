"""Agents to begin with: what runs in a participant's container."""
