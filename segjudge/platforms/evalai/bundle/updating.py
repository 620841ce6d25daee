"""What an update of a challenge may not change: what is on EvalAI already, and what was approved."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from .fields import MAPPING, FieldError, as_flag, as_integer, validate
from .opened_bundle import Bundle
from .problems import BundleProblem, BundleProblems, crash
from .rule_rows import entries
from .saving import CREATION, UNSAVED
from .server_state import REFERENCES, SPLIT_SETTINGS, ServerState
from .validation import ROWS, Entry, find_accepted, find_accepted_ids, ids_of, to_integer

#: The rules by which the server tests a block in another order than item by item: those of items that are gone come
#: last, names of splits come first, and stored rows come before the ids of a row.
_LOST, _NAMES_OF_SPLITS, _STORED_ROWS = (32, 46, 53, 62), (48, 49, 50), (60, 61, 63)
_ROW = "(leaderboard_id: {}, challenge_phase_id: {}, dataset_split_id: {})"
_APPROVED = "cannot be changed after the challenge is approved by an admin. Revert"
_NOT_ALLOWED = "after challenge creation is not allowed."
_SUPPORT = "to match the approved configuration or contact support."


def _differs(subject: str, what: str, quote: str, rule: int) -> BundleProblem:
    return BundleProblem(subject, f"{what} differs from what was approved", "Put back what was approved", quote, rule)


def _check_challenge_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield a change of the kind of queue, which is set once; a validation does not test it."""
    fifo = as_flag(bundle.config.get("use_fifo_sqs", state.fifo))
    if state.fifo is None or fifo is None or fifo == state.fifo:
        return
    words = "use_fifo_sqs cannot be changed after the challenge queue has been created."
    error = FieldError("use_fifo_sqs", words, "invalid")
    quote, fault = UNSAVED.format("challenge :{errors}"), f"is {fifo}, and was {state.fifo}"
    yield BundleProblem("use_fifo_sqs", fault, "Put it back", quote, CREATION, error=error)


def _check_leaderboards_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield the leaderboards that are gone, and changes of schemas of an approved challenge."""
    boards = find_accepted(bundle, "leaderboard_id")
    if state.leaderboards:
        yield from _check_update_ids(bundle, state, boards, 33)
    for at in boards if state.approved else []:
        number = as_integer(at.number)
        if number not in state.leaderboards:
            continue
        schema = _canonical(at.item["schema"])
        if schema is None:
            fault = "has texts and other values as keys of one mapping"
            yield crash(f"{at.path}.schema", fault, "Put the keys in quotes", 33)
        elif schema != _canonical(state.leaderboards[number]):
            quote = f"ERROR: Leaderboard {at.number} {_APPROVED} the leaderboard block {_SUPPORT}"
            yield _differs(f"{at.path}.schema", f"of id {number}", quote, 33)
    names = {number: f"id {number}" for number in state.leaderboards}
    deletion = f"Deletion of an existing leaderboard {_NOT_ALLOWED}"
    quote = f"ERROR: The leaderboard with ID: {{}} not found in config. {deletion}"
    yield from _check_missing_items(bundle, "leaderboard_id", names, quote, 32)


def _check_splits_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield the splits that are gone, and changes of names of an approved challenge."""
    splits = find_accepted(bundle, "dataset_split_id")
    if state.splits:
        yield from _check_update_ids(bundle, state, splits, 54)
    for at in splits if state.approved else []:
        number, names = as_integer(at.number), [at.item.get("name"), at.item.get("codename")]
        if number in state.splits and names != state.splits[number]:
            quote = f"ERROR: Dataset split {at.number} {_APPROVED} the dataset split block {_SUPPORT}"
            yield _differs(at.path, f"id {number}", quote, 54)
    stored = {number: f"id {number} ({split[1]})" for number, split in state.splits.items()}
    quote = f"ERROR: Dataset split {{}} not found in config. Deletion of existing dataset split {_NOT_ALLOWED}"
    yield from _check_missing_items(bundle, "dataset_split_id", stored, quote, 53)


def _check_phases_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    if bundle.config.get("challenge_phases"):
        names = {number: f"id {number} ({codename})" for number, codename in state.phases.items()}
        quote = f"ERROR: Challenge phase {{}} not found in config. Deletion of existing challenge phase {_NOT_ALLOWED}"
        yield from _check_missing_items(bundle, "challenge_phase_id", names, quote, 46)


def _check_update_ids(bundle: Bundle, state: ServerState, items: list[Entry], rule: int) -> BundleProblems:
    """Yield the ids that the server's update cannot read, though its serializers can.

    The update itself reads them of an approved challenge, or with rows of new phases.
    """
    rows = [row.item for row in entries(bundle, ROWS) if {*REFERENCES, *SPLIT_SETTINGS} <= {*row.item}]
    reads = state.approved or any(to_integer(row["challenge_phase_id"]) not in state.phases for row in rows)
    for entry in items if reads else []:
        at = entry.below("id")
        if at.is_written and to_integer(at.value) is None:
            yield crash(at.path, f"is {at.value!r:.60}, not a whole number", "Number it from 1", rule)


