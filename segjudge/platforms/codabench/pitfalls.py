"""Rules for settings that Codabench accepts, but that break later or are probably not intended."""

from __future__ import annotations

import datetime
import difflib
import json
import os
import re
import shlex
import sys
import warnings
from collections.abc import Hashable, Iterator
from contextlib import suppress
from typing import Any

from dateutil import parser  # type: ignore[import-untyped]

from segjudge.platforms.imports import parse_modules
from segjudge.platforms.rules.problems import BundleProblems, hashable_value, mappings_in, warning
from segjudge.platforms.rules.rule_rows import WARNS, Entry, RuleRow, Verdict, all_of, entries, first_of, is_absent

from . import scoring_program
from .opened_competition import (
    CAP,
    METADATA,
    TITLE,
    OpenedCompetition,
    WorkerFailureError,
    can_be_path,
    find_command,
    list_names,
    read_texts,
)
from .serializer_fields import AFTER_PHASES, BEFORE_PAGES, BOARD, COLUMN, PHASE, PHASE_FILES, TASK, TASK_FILES

_Entry = Entry[OpenedCompetition]
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
#: Keys that hosts copy from some guide, and what to do instead.
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
#: The Python of the known images, and their packages besides the standard library.
_IMAGES = {_DEFAULT: (3, 7), "codalab/codalab-legacy:py39": (3, 9), "codalab/codalab-legacy:py312": (3, 12)}
_PACKAGES = {"numpy", "scipy", "PIL", "matplotlib", "pandas", "sklearn", "yaml", "six", "dateutil", "pytz", "requests"}
_PACKAGES |= {"cycler", "kiwisolver", "pyparsing", "packaging", "joblib", "threadpoolctl", "seaborn", "tqdm"}


def check_pitfalls(bundle: OpenedCompetition, path: str) -> BundleProblems:
    """Yield warnings: problems that appear later, although Codabench accepts the bundle."""
    top = Entry(bundle, "", bundle.config)
    for check in (_check_keys, _SETTINGS, _check_paths, _check_tasks, _check_programs, _check_phases, _check_boards):
        yield from check(top)
    if os.path.isfile(path) and os.path.getsize(path) > _LARGE:
        fault = f"has {os.path.getsize(path) >> 20} MB; unpacking takes a long time, and an account may hold 15 GB"
        yield warning(os.path.basename(path), fault, "Remove files that are not needed", 7)
    names = [item["path"] for _, item in bundle.mappings("solutions") if isinstance(item.get("path"), str)]
    solutions = map(bundle.path, names)
    if sum(os.path.getsize(solution) for solution in solutions if os.path.isfile(solution)) > _LARGE_SOLUTIONS:
        yield warning("solutions", "are large, so unpacking takes a long time", "Put samples into starting_kit", 7)


def _list_blocks(bundle: OpenedCompetition) -> Iterator[tuple[str, str, dict[Any, Any]]]:
    yield "", "", bundle.config
    for key in ("pages", "tasks", "solutions", "phases", "leaderboards"):
        for subject, item in bundle.mappings(key):
            yield key, subject, item
            for index, column in enumerate(mappings_in(item, "columns") if key == "leaderboards" else []):
                yield "columns", f"{subject}.columns[{index}]", column


def _check_keys(top: _Entry) -> BundleProblems:
    for key in top.bundle.lines.duplicate_keys:
        yield warning(key, "occurs twice; the last one counts", "Remove one", 8)
    for block, subject, item in _list_blocks(top.bundle):
        for key in [str(key) for key in item if key not in _KNOWN[block]]:
            near = difflib.get_close_matches(key, _KNOWN[block], 1)
            hint = _UNREAD.get(key) or (f"Did you mean {near[0]}?" if near else "Remove it")
            yield warning(f"{subject}.{key}".lstrip("."), "is not used", hint.rstrip("."), 8)


def _is_long_title(entry: _Entry) -> Verdict:
    length = len(str(entry.value or ""))
    return {"length": length} if length > TITLE else None


_SETTINGS = all_of(
    RuleRow(9, "title", _is_long_title, "has {length} characters; with a long user name, creation fails halfway",
        f"Keep it below {TITLE + 1}", WARNS),
    RuleRow(14, "docker_image", is_absent,
        "is missing, so programs run in codalab/codalab-legacy:py37, which has Python 3.7",
        "Write docker_image: codalab/codalab-legacy:py312, or your own", WARNS),
    RuleRow(19, "registration_auto_approve", is_absent, "is missing, so you must approve each participant by hand",
        "Write it, true or false", WARNS),
)  # fmt: skip


def _leads_out(entry: _Entry) -> Verdict:
    return isinstance(entry.value, str) and can_be_path(entry.value) and not entry.bundle.is_inside(entry.value)


