"""What Codabench refuses in pages, tasks, solutions, terms and picture, in its order."""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from PIL import Image, UnidentifiedImageError

from segjudge.bundle.problems import BundleProblem, BundleProblems

from .opened_competition import OpenedCompetition, crashed, harmful, refused
from .serializer_fields import CHOICE, EMAIL, FLAG, JSON, TEXT, Fields, SerializerField, answers

#: The file keys of a task, in the order in which they are saved.
TASK_FILES = ("ingestion_program", "input_data", "scoring_program", "reference_data")
PAGE = {"title": SerializerField(TEXT, 13, 255, required=True)}
TASK = {
    "name": SerializerField(TEXT, 22, 256, required=True),
    "description": SerializerField(TEXT, 22, null=True, blank=True),
    "ingestion_only_during_scoring": SerializerField(FLAG, 22),
}
SOLUTION = {
    "name": SerializerField(TEXT, 22, 256),
    "description": SerializerField(TEXT, 22, null=True, blank=True),
}
#: The serializer's fields in its order: those before the pages and phases, and those after them.
BEFORE_PAGES = {
    "title": SerializerField(TEXT, 9, 256, required=True),
    "docker_image": SerializerField(TEXT, 14, 128),
}
AFTER_PHASES = {
    "description": SerializerField(TEXT, 9, null=True, blank=True),
    **{
        key: SerializerField(FLAG, 17)
        for key in (
            *("registration_auto_approve", "enable_detailed_results", "show_detailed_results_in_submission_panel"),
            *("show_detailed_results_in_leaderboard", "auto_run_submissions"),
            *("can_participants_make_submissions_public", "make_programs_available", "make_input_data_available"),
        )
    },
    "competition_type": SerializerField(CHOICE, 16, choices=("competition", "benchmark")),
    "fact_sheet": SerializerField(JSON, 18, null=True),
    "reward": SerializerField(TEXT, 16, 256, null=True, blank=True),
    "contact_email": SerializerField(EMAIL, 16, 256, null=True, blank=True),
    "forum_enabled": SerializerField(FLAG, 17),
}
_QUESTION = {"key", "type", "title", "selection", "is_required", "is_on_leaderboard"}
#: By Pillow's names; MPO is a JPEG of several pictures.
_PICTURES = ("jpeg", "mpo", "png", "gif", "webp")
#: The longest title with which the renamed bundle fits into the database, for a user of one character.
_LONGEST_TITLE = 230


def field_problems(where: str, fields: Fields, item: Mapping[Any, Any], prefix: str = "") -> BundleProblems:
    """Yield what a serializer refuses in a mapping; `prefix` is what Codabench puts before the field's name."""
    for key, field, words in answers(fields, item):
        path = f"{where}.{key}".lstrip(".")
        quote = f"{prefix}{key}: {words}\n" + ("\n" if prefix else "")
        found = "is missing" if key not in item else f"is {item[key]!r:.60}"
        yield refused(field.rule, path, f"{found}, and Codabench takes {_kind(field)}", f"Correct {key}", quote)


def _kind(field: SerializerField) -> str:
    if field.choices:
        return " or ".join(field.choices)
    return f"a {field.kind}" + (f" of up to {field.most} characters" if field.most else "")


def listed(rule: int, bundle: OpenedCompetition, key: str, asked: str = "") -> BundleProblems:
    """Yield why a block is not a list of mappings; `asked` is the method of a mapping that the unpacker calls."""
    block, remedy = bundle.config.get(key), "Write a list: - key: value"
    if not isinstance(block, Iterable):
        text = f"'{type(block).__name__}' object is not iterable"
        yield crashed(rule, key, "is not a list", remedy, text)
        return
    odd = [item for item in block if not isinstance(block, list) or not isinstance(item, dict)]
    if odd:
        kind = type(odd[0]).__name__
        text = {
            "str": "string indices must be integers, not 'str'",
            "list": "list indices must be integers or slices, not str",
        }.get(kind, f"'{kind}' object is not subscriptable")
        text = f"'{kind}' object has no attribute '{asked}'" if asked else text
        yield crashed(rule, key, "is not a list of mappings", remedy, text)


