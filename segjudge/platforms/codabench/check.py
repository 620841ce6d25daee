"""`segjudge check --platform codabench`: all reasons for rejection or later failure.

The rules are rows in the unpacker's order: it first reads everything, then saves data and tasks, solutions,
leaderboards and the competition.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from PIL import Image, UnidentifiedImageError

from segjudge.platforms.evalai.bundle.opened_bundle import BundleRefusedError
from segjudge.platforms.rules.fields import as_integer
from segjudge.platforms.rules.problems import BundleProblem, BundleProblems
from segjudge.platforms.rules.rule_rows import (
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
from .opened_competition import CONFIG, ERROR_LOG, OpenedCompetition, crash, open_competition, refusal
from .pitfalls import check_pitfalls, parse_moment
from .shared_rules import (
    NO_UUID,
    NOT_ITERABLE,
    SITE_KEY,
    CompetitionEntry,
    data_rules,
    field_rules,
    file_rules,
    is_empty,
    is_no_list,
    is_on_site,
    is_uuid,
    is_written,
    lacks_first,
    list_rules,
    nul_rule,
    path_rule,
    text_rules,
)

#: The versions of CodaLab's bundles, which are read differently.
_OLD_VERSIONS = ("1", "1.5")
_QUESTION_KEYS = {"key", "type", "title", "selection", "is_required", "is_on_leaderboard"}
#: Picture formats by Pillow's names; MPO is a JPEG with several pictures.
_PICTURES = ("jpeg", "mpo", "png", "gif", "webp")
#: The maximum length of a title with which the renamed bundle fits into the database, for a user name of one character.
_LONGEST_TITLE = 230
#: Python's text, which is all that Codabench reports.
_COMPARED = "'<' not supported between instances of 'NoneType' and 'datetime.datetime'"
_FIRST_MISSING = ERROR_LOG + "list index out of range"
_TRUE = ("true", "yes", "on", "1", "t", "y")


def check(path: str) -> list[BundleProblem]:
    """Return the problems of a bundle (zip or folder) in Codabench's order.

    Raises `UsageError` for a CodaLab bundle, which follows other rules.
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
        fault = f"is {version if 'version' in bundle.config else 'missing'}, so Codabench reads it as a CodaLab bundle"
        quote = "HTML pages could not be found in the yaml file"
        yield refusal(4, "version", fault, "Write version: 2", quote)
    elif version in _OLD_VERSIONS:
        fault = f"is a CodaLab bundle ({CONFIG} has no version: 2), and Codabench reads it by other rules"
        raise UsageError(f"{path}: {fault}, which this check does not know. Rewrite it for version 2")
    elif version != "2":
        quote = "A suitable version could not be found for this competition. Make sure one is supplied in the yaml."
        yield refusal(4, "version", f"is {version}", "Write version: 2", quote)


# ── pages, terms and queue ──────────────────────────────────────────────────────────────────────────────────────────

_PAGES = all_of(
    list_rules(13, "pages"),
    check_each("pages", first_of(
        RuleRow(13, "file", is_absent, "is missing", "Name a file", ERROR_LOG + "'file'"),
        text_rules(13, "file", "Page '{value}' is empty, it must contain content."),
    )),
)  # fmt: skip
_TERMS_PICTURE_AND_QUEUE = all_of(
    first_of(
        RuleRow(12, "terms", is_absent, "is missing", "Name a text file",
            "A file containing the terms of this competition has not been supplied in the required location"),
        text_rules(12, "terms", "{value} is empty, it must contain content."),
    ),
    first_of(
        RuleRow(10, "image", is_absent, "is missing", "Name a picture",
            "An image for this competition could not be found in the yaml"),
        file_rules(10, "image", "picture", "image"),
    ),
    first_of(
        RuleRow(15, "queue", lambda entry: not is_uuid(str(entry.value)),
            "{value!r:.60} is not the UUID of a queue", "Copy the vhost from the page of queues", NO_UUID),
        RuleRow(15, "queue", is_written, "is on the site and cannot be checked here",
            "Make sure that it exists, and that you may use it", WARNS),
        unless=lambda entry: not entry.item.get("queue"),
    ),
)  # fmt: skip


