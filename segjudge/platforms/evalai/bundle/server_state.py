"""The known state of a challenge on EvalAI, parts of which updates may not change.

A push records it in one file per server and repository, so a rehearsal never affects another server.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.rules.fields import as_flag, as_integer
from segjudge.platforms.rules.problems import mappings_in
from segjudge.system.files import replace

from .phase_splits import is_seen_by_all

#: The folder of these files, beside the bundle and ignored by git.
_PUSHES = os.path.join(".segjudge", "pushes")
#: The blocks that a phase split refers to, by key, with their names in the server's messages.
REFERENCES = {
    "leaderboard_id": ("leaderboard", "leaderboard"),
    "challenge_phase_id": ("challenge_phases", "phased"),
    "dataset_split_id": ("dataset_splits", "dataset split"),
}
#: The other keys of a phase split; frozen once EvalAI's staff has approved the challenge.
SPLIT_SETTINGS = ("visibility", "leaderboard_decimal_precision", "is_leaderboard_order_descending")


@dataclass(frozen=True)
class ServerState:
    """A challenge on the server, by the ids of its own config."""

    #: A description of this state's source.
    source: str = ""
    approved: bool = False
    #: id → schema
    leaderboards: dict[int, Any] = field(default_factory=dict)
    #: id → codename
    phases: dict[int, str] = field(default_factory=dict)
    #: id → [name, codename]
    splits: dict[int, list[str]] = field(default_factory=dict)
    #: Phase splits: the ids in the order of `REFERENCES`, then the values of `SPLIT_SETTINGS`.
    rows: list[list[Any]] = field(default_factory=list)
    #: Whether its queue is a FIFO; None if unknown.
    fifo: bool | None = None
    #: The slugs of the phases without the challenge's id, set when each phase was new; empty if unknown.
    slugs: list[str] = field(default_factory=list)
    #: The ids of phases whose annotation files pushes do not replace, since they were uploaded with the evalai client.
    kept_truths: list[int] = field(default_factory=list)
    #: The ids of phases that are public with public leaderboards.
    published: list[int] = field(default_factory=list)
    #: How the last push from here had each phase scored, as text by codename; the server does not know this.
    scoring: dict[str, str] = field(default_factory=dict)

    @classmethod
    def after_push(
        cls, config: dict[str, Any], *, source: str, approved: bool = False, scoring: Mapping[str, str] | None = None
    ) -> ServerState:
        """Return the server's state after a push; only parts named by phase splits are found again."""
        numbers = (*REFERENCES, *SPLIT_SETTINGS[:2])
        rows: list[list[Any]] = [
            [*(as_integer(row.get(key)) for key in numbers), as_flag(row.get(SPLIT_SETTINGS[2]))]
            for row in mappings_in(config, "challenge_phase_splits")
        ]
        boards, splits = {row[0] for row in rows}, {row[2] for row in rows}
        phases = dict(_by_id(config, "challenge_phases"))
        return cls(
            source,
            approved,
            {number: board.get("schema") for number, board in _by_id(config, "leaderboard") if number in boards},
            {number: _strip(phase.get("codename")) for number, phase in phases.items()},
            {
                number: [_strip(split.get("name")), _strip(split.get("codename"))]
                for number, split in _by_id(config, "dataset_splits")
                if number in splits
            },
            rows,
            bool(as_flag(config.get("use_fifo_sqs", False))),
            kept_truths=[
                n for n, phase in phases.items() if as_flag(phase.get("annotations_uploaded_using_cli")) is True
            ],
            published=[number for number, phase in phases.items() if is_seen_by_all(phase)],
            scoring=dict(scoring or {}),
        )

    @classmethod
    def load(cls, root: str, server: str, repository: str) -> ServerState | None:
        """Return the recorded state of a repository's last push from here; None without one."""
        path = _state_path(root, server, repository)
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
            by_id = {
                key: {int(number): value for number, value in document[key].items()}
                for key in ("leaderboards", "phases", "splits")
            }
            return cls(
                str(document["source"]),
                bool(document["approved"]),
                **by_id,
                rows=[[*row] for row in document["rows"]],
                fifo=document.get("fifo"),
                slugs=[*document.get("slugs", [])],
                kept_truths=[*map(int, document.get("kept_truths", []))],
                published=[*map(int, document.get("published", []))],
                scoring={str(codename): str(words) for codename, words in document.get("scoring", {}).items()},
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise HostError(f"{path}: cannot be read ({error}); remove it to continue without it") from None

    def save(self, root: str, server: str, repository: str) -> str:
        """Save the state of a server after a push; return the file."""
        path = _state_path(root, server, repository)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        document = {"server": server, "repository": repository, **asdict(self)}
        replace(Path(path), json.dumps(document, indent=1, default=str))
        return path


def _by_id(config: dict[str, Any], block: str) -> list[tuple[int, dict[str, Any]]]:
    numbered = [(as_integer(item.get("id")), item) for item in mappings_in(config, block)]
    return [(number, item) for number, item in numbered if number is not None]


def _strip(value: object) -> str:
    """Return a string as the server stores it: stripped."""
    return "" if value is None else str(value).strip()


def _state_path(root: str, server: str, repository: str) -> str:
    """Return the path of a server's state, ignoring case in its name."""
    name = f"{server.lower().rstrip('/')} {repository}"
    stem = re.sub(r"[^\w.-]+", "-", name.partition("://")[2])[:100]
    return os.path.join(root, _PUSHES, f"{stem}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.json")