def file_problem(bundle: OpenedCompetition, rule: int, where: str, name: object, missing: str) -> BundleProblem | None:
    """Return why the unpacker cannot read a file; `missing` is what it says when there is none."""
    if not isinstance(name, str):
        text = f"join() argument must be str, bytes, or os.PathLike object, not '{type(name).__name__}'"
        return crashed(
            rule, where, f"is {name!r:.60}, not the path of a file", "Write a path, or leave the key out", text
        )
    if not os.path.exists(bundle.path(name)):
        return refused(rule, where, f"{name} is not in the bundle", "Put it there, or correct the path", missing)
    return None


def _text_problems(bundle: OpenedCompetition, rule: int, where: str, name: object, empty: str) -> BundleProblems:
    problem = file_problem(bundle, rule, where, name, f"Unable to find page: {name}")
    if problem:
        yield problem
        return
    path = bundle.path(str(name))
    if not os.path.isfile(path):
        text = f"[Errno 21] Is a directory: '<temporary folder>/{name}'"
        yield crashed(rule, where, f"{name} is a folder", "Name a file", text)
        return
    try:
        with open(path, encoding="utf-8") as file:
            if not file.read():
                yield refused(rule, where, f"{name} is empty", "Write something", empty)
    except UnicodeDecodeError as error:
        yield crashed(rule, where, f"{name} is not UTF-8", "Save it as UTF-8", str(error))


