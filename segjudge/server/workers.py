"""EvalAI's hosted workers: each takes a message, has a process score the submission, and stores the result."""

from __future__ import annotations

import os
import shutil
import threading
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from segjudge.platforms.evalai.hosted_worker.folder import FOLDER_PREFIX, WorkerFolder
from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter
from segjudge.platforms.evalai.hosted_worker.process import (
    CORES,
    MEMORY,
    SECONDS,
    DiedError,
    HungError,
    UnloadableError,
    UnwantedError,
    WorkerProcess,
    WorkerTerms,
)
from segjudge.platforms.evalai.hosted_worker.requirements import install_requirements
from segjudge.platforms.evalai.rows import FAILED
from segjudge.system.bounds import ResourceGroup
from segjudge.system.files import remove_folder
from segjudge.system.sandbox import SCORER_PROCESSES

from .background import Background
from .models import Challenge, Submission
from .services import Services
from .store import outage_of, unless_away
from .submissions import ReceivedMessage
from .wire import JsonObject

#: The weight of deaths at which a submission fails: three while it is scored, nine while the script loads, or 18 by
#: SIGKILL, which the system or an operator may have sent.
_MOST_DEATHS, _WHILE_SCORED, _WHILE_LOADED, _BY_KILL = 18, 6, 2, 1
_NOT_LOADED = "EvalAI shows this to the hosts in the Manage tab and scores nothing until they correct it."
_HANGS = "On EvalAI this would hang: {}. The submission would stay `running`, and its team could send no more."
_KILLED = (
    "The processes that scored it were killed by SIGKILL, again and again: by the system, if memory is short, or by a "
    "person. Ask the host to run the submission again."
)


@dataclass(frozen=True)
class JobScorer:
    """The interpreter that scores, and its limits."""

    python: Interpreter
    seconds: float = SECONDS
    #: The sandbox's program.
    box: str | None = None


class Workers(Background):
    """A number of workers, each a thread here with a process of its own."""

    def __init__(self, services: Services, scorer: JobScorer, number: int) -> None:
        super().__init__(services.store, "a worker")
        self._group = ResourceGroup(cores=CORES * number, processes=SCORER_PROCESSES * number)
        _sweep(services)
        for k in range(number):
            worker = _Worker(services, scorer, k + 1, self._group, self._stop, self._retry_during_outages)
            self._add(worker.turn, worker.close, f"worker {k + 1}")

    @property
    def is_limited(self) -> bool:
        """Return whether a worker has half a core, as on EvalAI."""
        return self._group.holds_bound("cpu")

    def stop(self) -> None:
        super().stop()
        self._group.close()


def _sweep(services: Services) -> None:
    """Remove the folders that a killed server left."""
    for folder in services.store.worker_folders():
        if os.path.basename(folder).startswith(FOLDER_PREFIX):
            remove_folder(folder)
        if not os.path.exists(folder):  # an ending process may still write there: next time
            services.store.forget_folder(folder)


