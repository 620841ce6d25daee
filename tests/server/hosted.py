"""A rehearsal on a stage whose scorers take turns when a test wants: submissions and what comes of them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from segjudge.server.background import Background
from segjudge.server.models import Challenge, LogLine, StoredMessage, Submission

from .scenario import bundle_of, config_of
from .staged import Stage

FILES = ("stdout_file", "stderr_file", "submission_result_file", "metadata_file", "environment_log_file")
Turn = Callable[[], bool]


class Hosted:
    """A server with its challenges, and the turns of what works in its background."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.services, self.folder = stage, stage.services, folder
        self.turns: list[tuple[str, Turn, Callable[[], None]]] = []
        #: What the played processes did since the last look.
        self.steps: list[str] = []
        #: What is done while a process is asked.
        self.meanwhile: Callable[[], object] = lambda: None
        self._logged = 0

    def push(self, title: str, **changes: Any) -> int:
        """Push a challenge, in which all people take part; return its number."""
        path = "/api/challenges/challenge/challenge_host_team/1/create_or_update_github_challenge/"
        bundle = bundle_of(make_config(title, **changes), "truth")
        files, fields = {"zip_configuration": ("c.zip", bundle)}, {"GITHUB_REPOSITORY": f"me/{title}"}
        answer = self.stage.call("POST", path, "host", data=fields, files=files)
        assert answer.status_code == 201, answer.text
        number = max(row.id for row in self.services.store.find(Challenge))
        host: Any = self.services.accounts.find_user("host")
        team = self.services.accounts.teams(host, "participant")[0].id
        for who, of in (("aurora", 2), ("borealis", 3), ("host", team)):
            self.stage.call("POST", f"/api/challenges/challenge/{number}/participant_team/{of}", who)
        return number

    def phase(self, challenge: int, index: int = 0) -> int:
        return self.services.store.phases(challenge)[index].id

    def send(self, challenge: int, phase: int, word: str, who: str = "aurora") -> int:
        path = f"/api/jobs/challenge/{challenge}/challenge_phase/{phase}/submission/"
        answer = self.stage.call("POST", path, who, files={"input_file": ("a.json", word.encode())})
        return int(answer.json()["id"])

    def end_of(self, number: int) -> tuple[str, dict[str, str]]:
        """Return the status and the texts of a submission."""
        row = self.services.store.require(Submission, number)
        texts = {name: self.services.files.text(getattr(row, name)) for name in FILES if getattr(row, name)}
        return row.status, {name.removesuffix("_file"): self.settle(text) for name, text in texts.items() if text}

    def queued(self) -> list[float]:
        """Return the seconds until each message of the queues is visible."""
        return [round(message.visible_at - self.stage.now) for message in self.services.store.find(StoredMessage)]

    def take_steps(self) -> str:
        steps, self.steps = ", ".join(self.steps), []
        return self.settle(steps)

    def take_log(self) -> list[str]:
        lines = [
            line.line.partition("] ")[2] or line.line for line in self.services.store.find(LogLine)[self._logged :]
        ]
        self._logged += len(lines)
        return [re.sub(r"submission \d+", "submission N", line) for line in lines]

    def clear(self) -> None:
        self.services.store.remove(StoredMessage)
        self.take_steps()
        self.take_log()
        self.meanwhile = lambda: None

    def settle(self, text: str) -> str:
        """Return the text without random values."""
        worker = rf"{re.escape(tempfile.gettempdir())}/segjudge-worker-[0-9a-f]{{32}}"
        text = re.sub(worker, "WORKER", text.replace(str(self.folder), "FOLDER"))
        return re.sub(r"\b[0-9a-f]{32,64}\b", "ID", text)


def make_config(title: str, **changes: Any) -> dict[str, Any]:
    config = config_of(title, **{"remote_evaluation": False, **changes})
    for phase in config["challenge_phases"]:
        phase |= {"test_annotation_file": "truth.json", "max_submissions_per_day": 99, "max_submissions_per_month": 99}
        phase |= {"max_submissions": 99, "max_concurrent_submissions_allowed": 99}
    config["challenge_phases"][1] |= {"disable_logs": True}
    return config


@contextmanager
def hosted_stage(folder: Path) -> Iterator[Hosted]:
    """Yield a server with one challenge, whose background does nothing by itself."""
    (folder / "hosted.zip").write_bytes(bundle_of(make_config("Hosted"), "truth"))
    with Stage(folder, folder / "hosted.zip", "dora") as stage:
        made = Hosted(stage, folder)

        def add(self: Background, turn: Turn, close: Callable[[], None] = lambda: None, name: str = "") -> None:
            made.turns.append((name or self._name, turn, close))

        with patch.object(Background, "_add", add):
            yield made