# ── tasks and solutions ─────────────────────────────────────────────────────────────────────────────────────────────


def _lacks_key(entry: CompetitionEntry) -> Verdict:
    return None if entry.is_written else {"title": entry.item.get("name") or entry.item.get("key")}


def _lacks_program(entry: CompetitionEntry) -> Verdict:
    is_lacking = entry.key == "scoring_program" and not entry.is_written
    return {"title": entry.item.get("name") or entry.item["index"]} if is_lacking else None


def _task_path_rules(key: str) -> Check:
    return first_of(
        path_rule(24, key),
        RuleRow(23, key, _lacks_program, "is missing", "Name the zip of the scoring program",
            'ERROR: Task "{title}" does not have a scoring program'),
        unless=is_on_site,
    )  # fmt: skip


_TASKS = first_of(
    RuleRow(20, "tasks", is_absent, "is missing", "Add at least one task", "No tasks listed in this competition"),
    all_of(list_rules(20, "tasks"), check_each("tasks", first_of(
        RuleRow(21, "index", _lacks_key, "is missing", "Number the tasks", "ERROR: No index for task: {title}"),
        RuleRow(21, "index", lambda entry: not isinstance(entry.value, Hashable), "is not a number", "Number the tasks",
            ERROR_LOG + "unhashable type: '{kind}'"),
        all_of(
            RuleRow(21, "index", is_repeated, "{value} is also another task's", "Number the tasks",
                "ERROR: Duplicate task indexes. Index: {value}"),
            *map(_task_path_rules, fields.TASK_FILES),
        ),
    ))),
)  # fmt: skip
_SAVED_TASKS = check_each("tasks", first_of(
    SITE_KEY,
    all_of(
        *(data_rules(24, key) for key in fields.TASK_FILES),
        field_rules(fields.TASK, name=None, description=None),
    ),
))  # fmt: skip


def _names_lost_task(entry: CompetitionEntry) -> Verdict:
    indexes = [task.item.get("index") for task in entries(entry.bundle, "tasks")]
    return {"site_key": entry.item.get("key")} if any(index not in indexes for index in entry.value) else None


_NO_TASK, _INDEXES = "names a task that does not exist", "Write indexes of tasks"
_SEE_DOCS = "See the documentation of bundles"
_SOLUTIONS = first_of(
    all_of(list_rules(24, "solutions"), check_each("solutions", first_of(
        RuleRow(24, "index", _lacks_key, "is missing", _SEE_DOCS, "ERROR: No index for solution: {title}"),
        RuleRow(24, "tasks", _lacks_key, "is missing", _SEE_DOCS, "Could not find tasks for solution: {title}"),
        RuleRow(24, "tasks", is_no_list, "is not a list", "Write the indexes of tasks as a list", NOT_ITERABLE),
        RuleRow(24, "tasks", lambda entry: is_on_site(entry) and _names_lost_task(entry), _NO_TASK, _INDEXES,
            "ERROR: Solution: {site_key} missing task index pointers"),
        RuleRow(24, "tasks", _names_lost_task, _NO_TASK, _INDEXES, ERROR_LOG + "'key'"),
        first_of(
            RuleRow(24, "path", is_absent, "is missing", "Name a zip", 'Solution {name} missing "path"'),
            path_rule(24, "path"),
            unless=is_on_site,
        ),
    ))),
    unless=lambda entry: not entry.item.get("solutions"),
)  # fmt: skip


def _check_solution_fields(entry: CompetitionEntry) -> BundleProblems:
    values = {key: value for key, value in entry.item.items() if key != "name" or value}
    return fields.check_fields(entry.path, fields.SOLUTION, values)


_SAVED_SOLUTIONS = check_each("solutions", first_of(
    SITE_KEY,
    first_of(
        all_of(data_rules(24, "path"), _check_solution_fields),
        unless=lambda entry: not isinstance(entry.item.get("path"), str),
    ),
))  # fmt: skip


