"""`segjudge check --platform codabench`: all reasons why Codabench refuses a bundle, or why it goes wrong later.

The rules are rows in the unpacker's order: it reads everything, then saves one thing after the other.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from segjudge.platforms.evalai.bundle.fields import as_integer
from segjudge.platforms.evalai.bundle.opened_bundle import BundleRefusedError
from segjudge.platforms.evalai.bundle.problems import BundleProblem, BundleProblems
from segjudge.platforms.evalai.bundle.rule_rows import (
    WARNS,
    Check,
    Entry,
    RuleRow,
    Verdict,
    all_of,
    check_each,
    entries,
    first_of,
    is_absent,
    is_repeated,
)
from segjudge.system.errors import UsageError

from . import serializer_fields as fields
from .opened_competition import (
    CONFIG,
    ERROR_LOG,
    OpenedCompetition,
    can_be_path,
    crash,
    open_competition,
    refusal,
)
from .pitfalls import check_pitfalls, parse_moment

_At = Entry[OpenedCompetition]
#: The versions that CodaLab's bundles have, which are read in another way.
_OLD_VERSIONS = ("1", "1.5")
_QUESTION_KEYS = {"key", "type", "title", "selection", "is_required", "is_on_leaderboard"}
#: By Pillow's names; MPO is a JPEG of several pictures.
_PICTURES = ("jpeg", "mpo", "png", "gif", "webp")
#: The longest title with which the renamed bundle fits into the database, for a user of one character.
_LONGEST_TITLE = 230
#: Python's texts, behind which Codabench says nothing else.
_NOT_ITERABLE = ERROR_LOG + "'{kind}' object is not iterable"
_NO_UUID = ERROR_LOG + "['“{value}” is not a valid UUID.']"
_COMPARED = "'<' not supported between instances of 'NoneType' and 'datetime.datetime'"
_FIRST_MISSING = ERROR_LOG + "list index out of range"
_TRUE = ("true", "yes", "on", "1", "t", "y")


def check(path: str) -> list[BundleProblem]:
    """Find the problems of a bundle, a zip or a folder, in the order in which Codabench would come to them.

    Raises `UsageError` for one of CodaLab's, which is read by rules that are not known here.
    """
    try:
        with open_competition(path) as bundle:
            problems = [*_check_version(bundle, path), *_RULES(Entry(bundle, "", bundle.config))]
            return [bundle.locate(problem) for problem in [*problems, *check_pitfalls(bundle, path)]]
    except BundleRefusedError as error:
        return [replace(error.problem, location=error.problem.location or path)]


def _check_version(bundle: OpenedCompetition, path: str) -> BundleProblems:
    version = str(bundle.config.get("version", "1"))
    if version in _OLD_VERSIONS and "html" not in bundle.config:
        fault = f"is {version if 'version' in bundle.config else 'missing'}, so that Codabench reads it as CodaLab's"
        quote = "HTML pages could not be found in the yaml file"
        yield refusal(4, "version", fault, "Write version: 2", quote)
    elif version in _OLD_VERSIONS:
        fault = f"is a bundle of CodaLab's ({CONFIG} has no version: 2), which Codabench reads by other rules"
        raise UsageError(f"{path}: {fault}; nothing can be said of it here. Write it anew for version 2")
    elif version != "2":
        quote = "A suitable version could not be found for this competition. Make sure one is supplied in the yaml."
        yield refusal(4, "version", f"is {version}", "Write version: 2", quote)


# ── rules that several blocks have ──────────────────────────────────────────────────────────────────────────────────


def _is_written(at: _At) -> Verdict:
    return at.is_written


def _is_no_list(at: _At) -> Verdict:
    return not isinstance(at.value, Iterable)


def _is_empty(at: _At) -> Verdict:
    return at.value in ([], {}, "")


def _is_written_otherwise(at: _At) -> Verdict:
    return at.is_written and not isinstance(at.value, str)


def _is_on_site(at: _At) -> bool:
    return "key" in at.item


def _list_rules(rule: int, key: str) -> Check:
    """The rules that a block is a list of mappings; of phases the unpacker calls a method."""

    def find_text(at: _At) -> Verdict:
        odd_items = [item for item in at.value if not isinstance(at.value, list) or not isinstance(item, dict)]
        if not odd_items:
            return None
        kind = type(odd_items[0]).__name__
        text = {
            "str": "string indices must be integers, not 'str'",
            "list": "list indices must be integers or slices, not str",
        }.get(kind, f"'{kind}' object is not subscriptable")
        return {"text": f"'{kind}' object has no attribute 'get'" if key == "phases" else text}

    remedy = "Write a list: - key: value"
    return first_of(
        RuleRow(rule, key, _is_no_list, "is not a list", remedy, _NOT_ITERABLE),
        RuleRow(rule, key, find_text, "is not a list of mappings", remedy, ERROR_LOG + "{text}"),
    )


def _path_rule(rule: int, key: str) -> RuleRow:
    return RuleRow(rule, key, _is_written_otherwise, "is {value!r:.60}, not the path of a file",
        "Write a path, or leave the key out",
        ERROR_LOG + "join() argument must be str, bytes, or os.PathLike object, not '{kind}'")  # fmt: skip


def _file_rules(rule: int, key: str, kind: str = "file", title: str = "page") -> Check:
    """The rules that a path leads to a file."""

    def name_folder(at: _At) -> Verdict:
        return not os.path.isfile(at.bundle.path(at.value)) and {"named": at.value or "an empty path"}

    return first_of(
        _path_rule(rule, key),
        RuleRow(rule, key, lambda at: not os.path.exists(at.bundle.path(at.value)), "{value} is not in the bundle",
            "Put it there, or correct the path", f"Unable to find {title}: {{value}}"),
        RuleRow(rule, key, name_folder, "{named} is a folder",
            f"Name a {kind}", ERROR_LOG + "[Errno 21] Is a directory: '<temporary folder>/{value}'"),
    )  # fmt: skip


def _text_rules(rule: int, key: str, empty: str) -> Check:
    """The rules that a path leads to a text."""

    def fail_to_read(at: _At) -> Verdict:
        try:
            Path(at.bundle.path(at.value)).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            return {"fault": "is not UTF-8", "remedy": "Save it as UTF-8", "text": str(error)}
        except OSError as error:
            text = f"[Errno {error.errno}] {error.strerror}: '<temporary folder>/{at.value}'"
            return {"fault": f"cannot be read ({error.strerror})", "remedy": "Make it readable", "text": text}
        return None

    return first_of(
        _file_rules(rule, key),
        RuleRow(rule, key, fail_to_read, "{value} {fault}", "{remedy}", ERROR_LOG + "{text}"),
        RuleRow(rule, key, lambda at: not os.path.getsize(at.bundle.path(at.value)), "{value} is empty",
            "Write something", empty),
    )  # fmt: skip


def _nul_rule(rule: int, key: str, quote: str) -> RuleRow:
    """The rule that a text has no character which the serializer refuses."""

    def find_nul(at: _At) -> Verdict:
        path = at.bundle.path(at.value) if isinstance(at.value, str) else ""
        try:
            text = Path(path).read_bytes() if os.path.isfile(path) else b""
        except OSError:  # said already
            return None
        return {"line": text[: text.index(0)].count(10) + 1} if b"\0" in text else None

    return RuleRow(rule, key, find_nul, "{value} holds a NUL character, in line {line}", "Remove it", quote)


def _is_uuid(text: str) -> bool:
    """Texts of other forms are no key of anything on the site."""
    try:
        return bool(uuid.UUID(text))
    except ValueError:
        return False


def _data_rules(rule: int, key: str) -> Check:
    """The rules that a data set is found: as a file or, as far as can be known here, on the site."""

    def is_root(at: _At) -> Verdict:
        is_path = isinstance(at.value, str) and can_be_path(at.value)
        return is_path and os.path.realpath(at.bundle.path(at.value)) == os.sep

    def is_lost(at: _At) -> bool:
        return isinstance(at.value, str) and not os.path.exists(at.bundle.path(at.value))

    kind = "solution" if key == "path" else key
    return first_of(
        RuleRow(rule, key, is_root, "{value} is the root of the site's own machine, which it would zip as a whole",
            "Name a finished zip in the bundle", ERROR_LOG),
        RuleRow(rule, key, lambda at: is_lost(at) and _is_uuid(at.value),
            f"is the key of a {kind} on the site, which cannot be looked up here", "See that it exists there", WARNS),
        RuleRow(rule, key, is_lost, "{value} is not in the bundle", "Build it, or correct the path",
            'Cannot find dataset: "{value}"'),
    )  # fmt: skip


#: The rules of the key of a task or a solution that is on the site already.
_SITE_KEY = first_of(
    RuleRow(21, "key", _is_written_otherwise, "is {value!r:.60}", "Write the key of a task on the site, as a text",
        ERROR_LOG + "'{kind}' object is not subscriptable"),
    RuleRow(21, "key", lambda at: at.is_written and not _is_uuid(at.value), "{value} is no UUID",
        "Copy the key of a task from the site, or leave the key out", _NO_UUID),
    RuleRow(21, "key", _is_written, "is the key of something on the site, which cannot be looked up here",
        "See that it exists", WARNS),
)  # fmt: skip


def _field_rules(table: dict[str, fields.SerializerField], prefix: str = "", **defaults: object) -> Check:
    """The rules of a serializer; `prefix` is what it puts before a field's name."""
    return lambda at: fields.check_fields(at.path, table, {**defaults, **at.item}, prefix)