def _check_missing_items(bundle: Bundle, key: str, names: dict[int, str], quote: str, rule: int) -> BundleProblems:
    block, accepted = REFERENCES[key][0], find_accepted_ids(bundle, key)
    written = ids_of(bundle, block)
    for number in sorted(number for number in names if number not in accepted):
        is_quoted = str(number) in written
        words = ": in quotes it is another" if is_quoted else ""
        fault = f"lacks {names[number]}, which is on EvalAI already{words}"
        remedy = "Remove the quotes" if is_quoted else "Put it back: what was pushed can be changed, not deleted"
        yield BundleProblem(block, fault, remedy, quote.format(number), rule, consequence=number in written)


def _canonical(schema: object) -> str | None:
    """A schema as the server compares it; None where its keys cannot be sorted."""
    try:
        return json.dumps(schema, sort_keys=True, default=str)
    except TypeError:
        return None


def _check_mappings_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield new rows of stored phases, rows that are gone, and changes of rows of an approved challenge."""
    stored = {tuple(row[:3]): row[3:] for row in state.rows}
    if not stored or not bundle.config.get(ROWS):
        return  # a new challenge, or rule 55
    written: list[tuple[int | None, ...]] = []
    for at in entries(bundle, ROWS):
        if any(key not in at.item for key in (*REFERENCES, *SPLIT_SETTINGS)):
            continue
        ids = [at.item[key] for key in REFERENCES]
        triple = tuple(map(to_integer, ids))
        if triple in stored:
            written.append(triple)
            yield from _check_settings(at, ids, stored[triple] if state.approved else [None])
        elif triple[1] in state.phases:
            quote = (
                f"ERROR: Cannot add a new leaderboard/dataset-split mapping for an existing challenge phase "
                f"{_ROW.format(*ids)}. New mappings are only allowed for newly added challenge phases."
            )
            fault = "shows {2} on leaderboard {0} anew in phase {1}, which is on EvalAI already".format(*triple)
            yield BundleProblem(at.path, fault, "Add a new phase for it, or remove the row", quote, 60)
        else:
            yield from _check_declared(at, state, triple)
    for triple in sorted(stored.keys() - {*written}):
        quote = (
            f"ERROR: Challenge phase split {_ROW.format(*triple)} not found in config. Deletion of existing challenge "
            f"phase split {_NOT_ALLOWED}"
        )
        fault = "lacks leaderboard {}, phase {}, split {}, which is on EvalAI already".format(*triple)
        remedy = "Put it back: what was pushed can be changed, not deleted"
        yield BundleProblem(ROWS, fault, remedy, quote, 62)


def _check_settings(entry: Entry, ids: list[Any], stored: list[Any]) -> BundleProblems:
    """Yield what differs from the approved row; the server compares `int` and `bool` of the values."""
    if None in stored:
        return
    values = [entry.item[key] for key in SPLIT_SETTINGS]
    try:
        settings = [int(values[0]), int(values[1]), bool(values[2])]
    except (TypeError, ValueError, OverflowError):
        invalid = [key for key in SPLIT_SETTINGS[:2] if validate(key, entry.item[key], MAPPING[key])]
        at = entry.below((invalid or [SPLIT_SETTINGS[0]])[0])
        yield crash(at.path, f"is {at.value!r:.60}", "Write a number", 63)
        return
    if settings != stored:
        quote = f"ERROR: Challenge phase split {_ROW.format(*ids)} {_APPROVED} visibility / ordering fields {_SUPPORT}"
        yield _differs(entry.path, "leaderboard {}, phase {}, split {}".format(*ids), quote, 63)


def _check_declared(entry: Entry, state: ServerState, triple: tuple[int | None, ...]) -> BundleProblems:
    """Yield the ids in a row of a new phase that neither the config nor the challenge has."""
    for index, key, stored, what, rule in (
        (0, "leaderboard_id", state.leaderboards, "Leaderboard", "may only use leaderboards"),
        (2, "dataset_split_id", state.splits, "Dataset split", "must use dataset splits"),
    ):
        if triple[index] in stored or triple[index] in map(to_integer, find_accepted_ids(entry.bundle, key)):
            continue
        quote = (
            f"ERROR: {what} id {triple[index]} is not part of this challenge or the uploaded configuration. "
            f"New challenge phases {rule} declared in the configuration."
        )
        fault = f"names {key} {triple[index]}, which is not in {REFERENCES[key][0]}"
        yield BundleProblem(entry.path, fault, "Correct the id", quote, 61)


#: What an update tests more, by block.
UPDATES: dict[str, Callable[[Bundle, ServerState], BundleProblems]] = {
    "challenge": _check_challenge_update,
    "leaderboard": _check_leaderboards_update,
    "challenge_phases": _check_phases_update,
    "dataset_splits": _check_splits_update,
    ROWS: _check_mappings_update,
}


def order_of_update(problem: BundleProblem) -> tuple[int, int, bool]:
    """Sort within a block: the server tests updates item by item, and what is lost last."""
    item = re.match(r"\w+\[(\d+)\]", problem.subject)
    if not item:
        return (2 if problem.accepted or problem.rule in _LOST else 0, 0, False)
    return (0 if problem.rule in _NAMES_OF_SPLITS else 1, int(item[1]), problem.rule not in _STORED_ROWS)
