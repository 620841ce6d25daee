"""Rules of updates: what a later push may not change."""

from __future__ import annotations

import json
from typing import Any

from segjudge.platforms.evalai.bundle.field_values import as_flag, as_integer, validate
from segjudge.platforms.evalai.bundle.fields import MAPPING
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.problems import BundleProblem, BundleProblems, FieldError, crash, mappings_in
from segjudge.platforms.evalai.bundle.server_state import REFERENCES, SPLIT_SETTINGS, ServerState

from .blocks import entries
from .creation import CREATION, UNSAVED
from .mappings import ids_known_to_server, items_known_to_server, python_integer

#: The rules by which the server tests a block in another order than item by item: those of items that are gone come
#: last, names of splits come first, and stored rows come before the ids of a row.
LOST, SPLIT_NAMES, HELD_ROWS = (32, 46, 53, 62), (48, 49, 50), (60, 61, 63)
_ROW = "(leaderboard_id: {}, challenge_phase_id: {}, dataset_split_id: {})"
_APPROVED = "cannot be changed after the challenge is approved by an admin. Revert"
_NOT_ALLOWED = "after challenge creation is not allowed."
_SUPPORT = "to match the approved configuration or contact support."


def updates_of_challenge(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield a change of the kind of queue, which is set once; a validation does not test it."""
    fifo = as_flag(bundle.config.get("use_fifo_sqs", state.fifo))
    if state.fifo is None or fifo is None or fifo == state.fifo:
        return
    words = "use_fifo_sqs cannot be changed after the challenge queue has been created."
    error = FieldError("use_fifo_sqs", words, "invalid")
    quote, found = UNSAVED.format("challenge :{errors}"), f"is {fifo}, and was {state.fifo}"
    yield BundleProblem("use_fifo_sqs", found, "Put it back", quote, CREATION, error=error)


def updates_of_leaderboards(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield the leaderboards that are gone, and changes of schemas of an approved challenge."""
    known = items_known_to_server(bundle, "leaderboard_id")
    if state.leaderboards:
        yield from _unreadable_ids(bundle, state, known, 33)
    for where, board in known if state.approved else []:
        number = as_integer(board.get("id"))
        if number not in state.leaderboards:
            continue
        schema = _canonical(board["schema"])
        if schema is None:
            found = "has texts and other values as keys of one mapping"
            yield crash(f"{where}.schema", found, "Put the keys in quotes", 33)
        elif schema != _canonical(state.leaderboards[number]):
            quote = f"ERROR: Leaderboard {board['id']} {_APPROVED} the leaderboard block {_SUPPORT}"
            yield _changed(f"{where}.schema", f"of id {number}", quote, 33)
    names = {number: f"id {number}" for number in state.leaderboards}
    deletion = f"Deletion of an existing leaderboard {_NOT_ALLOWED}"
    quote = f"ERROR: The leaderboard with ID: {{}} not found in config. {deletion}"
    yield from _missing_items(bundle, "leaderboard_id", names, quote, 32)


def updates_of_splits(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield the splits that are gone, and changes of names of an approved challenge."""
    known = items_known_to_server(bundle, "dataset_split_id")
    if state.splits:
        yield from _unreadable_ids(bundle, state, known, 54)
    for where, split in known if state.approved else []:
        number, name = as_integer(split.get("id")), [split.get("name"), split.get("codename")]
        if number in state.splits and name != state.splits[number]:
            quote = f"ERROR: Dataset split {split['id']} {_APPROVED} the dataset split block {_SUPPORT}"
            yield _changed(where, f"id {number}", quote, 54)
    names = {number: f"id {number} ({split[1]})" for number, split in state.splits.items()}
    quote = f"ERROR: Dataset split {{}} not found in config. Deletion of existing dataset split {_NOT_ALLOWED}"
    yield from _missing_items(bundle, "dataset_split_id", names, quote, 53)


def updates_of_phases(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield the phases that are gone."""
    if bundle.config.get("challenge_phases"):
        names = {number: f"id {number} ({codename})" for number, codename in state.phases.items()}
        quote = f"ERROR: Challenge phase {{}} not found in config. Deletion of existing challenge phase {_NOT_ALLOWED}"
        yield from _missing_items(bundle, "challenge_phase_id", names, quote, 46)


def _unreadable_ids(
    bundle: Bundle, state: ServerState, items: list[tuple[str, dict[str, Any]]], rule: int
) -> BundleProblems:
    """Yield the ids that the server's update cannot read, though its serializers can.

    The update itself reads them of an approved challenge, or with rows of new phases.
    """
    rows = [row for _, row in entries(bundle, "challenge_phase_splits") if {*REFERENCES, *SPLIT_SETTINGS} <= {*row}]
    reads = state.approved or any(python_integer(row["challenge_phase_id"]) not in state.phases for row in rows)
    for where, item in items if reads else []:
        if "id" in item and python_integer(item["id"]) is None:
            yield crash(f"{where}.id", f"is {item['id']!r:.60}, not a whole number", "Number it from 1", rule)


def _missing_items(bundle: Bundle, key: str, names: dict[int, str], quote: str, rule: int) -> BundleProblems:
    block, known = REFERENCES[key][0], ids_known_to_server(bundle, key)
    written = [item.get("id") for item in mappings_in(bundle.config, block)]
    for number in sorted(number for number in names if number not in known):
        quoted = str(number) in written
        found = f"lacks {names[number]}, which is on EvalAI already" + (": in quotes it is another" if quoted else "")
        remedy = "Remove the quotes" if quoted else "Put it back: what was pushed can be changed, not deleted"
        yield BundleProblem(block, found, remedy, quote.format(number), rule, consequence=number in written)


def _canonical(schema: object) -> str | None:
    """Return a schema as the server compares it; None where its keys cannot be sorted."""
    try:
        return json.dumps(schema, sort_keys=True, default=str)
    except TypeError:
        return None


def _changed(where: str, what: str, quote: str, rule: int) -> BundleProblem:
    return BundleProblem(where, f"{what} differs from what was approved", "Put back what was approved", quote, rule)


def updates_of_mappings(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield new rows of stored phases, rows that are gone, and changes of rows of an approved challenge."""
    stored = {tuple(row[:3]): row[3:] for row in state.rows}
    if not stored or not bundle.config.get("challenge_phase_splits"):
        return  # a new challenge, or reported by `mappings`
    kept: list[tuple[int | None, ...]] = []
    for where, row in entries(bundle, "challenge_phase_splits"):
        if any(key not in row for key in (*REFERENCES, *SPLIT_SETTINGS)):
            continue
        triple = tuple(python_integer(row[key]) for key in REFERENCES)
        if triple in stored:
            kept.append(triple)
            yield from _changed_settings(where, row, stored[triple], approved=state.approved)
        elif triple[1] in state.phases:
            quote = (
                "ERROR: Cannot add a new leaderboard/dataset-split mapping for an existing challenge phase "
                f"{_ROW.format(*(row[key] for key in REFERENCES))}. New mappings are only allowed for newly added "
                "challenge phases."
            )
            found = "shows {2} on leaderboard {0} anew in phase {1}, which is on EvalAI already".format(*triple)
            yield BundleProblem(where, found, "Add a new phase for it, or remove the row", quote, 60)
        else:
            yield from _undeclared_ids(bundle, state, where, triple)
    for triple in sorted(stored.keys() - {*kept}):
        quote = (
            f"ERROR: Challenge phase split {_ROW.format(*triple)} not found in config. Deletion of existing challenge "
            f"phase split {_NOT_ALLOWED}"
        )
        found = "lacks leaderboard {}, phase {}, split {}, which is on EvalAI already".format(*triple)
        remedy = "Put it back: what was pushed can be changed, not deleted"
        yield BundleProblem("challenge_phase_splits", found, remedy, quote, 62)


def _changed_settings(where: str, row: dict[str, Any], stored: list[Any], *, approved: bool) -> BundleProblems:
    """Yield what differs from the approved row; the server compares `int` and `bool` of the values."""
    if not approved or None in stored:
        return
    try:
        settings = [int(row[SPLIT_SETTINGS[0]]), int(row[SPLIT_SETTINGS[1]]), bool(row[SPLIT_SETTINGS[2]])]
    except (TypeError, ValueError, OverflowError):
        invalid = [key for key in SPLIT_SETTINGS[:2] if validate(key, row[key], MAPPING[key])]
        key = (invalid or [SPLIT_SETTINGS[0]])[0]
        yield crash(f"{where}.{key}", f"is {row[key]!r:.60}", "Write a number", 63)
        return
    if settings != stored:
        triple = _ROW.format(*(row[key] for key in REFERENCES))
        quote = f"ERROR: Challenge phase split {triple} {_APPROVED} visibility / ordering fields {_SUPPORT}"
        yield _changed(where, "leaderboard {}, phase {}, split {}".format(*(row[key] for key in REFERENCES)), quote, 63)


def _undeclared_ids(bundle: Bundle, state: ServerState, where: str, triple: tuple[int | None, ...]) -> BundleProblems:
    """Yield the ids in a row of a new phase that neither the config nor the challenge has."""
    for index, key, stored, what, rule in (
        (0, "leaderboard_id", state.leaderboards, "Leaderboard", "may only use leaderboards"),
        (2, "dataset_split_id", state.splits, "Dataset split", "must use dataset splits"),
    ):
        if triple[index] in stored or triple[index] in map(python_integer, ids_known_to_server(bundle, key)):
            continue
        quote = (
            f"ERROR: {what} id {triple[index]} is not part of this challenge or the uploaded configuration. "
            f"New challenge phases {rule} declared in the configuration."
        )
        found = f"names {key} {triple[index]}, which is not in {REFERENCES[key][0]}"
        yield BundleProblem(where, found, "Correct the id", quote, 61)
