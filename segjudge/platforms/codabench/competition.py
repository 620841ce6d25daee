"""EvalAI's phases as competitions: on Codabench they may neither overlap nor touch, and share one leaderboard."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from segjudge.platforms.evalai.bundle.agreement import MappedSplit, splits_of
from segjudge.platforms.evalai.bundle.problems import mappings_in

#: The image with Python 3.12 and the scientific packages; the default one has Python 3.7.
IMAGE = "codalab/codalab-legacy:py312"
#: What the public queue allows, in seconds, and what a run needs beside the scoring.
CAP, SPARE = 600, 120
#: Codabench appends the title to the name of the uploaded file, which may have 255 characters.
TITLE = 181
#: The shortest pause between two phases.
_GAP = datetime.timedelta(seconds=1)


@dataclass(frozen=True)
class _BoardColumn:
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
    columns: tuple[_BoardColumn, ...]
    start: datetime.datetime
    end: datetime.datetime
    #: Codenames of splits that are left out, since Codabench hides them by its page alone.
    left_out: tuple[str, ...] = ()

    @property
    def codename(self) -> str:
        return str(self.config["codename"])


#: Phases of one competition, each of which ends before the next begins.
Chain = list[DatedPhase]
#: What differs from the challenge on EvalAI, with the codenames or keys that it is about.
Notes = dict[str, list[str]]


def note(notes: Notes, subject: str, text: str) -> None:
    """Add a note, once."""
    if subject not in notes.setdefault(text, []):
        notes[text].append(subject)


def collect_phases(config: dict[str, Any], *, hidden: bool = False) -> list[DatedPhase]:
    """With `hidden`, splits that participants may not see come as hidden columns."""
    return [_make_phase(config, phase, hidden=hidden) for phase in mappings_in(config, "challenge_phases")]


def _make_phase(config: dict[str, Any], phase: dict[str, Any], *, hidden: bool) -> DatedPhase:
    # A hidden column can rank nothing.
    splits = sorted(splits_of(config, phase), key=lambda split: not split.is_public)
    shown_splits = [split for split in splits if hidden or split.is_public]
    columns: list[_BoardColumn] = []
    for split in shown_splits:
        # The first split of every phase has the plain labels, so that the column that ranks is never empty.
        columns += _columns(split, f"{split.codename}: " if columns else "")
    left_out = tuple(split.codename for split in splits if split not in shown_splits)
    boards = tuple(dict.fromkeys(split.row["leaderboard_id"] for split in shown_splits))
    return DatedPhase(phase, boards, tuple(columns), _moment(phase["start_date"]), _moment(phase["end_date"]), left_out)


def _columns(split: MappedSplit, prefix: str) -> list[_BoardColumn]:
    metadata = split.schema.get("metadata") or {}
    columns = []
    for label in sorted(split.schema["labels"], key=lambda label: label != split.schema["default_order_by"]):
        entry = metadata.get(label)
        about = str(entry.get("description", "")) if isinstance(entry, dict) else ""
        precision, ascending = int(split.row["leaderboard_decimal_precision"]), not split.is_descending(label)
        key, is_hidden = f"{prefix}{label}", not split.is_public
        columns.append(_BoardColumn(key, split.codename, label, ascending, precision, is_hidden, about))
    return columns


def _moment(value: object) -> datetime.datetime:
    """Dates of the config are in UTC; those of Codabench have no zone."""
    moment = datetime.datetime.fromisoformat(str(value))
    return moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment


def chain_phases(phases: Sequence[DatedPhase], notes: Notes) -> list[Chain]:
    """Put phases into competitions, in their order; dates that are moved are noted.

    A competition holds phases of one leaderboard, either public or not.
    """
    competitions: list[Chain] = []
    for phase in sorted(phases, key=lambda phase: phase.start):
        for chain in competitions:
            latest = chain[-1]
            same = latest.boards == phase.boards and _is_public(latest) == _is_public(phase)
            if not same or phase.start < latest.end:
                continue
            if phase.start == latest.end:
                note(notes, phase.codename, "starts a second later, since phases may not touch on Codabench")
                phase = replace(phase, start=phase.start + _GAP)  # noqa: PLW2901
            chain.append(phase)
            break
        else:
            competitions.append([phase])
    order = {phase.codename: number for number, phase in enumerate(phases)}
    return sorted(competitions, key=lambda chain: order[chain[0].codename])


def _is_public(phase: DatedPhase) -> bool:
    return bool(phase.config.get("is_public", True))


def collect_columns(chain: Chain) -> list[_BoardColumn]:
    """Each column of the phases once; the one that ranks stands first."""
    columns: dict[str, _BoardColumn] = {}
    for phase in chain:
        for column in phase.columns:
            columns.setdefault(column.key, column)
    return list(columns.values())
