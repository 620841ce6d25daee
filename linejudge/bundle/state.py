"""What EvalAI already holds of a challenge, as far as it is known: an update may not change all of it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evaluation_script.errors import HostError
from linejudge.files import replace

from .finding import items

LAST_PUSH = os.path.join(".linejudge", "last_push.json")
#: What a phase split says besides its three ids; frozen once EvalAI's staff has approved the challenge.
SHOWN = ("visibility", "leaderboard_decimal_precision", "is_leaderboard_order_descending")


@dataclass(frozen=True)
class State:
    """A challenge on the server, by the ids of its own config."""

    #: Where this was read, for people.
    source: str = ""
    approved: bool = False
    #: id → schema
    leaderboards: dict[int, Any] = field(default_factory=dict)
    #: id → codename
    phases: dict[int, str] = field(default_factory=dict)
    #: id → [name, codename]
    splits: dict[int, list[str]] = field(default_factory=dict)
    #: leaderboard, phase and split, then what `SHOWN` names
    rows: list[list[Any]] = field(default_factory=list)


def state_of(config: dict[str, Any], *, source: str, approved: bool = False) -> State:
    """What the server holds after a config was pushed."""
    return State(
        source,
        approved,
        {board["id"]: board.get("schema") for board in items(config, "leaderboard")},
        {phase["id"]: phase.get("codename", "") for phase in items(config, "challenge_phases")},
        {split["id"]: [split.get("name", ""), split.get("codename", "")] for split in items(config, "dataset_splits")},
        [
            [row.get(key) for key in ("leaderboard_id", "challenge_phase_id", "dataset_split_id", *SHOWN)]
            for row in items(config, "challenge_phase_splits")
        ],
    )


def remember(root: str, state: State) -> str:
    """Keep what was pushed, beside the bundle and out of git."""
    path = os.path.join(root, LAST_PUSH)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    replace(Path(path), json.dumps(asdict(state), indent=1))
    return path


def remembered(root: str) -> State | None:
    """What the last push from here left on the server."""
    path = os.path.join(root, LAST_PUSH)
    try:
        with open(path, encoding="utf-8") as file:
            held = json.load(file)
        numbered = {key: {int(number): value for number, value in held[key].items()} for key in _NUMBERED}
        rows = [[*row] for row in held["rows"]]
        named = {number: [*names] for number, names in numbered.pop("splits").items()}
        return State(str(held["source"]), bool(held["approved"]), splits=named, rows=rows, **numbered)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HostError(f"{path}: cannot be read ({error}); remove it to go on without") from None


_NUMBERED = ("leaderboards", "phases", "splits")