def _is_not_a_zip(entry: _Entry) -> Verdict:
    path = entry.bundle.data(entry.value)
    try:
        if path:
            list_names(path)
    except WorkerFailureError:
        return True
    return False


_PATH = RuleRow(5, "", _leads_out, "{value} leads out of the bundle, to the site's files", "Put it into the bundle",
    WARNS)  # fmt: skip
_DATA = first_of(
    RuleRow(6, "", lambda entry: os.path.isdir(entry.bundle.data(entry.value)),
        "is a folder. Unless the path ends in a slash, the site zips it into a place shared by all uploads",
        "Ship a finished zip", WARNS),
    RuleRow(6, "", _is_not_a_zip,
        "is not a zip; every submission would fail with 'Bad or empty zip file' after 200 seconds", "Zip it", WARNS),
)  # fmt: skip


def _check_paths(top: _Entry) -> BundleProblems:
    texts = [top.child("image"), top.child("terms"), *(entry.child("file") for entry in entries(top.bundle, "pages"))]
    blocks = (("tasks", TASK_FILES), ("phases", PHASE_FILES), ("solutions", ("path",)))
    data = [entry.child(key) for block, keys in blocks for entry in entries(top.bundle, block) for key in keys]
    yield from (problem for entry in texts + data for problem in _PATH(entry))
    yield from (problem for entry in data for problem in _DATA(entry))


# ── tasks and their programs ────────────────────────────────────────────────────────────────────────────────────────


def _check_tasks(top: _Entry) -> BundleProblems:
    used = [index for phase in entries(top.bundle, "phases") for index in _as_list(phase.item.get("tasks"))]
    for entry in entries(top.bundle, "tasks"):
        if "index" in entry.item and entry.item["index"] not in used:
            yield warning(entry.path, "is in no phase", "Name its index in a phase, or remove it", 27)
        for key in ("scoring_program", "reference_data"):
            path = top.bundle.data(entry.item.get(key))
            if path:
                with suppress(WorkerFailureError):  # already reported for its path
                    yield from _check_content(f"{entry.path}.{key}", key, path)


def _check_content(subject: str, key: str, path: str) -> BundleProblems:
    """Yield problems of the content of a scoring program or reference data."""
    names = list_names(path)
    tops = {name.split("/")[0] for name in names}
    if names and len(tops) == 1 and all("/" in name for name in names):
        fault = f"everything in it is in the folder {tops.pop()}"
        yield warning(subject, fault, "Zip the files themselves, not the folder around them", 29)
    if key != "scoring_program":
        return
    command = find_command(path)
    if not command:
        what = "no command" if any(name in names for name in METADATA) else f"no {METADATA[0]} at its root"
        fault = f"has {what}: nothing runs, and each submission fails with 'Could not find scores file…'"
        yield warning(subject, fault, "Write metadata.yaml with command: python3 FILE.py", 25)
        return
    if re.search(r"[|;<>*]|&&|\$\(|`", command):
        yield warning(
            subject, f"its command needs a shell, but Codabench starts none: {command}", "Put it into a script", 26
        )
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        yield warning(subject, f"its command cannot be split into words ({error})", "Correct its quotes", 26)
        return
    scripts = [
        re.sub(r"^(\$program|/app/program)/", "", argument)
        for argument in arguments
        if re.search(r"\.(py|sh)$", argument)
    ]
    for script in [script for script in scripts[:1] if not script.startswith("/")]:
        if os.path.normpath(script) not in names:
            yield warning(subject, f"its command runs {script}, which is not in it", "Correct the command", 26)


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# ── phases and leaderboards ─────────────────────────────────────────────────────────────────────────────────────────


def _has_zone(entry: _Entry) -> Verdict:
    is_date, is_text = isinstance(entry.value, datetime.datetime), isinstance(entry.value, str)
    zone = entry.value.tzinfo if is_date else is_text and _ZONE.search(entry.value)
    return bool(zone) and not str(entry.value).endswith(("Z", "UTC", "+00:00"))


_PHASE = all_of(
    RuleRow(32, "tasks", lambda entry: entry.value == [], "is empty, so nothing can be scored", "Name a task", WARNS),
    RuleRow(43, "tasks", lambda entry: len(_as_list(entry.value)) > 1,
        "has several tasks, and the leaderboard shows the last score, or sums",
        "Score everything in one task, in separate columns", WARNS),
    *(
        row
        for key in ("start", "end")
        for row in (
            RuleRow(33, key,
                lambda entry: isinstance(entry.value, datetime.datetime) and entry.value.time() != datetime.time(),
                "loses its time of day, because it is not in quotes", "Write '{value}'", WARNS),
            RuleRow(34, key, _has_zone, "its time zone is ignored, not converted", "Write the time in UTC", WARNS),
            RuleRow(35, key, lambda entry: bool(isinstance(entry.value, str) and _AMBIGUOUS.match(entry.value)),
                "{value} is read month first", "Write year-month-day", WARNS),
        )
    ),
)  # fmt: skip


