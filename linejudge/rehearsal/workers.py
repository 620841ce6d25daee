"""EvalAI's hosted workers: each takes a message, has a process score the submission, and writes the result down."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import threading
import time
import uuid
import zipfile
from collections.abc import Callable
from typing import Any

from linejudge.evalai.jobs import CANCELLED, FAILED, RUNNING

from .cores import Cores
from .desk import Desk
from .process import CORES, MEMORY, DiedError, HungError, Process
from .queue import Message
from .submissions import Refusal

#: Deaths of a process before the submission is to blame: three while it is scored, more while the script is loaded.
_BLAMED, _WHILE_SCORED, _WHILE_LOADED = 9, 3, 1
_IDLE = 0.3
_FAREWELL = 5.0
_FOLDER = "worker-"
#: EvalAI has no such limit, which is why a submission can stay `running` there for ever.
SECONDS = 900.0
_HANGS = "On EvalAI this would hang: {}. The submission would stay `running` and keep its team from sending more."


class Workers:
    """So many of them, each a thread here with a process of its own."""

    def __init__(self, desk: Desk, python: str, number: int, seconds: float = SECONDS) -> None:
        self._desk = desk
        self._stop = threading.Event()
        self._cores = Cores(CORES * number)
        for name in os.listdir(desk.store.folder):
            if name.startswith(_FOLDER):  # of a rehearsal that was killed
                shutil.rmtree(os.path.join(desk.store.folder, name), ignore_errors=True)
        self._workers = [_Worker(desk, python, k + 1, seconds, self._cores, self._stop) for k in range(number)]
        self._threads = [threading.Thread(target=self._run, args=(one,), daemon=True) for one in self._workers]

    @property
    def limited(self) -> bool:
        """Whether a worker has half a core, as on EvalAI."""
        return self._cores.limited

    def start(self) -> None:
        """Begin to take messages."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish nothing more; what is in hand comes back with its message."""
        self._stop.set()
        for worker in self._workers:
            worker.kill()
        until = time.monotonic() + _FAREWELL
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))
        self._cores.close()

    def _run(self, worker: _Worker) -> None:
        try:
            turn_until(self._stop, worker.turn, lambda error: self._desk.store.note(0, f"a worker stumbled: {error!r}"))
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


