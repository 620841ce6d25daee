"""What a second push may not change."""

from __future__ import annotations

from typing import Any

from linejudge.bundle.finding import Finding, Findings, items, name_of
from linejudge.bundle.opened import Bundle
from linejudge.bundle.state import SHOWN, State

from .mappings import POINTERS

_ROW = "(leaderboard_id: {}, challenge_phase_id: {}, dataset_split_id: {})"
_APPROVED = "cannot be changed after the challenge is approved by an admin. Revert"
_SUPPORT = "to match the approved configuration or contact support."


def updates(bundle: Bundle, state: State) -> Findings:
    """Against what the server holds."""
    boards = {name_of(board): board.get("schema") for board in items(bundle.config, "leaderboard")}
    phases = {name_of(phase) for phase in items(bundle.config, "challenge_phases")}
    splits = {name_of(one): [one.get("name"), one.get("codename")] for one in items(bundle.config, "dataset_splits")}
    for number in state.leaderboards.keys() - boards.keys():
        quote = (
            f"ERROR: The leaderboard with ID: {number} not found in config. Deletion of an existing leaderboard after "
            "challenge creation is not allowed."
        )
        yield _gone("leaderboard", f"id {number}", quote, 32)
    for number in sorted(state.phases.keys() - phases):
        quote = (
            f"ERROR: Challenge phase {number} not found in config. Deletion of existing challenge phase after "
            "challenge creation is not allowed."
        )
        yield _gone("challenge_phases", f"id {number} ({state.phases[number]})", quote, 46)
    for number in state.splits.keys() - splits.keys():
        quote = (
            f"ERROR: Dataset split {number} not found in config. Deletion of existing dataset split after challenge "
            "creation is not allowed."
        )
        yield _gone("dataset_splits", f"id {number} ({state.splits[number][1]})", quote, 53)
    if state.approved:
        yield from _frozen(state, boards, splits)
    if state.rows:
        yield from _rows(bundle, state)


def _gone(where: str, what: str, quote: str, rule: int) -> Finding:
    found = f"lacks {what}, which is on EvalAI already"
    return Finding(where, found, "Put it back: what was pushed can be changed, not deleted", quote, rule=rule)


def _frozen(state: State, boards: dict[Any, Any], splits: dict[Any, Any]) -> Findings:
    for number, schema in state.leaderboards.items():
        if number in boards and boards[number] != schema:
            quote = f"ERROR: Leaderboard {number} {_APPROVED} the leaderboard block {_SUPPORT}"
            yield _changed("leaderboard", f"id {number}", quote, 33)
    for number, names in state.splits.items():
        if number in splits and splits[number] != names:
            quote = f"ERROR: Dataset split {number} {_APPROVED} the dataset split block {_SUPPORT}"
            yield _changed("dataset_splits", f"id {number}", quote, 54)


def _changed(where: str, what: str, quote: str, rule: int) -> Finding:
    return Finding(where, f"{what} differs from what was approved", "Put back what was approved", quote, rule=rule)


def _rows(bundle: Bundle, state: State) -> Findings:
    held = {tuple(row[:3]): row[3:] for row in state.rows}
    told = {tuple(name_of(row, key) for key in POINTERS): row for row in items(bundle.config, "challenge_phase_splits")}
    where = "challenge_phase_splits"
    for triple in told.keys() - held.keys():
        if triple[1] in state.phases:
            quote = (
                f"ERROR: Cannot add a new leaderboard/dataset-split mapping for an existing challenge phase "
                f"{_ROW.format(*triple)}. New mappings are only allowed for newly added challenge phases."
            )
            found = "shows {} on leaderboard {} anew in phase {}, which is on EvalAI already"
            remedy = "Add a new phase for it, or remove the row"
            yield Finding(where, found.format(triple[2], triple[0], triple[1]), remedy, quote, rule=60)
        else:
            yield from _declared(bundle, triple)
    for triple in held.keys() - told.keys():
        quote = (
            f"ERROR: Challenge phase split {_ROW.format(*triple)} not found in config. Deletion of existing challenge "
            "phase split after challenge creation is not allowed."
        )
        yield _gone(where, "leaderboard {}, phase {}, split {}".format(*triple), quote, 62)
    for triple in held.keys() & told.keys():
        now = [told[triple].get(key) for key in SHOWN]
        if state.approved and now != held[triple]:
            quote = (
                f"ERROR: Challenge phase split {_ROW.format(*triple)} {_APPROVED} visibility / ordering fields "
                f"{_SUPPORT}"
            )
            yield _changed(where, "leaderboard {}, phase {}, split {}".format(*triple), quote, 63)


def _declared(bundle: Bundle, triple: tuple[Any, ...]) -> Findings:
    """A new phase may only point at what the config declares."""
    for place, key, what, which in (
        (0, "leaderboard_id", "Leaderboard", "may only use leaderboards declared in the configuration"),
        (2, "dataset_split_id", "Dataset split", "must use dataset splits declared in the configuration"),
    ):
        block = POINTERS[key][0]
        if triple[place] not in [item.get("id") for item in items(bundle.config, block)]:
            quote = (
                f"ERROR: {what} id {triple[place]} is not part of this challenge or the uploaded configuration. "
                f"New challenge phases {which}."
            )
            found = f"names {key} {triple[place]}, which is not in {block}"
            yield Finding("challenge_phase_splits", found, "Mend the id", quote, rule=61)
