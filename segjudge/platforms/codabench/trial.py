"""The trial of a competition: samples scored as by Codabench's worker, and their problems.

The worker is simulated without Docker: its folders, variables, time limit and answers.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter
from segjudge.platforms.evalai.hosted_worker.process import disk_bounds
from segjudge.platforms.rules.problems import BundleProblem, mappings_in, warning
from segjudge.system.bounds import TreeBounds, missing_bounds, run_bounded
from segjudge.system.files import temporary_folder
from segjudge.system.processes import clean_environment
from segjudge.system.sandbox import MEMORY, SCORER_PROCESSES, SCORER_TMPFS, scorer_command

from .opened_competition import (
    METADATA,
    OpenedCompetition,
    WorkerFailureError,
    find_command,
    list_names,
    read_texts,
    unpack,
)
from .pitfalls import find_written_columns
from .scoring_program import ADDED, LOG, TOO_LARGE
from .serializer_fields import TASK_FILES

FINISHED, FAILED = "Finished", "Failed"
#: The default seconds for a run.
_LIMIT = 600
#: The container folder with both folders.
_APP = "/app"
_FOLDERS = ("program", "input", "output", "shared", "input_data")
_VARIABLES = (
    ("$input", "/app/input"),
    ("$output", "/app/output"),
    ("$program", "/app/program"),
    ("$ingestion_program", "/app/program"),
    ("$hidden", "/app/input/ref"),
    ("$shared", "/app/shared"),
    ("$submission_program", "/app/ingested_program"),
    ("$tmp", "/app/output"),
    ("$predictions", "/app/input/res"),
)
#: The text that the worker adds to a submission that ran no program.
_ADDED_TEXT = "elapsedTime: null\nexitCode: null\ningestionElapsedTime: null\ningestionExitCode: null\n"
_OUTPUT_BYTES, _PAGE_BYTES = 1 << 20, 16 << 20


@dataclass(frozen=True)
class ScoredSubmission:
    """A scored submission as Codabench would show it."""

    status: str
    #: Codabench's message, if it failed.
    details: str = ""
    stdout: str = ""
    stderr: str = ""
    #: The program's output, before the site examined it.
    written: Any = None
    #: Column → value, as the site stores it.
    scores: Mapping[str, Decimal] = field(default_factory=dict)
    #: The names of the output's files.
    output: tuple[str, ...] = ()
    seconds: float = 0.0
    #: The log that participants do not see.
    log: str = ""
    #: The detailed results.
    page: str = ""


class ComputeWorker:
    """A local stand-in for Codabench's compute worker, sandboxed if possible."""

    def __init__(self, python: Interpreter, *, required: bool = False) -> None:
        self._python, self._box = python, python.find_sandbox(required=required)

    def missing_bounds(self) -> list[str]:
        """Return a sentence for each bound that this machine cannot enforce."""
        return missing_bounds(self._box)

    @property
    def is_boxed(self) -> bool:
        """Return whether there is a sandbox, which also cuts the network."""
        return self._box is not None

    def score(
        self, task: Mapping[str, str], submission: str, columns: list[str], seconds: int = _LIMIT
    ) -> ScoredSubmission:
        """Score a zip by a task, given as its file keys and paths."""
        if task.get("ingestion_program"):
            raise HostError("tasks with an ingestion program run participants' code, which is not supported here")
        with temporary_folder("segjudge-") as folder:
            try:
                self._fill_folders(task, submission, folder)
                return self._run(find_command(task["scoring_program"]), folder, columns, seconds)
            except WorkerFailureError as error:
                return ScoredSubmission(FAILED, str(error))

    def _fill_folders(self, task: Mapping[str, str], submission: str, folder: str) -> None:
        """Make the folders of the scoring step; for results, the prediction step only adds a file."""
        results = os.path.join(folder, "input", "res")
        unpack(submission, results)
        if not os.listdir(results) or any(os.path.exists(os.path.join(results, name)) for name in METADATA):
            # Such a file makes it a program, whose results are not there.
            raise WorkerFailureError("Bad or empty zip file")
        with open(os.path.join(results, ADDED), "w", encoding="ascii") as file:
            file.write(_ADDED_TEXT)
        folders = {"scoring_program": "program", "reference_data": "input/ref", "input_data": "input_data"}
        for key, name in folders.items():
            if task.get(key):
                unpack(task[key], os.path.join(folder, name))
        for name in ("output", "shared", "tmp"):
            os.makedirs(os.path.join(folder, name))

    def _run(self, command: str, folder: str, columns: list[str], seconds: int) -> ScoredSubmission:
        for variable, path in _VARIABLES:
            command = command.replace(variable, path)
        arguments, started = shlex.split(command), time.monotonic()
        if not arguments:  # the real worker continues, with no results
            raise WorkerFailureError("Could not find scores file, did the scoring program output it?")
        if os.path.basename(arguments[0]) in ("python", "python3"):
            arguments[0] = self._python.path
        program, arguments, environment = self._list_arguments(arguments, folder)
        bounds = TreeBounds(MEMORY, SCORER_PROCESSES, SCORER_TMPFS if self.is_boxed else (), *disk_bounds(folder))
        try:
            run = run_bounded(arguments, bounds, seconds, _OUTPUT_BYTES, environment=environment, folder=program)
        except OSError as error:
            raise WorkerFailureError(f"Child task failed or non-zero return code ({error})") from None
        output, log = os.path.join(folder, "output"), os.path.join(folder, "shared", LOG)
        outcome = ScoredSubmission(
            FINISHED, "", run.output, run.errors,
            output=tuple(sorted(os.listdir(output))), seconds=time.monotonic() - started, log=_read(log),
            page=_read(os.path.join(output, "detailed_results.html"), _PAGE_BYTES),
        )  # fmt: skip
        try:
            written = _read_result(outcome, run.code, output, seconds, run.excess)
        except WorkerFailureError as error:
            return replace(outcome, status=FAILED, details=str(error))
        return replace(outcome, written=written, scores=store_scores(written, columns))

    def _list_arguments(self, arguments: list[str], folder: str) -> tuple[str, list[str], dict[str, str]]:
        """Return the program's folder, sandboxed command and environment variables."""
        variables = {"PYTHONUNBUFFERED": "1", "http_proxy": "", "https_proxy": ""}
        program = os.path.join(folder, "program")
        if self._box is None:
            arguments = [word.replace(f"{_APP}/", f"{folder}/") for word in arguments]
            log = os.path.join(folder, "shared", LOG)
            return program, arguments, clean_environment(HOME=folder, **variables, **{LOG: log})
        names = [name for name in _FOLDERS if os.path.isdir(os.path.join(folder, name))]
        # First, since the interpreter may lie in it.
        mounts = [(os.path.join(folder, "tmp"), "/tmp")]  # noqa: S108 - inside the sandbox
        mounts += [(os.path.join(folder, name), f"{_APP}/{name}") for name in names]
        boxed = scorer_command(
            self._box, arguments, self._python.folders, mounts, (), f"{_APP}/program", python=self._python.path
        )
        return program, boxed, clean_environment(HOME="/tmp", **variables, **{LOG: f"{_APP}/shared/{LOG}"})  # noqa: S108


