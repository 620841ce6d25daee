"""What EvalAI already holds of a challenge, as far as it is known: an update may not change all of it.

One file for each server and repository, so that a rehearsal never judges another server.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from segjudge.evaluation_script.errors import HostError
from segjudge.files import replace

from .field_values import flag, whole
from .problems import items

#: The folder of these files, beside the bundle and out of git.
PUSHES = os.path.join(".segjudge", "pushes")
#: What a phase split says besides its three ids; frozen once EvalAI's staff has approved the challenge.
SHOWN = ("visibility", "leaderboard_decimal_precision", "is_leaderboard_order_descending")
_POINTERS = ("leaderboard_id", "challenge_phase_id", "dataset_split_id")


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
    #: Whether its queue is a FIFO; None where that is not known.
    fifo: bool | None = None


def state_of(config: dict[str, Any], *, source: str, approved: bool = False) -> State:
    """What the server holds after a config was pushed: only what is mapped can be found again."""
    rows = [
        [*(whole(row.get(key)) for key in _POINTERS), *(_kept(key, row.get(key)) for key in SHOWN)]
        for row in items(config, "challenge_phase_splits")
    ]
    boards, splits = {row[0] for row in rows}, {row[2] for row in rows}
    return State(
        source,
        approved,
        {number: board.get("schema") for number, board in _numbered(config, "leaderboard") if number in boards},
        {number: _text(phase.get("codename")) for number, phase in _numbered(config, "challenge_phases")},
        {
            number: [_text(split.get("name")), _text(split.get("codename"))]
            for number, split in _numbered(config, "dataset_splits")
            if number in splits
        },
        rows,
        bool(flag(config.get("use_fifo_sqs", False))),
    )


def _numbered(config: dict[str, Any], block: str) -> list[tuple[int, dict[str, Any]]]:
    found = [(whole(item.get("id")), item) for item in items(config, block)]
    return [(number, item) for number, item in found if number is not None]


def _text(value: Any) -> str:
    """As the server keeps it: without the spaces around it."""
    return "" if value is None else str(value).strip()


def _kept(key: str, value: Any) -> Any:
    return flag(value) if key == SHOWN[2] else whole(value)


def remember(root: str, server: str, repository: str, state: State) -> str:
    """Keep what was pushed, beside the bundle and out of git."""
    path = place(root, server, repository)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    kept = {"server": server, "repository": repository, **asdict(state)}
    replace(Path(path), json.dumps(kept, indent=1, default=str))
    return path


def place(root: str, server: str, repository: str) -> str:
    """The file of a challenge; names of servers are not told apart by case."""
    name = f"{server.lower().rstrip('/')} {repository}"
    plain = re.sub(r"[^\w.-]+", "-", name.partition("://")[2])[:100]
    return os.path.join(root, PUSHES, f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.json")


def remembered(root: str, server: str, repository: str) -> State | None:
    """What the last push of a repository from here left on a server."""
    path = place(root, server, repository)
    try:
        with open(path, encoding="utf-8") as file:
            held = json.load(file)
        numbered = {key: {int(number): value for number, value in held[key].items()} for key in _NUMBERED}
        rows = [[*row] for row in held["rows"]]
        named = {number: [*names] for number, names in numbered.pop("splits").items()}
        source, approved, fifo = str(held["source"]), bool(held["approved"]), held.get("fifo")
        return State(source, approved, splits=named, rows=rows, fifo=fifo, **numbered)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HostError(f"{path}: cannot be read ({error}); remove it to go on without") from None


_NUMBERED = ("leaderboards", "phases", "splits")