# ── phases ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_each_phase(check: Check) -> Check:
    """Return a check of all phases, in the unpacker's order, given a check of one phase."""
    return lambda entry: [
        problem
        for subject, phase in entry.bundle.sort_phases()
        for problem in check(Entry(entry.bundle, subject, phase))
    ]  # fmt: skip


def _cannot_be_sorted(entry: CompetitionEntry) -> Verdict:
    try:
        sorted(entry.bundle.mappings("phases"), key=lambda phase: phase[1].get("index", 0))
    except TypeError as error:
        return {"text": str(error)}
    return None


def _is_not_a_date(entry: CompetitionEntry) -> Verdict:
    try:
        parse_moment(entry.value)
    except (ValueError, OverflowError, TypeError) as error:
        return {"text": str(error)}
    return None


def _check_order(entry: CompetitionEntry) -> BundleProblems:
    """Yield the phases that are not consecutive; none for invalid dates."""
    phases = [Entry(entry.bundle, subject, phase) for subject, phase in entry.bundle.sort_phases()]
    if any(_is_not_a_date(phase.child(key)) for phase in phases for key in ("start", "end")):
        return
    starts, ends = ([parse_moment(phase.item.get(key)) for phase in phases] for key in ("start", "end"))
    for phase, start in zip(phases, starts, strict=True):
        if start is None:
            yield crash(31, f"{phase.path}.start", "is missing", "Say when the phase starts, in UTC", _COMPARED)
    for (phase, next_phase), end, start in zip(pairwise(phases), ends, starts[1:], strict=False):
        name, next_name = phase.item.get("name"), next_phase.item.get("name")
        if end is None:
            quote = f"Phase: {name} must have an end time because it has a phase after it."
            fault = "is missing, and another phase follows"
            yield refusal(36, f"{phase.path}.end", fault, "Say when it ends, in UTC", quote)
        elif start is not None and start < end:
            quote = f"Phases must be sequential. Phase: {next_name}starts before Phase: {name} has ended"
            fault = f"starts at {start}, and {name} ends at {end}"
            remedy = "Make the phases consecutive, or split them into two competitions"
            yield refusal(37, f"{next_phase.path}.start", fault, remedy, quote)
        elif start == end:
            quote = f"Phases dates conflict. Phase: {next_name} should start after Phase: {name} has ended"
            yield refusal(38, f"{next_phase.path}.start", f"is when {name} ends", "Start it one second later", quote)


_UNSORTED = RuleRow(30, "index", _cannot_be_sorted, "the phases' indexes have different types",
    "Write whole numbers everywhere, or omit them", ERROR_LOG + "{text}")  # fmt: skip
_ADD_PHASE = "Add at least one phase"
_PHASES = first_of(
    RuleRow(30, "phases", is_absent, "is missing", _ADD_PHASE, "Unable to find any phases for this competition"),
    RuleRow(30, "phases", is_empty, "is empty", _ADD_PHASE, _FIRST_MISSING),
    all_of(
        list_rules(30, "phases"),
        lambda entry: _UNSORTED(replace(entry, path="phases[0]")),
        _check_each_phase(all_of(
            *(
                RuleRow(35, key, _is_not_a_date, "is {value!r:.60}, which is not a date",
                    "Write it as '2026-01-31 12:00:00', in quotes", ERROR_LOG + "{text}")
                for key in ("start", "end")
            ),
            RuleRow(31, "tasks", is_absent, "is missing", "List the indexes of tasks",
                "Phases must contain at least one task to be valid"),
            *(path_rule(44, key) for key in fields.PHASE_FILES),
        )),
        _check_order,
    ),
)  # fmt: skip


