"""What a second push may not change: beside each block, what the server holds of it."""

from __future__ import annotations

import json
from typing import Any

from segjudge.bundle.field_values import flag, judged, whole
from segjudge.bundle.fields import MAPPING
from segjudge.bundle.opened_bundle import Bundle
from segjudge.bundle.problems import BundleProblem, BundleProblems, Detail, crash, items
from segjudge.bundle.server_state import SHOWN, State

from .blocks import dataset_split, entries, leaderboard, passed
from .creation import CREATION, UNSAVED
from .mappings import POINTERS, counted, known_ids

#: Rules of what is gone from a block, which the server compares after it; of the names of splits, which it reads
#: before the rest of them; and of rows that it compares with its own before it looks at their ids.
LOST, SPLIT_NAMES, HELD_ROWS = (32, 46, 53, 62), (48, 49, 50), (60, 61, 63)
_ROW = "(leaderboard_id: {}, challenge_phase_id: {}, dataset_split_id: {})"
_APPROVED = "cannot be changed after the challenge is approved by an admin. Revert"
_SUPPORT = "to match the approved configuration or contact support."


def updates_of_challenge(bundle: Bundle, state: State) -> BundleProblems:
    """The kind of queue is decided once; a validation does not look."""
    told = flag(bundle.config.get("use_fifo_sqs", state.fifo))
    if state.fifo is None or told is None or told == state.fifo:
        return
    words = "use_fifo_sqs cannot be changed after the challenge queue has been created."
    detail = Detail("use_fifo_sqs", words, "invalid")
    quote, found = UNSAVED.format("challenge :{errors}"), f"is {told}, and was {state.fifo}"
    yield BundleProblem("use_fifo_sqs", found, "Put it back", quote, rule=CREATION, detail=detail)


def updates_of_leaderboards(bundle: Bundle, state: State) -> BundleProblems:
    """Schemas, once the challenge is approved; and that each is still there."""
    yield from _uncounted(bundle, state, "leaderboard", 33)
    for where, board in entries(bundle, "leaderboard"):
        number = whole(board.get("id"))
        if not state.approved or number not in state.leaderboards or not passed(list(leaderboard(where, board))):
            continue
        if _stable(board["schema"]) != _stable(state.leaderboards[number]):
            quote = f"ERROR: Leaderboard {board['id']} {_APPROVED} the leaderboard block {_SUPPORT}"
            yield _changed(f"{where}.schema", f"of id {number}", quote, 33)
    quote = (
        "ERROR: The leaderboard with ID: {} not found in config. Deletion of an existing leaderboard after "
        "challenge creation is not allowed."
    )
    held = {number: f"id {number}" for number in state.leaderboards}
    yield from _gone(bundle, "leaderboard", held, quote, 32)


def _uncounted(bundle: Bundle, state: State, block: str, rule: int) -> BundleProblems:
    """Of an approved challenge the server makes numbers of the ids itself, and is less lenient than its serializers."""
    held, judge = (state.leaderboards, leaderboard) if block == "leaderboard" else (state.splits, dataset_split)
    if not state.approved or not held:
        return
    for where, item in entries(bundle, block):
        if "id" in item and counted(item["id"]) is None and passed(list(judge(where, item))):
            yield crash(f"{where}.id", f"is {item['id']!r:.60}, not a whole number", "Number it from 1", rule)


def updates_of_phases(bundle: Bundle, state: State) -> BundleProblems:
    """Each is still there."""
    quote = (
        "ERROR: Challenge phase {} not found in config. Deletion of existing challenge phase after "
        "challenge creation is not allowed."
    )
    if bundle.config.get("challenge_phases"):
        held = {number: f"id {number} ({codename})" for number, codename in state.phases.items()}
        yield from _gone(bundle, "challenge_phases", held, quote, 46)


def updates_of_splits(bundle: Bundle, state: State) -> BundleProblems:
    """Names, once the challenge is approved; and that each is still there."""
    yield from _uncounted(bundle, state, "dataset_splits", 54)
    for where, split in entries(bundle, "dataset_splits"):
        number = whole(split.get("id"))
        if not state.approved or number not in state.splits or not passed(list(dataset_split(where, split))):
            continue
        if [split.get("name"), split.get("codename")] != state.splits[number]:
            quote = f"ERROR: Dataset split {split['id']} {_APPROVED} the dataset split block {_SUPPORT}"
            yield _changed(where, f"id {number}", quote, 54)
    quote = (
        "ERROR: Dataset split {} not found in config. Deletion of existing dataset split after challenge "
        "creation is not allowed."
    )
    held = {number: f"id {number} ({names[1]})" for number, names in state.splits.items()}
    yield from _gone(bundle, "dataset_splits", held, quote, 53)