# ── pages, terms and queue ──────────────────────────────────────────────────────────────────────────────────────────

_PAGES = all_of(
    _list_rules(13, "pages"),
    check_each("pages", first_of(
        RuleRow(13, "file", is_absent, "is missing", "Name a file", ERROR_LOG + "'file'"),
        _text_rules(13, "file", "Page '{value}' is empty, it must contain content."),
    )),
)  # fmt: skip
_TERMS_PICTURE_AND_QUEUE = all_of(
    first_of(
        RuleRow(12, "terms", is_absent, "is missing", "Name a text file",
            "A file containing the terms of this competition has not been supplied in the required location"),
        _text_rules(12, "terms", "{value} is empty, it must contain content."),
    ),
    first_of(
        RuleRow(10, "image", is_absent, "is missing", "Name a picture",
            "An image for this competition could not be found in the yaml"),
        _file_rules(10, "image", "picture", "image"),
    ),
    first_of(
        RuleRow(15, "queue", lambda at: not _is_uuid(str(at.value)),
            "{value!r:.60} is not the UUID of a queue", "Copy the vhost from the page of queues", _NO_UUID),
        RuleRow(15, "queue", _is_written, "is on the site and cannot be looked up here",
            "See that it is there, and yours to use", WARNS),
        unless=lambda at: not at.item.get("queue"),
    ),
)  # fmt: skip


