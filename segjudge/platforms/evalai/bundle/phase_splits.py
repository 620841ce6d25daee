"""The splits that the YAML maps to a phase, and whether visitors see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from segjudge.platforms.evalai.rows import is_descending
from segjudge.platforms.rules.fields import as_flag
from segjudge.platforms.rules.problems import hashable_value, mappings_in


@dataclass(frozen=True)
class MappedSplit:
    """A split of a phase from `challenge_phase_splits`; `secrecy` decides what is hidden."""

    codename: str
    #: The schema of its leaderboard.
    schema: dict[str, Any]
    row: dict[str, Any]

    def is_descending(self, label: str) -> bool:
        """Return whether the leaderboard sorts a label in descending order."""
        return is_descending(self.schema, label, self.row.get("is_leaderboard_order_descending"))


def splits_of(config: dict[str, Any], phase: dict[str, Any]) -> list[MappedSplit]:
    """List the splits that the YAML maps to a phase, even if it has other faults."""
    codenames = {
        hashable_value(split): hashable_value(split, "codename") for split in mappings_in(config, "dataset_splits")
    }
    schemas = {hashable_value(board): board.get("schema") for board in mappings_in(config, "leaderboard")}
    splits = []
    for row in mappings_in(config, "challenge_phase_splits"):
        if row.get("challenge_phase_id") == phase.get("id"):
            codename = str(codenames.get(hashable_value(row, "dataset_split_id")))
            schema = schemas.get(hashable_value(row, "leaderboard_id"))
            splits.append(MappedSplit(codename, schema if isinstance(schema, dict) else {}, row))
    return splits


def is_published(phase: dict[str, Any]) -> bool:
    """Return whether a phase is public; as on EvalAI, it is not by default."""
    return as_flag(phase.get("is_public")) is True


def has_public_board(phase: dict[str, Any]) -> bool:
    """Return whether the leaderboards of a phase are public; they are not by default."""
    return as_flag(phase.get("leaderboard_public")) is True


def is_seen_by_all(phase: dict[str, Any]) -> bool:
    """Return whether a phase, in the YAML or in the server's answer, is public with public leaderboards."""
    return is_published(phase) and has_public_board(phase)