def _gone(bundle: Bundle, block: str, held: dict[int, str], quote: str, rule: int) -> BundleProblems:
    pointer = next(key for key, (name, _) in POINTERS.items() if name == block)
    known, told = known_ids(bundle)[pointer], [item.get("id") for item in items(bundle.config, block)]
    for number in sorted(held):
        if number in known:
            continue
        quoted = str(number) in told
        found = f"lacks {held[number]}, which is on EvalAI already" + (": in quotes it is another" if quoted else "")
        remedy = "Remove the quotes" if quoted else "Put it back: what was pushed can be changed, not deleted"
        yield BundleProblem(block, found, remedy, quote.format(number), rule=rule, follows=number in told)


def _stable(schema: Any) -> str:
    return json.dumps(schema, sort_keys=True, default=str)


def _changed(where: str, what: str, quote: str, rule: int) -> BundleProblem:
    return BundleProblem(
        where, f"{what} differs from what was approved", "Put back what was approved", quote, rule=rule
    )


def updates_of_mappings(bundle: Bundle, state: State) -> BundleProblems:
    """No new row for a phase that is there already, no row less, and none that differs once it was approved."""
    held = {tuple(row[:3]): row[3:] for row in state.rows}
    if not held or not bundle.config.get("challenge_phase_splits"):
        return  # new, or told by `mappings`
    told: list[tuple[int | None, ...]] = []
    for where, row in entries(bundle, "challenge_phase_splits"):
        if any(key not in row for key in (*POINTERS, *SHOWN)):
            continue
        triple = tuple(counted(row[key]) for key in POINTERS)
        if triple in held:
            told.append(triple)
            yield from _frozen(where, row, held[triple], approved=state.approved)
        elif triple[1] in state.phases:
            quote = (
                "ERROR: Cannot add a new leaderboard/dataset-split mapping for an existing challenge phase "
                f"{_ROW.format(*(row[key] for key in POINTERS))}. New mappings are only allowed for newly added "
                "challenge phases."
            )
            found = (
                f"shows {triple[2]} on leaderboard {triple[0]} anew in phase {triple[1]}, which is on EvalAI already"
            )
            yield BundleProblem(where, found, "Add a new phase for it, or remove the row", quote, rule=60)
        else:
            yield from _declared(bundle, state, where, triple)
    for triple in sorted(held.keys() - {*told}):
        quote = (
            f"ERROR: Challenge phase split {_ROW.format(*triple)} not found in config. Deletion of existing challenge "
            "phase split after challenge creation is not allowed."
        )
        found = "lacks leaderboard {}, phase {}, split {}, which is on EvalAI already".format(*triple)
        remedy = "Put it back: what was pushed can be changed, not deleted"
        yield BundleProblem("challenge_phase_splits", found, remedy, quote, rule=62)


def _frozen(where: str, row: dict[str, Any], held: list[Any], *, approved: bool) -> BundleProblems:
    """The server compares numbers as Python makes them, and takes any text for a True."""
    if not approved or None in held:
        return
    try:
        now = [int(row[SHOWN[0]]), int(row[SHOWN[1]]), bool(row[SHOWN[2]])]
    except (TypeError, ValueError, OverflowError):
        wrong = [key for key in SHOWN[:2] if judged(key, row[key], MAPPING[key])]
        key = (wrong or [SHOWN[0]])[0]
        yield crash(f"{where}.{key}", f"is {row[key]!r:.60}", "Write a number", 63)
        return
    if now != held:
        triple = _ROW.format(*(row[key] for key in POINTERS))
        quote = f"ERROR: Challenge phase split {triple} {_APPROVED} visibility / ordering fields {_SUPPORT}"
        yield _changed(where, "leaderboard {}, phase {}, split {}".format(*(row[key] for key in POINTERS)), quote, 63)


def _declared(bundle: Bundle, state: State, where: str, triple: tuple[int | None, ...]) -> BundleProblems:
    """A new phase may only point at what the config or the challenge has."""
    known = known_ids(bundle)
    for place, key, held, (what, which) in (
        (0, "leaderboard_id", state.leaderboards, _BOARDS),
        (2, "dataset_split_id", state.splits, _SPLITS),
    ):
        if triple[place] in held or triple[place] in map(counted, known[key]):
            continue
        quote = (
            f"ERROR: {what} id {triple[place]} is not part of this challenge or the uploaded configuration. "
            f"New challenge phases {which}."
        )
        found = f"names {key} {triple[place]}, which is not in {POINTERS[key][0]}"
        yield BundleProblem(where, found, "Correct the id", quote, rule=61)


_BOARDS = ("Leaderboard", "may only use leaderboards declared in the configuration")
_SPLITS = ("Dataset split", "must use dataset splits declared in the configuration")