_LIMITS = all_of(
    *(
        RuleRow(40, key, is_absent, f"is missing, which means {default}", "Write it, null for no limit", WARNS)
        for key, default in (("max_submissions_per_day", 5), ("max_submissions", 100))
    ),
    RuleRow(41, "execution_time_limit",
        lambda entry: isinstance(entry.value, int) and entry.value > CAP and not entry.bundle.config.get("queue"),
        f"is {{value}}, but the public queue allows {CAP} seconds", "Name your own queue, or lower it", WARNS),
)  # fmt: skip


def _check_phases(top: _Entry) -> BundleProblems:
    today, ends = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None), []
    for subject, phase in top.bundle.sort_phases():
        entry = Entry(top.bundle, subject, phase)
        yield from _PHASE(entry)
        try:
            start, end = parse_moment(phase.get("start")), parse_moment(phase.get("end"))
        except (ValueError, OverflowError, TypeError):
            continue
        ends.append(end)
        if start and end and end <= start:
            fault = "is not after its start, so the phase accepts nothing"
            yield warning(f"{subject}.end", fault, "Correct it", 39)
        yield from _LIMITS(entry)
    if ends and all(end is not None and end < today for end in ends):
        yield warning("phases", "have all ended", "Correct their dates", 39)


def _is_hidden(entry: _Entry) -> Verdict:
    return entry.value in (True, "true", "yes")


def _shows_no_primary(entry: _Entry) -> Verdict:
    columns, primary = mappings_in(entry.item, "columns"), entry.item.get("primary_index", 0)
    is_shown = any(column.get("index") == primary and not column.get("hidden") for column in columns)
    return {"primary": primary} if columns and not is_shown else None


def _shows_no_column(entry: _Entry) -> Verdict:
    columns = mappings_in(entry.item, "columns")
    return bool(columns) and all(column.get("hidden") for column in columns)


_BOARD = all_of(
    RuleRow(47, "submission_rule", lambda entry: entry.item.get(entry.key, "Add") == "Add",
        "is Add, so the leaderboard stays empty until participants add submissions",
        "Write Force_Best, as EvalAI does", WARNS),
    RuleRow(58, "hidden", _is_hidden, "hides it only on the page; the API shows it to anybody",
        "Do not rely on it to keep scores secret", WARNS),
    RuleRow(53, "primary_index", _shows_no_primary,
        "no visible column has the index {primary}, so the leaderboard breaks",
        "Name the index of a visible column", WARNS),
    RuleRow(54, "columns", _shows_no_column, "are all hidden", "Show one", WARNS),
)  # fmt: skip
_COLUMN = all_of(
    RuleRow(51, "precision", lambda entry: isinstance(entry.value, int) and not 0 <= entry.value <= 10,
        "is {value}; ten decimals are stored", "Write 0 to 10", WARNS),
    RuleRow(58, "hidden", _is_hidden, "hides it only on the page", "Remove secret columns", WARNS),
)  # fmt: skip


def _check_boards(top: _Entry) -> BundleProblems:
    boards = [*entries(top.bundle, "leaderboards")]
    for entry in boards[1:]:
        fault = "belongs to no phase: only the first leaderboard counts"
        yield warning(entry.path, fault, "Create a separate competition for it", 45)
    for entry in boards[:1]:
        yield from _BOARD(entry)
        for index, column in enumerate(mappings_in(entry.item, "columns")):
            yield from _COLUMN(Entry(top.bundle, f"{entry.path}.columns[{index}]", column))


def _check_programs(top: _Entry) -> BundleProblems:
    """Yield programs that do not fit their image, and tasks that do not fit the leaderboard."""
    bundle = top.bundle
    image = str(bundle.config.get("docker_image", _DEFAULT))
    if image not in _IMAGES:
        fault = f"{image} is unknown; the worker pulls it again for each run"
        remedy = "Make sure that it is in a public registry and has the program's imports"
        yield warning("docker_image", fault, remedy, 14)
    else:
        programs: dict[str, str] = {}
        for subject, task in bundle.mappings("tasks"):
            programs.setdefault(bundle.data(task.get("scoring_program")), subject)
        for path, subject in programs.items():
            if path:
                yield from _check_modules(f"{subject}.scoring_program", path, image)
    yield from _check_columns(bundle)
    yield from _check_task_limits(bundle)