def _read(path: str, limit: int = _OUTPUT_BYTES) -> str:
    if not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(limit)


def _read_result(outcome: ScoredSubmission, code: int | None, output: str, seconds: int, exceeded_limit: str) -> Any:
    """Return the scores of a finished run; `code` is None after a timeout."""
    if exceeded_limit:
        raise WorkerFailureError(f"The scoring program was killed: {exceeded_limit}")
    if code is None:
        raise WorkerFailureError(f"Execution Time Limit exceeded. Limit was {seconds} seconds")
    if code:
        raise WorkerFailureError("Child task failed or non-zero return code")
    written = _scores_in(output)
    if ADDED in outcome.output:
        raise WorkerFailureError("Error, the output directory already contains a metadata file.")
    return written


def _scores_in(output: str) -> Any:
    path = os.path.join(output, "scores.json")
    if os.path.exists(path):
        try:
            return json.loads(_read(path))
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", error)
            raise WorkerFailureError(
                f"Could not decode scores json properly, it contains an error.\n{reason}"
            ) from None
    path = os.path.join(output, "scores.txt")
    if os.path.exists(path):
        import yaml

        try:
            return yaml.safe_load(_read(path))
        except (yaml.YAMLError, ValueError, RecursionError):
            return None
    raise WorkerFailureError("Could not find scores file, did the scoring program output it?")


def store_scores(written: object, columns: list[str]) -> dict[str, Decimal]:
    """Return the stored scores: up to the first invalid value; empty for invalid JSON."""
    values: dict[str, Decimal] = {}
    if not isinstance(written, dict) or any(isinstance(v, float) and not math.isfinite(v) for v in written.values()):
        return values
    for key, value in written.items():
        if key not in columns:
            continue
        try:
            number = Decimal(str(int(value) if isinstance(value, bool) else value))
        except (ArithmeticError, ValueError, TypeError):
            break
        if not number.is_finite() or abs(number) >= TOO_LARGE:
            break
        values[key] = number.quantize(Decimal(1).scaleb(-10))
    return values


