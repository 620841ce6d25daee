"""What Codabench refuses in tasks and solutions."""

from __future__ import annotations

from typing import Any

from segjudge.platforms.evalai.bundle.problems import BundleProblem, BundleProblems

from .opened_competition import OpenedCompetition, crashed, data_problems, harmful, is_uuid, listed, not_a_path, refused
from .serializer_fields import FLAG, TEXT, SerializerField, field_problems

#: The file keys of a task, in the order in which they are saved.
TASK_FILES = ("ingestion_program", "input_data", "scoring_program", "reference_data")
TASK = {
    "name": SerializerField(TEXT, 22, 256, required=True),
    "description": SerializerField(TEXT, 22, null=True, blank=True),
    "ingestion_only_during_scoring": SerializerField(FLAG, 22),
}
SOLUTION = {
    "name": SerializerField(TEXT, 22, 256),
    "description": SerializerField(TEXT, 22, null=True, blank=True),
}


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
            yield from _paths(where, task)


def _paths(where: str, task: dict[Any, Any]) -> BundleProblems:
    for key in TASK_FILES:
        if key in task and not isinstance(task[key], str):
            yield not_a_path(24, f"{where}.{key}", task[key])
        elif key == "scoring_program" and key not in task:
            quote = f'ERROR: Task "{task.get("name") or task["index"]}" does not have a scoring program'
            yield refused(23, f"{where}.{key}", "is missing", "Name the zip of the scoring program", quote)


def saved_tasks(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of tasks once their files are saved."""
    for where, task in bundle.mappings("tasks"):
        if "key" in task:
            yield _site_key(f"{where}.key", task["key"])
            continue
        yield from data_problems(bundle, 24, where, task, TASK_FILES)
        yield from field_problems(where, TASK, {"name": None, "description": None, **task})


def _site_key(where: str, key: object) -> BundleProblem:
    if not isinstance(key, str):
        text = f"'{type(key).__name__}' object is not subscriptable"
        return crashed(21, where, f"is {key!r:.60}", "Write the key of a task on the site, as a text", text)
    if not is_uuid(key):
        found, text = f"{key} is no UUID", f"['“{key}” is not a valid UUID.']"
        return crashed(21, where, found, "Copy the key of a task from the site, or leave the key out", text)
    found = "is the key of something on the site, which cannot be looked up here"
    return harmful(21, where, found, "See that it exists")


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
            yield not_a_path(24, f"{where}.path", solution["path"])


def saved_solutions(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of solutions once their files are saved."""
    for where, solution in bundle.mappings("solutions"):
        if "key" in solution:
            yield _site_key(f"{where}.key", solution["key"])
        elif isinstance(solution.get("path"), str):
            yield from data_problems(bundle, 24, where, solution, ("path",))
            named = {key: value for key, value in solution.items() if key != "name" or value}
            yield from field_problems(where, SOLUTION, named)