def _check_phase_tasks(entry: CompetitionEntry) -> BundleProblems:
    tasks, path = entry.item.get("tasks", []), f"{entry.path}.tasks"
    if not isinstance(tasks, Iterable):
        text = f"'{type(tasks).__name__}' object is not iterable"
        yield crash(32, path, "is not a list", "Write a list: [0]", text)
        return
    indexes = {
        task.item.get("index"): 0
        for task in entries(entry.bundle, "tasks")
        if isinstance(task.item.get("index"), Hashable)
    }
    for index in tasks:
        is_hashable = isinstance(index, Hashable)
        if not is_hashable or index not in indexes:
            fault = f"{index!r:.60} is not the index of a task: {', '.join(map(repr, indexes))}"
            text = repr(index) if is_hashable else f"unhashable type: '{type(index).__name__}'"
            yield crash(32, path, fault, "Write it as the task does", text)


_PHASE_DATA = all_of(*(data_rules(44, key) for key in fields.PHASE_FILES))


def _check_saved_phases(entry: CompetitionEntry) -> BundleProblems:
    """Yield problems of phases after tasks and leaderboards are saved; each phase gets the first leaderboard."""
    for number, (subject, phase) in enumerate(entry.bundle.sort_phases()):
        at_phase = Entry(entry.bundle, subject, phase)
        yield from _check_phase_tasks(at_phase)
        if number == 0:
            yield from _EMPTY_LEADERBOARDS(entry)
        yield from _PHASE_DATA(at_phase)


def _check_fields_of_phase(entry: CompetitionEntry) -> BundleProblems:
    values = {"name": None, "description": None, **entry.item}
    if not values.get("execution_time_limit"):
        values.pop("execution_time_limit", None)  # the default applies
    for problem in fields.check_fields(entry.path, fields.PHASE, values, "phases: "):
        # The unpacker has another name for that key in the serializer.
        quote = problem.quote.replace("phases: max_submissions:", "phases: max_submissions_per_person:")
        yield replace(problem, quote=quote)


def _check_phase_fields(entry: CompetitionEntry) -> BundleProblems:
    yield from _check_each_phase(_check_fields_of_phase)(entry)
    phases = entry.bundle.sort_phases()
    if phases and str(phases[0][1].get("auto_migrate_to_this_phase")).lower() in _TRUE:
        refused_case = "in a competition with one phase" if len(phases) == 1 else "to the first phase of a competition"
        path, quote = f"{phases[0][0]}.auto_migrate_to_this_phase", f"phases: You cannot auto migrate {refused_case}\n"
        yield refusal(42, path, "is set, but no phase comes before", "Remove it", quote)


# ── leaderboards ────────────────────────────────────────────────────────────────────────────────────────────────────


_NO_DICTIONARY = "non_field_errors: Invalid data. Expected a dictionary, but got {kind}.\n"


def _mappings_rule(rule: int, key: str, quote: str) -> RuleRow:
    """Return the rule that the serializer gets mappings."""

    def find_odd_item(entry: CompetitionEntry) -> Verdict:
        odd_items = [item for item in entry.value if not isinstance(item, dict)]
        return {"kind": type(odd_items[0]).__name__} if odd_items else None

    return RuleRow(rule, key, find_odd_item, "holds items that are not mappings", "Write - title: …", quote)


#: The serializer's message about columns that conflict.
_OF_COLUMN = "columns: non_field_errors: {}\n\n"


def _names_itself(entry: CompetitionEntry) -> Verdict:
    is_named = entry.value and str(entry.item["index"]) in [str(index) for index in entry.value]
    return {"index": entry.item["index"]} if is_named else None


_COMPUTATION = first_of(
    RuleRow(52, "computation_indexes",
        lambda entry: entry.value is not None and not isinstance(entry.value, (list, str, dict)), "is not a list",
        "List the indexes of columns", NOT_ITERABLE),
    RuleRow(52, "computation_indexes",
        lambda entry: isinstance(entry.value, str) and not entry.value.strip(), "is empty",
        "List the indexes of columns", "columns: computation_indexes: This field may not be blank.\n\n"),
    RuleRow(52, "computation_indexes", lambda entry: "computation" in entry.item and not entry.is_written, "is missing",
        "List the indexes of columns", _OF_COLUMN.format(
            "Column with computation must have at least 1 column selected for the computation to act upon")),
    RuleRow(52, "computation_indexes",
        lambda entry: entry.value and "computation" not in entry.item, "has no computation",
        "Add computation: avg", _OF_COLUMN.format(
            "Cannot add computation columns without a computation function set")),
    RuleRow(52, "computation_indexes", _names_itself, "names the column itself", "Name others", _OF_COLUMN.format(
        "Column with index {index} referencing itself. Cannot self-reference, must be other columns.")),
)  # fmt: skip