@contextmanager
def as_zip(path: str) -> Iterator[str]:
    """Yield a submission as a zip, the only form that Codabench accepts."""
    if zipfile.is_zipfile(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        zipped = os.path.join(folder, "submission.zip")
        if os.path.isdir(path):
            shutil.make_archive(zipped.removesuffix(".zip"), "zip", path)
        else:
            with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.write(path, os.path.basename(path))
        yield zipped


# ── the samples of a competition ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _SampleRun:
    """One sample, scored by one phase."""

    phase: str
    sample: str
    outcome: ScoredSubmission
    problems: list[BundleProblem]

    def __str__(self) -> str:
        return f"{self.phase} ← {self.sample}"


class CompetitionTrial:
    """A competition whose samples are scored on this machine."""

    def __init__(self, bundle: OpenedCompetition, worker: ComputeWorker) -> None:
        self._bundle, self._worker = bundle, worker
        boards = bundle.mappings("leaderboards")
        columns = mappings_in(boards[0][1], "columns") if boards else []
        #: The columns that programs fill, in their order.
        self.columns = [str(column.get("key")) for column in columns if not column.get("computation")]
        self.ascending = [str(column.get("key")) for column in columns if column.get("sorting") == "asc"]
        self._tasks = {task.get("index"): (subject, task) for subject, task in bundle.mappings("tasks")}
        self._written = find_written_columns(bundle)

    def solutions(self) -> dict[str, list[str]]:
        """Return the bundle's solutions by phase name."""
        paths: dict[str, list[str]] = {}
        for _, phase in self._bundle.sort_phases():
            for _, solution in self._bundle.mappings("solutions"):
                path = self._bundle.path(str(solution.get("path")))
                if set(phase.get("tasks") or []) & set(solution.get("tasks") or []) and os.path.exists(path):
                    paths.setdefault(str(phase.get("name")), []).append(path)
        return paths

    def run(self, samples: dict[str, list[str]]) -> Iterator[_SampleRun]:
        """Score samples, given by the names of their phases."""
        for subject, phase in self._bundle.sort_phases():
            for path in samples.get(str(phase.get("name")), []):
                for index in phase.get("tasks") or []:
                    outcome = self._score(index, phase, path)
                    name = os.path.basename(path.rstrip(os.sep))
                    problems = list(map(self._bundle.locate, self._problems(subject, name, index, outcome)))
                    yield _SampleRun(str(phase.get("name")), name, outcome, problems)

    def _score(self, index: object, phase: dict[Any, Any], path: str) -> ScoredSubmission:
        _, task = self._tasks[index]
        paths = {key: self._bundle.path(task[key]) for key in TASK_FILES if isinstance(task.get(key), str)}
        if "scoring_program" not in paths:
            raise HostError(f"task {index} belongs to the site; its program is not in the bundle")
        with as_zip(path) as zipped:
            return self._worker.score(paths, zipped, self.columns, int(phase.get("execution_time_limit") or _LIMIT))

    def _names_app(self, index: object) -> bool:
        """Return whether another's program names the container's folder in its files."""
        if index in self._written:  # ours takes its folders from the command
            return False
        path = self._bundle.path(self._tasks[index][1]["scoring_program"])
        with suppress(WorkerFailureError, OSError):
            names = [name for name in list_names(path) if name.endswith((".py", ".sh"))]
            return any(f"{_APP}/" in text for text in read_texts(path, names).values())
        return False

    def _problems(self, subject: str, name: str, index: object, outcome: ScoredSubmission) -> Iterator[BundleProblem]:
        task = f"{self._tasks[index][0]}.scoring_program"
        if outcome.status == FAILED:
            if "Time Limit" in outcome.details:
                fault = f"{name} takes longer than {outcome.seconds:.0f} s, but Codabench's worker does not stop it"
                yield warning(f"{subject}.execution_time_limit", fault, "Let the program limit itself", 64)
            elif ADDED in outcome.output:
                yield warning(task, "writes a file named metadata, a name that Codabench uses itself", "Rename it", 63)
            elif not self._worker.is_boxed and self._names_app(index):
                fault = f"{name} may fail because the program names {_APP}, a folder that exists only in the sandbox"
                yield warning(task, fault, "Install bubblewrap (apt-get install bubblewrap), and run it again")
            return
        if not isinstance(outcome.written, dict):
            fault = f"{name} finishes without scores: its output is not an object"
            yield warning(task, fault, "Write {key: number}", 59)
            return
        expected_keys = self._written.get(index, self.columns)
        for key, value in outcome.written.items():
            if key in self.columns and not store_scores({key: value}, self.columns):
                fault = f"{name}: {key} is {value!r:.40}, which is lost, with all later values"
                yield warning(task, fault, "Write a number", 59)
            if key not in self.columns:
                yield warning(task, f"{name}: {key} is written, but no column has that key", "Add the column", 56)
        missing = [key for key in expected_keys if key not in outcome.written]
        if missing:
            fault = f"{name}: {', '.join(missing)} is not written; an empty column may rank first"
            yield warning(task, fault, "Write every column, or end with exit code 1", 60)
        if outcome.stderr.strip():
            last_line = outcome.stderr.strip().splitlines()[-1][:120]
            yield warning(
                task, f"{name}: stderr, which participants read, says {last_line!r}", "Keep the log elsewhere", 62
            )
