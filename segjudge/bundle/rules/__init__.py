"""The rules by which EvalAI rejects a bundle, block by block of the YAML, in the order in which the server tests.

A finding's `rule` is its place in that order; gaps are rules of other blocks.
What the server answers with an error 500 has no words of its own.
"""

from collections.abc import Callable
from typing import TypeAlias

from segjudge.bundle.opened_bundle import Bundle
from segjudge.bundle.problems import BundleProblems
from segjudge.bundle.server_state import State

from .blocks import leaderboards, splits
from .challenge import challenge
from .creation import CREATION, creation
from .mappings import mappings
from .phases import phases
from .tags_and_prizes import rest
from .updates import (
    updates_of_challenge,
    updates_of_leaderboards,
    updates_of_mappings,
    updates_of_phases,
    updates_of_splits,
)

Rule: TypeAlias = Callable[[Bundle], BundleProblems]
Update: TypeAlias = Callable[[Bundle, State], BundleProblems]
#: Each block's rules, and what an update may not change of it.
RULES: tuple[tuple[Rule, Update | None], ...] = (
    (challenge, updates_of_challenge),
    (leaderboards, updates_of_leaderboards),
    (phases, updates_of_phases),
    (splits, updates_of_splits),
    (mappings, updates_of_mappings),
    (rest, None),
)

__all__ = ["CREATION", "RULES", "creation"]
