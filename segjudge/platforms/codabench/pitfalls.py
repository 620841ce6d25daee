"""Rules for what Codabench accepts although it breaks later, or is probably not intended."""

from __future__ import annotations

import ast
import datetime
import difflib
import json
import os
import re
import shlex
import sys
from collections.abc import Hashable, Iterator
from contextlib import suppress
from typing import Any

from dateutil import parser  # type: ignore[import-untyped]

from segjudge.platforms.evalai.bundle.problems import BundleProblems, hashable_value, mappings_in

from . import scoring_program
from .competition import CAP, TITLE
from .opened_competition import (
    METADATA,
    GivenUpError,
    OpenedCompetition,
    can_be_path,
    find_command,
    harm,
    list_names,
    read_texts,
    sort_phases,
)
from .serializer_fields import AFTER_PHASES, BEFORE_PAGES, BOARD, COLUMN, PHASE, PHASE_FILES, TASK, TASK_FILES

#: The keys that are read in each block.
_TOP = ("version", "image", "terms", "pages", "queue", "tasks", "phases", "leaderboards", "solutions")
_KNOWN = {
    "": {*BEFORE_PAGES, *AFTER_PHASES, *_TOP},
    "pages": {"title", "file"},
    "tasks": {"index", "key", *TASK, *TASK_FILES},
    "solutions": {"index", "key", "tasks", "path", "name", "description"},
    "phases": {"index", "start", "end", "tasks", *PHASE, *PHASE_FILES},
    "leaderboards": {*BOARD},
    "columns": {*COLUMN, "computation_indexes"},
}
#: Keys that hosts write because some guide has them, and what to do instead.
_UNREAD = {
    "leaderboard": "Write leaderboards, a list",
    "sort": "Write sorting: asc or desc",
    "rank": "Write primary_index in the leaderboard",
    "max_submissions_per_person": "Write max_submissions",
    "accepts_only_result_submissions": "Remove it",
    "published": "Publish it on its page",
    "collaborators": "Enter them in the editor",
    "allow_robot_submissions": "Set it in the editor",
    "whitelist_emails": "Enter them in the editor",
}
_LARGE, _LARGE_SOLUTIONS = 500 << 20, 100 << 20
_AMBIGUOUS = re.compile(r"\s*(0?[1-9]|1[0-2])[/.-](0?[1-9]|1[0-2])[/.-]\d{4}")
_ZONE = re.compile(r"\d\s*(?:[+-]\d\d:?\d\d|Z|[A-Z]{3,4})\s*$")
_DEFAULT = "codalab/codalab-legacy:py37"
#: The Python of the images that are known, and the packages of all of them beside the standard library.
_IMAGES = {_DEFAULT: (3, 7), "codalab/codalab-legacy:py39": (3, 9), "codalab/codalab-legacy:py312": (3, 12)}
_PACKAGES = {"numpy", "scipy", "PIL", "matplotlib", "pandas", "sklearn", "yaml", "six", "dateutil", "pytz", "requests"}
_PACKAGES |= {"cycler", "kiwisolver", "pyparsing", "packaging", "joblib", "threadpoolctl", "seaborn", "tqdm"}


def check_pitfalls(bundle: OpenedCompetition, path: str) -> BundleProblems:
    """Yield warnings: problems that appear later, although Codabench accepts the bundle."""
    for rule in (_keys, _top, _paths, _task_rules, _program_rules, _phase_rules, _board_rules):
        yield from rule(bundle)
    if os.path.isfile(path) and os.path.getsize(path) > _LARGE:
        fault = f"has {os.path.getsize(path) >> 20} MB; unpacking takes long, and an account may hold 15 GB"
        yield harm(7, os.path.basename(path), fault, "Leave out what is not needed")
    named = [item["path"] for _, item in bundle.mappings("solutions") if isinstance(item.get("path"), str)]
    solutions = map(bundle.path, named)
    if sum(os.path.getsize(solution) for solution in solutions if os.path.isfile(solution)) > _LARGE_SOLUTIONS:
        yield harm(7, "solutions", "are large, and unpacking takes long", "Put samples into starting_kit")


def _blocks(bundle: OpenedCompetition) -> Iterator[tuple[str, str, dict[Any, Any]]]:
    yield "", "", bundle.config
    for key in ("pages", "tasks", "solutions", "phases", "leaderboards"):
        for subject, item in bundle.mappings(key):
            yield key, subject, item
            for index, column in enumerate(mappings_in(item, "columns") if key == "leaderboards" else []):
                yield "columns", f"{subject}.columns[{index}]", column


