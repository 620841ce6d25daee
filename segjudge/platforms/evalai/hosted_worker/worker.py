"""EvalAI's worker with a built bundle, which is extracted as the server does it."""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.agreement import splits_of
from segjudge.platforms.evalai.bundle.bundle_source import CONFIG_NAMES

from .folder import WorkerFolder
from .interpreter import Interpreter, open_interpreter
from .process import DiedError, UnloadableError, WorkerProcess, WorkerTerms, find_sandbox_for
from .requirements import install_requirements

_CHALLENGE_PK = 1
#: After which a submission is ended; EvalAI has no such limit, which is why one can stay `running` there for ever.
SECONDS = 900.0


@dataclass(frozen=True)
class SubmissionOutcome:
    """The status, streams and numbers of one submission."""

    status: str
    stdout: str
    stderr: str
    #: Split → label → value, if it finished; a host's own `evaluate()` may have put anything in their place.
    result: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] = field(default_factory=dict)
    #: Split → the labels without a value, which our scorers name beside the 0 that a leaderboard shows.
    undefined: dict[str, list[str]] = field(default_factory=dict)


class HostedWorker:
    """A worker process with a bundle loaded."""

    _seconds = SECONDS

    def __init__(self, config: dict[str, Any], folder: WorkerFolder, process: WorkerProcess) -> None:
        self.config, self._folder, self._process = config, folder, process

    def evaluate(self, phase: dict[str, Any], submission: str, number: int) -> SubmissionOutcome:
        """Submit a file to a phase, and return the outcome."""
        request = {
            "annotation": phase["annotation"],
            "submission": self._folder.add_submission(number, submission, os.path.splitext(submission)[1]),
            "phase": phase["codename"],
            "splits": [split.codename for split in splits_of(self.config, phase)],
            "metadata": {"id": number, "status": "running", "participant_team_name": "Host_demo_Team"},
        }
        answer = self._ask(request)
        self._folder.remove_submission(number)
        return SubmissionOutcome(
            answer["status"],
            answer["stdout"],
            answer["stderr"],
            {split: values for entry in answer["result"] or [] for split, values in entry.items()},
            {split: values for entry in answer.get("error") or [] for split, values in entry.items()},
            _read_undefined(answer.get("submission_metadata")),
        )

    def load(self) -> None:
        """Wait until the script is imported; raise `HostError` with the reason if it cannot be."""
        self._ask({"ready": True})

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._process.ask(request, self._seconds)
        except UnloadableError as error:
            raise HostError(f"{error}") from None
        except DiedError as death:
            message = f"on EvalAI every submission would stay `running`, since {death}. Its log:"
            raise HostError(f"{message}\n{self.log()}") from None

    def log(self) -> str:
        return self._process.log()


def _read_undefined(metadata: str | None) -> dict[str, list[str]]:
    """The labels without a value by split; nothing where a host's own `evaluate()` says something else."""
    with suppress(TypeError, ValueError):
        fault = json.loads(metadata or "")
        labels_of = fault.get("undefined") if isinstance(fault, dict) else None
        if isinstance(labels_of, dict) and all(isinstance(labels, list) for labels in labels_of.values()):
            return {split: [str(label) for label in labels] for split, labels in labels_of.items()}
    return {}


@contextmanager
def open_hosted_worker(
    bundle: str, python: str | Interpreter = sys.executable, notice: Callable[[str], object] = lambda _text: None
) -> Iterator[HostedWorker]:
    """Yield a worker with a bundle loaded, which is extracted as the server does it.

    `notice` is given a sentence when a host's packages are installed first.
    """
    python = python if isinstance(python, Interpreter) else open_interpreter(python)
    folder = WorkerFolder()
    with ExitStack() as ends:
        ends.callback(folder.remove)
        config = _extract(bundle, folder)
        box = find_sandbox_for(python)
        try:
            python = install_requirements(python, folder, _CHALLENGE_PK, box, notice)
        except UnloadableError as error:
            raise HostError(str(error)) from None
        process = WorkerProcess(python, folder, _CHALLENGE_PK, WorkerTerms(sandbox_program=box))
        ends.callback(process.close)
        yield HostedWorker(config, folder, process)


def _extract(path: str, folder: WorkerFolder) -> dict[str, Any]:
    """Fill a worker's folder from the config zip; return the config, with the paths of the annotations."""
    import yaml

    with zipfile.ZipFile(path) as bundle:
        name = next(name for name in CONFIG_NAMES if name in bundle.namelist())
        config: dict[str, Any] = yaml.safe_load(bundle.read(name))
        with zipfile.ZipFile(io.BytesIO(bundle.read(config["evaluation_script"]))) as script:
            folder.add_script(_CHALLENGE_PK, script)
        for phase in config["challenge_phases"]:
            name = phase.get("test_annotation_file")
            if name is None:
                raise HostError(f"{phase['codename']}: has no annotation file, without which EvalAI's worker dies")
            phase["annotation"] = folder.annotation_path(_CHALLENGE_PK, phase["id"], os.path.splitext(name)[1])
            Path(phase["annotation"]).write_bytes(bundle.read(name))
    return config