def _check_columns(entry: CompetitionEntry) -> BundleProblems:
    """Yield the problems of each column, or between columns if each is valid."""
    columns = [Entry(entry.bundle, f"{entry.path}[{index}]", column) for index, column in enumerate(entry.value)]
    check_column = first_of(field_rules(fields.COLUMN, "columns: "), _COMPUTATION)
    problems = [problem for column in columns for problem in check_column(column)]
    yield from problems or _check_indexes(entry)


def _check_indexes(entry: CompetitionEntry) -> BundleProblems:
    indexes = [as_integer(column["index"]) for column in entry.value]
    if len(set(indexes)) < len(indexes):
        yield refusal(
            49,
            entry.path,
            "two columns have the same index",
            "Number them",
            "columns: Columns must have unique indexes!\n",
        )
    keys = [str(column["key"]).strip() for column in entry.value]
    if len(set(keys)) < len(keys):
        yield refusal(
            49, entry.path, "two columns have the same key", "Rename one", "columns: Columns must have unique keys!\n"
        )
    for number, column in enumerate(entry.value):
        references = column.get("computation_indexes")
        for index in ",".join(map(str, references)).split(",") if references else []:
            path, remedy = f"{entry.path}[{number}].computation_indexes", "Name the indexes of columns"
            if not re.fullmatch(r"\s*[-+]?\d+\s*", index):
                message = f"Bad value for index, should be an integer but received: {index}."
                yield refusal(52, path, f"{index!r} is not a number", remedy, f"columns: {message}\n")
            elif int(index) not in indexes:
                message = f"Column index {index} does not exist in available indexes {indexes}"
                yield refusal(52, path, f"there is no column {index}", remedy, f"columns: {message}\n")


_COLUMNS = first_of(
    RuleRow(48, "columns", lambda entry: entry.value == [], "is empty", "Add a column",
        "columns: Leaderboards require at least 1 column\n"),
    RuleRow(48, "columns", lambda entry: entry.value is not None and not isinstance(entry.value, list), "is not a list",
        "Write - title: …", "columns: non_field_errors\n"),
    first_of(
        _mappings_rule(48, "columns", f"columns: {_NO_DICTIONARY}\n"),
        lambda board: _check_columns(board.child("columns")),
        unless=lambda entry: entry.item.get("columns") is None,
    ),
    field_rules({"columns": fields.BOARD["columns"]}),
)  # fmt: skip
_ADD_BOARD = "Add one leaderboard"
_LEADERBOARDS = RuleRow(45, "leaderboards", is_absent, "is missing", _ADD_BOARD,
    "Could not find leaderboards in the competition yaml")  # fmt: skip
_EMPTY_LEADERBOARDS = RuleRow(45, "leaderboards", lacks_first, "is empty", _ADD_BOARD, ERROR_LOG + "{text}")
_SAVED_LEADERBOARDS = first_of(
    RuleRow(45, "leaderboards", is_no_list, "is not a list", "Write a list: - title: …", NOT_ITERABLE),
    all_of(
        _mappings_rule(45, "leaderboards", _NO_DICTIONARY),
        check_each("leaderboards", all_of(*(
            _COLUMNS if key == "columns" else field_rules({key: field}) for key, field in fields.BOARD.items()
        ))),
    ),
    unless=lambda entry: "leaderboards" not in entry.item,
)  # fmt: skip


# ── the picture and the fact sheet ──────────────────────────────────────────────────────────────────────────────────