# ── tasks and solutions ─────────────────────────────────────────────────────────────────────────────────────────────


def _lacks_key(at: _At) -> Verdict:
    return None if at.is_written else {"title": at.item.get("name") or at.item.get("key")}


def _lacks_program(at: _At) -> Verdict:
    is_lacking = at.key == "scoring_program" and not at.is_written
    return {"title": at.item.get("name") or at.item["index"]} if is_lacking else None


def _task_path_rules(key: str) -> Check:
    return first_of(
        _path_rule(24, key),
        RuleRow(23, key, _lacks_program, "is missing", "Name the zip of the scoring program",
            'ERROR: Task "{title}" does not have a scoring program'),
        unless=_is_on_site,
    )  # fmt: skip


_TASKS = first_of(
    RuleRow(20, "tasks", is_absent, "is missing", "Add one task at least", "No tasks listed in this competition"),
    all_of(_list_rules(20, "tasks"), check_each("tasks", first_of(
        RuleRow(21, "index", _lacks_key, "is missing", "Number the tasks", "ERROR: No index for task: {title}"),
        RuleRow(21, "index", lambda at: isinstance(at.value, (list, dict)), "is not a number", "Number the tasks",
            ERROR_LOG + "unhashable type: '{kind}'"),
        all_of(
            RuleRow(21, "index", is_repeated, "{value} is another task's too", "Number the tasks",
                "ERROR: Duplicate task indexes. Index: {value}"),
            *map(_task_path_rules, fields.TASK_FILES),
        ),
    ))),
)  # fmt: skip
_SAVED_TASKS = check_each("tasks", first_of(
    _SITE_KEY,
    all_of(
        *(_data_rules(24, key) for key in fields.TASK_FILES),
        _field_rules(fields.TASK, name=None, description=None),
    ),
))  # fmt: skip


