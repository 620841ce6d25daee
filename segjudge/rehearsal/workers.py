"""EvalAI's hosted workers: each takes a message, has a process score the submission, and stores the result."""

from __future__ import annotations

import os
import shutil
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from segjudge.evalai.jobs import FAILED
from segjudge.hosted_worker.cpu_share import CpuShare
from segjudge.hosted_worker.folder import FOLDER_PREFIX, WorkerFolder
from segjudge.hosted_worker.interpreter import Interpreter
from segjudge.hosted_worker.process import (
    CORES,
    MEMORY,
    DiedError,
    HungError,
    UnloadableError,
    UnwantedError,
    WorkerProcess,
    WorkerTerms,
)
from segjudge.hosted_worker.requirements import with_requirements
from segjudge.hosted_worker.scorers import is_ours
from segjudge.hosted_worker.worker import SECONDS

from .column_types import JsonObject
from .models import Challenge, Submission
from .queue import ReceivedMessage
from .services import Services

#: Deaths of a process before the submission is to blame: three while it is scored, more while the script is loaded.
_BLAMED, _WHILE_SCORED, _WHILE_LOADED = 9, 3, 1
_IDLE = 0.3
_STOP_SECONDS = 5.0
_NOT_LOADED = "EvalAI shows this to the hosts in the Manage tab, and scores nothing until it is corrected."
_HANGS = "On EvalAI this would hang: {}. The submission would stay `running` and keep its team from sending more."


@dataclass(frozen=True)
class Scorer:
    """The interpreter that scores, and its limits."""

    python: Interpreter
    seconds: float = SECONDS
    #: The sandbox's program.
    box: str | None = None


class Workers:
    """A number of workers, each a thread here with a process of its own."""

    def __init__(self, services: Services, scorer: Scorer, number: int) -> None:
        self._services, self.sandboxed = services, scorer.box is not None
        self._stop = threading.Event()
        self._cores = CpuShare(CORES * number)
        _sweep(services)
        self._workers = [_Worker(services, scorer, k + 1, self._cores, self._stop) for k in range(number)]
        self._threads = [threading.Thread(target=self._run, args=(worker,), daemon=True) for worker in self._workers]

    @property
    def limited(self) -> bool:
        """Return whether a worker has half a core, as on EvalAI."""
        return self._cores.limited

    def start(self) -> None:
        """Begin to receive messages."""
        for thread in self._threads:
            thread.start()

    def give_up(self) -> None:
        """Receive nothing more, and give back what is being scored; safe in a signal's handler."""
        self._stop.set()

    def stop(self) -> None:
        """Wait until everything is given back."""
        self.give_up()
        deadline = time.monotonic() + _STOP_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        self._cores.close()

    def _run(self, worker: _Worker) -> None:
        try:
            log = self._services.store.log
            repeat_until(self._stop, worker.turn, lambda error: log(0, f"a worker stumbled: {error!r}"))
        finally:
            worker.close()


def repeat_until(stop: threading.Event, turn: Callable[[], bool], on_error: Callable[[Exception], object]) -> None:
    """Call `turn` until `stop` is set, with a pause after one that found nothing; no defect of ours ends a worker."""
    while not stop.is_set():
        try:
            busy = turn()
        except Exception as error:  # noqa: BLE001 - whatever it is
            on_error(error)
            busy = False
        if not busy:
            stop.wait(_IDLE)


def _sweep(services: Services) -> None:
    """Remove the folders that a killed rehearsal left."""
    for folder in services.store.noted_folders("worker"):
        if os.path.basename(folder).startswith(FOLDER_PREFIX):
            shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):  # a process that is just ending may still write there: next time
            services.store.forget_folder("worker", folder)