def _keys(bundle: OpenedCompetition) -> BundleProblems:
    for key in bundle.lines.duplicate_keys:
        yield harm(8, key, "is there twice, and the last one counts", "Remove one")
    for block, subject, item in _blocks(bundle):
        for key in [str(key) for key in item if key not in _KNOWN[block]]:
            near = difflib.get_close_matches(key, _KNOWN[block], 1)
            hint = _UNREAD.get(key) or (f"Did you mean {near[0]}?" if near else "Remove it")
            yield harm(8, f"{subject}.{key}".lstrip("."), "is read by nobody", hint.rstrip("."))


def _top(bundle: OpenedCompetition) -> BundleProblems:
    config = bundle.config
    title = str(config.get("title") or "")
    if len(title) > TITLE:
        fault = f"has {len(title)} characters; with a long user name the competition is left half made"
        yield harm(9, "title", fault, f"Keep it below {TITLE + 1}")
    if "docker_image" not in config:
        fault = "is missing, so that programs run in codalab/codalab-legacy:py37, which has Python 3.7"
        yield harm(14, "docker_image", fault, "Write docker_image: codalab/codalab-legacy:py312, or your own")
    if "registration_auto_approve" not in config:
        fault = "is missing, so that you approve each participant by hand"
        yield harm(19, "registration_auto_approve", fault, "Write it, true or false")


def _paths(bundle: OpenedCompetition) -> BundleProblems:
    named = [(key, bundle.config.get(key)) for key in ("image", "terms")]
    named += [(f"{subject}.file", item.get("file")) for subject, item in bundle.mappings("pages")]
    data = [(f"{subject}.{key}", item.get(key)) for subject, item in bundle.mappings("tasks") for key in TASK_FILES]
    data += [(f"{subject}.{key}", item.get(key)) for subject, item in bundle.mappings("phases") for key in PHASE_FILES]
    data += [(f"{subject}.path", item.get("path")) for subject, item in bundle.mappings("solutions")]
    for subject, name in named + data:
        if isinstance(name, str) and can_be_path(name) and not bundle.is_inside(name):
            yield harm(5, subject, f"{name} leads out of the bundle, to files of the site", "Put it into the bundle")
    for subject, name in data:
        path = bundle.data(name)
        if not path:
            continue
        if os.path.isdir(path):
            fault = "is a folder, which the site zips; without a final slash, into a place that all uploads share"
            yield harm(6, subject, fault, "Ship a finished zip")
            continue
        try:
            list_names(path)
        except GivenUpError:
            fault = "is no zip; every submission would fail with 'Bad or empty zip file' after 200 seconds"
            yield harm(6, subject, fault, "Zip it")


def _task_rules(bundle: OpenedCompetition) -> BundleProblems:
    used = [index for _, phase in bundle.mappings("phases") for index in _as_list(phase.get("tasks"))]
    for subject, task in bundle.mappings("tasks"):
        if "index" in task and task["index"] not in used:
            yield harm(27, subject, "is in no phase", "Name its index in a phase, or remove it")
        for key in ("scoring_program", "reference_data"):
            path = bundle.data(task.get(key))
            if path:
                with suppress(GivenUpError):  # said of its path already
                    yield from _data(f"{subject}.{key}", key, path)


def _data(subject: str, key: str, path: str) -> BundleProblems:
    """Yield what is wrong with the content of a scoring program or of reference data."""
    names = list_names(path)
    tops = {name.split("/")[0] for name in names}
    if names and len(tops) == 1 and all("/" in name for name in names):
        fault = f"everything in it is in the folder {tops.pop()}"
        yield harm(29, subject, fault, "Zip the files themselves, not the folder around them")
    if key != "scoring_program":
        return
    command = find_command(path)
    if not command:
        what = "no command" if any(name in names for name in METADATA) else f"no {METADATA[0]} at its root"
        fault = f"has {what}: nothing runs, and each submission fails with 'Could not find scores file…'"
        yield harm(25, subject, fault, "Write metadata.yaml with command: python3 FILE.py")
        return
    if re.search(r"[|;<>*]|&&|\$\(|`", command):
        yield harm(26, subject, f"its command needs a shell, and there is none: {command}", "Put it into a script")
    try:
        words = shlex.split(command)
    except ValueError as error:
        yield harm(26, subject, f"its command cannot be split into words ({error})", "Correct its quotes")
        return
    scripts = [re.sub(r"^(\$program|/app/program)/", "", word) for word in words if re.search(r"\.(py|sh)$", word)]
    for script in [script for script in scripts[:1] if not script.startswith("/")]:
        if os.path.normpath(script) not in names:
            yield harm(26, subject, f"its command runs {script}, which is not in it", "Correct the command")


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _phase_rules(bundle: OpenedCompetition) -> BundleProblems:
    today, ends = datetime.datetime.now(datetime.UTC).replace(tzinfo=None), []
    for subject, phase in sort_phases(bundle):
        if phase.get("tasks") == []:
            yield harm(32, f"{subject}.tasks", "is empty, so that nothing can be scored", "Name a task")
        if len(_as_list(phase.get("tasks"))) > 1:
            fault = "has several, and the leaderboard shows what was scored last, or sums"
            yield harm(43, f"{subject}.tasks", fault, "Score all in one task, in columns of their own")
        yield from _dates(subject, phase)
        try:
            start, end = parse_moment(phase.get("start")), parse_moment(phase.get("end"))
        except (ValueError, OverflowError, TypeError):
            continue
        ends.append(end)
        if start and end and end <= start:
            yield harm(39, f"{subject}.end", "is not after its start, so that the phase takes nothing", "Correct it")
        yield from _limits(bundle, subject, phase)
    if ends and all(end is not None and end < today for end in ends):
        yield harm(39, "phases", "have all ended", "Correct their dates")


