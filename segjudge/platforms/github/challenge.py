"""The rules of a board, from the bundle in its private repository and the public `board.yaml`."""

from __future__ import annotations

import datetime
import os
import re
from typing import Any

import yaml

from segjudge.evaluation_script.files.problems import HostError
from segjudge.ledger.rules import BoardRules, PhaseRules, Rules
from segjudge.platforms.evalai.bundle.bundle_source import BundleSource
from segjudge.platforms.evalai.bundle.phase_splits import splits_of
from segjudge.platforms.rules.fields import as_integer
from segjudge.platforms.rules.problems import mappings_in

#: The public settings of a board, and its only key: phase → the day on which its results appear.
SETTINGS, REVEAL = "board.yaml", "reveal"
#: The limits of a phase in the YAML, by their periods.
_LIMITS = {"day": "max_submissions_per_day", "month": "max_submissions_per_month", "all": "max_submissions"}
_NAME = re.compile(r"[A-Za-z0-9][\w-]{,99}", re.ASCII)


def read_rules(source: BundleSource, reveal: dict[str, datetime.date]) -> Rules:
    """Return the rules of a board; raises HostError for what a board cannot have."""
    config, published = source.config(), set(source.list_published())
    rows = {str(row.get("codename")): row for row in mappings_in(config, "challenge_phases")}
    phases = []
    for phase in source.phases():
        row = rows.get(phase.codename)
        if row is None:  # `check` says so
            continue
        mapped = {split.codename: split for split in splits_of(config, row)}
        boards = [
            _read_board(mapped[split.codename], f"{phase.codename}/{split.codename}" in published)
            for split in phase.splits
            if split.codename in mapped
        ]
        limits = {period: as_integer(row.get(key)) for period, key in _LIMITS.items()}
        phases.append(
            PhaseRules(
                phase.codename,
                _as_moment(row, "start_date"),
                _as_moment(row, "end_date"),
                boards,
                {period: limit for period, limit in limits.items() if limit is not None},
                phase.seconds,
                reveal.get(phase.codename),
            )
        )
    if not phases:
        raise HostError(f"phases.py: the YAML has no phase {', '.join(phase.codename for phase in source.phases())}")
    names = [name for phase in phases for name in (phase.codename, *(board.split for board in phase.boards))]
    if wrong := [name for name in names if not _NAME.fullmatch(name)]:
        raise HostError(f"{wrong[0]!r}: a board's phases and splits have codenames of a-z, 0-9, - and _")
    if unknown := sorted({*reveal} - {phase.codename for phase in phases}):
        raise HostError(f"{SETTINGS}: {REVEAL} names {unknown[0]!r}, which is no phase")
    return Rules(str(config.get("title") or ""), phases)


def read_reveal(folder: str) -> dict[str, datetime.date]:
    """Return the days before which phases are blind, from the public settings; raises HostError."""
    path = os.path.join(folder, SETTINGS)
    try:
        with open(path, encoding="utf-8") as file:
            settings = yaml.safe_load(file)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise HostError(f"{path}: cannot be read ({error})") from None
    reveal = settings.get(REVEAL) if isinstance(settings, dict) else None
    days = reveal or {}
    if not isinstance(days, dict) or any(type(day) is not datetime.date for day in days.values()):
        raise HostError(f"{path}: {REVEAL} has lines such as my-phase: 2027-03-31")
    return {str(phase): day for phase, day in days.items()}


def _read_board(split: Any, public: bool) -> BoardRules:  # noqa: FBT001
    order = str(split.schema.get("default_order_by") or "")
    labels = [str(label) for label in split.schema.get("labels") or []]
    decimals = as_integer(split.row.get("leaderboard_decimal_precision"))
    descending = split.is_descending(order)
    return BoardRules(split.codename, split.codename, labels, order, descending, decimals or 2, public)


def _as_moment(row: dict[str, Any], key: str) -> datetime.datetime:
    """Return a date of the YAML, in UTC unless it has another zone."""
    try:
        moment = datetime.datetime.fromisoformat(str(row.get(key)))
    except ValueError:
        raise HostError(f"{row.get('codename')}: {key} is no date such as 2027-03-31 23:59:59") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)
