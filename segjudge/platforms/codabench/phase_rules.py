"""What Codabench refuses in phases and leaderboards, and what it takes that goes wrong there."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from dateutil import parser  # type: ignore[import-untyped]

from segjudge.platforms.evalai.bundle.problems import BundleProblems

from .opened_competition import OpenedCompetition, crashed, data_problems, listed, not_a_path, refused
from .serializer_fields import CHOICE, FLAG, INTEGER, LIST, NATURAL, TEXT, SerializerField, field_problems, whole

PHASE_FILES = ("public_data", "starting_kit")
PHASE = {
    "name": SerializerField(TEXT, 31, 256, required=True),
    "description": SerializerField(TEXT, 31, null=True, blank=True),
    "execution_time_limit": SerializerField(NATURAL, 41),
    "max_submissions_per_day": SerializerField(NATURAL, 40, null=True),
    "max_submissions": SerializerField(NATURAL, 40, null=True),
    "auto_migrate_to_this_phase": SerializerField(FLAG, 42),
    **dict.fromkeys(("hide_output", "hide_prediction_output", "hide_score_output"), SerializerField(FLAG, 42)),
}
RULES = ("Add", "Add_And_Delete", "Add_And_Delete_Multiple", "Force_Last", "Force_Latest_Multiple", "Force_Best")
BOARD = {
    "primary_index": SerializerField(NATURAL, 53),
    "title": SerializerField(TEXT, 46, 64, required=True),
    "key": SerializerField(TEXT, 46, 36, required=True),
    "columns": SerializerField(LIST, 48, required=True),
    "hidden": SerializerField(FLAG, 46),
    "submission_rule": SerializerField(CHOICE, 47, choices=RULES),
}
COLUMN = {
    "computation": SerializerField(CHOICE, 52, null=True, blank=True, choices=("avg", "sum", "min", "max")),
    "title": SerializerField(TEXT, 48, 36, required=True),
    "key": SerializerField(TEXT, 48, 36, required=True),
    "sorting": SerializerField(CHOICE, 50, choices=("desc", "asc")),
    "index": SerializerField(NATURAL, 48, required=True),
    "hidden": SerializerField(FLAG, 48),
    "precision": SerializerField(INTEGER, 51),
}
_Moments = list[datetime.datetime | None]
_COMPARED = "'<' not supported between instances of 'NoneType' and 'datetime.datetime'"


def ordered_phases(bundle: OpenedCompetition) -> list[tuple[str, dict[Any, Any]]]:
    """Return the phases by their index, as the unpacker sorts them; as written where that fails."""
    found = bundle.mappings("phases")
    try:
        return sorted(found, key=lambda entry: entry[1].get("index", 0))
    except TypeError:
        return found


def moment(value: object) -> datetime.datetime | None:
    """Return a date as the unpacker understands it; raises what it raises."""
    if not value:
        return None
    if isinstance(value, datetime.date):  # a date with a time is one too, so that the time is lost
        return datetime.datetime.combine(value, datetime.time())
    found: datetime.datetime = parser.parse(value)
    return found.replace(tzinfo=None)


def phases(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what the unpacker refuses in phases."""
    if "phases" not in bundle.config:
        quote = "Unable to find any phases for this competition"
        yield refused(30, "phases", "is missing", "Add one phase at least", quote)
        return
    if bundle.config["phases"] in ([], {}, ""):
        yield crashed(30, "phases", "is empty", "Add one phase at least", "list index out of range")
        return
    yield from listed(30, bundle, "phases", "get")
    try:
        sorted(bundle.mappings("phases"), key=lambda entry: entry[1].get("index", 0))
    except TypeError as error:
        remedy = "Write whole numbers everywhere, or leave them out"
        yield crashed(30, "phases[0].index", "the phases' indexes cannot be compared", remedy, str(error))
    dates: dict[str, _Moments] = {"start": [], "end": []}
    for where, phase in ordered_phases(bundle):
        for key, moments in dates.items():
            try:
                moments.append(moment(phase.get(key)))
            except (ValueError, OverflowError, TypeError) as error:
                found = f"is {phase[key]!r:.60}, which is no date"
                remedy = "Write it as '2026-01-31 12:00:00', in quotes"
                yield crashed(35, f"{where}.{key}", found, remedy, str(error))
        if "tasks" not in phase:
            quote = "Phases must contain at least one task to be valid"
            yield refused(31, f"{where}.tasks", "is missing", "List the indexes of tasks", quote)
        for key in [key for key in PHASE_FILES if key in phase and not isinstance(phase[key], str)]:
            yield not_a_path(44, f"{where}.{key}", phase[key])
    if all(len(moments) == len(bundle.mappings("phases")) for moments in dates.values()):
        yield from _order(bundle, dates["start"], dates["end"])


