"""Phases → competitions: on Codabench, phases may neither overlap nor touch, and a competition has one leaderboard."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from segjudge.platforms.evalai.bundle.agreement import is_public
from segjudge.platforms.evalai.bundle.problems import mappings_in
from segjudge.platforms.evalai.rows import is_descending

#: The shortest pause between two phases.
GAP = datetime.timedelta(seconds=1)


@dataclass(frozen=True)
class BoardColumn:
    """A column of Codabench's leaderboard: a label of a split."""

    key: str
    split: str
    label: str
    ascending: bool
    precision: int
    hidden: bool
    description: str = ""


@dataclass(frozen=True)
class DatedPhase:
    """A phase with its columns, the one that ranks first, and its dates in UTC."""

    config: dict[str, Any]
    boards: tuple[object, ...]
    columns: tuple[BoardColumn, ...]
    start: datetime.datetime
    end: datetime.datetime
    #: Codenames of splits that are left out, since Codabench hides them by its page alone.
    left_out: tuple[str, ...] = ()

    @property
    def codename(self) -> str:
        """The phase's codename."""
        return str(self.config["codename"])


#: Phases of one competition, each of which ends before the next begins.
Chain = list[DatedPhase]
#: What differs from the challenge on EvalAI, with the codenames or keys that it is about.
Notes = dict[str, list[str]]


def note(notes: Notes, where: str, text: str) -> None:
    """Add a note, once."""
    if where not in notes.setdefault(text, []):
        notes[text].append(where)


def dated_phases(config: dict[str, Any], *, hidden: bool = False) -> list[DatedPhase]:
    """Return the phases of a config; with `hidden`, the splits that participants may not see as hidden columns."""
    return [_dated_phase(config, phase, hidden=hidden) for phase in mappings_in(config, "challenge_phases")]


def _dated_phase(config: dict[str, Any], phase: dict[str, Any], *, hidden: bool) -> DatedPhase:
    codenames = {split["id"]: str(split["codename"]) for split in mappings_in(config, "dataset_splits")}
    schemas = {board["id"]: board["schema"] for board in mappings_in(config, "leaderboard")}
    rows = [row for row in mappings_in(config, "challenge_phase_splits") if row["challenge_phase_id"] == phase["id"]]
    # A hidden column can rank nothing.
    rows.sort(key=lambda row: not is_public(row))
    shown = [row for row in rows if hidden or is_public(row)]
    columns: list[BoardColumn] = []
    for row in shown:
        codename = codenames[row["dataset_split_id"]]
        # The first split of every phase has the plain labels, so that the column that ranks is never empty.
        prefix = f"{codename}: " if columns else ""
        columns += _columns(codename, prefix, row, schemas[row["leaderboard_id"]])
    left_out = tuple(codenames[row["dataset_split_id"]] for row in rows if row not in shown)
    boards = tuple(dict.fromkeys(row["leaderboard_id"] for row in shown))
    return DatedPhase(phase, boards, tuple(columns), _moment(phase["start_date"]), _moment(phase["end_date"]), left_out)


def _columns(codename: str, prefix: str, row: dict[str, Any], schema: dict[str, Any]) -> list[BoardColumn]:
    metadata = schema.get("metadata") or {}
    found = []
    for label in sorted(schema["labels"], key=lambda label: label != schema["default_order_by"]):
        entry = metadata.get(label)
        ascending = not is_descending(schema, label, row["is_leaderboard_order_descending"])
        about = str(entry.get("description", "")) if isinstance(entry, dict) else ""
        precision, is_hidden = int(row["leaderboard_decimal_precision"]), not is_public(row)
        found.append(BoardColumn(f"{prefix}{label}", codename, label, ascending, precision, is_hidden, about))
    return found


def _moment(value: object) -> datetime.datetime:
    """Return a date of the config, which is in UTC, without its zone."""
    moment = datetime.datetime.fromisoformat(str(value))
    return moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment


def chains(phases: Sequence[DatedPhase], notes: Notes) -> list[Chain]:
    """Return the phases as competitions, in their order; dates that are moved are noted.

    A competition holds phases of one leaderboard, either public or not.
    """
    found: list[Chain] = []
    for phase in sorted(phases, key=lambda phase: phase.start):
        for chain in found:
            last = chain[-1]
            same = last.boards == phase.boards and _is_public(last) == _is_public(phase)
            if not same or phase.start < last.end:
                continue
            if phase.start == last.end:
                note(notes, phase.codename, "starts a second later, since phases may not touch on Codabench")
                phase = replace(phase, start=phase.start + GAP)  # noqa: PLW2901
            chain.append(phase)
            break
        else:
            found.append([phase])
    order = {phase.codename: number for number, phase in enumerate(phases)}
    return sorted(found, key=lambda chain: order[chain[0].codename])


def _is_public(phase: DatedPhase) -> bool:
    return bool(phase.config.get("is_public", True))


def board_columns(chain: Chain) -> list[BoardColumn]:
    """Return the columns of a competition: those of its phases, each once; the one that ranks stands first."""
    columns: dict[str, BoardColumn] = {}
    for phase in chain:
        for column in phase.columns:
            columns.setdefault(column.key, column)
    return list(columns.values())
