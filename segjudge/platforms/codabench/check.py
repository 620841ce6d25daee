"""`segjudge check --platform codabench`: all reasons why Codabench refuses a bundle, or why it goes wrong later."""

from __future__ import annotations

import datetime
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from PIL import Image, UnidentifiedImageError

from segjudge.platforms.evalai.bundle.opened_bundle import BundleRefusedError
from segjudge.platforms.evalai.bundle.problems import BundleProblem, BundleProblems
from segjudge.system.errors import UsageError

from .opened_competition import (
    CONFIG,
    OpenedCompetition,
    check_data,
    check_list,
    crash,
    harm,
    is_uuid,
    open_competition,
    path_crash,
    refusal,
    sort_phases,
)
from .pitfalls import check_pitfalls, parse_moment
from .serializer_fields import (
    AFTER_PHASES,
    BEFORE_PAGES,
    BOARD,
    COLUMN,
    PAGE,
    PHASE,
    PHASE_FILES,
    SOLUTION,
    SURROGATE,
    TASK,
    TASK_FILES,
    check_fields,
    to_integer,
)

Rule = Callable[[OpenedCompetition], BundleProblems]

#: The versions that CodaLab's bundles have, which are read in another way.
_OLD_VERSIONS = ("1", "1.5")
_QUESTION = {"key", "type", "title", "selection", "is_required", "is_on_leaderboard"}
#: By Pillow's names; MPO is a JPEG of several pictures.
_PICTURES = ("jpeg", "mpo", "png", "gif", "webp")
#: The longest title with which the renamed bundle fits into the database, for a user of one character.
_LONGEST_TITLE = 230
_Moments = list[datetime.datetime | None]
_COMPARED = "'<' not supported between instances of 'NoneType' and 'datetime.datetime'"


def check(path: str) -> list[BundleProblem]:
    """Return the problems of a bundle, a zip or a folder, in the order in which Codabench would come to them.

    Raises `UsageError` for one of CodaLab's, which is read by rules that are not known here.
    """
    try:
        with open_competition(path) as bundle:
            return [bundle.locate(problem) for problem in [*_check_rules(bundle, path), *check_pitfalls(bundle, path)]]
    except BundleRefusedError as error:
        return [replace(error.problem, location=error.problem.location or path)]


def _check_rules(bundle: OpenedCompetition, path: str) -> BundleProblems:
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
    for rule in _RULES:
        yield from rule(bundle)


def _file_problem(bundle: OpenedCompetition, rule: int, subject: str, name: object) -> BundleProblem | None:
    """Return why the unpacker cannot read a file."""
    kind, title = ("picture", "image") if subject == "image" else ("file", "page")
    if not isinstance(name, str):
        return path_crash(rule, subject, name)
    if not os.path.exists(bundle.path(name)):
        fault, quote = f"{name} is not in the bundle", f"Unable to find {title}: {name}"
        return refusal(rule, subject, fault, "Put it there, or correct the path", quote)
    if not os.path.isfile(bundle.path(name)):
        text = f"[Errno 21] Is a directory: '<temporary folder>/{name}'"
        return crash(rule, subject, f"{name} is a folder", f"Name a {kind}", text)
    return None


def _text_problems(bundle: OpenedCompetition, rule: int, subject: str, name: object, empty: str) -> BundleProblems:
    problem = _file_problem(bundle, rule, subject, name)
    if problem:
        yield problem
        return
    try:
        with open(bundle.path(str(name)), encoding="utf-8") as file:
            if not file.read():
                yield refusal(rule, subject, f"{name} is empty", "Write something", empty)
    except UnicodeDecodeError as error:
        yield crash(rule, subject, f"{name} is not UTF-8", "Save it as UTF-8", str(error))
    except OSError as error:
        text = f"[Errno {error.errno}] {error.strerror}: '<temporary folder>/{name}'"
        yield crash(rule, subject, f"{name} cannot be read ({error.strerror})", "Make it readable", text)