def _order(bundle: OpenedCompetition, starts: _Moments, ends: _Moments) -> BundleProblems:
    found = ordered_phases(bundle)
    for (where, _), start in zip(found, starts, strict=True):
        if start is None:
            yield crashed(31, f"{where}.start", "is missing", "Say when the phase starts, in UTC", _COMPARED)
    for ((first, before), (second, after)), end, start in zip(pairwise(found), ends, starts[1:], strict=False):
        name, next_name = before.get("name"), after.get("name")
        if end is None:
            quote = f"Phase: {name} must have an end time because it has a phase after it."
            missing = "is missing, and another phase follows"
            yield refused(36, f"{first}.end", missing, "Say when it ends, in UTC", quote)
        elif start is not None and start < end:
            quote = f"Phases must be sequential. Phase: {next_name}starts before Phase: {name} has ended"
            found_text = f"starts at {start}, and {name} ends at {end}"
            remedy = "Let phases follow each other, or make two competitions"
            yield refused(37, f"{second}.start", found_text, remedy, quote)
        elif start == end:
            quote = f"Phases dates conflict. Phase: {next_name} should start after Phase: {name} has ended"
            yield refused(38, f"{second}.start", f"is when {name} ends", "Let it start a second later", quote)


def leaderboards(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what the unpacker and the serializer refuse in leaderboards."""
    if "leaderboards" not in bundle.config:
        quote = "Could not find leaderboards in the competition yaml"
        yield refused(45, "leaderboards", "is missing", "Add one leaderboard", quote)
        return
    block = bundle.config["leaderboards"]
    if block in ([], {}, ""):
        yield crashed(45, "leaderboards", "is empty", "Add one leaderboard", "list index out of range")
    elif not isinstance(block, Iterable):
        text = f"'{type(block).__name__}' object is not iterable"
        yield crashed(45, "leaderboards", "is not a list", "Write a list: - title: …", text)
    elif not isinstance(block, list) or not all(isinstance(board, dict) for board in block):
        kind = next(type(board).__name__ for board in block if not isinstance(board, dict))
        words = f"non_field_errors: Invalid data. Expected a dictionary, but got {kind}.\n"
        yield refused(45, "leaderboards", "holds something else than mappings", "Write - title: …", words)
    for where, board in bundle.mappings("leaderboards"):
        yield from _board(where, board)


def _board(where: str, board: dict[Any, Any]) -> BundleProblems:
    for key, field in BOARD.items():
        if key == "columns" and isinstance(board.get(key), list):
            yield from _columns(f"{where}.columns", board[key])
        elif key == "columns" and board.get(key) is not None:
            quote = "columns: non_field_errors\n"
            yield refused(48, f"{where}.columns", "is not a list", "Write - title: …", quote)
        else:
            yield from field_problems(where, {key: field}, board)


def _columns(where: str, columns: list[Any]) -> BundleProblems:
    if not columns:
        words = "columns: Leaderboards require at least 1 column\n"
        yield refused(48, where, "is empty", "Add a column", words)
    if not all(isinstance(column, dict) for column in columns):
        kind = next(type(column).__name__ for column in columns if not isinstance(column, dict))
        words = f"columns: non_field_errors: Invalid data. Expected a dictionary, but got {kind}.\n\n"
        yield refused(48, where, "holds something else than mappings", "Write - title: …", words)
        return
    wrong = [problem for index, column in enumerate(columns) for problem in _computation(f"{where}[{index}]", column)]
    yield from wrong or _agreement(where, columns)


def _computation(where: str, column: dict[Any, Any]) -> BundleProblems:
    """Yield the problems of one column; what it is computed from is looked at when its fields are right."""
    problems = [*field_problems(where, COLUMN, column, "columns: ")]
    yield from problems
    if problems:
        return
    prefix, path = "columns: non_field_errors: ", f"{where}.computation_indexes"
    indexes = column.get("computation_indexes")
    if "computation_indexes" in column and indexes is not None and not isinstance(indexes, (list, str, dict)):
        text = f"'{type(indexes).__name__}' object is not iterable"
        yield crashed(52, path, "is not a list", "List the indexes of columns", text)
    elif isinstance(indexes, str) and not indexes.strip():
        words = "columns: computation_indexes: This field may not be blank.\n\n"
        yield refused(52, path, "is empty", "List the indexes of columns", words)
    elif "computation" in column and "computation_indexes" not in column:
        words = "Column with computation must have at least 1 column selected for the computation to act upon"
        yield refused(52, path, "is missing", "List the indexes of columns", f"{prefix}{words}\n\n")
    elif indexes and "computation" not in column:
        words = "Cannot add computation columns without a computation function set"
        yield refused(52, path, "has no computation", "Add computation: avg", f"{prefix}{words}\n\n")
    elif indexes and str(column["index"]) in [str(index) for index in indexes]:
        words = f"Column with index {column['index']} referencing itself. Cannot self-reference, must be other columns."
        yield refused(52, path, "names the column itself", "Name others", f"{prefix}{words}\n\n")


def _agreement(where: str, columns: list[dict[Any, Any]]) -> BundleProblems:
    """Yield what columns say that does not go together."""
    indexes = [whole(column["index"]) for column in columns]
    if len(set(indexes)) < len(indexes):
        yield refused(49, where, "two have one index", "Number them", "columns: Columns must have unique indexes!\n")
    keys = [str(column["key"]).strip() for column in columns]
    if len(set(keys)) < len(keys):
        yield refused(49, where, "two have one key", "Rename one", "columns: Columns must have unique keys!\n")
    for number, column in enumerate(columns):
        named = column.get("computation_indexes")
        for index in ",".join(map(str, named)).split(",") if named else []:
            path, remedy = f"{where}[{number}].computation_indexes", "Name the indexes of columns"
            if not re.fullmatch(r"\s*[-+]?\d+\s*", index):
                words = f"Bad value for index, should be an integer but received: {index}."
                yield refused(52, path, f"{index!r} is no number", remedy, f"columns: {words}\n")
            elif int(index) not in indexes:
                words = f"Column index {index} does not exist in available indexes {indexes}"
                yield refused(52, path, f"there is no column {index}", remedy, f"columns: {words}\n")


def saved_phases(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what is wrong with phases once tasks and leaderboards are saved."""
    known = {
        task.get("index"): 0 for _, task in bundle.mappings("tasks") if not isinstance(task.get("index"), (list, dict))
    }
    for where, phase in ordered_phases(bundle):
        wanted = phase.get("tasks", [])
        if not isinstance(wanted, (list, str, dict)):
            text = f"'{type(wanted).__name__}' object is not iterable"
            yield crashed(32, f"{where}.tasks", "is not a list", "Write a list: [0]", text)
            wanted = []
        for index in wanted:
            if isinstance(index, (list, dict)) or index not in known:
                found = f"{index!r} is no task's index: {', '.join(map(repr, known))}"
                text = f"unhashable type: '{type(index).__name__}'" if isinstance(index, (list, dict)) else repr(index)
                yield crashed(32, f"{where}.tasks", found, "Write it as the task does", text)
        yield from data_problems(bundle, 44, where, phase, PHASE_FILES)


def phase_fields(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what the serializer refuses in phases."""
    found = ordered_phases(bundle)
    for where, phase in found:
        given = {"name": None, "description": None, **phase}
        if not given.get("execution_time_limit"):
            given.pop("execution_time_limit", None)  # the default is taken
        for problem in field_problems(where, PHASE, given, "phases: "):
            # The unpacker has another name for that key in the serializer.
            quote = problem.quote.replace("phases: max_submissions:", "phases: max_submissions_per_person:")
            yield replace(problem, quote=quote)
    if found and str(found[0][1].get("auto_migrate_to_this_phase")).lower() in ("true", "yes", "on", "1", "t", "y"):
        words = "in a competition with one phase" if len(found) == 1 else "to the first phase of a competition"
        path, quote = f"{found[0][0]}.auto_migrate_to_this_phase", f"phases: You cannot auto migrate {words}\n"
        yield refused(42, path, "is set, and no phase comes before", "Remove it", quote)