def _check_modules(subject: str, path: str, image: str) -> BundleProblems:
    try:
        names = list_names(path)
        texts = read_texts(path, [name for name in names if name.endswith(".py")])
    except WorkerFailureError:
        return
    uploaded_names = {step.removesuffix(".py") for name in names for step in name.split("/")}
    version, missing = _IMAGES[image], set()
    for name, module in parse_modules(texts, version).items():
        if module.error:
            fault = f"{name} is not Python {'.'.join(map(str, version))} ({module.error}), which {image} has"
            yield warning(subject, fault, "Name a newer image in docker_image", 28)
            return
        missing |= {imported.package for imported in module.imports if imported.is_certain} - uploaded_names
    unknown = sorted(missing - {""} - _PACKAGES - set(sys.stdlib_module_names))
    if unknown:
        fault = f"imports {', '.join(unknown[:5])}, which {image} lacks"
        yield warning(subject, fault, "Put it into the program's zip, or name another image", 28)


def _check_columns(bundle: OpenedCompetition) -> BundleProblems:
    """Yield differences between the leaderboard and tasks that declare their output, as ours do."""
    boards = bundle.mappings("leaderboards")[:1]
    written = find_written_columns(bundle)
    if not boards or not written:
        return
    subject, board = boards[0]
    columns = mappings_in(board, "columns")
    computed = {hashable_value(column, "key") for column in columns if column.get("computation")}
    keys = {hashable_value(column, "key") for column in columns}
    written_keys = {key for task in written.values() for key in task}
    for key in sorted(map(str, keys - written_keys - computed)):
        yield warning(f"{subject}.columns", f"no scoring program writes {key}", "Remove it", 55)
    for key in sorted(written_keys - keys):
        yield warning(f"{subject}.columns", f"lacks {key}, which the scoring program writes", "Add it", 56)
    for key in sorted(written_keys & computed):
        yield warning(f"{subject}.columns", f"{key} is both computed and written", "Remove one of them", 57)
    primary_index = board.get("primary_index", 0)
    primary = next((hashable_value(column, "key") for column in columns if column.get("index") == primary_index), None)
    for index, task in written.items():
        if primary in written_keys and primary not in task:
            fault = f"the task {index} does not write {primary}, so its submissions rank first"
            yield warning(f"{subject}.primary_index", fault, "Name a column that every phase fills", 53)


def find_written_columns(bundle: OpenedCompetition) -> dict[Any, list[str]]:
    """Return the columns that each task declares, by its index."""
    return {index: columns for index, (columns, _) in _read_documents(bundle).items()}


def _read_documents(bundle: OpenedCompetition) -> dict[Any, tuple[list[str], object]]:
    """Return columns and seconds by task, read from reference data that Segjudge built."""
    documents: dict[Any, tuple[list[str], object]] = {}
    for _, task in bundle.mappings("tasks"):
        path = bundle.data(task.get("reference_data"))
        if not path:
            continue
        try:
            document = json.loads(read_texts(path, [scoring_program.TASK])[scoring_program.TASK])
            columns = [str(column["key"]) for column in document["columns"]]
            documents[task.get("index")] = columns, document.get("seconds")
        except (WorkerFailureError, OSError, ValueError, KeyError, TypeError):
            continue
    return documents


def _check_task_limits(bundle: OpenedCompetition) -> BundleProblems:
    """Yield phases that end tasks too early, or continue with submissions that lack columns."""
    documents, before = _read_documents(bundle), set[str]()
    for subject, phase in bundle.sort_phases():
        tasks = phase.get("tasks")
        indexes = [index for index in tasks if isinstance(index, Hashable)] if isinstance(tasks, list) else []
        known_tasks = [documents[index] for index in indexes if index in documents]
        limit = phase.get("execution_time_limit", 600)
        slowest = max([seconds for _, seconds in known_tasks if isinstance(seconds, int)], default=0)
        if isinstance(limit, int) and limit < slowest:
            fault = f"is {limit}, but its task may take {slowest} seconds"
            yield warning(f"{subject}.execution_time_limit", fault, f"Write {slowest + 120}", 41)
        columns = {column for names, _ in known_tasks for column in names}
        if phase.get("auto_migrate_to_this_phase") and before and columns != before:
            fault = "carries over submissions whose columns differ"
            yield warning(f"{subject}.auto_migrate_to_this_phase", fault, "Let participants submit again", 42)
        before = columns


def parse_moment(value: object) -> datetime.datetime | None:
    """Return a date as the unpacker reads it; raises its errors."""
    if not value:
        return None
    if isinstance(value, datetime.date):  # a date with a time is a date too, so the time is lost
        return datetime.datetime.combine(value, datetime.time())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", parser.UnknownTimezoneWarning)  # dropped zones are reported
        date: datetime.datetime = parser.parse(value)
    return date.replace(tzinfo=None)
