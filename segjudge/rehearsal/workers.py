"""EvalAI's hosted workers: each takes a message, has a process score the submission, and writes the result down."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from segjudge.evalai.jobs import CANCELLED, FAILED
from segjudge.hosted_worker.cpu_share import CpuShare
from segjudge.hosted_worker.folder import FOLDER_PREFIX, WorkerFolder
from segjudge.hosted_worker.interpreter import Interpreter
from segjudge.hosted_worker.process import (
    CORES,
    MEMORY,
    DiedError,
    HungError,
    UnwantedError,
    WorkerProcess,
    WorkerTerms,
)

from .queue import ReceivedMessage
from .services import Services
from .submissions import Refusal

#: Deaths of a process before the submission is to blame: three while it is scored, more while the script is loaded.
_BLAMED, _WHILE_SCORED, _WHILE_LOADED = 9, 3, 1
_IDLE = 0.3
_FAREWELL = 5.0
#: EvalAI has no such limit, which is why a submission can stay `running` there for ever.
SECONDS = 900.0
_HANGS = "On EvalAI this would hang: {}. The submission would stay `running` and keep its team from sending more."


@dataclass(frozen=True)
class Scorer:
    """What scores, and within what."""

    python: Interpreter
    seconds: float = SECONDS
    #: The sandbox's program.
    box: str | None = None


class Workers:
    """So many of them, each a thread here with a process of its own."""

    def __init__(self, services: Services, scorer: Scorer, number: int) -> None:
        self._services, self.sandboxed = services, scorer.box is not None
        self._stop = threading.Event()
        self._cores = CpuShare(CORES * number)
        _sweep(services)
        self._workers = [_Worker(services, scorer, k + 1, self._cores, self._stop) for k in range(number)]
        self._threads = [threading.Thread(target=self._run, args=(one,), daemon=True) for one in self._workers]

    @property
    def limited(self) -> bool:
        """Whether a worker has half a core, as on EvalAI."""
        return self._cores.limited

    def start(self) -> None:
        """Begin to take messages."""
        for thread in self._threads:
            thread.start()

    def give_up(self) -> None:
        """Take nothing more, and give back what is in hand; from a signal's handler, too."""
        self._stop.set()

    def stop(self) -> None:
        """Wait until everything is given back."""
        self.give_up()
        until = time.monotonic() + _FAREWELL
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))
        self._cores.close()

    def _run(self, worker: _Worker) -> None:
        try:
            turn_until(
                self._stop, worker.turn, lambda error: self._services.store.note(0, f"a worker stumbled: {error!r}")
            )
        finally:
            worker.close()


def turn_until(stop: threading.Event, turn: Callable[[], bool], stumbled: Callable[[Exception], object]) -> None:
    """One turn after the other, with a pause after one that found nothing; a defect of ours ends no worker."""
    while not stop.is_set():
        try:
            busy = turn()
        except Exception as error:  # noqa: BLE001 - whatever it is
            stumbled(error)
            busy = False
        if not busy:
            stop.wait(_IDLE)


def _sweep(services: Services) -> None:
    """Remove the folders of a rehearsal that was killed."""
    for folder in services.store.noted("worker"):
        if os.path.basename(folder).startswith(FOLDER_PREFIX):
            shutil.rmtree(folder, ignore_errors=True)
        services.store.unnote("worker", folder)