def _null_problems(bundle: OpenedCompetition, rule: int, subject: str, name: object, field: str) -> BundleProblems:
    """Yield that a text holds a character which the serializer refuses."""
    if isinstance(name, str) and _file_problem(bundle, rule, subject, name) is None:
        try:
            text = Path(bundle.path(name)).read_bytes()
        except OSError:  # said already
            return
        if b"\0" in text:
            fault = f"{name} holds a NUL character, in line {text[: text.index(0)].count(10) + 1}"
            yield refusal(rule, subject, fault, "Remove it", f"{field}: Null characters are not allowed.\n")


def _check_pages(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of the pages' files."""
    yield from check_list(13, bundle, "pages")
    for subject, page in bundle.mappings("pages"):
        if "file" not in page:
            yield crash(13, f"{subject}.file", "is missing", "Name a file", "'file'")
            continue
        empty = f"Page '{page['file']}' is empty, it must contain content."
        yield from _text_problems(bundle, 13, f"{subject}.file", page["file"], empty)


def _check_terms_and_picture(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of the terms and of the picture's path."""
    if "terms" in bundle.config:
        name = bundle.config["terms"]
        yield from _text_problems(bundle, 12, "terms", name, f"{name} is empty, it must contain content.")
    else:
        quote = "A file containing the terms of this competition has not been supplied in the required location"
        yield refusal(12, "terms", "is missing", "Name a text file", quote)
    if "image" not in bundle.config:
        quote = "An image for this competition could not be found in the yaml"
        yield refusal(10, "image", "is missing", "Name a picture", quote)
    else:
        problem = _file_problem(bundle, 10, "image", bundle.config["image"])
        yield from [problem] if problem else []


def _check_queue(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of the queue that can be known here."""
    name = bundle.config.get("queue")
    if not name:
        return
    remedy = "See that it is there, and yours to use"
    if is_uuid(str(name)):
        yield harm(15, "queue", "is on the site and cannot be looked up here", remedy)
    else:
        fault, text = f"{name!r:.60} is not the UUID of a queue", f"['“{name}” is not a valid UUID.']"
        yield crash(15, "queue", fault, "Copy the vhost from the page of queues", text)


def _check_logo(bundle: OpenedCompetition) -> BundleProblems:
    """Yield why the picture is not taken: by its content first, then while a small copy is made."""
    name = bundle.config.get("image")
    if not isinstance(name, str) or not os.path.isfile(bundle.path(name)):
        return
    remedy = "Save it as PNG or JPEG"
    try:
        with Image.open(bundle.path(name)) as picture:
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


def _check_fact_sheet(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what is wrong with the questions."""
    sheet = bundle.config.get("fact_sheet")
    if not sheet:
        return
    if not isinstance(sheet, dict):
        yield refusal(18, "fact_sheet", "is not a mapping", "Write name: {…}", "fact_sheet: Not valid JSON\n")
        return
    for name, question in sheet.items():
        subject, remedy = f"fact_sheet.{name}", f"Write exactly {', '.join(sorted(_QUESTION))}"
        if not isinstance(question, dict):
            text = f"'{type(question).__name__}' object has no attribute 'keys'"
            yield crash(18, subject, "is not a mapping", remedy, text)
        elif _QUESTION ^ set(question):
            odd = ", ".join(sorted(map(repr, _QUESTION ^ set(question))))  # as Python writes a set, in a fixed order
            words = f"Missing {{{odd}}} values for {name}"
            yield refusal(18, subject, "lacks a key or has one too many", remedy, f"fact_sheet: {words}\n")
        elif question["key"] != name:
            words = f"key:{question['key']}  does not match JSON key:{name}"
            yield refusal(18, f"{subject}.key", "is not its name", f"Write key: {name}", f"fact_sheet: {words}\n")
        elif question["type"] not in ("checkbox", "text", "select"):
            words = f"{question['type']} is not a valid question type"
            yield refusal(18, f"{subject}.type", words, "Write checkbox, text or select", f"fact_sheet: {words}\n")
        elif isinstance(question["is_required"], bool) or isinstance(question["is_on_leaderboard"], bool):
            yield harm(18, subject, "its flags are not texts, so that they mean nothing", 'Write "true" or "false"')


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
            elif isinstance(leaf, str) and SURROGATE.search(leaf):
                fault, text = "holds half a character (a surrogate)", "invalid input syntax for type json"
                yield crash(18, subject, fault, "Write the whole character", text)


def _check_first_fields(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what the competition's serializer refuses before the phases."""
    config = {"title": None, **bundle.config}
    yield from check_fields("", {"title": BEFORE_PAGES["title"]}, config)
    yield from _check_logo(bundle)
    yield from check_fields("", {"docker_image": BEFORE_PAGES["docker_image"]}, config)
    for subject, page in bundle.mappings("pages"):
        yield from check_fields(subject, PAGE, {"title": None, **page}, "pages: ")
        for problem in _null_problems(bundle, 13, f"{subject}.file", page.get("file"), "pages: content"):
            yield replace(problem, quote=f"{problem.quote}\n")


def _check_last_fields(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what it refuses after the phases, and what fails once the competition was made."""
    for key, field in AFTER_PHASES.items():
        yield from check_fields("", {key: field}, bundle.config)
        if key == "fact_sheet" and not field.answer(bundle.config.get(key)):
            yield from _check_fact_sheet(bundle)
        if key == "description":
            yield from _null_problems(bundle, 12, "terms", bundle.config.get("terms"), "terms")
    sheet = bundle.config.get("fact_sheet")
    if isinstance(sheet, dict) and not AFTER_PHASES["fact_sheet"].answer(sheet):
        yield from _check_stored_fact_sheet(sheet)
    title = bundle.config.get("title")
    if isinstance(title, str) and _LONGEST_TITLE < len(title) <= BEFORE_PAGES["title"].limit:
        text = "value too long for type character varying(255)"
        fault = f"has {len(title)} characters, and the competition stays, half made"
        yield crash(9, "title", fault, "Shorten it", text)


def _check_tasks(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of tasks before their files are looked for."""
    if "tasks" not in bundle.config:
        yield refusal(20, "tasks", "is missing", "Add one task at least", "No tasks listed in this competition")
        return
    yield from check_list(20, bundle, "tasks")
    seen: set[object] = set()
    for subject, task in bundle.mappings("tasks"):
        name = task.get("name") or task.get("key")
        if "index" not in task:
            quote = f"ERROR: No index for task: {name}"
            yield refusal(21, f"{subject}.index", "is missing", "Number the tasks", quote)
            continue
        index = task["index"]
        if isinstance(index, (list, dict)):
            text = f"unhashable type: '{type(index).__name__}'"
            yield crash(21, f"{subject}.index", "is not a number", "Number the tasks", text)
            continue
        if index in seen:
            quote = f"ERROR: Duplicate task indexes. Index: {index}"
            yield refusal(21, f"{subject}.index", f"{index} is another task's too", "Number the tasks", quote)
        seen.add(index)
        if "key" not in task:
            yield from _check_paths(subject, task)


def _check_paths(subject: str, task: dict[Any, Any]) -> BundleProblems:
    for key in TASK_FILES:
        if key in task and not isinstance(task[key], str):
            yield path_crash(24, f"{subject}.{key}", task[key])
        elif key == "scoring_program" and key not in task:
            quote = f'ERROR: Task "{task.get("name") or task["index"]}" does not have a scoring program'
            yield refusal(23, f"{subject}.{key}", "is missing", "Name the zip of the scoring program", quote)


def _check_saved_tasks(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of tasks once their files are saved."""
    for subject, task in bundle.mappings("tasks"):
        if "key" in task:
            yield _check_site_key(f"{subject}.key", task["key"])
            continue
        yield from check_data(bundle, 24, subject, task, TASK_FILES)
        yield from check_fields(subject, TASK, {"name": None, "description": None, **task})


def _check_site_key(subject: str, key: object) -> BundleProblem:
    if not isinstance(key, str):
        text = f"'{type(key).__name__}' object is not subscriptable"
        return crash(21, subject, f"is {key!r:.60}", "Write the key of a task on the site, as a text", text)
    if not is_uuid(key):
        fault, text = f"{key} is no UUID", f"['“{key}” is not a valid UUID.']"
        return crash(21, subject, fault, "Copy the key of a task from the site, or leave the key out", text)
    fault = "is the key of something on the site, which cannot be looked up here"
    return harm(21, subject, fault, "See that it exists")


def _check_solutions(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of solutions before their files are looked for."""
    if not bundle.config.get("solutions"):
        return
    yield from check_list(24, bundle, "solutions")
    indexes = [task.get("index") for _, task in bundle.mappings("tasks")]
    for subject, solution in bundle.mappings("solutions"):
        name, remedy = solution.get("name") or solution.get("key"), "See the documentation of bundles"
        if "index" not in solution:
            yield refusal(24, f"{subject}.index", "is missing", remedy, f"ERROR: No index for solution: {name}")
        elif "tasks" not in solution:
            yield refusal(24, f"{subject}.tasks", "is missing", remedy, f"Could not find tasks for solution: {name}")
        elif not isinstance(solution["tasks"], (list, str, dict)):
            text = f"'{type(solution['tasks']).__name__}' object is not iterable"
            yield crash(24, f"{subject}.tasks", "is not a list", "Write the indexes of tasks as a list", text)
        elif any(index not in indexes for index in solution["tasks"]):
            quote = f"ERROR: Solution: {solution.get('key')} missing task index pointers"
            make = refusal if "key" in solution else crash
            fault = "names a task that there is not"
            yield make(24, f"{subject}.tasks", fault, "Write indexes of tasks", quote if "key" in solution else "'key'")
        elif "key" not in solution and "path" not in solution:
            quote = f'Solution {solution.get("name")} missing "path"'
            yield refusal(24, f"{subject}.path", "is missing", "Name a zip", quote)
        elif "key" not in solution and not isinstance(solution["path"], str):
            yield path_crash(24, f"{subject}.path", solution["path"])


def _check_saved_solutions(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of solutions once their files are saved."""
    for subject, solution in bundle.mappings("solutions"):
        if "key" in solution:
            yield _check_site_key(f"{subject}.key", solution["key"])
        elif isinstance(solution.get("path"), str):
            yield from check_data(bundle, 24, subject, solution, ("path",))
            named = {key: value for key, value in solution.items() if key != "name" or value}
            yield from check_fields(subject, SOLUTION, named)


def _check_phases(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what the unpacker refuses in phases."""
    if "phases" not in bundle.config:
        quote = "Unable to find any phases for this competition"
        yield refusal(30, "phases", "is missing", "Add one phase at least", quote)
        return
    if bundle.config["phases"] in ([], {}, ""):
        yield crash(30, "phases", "is empty", "Add one phase at least", "list index out of range")
        return
    yield from check_list(30, bundle, "phases", "get")
    try:
        sorted(bundle.mappings("phases"), key=lambda entry: entry[1].get("index", 0))
    except TypeError as error:
        remedy = "Write whole numbers everywhere, or leave them out"
        yield crash(30, "phases[0].index", "the phases' indexes cannot be compared", remedy, str(error))
    dates: dict[str, _Moments] = {"start": [], "end": []}
    for subject, phase in sort_phases(bundle):
        for key, moments in dates.items():
            try:
                moments.append(parse_moment(phase.get(key)))
            except (ValueError, OverflowError, TypeError) as error:
                fault = f"is {phase[key]!r:.60}, which is no date"
                remedy = "Write it as '2026-01-31 12:00:00', in quotes"
                yield crash(35, f"{subject}.{key}", fault, remedy, str(error))
        if "tasks" not in phase:
            quote = "Phases must contain at least one task to be valid"
            yield refusal(31, f"{subject}.tasks", "is missing", "List the indexes of tasks", quote)
        for key in [key for key in PHASE_FILES if key in phase and not isinstance(phase[key], str)]:
            yield path_crash(44, f"{subject}.{key}", phase[key])
    if all(len(moments) == len(bundle.mappings("phases")) for moments in dates.values()):
        yield from _check_order(bundle, dates["start"], dates["end"])


def _check_order(bundle: OpenedCompetition, starts: _Moments, ends: _Moments) -> BundleProblems:
    phases = sort_phases(bundle)
    for (subject, _), start in zip(phases, starts, strict=True):
        if start is None:
            yield crash(31, f"{subject}.start", "is missing", "Say when the phase starts, in UTC", _COMPARED)
    for ((subject, before), (next_subject, after)), end, start in zip(pairwise(phases), ends, starts[1:], strict=False):
        name, next_name = before.get("name"), after.get("name")
        if end is None:
            quote = f"Phase: {name} must have an end time because it has a phase after it."
            missing = "is missing, and another phase follows"
            yield refusal(36, f"{subject}.end", missing, "Say when it ends, in UTC", quote)
        elif start is not None and start < end:
            quote = f"Phases must be sequential. Phase: {next_name}starts before Phase: {name} has ended"
            fault = f"starts at {start}, and {name} ends at {end}"
            remedy = "Let phases follow each other, or make two competitions"
            yield refusal(37, f"{next_subject}.start", fault, remedy, quote)
        elif start == end:
            quote = f"Phases dates conflict. Phase: {next_name} should start after Phase: {name} has ended"
            yield refusal(38, f"{next_subject}.start", f"is when {name} ends", "Let it start a second later", quote)


def _check_leaderboards(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what the unpacker and the serializer refuse in leaderboards."""
    if "leaderboards" not in bundle.config:
        quote = "Could not find leaderboards in the competition yaml"
        yield refusal(45, "leaderboards", "is missing", "Add one leaderboard", quote)
        return
    block = bundle.config["leaderboards"]
    if block in ([], {}, ""):
        yield crash(45, "leaderboards", "is empty", "Add one leaderboard", "list index out of range")
    elif not isinstance(block, Iterable):
        text = f"'{type(block).__name__}' object is not iterable"
        yield crash(45, "leaderboards", "is not a list", "Write a list: - title: …", text)
    elif not isinstance(block, list) or not all(isinstance(board, dict) for board in block):
        kind = next(type(board).__name__ for board in block if not isinstance(board, dict))
        words = f"non_field_errors: Invalid data. Expected a dictionary, but got {kind}.\n"
        yield refusal(45, "leaderboards", "holds something else than mappings", "Write - title: …", words)
    for subject, board in bundle.mappings("leaderboards"):
        yield from _check_board(subject, board)


def _check_board(subject: str, board: dict[Any, Any]) -> BundleProblems:
    for key, field in BOARD.items():
        if key == "columns" and isinstance(board.get(key), list):
            yield from _check_columns(f"{subject}.columns", board[key])
        elif key == "columns" and board.get(key) is not None:
            quote = "columns: non_field_errors\n"
            yield refusal(48, f"{subject}.columns", "is not a list", "Write - title: …", quote)
        else:
            yield from check_fields(subject, {key: field}, board)


def _check_columns(subject: str, columns: list[Any]) -> BundleProblems:
    if not columns:
        words = "columns: Leaderboards require at least 1 column\n"
        yield refusal(48, subject, "is empty", "Add a column", words)
    if not all(isinstance(column, dict) for column in columns):
        kind = next(type(column).__name__ for column in columns if not isinstance(column, dict))
        words = f"columns: non_field_errors: Invalid data. Expected a dictionary, but got {kind}.\n\n"
        yield refusal(48, subject, "holds something else than mappings", "Write - title: …", words)
        return
    wrong = [
        problem for index, column in enumerate(columns) for problem in _check_computation(f"{subject}[{index}]", column)
    ]
    yield from wrong or _check_indexes(subject, columns)


def _check_computation(subject: str, column: dict[Any, Any]) -> BundleProblems:
    """Yield the problems of one column; what it is computed from is looked at when its fields are right."""
    problems = [*check_fields(subject, COLUMN, column, "columns: ")]
    yield from problems
    if problems:
        return
    prefix, path = "columns: non_field_errors: ", f"{subject}.computation_indexes"
    indexes = column.get("computation_indexes")
    if "computation_indexes" in column and indexes is not None and not isinstance(indexes, (list, str, dict)):
        text = f"'{type(indexes).__name__}' object is not iterable"
        yield crash(52, path, "is not a list", "List the indexes of columns", text)
    elif isinstance(indexes, str) and not indexes.strip():
        words = "columns: computation_indexes: This field may not be blank.\n\n"
        yield refusal(52, path, "is empty", "List the indexes of columns", words)
    elif "computation" in column and "computation_indexes" not in column:
        words = "Column with computation must have at least 1 column selected for the computation to act upon"
        yield refusal(52, path, "is missing", "List the indexes of columns", f"{prefix}{words}\n\n")
    elif indexes and "computation" not in column:
        words = "Cannot add computation columns without a computation function set"
        yield refusal(52, path, "has no computation", "Add computation: avg", f"{prefix}{words}\n\n")
    elif indexes and str(column["index"]) in [str(index) for index in indexes]:
        words = f"Column with index {column['index']} referencing itself. Cannot self-reference, must be other columns."
        yield refusal(52, path, "names the column itself", "Name others", f"{prefix}{words}\n\n")


def _check_indexes(subject: str, columns: list[dict[Any, Any]]) -> BundleProblems:
    """Yield what columns say that does not go together."""
    indexes = [to_integer(column["index"]) for column in columns]
    if len(set(indexes)) < len(indexes):
        yield refusal(49, subject, "two have one index", "Number them", "columns: Columns must have unique indexes!\n")
    keys = [str(column["key"]).strip() for column in columns]
    if len(set(keys)) < len(keys):
        yield refusal(49, subject, "two have one key", "Rename one", "columns: Columns must have unique keys!\n")
    for number, column in enumerate(columns):
        named = column.get("computation_indexes")
        for index in ",".join(map(str, named)).split(",") if named else []:
            path, remedy = f"{subject}[{number}].computation_indexes", "Name the indexes of columns"
            if not re.fullmatch(r"\s*[-+]?\d+\s*", index):
                words = f"Bad value for index, should be an integer but received: {index}."
                yield refusal(52, path, f"{index!r} is no number", remedy, f"columns: {words}\n")
            elif int(index) not in indexes:
                words = f"Column index {index} does not exist in available indexes {indexes}"
                yield refusal(52, path, f"there is no column {index}", remedy, f"columns: {words}\n")


def _check_saved_phases(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what is wrong with phases once tasks and leaderboards are saved."""
    indexes = {
        task.get("index"): 0 for _, task in bundle.mappings("tasks") if not isinstance(task.get("index"), (list, dict))
    }
    for subject, phase in sort_phases(bundle):
        wanted = phase.get("tasks", [])
        if not isinstance(wanted, (list, str, dict)):
            text = f"'{type(wanted).__name__}' object is not iterable"
            yield crash(32, f"{subject}.tasks", "is not a list", "Write a list: [0]", text)
            wanted = []
        for index in wanted:
            if isinstance(index, (list, dict)) or index not in indexes:
                fault = f"{index!r} is no task's index: {', '.join(map(repr, indexes))}"
                text = f"unhashable type: '{type(index).__name__}'" if isinstance(index, (list, dict)) else repr(index)
                yield crash(32, f"{subject}.tasks", fault, "Write it as the task does", text)
        yield from check_data(bundle, 44, subject, phase, PHASE_FILES)


def _check_phase_fields(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what the serializer refuses in phases."""
    phases = sort_phases(bundle)
    for subject, phase in phases:
        values = {"name": None, "description": None, **phase}
        if not values.get("execution_time_limit"):
            values.pop("execution_time_limit", None)  # the default is taken
        for problem in check_fields(subject, PHASE, values, "phases: "):
            # The unpacker has another name for that key in the serializer.
            quote = problem.quote.replace("phases: max_submissions:", "phases: max_submissions_per_person:")
            yield replace(problem, quote=quote)
    if phases and str(phases[0][1].get("auto_migrate_to_this_phase")).lower() in ("true", "yes", "on", "1", "t", "y"):
        words = "in a competition with one phase" if len(phases) == 1 else "to the first phase of a competition"
        path, quote = f"{phases[0][0]}.auto_migrate_to_this_phase", f"phases: You cannot auto migrate {words}\n"
        yield refusal(42, path, "is set, and no phase comes before", "Remove it", quote)


#: In the unpacker's order: it reads everything, then saves one thing after the other.
_RULES: tuple[Rule, ...] = (
    _check_pages,
    _check_tasks,
    _check_solutions,
    _check_terms_and_picture,
    _check_queue,
    _check_phases,
    _check_leaderboards,
    _check_saved_tasks,
    _check_saved_solutions,
    _check_saved_phases,
    _check_first_fields,
    _check_phase_fields,
    _check_last_fields,
)
