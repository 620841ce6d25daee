"""The content of the demo challenge, read from its files, so that another phase or sample changes no test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.builders import ROOT

CONFIG: dict[str, Any] = yaml.safe_load((ROOT / "challenge_config.yaml").read_text())
#: In the order of the YAML; a rehearsal numbers phases from 1 in this order.
CODENAMES: list[str] = [phase["codename"] for phase in CONFIG["challenge_phases"]]
SAMPLES: dict[str, list[Path]] = {name: sorted((ROOT / "examples" / name).iterdir()) for name in CODENAMES}
SAMPLE_COUNT = sum(map(len, SAMPLES.values()))


def board_number(codename: str) -> int:
    """Return the number that the board of a phase's first split has on a rehearsal of the demo alone."""
    phases = [row["challenge_phase_id"] for row in CONFIG["challenge_phase_splits"]]
    return phases.index(CONFIG["challenge_phases"][CODENAMES.index(codename)]["id"]) + 1


def leaderboard_path(codename: str) -> str:
    """Return where the API of such a rehearsal has that board."""
    return f"/api/jobs/challenge_phase_split/{board_number(codename)}/leaderboard/"