class _Worker:
    """A worker, which keeps its process while the challenge stays the same."""

    def __init__(
        self,
        services: Services,
        scorer: JobScorer,
        number: int,
        group: ResourceGroup,
        stop: threading.Event,
        retry_during_outages: Callable[[Callable[[], object]], None],
    ) -> None:
        """`retry_during_outages` repeats an action of the store until the store is available."""
        self._services, self._scorer, self._number = services, scorer, number
        self._group, self._stop = group, stop
        self._loaded: tuple[int, int] | None = None
        self._turns = 0
        self._compute: WorkerFolder | None = None
        self._annotations: dict[int, str] = {}
        self._process: WorkerProcess | None = None
        self._retry_during_outages = retry_during_outages
        self.show("idle")

    def show(self, activity: str) -> None:
        self._services.workers[self._number] = activity

    def close(self) -> None:
        self._loaded = None
        if self._process is not None:
            self._process.kill()
            self._process = None
        if self._compute is not None:
            compute, self._compute = self._compute, None
            compute.remove()
            unless_away(lambda: self._services.store.forget_folder(compute.path))  # otherwise at the next start

    def turn(self) -> bool:
        challenges = self._services.store.find(Challenge)
        self._turns += 1
        turn = self._turns % max(1, len(challenges))  # no challenge waits forever behind a busy one
        for challenge in (*challenges[turn:], *challenges[:turn]):
            if not _is_scored_here(challenge) or not self._services.accounts.team_may_push(challenge.host_team):
                continue
            message = self._services.queue.receive(challenge.queue, hosted=True)
            if message is not None:
                self._answer(challenge, message)
                return True
        self.show("idle")
        return False

    def _answer(self, challenge: Challenge, message: ReceivedMessage) -> None:
        """Score the submission of a message, which is deleted last, so that it returns if the worker dies."""
        submission = self._services.submissions.of_message(challenge.queue, message)
        if submission is None:
            return
        belongs = self._services.submissions.phase_of(submission).challenge_id == challenge.id
        if not belongs or not self._services.submissions.begin(submission.id):
            self._services.queue.delete(challenge.queue, message.handle)
            return
        self.show(f"scores submission {submission.id}")
        try:
            has_ended = self._score_to_end(challenge, submission)
        except UnwantedError:
            self.close()
            has_ended = not self._stop.is_set()  # it was cancelled
        if has_ended:
            self._retry_during_outages(lambda: self._services.queue.delete(challenge.queue, message.handle))
        elif self._stop.is_set():
            self._services.submissions.give_back(submission.id, challenge.queue, message.handle)

    def _score_to_end(self, challenge: Challenge, submission: Submission) -> bool:
        """Score a submission and return whether it ended; failures during a stop do not count."""
        try:
            answer = self._score(challenge, submission)
        except UnwantedError:
            raise
        except DiedError as death:
            return not self._stop.is_set() and not self._retry_or_fail(challenge, submission.id, death)
        except Exception as error:
            self.close()
            if self._stop.is_set():
                return False
            if outage_of(error) is not None:
                raise  # the message returns, and the submission is scored then
            self._services.store.log(challenge.id, f"submission {submission.id}: {error!r}")
            message = _HANGS.format(f"the worker failed on it ({error})")
            self._services.submissions.fail(submission.id, message)
            return True
        try:
            self._retry_during_outages(lambda: self._services.submissions.keep_answer(submission.id, answer))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"EvalAI could not store what evaluate() returned: {error!r}"
            self._services.submissions.fail(submission.id, message)
        return True

    def _retry_or_fail(self, challenge: Challenge, number: int, death: DiedError) -> bool:
        """Return whether to retry a submission whose process died, as EvalAI's queue would."""
        log = self._process.log().strip() if self._process else ""
        loaded = self._loaded is not None
        self.close()
        if isinstance(death, UnloadableError):
            self._services.store.log(challenge.id, f"submission {number}: {death}\n{death.log or log}".rstrip())
            self._services.submissions.fail(number, f"{death}. {_NOT_LOADED}")
            return False
        weight = _BY_KILL if death.blameless else _WHILE_SCORED if loaded else _WHILE_LOADED
        deaths = self._services.submissions.get(number).deaths + weight
        self._services.submissions.update(number, deaths=deaths)
        last_line = log.splitlines()[-1] if log else ""
        self._services.store.log(challenge.id, f"submission {number}: {death}\n{log[-4000:]}".rstrip())
        if not loaded and not death.killed:
            message = _HANGS.format(f"the worker cannot load the evaluation script ({last_line or death})")
        elif isinstance(death, HungError):
            message = _HANGS.format(f"{death}, and EvalAI waits forever")
        elif deaths < _MOST_DEATHS:
            return True
        else:
            message = _KILLED if death.blameless else _HANGS.format(f"{death}, again and again")
        self._services.submissions.fail(number, message)
        return False

    def _score(self, challenge: Challenge, submission: Submission) -> JsonObject:
        number, phase = submission.id, self._services.submissions.phase_of(submission)
        died_idle = self._process is not None and not self._process.alive
        if died_idle or self._loaded != (challenge.id, challenge.version):
            self.close()
            self._load(challenge)
        if not phase.annotation:
            return {"status": FAILED, "stdout": "", "stderr": _HANGS.format("the phase has no annotation file")}
        assert self._process is not None  # noqa: S101 - `_load` started it
        assert self._compute is not None  # noqa: S101 - likewise
        file, files = submission.submission_input_file or submission.input_file or "", self._services.files
        try:
            request = {
                "annotation": self._annotations[phase.id],
                "submission": self._compute.add_submission(number, files.path(file), files.ending(file)),
                "phase": phase.codename,
                "splits": [split.dataset_split.codename for split in self._services.store.splits_of(phase.id)],
                "metadata": self._services.json.submission(self._services.submissions.get(number), ""),
            }
            return self._process.ask(request, self._scorer.seconds, partial(self._is_unwanted, number))
        finally:
            if self._compute is not None:
                self._compute.remove_submission(number)

    def _is_unwanted(self, number: int) -> bool:
        """Return True if no score is expected any more."""
        return self._stop.is_set() or bool(unless_away(lambda: self._services.submissions.is_cancelled(number)))

    def _load(self, challenge: Challenge) -> None:
        """Prepare the folders of EvalAI's worker, and a process that has imported the script."""
        compute = self._compute = WorkerFolder(self._services.store.note_folder)
        with zipfile.ZipFile(self._services.files.path(challenge.script)) as script:
            compute.add_script(challenge.id, script)
        self._annotations, files = {}, self._services.files
        for phase in self._services.store.phases(challenge.id):
            if phase.annotation:
                path = compute.annotation_path(challenge.id, phase.id, files.ending(phase.annotation))
                self._annotations[phase.id] = shutil.copyfile(files.path(phase.annotation), path)
        python = install_requirements(self._scorer.python, compute, challenge.id, self._scorer.box, self.show)
        # Hide the database, other submissions, and other workers' folders.
        hidden = (self._services.store.folder,)
        terms = WorkerTerms(MEMORY, self._scorer.box, hidden, self._group)
        self._process = WorkerProcess(python, compute, challenge.id, terms)
        self._process.ask({"ready": True}, self._scorer.seconds, self._stop.is_set)
        self._loaded = (challenge.id, challenge.version)


def _is_scored_here(challenge: Challenge) -> bool:
    """Return whether EvalAI's own worker scores it; of code uploads, only the second stage of static ones."""
    if challenge.flag("remote_evaluation"):
        return False
    return not challenge.flag("is_docker_based") or challenge.flag("is_static_dataset_code_upload")
