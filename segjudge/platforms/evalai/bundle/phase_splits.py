"""The splits that the YAML maps to a phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from segjudge.platforms.evalai.rows import is_descending
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
