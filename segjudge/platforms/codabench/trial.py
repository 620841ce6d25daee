"""Trying a competition: its samples, scored as Codabench's worker does, and what goes wrong with them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.problems import BundleProblem, mappings_in

from .compute_worker import FAILED, LIMIT, ComputeWorker, ScoredSubmission, as_zip
from .opened_competition import OpenedCompetition, harm, sort_phases
from .pitfalls import find_written_columns
from .scoring_program import ADDED, TOO_LARGE
from .serializer_fields import TASK_FILES


@dataclass(frozen=True)
class SampleRun:
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
        """Return the paths of a bundle's own solutions by the names of the phases whose tasks they solve."""
        paths: dict[str, list[str]] = {}
        for _, phase in sort_phases(self._bundle):
            for _, solution in self._bundle.mappings("solutions"):
                path = self._bundle.path(str(solution.get("path")))
                if set(phase.get("tasks") or []) & set(solution.get("tasks") or []) and os.path.exists(path):
                    paths.setdefault(str(phase.get("name")), []).append(path)
        return paths

    def run(self, samples: dict[str, list[str]]) -> Iterator[SampleRun]:
        """Score samples, given by the names of their phases."""
        for subject, phase in sort_phases(self._bundle):
            for path in samples.get(str(phase.get("name")), []):
                for index in phase.get("tasks") or []:
                    outcome = self._score(index, phase, path)
                    name = os.path.basename(path.rstrip(os.sep))
                    problems = list(map(self._bundle.locate, self._problems(subject, name, index, outcome)))
                    yield SampleRun(str(phase.get("name")), name, outcome, problems)

    def _score(self, index: object, phase: dict[Any, Any], path: str) -> ScoredSubmission:
        _, task = self._tasks[index]
        named = {key: self._bundle.path(task[key]) for key in TASK_FILES if isinstance(task.get(key), str)}
        if "scoring_program" not in named:
            raise HostError(f"task {index} is one of the site's, whose program is not here")
        with as_zip(path) as zipped:
            return self._worker.score(named, zipped, self.columns, int(phase.get("execution_time_limit") or LIMIT))

    def _problems(self, subject: str, name: str, index: object, outcome: ScoredSubmission) -> Iterator[BundleProblem]:
        task = f"{self._tasks[index][0]}.scoring_program"
        if outcome.status == FAILED:
            if "Time Limit" in outcome.details:
                fault = f"{name} takes longer than {outcome.seconds:.0f} s, and Codabench's worker does not stop it"
                yield harm(64, f"{subject}.execution_time_limit", fault, "Let the program limit itself")
            elif ADDED in outcome.output:
                yield harm(63, task, "writes a file named metadata, which is Codabench's", "Rename it")
            return
        if not isinstance(outcome.written, dict):
            fault = f"{name} is finished without scores: what it writes is no object"
            yield harm(59, task, fault, "Write {key: number}")
            return
        wanted = self._written.get(index, self.columns)
        for key, value in outcome.written.items():
            number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
            if key in self.columns and not abs(number) < TOO_LARGE:
                fault = f"{name}: {key} is {value!r:.40}, which is lost with all after it"
                yield harm(59, task, fault, "Write a number")
            if key not in self.columns:
                yield harm(56, task, f"{name}: {key} is written, and no column has that key", "Add the column")
        missing = [key for key in wanted if key not in outcome.written]
        if missing:
            fault = f"{name}: {', '.join(missing)} is not written, and an empty column may rank first"
            yield harm(60, task, fault, "Write every column, or end with exit code 1")
        if outcome.stderr.strip():
            last = outcome.stderr.strip().splitlines()[-1][:120]
            yield harm(62, task, f"{name}: stderr, which participants read, says {last!r}", "Keep the log elsewhere")