class _Worker:
    """One worker; it keeps its process while the challenge stays the same."""

    def __init__(self, services: Services, scorer: Scorer, number: int, cores: CpuShare, stop: threading.Event) -> None:
        self._services, self._scorer, self._number = services, scorer, number
        self._cores, self._stop = cores, stop
        self._loaded: tuple[int, int] | None = None
        self._turns = 0
        self._compute: WorkerFolder | None = None
        self._annotations: dict[int, str] = {}
        self._process: WorkerProcess | None = None
        self.say("idle")

    def say(self, what: str) -> None:
        """Tell the host's page."""
        self._services.workers[self._number] = what

    def close(self) -> None:
        """End the process and its folder."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        if self._compute is not None:
            self._compute.remove()
            self._services.store.unnote("worker", self._compute.path)
            self._compute = None
        self._loaded = None

    def turn(self) -> bool:
        """Take one message, if there is any; whether there was."""
        challenges = self._services.challenges.all()
        self._turns += 1
        first = self._turns % max(1, len(challenges))  # none waits for ever behind a busy one
        for challenge in (*challenges[first:], *challenges[:first]):
            if not _scored_here(challenge) or not self._services.accounts.pushed_by_host(challenge["host_team"]):
                continue
            message = self._services.queue.receive(challenge["queue"], hosted=True)
            if message is not None:
                self._answer(challenge, message)
                return True
        self.say("idle")
        return False

    def _answer(self, challenge: Any, message: ReceivedMessage) -> None:
        """Score what a message names; it is deleted last, so that a death brings it back."""
        number = int(message.body["submission_pk"])
        try:
            row = self._services.submissions.row(number)
        except Refusal:
            self._services.queue.delete(challenge["queue"], message.handle)
            return
        ours = self._services.submissions.challenge_of(row)["id"] == challenge["id"]
        if not ours or not self._services.submissions.begin(number):
            self._services.queue.delete(challenge["queue"], message.handle)
            return
        self.say(f"scores submission {number}")
        try:
            over = self._brought_home(challenge, row)
        except UnwantedError:
            self.close()
            over = not self._stop.is_set()  # it was cancelled
        if self._stop.is_set() and not over:
            self._services.submissions.give_back(number, challenge["queue"], message.handle)
        elif over:
            self._services.queue.delete(challenge["queue"], message.handle)

    def _brought_home(self, challenge: Any, row: Any) -> bool:
        """Whether the submission has come to an end; while the rehearsal stops, nothing that breaks is to blame."""
        number = int(row["id"])
        try:
            answer = self._scored(challenge, row)
        except UnwantedError:
            raise
        except DiedError as death:
            return not self._stop.is_set() and not self._again(challenge, number, death)
        except Exception as error:  # noqa: BLE001 - whatever it is, the submission must come to an end
            self.close()
            if self._stop.is_set():
                return False
            self._services.store.note(challenge["id"], f"submission {number}: {error!r}")
            self._services.reporting.failed(number, _HANGS.format(f"the worker stumbled over it ({error})"))
            return True
        self._take(number, answer)
        return True

    def _take(self, number: int, answer: dict[str, Any]) -> None:
        try:
            self._services.reporting.hosted(number, answer)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._services.reporting.failed(number, f"EvalAI could not store what evaluate() returned: {error!r}")

    def _again(self, challenge: Any, number: int, death: DiedError) -> bool:
        """Whether a submission whose process died is tried once more, as EvalAI's queue would do."""
        log = self._process.log().strip() if self._process else ""
        started = self._loaded is not None
        self.close()
        deaths = self._services.submissions.row(number)["deaths"] + (_WHILE_SCORED if started else _WHILE_LOADED)
        self._services.submissions.update(number, deaths=deaths)
        last = log.splitlines()[-1] if log else ""
        self._services.store.note(challenge["id"], f"submission {number}: {death}\n{log[-4000:]}".rstrip())
        if not started and not death.killed:
            words = f"the worker cannot load the evaluation script ({last or death})"
        elif isinstance(death, HungError):
            words = f"{death}, and EvalAI waits for ever"
        elif deaths >= _BLAMED:
            words = f"{death}, again and again"
        else:
            return True
        self._services.reporting.failed(number, _HANGS.format(words))
        return False

    def _scored(self, challenge: Any, row: Any) -> dict[str, Any]:
        number, phase = int(row["id"]), self._services.challenges.phase_row(row["phase_id"])
        idle_death = self._process is not None and not self._process.alive
        if idle_death or self._loaded != (challenge["id"], challenge["version"]):
            self.close()
            self._load(challenge)
        if not phase["annotation"]:
            return {"status": FAILED, "stdout": "", "stderr": _HANGS.format("the phase has no annotation file")}
        assert self._process is not None  # noqa: S101 - `_load` started it
        assert self._compute is not None  # noqa: S101 - likewise
        try:
            file = row["submission_input_file"] or row["input_file"]
            request = {
                "annotation": self._annotations[phase["id"]],
                "submission": self._compute.add_submission(number, self._ending(file), self._copier(file)),
                "phase": phase["codename"],
                "splits": [one["split_codename"] for one in self._services.challenges.splits_of(phase["id"])],
                "metadata": self._services.submissions.shown(self._services.submissions.row(number), ""),
            }
            return self._process.ask(request, self._scorer.seconds, partial(self._unwanted, number))
        finally:
            if self._compute is not None:
                self._compute.remove_submission(number)

    def _unwanted(self, number: int) -> bool:
        """Whether nobody waits for a score any more."""
        return self._stop.is_set() or self._services.submissions.row(number)["status"] == CANCELLED

    def _load(self, challenge: Any) -> None:
        """The folders of EvalAI's worker, and a process with the script imported."""
        compute = self._compute = WorkerFolder()
        self._services.store.note_folder("worker", compute.path)
        with zipfile.ZipFile(self._services.store.path(challenge["script"])) as script:
            compute.add_script(challenge["id"], script)
        self._annotations = {
            phase["id"]: compute.add_annotation(
                challenge["id"], phase["id"], self._ending(phase["annotation"]), self._copier(phase["annotation"])
            )
            for phase in self._services.store.rows("SELECT * FROM phases WHERE challenge_id = ?", challenge["id"])
            if phase["annotation"]
        }
        # Neither the database, nor other submissions, nor what another worker has.
        hidden = (self._services.store.folder,)
        terms = WorkerTerms(MEMORY, self._scorer.box, hidden, self._cores.file)
        self._process = WorkerProcess(self._scorer.python, compute, challenge["id"], terms)
        self._process.ask({"ready": True}, self._scorer.seconds, self._stop.is_set)
        self._loaded = (challenge["id"], challenge["version"])

    def _ending(self, file: str) -> str:
        """The last ending of a file's name, which is all that EvalAI keeps of it."""
        name = self._services.store.value("SELECT name FROM files WHERE id = ?", file)
        return re.sub(r"[^\w.]", "", os.path.splitext(name)[1], flags=re.ASCII)[:20]

    def _copier(self, file: str) -> Callable[[str], object]:
        return partial(shutil.copyfile, self._services.store.path(file))


def _scored_here(challenge: Any) -> bool:
    """Whether EvalAI's own worker scores it; of code uploads only the second stage of static ones."""
    config = json.loads(challenge["config"])
    if config.get("remote_evaluation"):
        return False
    return not config.get("is_docker_based") or bool(config.get("is_static_dataset_code_upload"))