def _check_logo(entry: CompetitionEntry) -> BundleProblems:
    """Yield the problems of the logo: its content, then its thumbnail."""
    name = entry.item.get("image")
    if not isinstance(name, str) or not os.path.isfile(entry.bundle.path(name)):
        return
    remedy = "Save it as PNG or JPEG"
    try:
        with Image.open(entry.bundle.path(name)) as picture:
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
        yield crash(11, "image", f"{name} is more than 100 times as wide as it is high", "Cut it", str(error))


def _has_other_keys(entry: CompetitionEntry) -> Verdict:
    different = _QUESTION_KEYS ^ set(entry.value)
    # Like Python's text of a set, in a fixed order.
    return {"different": ", ".join(sorted(map(repr, different)))} if different else None


_ALL_KEYS = f"Write exactly {', '.join(sorted(_QUESTION_KEYS))}"
_QUESTION_SHAPE = first_of(
    RuleRow(18, "", lambda entry: not isinstance(entry.value, dict), "is not a mapping", _ALL_KEYS,
        ERROR_LOG + "'{kind}' object has no attribute 'keys'"),
    RuleRow(18, "", _has_other_keys, "lacks a key or has one too many", _ALL_KEYS,
        "fact_sheet: Missing {{{different}}} values for {key}\n"),
)  # fmt: skip
_QUESTION = first_of(
    RuleRow(18, "key", lambda entry: entry.value != entry.number, "is not its name", "Write key: {number}",
        "fact_sheet: key:{value}  does not match JSON key:{number}\n"),
    RuleRow(18, "type", lambda entry: entry.value not in ("checkbox", "text", "select"),
        "{value} is not a valid question type", "Write checkbox, text or select",
        "fact_sheet: {value} is not a valid question type\n"),
    RuleRow(18, "", lambda entry: bool in (type(entry.item["is_required"]), type(entry.item["is_on_leaderboard"])),
        "its flags are not text, so they have no effect", 'Write "true" or "false"', WARNS),
)  # fmt: skip


def _check_fact_sheet(entry: CompetitionEntry) -> BundleProblems:
    sheet = entry.item.get("fact_sheet") or {}
    if not isinstance(sheet, dict):
        yield refusal(18, "fact_sheet", "is not a mapping", "Write name: {…}", "fact_sheet: Not valid JSON\n")
        return
    for name, question in sheet.items():
        at_question = Entry(entry.bundle, f"fact_sheet.{name}", sheet, name, number=name)
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
    """Yield values of the questions that Python's JSON allows and the database's JSON does not."""
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
    field_rules({"title": fields.BEFORE_PAGES["title"]}, title=None),
    _check_logo,
    field_rules({"docker_image": fields.BEFORE_PAGES["docker_image"]}),
    check_each("pages", all_of(
        field_rules(fields.PAGE, "pages: ", title=None),
        nul_rule(13, "file", "pages: content: Null characters are not allowed.\n\n"),
    )),
)  # fmt: skip
_TERMS = nul_rule(12, "terms", "terms: Null characters are not allowed.\n")


def _check_last_fields(entry: CompetitionEntry) -> BundleProblems:
    sheet = entry.item.get("fact_sheet")
    is_json = not fields.answer(sheet, fields.AFTER_PHASES["fact_sheet"])
    for key, field in fields.AFTER_PHASES.items():
        yield from fields.check_fields("", {key: field}, entry.item)
        if key == "fact_sheet" and is_json:
            yield from _check_fact_sheet(entry)
        if key == "description":
            yield from _TERMS(entry)
    if isinstance(sheet, dict) and is_json:
        yield from _check_stored_fact_sheet(sheet)
    title = entry.item.get("title")
    if isinstance(title, str) and _LONGEST_TITLE < len(title) <= fields.BEFORE_PAGES["title"].limit:
        text = "value too long for type character varying(255)"
        fault = f"has {len(title)} characters; creation fails halfway, and the competition remains"
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
    _SAVED_LEADERBOARDS,
    _check_saved_phases,
    _FIRST_FIELDS,
    _check_phase_fields,
    _check_last_fields,
)