def _dates(subject: str, phase: dict[Any, Any]) -> BundleProblems:
    for key in ("start", "end"):
        value, path = phase.get(key), f"{subject}.{key}"
        if isinstance(value, datetime.datetime) and value.time() != datetime.time():
            yield harm(33, path, "loses its time, since it is not in quotes", f"Write '{value}'")
        zoned = value.tzinfo if isinstance(value, datetime.datetime) else isinstance(value, str) and _ZONE.search(value)
        if zoned and not str(value).endswith(("Z", "UTC", "+00:00")):
            yield harm(34, path, "its zone is dropped, not converted", "Write the time in UTC")
        if isinstance(value, str) and _AMBIGUOUS.match(value):
            yield harm(35, path, f"{value} is read with the month first", "Write year-month-day")


def _limits(bundle: OpenedCompetition, subject: str, phase: dict[Any, Any]) -> BundleProblems:
    for key, default in (("max_submissions_per_day", 5), ("max_submissions", 100)):
        if key not in phase:
            yield harm(40, f"{subject}.{key}", f"is missing, which means {default}", "Write it, null for no limit")
    limit = phase.get("execution_time_limit")
    if isinstance(limit, int) and limit > CAP and not bundle.config.get("queue"):
        fault = f"is {limit}, and the public queue allows {CAP} seconds"
        yield harm(41, f"{subject}.execution_time_limit", fault, "Name a queue of your own, or write less")


def _board_rules(bundle: OpenedCompetition) -> BundleProblems:
    boards = bundle.mappings("leaderboards")
    for subject, _ in boards[1:]:
        fault = "belongs to no phase: only the first leaderboard counts"
        yield harm(45, subject, fault, "Make a competition of its own")
    for subject, board in boards[:1]:
        if board.get("submission_rule", "Add") == "Add":
            fault = "is Add, so that the board stays empty until participants put something there"
            yield harm(47, f"{subject}.submission_rule", fault, "Write Force_Best, which is EvalAI's way")
        if board.get("hidden") in (True, "true", "yes"):
            fault = "hides it on the page alone; the API gives it to anybody"
            yield harm(58, f"{subject}.hidden", fault, "Do not let scores be a secret")
        columns = mappings_in(board, "columns")
        primary = board.get("primary_index", 0)
        if columns and not any(column.get("index") == primary and not column.get("hidden") for column in columns):
            fault = f"no visible column has the index {primary}, and the board breaks"
            yield harm(53, f"{subject}.primary_index", fault, "Name the index of a visible column")
        if columns and all(column.get("hidden") for column in columns):
            yield harm(54, f"{subject}.columns", "are all hidden", "Show one")
        for index, column in enumerate(columns):
            yield from _column(f"{subject}.columns[{index}]", column)


def _column(subject: str, column: dict[Any, Any]) -> BundleProblems:
    precision = column.get("precision", 2)
    if isinstance(precision, int) and not 0 <= precision <= 10:
        yield harm(51, f"{subject}.precision", f"is {precision}; ten places are stored", "Write 0 to 10")
    if column.get("hidden") in (True, "true", "yes"):
        yield harm(58, f"{subject}.hidden", "hides it on the page alone", "Leave out what is a secret")


def _program_rules(bundle: OpenedCompetition) -> BundleProblems:
    """Yield where programs do not fit their image, or their own tasks the leaderboard."""
    image = str(bundle.config.get("docker_image", _DEFAULT))
    if image not in _IMAGES:
        fault = f"{image} is not known here; the worker pulls it anew for each run"
        remedy = "See that it is in a public registry, and has what the program imports"
        yield harm(14, "docker_image", fault, remedy)
    seen: set[str] = set()
    for subject, task in bundle.mappings("tasks"):
        path = bundle.data(task.get("scoring_program"))
        if not path or path in seen:
            continue
        seen.add(path)
        if image in _IMAGES:
            yield from _module_rules(f"{subject}.scoring_program", path, image)
    yield from _column_rules(bundle)
    yield from _task_limits(bundle)