class _Worker:
    """A worker, which keeps its process while the challenge stays the same."""

    def __init__(self, services: Services, scorer: Scorer, number: int, cores: CpuShare, stop: threading.Event) -> None:
        self._services, self._scorer, self._number = services, scorer, number
        self._cores, self._stop = cores, stop
        self._loaded: tuple[int, int] | None = None
        self._turns = 0
        self._compute: WorkerFolder | None = None
        self._annotations: dict[int, str] = {}
        self._process: WorkerProcess | None = None
        self.show("idle")

    def show(self, activity: str) -> None:
        """Show on the host's page what this worker does."""
        self._services.workers[self._number] = activity

    def close(self) -> None:
        """End the process and its folder."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        if self._compute is not None:
            self._compute.remove()
            self._services.store.forget_folder("worker", self._compute.path)
            self._compute = None
        self._loaded = None

    def turn(self) -> bool:
        """Answer one message; return whether there was one."""
        challenges = self._services.challenges.all()
        self._turns += 1
        first = self._turns % max(1, len(challenges))  # none waits for ever behind a busy one
        for challenge in (*challenges[first:], *challenges[:first]):
            if not _scored_here(challenge) or not self._services.accounts.pushed_by_host(challenge.host_team):
                continue
            message = self._services.queue.receive(challenge.queue, hosted=True)
            if message is not None:
                self._answer(challenge, message)
                return True
        self.show("idle")
        return False

    def _answer(self, challenge: Challenge, message: ReceivedMessage) -> None:
        """Score the submission of a message; the message is deleted last, so that a death brings it back."""
        submission = self._services.submissions.of_message(challenge.queue, message)
        if submission is None:
            return
        ours = self._services.submissions.phase_of(submission).challenge_id == challenge.id
        if not ours or not self._services.submissions.begin(submission.id):
            self._services.queue.delete(challenge.queue, message.handle)
            return
        self.show(f"scores submission {submission.id}")
        try:
            ended = self._ended(challenge, submission)
        except UnwantedError:
            self.close()
            ended = not self._stop.is_set()  # it was cancelled
        if ended:
            self._services.queue.delete(challenge.queue, message.handle)
        elif self._stop.is_set():
            self._services.submissions.give_back(submission.id, challenge.queue, message.handle)

    def _ended(self, challenge: Challenge, submission: Submission) -> bool:
        """Score a submission and return whether it has ended; while the rehearsal stops, no failure is its fault."""
        try:
            answer = self._scored(challenge, submission)
        except UnwantedError:
            raise
        except DiedError as death:
            return not self._stop.is_set() and not self._tried_again(challenge, submission.id, death)
        except Exception as error:  # noqa: BLE001 - whatever it is, the submission must come to an end
            self.close()
            if self._stop.is_set():
                return False
            self._services.store.log(challenge.id, f"submission {submission.id}: {error!r}")
            words = _HANGS.format(f"the worker stumbled over it ({error})")
            self._services.reports.failed(submission.id, words)
            return True
        try:
            self._services.reports.hosted(submission.id, answer)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            words = f"EvalAI could not store what evaluate() returned: {error!r}"
            self._services.reports.failed(submission.id, words)
        return True

    def _tried_again(self, challenge: Challenge, number: int, death: DiedError) -> bool:
        """Return whether a submission whose process died is tried once more, as EvalAI's queue would do."""
        log = self._process.log().strip() if self._process else ""
        loaded = self._loaded is not None
        self.close()
        if isinstance(death, UnloadableError):
            self._services.store.log(challenge.id, f"submission {number}: {death}\n{death.log or log}".rstrip())
            self._services.reports.failed(number, f"{death}. {_NOT_LOADED}")
            return False
        deaths = self._services.submissions.get(number).deaths + (_WHILE_SCORED if loaded else _WHILE_LOADED)
        self._services.submissions.update(number, deaths=deaths)
        last = log.splitlines()[-1] if log else ""
        self._services.store.log(challenge.id, f"submission {number}: {death}\n{log[-4000:]}".rstrip())
        if not loaded and not death.killed:
            words = f"the worker cannot load the evaluation script ({last or death})"
        elif isinstance(death, HungError):
            words = f"{death}, and EvalAI waits for ever"
        elif deaths >= _BLAMED:
            words = f"{death}, again and again"
        else:
            return True
        self._services.reports.failed(number, _HANGS.format(words))
        return False

    def _scored(self, challenge: Challenge, submission: Submission) -> JsonObject:
        number, phase = submission.id, self._services.submissions.phase_of(submission)
        died_idle = self._process is not None and not self._process.alive
        if died_idle or self._loaded != (challenge.id, challenge.version):
            self.close()
            self._load(challenge)
        if not phase.annotation:
            return {"status": FAILED, "stdout": "", "stderr": _HANGS.format("the phase has no annotation file")}
        assert self._process is not None  # noqa: S101 - `_load` started it
        assert self._compute is not None  # noqa: S101 - likewise
        file = submission.submission_input_file or submission.input_file or ""
        try:
            request = {
                "annotation": self._annotations[phase.id],
                "submission": self._compute.add_submission(
                    number, self._services.files.ending(file), self._copier(file)
                ),
                "phase": phase.codename,
                "splits": [split.dataset_split.codename for split in self._services.challenges.splits_of(phase.id)],
                "metadata": self._services.json.submission(self._services.submissions.get(number), ""),
            }
            return self._process.ask(request, self._scorer.seconds, partial(self._is_unwanted, number))
        finally:
            if self._compute is not None:
                self._compute.remove_submission(number)

    def _is_unwanted(self, number: int) -> bool:
        """Return whether nobody waits for a score any more."""
        return self._stop.is_set() or self._services.submissions.is_cancelled(number)

    def _load(self, challenge: Challenge) -> None:
        """Prepare the folders of EvalAI's worker, and a process that has imported the script."""
        compute = self._compute = WorkerFolder(partial(self._services.store.note_folder, "worker"))
        with zipfile.ZipFile(self._services.files.path(challenge.script)) as script:
            compute.add_script(challenge.id, script)
        self._annotations = {
            phase.id: compute.add_annotation(
                challenge.id, phase.id, self._services.files.ending(phase.annotation), self._copier(phase.annotation)
            )
            for phase in self._services.challenges.phases(challenge.id)
            if phase.annotation
        }
        python = self._scorer.python
        if not is_ours(os.listdir(compute.script(challenge.id))):
            python = with_requirements(python, compute, challenge.id, self._scorer.box, self.show)
        # Neither the database, nor other submissions, nor what another worker has.
        hidden = (self._services.store.folder,)
        terms = WorkerTerms(MEMORY, self._scorer.box, hidden, self._cores.file)
        self._process = WorkerProcess(python, compute, challenge.id, terms)
        self._process.ask({"ready": True}, self._scorer.seconds, self._stop.is_set)
        self._loaded = (challenge.id, challenge.version)

    def _copier(self, file: str) -> Callable[[str], object]:
        return partial(shutil.copyfile, self._services.files.path(file))


def _scored_here(challenge: Challenge) -> bool:
    """Return whether EvalAI's own worker scores it; of code uploads only the second stage of static ones."""
    if challenge.flag("remote_evaluation"):
        return False
    return not challenge.flag("is_docker_based") or challenge.flag("is_static_dataset_code_upload")