def _names_lost_task(at: _At) -> Verdict:
    indexes = [task.item.get("index") for task in entries(at.bundle, "tasks")]
    return {"site_key": at.item.get("key")} if any(index not in indexes for index in at.value) else None


_NO_TASK, _INDEXES = "names a task that there is not", "Write indexes of tasks"
_SEE_DOCS = "See the documentation of bundles"
_SOLUTIONS = first_of(
    all_of(_list_rules(24, "solutions"), check_each("solutions", first_of(
        RuleRow(24, "index", _lacks_key, "is missing", _SEE_DOCS, "ERROR: No index for solution: {title}"),
        RuleRow(24, "tasks", _lacks_key, "is missing", _SEE_DOCS, "Could not find tasks for solution: {title}"),
        RuleRow(24, "tasks", lambda at: not isinstance(at.value, (list, str, dict)), "is not a list",
            "Write the indexes of tasks as a list", _NOT_ITERABLE),
        RuleRow(24, "tasks", lambda at: _is_on_site(at) and _names_lost_task(at), _NO_TASK, _INDEXES,
            "ERROR: Solution: {site_key} missing task index pointers"),
        RuleRow(24, "tasks", _names_lost_task, _NO_TASK, _INDEXES, ERROR_LOG + "'key'"),
        first_of(
            RuleRow(24, "path", is_absent, "is missing", "Name a zip", 'Solution {name} missing "path"'),
            _path_rule(24, "path"),
            unless=_is_on_site,
        ),
    ))),
    unless=lambda at: not at.item.get("solutions"),
)  # fmt: skip


def _check_solution_fields(at: _At) -> BundleProblems:
    values = {key: value for key, value in at.item.items() if key != "name" or value}
    return fields.check_fields(at.path, fields.SOLUTION, values)


_SAVED_SOLUTIONS = check_each("solutions", first_of(
    _SITE_KEY,
    first_of(
        all_of(_data_rules(24, "path"), _check_solution_fields),
        unless=lambda at: not isinstance(at.item.get("path"), str),
    ),
))  # fmt: skip


# ── phases ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_each_phase(check: Check) -> Check:
    """Make a check of a phase that of all, in the order in which the unpacker sorts them."""
    return lambda at: [
        problem
        for subject, phase in at.bundle.sort_phases()
        for problem in check(Entry(at.bundle, subject, phase))
    ]  # fmt: skip


def _cannot_be_sorted(at: _At) -> Verdict:
    try:
        sorted(at.bundle.mappings("phases"), key=lambda entry: entry[1].get("index", 0))
    except TypeError as error:
        return {"text": str(error)}
    return None


def _is_no_date(at: _At) -> Verdict:
    try:
        parse_moment(at.value)
    except (ValueError, OverflowError, TypeError) as error:
        return {"text": str(error)}
    return None


