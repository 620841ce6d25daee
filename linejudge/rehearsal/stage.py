"""Play EvalAI's worker with a built bundle: extract it as the server does, and have it score."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
import uuid
import zipfile
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import yaml

from evaluation_script.errors import HostError

from .process import DiedError, Process

CHALLENGE_PK = 1


@dataclass(frozen=True)
class Outcome:
    """What became of one submission."""

    status: str
    stdout: str
    stderr: str
    #: Split → label → value, when it finished.
    result: dict[str, dict[str, float]] = field(default_factory=dict)
    error: dict[str, dict[str, float]] = field(default_factory=dict)


class Stage:
    """A worker process with the bundle loaded; use it as a context manager."""

    def __init__(self, bundle: str, python: str = sys.executable) -> None:
        self._folder = tempfile.mkdtemp(prefix="linejudge-stage-")
        self._bundle, self._python = bundle, python
        self._worker: Process | None = None
        self.config: dict[str, Any] = {}

    def __enter__(self) -> Self:
        try:
            self._extract()
            self._worker = Process(self._python, self._folder, CHALLENGE_PK)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _extract(self) -> None:
        """The folders of EvalAI's worker, filled from the config zip."""
        challenge = os.path.join(self._folder, "compute", "challenge_data", f"challenge_{CHALLENGE_PK}")
        os.makedirs(challenge)
        open(os.path.join(os.path.dirname(challenge), "__init__.py"), "w").close()
        with zipfile.ZipFile(self._bundle) as bundle:
            self.config = yaml.safe_load(bundle.read("challenge_config.yaml"))
            with zipfile.ZipFile(io.BytesIO(bundle.read(self.config["evaluation_script"]))) as script:
                script.extractall(challenge)  # ours, made a moment ago
            for phase in self.config["challenge_phases"]:
                data = bundle.read(phase["test_annotation_file"])
                folder = os.path.join(challenge, "phase_data", f"phase_{phase['id']}")
                os.makedirs(folder)
                phase["annotation"] = self._stored(folder, phase["test_annotation_file"], data)

    @staticmethod
    def _stored(folder: str, name: str, data: bytes) -> str:
        """A file under the name that EvalAI gives it: a uuid and the last ending."""
        path = os.path.join(folder, f"{uuid.uuid4()}{os.path.splitext(name)[1]}")
        with open(path, "wb") as file:
            file.write(data)
        return path

    def splits(self, phase: dict[str, Any]) -> list[str]:
        """Codenames of the splits that a phase shows."""
        names = {split["id"]: split["codename"] for split in self.config["dataset_splits"]}
        return [
            names[row["dataset_split_id"]]
            for row in self.config["challenge_phase_splits"]
            if row["challenge_phase_id"] == phase["id"]
        ]

    def evaluate(self, phase: dict[str, Any], submission: str, number: int) -> Outcome:
        """Submit a file to a phase."""
        folder = os.path.join(self._folder, "compute", "submission_files", f"submission_{number}")
        os.makedirs(folder)
        with open(submission, "rb") as file:
            path = self._stored(folder, submission, file.read())
        request = {
            "annotation": phase["annotation"],
            "submission": path,
            "phase": phase["codename"],
            "splits": self.splits(phase),
            "metadata": {"id": number, "status": "running", "participant_team_name": "Host_demo_Team"},
        }
        answer = self._ask(request)
        shutil.rmtree(folder)
        return Outcome(
            answer["status"],
            answer["stdout"],
            answer["stderr"],
            {split: values for entry in answer["result"] or [] for split, values in entry.items()},
            {split: values for entry in answer.get("error") or [] for split, values in entry.items()},
        )

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._worker is None:
            raise HostError("the rehearsal's worker is not running")
        try:
            return self._worker.ask(request)
        except DiedError as death:
            told = f"on EvalAI every submission would stay `running`, since {death}. Its log:"
            raise HostError(f"{told}\n{self.log()}") from None

    def log(self) -> str:
        """What the worker wrote to its own streams."""
        return self._worker.log() if self._worker else ""
