"""The rules by which EvalAI rejects a bundle, block by block of the YAML, in the order in which the server tests.

A finding's `rule` is its place in that order; gaps are rules of other blocks.
What the server answers with an error 500 has no words of its own.
"""

from .blocks import leaderboards, splits
from .challenge import challenge
from .mappings import mappings
from .phases import phases
from .rest import rest

RULES = (challenge, leaderboards, phases, splits, mappings, rest)

__all__ = ["RULES"]