def _check_order(at: _At) -> BundleProblems:
    """Yield which phases do not follow each other; nothing where a date is none."""
    phases = [Entry(at.bundle, subject, phase) for subject, phase in at.bundle.sort_phases()]
    if any(_is_no_date(phase.below(key)) for phase in phases for key in ("start", "end")):
        return
    starts, ends = ([parse_moment(phase.item.get(key)) for phase in phases] for key in ("start", "end"))
    for phase, start in zip(phases, starts, strict=True):
        if start is None:
            yield crash(31, f"{phase.path}.start", "is missing", "Say when the phase starts, in UTC", _COMPARED)
    for (phase, after), end, start in zip(pairwise(phases), ends, starts[1:], strict=False):
        name, next_name = phase.item.get("name"), after.item.get("name")
        if end is None:
            quote = f"Phase: {name} must have an end time because it has a phase after it."
            fault = "is missing, and another phase follows"
            yield refusal(36, f"{phase.path}.end", fault, "Say when it ends, in UTC", quote)
        elif start is not None and start < end:
            quote = f"Phases must be sequential. Phase: {next_name}starts before Phase: {name} has ended"
            fault = f"starts at {start}, and {name} ends at {end}"
            remedy = "Let phases follow each other, or make two competitions"
            yield refusal(37, f"{after.path}.start", fault, remedy, quote)
        elif start == end:
            quote = f"Phases dates conflict. Phase: {next_name} should start after Phase: {name} has ended"
            yield refusal(38, f"{after.path}.start", f"is when {name} ends", "Let it start a second later", quote)


_UNSORTED = RuleRow(30, "index", _cannot_be_sorted, "the phases' indexes cannot be compared",
    "Write whole numbers everywhere, or leave them out", ERROR_LOG + "{text}")  # fmt: skip
_ADD_PHASE = "Add one phase at least"
_PHASES = first_of(
    RuleRow(30, "phases", is_absent, "is missing", _ADD_PHASE, "Unable to find any phases for this competition"),
    RuleRow(30, "phases", _is_empty, "is empty", _ADD_PHASE, _FIRST_MISSING),
    all_of(
        _list_rules(30, "phases"),
        lambda at: _UNSORTED(replace(at, path="phases[0]")),
        _check_each_phase(all_of(
            *(
                RuleRow(35, key, _is_no_date, "is {value!r:.60}, which is no date",
                    "Write it as '2026-01-31 12:00:00', in quotes", ERROR_LOG + "{text}")
                for key in ("start", "end")
            ),
            RuleRow(31, "tasks", is_absent, "is missing", "List the indexes of tasks",
                "Phases must contain at least one task to be valid"),
            *(_path_rule(44, key) for key in fields.PHASE_FILES),
        )),
        _check_order,
    ),
)  # fmt: skip


def _check_phase_tasks(at: _At) -> BundleProblems:
    tasks, path = at.item.get("tasks", []), f"{at.path}.tasks"
    if not isinstance(tasks, (list, str, dict)):
        text = f"'{type(tasks).__name__}' object is not iterable"
        yield crash(32, path, "is not a list", "Write a list: [0]", text)
        return
    indexes = {
        task.item.get("index"): 0
        for task in entries(at.bundle, "tasks")
        if not isinstance(task.item.get("index"), (list, dict))
    }
    for index in tasks:
        if isinstance(index, (list, dict)) or index not in indexes:
            fault = f"{index!r} is no task's index: {', '.join(map(repr, indexes))}"
            text = f"unhashable type: '{type(index).__name__}'" if isinstance(index, (list, dict)) else repr(index)
            yield crash(32, path, fault, "Write it as the task does", text)


#: What is wrong with phases once tasks and leaderboards are saved.
_SAVED_PHASES = _check_each_phase(all_of(_check_phase_tasks, *(_data_rules(44, key) for key in fields.PHASE_FILES)))


def _check_fields_of_phase(at: _At) -> BundleProblems:
    values = {"name": None, "description": None, **at.item}
    if not values.get("execution_time_limit"):
        values.pop("execution_time_limit", None)  # the default is taken
    for problem in fields.check_fields(at.path, fields.PHASE, values, "phases: "):
        # The unpacker has another name for that key in the serializer.
        quote = problem.quote.replace("phases: max_submissions:", "phases: max_submissions_per_person:")
        yield replace(problem, quote=quote)