def pages(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of the pages' files."""
    yield from listed(13, bundle, "pages")
    for where, page in bundle.mappings("pages"):
        if "file" not in page:
            yield crashed(13, f"{where}.file", "is missing", "Name a file", "'file'")
            continue
        name = page["file"]
        empty = f"Page '{name}' is empty, it must contain content."
        yield from _text_problems(bundle, 13, f"{where}.file", name, empty)


def tasks(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of tasks before their files are looked for."""
    if "tasks" not in bundle.config:
        yield refused(20, "tasks", "is missing", "Add one task at least", "No tasks listed in this competition")
        return
    yield from listed(20, bundle, "tasks")
    seen: set[object] = set()
    for where, task in bundle.mappings("tasks"):
        name = task.get("name") or task.get("key")
        if "index" not in task:
            quote = f"ERROR: No index for task: {name}"
            yield refused(21, f"{where}.index", "is missing", "Number the tasks", quote)
            continue
        index = task["index"]
        if isinstance(index, (list, dict)):
            text = f"unhashable type: '{type(index).__name__}'"
            yield crashed(21, f"{where}.index", "is not a number", "Number the tasks", text)
            continue
        if index in seen:
            quote = f"ERROR: Duplicate task indexes. Index: {index}"
            yield refused(21, f"{where}.index", f"{index} is another task's too", "Number the tasks", quote)
        seen.add(index)
        if "key" not in task:
            yield from _paths(bundle, where, task)


def _paths(bundle: OpenedCompetition, where: str, task: dict[Any, Any]) -> BundleProblems:
    for key in TASK_FILES:
        if key in task and not isinstance(task[key], str):
            problem = file_problem(bundle, 24, f"{where}.{key}", task[key], "")
            yield from [problem] if problem else []
        elif key == "scoring_program" and key not in task:
            quote = f'ERROR: Task "{task.get("name") or task["index"]}" does not have a scoring program'
            yield refused(23, f"{where}.{key}", "is missing", "Name the zip of the scoring program", quote)


def data_problem(bundle: OpenedCompetition, rule: int, where: str, name: str, kind: str) -> BundleProblem | None:
    """Return why a data set is not found: neither as a file nor, as far as can be known here, on the site."""
    if os.path.exists(bundle.path(name)):
        return None
    try:
        uuid.UUID(name)
    except ValueError:
        quote = f'Cannot find dataset: "{name}"'
        return refused(rule, where, f"{name} is not in the bundle", "Build it, or correct the path", quote)
    found = f"is the key of a {kind} on the site, which cannot be looked up here"
    return harmful(rule, where, found, "See that it exists there")


def saved_tasks(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of tasks once their files are saved."""
    for where, task in bundle.mappings("tasks"):
        if "key" in task:
            yield from _site_key(f"{where}.key", task["key"])
            continue
        for key in [key for key in TASK_FILES if isinstance(task.get(key), str)]:
            problem = data_problem(bundle, 24, f"{where}.{key}", task[key], key)
            yield from [problem] if problem else []
        yield from field_problems(where, TASK, {"name": None, "description": None, **task})


def _site_key(where: str, key: object) -> BundleProblems:
    if not isinstance(key, str):
        text = f"'{type(key).__name__}' object is not subscriptable"
        yield crashed(21, where, f"is {key!r:.60}", "Write the key of a task on the site, as a text", text)
        return
    try:
        uuid.UUID(key)
    except ValueError:
        found, text = f"{key} is no UUID", f"['“{key}” is not a valid UUID.']"
        yield crashed(21, where, found, "Copy the key of a task from the site, or leave the key out", text)
        return
    yield harmful(
        21, where, "is the key of something on the site, which cannot be looked up here", "See that it exists"
    )


def solutions(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of solutions before their files are looked for."""
    if not bundle.config.get("solutions"):
        return
    yield from listed(24, bundle, "solutions")
    known = [task.get("index") for _, task in bundle.mappings("tasks")]
    for where, solution in bundle.mappings("solutions"):
        name, remedy = solution.get("name") or solution.get("key"), "See the documentation of bundles"
        if "index" not in solution:
            yield refused(24, f"{where}.index", "is missing", remedy, f"ERROR: No index for solution: {name}")
        elif "tasks" not in solution:
            yield refused(24, f"{where}.tasks", "is missing", remedy, f"Could not find tasks for solution: {name}")
        elif not isinstance(solution["tasks"], (list, str, dict)):
            text = f"'{type(solution['tasks']).__name__}' object is not iterable"
            yield crashed(24, f"{where}.tasks", "is not a list", "Write the indexes of tasks as a list", text)
        elif any(index not in known for index in solution["tasks"]):
            quote = f"ERROR: Solution: {solution.get('key')} missing task index pointers"
            make = refused if "key" in solution else crashed
            found = "names a task that there is not"
            yield make(24, f"{where}.tasks", found, "Write indexes of tasks", quote if "key" in solution else "'key'")
        elif "key" not in solution and "path" not in solution:
            quote = f'Solution {solution.get("name")} missing "path"'
            yield refused(24, f"{where}.path", "is missing", "Name a zip", quote)
        elif "key" not in solution and not isinstance(solution["path"], str):
            problem = file_problem(bundle, 24, f"{where}.path", solution["path"], "")
            yield from [problem] if problem else []


def saved_solutions(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of solutions once their files are saved."""
    for where, solution in bundle.mappings("solutions"):
        if "key" in solution:
            yield from _site_key(f"{where}.key", solution["key"])
        elif isinstance(solution.get("path"), str):
            problem = data_problem(bundle, 24, f"{where}.path", solution["path"], "solution")
            yield from [problem] if problem else []
            named = {key: value for key, value in solution.items() if key != "name" or value}
            yield from field_problems(where, SOLUTION, named)


def terms_and_picture(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of the terms and of the picture's path."""
    if "terms" in bundle.config:
        name = bundle.config["terms"]
        yield from _text_problems(bundle, 12, "terms", name, f"{name} is empty, it must contain content.")
    else:
        quote = "A file containing the terms of this competition has not been supplied in the required location"
        yield refused(12, "terms", "is missing", "Name a text file", quote)
    if "image" not in bundle.config:
        quote = "An image for this competition could not be found in the yaml"
        yield refused(10, "image", "is missing", "Name a picture", quote)
        return
    name = bundle.config["image"]
    problem = file_problem(bundle, 10, "image", name, f"Unable to find image: {name}")
    if problem:
        yield problem
    elif not os.path.isfile(bundle.path(name)):
        text = f"[Errno 21] Is a directory: '<temporary folder>/{name}'"
        yield crashed(10, "image", f"{name} is a folder", "Name a picture", text)


def queue(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of the queue that can be known here."""
    name = bundle.config.get("queue")
    if not name:
        return
    try:
        uuid.UUID(str(name))
    except ValueError:
        found = f"{name!r:.60} is not the UUID of a queue"
        yield crashed(
            15, "queue", found, "Copy the vhost from the page of queues", f"['“{name}” is not a valid UUID.']"
        )
        return
    yield harmful(15, "queue", "is on the site and cannot be looked up here", "See that it is there, and yours to use")


def logo(bundle: OpenedCompetition) -> BundleProblems:
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
                yield refused(10, "image", f"{name} is {kind}", remedy, quote)
                return
            width, height = picture.size
            small = picture.resize((100, int(100 / width * height)))
            small.save(io.BytesIO(), "PNG")
    except OSError as error:
        if isinstance(error, UnidentifiedImageError):
            yield refused(10, "image", f"{name} is not a picture", remedy, "logo: Please upload a valid image.\n")
        else:
            yield crashed(10, "image", f"{name} cannot be made smaller", remedy, str(error))
    except (ValueError, Image.DecompressionBombError) as error:
        yield crashed(11, "image", f"{name} is more than a hundred times as wide as high", "Cut it", str(error))


def fact_sheet(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what is wrong with the questions."""
    sheet = bundle.config.get("fact_sheet")
    if not sheet:
        return
    if not isinstance(sheet, dict):
        yield refused(18, "fact_sheet", "is not a mapping", "Write name: {…}", "fact_sheet: Not valid JSON\n")
        return
    for name, question in sheet.items():
        where, remedy = f"fact_sheet.{name}", f"Write exactly {', '.join(sorted(_QUESTION))}"
        if not isinstance(question, dict):
            text = f"'{type(question).__name__}' object has no attribute 'keys'"
            yield crashed(18, where, "is not a mapping", remedy, text)
        elif _QUESTION ^ set(question):
            words = f"Missing {_QUESTION ^ set(question)} values for {name}"
            yield refused(18, where, "lacks a key or has one too many", remedy, f"fact_sheet: {words}\n")
        elif question["key"] != name:
            words = f"key:{question['key']}  does not match JSON key:{name}"
            yield refused(18, f"{where}.key", "is not its name", f"Write key: {name}", f"fact_sheet: {words}\n")
        elif question["type"] not in ("checkbox", "text", "select"):
            words = f"{question['type']} is not a valid question type"
            yield refused(18, f"{where}.type", words, "Write checkbox, text or select", f"fact_sheet: {words}\n")
        elif isinstance(question["is_required"], bool) or isinstance(question["is_on_leaderboard"], bool):
            yield harmful(18, where, "its flags are not texts, so that they mean nothing", 'Write "true" or "false"')


def top(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what the competition's serializer refuses before the phases."""
    config = {"title": None, **bundle.config}
    yield from field_problems("", {"title": BEFORE_PAGES["title"]}, config)
    yield from logo(bundle)
    yield from field_problems("", {"docker_image": BEFORE_PAGES["docker_image"]}, config)
    for where, page in bundle.mappings("pages"):
        yield from field_problems(where, PAGE, {"title": None, **page}, "pages: ")


def rest(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what it refuses after the phases, and what fails once the competition was made."""
    for key, field in AFTER_PHASES.items():
        yield from field_problems("", {key: field}, bundle.config)
        if key == "fact_sheet" and not field.answer(bundle.config.get(key)):
            yield from fact_sheet(bundle)
    title = bundle.config.get("title")
    if isinstance(title, str) and _LONGEST_TITLE < len(title) <= BEFORE_PAGES["title"].most:
        text = "value too long for type character varying(255)"
        yield crashed(
            9, "title", f"has {len(title)} characters, and the competition stays, half made", "Shorten it", text
        )