class _Worker:
    """One worker; it keeps its process while the challenge stays the same."""

    def __init__(
        self, desk: Desk, python: str, number: int, seconds: float, cores: Cores, stop: threading.Event
    ) -> None:
        self._desk, self._python, self._number, self._seconds = desk, python, number, seconds
        self._cores, self._stop = cores, stop
        self._loaded: tuple[int, int] | None = None
        self._turns = 0
        self._folder = ""
        self._annotations: dict[int, str] = {}
        self._process: Process | None = None
        self.say("idle")

    def say(self, what: str) -> None:
        """Tell the host's page."""
        self._desk.workers[self._number] = what

    def kill(self) -> None:
        """End what is scored now, from another thread."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the process and its folder."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""
        self._loaded = None

    def turn(self) -> bool:
        """Take one message, if there is any; whether there was."""
        challenges = self._desk.challenges.all()
        self._turns += 1
        first = self._turns % max(1, len(challenges))  # none waits for ever behind a busy one
        for challenge in (*challenges[first:], *challenges[:first]):
            if not _scored_here(challenge):
                continue
            message = self._desk.queue.receive(challenge["queue"], hosted=True)
            if message is not None:
                self._answer(challenge, message)
                return True
        self.say("idle")
        return False

    def _answer(self, challenge: Any, message: Message) -> None:
        """Score what a message names; it is deleted last, so that a death brings it back."""
        number = int(message.body["submission_pk"])
        try:
            row = self._desk.submissions.row(number)
        except Refusal:
            self._desk.queue.delete(challenge["queue"], message.handle)
            return
        if row["status"] == CANCELLED or self._desk.submissions.challenge_of(row)["id"] != challenge["id"]:
            self._desk.queue.delete(challenge["queue"], message.handle)
            return
        self.say(f"scores submission {number}")
        self._desk.submissions.update(number, status=RUNNING, started_at=time.time())
        try:
            answer = self._scored(challenge, row)
        except DiedError as death:
            if self._stop.is_set():
                return  # its message brings it back at the next start
            if not self._again(challenge, number, death):
                self._desk.queue.delete(challenge["queue"], message.handle)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the submission must come to an end
            self.close()
            self._desk.store.note(challenge["id"], f"submission {number}: {error!r}")
            self._desk.reporting.failed(number, _HANGS.format(f"the worker stumbled over it ({error})"))
            self._desk.queue.delete(challenge["queue"], message.handle)
            return
        self._take(number, answer)
        self._desk.queue.delete(challenge["queue"], message.handle)

    def _take(self, number: int, answer: dict[str, Any]) -> None:
        try:
            self._desk.reporting.hosted(number, answer)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._desk.reporting.failed(number, f"EvalAI could not store what evaluate() returned: {error!r}")

    def _again(self, challenge: Any, number: int, death: DiedError) -> bool:
        """Whether a submission whose process died is tried once more, as EvalAI's queue would do."""
        log = self._process.log().strip() if self._process else ""
        started = self._loaded is not None
        self.close()
        deaths = self._desk.submissions.row(number)["deaths"] + (_WHILE_SCORED if started else _WHILE_LOADED)
        self._desk.submissions.update(number, deaths=deaths)
        last = log.splitlines()[-1] if log else ""
        self._desk.store.note(challenge["id"], f"submission {number}: {death}\n{log[-4000:]}".rstrip())
        if not started and not death.killed:
            words = f"the worker cannot load the evaluation script ({last or death})"
        elif isinstance(death, HungError):
            words = f"{death}, and EvalAI waits for ever"
        elif deaths >= _BLAMED:
            words = f"{death}, again and again"
        else:
            return True
        self._desk.reporting.failed(number, _HANGS.format(words))
        return False

    def _scored(self, challenge: Any, row: Any) -> dict[str, Any]:
        phase = self._desk.challenges.phase_row(row["phase_id"])
        idle_death = self._process is not None and not self._process.alive
        if idle_death or self._loaded != (challenge["id"], challenge["version"]):
            self.close()
            self._load(challenge)
        if not phase["annotation"]:
            return {"status": FAILED, "stdout": "", "stderr": _HANGS.format("the phase has no annotation file")}
        folder = os.path.join(self._folder, "compute", "submission_files", f"submission_{row['id']}")
        os.makedirs(folder)
        try:
            path = self._copied(row["submission_input_file"] or row["input_file"], folder)
            request = {
                "annotation": self._annotations[phase["id"]],
                "submission": path,
                "phase": phase["codename"],
                "splits": [one["split_codename"] for one in self._desk.challenges.splits_of(phase["id"])],
                "metadata": self._desk.submissions.shown(self._desk.submissions.row(row["id"]), ""),
            }
            assert self._process is not None  # noqa: S101 - `_load` started it
            answer = self._process.ask(request, self._seconds)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if answer["status"] == FAILED and answer.get("log"):
            self._desk.store.note(challenge["id"], answer["log"])
        return answer

    def _load(self, challenge: Any) -> None:
        """The folders of EvalAI's worker, and a process with the script imported."""
        self._folder = tempfile.mkdtemp(prefix=_FOLDER, dir=self._desk.store.folder)
        data = os.path.join(self._folder, "compute", "challenge_data")
        place = os.path.join(data, f"challenge_{challenge['id']}")
        os.makedirs(place)
        open(os.path.join(data, "__init__.py"), "w").close()
        with zipfile.ZipFile(self._desk.store.path(challenge["script"])) as script:
            script.extractall(place)  # the host's own, who is the user of this machine
        self._annotations = {}
        for phase in self._desk.store.rows("SELECT * FROM phases WHERE challenge_id = ?", challenge["id"]):
            if phase["annotation"]:
                folder = os.path.join(place, "phase_data", f"phase_{phase['id']}")
                os.makedirs(folder)
                self._annotations[phase["id"]] = self._copied(phase["annotation"], folder)
        self._process = Process(self._python, self._folder, challenge["id"], memory=MEMORY)
        self._cores.take(self._process.pid)
        self._process.ask({"ready": True}, self._seconds)
        self._loaded = (challenge["id"], challenge["version"])

    def _copied(self, file: str, folder: str) -> str:
        """Under the name that EvalAI gives it: a uuid and the last ending."""
        name = self._desk.store.value("SELECT name FROM files WHERE id = ?", file)
        ending = re.sub(r"[^\w.]", "", os.path.splitext(name)[1], flags=re.ASCII)[:20]
        path = os.path.join(folder, f"{uuid.uuid4()}{ending}")
        shutil.copyfile(self._desk.store.path(file), path)
        return path


def _scored_here(challenge: Any) -> bool:
    """Whether EvalAI's own worker scores it; of code uploads only the second stage of static ones."""
    config = json.loads(challenge["config"])
    if config.get("remote_evaluation"):
        return False
    return not config.get("is_docker_based") or bool(config.get("is_static_dataset_code_upload"))