def _check_phase_fields(at: _At) -> BundleProblems:
    yield from _check_each_phase(_check_fields_of_phase)(at)
    phases = at.bundle.sort_phases()
    if phases and str(phases[0][1].get("auto_migrate_to_this_phase")).lower() in _TRUE:
        words = "in a competition with one phase" if len(phases) == 1 else "to the first phase of a competition"
        path, quote = f"{phases[0][0]}.auto_migrate_to_this_phase", f"phases: You cannot auto migrate {words}\n"
        yield refusal(42, path, "is set, and no phase comes before", "Remove it", quote)


# ── leaderboards ────────────────────────────────────────────────────────────────────────────────────────────────────


_NO_DICTIONARY = "non_field_errors: Invalid data. Expected a dictionary, but got {kind}.\n"


def _mappings_rule(rule: int, key: str, quote: str) -> RuleRow:
    """The rule that the serializer gets mappings."""

    def find_odd_item(at: _At) -> Verdict:
        odd_items = [item for item in at.value if not isinstance(item, dict)]
        return {"kind": type(odd_items[0]).__name__} if odd_items else None

    return RuleRow(rule, key, find_odd_item, "holds something else than mappings", "Write - title: …", quote)


#: What the serializer says of a column that does not go together with others.
_OF_COLUMN = "columns: non_field_errors: {}\n\n"


def _names_itself(at: _At) -> Verdict:
    is_named = at.value and str(at.item["index"]) in [str(index) for index in at.value]
    return {"index": at.item["index"]} if is_named else None


_COMPUTATION = first_of(
    RuleRow(52, "computation_indexes",
        lambda at: at.value is not None and not isinstance(at.value, (list, str, dict)), "is not a list",
        "List the indexes of columns", _NOT_ITERABLE),
    RuleRow(52, "computation_indexes", lambda at: isinstance(at.value, str) and not at.value.strip(), "is empty",
        "List the indexes of columns", "columns: computation_indexes: This field may not be blank.\n\n"),
    RuleRow(52, "computation_indexes", lambda at: "computation" in at.item and not at.is_written, "is missing",
        "List the indexes of columns", _OF_COLUMN.format(
            "Column with computation must have at least 1 column selected for the computation to act upon")),
    RuleRow(52, "computation_indexes", lambda at: at.value and "computation" not in at.item, "has no computation",
        "Add computation: avg", _OF_COLUMN.format(
            "Cannot add computation columns without a computation function set")),
    RuleRow(52, "computation_indexes", _names_itself, "names the column itself", "Name others", _OF_COLUMN.format(
        "Column with index {index} referencing itself. Cannot self-reference, must be other columns.")),
)  # fmt: skip


def _check_columns(at: _At) -> BundleProblems:
    """Yield the problems of each column; those between columns where each is right by itself."""
    columns = [Entry(at.bundle, f"{at.path}[{index}]", column) for index, column in enumerate(at.value)]
    check_column = first_of(_field_rules(fields.COLUMN, "columns: "), _COMPUTATION)
    problems = [problem for column in columns for problem in check_column(column)]
    yield from problems or _check_indexes(at)


def _check_indexes(at: _At) -> BundleProblems:
    indexes = [as_integer(column["index"]) for column in at.value]
    if len(set(indexes)) < len(indexes):
        yield refusal(49, at.path, "two have one index", "Number them", "columns: Columns must have unique indexes!\n")
    keys = [str(column["key"]).strip() for column in at.value]
    if len(set(keys)) < len(keys):
        yield refusal(49, at.path, "two have one key", "Rename one", "columns: Columns must have unique keys!\n")
    for number, column in enumerate(at.value):
        references = column.get("computation_indexes")
        for index in ",".join(map(str, references)).split(",") if references else []:
            path, remedy = f"{at.path}[{number}].computation_indexes", "Name the indexes of columns"
            if not re.fullmatch(r"\s*[-+]?\d+\s*", index):
                words = f"Bad value for index, should be an integer but received: {index}."
                yield refusal(52, path, f"{index!r} is no number", remedy, f"columns: {words}\n")
            elif int(index) not in indexes:
                words = f"Column index {index} does not exist in available indexes {indexes}"
                yield refusal(52, path, f"there is no column {index}", remedy, f"columns: {words}\n")