def _module_rules(subject: str, path: str, image: str) -> BundleProblems:
    try:
        names = list_names(path)
        texts = read_texts(path, [name for name in names if name.endswith(".py")])
    except GivenUpError:
        return
    own = {step.removesuffix(".py") for name in names for step in name.split("/")}
    version, missing = _IMAGES[image], set()
    for name, text in texts.items():
        try:
            tree = ast.parse(text, feature_version=version)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            fault = f"{name} is not Python {'.'.join(map(str, version))} ({error}), which {image} has"
            yield harm(28, subject, fault, "Name a newer image in docker_image")
            return
        missing |= _imports(tree) - own
    unknown = sorted(missing - _PACKAGES - set(sys.stdlib_module_names))
    if unknown:
        fault = f"imports {', '.join(unknown[:5])}, which {image} lacks"
        yield harm(28, subject, fault, "Put it into the program's zip, or name another image")


def _imports(tree: ast.Module) -> set[str]:
    """Return the modules that a file cannot do without: those at its top."""
    modules: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules.add(str(node.module).split(".")[0])
    return modules


def _column_rules(bundle: OpenedCompetition) -> BundleProblems:
    """Yield where tasks that say what they write, as ours do, and the leaderboard differ."""
    boards = bundle.mappings("leaderboards")[:1]
    written = find_written_columns(bundle)
    if not boards or not written:
        return
    subject, board = boards[0]
    columns = mappings_in(board, "columns")
    computed = {hashable_value(column, "key") for column in columns if column.get("computation")}
    keys = {hashable_value(column, "key") for column in columns}
    every = {key for task in written.values() for key in task}
    for key in sorted(map(str, keys - every - computed)):
        yield harm(55, f"{subject}.columns", f"no scoring program writes {key}", "Remove it")
    for key in sorted(every - keys):
        yield harm(56, f"{subject}.columns", f"lacks {key}, which the scoring program writes", "Add it")
    for key in sorted(every & computed):
        yield harm(57, f"{subject}.columns", f"{key} is computed and written as well", "Leave one out")
    primary_index = board.get("primary_index", 0)
    primary = next((hashable_value(column, "key") for column in columns if column.get("index") == primary_index), None)
    for index, task in written.items():
        if primary in every and primary not in task:
            fault = f"the task {index} does not write {primary}, so that its submissions rank first"
            yield harm(53, f"{subject}.primary_index", fault, "Name a column that every phase fills")


def find_written_columns(bundle: OpenedCompetition) -> dict[Any, list[str]]:
    """Return the columns that tasks say they write, by index."""
    return {index: columns for index, (columns, _) in _documents(bundle).items()}


def _documents(bundle: OpenedCompetition) -> dict[Any, tuple[list[str], object]]:
    """Return the columns and seconds of tasks, by index; only reference data that was built here says them."""
    documents: dict[Any, tuple[list[str], object]] = {}
    for _, task in bundle.mappings("tasks"):
        path = bundle.data(task.get("reference_data"))
        if not path:
            continue
        try:
            document = json.loads(read_texts(path, [scoring_program.TASK])[scoring_program.TASK])
            columns = [str(column["key"]) for column in document["columns"]]
            documents[task.get("index")] = columns, document.get("seconds")
        except (GivenUpError, OSError, ValueError, KeyError, TypeError):
            continue
    return documents


def _task_limits(bundle: OpenedCompetition) -> BundleProblems:
    """Yield phases that end their tasks too early, or take over submissions that lack columns."""
    documents, before = _documents(bundle), set[str]()
    for subject, phase in sort_phases(bundle):
        tasks = phase.get("tasks")
        indexes = [index for index in tasks if isinstance(index, Hashable)] if isinstance(tasks, list) else []
        known_tasks = [documents[index] for index in indexes if index in documents]
        limit = phase.get("execution_time_limit", 600)
        slowest = max([seconds for _, seconds in known_tasks if isinstance(seconds, int)], default=0)
        if isinstance(limit, int) and limit < slowest:
            fault = f"is {limit}, and its task may take {slowest} seconds"
            yield harm(41, f"{subject}.execution_time_limit", fault, f"Write {slowest + 120}")
        columns = {column for names, _ in known_tasks for column in names}
        if phase.get("auto_migrate_to_this_phase") and before and columns != before:
            fault = "takes submissions over whose columns are others"
            yield harm(42, f"{subject}.auto_migrate_to_this_phase", fault, "Let participants submit again")
        before = columns


def parse_moment(value: object) -> datetime.datetime | None:
    """Return a date as the unpacker understands it; raises what it raises."""
    if not value:
        return None
    if isinstance(value, datetime.date):  # a date with a time is one too, so that the time is lost
        return datetime.datetime.combine(value, datetime.time())
    date: datetime.datetime = parser.parse(value)
    return date.replace(tzinfo=None)
