"""The rules by which EvalAI rejects a bundle, block by block of the YAML, in the order in which the server tests.

A problem's `rule` is its position in that order.  What the server answers with an error 500 has no quote.
"""

from collections.abc import Callable
from typing import TypeAlias

from segjudge.bundle.opened_bundle import Bundle
from segjudge.bundle.problems import BundleProblems
from segjudge.bundle.server_state import ServerState

from .blocks import leaderboards, splits
from .challenge import challenge
from .creation import CREATION, creation
from .mappings import mappings
from .phases import phases
from .tags_and_prizes import tags_domain_and_prizes
from .updates import (
    updates_of_challenge,
    updates_of_leaderboards,
    updates_of_mappings,
    updates_of_phases,
    updates_of_splits,
)

Rule: TypeAlias = Callable[[Bundle], BundleProblems]
Update: TypeAlias = Callable[[Bundle, ServerState], BundleProblems]
#: The rules of each block, and those of its updates.
RULES: tuple[tuple[Rule, Update | None], ...] = (
    (challenge, updates_of_challenge),
    (leaderboards, updates_of_leaderboards),
    (phases, updates_of_phases),
    (splits, updates_of_splits),
    (mappings, updates_of_mappings),
    (tags_domain_and_prizes, None),
)

__all__ = ["CREATION", "RULES", "creation"]