_COLUMNS = first_of(
    RuleRow(48, "columns", lambda at: at.value == [], "is empty", "Add a column",
        "columns: Leaderboards require at least 1 column\n"),
    RuleRow(48, "columns", lambda at: at.value is not None and not isinstance(at.value, list), "is not a list",
        "Write - title: …", "columns: non_field_errors\n"),
    first_of(
        _mappings_rule(48, "columns", f"columns: {_NO_DICTIONARY}\n"),
        lambda board: _check_columns(board.below("columns")),
        unless=lambda at: at.item.get("columns") is None,
    ),
    _field_rules({"columns": fields.BOARD["columns"]}),
)  # fmt: skip
_ADD_BOARD = "Add one leaderboard"
_LEADERBOARDS = first_of(
    RuleRow(45, "leaderboards", is_absent, "is missing", _ADD_BOARD,
        "Could not find leaderboards in the competition yaml"),
    RuleRow(45, "leaderboards", _is_empty, "is empty", _ADD_BOARD, _FIRST_MISSING),
    RuleRow(45, "leaderboards", _is_no_list, "is not a list", "Write a list: - title: …", _NOT_ITERABLE),
    all_of(
        _mappings_rule(45, "leaderboards", _NO_DICTIONARY),
        check_each("leaderboards", all_of(*(
            _COLUMNS if key == "columns" else _field_rules({key: field}) for key, field in fields.BOARD.items()
        ))),
    ),
)  # fmt: skip


# ── the picture and the fact sheet ──────────────────────────────────────────────────────────────────────────────────


def _check_logo(at: _At) -> BundleProblems:
    """Yield why the picture is not taken: by its content first, then while a small copy is made."""
    name = at.item.get("image")
    if not isinstance(name, str) or not os.path.isfile(at.bundle.path(name)):
        return
    remedy = "Save it as PNG or JPEG"
    try:
        with Image.open(at.bundle.path(name)) as picture:
            kind = (picture.format or "").lower()
            if kind not in _PICTURES:
                quote = "logo: The type of the image couldn't be determined.\n"
                yield refusal(10, "image", f"{name} is {kind}", remedy, quote)
                return
            width, height = picture.size
            small = picture.resize((100, int(100 / width * height)))
            small.save(io.BytesIO(), "PNG")
    except UnidentifiedImageError:
        yield refusal(10, "image", f"{name} is not a picture", remedy, "logo: Please upload a valid image.\n")
    except OSError as error:
        yield crash(10, "image", f"{name} cannot be made smaller", remedy, str(error))
    except (ValueError, Image.DecompressionBombError) as error:
        yield crash(11, "image", f"{name} is more than a hundred times as wide as high", "Cut it", str(error))


def _has_other_keys(at: _At) -> Verdict:
    different = _QUESTION_KEYS ^ set(at.value)
    # As Python writes a set, in a fixed order.
    return {"different": ", ".join(sorted(map(repr, different)))} if different else None


_ALL_KEYS = f"Write exactly {', '.join(sorted(_QUESTION_KEYS))}"
_QUESTION_SHAPE = first_of(
    RuleRow(18, "", lambda at: not isinstance(at.value, dict), "is not a mapping", _ALL_KEYS,
        ERROR_LOG + "'{kind}' object has no attribute 'keys'"),
    RuleRow(18, "", _has_other_keys, "lacks a key or has one too many", _ALL_KEYS,
        "fact_sheet: Missing {{{different}}} values for {key}\n"),
)  # fmt: skip
_QUESTION = first_of(
    RuleRow(18, "key", lambda at: at.value != at.number, "is not its name", "Write key: {number}",
        "fact_sheet: key:{value}  does not match JSON key:{number}\n"),
    RuleRow(18, "type", lambda at: at.value not in ("checkbox", "text", "select"),
        "{value} is not a valid question type", "Write checkbox, text or select",
        "fact_sheet: {value} is not a valid question type\n"),
    RuleRow(18, "", lambda at: bool in (type(at.item["is_required"]), type(at.item["is_on_leaderboard"])),
        "its flags are not texts, so that they mean nothing", 'Write "true" or "false"', WARNS),
)  # fmt: skip


