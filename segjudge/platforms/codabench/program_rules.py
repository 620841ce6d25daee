"""Whether scoring programs fit the image that runs them, and the columns that they fill."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Hashable
from typing import Any

from segjudge.platforms.evalai.bundle.problems import BundleProblems, hashable_value, mappings_in

from .data_sets import GivenUpError, names_in, texts_in
from .opened_competition import OpenedCompetition, harmful
from .phase_rules import ordered_phases
from .scoring_program import TASK

_DEFAULT = "codalab/codalab-legacy:py37"
#: The Python of the images that are known, and the packages of all of them beside the standard library.
_IMAGES = {_DEFAULT: (3, 7), "codalab/codalab-legacy:py39": (3, 9), "codalab/codalab-legacy:py312": (3, 12)}
_PACKAGES = {"numpy", "scipy", "PIL", "matplotlib", "pandas", "sklearn", "yaml", "six", "dateutil", "pytz", "requests"}
_PACKAGES |= {"cycler", "kiwisolver", "pyparsing", "packaging", "joblib", "threadpoolctl", "seaborn", "tqdm"}


def program_rules(bundle: OpenedCompetition) -> BundleProblems:
    """Yield where programs do not fit their image, or their own tasks the leaderboard."""
    image = str(bundle.config.get("docker_image", _DEFAULT))
    if image not in _IMAGES:
        found = f"{image} is not known here; the worker pulls it anew for each run"
        remedy = "See that it is in a public registry, and has what the program imports"
        yield harmful(14, "docker_image", found, remedy)
    seen: set[str] = set()
    for where, task in bundle.mappings("tasks"):
        path = bundle.data(task.get("scoring_program"))
        if not path or path in seen:
            continue
        seen.add(path)
        if image in _IMAGES:
            yield from _modules(f"{where}.scoring_program", path, image)
    yield from _columns(bundle)
    yield from _phases(bundle)


def _modules(where: str, path: str, image: str) -> BundleProblems:
    try:
        names = names_in(path)
        texts = texts_in(path, [name for name in names if name.endswith(".py")])
    except GivenUpError:
        return
    own = {part.removesuffix(".py") for name in names for part in name.split("/")}
    version, missing = _IMAGES[image], set()
    for name, text in texts.items():
        try:
            tree = ast.parse(text, feature_version=version)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            found = f"{name} is not Python {'.'.join(map(str, version))} ({error}), which {image} has"
            yield harmful(28, where, found, "Name a newer image in docker_image")
            return
        missing |= _imports(tree) - own
    unknown = sorted(missing - _PACKAGES - set(sys.stdlib_module_names))
    if unknown:
        found = f"imports {', '.join(unknown[:5])}, which {image} lacks"
        yield harmful(28, where, found, "Put it into the program's zip, or name another image")


def _imports(tree: ast.Module) -> set[str]:
    """Return the modules that a file cannot do without: those at its top."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).split(".")[0])
    return found


def _columns(bundle: OpenedCompetition) -> BundleProblems:
    """Yield where tasks that say what they write, as ours do, and the leaderboard differ."""
    boards = bundle.mappings("leaderboards")[:1]
    written = written_columns(bundle)
    if not boards or not written:
        return
    where, board = boards[0]
    columns = mappings_in(board, "columns")
    computed = {hashable_value(column, "key") for column in columns if column.get("computation")}
    keys = {hashable_value(column, "key") for column in columns}
    every = {key for task in written.values() for key in task}
    for key in sorted(map(str, keys - every - computed)):
        yield harmful(55, f"{where}.columns", f"no scoring program writes {key}", "Remove it")
    for key in sorted(every - keys):
        yield harmful(56, f"{where}.columns", f"lacks {key}, which the scoring program writes", "Add it")
    for key in sorted(every & computed):
        yield harmful(57, f"{where}.columns", f"{key} is computed and written as well", "Leave one out")
    first = board.get("primary_index", 0)
    primary = next((hashable_value(column, "key") for column in columns if column.get("index") == first), None)
    for index, task in written.items():
        if primary in every and primary not in task:
            found = f"the task {index} does not write {primary}, so that its submissions rank first"
            yield harmful(53, f"{where}.primary_index", found, "Name a column that every phase fills")


def written_columns(bundle: OpenedCompetition) -> dict[Any, list[str]]:
    """Return the columns that tasks say they write, by index."""
    return {index: columns for index, (columns, _) in _documents(bundle).items()}


def _documents(bundle: OpenedCompetition) -> dict[Any, tuple[list[str], object]]:
    """Return the columns and seconds of tasks, by index; only reference data that was built here says them."""
    found: dict[Any, tuple[list[str], object]] = {}
    for _, task in bundle.mappings("tasks"):
        path = bundle.data(task.get("reference_data"))
        if not path:
            continue
        try:
            document = json.loads(texts_in(path, [TASK])[TASK])
            columns = [str(column["key"]) for column in document["columns"]]
            found[task.get("index")] = columns, document.get("seconds")
        except (GivenUpError, OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _phases(bundle: OpenedCompetition) -> BundleProblems:
    """Yield phases that end their tasks too early, or take over submissions that lack columns."""
    documents, before = _documents(bundle), set[str]()
    for where, phase in ordered_phases(bundle):
        tasks = phase.get("tasks")
        indexes = [index for index in tasks if isinstance(index, Hashable)] if isinstance(tasks, list) else []
        known = [documents[index] for index in indexes if index in documents]
        limit = phase.get("execution_time_limit", 600)
        slowest = max([seconds for _, seconds in known if isinstance(seconds, int)], default=0)
        if isinstance(limit, int) and limit < slowest:
            found = f"is {limit}, and its task may take {slowest} seconds"
            yield harmful(41, f"{where}.execution_time_limit", found, f"Write {slowest + 120}")
        columns = {column for names, _ in known for column in names}
        if phase.get("auto_migrate_to_this_phase") and before and columns != before:
            found = "takes submissions over whose columns are others"
            yield harmful(42, f"{where}.auto_migrate_to_this_phase", found, "Let participants submit again")
        before = columns