def _check_fact_sheet(at: _At) -> BundleProblems:
    sheet = at.item.get("fact_sheet") or {}
    if not isinstance(sheet, dict):
        yield refusal(18, "fact_sheet", "is not a mapping", "Write name: {…}", "fact_sheet: Not valid JSON\n")
        return
    for name, question in sheet.items():
        at_question = Entry(at.bundle, f"fact_sheet.{name}", sheet, name, number=name)
        yield from [*_QUESTION_SHAPE(at_question)] or _QUESTION(replace(at_question, item=question))


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _check_stored_fact_sheet(sheet: dict[object, object]) -> BundleProblems:
    """Yield what the questions hold that JSON as Python writes it has, and the database's has not."""
    for name, question in sheet.items():
        subject = f"fact_sheet.{name}"
        for leaf in _leaves([name, question]):
            if isinstance(leaf, float) and not math.isfinite(leaf):
                text = f'invalid input syntax for type json\nDETAIL:  Token "{json.dumps(leaf)}" is invalid.'
                yield crash(18, subject, f"holds {leaf}, which JSON lacks", "Write a number or a text", text)
            elif isinstance(leaf, str) and "\0" in leaf:
                text = "unsupported Unicode escape sequence\nDETAIL:  \\u0000 cannot be converted to text."
                yield crash(18, subject, "holds a NUL character", "Remove it", text)
            elif isinstance(leaf, str) and fields.SURROGATE.search(leaf):
                fault, text = "holds half a character (a surrogate)", "invalid input syntax for type json"
                yield crash(18, subject, fault, "Write the whole character", text)


# ── what the competition's serializer refuses, and what fails once the competition was made ─────────────────────────

_FIRST_FIELDS = all_of(
    _field_rules({"title": fields.BEFORE_PAGES["title"]}, title=None),
    _check_logo,
    _field_rules({"docker_image": fields.BEFORE_PAGES["docker_image"]}),
    check_each("pages", all_of(
        _field_rules(fields.PAGE, "pages: ", title=None),
        _nul_rule(13, "file", "pages: content: Null characters are not allowed.\n\n"),
    )),
)  # fmt: skip
_TERMS = _nul_rule(12, "terms", "terms: Null characters are not allowed.\n")


def _check_last_fields(at: _At) -> BundleProblems:
    sheet = at.item.get("fact_sheet")
    is_json = not fields.AFTER_PHASES["fact_sheet"].answer(sheet)
    for key, field in fields.AFTER_PHASES.items():
        yield from fields.check_fields("", {key: field}, at.item)
        if key == "fact_sheet" and is_json:
            yield from _check_fact_sheet(at)
        if key == "description":
            yield from _TERMS(at)
    if isinstance(sheet, dict) and is_json:
        yield from _check_stored_fact_sheet(sheet)
    title = at.item.get("title")
    if isinstance(title, str) and _LONGEST_TITLE < len(title) <= fields.BEFORE_PAGES["title"].limit:
        text = "value too long for type character varying(255)"
        fault = f"has {len(title)} characters, and the competition stays, half made"
        yield crash(9, "title", fault, "Shorten it", text)


_RULES = all_of(
    _PAGES,
    _TASKS,
    _SOLUTIONS,
    _TERMS_PICTURE_AND_QUEUE,
    _PHASES,
    _LEADERBOARDS,
    _SAVED_TASKS,
    _SAVED_SOLUTIONS,
    _SAVED_PHASES,
    _FIRST_FIELDS,
    _check_phase_fields,
    _check_last_fields,
)
